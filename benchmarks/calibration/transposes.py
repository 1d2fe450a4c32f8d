"""Transposes by blocks of 16 x 16 and copies row by row on 20 cores, as in the first version of a permutation kernel."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

SIDE = 16
"""Rows and columns of a block."""


def transposed(batch: int, rows: int, columns: int, *, cores: int = 20, chip: str) -> Any:
    """Each core loads, transposes and stores a range of blocks of float16, one after the other, through two slots."""
    across, down = columns // SIDE, rows // SIDE
    blocks = batch * across * down
    share = -(-blocks // cores)

    @T.prim_func
    def transpose(X: T.Tensor((batch * rows, columns), "float16"), Y: T.Tensor((batch * columns, rows), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((2, SIDE, SIDE), "float16")
            y = T.alloc_ub((2, SIDE, SIDE), "float16")
            with T.Scope("V"):
                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                for i in T.serial(T.min(share, blocks - core * share)):
                    block = core * share + i
                    matrix = block // (across * down)
                    row = block % (across * down) // across * SIDE
                    column = block % across * SIDE
                    slot = i % 2
                    T.wait_flag("v", "mte2", slot)
                    T.copy(X[matrix * rows + row, column], x[slot, :, :])
                    T.set_flag("mte2", "v", slot)
                    T.wait_flag("mte2", "v", slot)
                    T.wait_flag("mte3", "v", slot)
                    T.tile.transpose(y[slot, :, :], x[slot, :, :])
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("v", "mte3", slot)
                    T.wait_flag("v", "mte3", slot)
                    T.copy(y[slot, :, :], Y[matrix * columns + column, row])
                    T.set_flag("mte3", "v", slot)
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

    return tilelang.compile(transpose, target="ascendc", chip=chip)


def copied(rows: int, length: int, dtype: str, *, cores: int = 20, chip: str) -> Any:
    """Each core copies a range of rows, one after the other, through two slots."""
    share = -(-rows // cores)

    @T.prim_func
    def copy(X: T.Tensor((rows, length), dtype), Y: T.Tensor((rows, length), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((2, 1, length), dtype)
            with T.Scope("V"):
                for slot in range(2):
                    T.set_flag("mte3", "mte2", slot)
                for i in T.serial(T.min(share, rows - core * share)):
                    row = core * share + i
                    T.wait_flag("mte3", "mte2", i % 2)
                    T.copy(X[row, 0], x[i % 2, :, :])
                    T.set_flag("mte2", "mte3", i % 2)
                    T.wait_flag("mte2", "mte3", i % 2)
                    T.copy(x[i % 2, :, :], Y[row, 0])
                    T.set_flag("mte3", "mte2", i % 2)
                for slot in range(2):
                    T.wait_flag("mte3", "mte2", slot)

    return tilelang.compile(copy, target="ascendc", chip=chip)


B4 = "910B4-1"
CASES = {
    **{f"transpose_{batch}_{rows}_{columns}": Case(lambda _count, b=batch, r=rows, c=columns: transposed(b, r, c, chip=B4))
       for batch, rows, columns in ((1, 2048, 2048), (1, 8192, 64), (1, 64, 8192), (8, 256, 256))},
    "copy_rows_2048_int8": Case(lambda _count: copied(2048, 2048, "int8", chip=B4)),
    "copy_rows_256_fp16": Case(lambda _count: copied(2048, 256, "float16", chip=B4)),
}
