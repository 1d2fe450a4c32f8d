"""C = A @ B in one wave: there are as many blocks as the chip has Cube cores, and each computes every 24th tile of C."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def persistent_gemm(M, N, K, tile_M=128, tile_N=256, tile_K=128, stages=2, cores=24):
    columns = T.ceildiv(N, tile_N)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def persistent_gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")

            for turn in T.serial(T.ceildiv(tiles, cores)):
                tile = turn * cores + core
                if tile < tiles:
                    row = tile // columns * tile_M
                    column = tile % columns * tile_N
                    for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=stages):
                        T.copy(A[row, k * tile_K], a)
                        T.copy(B[k * tile_K, column], b)
                        T.gemm(a, b, c, initC=(k == 0))
                    T.copy(c, C[row, column])

    return persistent_gemm


SHAPES = [(1024, 1536, 512), (250, 300, 200)]


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((M, K)).astype(np.float16), rng.standard_normal((K, N)).astype(np.float16)


def expected(a: NDArray[Any], b: NDArray[Any]) -> Any:
    return a.astype(np.float32) @ b.astype(np.float32)


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        c = persistent_gemm(*shape)(*arrays)
        np.testing.assert_allclose(c.astype(np.float32), expected(*arrays), rtol=2e-3, atol=2e-2)
    print("PASS")
