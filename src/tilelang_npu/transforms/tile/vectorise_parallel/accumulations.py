"""Finds the statements of a ``T.Parallel`` that combine the values of several points in one element.

``s[i] += x[i, j]`` is executed at all points ``(i, j)``, and adds the values of a row to one element. Such a statement is
computed by vector operations in three steps: the values of all points in a tile, the reduction of the tile along the axes that
are not in the element's index, and the combination of the result with the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Operation, SSAValue

from tilelang_npu import ops
from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.analysis.index_sums import region_indices
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.transforms.tile.vectorise_parallel.conditions import UB_SCOPES
from tilelang_npu.transforms.tile.vectorise_parallel.indices import Invariants
from tilelang_npu.transforms.tile.vectorise_parallel.shared_values import is_shared

_REDUCTIONS = {"arith.addf": "reduce_sum", "arith.addi": "reduce_sum", "arith.subf": "reduce_sum", "arith.subi": "reduce_sum",
               "arith.maximumf": "reduce_max", "arith.maxnumf": "reduce_max", "arith.maxsi": "reduce_max",
               "arith.minimumf": "reduce_min", "arith.minnumf": "reduce_min", "arith.minsi": "reduce_min",
               "arith.maxui": "reduce_max", "arith.minui": "reduce_min",
               "arith.andi": "reduce_bitand", "arith.ori": "reduce_bitor", "arith.xori": "reduce_bitxor"}
"""The reduction of the values that an operation combines with an element; what is subtracted is added up."""
_UNSIGNED = ("arith.maxui", "arith.minui")
_ORDERED = ("arith.subf", "arith.subi")
"""The operations of which the element must be the first operand."""


@dataclass(frozen=True)
class Accumulation:
    """A statement ``element = combine(element, value)`` in which several points have the same element.

    Attributes:
        combine: the operation that combines the old element with a value.
        value: the value of a point.
        reduction: the name of the reduction, in the op table, that combines the values of all points.
        axes: the axes of the iteration space that do not occur in the element's index, of which at least one has several
            points.
    """

    combine: Operation
    value: SSAValue
    reduction: str
    axes: tuple[int, ...]

    @property
    def is_unsigned(self) -> bool:
        """Whether the operation compares unsigned integers."""
        return self.combine.name in _UNSIGNED


def accumulation_of(store: memref.StoreOp, invariants: Invariants, extents: Sequence[int]) -> Accumulation | None:
    """Returns the accumulation that a statement is; None if it is none.

    No other statement of the body may access the buffer, because it would see the sum of some of the points.

    Args:
        store: the store of the statement.
        invariants: the loop-invariant values of the loop.
        extents: the sizes of the iteration space.
    """
    places = [invariants.index_sum(index) for index in store.indices]
    found = region_indices(places)
    if found is None or space_of(store.memref) not in UB_SCOPES or tile.ATOMIC in store.attributes:
        return None
    axes = tuple(axis for axis in range(len(extents)) if axis not in {index.axis for index in found})
    if all(extents[axis] == 1 for axis in axes):
        return None
    combine = without_cast(store.value).owner
    name = _REDUCTIONS.get(combine.name) if isinstance(combine, Operation) else None
    if not isinstance(combine, Operation) or name is None or is_shared(combine.results[0]):
        return None
    reduction = ops.operation(name)
    assert isinstance(reduction, ops.Reduce)
    if dtype_of(combine.results[0].type) not in reduction.dtypes:
        return None
    for position, (old, value) in enumerate((combine.operands, reversed(combine.operands))):
        load = without_cast(old).owner
        if not isinstance(load, memref.LoadOp) or load.memref is not store.memref or is_shared(old) or is_shared(load.res):
            continue
        if position == 1 and combine.name in _ORDERED:
            continue
        if [invariants.index_sum(index) for index in load.indices] == places and not _is_accessed_elsewhere(store, load):
            return Accumulation(combine, value, name, axes)
    return None


def without_cast(value: SSAValue) -> SSAValue:
    """Returns the value before its conversion to or from an unsigned type; the value itself if it is not converted."""
    owner = value.owner
    return owner.operands[0] if isinstance(owner, UnrealizedConversionCastOp) else value


def _is_accessed_elsewhere(store: memref.StoreOp, load: memref.LoadOp) -> bool:
    """Whether the body accesses a buffer by more than a store and a load."""
    block, root = store.parent_block(), root_of(store.memref)
    assert block is not None
    return any(isinstance(op, memref.LoadOp | memref.StoreOp) and op is not store and op is not load
               and root_of(op.memref) is root for op in block.ops)


__all__ = ["Accumulation", "accumulation_of", "without_cast"]
