"""C = A @ B. Each block computes one tile of C, and loads the next tiles while the Cube core multiplies the current ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def gemm(M, N, K, tile_M=128, tile_N=256, tile_K=128, stages=2):
    columns = T.ceildiv(N, tile_N)

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, tile_M) * columns, is_npu=True) as (block, _):
            row = block // columns * tile_M
            column = block % columns * tile_N

            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")

            for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=stages):
                T.copy(A[row, k * tile_K], a)
                T.copy(B[k * tile_K, column], b)
                T.gemm(a, b, c, initC=(k == 0))

            T.copy(c, C[row, column])

    return gemm


SHAPES = [(1024, 1024, 512), (250, 300, 200)]


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((M, K)).astype(np.float16), rng.standard_normal((K, N)).astype(np.float16)


def expected(a: NDArray[Any], b: NDArray[Any]) -> Any:
    return a.astype(np.float32) @ b.astype(np.float32)


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        c = gemm(*shape)(*arrays)
        np.testing.assert_allclose(c.astype(np.float32), expected(*arrays), rtol=2e-3, atol=2e-2)
    print("PASS")
