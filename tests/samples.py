"""Small kernels that the tests of the runtime run: Vector work on rows, with and without a symbolic size, and products."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T

SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}


@tilelang.jit(out_idx=[-1], target="ascendc", pass_configs=SYNC)
def doubled(rows: int, columns: int, dtype: str = "float32") -> Any:
    """B = A + A; 16 rows a block."""

    @T.prim_func
    def doubled(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(T.ceildiv(rows, 16), is_npu=True) as (block, half):
            a = T.alloc_ub((8, columns), dtype)
            row = block * 16 + half * 8
            T.copy(A[row, 0], a)
            T.tile.add(a, a, a)
            T.copy(a, B[row, 0])

    return doubled


def symbolic_rows() -> Any:
    """B = A + A with as many rows as the call brings."""
    M = T.symbolic("M")

    @T.prim_func
    def any_rows(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
        with T.Kernel(T.ceildiv(M, 16), is_npu=True) as (block, half):
            a = T.alloc_ub((8, 64), "float32")
            row = block * 16 + half * 8
            T.copy(A[row, 0], a)
            T.tile.add(a, a, a)
            T.copy(a, B[row, 0])

    return any_rows


def scaled() -> Any:
    """B = A * factor, written to the caller's B."""

    @T.prim_func
    def scaled(A: T.Tensor((16, 64), "float32"), factor: T.float32, B: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((8, 64), "float32")
            T.copy(A[half * 8, 0], a)
            T.tile.mul(a, a, factor)
            T.copy(a, B[half * 8, 0])

    return scaled


def product(M: int = 128, N: int = 64, K: int = 64) -> Any:
    """C = A @ B in one block."""

    @T.prim_func
    def product(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_shared((M, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            T.copy(c, C)

    return product


@tilelang.jit(target="npuir", out_idx=[-1], sanitize=True)
def split_product(M: int, N: int, K: int, parts: int, block: int = 32, dtype: str = "float16") -> Any:
    """``C = A @ B``: each block of the first launch multiplies a part of K, the second adds the parts up."""
    depth = -(-K // parts)

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), P: T.Tensor((parts, M, N), "float32"),
             C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), parts, threads=128) as (bx, by, bz):
            a = T.alloc_shared((block, 16), dtype)
            b = T.alloc_shared((16, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(depth, 16), num_stages=2):
                T.copy(A[by * block, bz * depth + k * 16], a)
                T.copy(B[bz * depth + k * 16, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, P[bz, by * block:(by + 1) * block, bx * block:(bx + 1) * block])
        with T.Kernel(T.ceildiv(M, 8), threads=128) as row:
            total = T.alloc_fragment((8, N), "float32")
            part = T.alloc_fragment((8, N), "float32")
            T.clear(total)
            for s in T.serial(parts):
                T.copy(P[s, row * 8:(row + 1) * 8, :], part)
                for i, j in T.Parallel(8, N):
                    total[i, j] += part[i, j]
            T.copy(total, C[row * 8, 0])

    return main
