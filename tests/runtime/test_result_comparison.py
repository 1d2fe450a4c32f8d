"""Results of two versions of a kernel: equal, equal within rounding, or different, for each element type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilelang_npu.runtime.checks.result_comparison import Verdict, compared


def verdict(got: Any, wanted: Any) -> Verdict:
    return compared({"Y": np.asarray(got)}, {"Y": np.asarray(wanted)})[0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool"])
def test_integers_are_equal_or_different(dtype: str) -> None:
    one = np.arange(6).reshape(2, 3).astype(dtype)
    other = one.copy()
    assert verdict(one, other) is Verdict.EQUAL
    other[1, 2] = not other[1, 2] if dtype == "bool" else other[1, 2] + 1
    assert compared({"Y": one}, {"Y": other}) == (Verdict.DIFFERENT, "Y differs in 1 elements, first at [1, 2]")


@pytest.mark.parametrize(("dtype", "units"), [(np.float16, 8), (ml_dtypes.bfloat16, 8), (np.float32, 512)])
def test_floats_may_differ_by_units_in_the_last_place(dtype: Any, units: int) -> None:
    wanted = np.ones(64, dtype)
    unit = float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]  # ml_dtypes has no types here
    near, far = wanted.copy(), wanted.copy()
    near[5], far[5] = 1 + 0.5 * units * unit, 1 + 4 * units * unit
    assert verdict(near, wanted) is Verdict.ROUNDED
    assert verdict(far, wanted) is Verdict.DIFFERENT


@pytest.mark.parametrize("shape", [(64,), (1, 64), (64, 1)])
def test_a_small_element_is_compared_with_its_row_or_column(shape: tuple[int, ...]) -> None:
    """Sums that cancel have the rounding of the terms, which the other sums of the row or the column show."""
    wanted = np.full(shape, 64.0, np.float32)
    wanted.reshape(-1)[7] = 1e-4
    got = wanted.copy()
    got.reshape(-1)[7] += 1e-3
    assert verdict(got, wanted) is Verdict.ROUNDED
    assert verdict(got.reshape(-1)[7:8], wanted.reshape(-1)[7:8]) is Verdict.DIFFERENT


def test_numbers_that_are_not_finite_are_equal_or_different() -> None:
    wanted = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert verdict(wanted.copy(), wanted) is Verdict.EQUAL
    assert verdict([np.nan, np.inf, np.inf, 1.0], wanted) is Verdict.DIFFERENT
    assert verdict([0.0, np.inf, -np.inf, 1.0], wanted) is Verdict.DIFFERENT
    assert verdict(np.array(2.0, np.float32), np.array(2.0, np.float32)) is Verdict.EQUAL
