"""relu(A @ B + bias): a matrix product whose tiles the Vector cores finish while the Cube core multiplies the next ones.

The compiler assigns the operations to cores, and inserts the transfers between the cores and all synchronisation.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def linear_relu(M, N, K, tile_M=128, tile_N=128, tile_K=128, blocks=24, stages=2):
    columns = T.ceildiv(N, tile_N)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def linear_relu(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        Bias: T.Tensor((1, N), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            bias = T.alloc_shared((1, tile_N), "float32")
            out = T.alloc_shared((tile_M, tile_N), "float16")

            for i in T.Pipelined(T.ceildiv(tiles - block, blocks), num_stages=stages):
                row = (i * blocks + block) // columns * tile_M
                column = (i * blocks + block) % columns * tile_N
                for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=stages):
                    T.copy(A[row, k * tile_K], a)
                    T.copy(B[k * tile_K, column], b)
                    T.gemm(a, b, c, initC=(k == 0))
                T.copy(Bias[0, column], bias)
                T.vadd(c, bias, c)
                T.vrelu(c, c)
                T.copy(c, out)
                T.copy(out, C[row, column])

    return linear_relu


SHAPES = [(512, 512, 512), (250, 200, 300)]


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    return a, b, rng.standard_normal((1, N)).astype(np.float32)


def expected(a: NDArray[Any], b: NDArray[Any], bias: NDArray[Any]) -> Any:
    return np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0)


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        c = linear_relu(*shape)(*arrays)
        np.testing.assert_allclose(c.astype(np.float32), expected(*arrays), rtol=2e-3, atol=2e-2)
    print("PASS")
