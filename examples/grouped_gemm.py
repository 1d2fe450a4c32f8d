"""Grouped GEMM, as in a mixture of experts: rows are sorted by expert, and expert g has rows ``Offsets[g]`` to ``Offsets[g
+ 1]``.

The number of rows of an expert is known only at run time. A block finds its expert in the offsets; the last tile of an
expert stores only the rows of this expert.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def grouped_gemm(rows, groups, N, K, tile_M=128, tile_N=256, tile_K=64, stages=2):
    columns = T.ceildiv(N, tile_N)
    row_tiles = T.ceildiv(rows, tile_M) + groups - 1  # an upper bound

    @T.prim_func
    def grouped_gemm(
        A: T.Tensor((rows, K), "float16"),
        B: T.Tensor((groups, K, N), "float16"),
        Offsets: T.Tensor((groups + 1,), "int32"),
        C: T.Tensor((rows, N), "float16"),
    ):
        with T.Kernel(row_tiles * columns, is_npu=True) as (block, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")

            column = block % columns * tile_N
            group = T.alloc_var("int32", init=0)
            first = T.alloc_var("int32", init=0)  # number of tiles of the previous experts
            seen = T.alloc_var("int32", init=0)
            for g in T.serial(groups):
                if seen <= block // columns:
                    group = g
                    first = seen
                seen = seen + T.ceildiv(Offsets[g + 1] - Offsets[g], tile_M)
            row = Offsets[group] + (block // columns - first) * tile_M
            count = T.min(Offsets[group + 1] - row, tile_M)
            if count > 0:
                for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=stages):
                    T.copy(A[row, k * tile_K], a)
                    T.copy(B[group, k * tile_K, column], b)
                    T.gemm(a, b, c, initC=(k == 0))
                T.copy(c[:count, :], C[row : row + count, column : column + tile_N])

    return grouped_gemm


SHAPES = [(512, 4, 512, 256), (133, 2, 300, 200)]


def inputs(rows: int, groups: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.sort(rng.integers(0, rows, groups - 1)), [rows]]).astype(np.int32)
    return rng.standard_normal((rows, K)).astype(np.float16), rng.standard_normal((groups, K, N)).astype(np.float16), offsets


def expected(a: NDArray[Any], b: NDArray[Any], offsets: NDArray[Any]) -> Any:
    parts = [a[first:last].astype(np.float32) @ of.astype(np.float32)
             for of, first, last in zip(b, offsets[:-1], offsets[1:], strict=True)]
    return np.concatenate(parts)


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        c = grouped_gemm(*shape)(*arrays)
        np.testing.assert_allclose(c.astype(np.float32), expected(*arrays), rtol=2e-3, atol=2e-2)
    print("PASS")
