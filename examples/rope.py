"""Rotary embedding: each pair of elements in the two halves of a row is rotated by an angle that depends on the position.

The angles are the same for every head: a block keeps the angles of its rows in UB and applies them to one head after the
other. The second half of a row need not start at a multiple of 32 bytes, so each half is loaded to a separate, aligned
tile.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def rope(heads, length, dim, tile=32, stages=2, dtype="float16"):
    half = dim // 2

    @T.prim_func
    def rope(
        X: T.Tensor((heads, length, dim), dtype),
        Cos: T.Tensor((length, half), "float32"),
        Sin: T.Tensor((length, half), "float32"),
        Y: T.Tensor((heads, length, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(length, tile), is_npu=True) as (block, _):
            row = block * tile
            left = T.alloc_shared((tile, half), "float32")
            right = T.alloc_shared((tile, half), "float32")
            first = T.alloc_shared((tile, half), "float32")
            second = T.alloc_shared((tile, half), "float32")
            cos = T.alloc_shared((tile, half), "float32")
            sin = T.alloc_shared((tile, half), "float32")
            T.copy(Cos[row, 0], cos)
            T.copy(Sin[row, 0], sin)
            for head in T.Pipelined(heads, num_stages=stages):
                T.copy(X[head, row : row + tile, 0:half], left)
                T.copy(X[head, row : row + tile, half:dim], right)
                for i, j in T.Parallel(tile, half):
                    first[i, j] = left[i, j] * cos[i, j] - right[i, j] * sin[i, j]
                    second[i, j] = right[i, j] * cos[i, j] + left[i, j] * sin[i, j]
                T.copy(first, Y[head, row : row + tile, 0:half])
                T.copy(second, Y[head, row : row + tile, half:dim])

    return rope


SHAPES = [(32, 1024, 128), (5, 100, 64), (2, 33, 20)]


def inputs(heads: int, length: int, dim: int) -> tuple[NDArray[Any], ...]:
    x = np.random.default_rng(0).standard_normal((heads, length, dim)).astype(np.float16)
    angle = np.arange(length)[:, None] * 10000.0 ** (-2 * np.arange(dim // 2) / dim)
    return x, np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def expected(x: NDArray[Any], cos: NDArray[Any], sin: NDArray[Any]) -> Any:
    left, right = np.split(x.astype(np.float32), 2, axis=-1)
    return np.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = rope(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=1e-3, atol=1e-3)
    print("PASS")
