"""GEMM with a long K and a small C: ``splits`` blocks share the sum of one tile of C, and add their partial sums in GM.

There are more cores than tiles of C, so splitting K gives each core work. The additions are atomic and their order is not
fixed, so the last bits of a float sum may vary. C is an argument of the caller because the kernel adds to it: an output
that ``out_idx`` allocates is not initialised.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def split_k_gemm(M, N, K, splits=12, tile_M=128, tile_N=256, tile_K=256, stages=2):
    steps = T.ceildiv(T.ceildiv(K, tile_K), splits)

    @T.prim_func
    def split_k_gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, tile_M), T.ceildiv(N, tile_N), splits, is_npu=True) as (block_M, block_N, split, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            for step in T.Pipelined(steps, num_stages=stages):
                k = (split * steps + step) * tile_K
                T.copy(A[block_M * tile_M, k], a)
                T.copy(B[k, block_N * tile_N], b)
                T.gemm(a, b, c, initC=(step == 0))
            T.atomic_add(C[block_M * tile_M, block_N * tile_N], c)

    return split_k_gemm


SHAPES = [(256, 256, 8192), (100, 130, 1000), (33, 65, 129)]


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    factors = rng.integers(-3, 4, (M, K)).astype(np.float16), rng.integers(-3, 4, (K, N)).astype(np.float16)
    return *factors, np.zeros((M, N), np.float32)  # initial value of C


def expected(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> Any:
    return a.astype(np.float32) @ b.astype(np.float32)


if __name__ == "__main__":
    for M, N, K in SHAPES:
        a, b, c = inputs(M, N, K)
        split_k_gemm(M, N, K)(a, b, c)
        np.testing.assert_array_equal(c, expected(a, b, c))
    one, six = (split_k_gemm(256, 256, 8192, splits=splits).estimate().time_us for splits in (1, 6))
    assert six < one / 2
    print("PASS")
