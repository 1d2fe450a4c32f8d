"""Range analysis: bounds of integer values that are known at compile time.

The analysis propagates intervals (``tilelang_npu.linear``) from loop bounds, the launch grid and constants through the integer
operations of ``arith``. Passes use the bounds to decide whether a region is surely inside of its tensor, and whether a loop
surely has an iteration. Where the bounds do not decide, a pass emits code for the general case.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, Signedness
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.linear import ANY, NATURAL, TRUTH, Interval


def _on_unsigned(combine: Callable[[Interval, Interval], Interval]) -> Callable[[Interval, Interval], Interval]:
    """Adapts a function on intervals to an op that reads its operands as unsigned integers.

    In the returned function, an operand that may be negative counts as any nonnegative number.
    """
    def combined(a: Interval, b: Interval) -> Interval:
        if a.low >= 0 and b.low >= 0:
            return combine(a, b)
        made = combine(a if a.low >= 0 else NATURAL, b if b.low >= 0 else NATURAL)
        return made if made.closed else ANY

    return combined


_BINARY: dict[str, Callable[[Interval, Interval], Interval]] = {
    arith.AddiOp.name: operator.add,
    arith.SubiOp.name: operator.sub,
    arith.MuliOp.name: operator.mul,
    arith.FloorDivSIOp.name: operator.floordiv,
    arith.DivSIOp.name: Interval.truncdiv,
    arith.DivUIOp.name: _on_unsigned(Interval.truncdiv),
    arith.CeilDivSIOp.name: Interval.ceildiv,
    arith.CeilDivUIOp.name: _on_unsigned(Interval.ceildiv),
    arith.RemSIOp.name: Interval.remainder,
    arith.RemUIOp.name: _on_unsigned(Interval.remainder),
    arith.MinSIOp.name: Interval.least,
    arith.MinUIOp.name: _on_unsigned(Interval.least),
    arith.MaxSIOp.name: Interval.greatest,
    arith.MaxUIOp.name: _on_unsigned(Interval.greatest),
}
_VALUE_PRESERVING_CASTS = (arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp)


class Ranges:
    """Bounds of the integer values of one function, computed on demand and cached."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Interval] = {}

    def of(self, value: SSAValue | int) -> Interval:
        """Returns the bounds of a value or of a plain integer."""
        if isinstance(value, int):
            return Interval.at(value)
        found = self._known.get(value)
        if found is None:
            self._known[value] = ANY  # in a cycle of loop-carried values the value itself has no bound
            found = self._known[value] = _bounds_after_wrapping(value.type, self.before_wrapping(value))
        return found

    def assume(self, value: SSAValue, bounds: Interval) -> None:
        """Records bounds of a value in place of those that the analysis would compute."""
        self._known[value] = bounds

    def constant(self, value: SSAValue | int) -> int | None:
        """Returns the integer that a value is at every execution; None where this is not known."""
        return self.of(value).constant

    def before_wrapping(self, value: SSAValue) -> Interval:
        """Returns the bounds of the exact result of the operation that defines a value, as if integers had no limited width.

        In contrast, ``of`` returns the bounds after the result wraps to the width of the value's type.
        """
        owner = value.owner
        if isinstance(owner, Block):
            assert isinstance(value, BlockArgument)
            return self._bounds_of_argument(value, owner)
        if isinstance(owner, arith.ConstantOp):
            return Interval.at(owner.value.value.data) if isinstance(owner.value, IntegerAttr) else ANY
        combine = _BINARY.get(owner.name)
        if combine is not None:
            return combine(self.of(owner.operands[0]), self.of(owner.operands[1]))
        if isinstance(owner, _VALUE_PRESERVING_CASTS):
            return self.of(owner.operands[0])
        if isinstance(owner, arith.ExtUIOp):
            known, kind = self.of(owner.input), owner.input.type
            assert isinstance(kind, IntegerType)
            return known if known.low >= 0 else Interval.of_bits(kind.width.data, signed=False)
        if isinstance(owner, arith.SelectOp):
            return self.of(owner.lhs).join(self.of(owner.rhs))
        if isinstance(owner, arith.CmpiOp):
            return TRUTH
        if isinstance(owner, hivm.GetSubBlockIdxOp):
            return Interval(0, hivm.sub_blocks_of(owner) - 1)
        return NATURAL if isinstance(owner, hivm.GetBlockIdxOp) else ANY

    def _bounds_of_argument(self, value: BlockArgument, block: Block) -> Interval:
        parent = block.parent_op()
        if isinstance(parent, scf.ForOp) and value.index == 0:
            step = self.of(parent.step)
            if step.low > 0:
                return Interval(self.of(parent.lb).low, self.of(parent.ub).high - 1)
        if isinstance(parent, tile.LaunchOp):
            if value.index < len(parent.grid):
                return Interval(0, self.of(parent.grid[value.index]).high - 1)
            return Interval(0, parent.sub_blocks.value.data - 1)
        if isinstance(parent, tile.ParallelOp):
            return Interval(0, self.of(parent.mixed_extents()[value.index]).high - 1)
        if isinstance(parent, func.FuncOp) and str(value.type) == "index":
            return Interval(1)  # a symbolic dimension; the runtime refuses empty tensors
        return ANY

    def trip_count(self, loop: scf.ForOp) -> Interval:
        """Returns the bounds of a loop's number of iterations.

        If the step is not a positive constant, the lower bound is 0 and there is no upper bound.
        """
        step = self.constant(loop.step)
        low, high = self.of(loop.lb), self.of(loop.ub)
        if step is None or step <= 0:
            return NATURAL
        return (high - low).ceildiv(Interval.at(step)).greatest(Interval.at(0))


def is_surely_inside(value: SSAValue, ranges: Ranges, *, clipped: bool = False) -> bool:
    """Whether an access to a value surely is inside of its buffer, of which the value may be a part (``tile.region``).

    Args:
        value: the buffer, the tensor, or a region of one.
        ranges: bounds of values.
        clipped: whether elements past the end of the buffer are left out of the access, as in a copy from or to a tensor; then
            only the region's start must be inside.
    """
    while isinstance(value.owner, tile.RegionOp):
        region = value.owner
        for start, size, bound in zip(region.mixed_offsets(), region.mixed_sizes(), tile.shape_of(region.source), strict=True):
            at, extent = ranges.of(start), ranges.of(size)
            if at.low < 0 or not (clipped or at.high + extent.high <= bound):  # an unknown bound is negative
                return False
        value = region.source
    return True


def _bounds_after_wrapping(kind: Attribute, bounds: Interval) -> Interval:
    """Returns the bounds of an integer after it wraps to the width of a type.

    Args:
        kind: the type.
        bounds: the bounds before wrapping. A bound that is unknown before wrapping is unknown after wrapping too.
    """
    if not isinstance(kind, IntegerType) or kind.width.data == 1:
        return bounds
    held = Interval.of_bits(kind.width.data, signed=kind.signedness.data is not Signedness.UNSIGNED)
    if bounds.constant is not None:
        return Interval.at(held.wrapped(bounds.constant))
    return bounds.fitted(held) if bounds.closed else bounds.meet(held)


def is_read(value: SSAValue) -> bool:
    """Whether a scalar is loaded from memory, or is computed from a scalar that is loaded from memory."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        if isinstance(current.owner, memref.LoadOp):
            return True
        if current not in seen and isinstance(current.owner, Operation) and not current.owner.regions:
            pending += current.owner.operands
        seen.add(current)
    return False
