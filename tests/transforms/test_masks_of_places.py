"""Conditions on the loop indices, such as attention masks: the values are NumPy's, for all affine expressions and bounds."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T

SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
ROWS, COLUMNS = 5, 24


def masked(sign: str, row: int, column: int, late: int, constant: int) -> Any:
    """``X`` if ``row * i + constant`` compares by ``sign`` with ``column * j + late * n``, else -1."""
    compare = SIGNS[sign]

    @tilelang.jit(target="npuir", sanitize=True)
    def factory() -> Any:
        @T.prim_func
        def main(X: T.Tensor((ROWS, COLUMNS), "float32"), Y: T.Tensor((ROWS, COLUMNS), "float32"), n: T.int32):
            with T.Kernel(1, is_npu=True) as (_, _vid):
                x = T.alloc_shared((ROWS, COLUMNS), "float32")
                T.copy(X, x)
                for i, j in T.Parallel(ROWS, COLUMNS):
                    x[i, j] = T.if_then_else(compare(row * i + constant, column * j + late * n), x[i, j], -1.0)
                T.copy(x, Y)

        return main

    return factory()


def check(sign: str, row: int, column: int, late: int, constant: int, n: int) -> str:
    kernel = masked(sign, row, column, late, constant)
    x = np.random.default_rng(0).uniform(0, 1, (ROWS, COLUMNS)).astype(np.float32)
    y = np.zeros_like(x)
    kernel(x, y, n)
    i, j = np.mgrid[:ROWS, :COLUMNS]
    np.testing.assert_array_equal(y, np.where(SIGNS[sign](row * i + constant, column * j + late * n), x, np.float32(-1)))
    return str(kernel.mlir())


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(SIGNS)), st.integers(-3, 3), st.integers(-3, 3), st.integers(-2, 2),
       st.integers(-40, 40) | st.sampled_from([2**24 - 1, 2**24 + 1, -(2**24) - 1, 2**30, -(2**30)]),
       st.integers(-40, 40) | st.sampled_from([2**24 + 1, -(2**29)]))
def test_any_sums(sign: str, row: int, column: int, late: int, constant: int, n: int) -> None:
    check(sign, row, column, late, constant, n)


@pytest.mark.parametrize("sign", SIGNS)
def test_equality_near_a_power_of_two_beyond_float32(sign: str) -> None:
    check(sign, 1, 0, 1, 2**24 + 1, 2**24 + 2)


def test_the_vector_unit_orders_floats() -> None:
    text = check("<=", 1, 1, 1, 0, 3)
    assert "hivm.hir.vcmp" in text
    assert text.count("hivm.hir.varange") == 1
    assert "xi32" not in text.split("hivm.hir.vcmp")[1].split("\n")[0]


def test_steps_too_wide_for_float32_stay_integers() -> None:
    assert "xi32" in check(">", 2**23, 1, 1, 0, 3).split("hivm.hir.vcmp")[1].split("\n")[0]


def test_a_sum_of_loop_variables_is_one_arange() -> None:
    @tilelang.jit(target="npuir", sanitize=True)
    def factory() -> Any:
        @T.prim_func
        def main(Y: T.Tensor((ROWS, COLUMNS), "int32"), n: T.int32):
            with T.Kernel(1, is_npu=True) as (_, _vid):
                y = T.alloc_shared((ROWS, COLUMNS), "int32")
                for i, j in T.Parallel(ROWS, COLUMNS):
                    y[i, j] = 7 * i - j + 2 * n + 5
                T.copy(y, Y)

        return main

    kernel = factory()
    y = np.zeros((ROWS, COLUMNS), np.int32)
    kernel(y, 11)
    i, j = np.mgrid[:ROWS, :COLUMNS]
    np.testing.assert_array_equal(y, 7 * i - j + 27)
    text = str(kernel.mlir())
    assert text.count("hivm.hir.varange") == 1 and "hivm.hir.vadd" not in text
