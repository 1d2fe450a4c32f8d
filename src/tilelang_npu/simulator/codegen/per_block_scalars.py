"""Scalars whose value differs between the blocks of a batch: floats that the scalar unit reads from memory, and their results.

In code that runs many blocks at once such a scalar is an array with one number per block. This covers floats that are read from
a tensor or a buffer, arithmetic on them, and values that loops, branches and scalar storage pass on; it ends where they are
stored. Every other use (an address, a trip count, an operand of a pipe's op) needs one number for all blocks; kernels with such
a use run block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import AnyFloat, MemRefType, NoneAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.simulator.codegen.strided_views import element_of
from tilelang_npu.simulator.machine.memory import Array

Sources = dict[SSAValue, frozenset[Operation]]
"""For each such scalar, or scalar storage of them, the loads that its value comes from."""

_COMPUTE = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, arith.ExtFOp, arith.TruncFOp, arith.MaximumfOp,
            arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp)
ROUNDED = ("float16", "float32", "float64")
"""Types for which arrays round exactly as single numbers do."""


class UnbatchableFunctionError(Exception):
    """A function cannot run several blocks at once."""


def find_per_block_scalars(function: FuncOp) -> Sources:
    """Returns the scalars of a function that are arrays with one number per block.

    Raises:
        UnbatchableFunctionError: a use of them needs one number for all blocks.
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
            raise UnbatchableFunctionError
        if any(value in found and not isinstance(value.type, (AnyFloat, MemRefType)) for value in op.results):
            raise UnbatchableFunctionError
    if any(_is_storage(value) and not isinstance(value.owner, (memref.AllocOp, memref.AllocaOp)) for value in found):
        raise UnbatchableFunctionError
    return found


def _handed(op: Operation, found: Sources) -> Iterator[tuple[SSAValue, frozenset[Operation]]]:
    """Yields the values and storage that an op passes data to, with the loads that the data come from."""
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
    """Whether a memref is scalar storage of the core, not in a memory."""
    return isinstance(value.type, MemRefType) and isinstance(value.type.memory_space, NoneAttr)


def _may_take(op: Operation, found: Sources) -> bool:
    """Whether an op may have operands that are arrays with one number per block."""
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
    """Returns the function that rounds an array of numbers to a type."""
    return _ROUNDERS[str(element_of(kind))]


def _rounding(element: type[np.floating]) -> Callable[[Array], Array]:
    return lambda values: np.asarray(values).astype(element).astype(np.float64)


_ROUNDERS: dict[str, Callable[[Array], Array]] = {
    "float16": _rounding(np.float16), "float32": _rounding(np.float32), "float64": np.asarray}
