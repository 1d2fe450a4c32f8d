"""RMSNorm along rows: x / sqrt(mean(x * x) + eps) * weight in f16, computed in f32.

Each Vector core processes every ``blocks``-th tile of rows; the loop loads the next tile while the current one is computed
and the previous one is stored.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T

EPS = 1e-5


@tilelang.jit(out_idx=[-1], target="npuir")
def rms_norm(rows, columns, tile=8, blocks=48, stages=2):
    @T.prim_func
    def rms_norm(
        X: T.Tensor((rows, columns), "float16"),
        W: T.Tensor((1, columns), "float16"),
        Y: T.Tensor((rows, columns), "float16"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            half = T.alloc_shared((tile, columns), "float16")
            x = T.alloc_shared((tile, columns), "float32")
            square = T.alloc_shared((tile, columns), "float32")
            scale = T.alloc_shared((tile, 1), "float32")
            narrow = T.alloc_shared((1, columns), "float16")
            weight = T.alloc_shared((1, columns), "float32")

            T.copy(W, narrow)
            T.copy(narrow, weight)
            for i in T.Pipelined(T.ceildiv(rows, tile * blocks), num_stages=stages):
                row = (i * blocks + block) * tile
                T.copy(X[row, 0], half)
                T.copy(half, x)
                T.vmul(x, x, square)
                T.reduce_sum(square, scale, dim=-1)
                T.vmul(scale, 1.0 / columns, scale)
                T.vadd(scale, EPS, scale)
                T.vrsqrt(scale, scale)
                T.vmul(x, scale, x)
                T.vmul(x, weight, x)
                T.copy(x, half)
                T.copy(half, Y[row, 0])

    return rms_norm


SHAPES = [(4096, 1024), (1000, 512)]


def inputs(rows: int, columns: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((rows, columns)).astype(np.float16), rng.standard_normal((1, columns)).astype(np.float16)


def expected(x: NDArray[Any], weight: NDArray[Any]) -> Any:
    x, weight = x.astype(np.float32), weight.astype(np.float32)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * weight


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = rms_norm(*shape)(*arrays)
        np.testing.assert_allclose(out.astype(np.float32), expected(*arrays), rtol=2e-3, atol=1e-3)
    print("PASS")
