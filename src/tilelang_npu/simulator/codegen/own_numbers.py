"""Scalars that each block of several has a number of its own for: floats that it reads from memory, and what becomes of them.

Code that runs many blocks at once has an array for such a scalar, with a number for each block. That goes for floats that are
read from a tensor or a buffer, for what sums, products and the like make of them, for what loops, branches and scalar storage
hand on of them, and ends where they are stored. All else that may be done with a number that is read (it is where something
lies, how often a loop runs, what an op of a pipe takes besides) has to be one for all blocks, and they are run one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import AnyFloat, MemRefType, NoneAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.simulator.codegen.element_types import element_of
from tilelang_npu.simulator.machine.memory import Array

Sources = dict[SSAValue, frozenset[Operation]]
"""Of each such scalar, or storage of them, the loads that it comes from."""

_COMPUTE = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, arith.ExtFOp, arith.TruncFOp, arith.MaximumfOp,
            arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp)
ROUNDED = ("float16", "float32", "float64")
"""Types to which an array is rounded as single numbers are."""


class ApartError(Exception):
    """Blocks of a function cannot run as one."""


def own_numbers(function: FuncOp) -> Sources:
    """The scalars of a function that are arrays.

    Raises:
        ApartError: something is done with them that has to be one for all blocks.
    """
    found: Sources = {}
    changed = True
    while changed:
        changed = False
        for op in function.walk():
            for target, sources in _handed(op, found):
                if not sources <= found.get(target, frozenset()):
                    found[target] = found.get(target, frozenset()) | sources
                    changed = True
    for op in function.walk():
        if any(value in found for value in op.operands) and not _may_take(op, found):
            raise ApartError
        if any(value in found and not isinstance(value.type, (AnyFloat, MemRefType)) for value in op.results):
            raise ApartError
    if any(_is_storage(value) and not isinstance(value.owner, (memref.AllocOp, memref.AllocaOp)) for value in found):
        raise ApartError
    return found


def _handed(op: Operation, found: Sources) -> Iterator[tuple[SSAValue, frozenset[Operation]]]:
    """What an op hands on: to which value or storage, of which loads."""
    if isinstance(op, memref.LoadOp):
        yield op.results[0], found.get(op.memref, frozenset()) if _is_storage(op.memref) else frozenset({op})
    elif isinstance(op, memref.StoreOp):
        if _is_storage(op.memref) and op.value in found:
            yield op.memref, found[op.value]
    elif isinstance(op, scf.ForOp):
        last = op.body.block.last_op
        assert last is not None
        carried = zip(op.results, op.body.block.args[1:], op.iter_args, last.operands, strict=True)
        for result, argument, first, handed in carried:
            sources = found.get(first, frozenset[Operation]()) | found.get(handed, frozenset())
            yield argument, sources
            yield result, sources
    elif isinstance(op, scf.IfOp):
        for region in op.regions:
            last = region.blocks[0].last_op if region.blocks else None
            for result, handed in zip(op.results, last.operands if last is not None else (), strict=False):
                yield result, found.get(handed, frozenset())
    elif isinstance(op, _COMPUTE):
        yield op.results[0], frozenset[Operation]().union(*(found.get(value, ()) for value in op.operands))


def _is_storage(value: SSAValue) -> bool:
    """Whether a memref is scalar storage of the core, not a place in a memory."""
    return isinstance(value.type, MemRefType) and isinstance(value.type.memory_space, NoneAttr)


def _may_take(op: Operation, found: Sources) -> bool:
    """Whether an op may take such scalars that are its operands."""
    if isinstance(op, memref.StoreOp):
        return all(index not in found for index in op.indices)
    if isinstance(op, memref.LoadOp):
        return all(index not in found for index in op.indices)
    if isinstance(op, scf.ForOp):
        return all(value not in found for value in (op.lb, op.ub, op.step))
    if isinstance(op, scf.IfOp):
        return op.cond not in found
    if isinstance(op, scf.YieldOp):
        return isinstance(op.parent_op(), (scf.ForOp, scf.IfOp))
    return isinstance(op, _COMPUTE) and element_of(op.results[0].type) in ROUNDED


def array_rounder(kind: Attribute) -> Callable[[Array], Array]:
    """What rounds an array of numbers to a type, as single ones are."""
    return _ROUNDERS[str(element_of(kind))]


def _rounding(element: type[np.floating]) -> Callable[[Array], Array]:
    return lambda values: np.asarray(values).astype(element).astype(np.float64)


_ROUNDERS: dict[str, Callable[[Array], Array]] = {
    "float16": _rounding(np.float16), "float32": _rounding(np.float32), "float64": np.asarray}
