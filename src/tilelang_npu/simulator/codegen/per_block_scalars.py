"""Finds scalars whose value differs between the blocks of a batch: floats that the scalar unit reads, and their results.

In code that runs many blocks at once such a scalar is an array with one number per block. These scalars are the floats that are
read from a tensor or a buffer, the results of float arithmetic on such floats, and the loop-carried values, results of branches
and elements of scalar storage that contain them. The kernel may store these scalars to memory. Every other use (an address, a
trip count, an operand of an op on a pipe) needs one number for all blocks; kernels with such a use run block by block.
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
"""For each scalar that differs between blocks, and each scalar storage of such values, the loads that the value comes from."""

_COMPUTE = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, arith.ExtFOp, arith.TruncFOp, arith.MaximumfOp,
            arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp)
ROUNDED = ("float16", "float32", "float64")
"""The types for which rounding an array gives exactly the results of rounding each number."""


class UnbatchableFunctionError(Exception):
    """Raised if no code can be generated that runs several blocks of a function at once."""


def find_per_block_scalars(function: FuncOp) -> Sources:
    """Returns the scalars of a function that differ between blocks, each with the loads that its value comes from.

    Raises:
        UnbatchableFunctionError: a use of one of these scalars needs one number for all blocks.
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
    """Yields the SSA values and the scalar storage that receive data from an op, with the loads that the data come from."""
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
    """Whether a memref is scalar storage of the core, that is, has no address space."""
    return isinstance(value.type, MemRefType) and isinstance(value.type.memory_space, NoneAttr)


def _may_take(op: Operation, found: Sources) -> bool:
    """Whether batched code can be generated for an op if some of its operands are arrays with one number per block."""
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
    """Returns the function that rounds each number of an array to a float type, and returns the results as float64.

    Args:
        kind: the type, one of ``ROUNDED``.
    """
    return _ROUNDERS[str(element_of(kind))]


def _rounding(element: type[np.floating]) -> Callable[[Array], Array]:
    return lambda values: np.asarray(values).astype(element).astype(np.float64)


_ROUNDERS: dict[str, Callable[[Array], Array]] = {
    "float16": _rounding(np.float16), "float32": _rounding(np.float32), "float64": np.asarray}
