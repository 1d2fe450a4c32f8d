"""Chooses the element types of tiles that hold values of the type ``index``.

On the scalar unit, an index has 64 bits. A tile holds indices as int32 in two cases: all values surely fit into int32; or only
the low 32 bits of a result are needed, and they depend only on the low 32 bits of the operands, as for a sum that is stored to
an int32 tile. In all other cases, the tile holds int64.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Operation, SSAValue

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.tile.vectorise_parallel.detours import I32

I64 = IntegerType(64)
INT32 = Interval.of_bits(32, signed=True)
"""The interval of the integers that int32 can hold."""
_BY_LOW_BITS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.SelectOp)
_SUMS = (arith.AddiOp, arith.SubiOp, arith.MuliOp)


class IndexWidths:
    """Chooses between int32 and int64 for indices, by the bounds of their values.

    Args:
        ranges: bounds of scalars.
    """

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges

    def type_holding(self, *values: SSAValue) -> IntegerType:
        """Returns int32 if all values of the given indices surely fit into int32, otherwise int64."""
        return I32 if all(self._ranges.of(value).within(INT32) for value in values) else I64

    def type_to_compute(self, op: Operation, wanted: IntegerType) -> IntegerType:
        """Returns the type in which an operation must be computed so that the result is right in the bits of ``wanted``."""
        if _keeps_low_bits(op):
            return I32 if wanted == I32 else self.type_holding(op.results[0])
        return self.type_holding(*_index_values(op.operands), *_index_values(op.results))

    def is_exact(self, value: SSAValue) -> bool:
        """Whether no part of an index expression overflows, so that the index has the expression's mathematical value."""
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp):
            return self._fits_type(owner.input) and self.is_exact(owner.input)
        return not isinstance(owner, _SUMS) or (
            self._fits_type(value) and all(self.is_exact(operand) for operand in owner.operands))

    def _fits_type(self, value: SSAValue) -> bool:
        """Whether the result of an integer operation fits its type, so that it does not wrap."""
        kind = value.type
        if not isinstance(kind, IntegerType) or not isinstance(value.owner, (arith.IndexCastOp, *_SUMS)):
            return True
        return self._ranges.before_wrapping(value).within(Interval.of_bits(kind.width.data, signed=True))


def _index_values(values: Iterable[SSAValue]) -> list[SSAValue]:
    return [value for value in values if isinstance(value.type, IndexType)]


def _keeps_low_bits(op: Operation) -> bool:
    """Whether the low 32 bits of the result depend on the low 32 bits of the operands alone."""
    if isinstance(op, (arith.ShLIOp, arith.RemUIOp)):
        by = constant_value(op.rhs)
        return by is not None and (0 <= by < 32 if isinstance(op, arith.ShLIOp) else 0 < by <= 1 << 31 and by & (by - 1) == 0)
    return isinstance(op, _BY_LOW_BITS)


__all__ = ["I64", "INT32", "IndexWidths"]
