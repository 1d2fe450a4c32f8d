"""Buffers without elements, copies that continue in the next rows, and numbers of elements that are known at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, WIDTH = 8, 6


@pytest.fixture(params=[False, True], ids=["compiled", "interpreted"])
def interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    return bool(request.param)


SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}


@tilelang.jit(target="ascendc", pass_configs=SYNC)
def without_elements(size: int, width: int = 8) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), N: T.Tensor((8,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _half):
            x = T.alloc_ub((64,), "float32")
            none = T.alloc_ub((size, width), "float32")
            numbers = T.alloc_ub((size,), "int32")
            T.copy(A, x)
            T.tile.fill(none, 0.0)
            for i in T.serial(N[0]):
                numbers[i] = 1
            T.copy(x, B)

    return main


@pytest.mark.filterwarnings("ignore:T115")
def test_a_buffer_without_elements(interpreted: bool) -> None:
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    without_elements(0)(a, b, np.zeros(8, np.int32))
    np.testing.assert_array_equal(b, a)


@pytest.mark.filterwarnings("ignore:T115")  # the other buffer of the kernel
def test_a_buffer_without_elements_has_a_warning() -> None:
    with pytest.warns(tilelang.TileWarning, match=r"T115: T.alloc_ub: a buffer of shape \[0, 16\] has no elements"):
        without_elements.compile(0, 16)


@pytest.mark.filterwarnings("ignore:T115")
def test_an_element_of_a_buffer_without_elements(interpreted: bool) -> None:
    with pytest.raises(tilelang.TileError) as caught:
        without_elements(0)(np.zeros(64, np.float32), np.zeros(64, np.float32), np.ones(8, np.int32))
    assert caught.value.code in ("T130", "T502")


@tilelang.jit(target="ascendc", pass_configs=SYNC)
def rows_of(length: int, stores: bool) -> Any:
    """Copies ``length`` elements from the row that N names, or to it."""
    @T.prim_func
    def main(A: T.Tensor((ROWS, WIDTH), "float32"), B: T.Tensor((length,), "float32"), N: T.Tensor((8,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, half):
            x = T.alloc_ub((length,), "float32")
            if half == 0:
                if stores:
                    T.copy(B, x)
                    T.copy(x, A[N[0], 0])
                else:
                    T.copy(A[N[0], 0], x)
                    T.copy(x, B)

    return main


@pytest.mark.filterwarnings("ignore:T116")
@pytest.mark.parametrize("row", [0, 3, 6])
def test_rows_that_are_loaded(row: int, interpreted: bool) -> None:
    a = np.random.default_rng(0).random((ROWS, WIDTH), np.float32)
    b = np.full(4 * WIDTH, -1, np.float32)
    rows_of(4 * WIDTH, stores=False)(a, b, np.full(8, row, np.int32))
    np.testing.assert_array_equal(b, np.concatenate([a.reshape(-1), np.zeros(4 * WIDTH, np.float32)])[row * WIDTH:][:4 * WIDTH])


@pytest.mark.filterwarnings("ignore:T116")
@pytest.mark.parametrize("row", [0, 4, 7])
def test_rows_that_are_stored(row: int, interpreted: bool) -> None:
    a, b = np.zeros((ROWS, WIDTH), np.float32), np.random.default_rng(1).random(3 * WIDTH, np.float32)
    rows_of(3 * WIDTH, stores=True)(a, b, np.full(8, row, np.int32))
    wanted = np.zeros(ROWS * WIDTH, np.float32)
    wanted[row * WIDTH:row * WIDTH + 3 * WIDTH] = b[:(ROWS - row) * WIDTH]
    np.testing.assert_array_equal(a.reshape(-1), wanted)


def test_rows_that_continue_have_a_warning() -> None:
    with pytest.warns(tilelang.TileWarning, match=r"T116: T.copy: x \[12\] float32 is as long as 2 rows of A"):
        rows_of.compile(2 * WIDTH, stores=False)


@pytest.mark.parametrize("length", [WIDTH + 2, 2 * WIDTH - 1])
def test_a_buffer_that_is_no_number_of_rows_has_one_row_and_zeros(length: int, interpreted: bool) -> None:
    a, b = np.ones((ROWS, WIDTH), np.float32), np.full(length, -1, np.float32)
    rows_of(length, stores=False)(a, b, np.zeros(8, np.int32))
    np.testing.assert_array_equal(b, np.arange(length) < WIDTH)


@tilelang.jit(target="ascendc", pass_configs=SYNC)
def first_elements() -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32"),
             N: T.Tensor((8,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, half):
            a = T.alloc_ub((64,), "int32")
            b = T.alloc_ub((64,), "int32")
            c = T.alloc_ub((64,), "int32")
            if half == 0:
                T.copy(A, a)
                T.copy(B, b)
                T.tile.fill(c, 7)
                T.tile.sub_experiment(c, a, b, N[0])
                T.tile.mins_experiment(c, c, 1, N[0])
                T.copy(c, C)

    return main


@pytest.mark.parametrize("count", [0, 1, 8, 33, 64])
def test_a_count_of_run_time(count: int, interpreted: bool) -> None:
    generator = np.random.default_rng(count)
    a, b = (generator.integers(0, 9, 64, dtype=np.int32) for _ in range(2))
    c = np.zeros(64, np.int32)
    first_elements()(a, b, c, np.full(8, count, np.int32))
    np.testing.assert_array_equal(c, np.where(np.arange(64) < count, np.minimum(a - b, 1), 7))


@tilelang.jit(target="ascendc", pass_configs=SYNC)
def longer_view(size: int = 70) -> Any:
    """Sees 70 elements of 2 bytes as a buffer of 70 elements of 4 bytes, of which 35 fit, in each iteration of a loop."""
    @T.prim_func
    def main(A: T.Tensor((70,), "int16"), B: T.Tensor((70,), "int16")) -> None:
        with T.Kernel(1, is_npu=True) as (_, half):
            x = T.alloc_ub((70,), "int16")
            words = T.alloc_ub((size,), "int32")
            if half == 0:
                T.copy(A, x)
                for i in T.serial(2):
                    T.reinterpretcast(words, x, "int32_t")
                    words[33 + i] = 0x20001
                T.reinterpretcast(words, x, "int32_t")
                T.copy(x, B)

    return main


@pytest.mark.filterwarnings("ignore:T113")
def test_a_view_that_is_longer_than_its_memory(interpreted: bool) -> None:
    a, b = np.arange(70, dtype=np.int16), np.zeros(70, np.int16)
    longer_view()(a, b)
    np.testing.assert_array_equal(b, np.concatenate([a[:66], np.array([1, 2, 1, 2], np.int16)]))


def test_a_view_that_is_longer_has_a_warning() -> None:
    with pytest.warns(tilelang.TileWarning, match="T113: T.reinterpretcast: x .* has 140 bytes, and words .* has 288; words "
                                                  "keeps its first 35 elements"):
        longer_view.compile(72)
