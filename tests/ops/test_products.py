"""Products of half-precision matrices in the Cube's order."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_npu.ops.products import STEP, add_product, product, terms


def half(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16).astype(np.float32)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (5, 16, 7), (33, 50, 130), (16, 64, 16), (700, 40, 600)])
def test_it_is_the_product(m: int, k: int, n: int, rng: np.random.Generator) -> None:
    a, b = half(rng, m, k), half(rng, k, n)
    np.testing.assert_allclose(product(a, b), a.astype(np.float64) @ b, rtol=1e-5, atol=1e-4)


def test_sixteen_terms_enter_the_accumulator_at_a_time(rng: np.random.Generator) -> None:
    a, b = half(rng, 8, 4 * STEP), half(rng, 4 * STEP, 8)
    total = np.zeros((8, 8), np.float32)
    for start in range(0, 4 * STEP, STEP):
        total += a[:, start:start + STEP] @ b[start:start + STEP]
    np.testing.assert_array_equal(product(a, b), total)


def test_narrower_elements_enter_more_at_a_time(rng: np.random.Generator) -> None:
    assert [terms(name) for name in ("float16", "bfloat16", "float8_e5m2", "float32", "int8")] == [16, 16, 32, None, None]
    a, b = half(rng, 8, 80), half(rng, 80, 8)
    total, scratch = np.full((8, 8), 3, np.float32), np.empty((8, 8), np.float32)
    expected = total.copy()
    for start in range(0, 80, 32):
        expected += a[:, start:start + 32] @ b[start:start + 32]
    add_product(total, a, b, scratch, fresh=False, step=32)
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("stack", [1, 3, 300])
def test_a_stack_is_its_products(stack: int, rng: np.random.Generator) -> None:
    a, b = half(rng, stack, 12, 40), half(rng, stack, 40, 36)
    np.testing.assert_array_equal(product(a, b), np.stack([product(x, y) for x, y in zip(a, b, strict=True)]))
