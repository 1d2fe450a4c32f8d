"""C = A @ B. Each block computes one tile of C; the loop over K loads the next tiles while the Cube core multiplies these."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def gemm(M, N, K, tile_M=128, tile_N=128, tile_K=64, stages=2):
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


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    a = rng.standard_normal((1024, 512)).astype(np.float16)
    b = rng.standard_normal((512, 1024)).astype(np.float16)
    c = gemm(1024, 1024, 512)(a, b)
    np.testing.assert_allclose(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=2e-2)
    print("PASS")
