"""The error function of arrays against the one of numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilelang_npu.ops.erf import erf


@pytest.mark.parametrize("values", [
    pytest.param(np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32), id="any bits"),
    pytest.param(np.random.default_rng(1).uniform(-4.5, 4.5, 100_000).astype(np.float32), id="where it bends"),
    pytest.param(np.random.default_rng(2).normal(0, 0.01, 100_000).astype(np.float32), id="near zero"),
    pytest.param(np.float32([0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 4, 3.92, 3.9999998, 1 / 1024, 3 / 1024]), id="bounds"),
])
def test_each_result_is_the_rounded_one(values: np.ndarray) -> None:
    expected = np.array([math.erf(value) for value in values]).astype(np.float32)
    numbers = ~np.isnan(values)
    got = erf(values)
    assert got.dtype == np.float32
    assert np.array_equal(got[numbers].view(np.uint32), expected[numbers].view(np.uint32))
    assert np.isnan(got[~numbers]).all()
