"""``T.tile.im2col``: loads of a convolution's patches from L1 to L0A, against a convolution in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError
from tilelang_npu.ops.convolution import Patches
from tilelang_npu.target.dtypes import DType

AUTO = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}
FILTERS = 16
CASES = [
    Patches(5, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
    Patches(7, 8, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1),
    Patches(7, 9, 3, 3, 1, 2, 2, 1, 2, 0, 1, 2),
    Patches(4, 6, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
    Patches(3, 3, 2, 3, 1, 1, 1, 1, 0, 2, 3, 0),
    Patches(6, 4, 3, 2, 3, 1, 1, 3, 1, 2, 0, 1),
]


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@tilelang.jit(out_idx=[2], pass_configs=AUTO)
def convolution(patches: Patches, groups: int, dtype: str) -> Any:
    """The whole matrix of patches in one load for each group of channels."""
    accumulator = "int32" if "int" in dtype else "float32"
    channels = 32 // DType(dtype).nbytes
    pixels, depth = patches.height * patches.width, patches.cells * channels
    rows = patches.out_height * patches.out_width
    padded = _up(rows, 16)

    @T.prim_func
    def main(A: T.Tensor((groups * pixels, channels), dtype), B: T.Tensor((groups * depth, FILTERS), dtype),
             C: T.Tensor((rows, FILTERS), accumulator)) -> None:
        with T.Kernel(1, is_npu=True) as (cid, vid):
            image, weight = T.alloc_L1((pixels, channels), dtype), T.alloc_L1((depth, FILTERS), dtype)
            left, right = T.alloc_L0A((padded, depth), dtype), T.alloc_L0B((depth, FILTERS), dtype)
            c = T.alloc_L0C((padded, FILTERS), accumulator)
            with T.Scope("C"):
                for group in T.serial(groups):
                    T.copy(A[group * pixels, 0], image)
                    T.copy(B[group * depth, 0], weight)
                    T.tile.im2col(left, image, tuple(patches[:2]), tuple(patches[2:4]), tuple(patches[4:6]),
                                  tuple(patches[6:8]), tuple(patches[8:]), 0, 0, rows, depth)
                    T.copy(weight, right)
                    T.mma(left, right, c, init=(group == 0))
                T.copy(c, C[0, 0])

    return main


@tilelang.jit(out_idx=[2], pass_configs=AUTO)
def in_pieces(patches: Patches, tile_m: int, cells: int, dynamic: bool = False, shift: int = 0) -> Any:
    """The matrix in pieces of ``tile_m`` rows and ``cells`` elements of the kernel; the last rows have a size of run time."""
    pixels, rows = patches.height * patches.width, patches.out_height * patches.out_width
    depth, piece = patches.cells * 16, cells * 16

    @T.prim_func
    def main(A: T.Tensor((pixels, 16), "float16"), B: T.Tensor((depth, FILTERS), "float16"),
             C: T.Tensor((rows, FILTERS), "float32")) -> None:
        with T.Kernel(T.ceildiv(rows, tile_m), is_npu=True) as (cid, vid):
            image, weight = T.alloc_L1((pixels, 16), "float16"), T.alloc_L1((piece, FILTERS), "float16")
            left, right = T.alloc_L0A((tile_m, piece), "float16"), T.alloc_L0B((piece, FILTERS), "float16")
            c = T.alloc_L0C((tile_m, FILTERS), "float32")
            with T.Scope("C"):
                T.copy(A, image)
                for step in T.serial(patches.cells // cells):
                    T.copy(B[step * piece, 0], weight)
                    T.tile.im2col(left, image, patches[:2], patches[2:4], patches[4:6], patches[6:8], patches[8:],
                                  cid * tile_m + shift, step * piece,
                                  T.min(tile_m, rows - cid * tile_m) if dynamic else tile_m, piece)
                    T.copy(weight, right)
                    T.mma(left, right, c, init=(step == 0))
                T.copy(c, C[cid * tile_m, 0])

    return main


def _convolved(a: NDArray[Any], b: NDArray[Any], patches: Patches, exact: type) -> NDArray[Any]:
    """The convolution in loops over the output: a has the shape [groups x pixels, channels]."""
    image = a.astype(exact).reshape(-1, patches.height, patches.width, a.shape[1])
    weight = b.astype(exact).reshape(len(image), patches.kernel_height, patches.kernel_width, a.shape[1], FILTERS)
    found = np.zeros((patches.out_height, patches.out_width, FILTERS), exact)
    for y, x, row, column in np.ndindex(*found.shape[:2], patches.kernel_height, patches.kernel_width):
        down = y * patches.stride_height - patches.top + row * patches.dilation_height
        right = x * patches.stride_width - patches.left + column * patches.dilation_width
        if 0 <= down < patches.height and 0 <= right < patches.width:
            found[y, x] += np.einsum("gc,gcf->f", image[:, down, right], weight[:, row, column])
    return found.reshape(-1, FILTERS)


def _random(shape: tuple[int, ...], dtype: str, seed: int) -> NDArray[Any]:
    """Small integers, so that every sum is exact in the accumulator."""
    low, high = (0, 9) if dtype.startswith("u") else (-8, 9)
    return np.random.default_rng(seed).integers(low, high, shape).astype(DType(dtype).numpy)


@pytest.fixture(params=["compiled", "interpreted"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "interpreted":
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize("patches", CASES)
def test_a_convolution_equals_that_in_numpy(patches: Patches, dtype: str) -> None:
    groups, channels = 2, 32 // DType(dtype).nbytes
    a = _random((groups * patches.height * patches.width, channels), dtype, 1)
    b = _random((groups * patches.cells * channels, FILTERS), dtype, 2)
    np.testing.assert_array_equal(convolution(patches, groups, dtype)(a, b), _convolved(a, b, patches, np.float64))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("tile_m", "cells"), [(16, 9), (32, 3), (48, 1)])
def test_a_matrix_in_pieces_equals_the_whole(tile_m: int, cells: int, dynamic: bool) -> None:
    patches = CASES[0]._replace(height=9, width=7)
    a, b = _random((63, 16), "float16", 3), _random((9 * 16, FILTERS), "float16", 4)
    np.testing.assert_array_equal(in_pieces(patches, tile_m, cells, dynamic)(a, b), _convolved(a, b, patches, np.float64))


@pytest.mark.usefixtures("way")
def test_a_start_that_is_no_first_row_of_a_fractal_is_refused_at_run_time() -> None:
    patches = CASES[0]._replace(height=9, width=7)
    with pytest.raises(TileError) as caught:
        in_pieces(patches, 32, 3, shift=8)(np.zeros((63, 16), np.float16), np.zeros((144, FILTERS), np.float16))
    assert caught.value.code == "T502" and "8" in caught.value.message and "16" in str(caught.value.help)
    assert caught.value.location is not None and "T.tile.im2col" in caught.value.location.source()


@pytest.mark.parametrize(("left_out", "buffers"), [(None, set()), (0, {"image", "weight"}), (1, {"left", "right"}), (2, {"c"})])
def test_a_missing_wait_is_reported(left_out: int | None, buffers: set[str]) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 16), "float16"), B: T.Tensor((144, 16), "float16"), C: T.Tensor((64, 16), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (cid, vid):
            image, weight = T.alloc_L1((64, 16), "float16"), T.alloc_L1((144, 16), "float16")
            left, right = T.alloc_L0A((64, 144), "float16"), T.alloc_L0B((144, 16), "float16")
            c = T.alloc_L0C((64, 16), "float32")
            with T.Scope("C"):
                T.copy(A, image)
                T.copy(B, weight)
                if left_out != 0:
                    T.set_flag("mte2", "mte1", 0)
                    T.wait_flag("mte2", "mte1", 0)
                T.tile.im2col(left, image, *NUMBERS)
                T.copy(weight, right)
                if left_out != 1:
                    T.set_flag("mte1", "m", 0)
                    T.wait_flag("mte1", "m", 0)
                T.mma(left, right, c, init=True)
                if left_out != 2:
                    T.set_flag("m", "fix", 0)
                    T.wait_flag("m", "fix", 0)
                T.copy(c, C)

    kernel = tilelang.compile(main, out_idx=[2], target="ascendc")
    kernel(np.ones((64, 16), np.float16), np.ones((144, 16), np.float16))
    found = kernel.last_launch.hazards
    assert {hazard.code for hazard in found} <= {"S201"}
    assert {name for name in ("image", "weight", "left", "right", "c")
            if any(f" of {name} are read" in str(hazard) for hazard in found)} == buffers


NUMBERS = ((8, 8), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 0, 0, 64, 144)


def one_load(target: str, source: str, numbers: tuple[Any, ...]) -> Any:
    """A kernel with one load from an image of 8 x 8 pixels; a wide matrix of float32 has 72 columns."""
    @T.prim_func
    def main(A: T.Tensor((64, 16), "float16")) -> None:
        with T.Kernel(1, is_npu=True) as (cid, vid):
            image, wide = T.alloc_L1((64, 16), "float16"), T.alloc_L1((64, 32), "float16")
            left, other = T.alloc_L0A((64, 144), "float16"), T.alloc_L0A((64, 72), "float32")
            single = T.alloc_L1((64, 8), "float32")
            buffers = {"A": A, "image": image, "wide": wide, "left": left, "other": other, "single": single}
            with T.Scope("C"):
                T.copy(A, image)
                T.tile.im2col(buffers[target], buffers[source], *numbers)

    return main


@pytest.mark.parametrize(("place", "number", "code", "message"), [
    (0, (8, 9), "T111", "72 pixels"), (0, (0, 8), "T150", "height is 0"), (0, 8, "T150", "not 2 integers"),
    (1, (9, 11), "T150", "larger than the padded image"), (2, (0, 1), "T150", "stride_height"),
    (3, (1, 0), "T150", "dilation_width"), (4, (1, 1, 1, -1), "T150", "bottom"), (4, (1, 1), "T150", "not 4 integers"),
    (5, 8, "T145", "m_start is 8"), (6, 24, "T145", "k_start is 24"), (7, 0, "T145", "m_extent is 0"),
    (8, 100, "T145", "k_extent is 100"), (7, 80, "T131", "80 rows"), (8, 160, "T131", "160 columns"),
])
def test_wrong_numbers_are_refused(place: int, number: object, code: str, message: str, way: str) -> None:
    with pytest.raises(TileError) as caught:
        run(one_load("left", "image", (*NUMBERS[:place], number, *NUMBERS[place + 1:])))
    if way == "compiled":
        assert caught.value.code == code and message in caught.value.message, caught.value
    else:  # a start that is wrong is known when the kernel runs
        assert caught.value.code == (code if place not in (5, 6) else "T502"), caught.value
        assert caught.value.location is not None and "T.tile.im2col" in caught.value.location.source()


def run(function: Any) -> None:
    tilelang.compile(function, pass_configs=AUTO, target="ascendc")(np.ones((64, 16), np.float16))


@pytest.mark.parametrize(("target", "source", "code"), [
    ("image", "image", "T122"), ("left", "left", "T122"), ("left", "A", "T122"), ("other", "image", "T110"),
    ("left", "wide", "T111"),
])
@pytest.mark.usefixtures("way")
def test_wrong_operands_are_refused(target: str, source: str, code: str) -> None:
    with pytest.raises(TileError) as caught:
        run(one_load(target, source, NUMBERS))
    assert caught.value.code == code, caught.value


@pytest.mark.filterwarnings("ignore:main stores to none")
@pytest.mark.usefixtures("way")
def test_columns_are_counted_in_channels() -> None:
    """72 columns are nine groups of 8 channels of float32, and no multiple of the 16 rows of a fractal."""
    run(one_load("other", "single", (*NUMBERS[:-1], 72)))
    with pytest.raises(TileError) as caught:
        run(one_load("other", "single", (*NUMBERS[:-1], 80)))
    assert caught.value.code == "T131", caught.value
