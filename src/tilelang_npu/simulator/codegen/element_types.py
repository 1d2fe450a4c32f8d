"""Element types, and the ranges of integer types."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, MemRefType, Signedness
from xdsl.ir import Attribute

from tilelang_npu.dialects.declaration import dtype_of
from tilelang_npu.errors import TileError
from tilelang_npu.linear import ANY, Interval
from tilelang_npu.target.dtypes import DType


def element_of(kind: Attribute) -> DType:
    """Returns the element type of a memref or scalar type.

    Raises:
        TileError: T501, the op tables have no such element type.
    """
    element = kind.element_type if isinstance(kind, MemRefType) else kind
    try:
        return dtype_of(element)
    except ValueError:
        raise TileError(f"the simulator has no elements of type {element}", code="T501") from None


def bounds(kind: Attribute) -> Interval:
    """Returns the range of an integer type; unbounded for ``index``, which does not overflow in the simulator."""
    if isinstance(kind, IntegerType):
        return Interval.of_bits(kind.width.data, signed=kind.signedness.data is not Signedness.UNSIGNED)
    return ANY
