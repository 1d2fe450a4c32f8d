"""Products of half-precision matrices in the Cube's order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilelang_npu.ops import products
from tilelang_npu.ops.products import STEP, add_product, apart, product, spread, terms


def in_order(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product term by term, sixteen of them added up by themselves."""
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for start in range(0, a.shape[1], STEP):
        part = np.zeros_like(total)
        for term in range(start, min(start + STEP, a.shape[1])):
            part += a[:, term, None] * b[term]
        total += part
    return total


def half(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16).astype(np.float32)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (5, 16, 7), (33, 50, 130), (16, 64, 16), (700, 40, 600)])
def test_it_is_the_product(m: int, k: int, n: int, rng: np.random.Generator) -> None:
    a, b = half(rng, m, k), half(rng, k, n)
    np.testing.assert_allclose(product(a, b), a.astype(np.float64) @ b, rtol=1e-5, atol=1e-4)


def test_sixteen_terms_enter_the_accumulator_at_a_time(rng: np.random.Generator) -> None:
    a, b = half(rng, 8, 4 * STEP), half(rng, 4 * STEP, 8)
    np.testing.assert_array_equal(product(a, b), in_order(a, b))


@pytest.mark.parametrize(("m", "n"), list(itertools.product((2, 3, 4, 16, 33, 96, 130), repeat=2)))
def test_bits_hang_on_no_size(m: int, n: int, rng: np.random.Generator) -> None:
    a, b = half(rng, m, 3 * STEP), half(rng, 3 * STEP, n)
    expected = in_order(a, b)
    np.testing.assert_array_equal(product(a, b), expected)
    np.testing.assert_array_equal(product(np.asfortranarray(a), np.asfortranarray(b)), expected)


class _Apart:
    """BLAS that adds even and odd terms up apart, and then both."""

    def __init__(self) -> None:
        self.called = 0

    def matmul(self, a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        self.called += 1
        found = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), np.float32)
        for first in range(2):
            part = np.zeros_like(found)
            for term in range(first, a.shape[-1], 2):
                part += a[..., :, term, None] * b[..., term, None, :]
            found += part
        if out is None:
            return found
        out[...] = found
        return out


def test_where_blas_adds_even_and_odd_terms_apart_zeros_lie_between(
        monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    blas = _Apart()
    monkeypatch.setattr(np, "matmul", blas.matmul)
    monkeypatch.setattr(products, "apart", apart.__wrapped__)
    a, b = half(rng, 5, 40), half(rng, 40, 9)
    assert apart.__wrapped__() == 2
    np.testing.assert_array_equal(product(a, b), in_order(a, b))
    assert blas.called > 4
    monkeypatch.setattr(products, "apart", lambda: 1)
    assert (product(a, b) != in_order(a, b)).any()


def test_zeros_lie_between() -> None:
    values = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    assert spread(values, -1, 2).tolist() == [[1, 0, 2, 0, 3, 0], [4, 0, 5, 0, 6, 0]]
    assert spread(values, -2, 2).tolist() == [[1, 2, 3], [0, 0, 0], [4, 5, 6], [0, 0, 0]]
    assert spread(values, -1, 1) is values


def test_narrower_elements_enter_more_at_a_time(rng: np.random.Generator) -> None:
    assert [terms(name) for name in ("float16", "bfloat16", "float8_e5m2", "float32", "int8")] == [16, 16, 32, None, None]
    a, b = half(rng, 8, 80), half(rng, 80, 8)
    total, scratch = np.full((8, 8), 3, np.float32), np.empty((8, 8), np.float32)
    lie = apart()
    expected = total.copy()
    for start in range(0, 80, 32):
        expected += spread(a[:, start:start + 32], -1, lie) @ spread(b[start:start + 32], -2, lie)
    add_product(total, spread(a, -1, lie), spread(b, -2, lie), scratch, fresh=False, step=32 * lie)
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("stack", [1, 3, 300])
def test_a_stack_is_its_products(stack: int, rng: np.random.Generator) -> None:
    a, b = half(rng, stack, 12, 40), half(rng, stack, 40, 36)
    np.testing.assert_array_equal(product(a, b), np.stack([product(x, y) for x, y in zip(a, b, strict=True)]))
