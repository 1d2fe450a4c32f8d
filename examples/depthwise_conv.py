"""Depthwise convolution, stride 1, with zero padding: each channel has its own filter.

A tile of rows is loaded with the rows above and below it. At the upper edge of the image the rows above do not exist, so
the copy starts at the tensor's first row and at row ``top`` of the tile. Vector instructions need operands that start at a
multiple of 32 bytes, so the image columns start at such a multiple in the tile, with zeros on both sides. The taps of each
column of the filter are therefore summed first, and only this one sum is shifted to an unaligned column, in place of each
tap.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T

MARGIN = 8  # elements of float32: 32 bytes


@tilelang.jit(out_idx=[-1], target="npuir")
def depthwise_conv(batch, channels, height, width, size=3, tile=64, blocks=48, stages=1):
    pad = size // 2
    wide = MARGIN + width + MARGIN
    bands = T.ceildiv(height, tile)
    tiles = batch * channels * bands

    @T.prim_func
    def depthwise_conv(
        X: T.Tensor((batch * channels, height, width), "float32"),
        W: T.Tensor((channels, size * size), "float32"),
        Y: T.Tensor((batch * channels, height, width), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            x = T.alloc_shared((tile + 2 * pad, wide), "float32")
            taps = T.alloc_shared((1, size * size), "float32")
            column = T.alloc_shared((tile, wide), "float32")
            y = T.alloc_shared((tile, width), "float32")
            for i in T.Pipelined(T.ceildiv(tiles - block, blocks), num_stages=stages):
                index = i * blocks + block
                plane = index // bands
                row = index % bands * tile
                top = T.max(row - pad, 0)
                bottom = T.min(row + tile + pad, height)
                place = top - (row - pad)
                T.clear(x)
                T.copy(X[plane, top:bottom, 0:width], x[place : place + bottom - top, MARGIN : MARGIN + width])
                T.copy(W[plane % channels, 0], taps)
                T.clear(y)
                for dx in T.unroll(size):
                    T.clear(column)
                    for dy in T.unroll(size):
                        for r, c in T.Parallel(tile, wide):
                            column[r, c] += x[r + dy, c] * taps[0, dy * size + dx]
                    for r, c in T.Parallel(tile, width):
                        y[r, c] += column[r, c + (MARGIN - pad + dx)]
                T.copy(y, Y[plane, row, 0])

    return depthwise_conv


SHAPES = [(1, 96, 64, 64), (2, 5, 70, 37)]


def inputs(batch: int, channels: int, height: int, width: int, size: int = 3) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return (rng.standard_normal((batch * channels, height, width)).astype(np.float32),
            rng.standard_normal((channels, size * size)).astype(np.float32))


def expected(x: NDArray[Any], w: NDArray[Any]) -> Any:
    size, (planes, height, width) = int(w.shape[1] ** 0.5), x.shape
    around = np.pad(x, ((0, 0), (size // 2, size // 2), (size // 2, size // 2)))
    taps = np.tile(w, (planes // len(w), 1))
    return sum(around[:, dy : dy + height, dx : dx + width] * taps[:, dy * size + dx, None, None]
               for dy in range(size) for dx in range(size))


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = depthwise_conv(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=1e-4, atol=1e-5)
    arrays = inputs(1, 3, 11, 13, size=5)
    np.testing.assert_allclose(depthwise_conv(1, 3, 11, 13, size=5)(*arrays), expected(*arrays), rtol=1e-4, atol=1e-5)
    print("PASS")
