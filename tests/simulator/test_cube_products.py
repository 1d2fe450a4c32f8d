"""Products that are collected in chunks: bits do not depend on tiles along K, layouts, batches, and reads in between."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilelang_npu.ops.products import DEPTH, product
from tilelang_npu.simulator.machine.cube_products import CubeProducts, NoProducts, Product, depth_of


def in_fractals(matrix: np.ndarray, width: int) -> np.ndarray:
    *batch, rows, columns = matrix.shape
    blocks = matrix.reshape(*batch, rows // 16, 16, columns // width, width)
    return np.ascontiguousarray(np.moveaxis(blocks, -2, len(batch)))


def by_rows(fractals: np.ndarray) -> np.ndarray:
    *batch, blocks, outer, inner, width = fractals.shape
    return np.moveaxis(fractals, len(batch), -2).reshape(*batch, outer * inner, blocks * width)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: Any) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32).astype(kind)


@pytest.mark.parametrize("tile", [16, 48, 64, 256, 272])
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize(("a_turned", "b_turned", "flat"), [(False, False, False), (True, True, False), (False, True, True),
                                                            (True, False, True)])
def test_bits_do_not_depend_on_tiles_and_reads(a_turned: bool, b_turned: bool, flat: bool, kind: Any, tile: int,
                                               rng: np.random.Generator) -> None:
    m, n, terms = 48, 32, 816
    a, b = numbers(rng, (m, terms), kind), numbers(rng, (terms, n), kind)
    expected = product(a.astype(np.float32), b.astype(np.float32))
    width = 32 // np.dtype(kind).itemsize
    for read_after in ((), (1,), (0, 2, 3), range(60)):
        products = CubeProducts()
        c = np.full((n // 16, m // 16, 16, 16), np.nan, np.float32) if not flat else np.full((m, n), np.nan, np.float32)
        for number, start in enumerate(range(0, terms, tile)):
            k = min(tile, terms - start)
            left, right = a[:, start:start + k], b[start:start + k]
            left, right = left.T if a_turned else left, right.T if b_turned else right
            if width == 32 or flat:
                given = [np.ascontiguousarray(left), np.ascontiguousarray(right)]
            else:
                given = [in_fractals(left, width), in_fractals(right, width)]
            shape = Product(given[0].shape, given[1].shape, c.shape, a_turned, b_turned, wide=False, exact=False, depth=DEPTH)
            products(shape)(*given, c, number == 0, m, k, n)
            if number in read_after:
                partial = products.settle(c)
                done = product(a[:, :start + k].astype(np.float32), b[:start + k].astype(np.float32))
                np.testing.assert_array_equal(partial if flat else by_rows(partial), done)
        found = products.settle(c)
        np.testing.assert_array_equal(found if flat else by_rows(found), expected)


def test_a_product_that_does_not_clear_adds_to_memory(rng: np.random.Generator) -> None:
    a, b = numbers(rng, (16, 32), np.float16), numbers(rng, (32, 16), np.float16)
    products, c = CubeProducts(), np.full((16, 16), 3, np.float32)
    multiply = products(Product(a.shape, b.shape, c.shape, False, False, wide=False, exact=False, depth=DEPTH))
    multiply(a, b, c, False, 16, 32, 16)
    made = product(a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(products.settle(c), np.float32(3) + made)
    products.forget()  # a new block begins: its accumulator holds what memory holds
    c[...] = 5
    multiply(a, b, c, False, 16, 32, 16)
    np.testing.assert_array_equal(products.settle(c), np.float32(5) + made)
    multiply(a, b, c, True, 16, 32, 16, np.arange(16, dtype=np.float32))
    np.testing.assert_array_equal(products.settle(c), np.arange(16, dtype=np.float32) + made)
    multiply(a, b, c, True, 16, 0, 16)
    assert not products.settle(c).any()


def test_accumulators_that_overlap_see_each_other(rng: np.random.Generator) -> None:
    a, b = numbers(rng, (32, 32), np.float16), numbers(rng, (32, 32), np.float16)
    whole = product(a.astype(np.float32), b.astype(np.float32))
    products, c = CubeProducts(), np.zeros((32, 32), np.float32)
    multiply = products(Product(a.shape, b.shape, c.shape, False, False, wide=False, exact=False, depth=DEPTH))
    multiply(a, b, c, True, 32, 32, 32)
    multiply(a, b, c, True, 16, 32, 32)  # replaces the upper half
    multiply(a, b, c, False, 16, 32, 32)
    multiply(a, b, c, False, 32, 32, 32)  # adds to both halves
    found = products.settle(c)
    np.testing.assert_allclose(found[:16], 3 * whole[:16], rtol=1e-5)
    np.testing.assert_allclose(found[16:], 2 * whole[16:], rtol=1e-5)


def test_two_accumulators_in_turn(rng: np.random.Generator) -> None:
    a, b = numbers(rng, (16, 512), np.float16), [numbers(rng, (512, 16), np.float16) for _ in range(2)]
    products, c = CubeProducts(), [np.zeros((16, 16), np.float32) for _ in range(2)]
    for start in range(0, 512, 64):
        for which in range(2):
            left, right = a[:, start:start + 64], b[which][start:start + 64]
            products(Product((16, 64), (64, 16), (16, 16), False, False, wide=False, exact=False, depth=DEPTH))(
                left, right, c[which], start == 0, 16, 64, 16)
    for which in range(2):
        np.testing.assert_array_equal(products.settle(c[which]), product(a.astype(np.float32), b[which].astype(np.float32)))


@pytest.mark.parametrize(("kinds", "value"), [(("int8", "int8"), -128), (("uint8", "uint8"), 255), (("uint8", "int8"), -128)])
def test_sums_of_integers_are_exact(kinds: tuple[str, str], value: int) -> None:
    """Also the largest ones: of odd products, which f32 cannot represent from 2**24 on."""
    a = np.full((16, 4000), value if kinds[0] == "int8" else 255, kinds[0])
    b = np.full((4000, 16), value, kinds[1])
    a[:, ::3] -= 1 if kinds[0] == "uint8" else -1
    products, c = CubeProducts(), np.zeros((16, 16), np.int32)
    for start in range(0, 4000, 500):
        left, right = a[:, start:start + 500], b[start:start + 500]
        products(Product(left.shape, right.shape, c.shape, False, False, wide=False, exact=True, depth=depth_of(*kinds)))(
            left, right, c, start == 0, 16, 500, 16)
    np.testing.assert_array_equal(products.settle(c), a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.parametrize(("exact", "packed"), [(True, False), (True, True), (False, False)])
def test_other_types(exact: bool, packed: bool, rng: np.random.Generator) -> None:
    if exact:
        a, b = rng.integers(-8, 8, (16, 96), np.int8), rng.integers(-8, 8, (96, 32), np.int8)
        given = [((one[:, ::2] & 15) | (one[:, 1::2] << 4)).astype(np.int8) for one in (a, b)] if packed else [a, b]
    else:
        a, b = rng.integers(-9, 9, (16, 96)).astype(np.float32), rng.integers(-9, 9, (96, 32)).astype(np.float32)
        given = [a, b]
    c = np.zeros((16, 32), np.int32 if exact else np.float32)
    products = CubeProducts()
    multiply = products(Product(a.shape, b.shape, c.shape, False, False, wide=False, exact=exact, packed=packed,
                                depth=depth_of("int8", "int8") if exact else 0))
    for init in (True, False):
        multiply(*given, c, init, 16, 96, 32)
    np.testing.assert_array_equal(products.settle(c), 2 * (a.astype(np.int64) @ b.astype(np.int64)))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("m", [17, 32])
def test_a_batch_has_the_bits_of_its_blocks(m: int, turned: bool, rng: np.random.Generator) -> None:
    rows, columns, terms, n = 3, 2, 320, 32
    a, b = numbers(rng, (rows, 1, 32, terms), np.float16), numbers(rng, (1, columns, terms, n), np.float16)
    products, c = CubeProducts(2), np.full((rows, columns, n // 16, 2, 16, 16), np.nan, np.float32)
    for start in range(0, terms, 80):
        left, right = a[..., start:start + 80], b[..., start:start + 80, :]
        left, right = (left.swapaxes(-1, -2), right.swapaxes(-1, -2)) if turned else (left, right)
        left, right = in_fractals(left, 16), in_fractals(right, 16)
        shape = Product(left.shape[2:], right.shape[2:], c.shape[2:], turned, turned, wide=False, exact=False, depth=DEPTH)
        products(shape)(left, right, c, start == 0, m, 80, n)
    found = by_rows(products.settle(c))
    for row, column in np.ndindex(rows, columns):
        np.testing.assert_array_equal(found[row, column, :m], product(a[row, 0, :m].astype(np.float32),
                                                                      b[0, column].astype(np.float32)))


def test_more_accumulators_than_are_kept(rng: np.random.Generator) -> None:
    a, b = numbers(rng, (16, 16), np.float16), numbers(rng, (16, 16), np.float16)
    products, c = CubeProducts(), np.zeros((100, 16, 16), np.float32)
    multiply = products(Product(a.shape, b.shape, (16, 16), False, False, wide=False, exact=False, depth=DEPTH))
    for each in c:
        multiply(a, b, each, True, 16, 16, 16)
    products.settle(None)
    np.testing.assert_array_equal(c, np.broadcast_to(product(a.astype(np.float32), b.astype(np.float32)), c.shape))


def test_an_accumulator_that_an_observer_changes_is_read_again(rng: np.random.Generator) -> None:
    a, b = numbers(rng, (16, 16), np.float16), numbers(rng, (16, 16), np.float16)
    made = product(a.astype(np.float32), b.astype(np.float32))
    products, c = CubeProducts(), np.zeros((16, 16), np.float32)
    products.watched = True
    multiply = products(Product(a.shape, b.shape, (16, 16), False, False, wide=False, exact=False, depth=DEPTH))
    multiply(a, b, c, True, 16, 16, 16)
    products.settle(c)[...] = 7
    multiply(a, b, c, False, 16, 16, 16)
    np.testing.assert_array_equal(products.settle(c), np.float32(7) + made)


def test_nothing_is_computed_without_values() -> None:
    products = NoProducts()
    assert products(Product((16, 16), (16, 16), (16, 16), False, False, wide=False, exact=False)) is None
    products.forget()
    assert products.settle(4) == 4
    assert DEPTH == 256
