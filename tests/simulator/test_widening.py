"""Every half-precision number as f32, against NumPy's own conversion."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilelang_npu.simulator.machine.datapath import widen


@pytest.mark.parametrize("element", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("finite", [True, False])
def test_every_number_is_what_numpy_makes_of_it(element: Any, finite: bool) -> None:
    numbers = np.arange(65536, dtype=np.uint16).view(element)
    if finite:  # no infinity and nothing that is no number, which take another way
        numbers = numbers[np.isfinite(numbers.astype(np.float32))]
    with np.errstate(invalid="ignore"):
        expected = numbers.astype(np.float32)
    found = np.empty(numbers.shape, np.float32)
    widen(numbers, found)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("count", [1, 1023, 1024, 4096])
def test_rows_with_a_gap_after_each(count: int) -> None:
    numbers = np.random.default_rng(count).standard_normal((3, count)).astype(np.float16)
    room = np.full((3, count + 5), 7, np.float32)
    widen(numbers, room[:, :count])
    np.testing.assert_array_equal(room[:, :count], numbers.astype(np.float32))
    assert (room[:, count:] == 7).all()
