"""Products of half-precision matrices, whose order of additions does not depend on sizes, layouts and tiles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilelang_npu.ops import products
from tilelang_npu.ops.products import DEPTH, blas_order, is_chunked, multiply_chunk, product


def in_order(a: np.ndarray, b: np.ndarray, depth: int = DEPTH, step: int = DEPTH) -> np.ndarray:
    """The product term by term; the sum of ``step`` terms is added to that of a chunk, and the sum of a chunk to the total."""
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for start in range(0, a.shape[1], depth):
        chunk = np.zeros_like(total)
        for first in range(start, min(start + depth, a.shape[1]), step):
            part = np.zeros_like(total)
            for term in range(first, min(first + step, start + depth, a.shape[1])):
                part += a[:, term, None] * b[term]
            chunk += part
        total += chunk
    return total


def half(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16).astype(np.float32)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (5, 16, 7), (33, 50, 130), (16, 300, 16), (700, 40, 600),
                                       (0, 4, 4), (4, 0, 4)])
def test_it_is_the_product(m: int, k: int, n: int, rng: np.random.Generator) -> None:
    a, b = half(rng, m, k), half(rng, k, n)
    np.testing.assert_allclose(product(a, b), a.astype(np.float64) @ b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("k", [1, 16, 17, 255, 256, 257, 700])
@pytest.mark.parametrize(("m", "n"), list(itertools.product((1, 2, 3, 4, 16, 33, 96), (1, 2, 7, 16, 33, 130))))
def test_bits_do_not_depend_on_sizes_and_layouts(m: int, n: int, k: int, rng: np.random.Generator) -> None:
    a, b = half(rng, m, k), half(rng, k, n)
    expected = in_order(a, b, step=blas_order().step)
    for left, right in itertools.product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
        np.testing.assert_array_equal(product(left, right), expected)


def test_a_chunk_differs_from_the_exact_sum_by_the_rounding_of_its_additions(rng: np.random.Generator) -> None:
    a, b = half(rng, 64, 8 * DEPTH), half(rng, 8 * DEPTH, 64)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # at most DEPTH roundings in a chunk and one for each chunk, each relative to the sum of the magnitudes
    bound = (DEPTH + 8) * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    assert (np.abs(product(a, b) - exact) <= bound).all()
    sixteen = in_order(a, b, depth=16)
    assert (np.abs(product(a, b) - sixteen) <= 2 * bound).all()


class _EvenAndOdd:
    """BLAS that adds even and odd terms separately, and then both."""

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


def test_a_blas_that_adds_even_and_odd_terms_separately_gets_zeros_between_terms(
        monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    blas = _EvenAndOdd()
    monkeypatch.setattr(np, "matmul", blas.matmul)
    order = blas_order.__wrapped__()
    assert order == (16, 2)
    monkeypatch.setattr(products, "blas_order", lambda: order)
    a, b = half(rng, 5, 300), half(rng, 300, 9)
    np.testing.assert_array_equal(product(a, b), in_order(a, b, step=16))
    assert blas.called > 4
    monkeypatch.setattr(products, "blas_order", lambda: products._Order(16, 1))
    assert (product(a, b) != in_order(a, b, step=16)).any()


def test_which_products_are_added_up_in_chunks() -> None:
    chunked = [name for name in ("float16", "bfloat16", "float8_e5m2", "float8_e4m3fn", "float32", "int8") if is_chunked(name)]
    assert chunked == ["float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"]


def test_a_chunk_replaces_the_result(rng: np.random.Generator) -> None:
    a, b = half(rng, 8, 80), half(rng, 80, 8)
    out = np.full((8, 8), np.nan, np.float32)
    multiply_chunk(a, b, out)
    np.testing.assert_array_equal(out, product(a, b))


@pytest.mark.parametrize("stack", [1, 3, 300])
def test_a_stack_is_its_products(stack: int, rng: np.random.Generator) -> None:
    a, b = half(rng, stack, 12, 300), half(rng, stack, 300, 36)
    np.testing.assert_array_equal(product(a, b), np.stack([product(x, y) for x, y in zip(a, b, strict=True)]))
