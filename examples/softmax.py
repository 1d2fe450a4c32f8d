"""Softmax along rows. Each Vector core processes every ``blocks``-th tile of rows; the loop loads the next tile while the
current one is computed and the previous one is stored.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def softmax(rows, columns, tile=16, blocks=48, stages=2):
    @T.prim_func
    def softmax(
        X: T.Tensor((rows, columns), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            x = T.alloc_shared((tile, columns), "float32")
            largest = T.alloc_shared((tile, 1), "float32")
            total = T.alloc_shared((tile, 1), "float32")

            for i in T.Pipelined(T.ceildiv(rows, tile * blocks), num_stages=stages):
                row = (i * blocks + block) * tile
                T.copy(X[row, 0], x)
                T.reduce_max(x, largest, dim=-1)
                T.vsub(x, largest, x)
                T.vexp(x, x)
                T.reduce_sum(x, total, dim=-1)
                T.vdiv(x, total, x)
                T.copy(x, Y[row, 0])

    return softmax


SHAPES = [(4096, 640), (1000, 640)]


def inputs(rows: int, columns: int) -> tuple[NDArray[Any], ...]:
    return (np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32),)


def expected(x: NDArray[Any]) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = softmax(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=1e-5, atol=1e-7)
    print("PASS")
