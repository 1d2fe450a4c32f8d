"""C = A @ B.T with A in int8 and B in packed int4: the Vector cores unpack tiles of B while the Cube core multiplies
others.

B is offset binary, two numbers in a byte: for each ``tile_K`` numbers of a row, byte ``j`` has number ``j`` in its low and
number ``tile_K / 2 + j`` in its high half.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T

TILE_K = 256


@tilelang.jit(out_idx=[-1], target="npuir")
def w4a8_gemm(M, N, K, tile_M=128, tile_N=128, tile_K=TILE_K, stages=2):
    columns, packed_K = T.ceildiv(N, tile_N), tile_K // 2

    @T.prim_func
    def w4a8_gemm(
        A: T.Tensor((M, K), "int8"),
        B: T.Tensor((N, K // 2), "uint8"),
        C: T.Tensor((M, N), "int32"),
    ):
        with T.Kernel(T.ceildiv(M, tile_M) * columns, is_npu=True) as (block, _):
            row = block // columns * tile_M
            column = block % columns * tile_N

            a = T.alloc_shared((tile_M, tile_K), "int8")
            b = T.alloc_shared((tile_N, tile_K), "int8")
            packed = T.alloc_shared((tile_N, packed_K), "uint8")
            c = T.alloc_fragment((tile_M, tile_N), "int32")

            for k in T.Pipelined(K // tile_K, num_stages=stages):
                T.copy(A[row, k * tile_K], a)
                T.copy(B[column, k * packed_K], packed)
                for i, j in T.Parallel(tile_N, packed_K):
                    b[i, j] = T.cast(packed[i, j] & 15, "int8") - T.cast(8, "int8")
                    b[i, packed_K + j] = T.cast(packed[i, j] >> 4, "int8") - T.cast(8, "int8")
                T.gemm(a, b, c, initC=(k == 0), b_transpose=True)
            T.copy(c, C[row, column])

    return w4a8_gemm


SHAPES = [(256, 256, 1024), (200, 150, 512)]


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return rng.integers(-128, 128, (M, K), dtype=np.int8), rng.integers(0, 256, (N, K // 2), dtype=np.uint8)


def expected(a: NDArray[Any], packed: NDArray[Any]) -> Any:
    tiles = packed.reshape(len(packed), -1, TILE_K // 2).astype(np.int32)
    b = np.concatenate([(tiles & 15) - 8, (tiles >> 4) - 8], axis=2).reshape(len(packed), -1)
    return a.astype(np.int32) @ b.T


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = w4a8_gemm(*shape)(*arrays)
        np.testing.assert_array_equal(out, expected(*arrays))
    print("PASS")
