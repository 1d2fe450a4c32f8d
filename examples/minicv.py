"""exp(A @ B) in one body: the compiler assigns the product to the Cube core and exp to the Vector cores, and passes each
tile between them through a ring buffer in global memory, with a flag for each direction.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def exp_of_product(M, N, K, tile_M=64, tile_N=128, blocks=24, stages=2):
    columns = T.ceildiv(N, tile_N)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def exp_of_product(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        D: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            a = T.alloc_shared((tile_M, K), "float16")
            b = T.alloc_shared((K, tile_N), "float16")
            product = T.alloc_fragment((tile_M, tile_N), "float32")
            result = T.alloc_fragment((tile_M, tile_N), "float32")

            for i in T.Pipelined(T.ceildiv(tiles - block, blocks), num_stages=stages):
                row = (i * blocks + block) // columns * tile_M
                column = (i * blocks + block) % columns * tile_N
                T.copy(A[row, 0], a)
                T.copy(B[0, column], b)
                T.gemm(a, b, product, initC=True)
                T.exp(product, result)
                T.copy(result, D[row, column])

    return exp_of_product


SHAPES = [(512, 512, 128), (250, 200, 100)]


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return tuple((rng.standard_normal(shape) * 0.2).astype(np.float16) for shape in ((M, K), (K, N)))


def expected(a: NDArray[Any], b: NDArray[Any]) -> Any:
    return np.exp(a.astype(np.float32) @ b.astype(np.float32))


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = exp_of_product(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=2e-3, atol=1e-3)
    print("PASS")
