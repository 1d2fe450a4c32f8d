"""exp(A @ B), in one body: the compiler gives the product to the Cube core, exp to the Vector cores, and the tile between them
a ring of slots in global memory with a flag for each direction.
"""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def exp_of_product(M, N, K, tile_M=64, tile_N=128):
    columns = T.ceildiv(N, tile_N)

    @T.prim_func
    def exp_of_product(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        D: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, tile_M) * columns, is_npu=True) as (block, _):
            row = block // columns * tile_M
            column = block % columns * tile_N

            a = T.alloc_shared((tile_M, K), "float16")
            b = T.alloc_shared((K, tile_N), "float16")
            product = T.alloc_fragment((tile_M, tile_N), "float32")
            result = T.alloc_fragment((tile_M, tile_N), "float32")

            T.copy(A[row, 0], a)
            T.copy(B[0, column], b)
            T.gemm(a, b, product, initC=True)
            T.exp(product, result)
            T.copy(result, D[row, column])

    return exp_of_product


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    a = (rng.standard_normal((512, 128)) * 0.2).astype(np.float16)
    b = (rng.standard_normal((128, 512)) * 0.2).astype(np.float16)
    d = exp_of_product(512, 512, 128)(a, b)
    np.testing.assert_allclose(d, np.exp(a.astype(np.float32) @ b.astype(np.float32)), rtol=2e-3, atol=1e-3)
    print("PASS")
