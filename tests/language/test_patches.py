"""``T.im2col``: convolutions as products, compiled and interpreted, compared with NumPy; invalid arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def convolution(shape: tuple[int, int, int, int], features: int, kernel: int, stride: int, dilation: int, pad: int,
                block_m: int = 64, block_n: int = 32, block_k: int = 32) -> Any:
    n, h, w, c = shape
    out_h, out_w = ((size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size in (h, w))
    pixels, depth = n * out_h * out_w, kernel * kernel * c

    @T.prim_func
    def main(data: T.Tensor(shape, "float16"), weights: T.Tensor((depth, features), "float16"),
             out: T.Tensor((pixels, features), "float32")):
        with T.Kernel(T.ceildiv(features, block_n), T.ceildiv(pixels, block_m), threads=256) as (bx, by):
            data_shared = T.alloc_shared((block_m, block_k), "float16")
            weights_shared = T.alloc_shared((block_k, block_n), "float16")
            acc = T.alloc_fragment((block_m, block_n), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(depth, block_k), num_stages=3):
                T.im2col(data, data_shared, by, k, kernel, stride, dilation, pad)
                T.copy(weights[k * block_k, bx * block_n], weights_shared)
                T.gemm(data_shared, weights_shared, acc)
            T.copy(acc, out[by * block_m, bx * block_n])

    return tilelang.compile(main, target="npu")


def reference(data: np.ndarray, weights: np.ndarray, kernel: int, stride: int, dilation: int, pad: int) -> np.ndarray:
    """A convolution by its definition: a sum over the kernel's elements."""
    n, h, w, c = data.shape
    out_h, out_w = ((size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size in (h, w))
    padded = np.zeros((n, h + 2 * pad, w + 2 * pad, c), np.float64)
    padded[:, pad : pad + h, pad : pad + w] = data
    taps = weights.astype(np.float64).reshape(kernel, kernel, c, -1)
    out = np.zeros((n, out_h, out_w, taps.shape[-1]))
    for i in range(kernel):
        for j in range(kernel):
            seen = padded[:, i * dilation :, j * dilation :][:, : stride * out_h : stride, : stride * out_w : stride]
            out += seen @ taps[i, j]
    return out.reshape(n * out_h * out_w, -1)


@pytest.mark.parametrize(("shape", "kernel", "stride", "dilation", "pad"), [
    ((1, 9, 8, 32), 3, 1, 1, 1), ((2, 8, 8, 64), 3, 2, 1, 1), ((1, 9, 9, 16), 3, 1, 2, 0), ((1, 8, 8, 32), 1, 1, 1, 0),
    ((2, 7, 6, 24), 2, 1, 1, 2), ((1, 6, 6, 3), 3, 1, 1, 1)])
def test_convolutions(shape: tuple[int, int, int, int], kernel: int, stride: int, dilation: int, pad: int) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(-3, 4, shape).astype(np.float16)
    weights = rng.integers(-3, 4, (kernel * kernel * shape[3], 32)).astype(np.float16)
    expected = reference(data, weights, kernel, stride, dilation, pad)
    built = convolution(shape, 32, kernel, stride, dilation, pad)
    for run in (built, built.interpret):
        out = np.zeros(expected.shape, np.float32)
        run(data, weights, out)
        np.testing.assert_array_equal(out, expected)
    assert built.last_launch.hazards == []


@pytest.mark.parametrize(("arguments", "report"), [
    ((0, 1, 1, 1), "T150: T.im2col: kernel is 0"), ((3, 1, 1, -1), "T150: T.im2col: pad is -1"),
    ((9, 1, 1, 0), "T150: T.im2col: a kernel of 9 with dilation 1 is larger than the image of 8 x 8")])
def test_sizes_that_are_refused(arguments: tuple[int, int, int, int], report: str) -> None:
    with pytest.raises(tilelang.TileError, match=report.partition(": ")[2]) as error:
        convolution_of_sizes(*arguments)
    assert error.value.code == report[:4]


def convolution_of_sizes(kernel: int, stride: int, dilation: int, pad: int) -> Any:
    @T.prim_func
    def main(data: T.Tensor((1, 8, 8, 32), "float16"), out: T.Tensor((16, 32), "float16")):
        with T.Kernel(1, threads=128) as bx:
            tile = T.alloc_shared((16, 32), "float16")
            T.im2col(data, tile, bx, 0, kernel, stride, dilation, pad)
            T.copy(tile, out)

    return tilelang.compile(main, target="npu")


def test_operands_that_are_refused() -> None:
    @T.prim_func
    def main(data: T.Tensor((8, 8, 32), "float16"), out: T.Tensor((16, 32), "float16")):
        with T.Kernel(1, threads=128) as bx:
            tile = T.alloc_shared((16, 32), "float16")
            T.im2col(data, tile, bx, 0, 3, 1, 1, 1)
            T.copy(tile, out)

    with pytest.raises(tilelang.TileError, match=r"has 3 axes and .* 2") as error:
        tilelang.compile(main, target="npu")
    assert error.value.code == "T131"
