"""The element types in which a ``T.Parallel`` computes values of the type ``index``.

On the scalar unit an index has 64 bits. A tile holds one as int32 where its values surely fit, or where only their low 32 bits
are wanted and the operation gives these from the low bits of its operands, as a sum that is stored to an int32 tile does.
Anywhere else it is int64.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.parallel.nests import I32

I64 = IntegerType(64)
INT32 = Interval.of_bits(32, signed=True)
"""What an int32 holds."""
_BY_LOW_BITS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.SelectOp)
_SUMS = (arith.AddiOp, arith.SubiOp, arith.MuliOp)


class IndexWidths:
    """Chooses between int32 and int64, by the bounds of values."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges

    def holding(self, *values: SSAValue) -> IntegerType:
        """The element type that holds all values of some indices."""
        return I32 if all(self._ranges.of(value).within(INT32) for value in values) else I64

    def computed_in(self, op: Operation, wanted: IntegerType) -> IntegerType:
        """The element type in which an operation gives the low bits of its result that ``wanted`` has."""
        if _keeps_low_bits(op):
            return I32 if wanted == I32 else self.holding(op.results[0])
        return self.holding(*_indices(op.operands), *_indices(op.results))

    def is_exact(self, value: SSAValue) -> bool:
        """Whether an index is the sum that its expression says: no part of it is an integer of a type that it may have left."""
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp):
            return self._fits(owner.input) and self.is_exact(owner.input)
        return not isinstance(owner, _SUMS) or (
            self._fits(value) and all(self.is_exact(operand) for operand in owner.operands))

    def _fits(self, value: SSAValue) -> bool:
        """Whether the result of an operation on integers fits its type before it is wrapped."""
        kind = value.type
        if not isinstance(kind, IntegerType) or not isinstance(value.owner, (arith.IndexCastOp, *_SUMS)):
            return True
        return self._ranges.before_wrapping(value).within(Interval.of_bits(kind.width.data, signed=True))


def _indices(values: Iterable[SSAValue]) -> list[SSAValue]:
    return [value for value in values if isinstance(value.type, IndexType)]


def _keeps_low_bits(op: Operation) -> bool:
    """Whether the low 32 bits of the result depend on the low 32 bits of the operands alone."""
    if isinstance(op, (arith.ShLIOp, arith.RemUIOp)):
        by = constant_value(op.rhs)
        return by is not None and (0 <= by < 32 if isinstance(op, arith.ShLIOp) else 0 < by <= 1 << 31 and by & (by - 1) == 0)
    return isinstance(op, _BY_LOW_BITS)


__all__ = ["I64", "INT32", "IndexWidths"]
