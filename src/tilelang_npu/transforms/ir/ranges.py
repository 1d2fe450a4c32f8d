"""Bounds of integer values: what is known before run time about offsets, trip counts and conditions.

Interval arithmetic over ``arith`` on integers and indices, seeded by loop bounds, the launch grid and constants. It
answers "does this rectangle surely lie inside the tensor" and "does this loop surely run"; where it cannot tell, its
callers emit the general form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import hivm, tile

Bound = float  # an integer or an infinity


@dataclass(frozen=True)
class Range:
    """All integers from ``low`` to ``high``, both included; an infinity where no bound is known."""

    low: Bound = -math.inf
    high: Bound = math.inf

    @property
    def constant(self) -> int | None:
        """The only value, where there is one."""
        return int(self.low) if self.low == self.high and math.isfinite(self.low) else None


ANY = Range()
BOOLEAN = Range(0, 1)


def _corners(a: Range, b: Range, combine: Callable[[Bound, Bound], Bound]) -> Range:
    values = [combine(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(values), max(values))


def _product(x: Bound, y: Bound) -> Bound:
    return 0 if x == 0 or y == 0 else x * y


def _floor_quotient(x: Bound, y: Bound) -> Bound:
    if math.isinf(x):
        return x if y > 0 else -x
    return 0 if math.isinf(y) else x // y


def _add(a: Range, b: Range) -> Range:
    return Range(a.low + b.low, a.high + b.high)


def _subtract(a: Range, b: Range) -> Range:
    return Range(a.low - b.high, a.high - b.low)


def _multiply(a: Range, b: Range) -> Range:
    return _corners(a, b, _product)


def _floordiv(a: Range, b: Range) -> Range:
    return _corners(a, b, _floor_quotient) if b.low > 0 else ANY


def _truncdiv(a: Range, b: Range) -> Range:
    return _floordiv(a, b) if a.low >= 0 else ANY


def _ceildiv(a: Range, b: Range) -> Range:
    if b.low <= 0:
        return ANY
    return _corners(a, b, lambda x, y: -_floor_quotient(-x, y))


def _remainder(a: Range, b: Range) -> Range:
    if b.low <= 0:
        return ANY
    if a.low >= 0:
        return Range(a.low, a.high) if a.high < b.low else Range(0, min(a.high, b.high - 1))
    return Range(-(b.high - 1), b.high - 1)


def _minimum(a: Range, b: Range) -> Range:
    return Range(min(a.low, b.low), min(a.high, b.high))


def _maximum(a: Range, b: Range) -> Range:
    return Range(max(a.low, b.low), max(a.high, b.high))


_BINARY: dict[str, Callable[[Range, Range], Range]] = {
    arith.AddiOp.name: _add,
    arith.SubiOp.name: _subtract,
    arith.MuliOp.name: _multiply,
    arith.FloorDivSIOp.name: _floordiv,
    arith.DivSIOp.name: _truncdiv,
    arith.DivUIOp.name: _truncdiv,
    arith.CeilDivSIOp.name: _ceildiv,
    arith.CeilDivUIOp.name: _ceildiv,
    arith.RemSIOp.name: _remainder,
    arith.RemUIOp.name: _remainder,
    arith.MinSIOp.name: _minimum,
    arith.MinUIOp.name: _minimum,
    arith.MaxSIOp.name: _maximum,
    arith.MaxUIOp.name: _maximum,
}
_SAME = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp)


class Ranges:
    """Bounds of the integer values of one function, computed on demand and remembered."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Range] = {}

    def of(self, value: SSAValue | int) -> Range:
        """Bounds of a value or of a plain integer."""
        if isinstance(value, int):
            return Range(value, value)
        found = self._known.get(value)
        if found is None:
            self._known[value] = ANY  # a cycle through loop-carried values gives no bound
            found = self._compute(value)
            self._known[value] = found
        return found

    def assume(self, value: SSAValue, range: Range) -> None:  # noqa: A002  (the class's name)
        """Record bounds that the emitter of a value knows."""
        self._known[value] = range

    def constant(self, value: SSAValue | int) -> int | None:
        """The value itself where it is known."""
        return self.of(value).constant

    def _compute(self, value: SSAValue) -> Range:
        owner = value.owner
        if isinstance(owner, Block):
            assert isinstance(value, BlockArgument)
            return self._argument(value, owner)
        if isinstance(owner, arith.ConstantOp):
            return Range(owner.value.value.data, owner.value.value.data) if isinstance(owner.value, IntegerAttr) else ANY
        combine = _BINARY.get(owner.name)
        if combine is not None:
            return combine(self.of(owner.operands[0]), self.of(owner.operands[1]))
        if isinstance(owner, _SAME):
            return self.of(owner.operands[0])
        if isinstance(owner, arith.CmpiOp):
            return BOOLEAN
        if isinstance(owner, arith.SelectOp):
            a, b = self.of(owner.lhs), self.of(owner.rhs)
            return Range(min(a.low, b.low), max(a.high, b.high))
        if isinstance(owner, hivm.GetSubBlockIdxOp):
            return BOOLEAN  # a Cube core has two Vector cores
        return Range(0, math.inf) if isinstance(owner, hivm.GetBlockIdxOp) else ANY

    def _argument(self, value: BlockArgument, block: Block) -> Range:
        parent = block.parent_op()
        if isinstance(parent, scf.ForOp) and value.index == 0:
            step = self.of(parent.step)
            if step.low > 0:
                return Range(self.of(parent.lb).low, self.of(parent.ub).high - 1)
        if isinstance(parent, tile.LaunchOp):
            if value.index < len(parent.grid):
                return Range(0, self.of(parent.grid[value.index]).high - 1)
            return Range(0, parent.sub_blocks.value.data - 1)
        if isinstance(parent, tile.ParallelOp):
            return Range(0, self.of(parent.mixed_extents()[value.index]).high - 1)
        if isinstance(parent, func.FuncOp) and str(value.type) == "index":
            return Range(1, math.inf)  # a symbolic dimension; the runtime refuses empty tensors
        return ANY

    def trip_count(self, loop: scf.ForOp) -> Range:
        """Bounds of the number of iterations."""
        step = self.constant(loop.step)
        low, high = self.of(loop.lb), self.of(loop.ub)
        if step is None or step <= 0:
            return Range(0, math.inf)
        span = _subtract(high, low)
        count = _ceildiv(span, Range(step, step))
        return Range(max(0, count.low), max(0, count.high))


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
