"""GEMM of int8 with dequantisation: C = (A @ B) * row scale of A * column scale of B.

The Cube core accumulates in int32; the Vector cores apply the scales element by element, with a column and a row of scales
that are broadcast. There are as many blocks as cores, and each computes several tiles of C, so the start-up cost of a block
is paid only once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def int8_gemm(M, N, K, tile_M=128, tile_N=256, tile_K=256, blocks=24, stages=2):
    columns = T.ceildiv(N, tile_N)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def int8_gemm(
        A: T.Tensor((M, K), "int8"),
        B: T.Tensor((K, N), "int8"),
        ScaleA: T.Tensor((M, 1), "float32"),
        ScaleB: T.Tensor((1, N), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.min(blocks, tiles), is_npu=True) as (block, _):
            a = T.alloc_shared((tile_M, tile_K), "int8")
            b = T.alloc_shared((tile_K, tile_N), "int8")
            total = T.alloc_fragment((tile_M, tile_N), "int32")
            scale_a = T.alloc_shared((tile_M, 1), "float32")
            scale_b = T.alloc_shared((1, tile_N), "float32")
            c = T.alloc_shared((tile_M, tile_N), "float16")
            for i in T.serial(T.ceildiv(tiles - block, blocks)):
                row = (i * blocks + block) // columns * tile_M
                column = (i * blocks + block) % columns * tile_N
                for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=stages):
                    T.copy(A[row, k * tile_K], a)
                    T.copy(B[k * tile_K, column], b)
                    T.gemm(a, b, total, initC=(k == 0))
                T.copy(ScaleA[row, 0], scale_a)
                T.copy(ScaleB[0, column], scale_b)
                for r, n in T.Parallel(tile_M, tile_N):
                    c[r, n] = T.cast(total[r, n], "float32") * scale_a[r, 0] * scale_b[0, n]
                T.copy(c, C[row, column])

    return int8_gemm


SHAPES = [(2048, 2048, 1024), (100, 300, 200), (33, 65, 17)]


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return (rng.integers(-128, 128, (M, K)).astype(np.int8), rng.integers(-128, 128, (K, N)).astype(np.int8),
            rng.uniform(1e-3, 2e-3, (M, 1)).astype(np.float32), rng.uniform(1e-3, 2e-3, (1, N)).astype(np.float32))


def expected(a: NDArray[Any], b: NDArray[Any], scale_a: NDArray[Any], scale_b: NDArray[Any]) -> Any:
    return a.astype(np.float32) @ b.astype(np.float32) * scale_a * scale_b


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = int8_gemm(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=1e-3, atol=1e-6)
    print("PASS")
