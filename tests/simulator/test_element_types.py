"""Element types of the simulator, and the bounds of integer types."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import Float16Type, IndexType, IntegerType, MemRefType, NoneType, Signedness

from tilelang_npu import TileError
from tilelang_npu.linear import ANY, Interval
from tilelang_npu.ops import dtype
from tilelang_npu.simulator.codegen.strided_views import bounds, element_of


def test_the_type_of_an_array_is_that_of_its_elements() -> None:
    assert element_of(Float16Type()) is element_of(MemRefType(Float16Type(), [4])) is dtype("float16")
    assert element_of(IntegerType(8, Signedness.UNSIGNED)) is dtype("uint8")


def test_a_type_without_elements_is_refused() -> None:
    with pytest.raises(TileError, match="does not support element type none") as error:
        element_of(NoneType())
    assert error.value.code == "T501"


def test_bounds() -> None:
    assert bounds(IntegerType(8)) == Interval(-128, 127)
    assert bounds(IntegerType(8, Signedness.UNSIGNED)) == Interval(0, 255)
    assert bounds(IndexType()) == ANY
