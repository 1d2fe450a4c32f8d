"""A number that an element type cannot represent is an error in every operation; other numbers are converted as in NumPy."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.frontend import trace
from tilelang_npu.ops import DType
from tilelang_npu.traced import numbers

# operations of a number and elements of x, of type {dtype}
MEETINGS = [
    "T.fill(x, {number})", "T.tile.fill(x, {number})", "T.tile.add(x, x, {number})", "T.tile.max(x, x, {number})",
    "x[0] = {number}", "x[0] += {number}", "G[3] = {number}", "v = T.alloc_var('{dtype}', init={number})",
    "y = T.cast({number}, '{dtype}')", "y = T.{dtype}({number})",
    "T.tile.select(x, m, x, {number}, 'VSEL_TENSOR_SCALAR_MODE')", "T.copy(G[0], x, pad_value={number})",
    "for i in T.Parallel(64):\n            x[i] = {number}",
    "for i in T.Parallel(64):\n            x[i] = T.if_then_else(i > 3, x[i], {dtype}({number}))",
]
OUT_OF_RANGE = [("float16", "1e9"), ("float16", "-70000"), ("int16", "40000"), ("int32", "-2**31 - 1"), ("int16", "1.5"),
                ("int32", "float('inf')"), ("float32", "1e39"), ("bfloat16", "-4e38")]
KERNEL = """\
import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.language import float16, float32, bfloat16, int16, int32

@T.prim_func
def main(G: T.Tensor((64,), "{dtype}")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x = T.alloc_ub((64,), "{dtype}")
        m = T.alloc_ub((64,), "uint8")
        {statement}
"""


def _fills_tile(statement: str) -> bool:
    return statement.startswith("T.tile.fill")


def _written(statement: str, dtype: str, number: str) -> str:
    return KERNEL.replace("{statement}", statement).replace("{dtype}", dtype).replace("{number}", number)


@pytest.mark.parametrize("statement", MEETINGS)
@pytest.mark.parametrize(("dtype", "number"), OUT_OF_RANGE)
def test_a_constant_out_of_range_is_no_other_constant(source: Any, statement: str, dtype: str, number: str) -> None:
    by_cast = dtype.startswith("int") and number == "1.5" and ("y = " in statement or "if_then_else" in statement)
    widened = statement.startswith("x[0] +=") and dtype.startswith("int")
    if by_cast or widened or (dtype == "bfloat16" and "tile.add" in statement) or (_fills_tile(statement) and "float" in dtype):
        # a cast drops the fraction; integers and larger numbers have a larger common type; vadd has no bfloat16;
        # T.tile.fill writes infinity (the next test)
        return
    kernel = source(_written(statement, dtype, number)).main
    with pytest.raises(TileError, match="does not have") as caught:
        trace(kernel)
    assert caught.value.code == "T110"
    assert caught.value.location is not None
    assert caught.value.location.line >= 9


@pytest.mark.parametrize(("dtype", "number"), [pair for pair in OUT_OF_RANGE if "float" in pair[0]])
def test_tile_fill_writes_infinity_for_a_number_beyond_the_type_and_warns(source: Any, dtype: str, number: str) -> None:
    traced = trace(source(_written("T.tile.fill(x, {number})", dtype, number)).main)
    traced.module.verify()
    (remark,) = traced.remarks
    assert remark.code == "T117"
    assert remark.message.endswith(f"the elements become {'-' if number.startswith('-') else ''}inf")


@pytest.mark.parametrize("statement", [one for one in MEETINGS if "select" not in one])
@pytest.mark.parametrize(("dtype", "number"), [("float16", "65504"), ("float16", "float('-inf')"), ("float16", "float('nan')"),
                                               ("int16", "-2**15"), ("int32", "2**31 - 1"), ("int32", "3.0")])
def test_the_ends_of_a_type_are_values_of_it(source: Any, statement: str, dtype: str, number: str) -> None:
    traced = trace(source(_written(statement, dtype, number)).main)
    traced.module.verify()
    assert traced.remarks == ()


@pytest.mark.parametrize("comparison", ["x[0] > 1e9", "1e9 == x[0]", "x[0] * 1e9 > 0.0"])
def test_a_number_compared_with_an_element_has_its_type(source: Any, comparison: str) -> None:
    kernel = source(_written(f"if {comparison}:\n            x[0] = 1", "float16", "")).main
    with pytest.raises(TileError, match=r"1000000000\.0, which float16 does not have: its largest number is 65504"):
        trace(kernel)


def test_a_number_that_a_type_rounds_to_zero_is_reported(source: Any) -> None:
    (remark,) = trace(source(_written("x[0] = x[1] + 1e-9", "float16", "")).main).remarks
    assert remark.code == "T110"
    assert "1e-09, which float16 rounds to 0" in remark.message


def test_a_cast_outside_of_a_kernel_refuses_too() -> None:
    for cast in (lambda: T.float16(1e9), lambda: T.cast(-1, "uint8"), lambda: T.int8(300), lambda: T.int32(float("nan"))):
        with pytest.raises(TileError, match="does not have"):
            cast()
    assert T.int8(-128.9) == -128
    assert T.bool(7) is True


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2", "int8", "uint8", "int16",
                                   "uint16", "int32", "uint32", "int64", "bool"])
def test_the_range_of_a_type_is_numpys(dtype: str) -> None:
    kind = DType(dtype)
    if kind.is_float:
        info: Any = ml_dtypes.finfo
        largest = float(info(kind.numpy).max)
        inside = [largest, -largest, 0.0, float("nan")]
        outside = [largest * 2, -largest * 2] if dtype != "float32" else [1e39, -1e300]
        (outside if dtype == "float8_e4m3fn" else inside).append(math.inf)
    else:
        low, high = (0, 1) if kind.is_bool else (int(np.iinfo(kind.numpy).min), int(np.iinfo(kind.numpy).max))
        inside, outside = [low, high, 1, 1.0], [low - 1, high + 1, 0.5, math.inf, math.nan]
    for number in inside:
        assert numbers.refusal(number, kind, "it") is None, number
    for number in outside:
        report = numbers.refusal(number, kind, "it")
        assert report is not None, number
        assert report.help


def test_a_choice_between_zeros_of_both_signs_is_a_choice() -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((8, 64), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(8, 64):
                x[i, j] = T.if_then_else(x[i, j] > 50.0, 0.0, -0.0)
            T.copy(x, Y)

    x = np.linspace(0, 100, 512, dtype=np.float32).reshape(8, 64)
    y = np.zeros_like(x)
    tilelang.compile(main, target="npuir")(x, y)
    np.testing.assert_array_equal(np.signbit(y), x <= 50)
