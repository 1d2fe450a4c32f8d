"""Operations that are given by repeats and strides: values against NumPy, and what they reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import ops
from tilelang_npu.errors import TileError

SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
KERNEL = """
    import tilelang_npu.language as T

    @T.prim_func
    def main({parameters}):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            {statements}
"""
KINDS = [np.float16, np.float32]


@pytest.fixture
def run(source: Any) -> Callable[..., None]:
    """``run("T.tile.brcb(d, a, 2, 1, 8)", a=array, d=array)``: load all arrays, do it, store ``d``."""

    def execute(statement: str, **arrays: np.ndarray) -> None:
        kinds = {name: str(ops.dtype(array.dtype)) for name, array in arrays.items()}
        parameters = ", ".join(f"{name.upper()}: T.Tensor({array.shape}, {kinds[name]!r})" for name, array in arrays.items())
        lines = [f"{name} = T.alloc_ub({array.shape}, {kinds[name]!r})" for name, array in arrays.items()]
        work = [*(f"T.copy({name.upper()}, {name})" for name in arrays), *statement.splitlines(), "T.copy(d, D)"]
        lines += ["if vid == 0:", *(f"    {line}" for line in work)]
        module = source(KERNEL.format(parameters=parameters, statements="\n            ".join(lines)))
        tilelang.compile(module.main, target="ascendc", pass_configs=SYNC)(*arrays.values())

    return execute


def per_block(kind: Any) -> int:
    return 32 // np.dtype(kind).itemsize


@pytest.mark.parametrize("name", ["brcb", "brcb_experiment"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int16, np.uint32])
@pytest.mark.parametrize(("repeats", "block_stride", "repeat_stride"), [(1, 1, 8), (3, 1, 8), (2, 2, 1), (2, 3, 24)])
def test_brcb(run: Any, name: str, kind: Any, repeats: int, block_stride: int, repeat_stride: int) -> None:
    n = per_block(kind)
    a, d = np.arange(1, 1 + 8 * repeats).astype(kind), np.zeros(64 * n, kind)
    expected = d.copy()
    for repeat in range(repeats):
        for block in range(8):
            start = (repeat * repeat_stride + block * block_stride) * n
            expected[start:start + n] = a[repeat * 8 + block]
    run(f"T.tile.{name}(d, a, {repeats}, {block_stride}, {repeat_stride})", a=a, d=d)
    np.testing.assert_array_equal(d, expected)


@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.float32])
@pytest.mark.parametrize(("block_stride", "repeat_stride"), [(1, 8), (2, 16), (2, 1)])
def test_gatherb(run: Any, rng: np.random.Generator, kind: Any, block_stride: int, repeat_stride: int) -> None:
    n = per_block(kind)
    a, d = rng.integers(0, 1000, 40 * n).astype(kind), np.zeros(32 * n, kind)
    i = (32 * rng.integers(0, 40, 16)).astype(np.uint32)
    expected = d.copy()
    for repeat in range(2):
        for block in range(8):
            start, source = (repeat * repeat_stride + block * block_stride) * n, i[repeat * 8 + block] // 32 * n
            expected[start:start + n] = a[source:source + n]
    run(f"T.tile.gatherb(d, a, i, 2, {block_stride}, {repeat_stride})", a=a, i=i, d=d)
    np.testing.assert_array_equal(d, expected)


def groups(a: np.ndarray, mask: int, repeats: int, block_stride: int, repeat_stride: int) -> np.ndarray:
    """The first ``mask`` elements of each repeat."""
    n = per_block(a.dtype)
    blocks = [[a[(r * repeat_stride + b * block_stride) * n:][:n] for b in range(8)] for r in range(repeats)]
    return np.stack([np.concatenate(row)[:mask] for row in blocks])


STRIDES = [(8, 3, 1, 8), (13, 2, 1, 4), (40, 2, 2, 1), (64, 1, 1, 8)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mask", "repeats", "block_stride", "repeat_stride"), STRIDES)
@pytest.mark.parametrize("which", ["max", "min"])
def test_whole_extremes(run: Any, rng: np.random.Generator, kind: Any, which: str, mask: int, repeats: int, block_stride: int,
                        repeat_stride: int) -> None:
    a = rng.standard_normal(40 * per_block(kind)).astype(kind)
    taken = groups(a, mask, repeats, block_stride, repeat_stride)
    best, place = getattr(taken, which)(1), getattr(taken, f"arg{which}")(1)
    bits = place.astype(f"u{a.itemsize}").view(kind)
    orders = {"ORDER_VALUE_INDEX": [best, bits], "ORDER_INDEX_VALUE": [bits, best], "ORDER_ONLY_VALUE": [best]}
    for order, columns in orders.items():
        d = np.zeros(64, kind)
        run(f"T.tile.wholereduce{which}(d, a, {mask}, {repeats}, 2, {block_stride}, {repeat_stride}, {order!r})", a=a, d=d)
        expected = np.zeros(64, kind)
        expected.reshape(-1, 2 * len(columns))[:repeats, :len(columns)] = np.stack(columns, 1)
        np.testing.assert_array_equal(d.view(f"u{a.itemsize}"), expected.view(f"u{a.itemsize}"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mask", "repeats", "block_stride", "repeat_stride"), STRIDES)
def test_whole_sums(run: Any, rng: np.random.Generator, kind: Any, mask: int, repeats: int, block_stride: int,
                    repeat_stride: int) -> None:
    a, d, e = rng.standard_normal(40 * per_block(kind)).astype(kind), np.zeros(8, kind), np.zeros(8, kind)
    totals = groups(a, mask, repeats, block_stride, repeat_stride).astype(np.float64).sum(1)
    tolerance = 2e-3 if kind is np.float16 else 1e-5
    run(f"T.tile.wholereducesum(d, a, {mask}, {repeats}, 2, {block_stride}, {repeat_stride})", a=a, d=d)
    np.testing.assert_allclose(d[:2 * repeats:2], totals, rtol=tolerance, atol=tolerance)
    assert not d[1::2].any()
    if block_stride == 1:
        run(f"T.tile.reduce_sum_mask_experiment(d, a, {mask}, {repeats}, {repeat_stride})", a=a, d=e)
        np.testing.assert_allclose(e[0], totals.sum(), rtol=tolerance, atol=4 * tolerance)
        assert not e[1:].any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mask", "repeats", "block_stride", "repeat_stride"), STRIDES)
@pytest.mark.parametrize("which", ["max", "min", "sum"])
def test_blocks(run: Any, rng: np.random.Generator, kind: Any, which: str, mask: int, repeats: int, block_stride: int,
                repeat_stride: int) -> None:
    n = per_block(kind)
    a, d = rng.standard_normal(40 * n).astype(kind), np.zeros(64, kind)
    taken = groups(a, mask, repeats, block_stride, repeat_stride).astype(np.float64)
    expected = np.zeros(64)
    for repeat in range(repeats):
        for number, start in enumerate(range(0, mask, n)):
            expected[repeat * 16 + number] = getattr(taken[repeat, start:start + n], which)()
    run(f"T.tile.block_reduce_{which}(d, a, {repeats}, {mask}, 2, {block_stride}, {repeat_stride})", a=a, d=d)
    tolerance = 2e-3 if kind is np.float16 else 1e-6
    np.testing.assert_allclose(d, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "width", "count"), [(3, 16, 16), (5, 32, 13), (1, 16, 1)])
def test_sums_of_rows(run: Any, rng: np.random.Generator, kind: Any, rows: int, width: int, count: int) -> None:
    a, d = rng.standard_normal((rows, width)).astype(kind), np.zeros(16, kind)
    run(f"T.tile.sum_experiment(d, a, [{rows}, {width}, {count}])", a=a, d=d)
    tolerance = 4e-3 if kind is np.float16 else 1e-5
    np.testing.assert_allclose(d[:rows], a[:, :count].astype(np.float64).sum(1), rtol=tolerance, atol=tolerance)
    assert not d[rows:].any()


@pytest.mark.parametrize("kind", [np.float16, np.int32, np.float32])
@pytest.mark.parametrize("counter", [True, False])
def test_elements_whose_bit_is_set(run: Any, rng: np.random.Generator, kind: Any, counter: bool) -> None:
    n = per_block(kind)
    bits = 8 * np.dtype(kind).itemsize
    a, d = (rng.standard_normal(24 * n) * 50).astype(kind), np.zeros(24 * n, kind)
    m = rng.integers(0, 1 << bits, 16).astype(f"uint{bits}")
    flags = np.unpackbits(m.view(np.uint8), bitorder="little").astype(bool)
    count = 37 if counter else 8 * n
    expected = np.concatenate([a[r * 8 * n:][:count][flags[:count]] for r in range(2)])
    run(f"T.tile.gathermask_experiment(d, a, m, {counter}, {count if counter else 0}, [1, 2, 8, 0], 0)", a=a, m=m, d=d)
    np.testing.assert_array_equal(d[:expected.size], expected)
    assert not d[expected.size:].any()


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint32])
def test_lanes_whose_bit_is_set(run: Any, kind: Any) -> None:
    d = np.ones(128, kind)
    run("T.tile.fill_experiment(d, 7, [0x8000000000000005], 2, 1, 8)", d=d)
    expected = np.ones((2, 64), kind)
    expected[:, [0, 2, 63]] = 7
    np.testing.assert_array_equal(d, expected.reshape(-1))


def test_pairs_that_sort_last(run: Any) -> None:
    d = np.ones(192, np.float32)
    run("T.tile.init_sort_buf(d, 128, 0)", d=d)
    np.testing.assert_array_equal(d[:128:2], np.full(64, -np.inf, np.float32))
    assert (d.view(np.uint32)[1:128:2] == 0xFFFFFFFF).all()
    assert (d[128:] == 1).all()


@pytest.mark.parametrize("each", [False, True])
def test_bilinear_interpolation(run: Any, rng: np.random.Generator, each: bool) -> None:
    a = rng.standard_normal(64 * 16).astype(np.float16)
    b, d = rng.standard_normal(48).astype(np.float16), np.zeros(512, np.float16)
    i = (32 * rng.integers(0, 64, 2 * 3 * 8)).astype(np.uint32)
    expected = np.zeros((2, 8, 16), np.float32)
    for down in range(2):
        for across in range(3):
            for block in range(8):
                place = (down * 3 + across) * 8 + block
                weight = b[place if each else down * 3 + across]
                term = (a[i[place] // 2:][:16].astype(np.float32) * np.float32(weight)).astype(np.float16)
                expected[down, block] = (expected[down, block] + term).astype(np.float16)
    run(f"T.tile.bilinear_interpolation(d, a, i, b, 100, 3, {each}, 1, 256, 2)", a=a, i=i, b=b, d=d)
    np.testing.assert_array_equal(d.reshape(2, 256)[:, :100], expected.reshape(2, 128)[:, :100].astype(np.float16))
    assert not d.reshape(2, 256)[:, 100:].any()


@pytest.mark.parametrize("kind", [np.int16, np.uint16, np.int32, np.uint32, np.float16, np.float32])
@pytest.mark.parametrize("count", [64, 13])
def test_progressions(run: Any, kind: Any, count: int) -> None:
    d = np.zeros(count, kind)
    run("T.tile.createvecindex(d, 3)", d=d)
    np.testing.assert_array_equal(d, np.arange(3, 3 + count).astype(kind))
    d[:] = 1
    run(f"T.tile.arith_progression(d, 5, 2, {count - 4})", d=d)
    np.testing.assert_array_equal(d, np.concatenate([5 + 2 * np.arange(count - 4), np.ones(4)]).astype(kind))


def test_operands_may_be_slices_in_the_middle(run: Any) -> None:
    a, d = np.arange(1, 41, dtype=np.float32).reshape(5, 8), np.zeros((8, 64), np.float32)
    run("T.tile.brcb_experiment(d[2, :], a[1, :], 2, 1, 8)", a=a, d=d)
    expected = np.zeros((8, 64), np.float32)
    expected[2:4] = np.repeat(a[1:3], 8, axis=1)
    np.testing.assert_array_equal(d, expected)


def test_what_constants_reach_is_checked_at_the_line(run: Any) -> None:
    with pytest.raises(TileError, match="T111") as caught:
        run("T.tile.brcb(d, a, 2, 1, 9)", a=np.zeros(16, np.float32), d=np.zeros(128, np.float32))
    assert "136 elements from element 0 of d" in caught.value.message


def test_what_a_run_reaches_is_checked_in_the_run(run: Any) -> None:
    """How often only the run knows: the number is read from a buffer."""
    a, d = np.zeros(16, np.float32), np.zeros(128, np.float32)
    run("n = k[0]\nT.tile.brcb(d, a, n, 1, 8)", a=a, d=d, k=np.full(8, 2, np.int32))
    with pytest.raises(TileError, match="T502") as caught:
        run("n = k[0]\nT.tile.brcb(d, a, n, 1, 8)", a=a, d=d, k=np.full(8, 3, np.int32))
    assert any("of the input, which has 16" in note for note in caught.value.notes)
