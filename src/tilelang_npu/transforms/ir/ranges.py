"""Bounds of integer values: what is known before run time about offsets, trip counts and conditions.

The intervals of ``linear`` over ``arith`` on integers and indices, seeded by loop bounds, the launch grid and constants. It
answers "does this rectangle surely lie inside the tensor" and "does this loop surely run"; where it cannot tell, its
callers emit the general form.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, Signedness
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.linear import ANY, NATURAL, TRUTH, Interval


def _unsigned(combine: Callable[[Interval, Interval], Interval]) -> Callable[[Interval, Interval], Interval]:
    """Of an op that reads its operands as unsigned: one that may be below zero is then of any size."""
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
    arith.DivUIOp.name: _unsigned(Interval.truncdiv),
    arith.CeilDivSIOp.name: Interval.ceildiv,
    arith.CeilDivUIOp.name: _unsigned(Interval.ceildiv),
    arith.RemSIOp.name: Interval.remainder,
    arith.RemUIOp.name: _unsigned(Interval.remainder),
    arith.MinSIOp.name: Interval.least,
    arith.MinUIOp.name: _unsigned(Interval.least),
    arith.MaxSIOp.name: Interval.greatest,
    arith.MaxUIOp.name: _unsigned(Interval.greatest),
}
_SAME = (arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp)


class Ranges:
    """Bounds of the integer values of one function, computed on demand and remembered."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Interval] = {}

    def of(self, value: SSAValue | int) -> Interval:
        """Bounds of a value or of a plain integer."""
        if isinstance(value, int):
            return Interval.at(value)
        found = self._known.get(value)
        if found is None:
            self._known[value] = ANY  # a cycle through loop-carried values gives no bound
            found = self._known[value] = _held(value.type, self.before_wrapping(value))
        return found

    def assume(self, value: SSAValue, bounds: Interval) -> None:
        """Record bounds that the emitter of a value knows."""
        self._known[value] = bounds

    def constant(self, value: SSAValue | int) -> int | None:
        """The value itself where it is known."""
        return self.of(value).constant

    def before_wrapping(self, value: SSAValue) -> Interval:
        """Bounds of a value before it is wrapped to its type: of a sum, those of the exact sum."""
        owner = value.owner
        if isinstance(owner, Block):
            assert isinstance(value, BlockArgument)
            return self._argument(value, owner)
        if isinstance(owner, arith.ConstantOp):
            return Interval.at(owner.value.value.data) if isinstance(owner.value, IntegerAttr) else ANY
        combine = _BINARY.get(owner.name)
        if combine is not None:
            return combine(self.of(owner.operands[0]), self.of(owner.operands[1]))
        if isinstance(owner, _SAME):
            return self.of(owner.operands[0])
        if isinstance(owner, arith.ExtUIOp):
            known, kind = self.of(owner.input), owner.input.type
            assert isinstance(kind, IntegerType)
            return known if known.low >= 0 else Interval.of_bits(kind.width.data, signed=False)
        if isinstance(owner, arith.SelectOp):
            return self.of(owner.lhs).join(self.of(owner.rhs))
        if isinstance(owner, (arith.CmpiOp, hivm.GetSubBlockIdxOp)):  # a Cube core has two Vector cores
            return TRUTH
        return NATURAL if isinstance(owner, hivm.GetBlockIdxOp) else ANY

    def _argument(self, value: BlockArgument, block: Block) -> Interval:
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
        """Bounds of the number of iterations."""
        step = self.constant(loop.step)
        low, high = self.of(loop.lb), self.of(loop.ub)
        if step is None or step <= 0:
            return NATURAL
        return (high - low).ceildiv(Interval.at(step)).greatest(Interval.at(0))


def _held(kind: Attribute, bounds: Interval) -> Interval:
    """Bounds of a value of a type, given those before it is wrapped. An open end is one of which nothing is known."""
    if not isinstance(kind, IntegerType) or kind.width.data == 1:
        return bounds
    held = Interval.of_bits(kind.width.data, signed=kind.signedness.data is not Signedness.UNSIGNED)
    if bounds.constant is not None:
        return Interval.at(held.wrapped(bounds.constant))
    return bounds.fitted(held) if bounds.closed else bounds.meet(held)


def is_read(value: SSAValue) -> bool:
    """Whether a scalar is computed from one that was read from memory."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        if isinstance(current.owner, memref.LoadOp):
            return True
        if current not in seen and isinstance(current.owner, Operation) and not current.owner.regions:
            pending += current.owner.operands
        seen.add(current)
    return False
