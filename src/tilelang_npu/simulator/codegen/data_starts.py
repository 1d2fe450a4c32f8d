"""Finds the part of a slice's start that the kernel has read from memory.

A slice of a global tensor may extend past the tensor's end: the lowering clips it. A loop variable, block index or argument may
take it past the end entirely, as in the last round of a loop over tiles. A number that was read and that points outside the
tensor is a mistake in the data. In ``offsets[g] + tile * 64`` the checked part is therefore ``offsets[g]``. A number that is
subtracted is no place by itself: in ``block * 64 - padded[g] + offsets[g]`` only the whole start is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.simulator.codegen.handlers import has_effect

_STORAGE = (memref.AllocaOp, memref.AllocOp)
READ = "read"
COUNTED = "counted"
"""What a number depends on: ``READ`` a number from memory, ``COUNTED`` a loop, the block, the core or an argument."""


@dataclass(frozen=True)
class DataStart:
    """The part of a start that the kernel has read.

    Attributes:
        terms: values with their factors, which are added up.
        constant: the constant that is added.
        whole: whether this is the whole start: no loop variable, block index or argument is added.
    """

    terms: tuple[tuple[SSAValue, int], ...]
    constant: int
    whole: bool


def data_start(offset: SSAValue) -> DataStart | None:
    """Returns the part of a start that the kernel has read; None if there is no such part, or it is no place by itself."""
    sources = _StartSources()
    start = affine(offset)
    read = tuple((term, factor) for term, factor in start.terms.items() if sources.of(term) == {READ})
    whole = len(read) == len(start.terms)
    if not read or (not whole and any(factor < 0 for _, factor in read)):
        return None
    return DataStart(read, start.constant, whole)


def unclamped_start(offset: SSAValue, sizes: Iterable[SSAValue]) -> SSAValue | None:
    """Returns the start ``x`` where a view starts at ``min(x, extent - 1)`` because it has no elements if ``x`` is outside.

    Such a view is what the lowering makes of an index on an axis that the view drops. Returns None for any other view, in
    particular where the author has written the minimum.

    Args:
        offset: the offset of the view along the dropped axis.
        sizes: the sizes of the view that are no constants.
    """
    minimum = offset.owner
    if not isinstance(minimum, arith.MinSIOp):
        return None
    start = minimum.lhs
    conditions = [size.owner.cond for size in sizes if isinstance(size.owner, arith.SelectOp)]
    return start if any(start in _subtracted(condition) for condition in conditions) else None


def _subtracted(condition: SSAValue) -> Iterator[SSAValue]:
    """Yields each ``x`` of the comparisons ``extent - x < 1`` in a condition."""
    op = condition.owner
    if isinstance(op, arith.CmpiOp) and isinstance(op.lhs.owner, arith.SubiOp):
        yield op.lhs.owner.rhs
    elif isinstance(op, arith.OrIOp):
        yield from _subtracted(op.lhs)
        yield from _subtracted(op.rhs)


class _StartSources:
    """What numbers depend on. Each value is visited once."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, set[str]] = {}

    def of(self, value: SSAValue) -> set[str]:
        """Returns what a number depends on; empty for a constant."""
        found = self._known.get(value)
        if found is None:
            self._known[value] = {COUNTED}  # met again while it is computed: a variable that depends on itself counts something
            found = self._known[value] = self._compute(value)
        return found

    def _compute(self, value: SSAValue) -> set[str]:
        op = value.owner
        if isinstance(value, BlockArgument) or not isinstance(op, Operation):
            return {COUNTED}
        if isinstance(op, memref.LoadOp):
            if not isinstance(op.memref.owner, _STORAGE):
                return {READ}
            stores = [use.operation for use in op.memref.uses if isinstance(use.operation, memref.StoreOp)]
            return self._union(store.value for store in stores) or {COUNTED}
        if isinstance(op, scf.IfOp):
            place = op.results.index(value)
            ends = [region.block.last_op for region in op.regions if region.blocks]
            return self._union(end.operands[place] for end in ends if end is not None)
        if op.regions or has_effect(op) or op.dialect_name() == "hivm":
            return {COUNTED}
        return self._union(operand for operand in op.operands if isinstance(operand.type, (IntegerType, IndexType)))

    def _union(self, values: Iterable[SSAValue]) -> set[str]:
        return {source for value in values for source in self.of(value)}
