"""A fused grouped GEMM of int8: the Vector cores scale the products by row and column, apply gelu, and convert to float16."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

CORES = 24
TILE_M, TILE_N, STEP = 128, 256, 128
"""Rows and columns of a product, and the depth of an MMAD of int8."""
PART_N = 1024
"""Columns that a core processes at a time, of one tile of rows."""
ROWS = 24
"""Rows that a Vector core processes at once."""


def grouped(rows: int, depth: int, columns: int, groups: int, *, vectors: int, cores: int = CORES, chip: str) -> Any:
    """``gelu(x @ weight[group] * scale[group] * token_scale)``; the rows of a group are contiguous.

    The weights are stored with rows along K, while the source has fractals in GM: the bytes and the lines are the same.

    Args:
        vectors: the number of Vector cores of a block in use, 1 or 2.
    """
    group_rows = rows // groups
    parts = columns // PART_N
    blocks = rows // TILE_M * parts
    last = TILE_M % ROWS
    done, taken = 0, 1

    @T.macro
    def finish(product_of, token_scale, Y, loaded, stored, by_column, by_row, x, spread, y, core, row, column, side, first,
               slot, count):
        T.wait_flag("v", "mte2", slot)
        T.copy(product_of[core, first : first + count, :], loaded[slot, 0:count, :])
        T.copy(token_scale[row + first : row + first + count, :], by_row[slot, 0:count, :])
        T.set_flag("mte2", "v", slot)
        T.wait_flag("mte2", "v", slot)
        T.copy(loaded[slot, 0:count, :], x[0:count, :])
        T.tile.broadcast(spread[0:count, :], by_row[slot, 0:count, :])
        T.set_flag("v", "mte2", slot)
        T.pipe_barrier("v")
        T.tile.mul(x[0:count, :], x[0:count, :], by_column[side, :, :])
        T.pipe_barrier("v")
        T.tile.mul(x[0:count, :], x[0:count, :], spread[0:count, :])
        T.pipe_barrier("v")
        T.tile.mul(y[0:count, :], x[0:count, :], -1.702)
        T.pipe_barrier("v")
        T.tile.exp(y[0:count, :], y[0:count, :])
        T.pipe_barrier("v")
        T.tile.add(y[0:count, :], y[0:count, :], 1.0)
        T.pipe_barrier("v")
        T.tile.div(y[0:count, :], x[0:count, :], y[0:count, :])
        T.pipe_barrier("v")
        T.wait_flag("mte3", "v", slot)
        T.copy(y[0:count, :], stored[slot, 0:count, :])
        T.set_flag("v", "mte3", slot)
        T.wait_flag("v", "mte3", slot)
        T.copy(stored[slot, 0:count, :], Y[row + first : row + first + count, column : column + TILE_N])
        T.set_flag("mte3", "v", slot)

    @T.prim_func
    def grouped(
        X: T.Tensor((rows, depth), "int8"),
        W: T.Tensor((groups, columns, depth), "int8"),
        scale: T.Tensor((groups, columns), "float32"),
        token_scale: T.Tensor((rows, 1), "float32"),
        Y: T.Tensor((rows, columns), "float16"),
        product_of: T.Tensor((cores, TILE_M, TILE_N), "int32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            a = T.alloc_L1((2, TILE_M, depth), "int8")
            b = T.alloc_L1((2, TILE_N, depth // 2), "int8")
            left = T.alloc_L0A((2, TILE_M, STEP), "int8")
            right = T.alloc_L0B((2, STEP, TILE_N), "int8")
            c = T.alloc_L0C((TILE_M, TILE_N), "int32")

            with T.Scope("C"):
                for slot in range(2):
                    T.set_flag("mte1", "mte2", slot)
                    T.set_flag("mte1", "mte2", 2 + slot)
                    T.set_flag("m", "mte1", slot)
                T.set_flag("fix", "m", 0)
                for turn in T.serial(T.ceildiv(blocks - core, cores)):
                    block = core + turn * cores
                    row = block // parts * TILE_M
                    group = row // group_rows
                    T.wait_flag("mte1", "mte2", turn % 2)
                    T.copy(X[row, 0], a[turn % 2, :, :])
                    for n in T.serial(PART_N // TILE_N):
                        column = block % parts * PART_N + n * TILE_N
                        T.wait_flag("fix", "m", 0)
                        for k in T.serial(2):
                            T.wait_flag("mte1", "mte2", 2 + k)
                            T.copy(W[group, column : column + TILE_N, k * (depth // 2) : (k + 1) * (depth // 2)], b[k, :, :])
                            T.set_flag("mte2", "mte1", k)
                            T.wait_flag("mte2", "mte1", k)
                            for i in T.serial(depth // 2 // STEP):
                                half = i % 2
                                at = k * (depth // 2) + i * STEP
                                T.wait_flag("m", "mte1", half)
                                T.copy(a[turn % 2, :, at : at + STEP], left[half, :, :])
                                T.copy(b[k, :, i * STEP : (i + 1) * STEP], right[half, :, :], transpose=True)
                                T.set_flag("mte1", "m", half)
                                T.wait_flag("mte1", "m", half)
                                T.mma(left[half, :, :], right[half, :, :], c, init=T.And(k == 0, i == 0))
                                T.set_flag("m", "mte1", half)
                            T.set_flag("mte1", "mte2", 2 + k)
                        T.set_flag("m", "fix", 0)
                        T.wait_flag("m", "fix", 0)
                        if T.Or(turn > 0, n > 0):
                            T.wait_cross_flag(taken)
                        T.copy(c, product_of[core, :, :])
                        T.set_flag("fix", "m", 0)
                        T.set_cross_flag("fix", done)
                    T.set_flag("mte1", "mte2", turn % 2)
                for slot in range(2):
                    T.wait_flag("mte1", "mte2", slot)
                    T.wait_flag("mte1", "mte2", 2 + slot)
                    T.wait_flag("m", "mte1", slot)
                T.wait_flag("fix", "m", 0)
                T.wait_cross_flag(taken)

            loaded = T.alloc_ub((2, ROWS, TILE_N), "int32")
            stored = T.alloc_ub((2, ROWS, TILE_N), "float16")
            by_column = T.alloc_ub((2, 1, TILE_N), "float32")
            by_row = T.alloc_ub((2, ROWS, 1), "float32")
            x = T.alloc_ub((ROWS, TILE_N), "float32")
            spread = T.alloc_ub((ROWS, TILE_N), "float32")
            y = T.alloc_ub((ROWS, TILE_N), "float32")

            with T.Scope("V"):
                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("v", "mte2", 2 + slot)
                    T.set_flag("mte3", "v", slot)
                for turn in T.serial(T.ceildiv(blocks - core, cores)):
                    block = core + turn * cores
                    row = block // parts * TILE_M
                    for n in T.serial(PART_N // TILE_N):
                        column = block % parts * PART_N + n * TILE_N
                        side = n % 2
                        T.wait_flag("v", "mte2", 2 + side)
                        group = row // group_rows
                        T.copy(scale[group : group + 1, column : column + TILE_N], by_column[side, :, :])
                        T.wait_cross_flag(done)
                        for piece in T.serial(TILE_M // ROWS):
                            if T.And((piece + 1) % vectors == vid % vectors, vid < vectors):
                                finish(product_of, token_scale, Y, loaded, stored, by_column, by_row, x, spread, y, core, row,
                                       column, side, piece * ROWS, piece // vectors % 2, ROWS)
                        if vid == 0:  # the sixth piece
                            finish(product_of, token_scale, Y, loaded, stored, by_column, by_row, x, spread, y, core, row,
                                   column, side, TILE_M - last, TILE_M // ROWS // vectors % 2, last)
                        T.set_cross_flag("mte2", taken)
                        T.set_flag("v", "mte2", 2 + side)
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("v", "mte2", 2 + slot)
                    T.wait_flag("mte3", "v", slot)

    return tilelang.compile(grouped, target="ascendc", chip=chip, workspace_idx=[5])


CASES = {f"grouped_{vectors}": Case(lambda _count, vectors=vectors: grouped(8192, 1024, 8192, 8, vectors=vectors, chip="910B1"))
         for vectors in (1, 2)}
