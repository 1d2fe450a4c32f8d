"""Reductions as in Triton programs: a block for each program, often more blocks than cores, tiles of rows and columns.

The loops have one slot, since the measured times show that the compiler of these programs did not overlap loads: the modelled
    sum of
loads, computation and launch is 0.8 to 1.0 of the measured time in each of the five kinds of loops; with overlap it is 0.5 to
0.7.
"""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

START = {"max": -3.4e38, "min": 3.4e38, "sum": 0.0, "prod": 1.0}
"""The neutral element of each reduction."""
JOIN = {"max": T.vmax, "min": T.vmin, "sum": T.vadd, "prod": T.vmul}
"""The operation that combines two tiles element by element."""


def along_rows(rows: int, length: int, tile: tuple[int, int], how: str, *, chip: str) -> Any:
    """Reduces each row of float32: a block processes the rows of a tile, combines the tiles of its columns element by element,
    and then reduces the resulting tile."""
    tall, wide = tile
    join = JOIN[how]

    @T.prim_func
    def reduce(X: T.Tensor((rows, length), "float32"), Y: T.Tensor((rows, 1), "float32")):
        with T.Kernel(rows // tall, is_npu=True) as (block, _):
            x = T.alloc_ub((tall, wide), "float32")
            joined = T.alloc_ub((tall, wide), "float32")
            y = T.alloc_ub((tall, 1), "float32")
            T.vbrc(START[how], joined)
            for i in T.Pipelined(length // wide, num_stages=1):
                T.copy(X[block * tall, i * wide], x)
                join(x, joined, joined)
            T.reduce(joined, y, dims=[1], reduce_mode=how)
            T.copy(y, Y[block * tall, 0])

    return tilelang.compile(reduce, target="npuir", chip=chip)


def mean_of_rows(rows: int, length: int, own: int, tile: tuple[int, int], *, chip: str) -> Any:
    """The mean of each row of float32: a block processes ``own`` rows, a tile at a time, reduces each tile of columns, and
    adds the results."""
    tall, wide = tile

    @T.prim_func
    def mean(X: T.Tensor((rows, length), "float32"), Y: T.Tensor((rows, 1), "float32")):
        with T.Kernel(rows // own, is_npu=True) as (block, _):
            x = T.alloc_ub((tall, wide), "float32")
            part = T.alloc_ub((tall, 1), "float32")
            total = T.alloc_ub((tall, 1), "float32")
            for m in T.serial(own // tall):
                row = block * own + m * tall
                T.vbrc(0.0, total)
                for i in T.Pipelined(length // wide, num_stages=1):
                    T.copy(X[row, i * wide], x)
                    T.reduce(x, part, dims=[1], reduce_mode="sum")
                    T.vadd(total, part, total)
                T.vmul(total, 1.0 / length, total)
                T.copy(total, Y[row, 0])

    return tilelang.compile(mean, target="npuir", chip=chip)


def along_columns(rows: int, length: int, tile: tuple[int, int], how: str, *, chip: str) -> Any:
    """Reduces each column of float32: a block processes the columns of a tile, combines the tiles of its rows element by
    element, and then reduces the resulting tile."""
    tall, wide = tile
    join = JOIN[how]

    @T.prim_func
    def reduce(X: T.Tensor((rows, length), "float32"), Y: T.Tensor((1, length), "float32")):
        with T.Kernel(length // wide, is_npu=True) as (block, _):
            x = T.alloc_ub((tall, wide), "float32")
            joined = T.alloc_ub((tall, wide), "float32")
            y = T.alloc_ub((1, wide), "float32")
            T.vbrc(START[how], joined)
            for i in T.Pipelined(rows // tall, num_stages=1):
                T.copy(X[i * tall, block * wide], x)
                join(x, joined, joined)
            T.reduce(joined, y, dims=[0], reduce_mode=how)
            T.copy(y, Y[0, block * wide])

    return tilelang.compile(reduce, target="npuir", chip=chip)


def least(count: int, own: int, part: int, *, chip: str) -> Any:
    """The minimum of a vector of float32: a block processes ``own`` elements, a part at a time, and combines its result with
    those of other blocks by an atomic operation. Here it is an atomic addition, which moves the same bytes."""
    times = own // part

    @T.prim_func
    def least(X: T.Tensor((1, count), "float32"), Y: T.Tensor((1, 1), "float32")):
        with T.Kernel(count // own, is_npu=True) as (block, _):
            x = T.alloc_ub((1, part), "float32")
            y = T.alloc_ub((1, 1), "float32")
            if times == 1:
                T.copy(X[0, block * own], x)
                T.reduce(x, y, dims=[1], reduce_mode="min")
            else:
                joined = T.alloc_ub((1, part), "float32")
                T.vbrc(START["min"], joined)
                for i in T.Pipelined(times, num_stages=1):
                    T.copy(X[0, block * own + i * part], x)
                    T.vmin(joined, x, joined)
                T.reduce(joined, y, dims=[1], reduce_mode="min")
            T.atomic_add(Y[0, 0], y)

    return tilelang.compile(least, target="npuir", chip=chip)


def minus_column(rows: int, length: int, blocks: int, wide: int, *, chip: str) -> Any:
    """``z = x - y`` of float16, with one number of y for each row: a block processes a range of rows, a part of a row at a
    time."""
    own = -(-rows // blocks)

    @T.prim_func
    def minus(X: T.Tensor((rows, length), "float16"), Y: T.Tensor((rows, 1), "float16"),
              Z: T.Tensor((rows, length), "float16")):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            x = T.alloc_ub((1, wide), "float16")
            y = T.alloc_ub((1, 1), "float16")
            for r in T.serial(T.min(own, rows - block * own)):
                row = block * own + r
                for i in T.Pipelined(length // wide, num_stages=1):
                    T.copy(X[row, i * wide], x)
                    T.copy(Y[row, 0], y)
                    T.vsub(x, y, x)
                    T.copy(x, Z[row, i * wide])

    return tilelang.compile(minus, target="npuir", chip=chip)


def sigmoids(rows: int, length: int, own: int, tile: tuple[int, int], *, chip: str) -> Any:
    """The sum of ``sigmoid(2 * x + y)`` of each row of float32, with y one row: a block processes ``own`` rows, a tile at a
    time, combines the tiles of its columns element by element, and then reduces the resulting tile."""
    tall, wide = tile

    @T.prim_func
    def sigmoids(X: T.Tensor((rows, length), "float32"), Y: T.Tensor((1, length), "float32"),
                 Z: T.Tensor((rows, 1), "float32")):
        with T.Kernel(rows // own, is_npu=True) as (block, _):
            x = T.alloc_ub((tall, wide), "float32")
            y = T.alloc_ub((1, wide), "float32")
            joined = T.alloc_ub((tall, wide), "float32")
            z = T.alloc_ub((tall, 1), "float32")
            for m in T.serial(own // tall):
                row = block * own + m * tall
                T.vbrc(0.0, joined)
                for i in T.Pipelined(length // wide, num_stages=1):
                    T.copy(X[row, i * wide], x)
                    T.copy(Y[0, i * wide], y)
                    T.vmul(x, 2.0, x)
                    T.vadd(x, y, x)
                    T.vsigmoid(x, x)
                    T.vadd(joined, x, joined)
                T.reduce(joined, z, dims=[1], reduce_mode="sum")
                T.copy(z, Z[row, 0])

    return tilelang.compile(sigmoids, target="npuir", chip=chip)


def weighted(rows: int, length: int, own: int, tile: tuple[int, int], *, chip: str) -> Any:
    """``x * w``, ``w * g`` and the sum of ``x * g`` of each row of float32: a block processes ``own`` rows, a tile at a
    time."""
    tall, wide = tile

    @T.prim_func
    def weighted(X: T.Tensor((rows, length), "float32"), W: T.Tensor((rows, length), "float32"),
                 G: T.Tensor((rows, length), "float32"), XW: T.Tensor((rows, length), "float32"),
                 GW: T.Tensor((rows, length), "float32"), S: T.Tensor((rows, 1), "float32")):
        with T.Kernel(rows // own, is_npu=True) as (block, _):
            x = T.alloc_ub((tall, wide), "float32")
            w = T.alloc_ub((tall, wide), "float32")
            g = T.alloc_ub((tall, wide), "float32")
            xw = T.alloc_ub((tall, wide), "float32")
            part = T.alloc_ub((tall, 1), "float32")
            total = T.alloc_ub((tall, 1), "float32")
            for m in T.serial(own // tall):
                row = block * own + m * tall
                T.vbrc(0.0, total)
                for i in T.Pipelined(length // wide, num_stages=1):
                    T.copy(X[row, i * wide], x)
                    T.copy(W[row, i * wide], w)
                    T.copy(G[row, i * wide], g)
                    T.vmul(x, w, xw)
                    T.vmul(w, g, w)
                    T.copy(xw, XW[row, i * wide])
                    T.copy(w, GW[row, i * wide])
                    T.vmul(x, g, x)
                    T.reduce(x, part, dims=[1], reduce_mode="sum")
                    T.vadd(total, part, total)
                T.copy(total, S[row, 0])

    return tilelang.compile(weighted, target="npuir", chip=chip)


def squares(rows: int, length: int, dtype: str, *, cores: int = 40, chip: str) -> Any:
    """The sum of squares of each row, row by row: each core has a range of rows; loaded and stored tiles have two slots."""
    share = -(-rows // cores)
    half = dtype == "float16"

    @T.prim_func
    def squares(X: T.Tensor((rows, length), dtype), Y: T.Tensor((rows, 1), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((2, 1, length), dtype)
            wide = T.alloc_ub((1, length), "float32")
            total = T.alloc_ub((1, 8), "float32")
            y = T.alloc_ub((2, 1, 16), dtype)
            with T.Scope("V"):
                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                for i in T.serial(T.min(share, rows - core * share)):
                    row = core * share + i
                    slot = i % 2
                    T.wait_flag("v", "mte2", slot)
                    T.copy(X[row, 0], x[slot, :, :])
                    T.set_flag("mte2", "v", slot)
                    T.wait_flag("mte2", "v", slot)
                    T.wait_flag("mte3", "v", slot)
                    if half:
                        T.copy(x[slot, :, :], wide)
                        T.pipe_barrier("v")
                        T.tile.mul(wide, wide, wide)
                        T.pipe_barrier("v")
                        T.reduce_sum(wide, total[:, 0:1], dim=-1)
                        T.pipe_barrier("v")
                        T.copy(total, y[slot, :, 0:8])
                    else:
                        T.tile.mul(x[slot, :, :], x[slot, :, :], x[slot, :, :])
                        T.pipe_barrier("v")
                        T.reduce_sum(x[slot, :, :], y[slot, :, 0:1], dim=-1)
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("v", "mte3", slot)
                    T.wait_flag("v", "mte3", slot)
                    T.copy(y[slot, :, 0:1], Y[row : row + 1, :])
                    T.set_flag("mte3", "v", slot)
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

    return tilelang.compile(squares, target="ascendc", chip=chip)


B4 = "910B4"
CASES = {
    **{f"amax_16_b{16 // tall}": Case(lambda _count, tall=tall: along_rows(16, 16, (tall, 16), "max", chip=B4))
       for tall in (16, 1)},
    **{f"amax_2048_b{2048 // tall}": Case(lambda _count, tall=tall, wide=wide:
                                          along_rows(2048, 8192, (tall, wide), "max", chip=B4))
       for tall, wide in ((64, 256), (32, 512))},
    **{f"amin_2048_b{2048 // tall}": Case(lambda _count, tall=tall, wide=wide:
                                          along_rows(2048, 262144, (tall, wide), "min", chip=B4))
       for tall, wide in ((8, 2048), (4, 4096), (2, 8192), (1, 16384))},
    **{f"sum_65536_b{65536 // tall}": Case(lambda _count, tall=tall, wide=wide:
                                           along_rows(65536, 2048, (tall, wide), "sum", chip=B4))
       for tall, wide in ((64, 256), (32, 512), (16, 1024), (8, 2048))},
    **{f"amin_64k_b{65536 // own}": Case(lambda _count, own=own: least(65536, own, own, chip=B4))
       for own in (16384, 8192, 2048, 512)},
    **{f"amin_4m_b{(1 << 22) // own}_{part}": Case(lambda _count, own=own, part=part: least(1 << 22, own, part, chip=B4))
       for own, part in ((262144, 16384), (131072, 16384), (131072, 8192))},
    **{f"mean_rows_b{1000 // own}": Case(lambda _count, own=own, tall=tall: mean_of_rows(1000, 8192, own, (tall, 512), chip=B4))
       for own, tall in ((50, 25), (25, 25), (20, 20))},
    **{f"mean_columns_b{4096 // wide}": Case(lambda _count, tall=tall, wide=wide:
                                             along_columns(1024, 4096, (tall, wide), "sum", chip=B4))
       for tall, wide in ((64, 256), (128, 128), (256, 64), (512, 32))},
    **{f"prod_b{2048 // wide}": Case(lambda _count, tall=tall, wide=wide:
                                     along_columns(16, 2048, (tall, wide), "prod", chip=B4))
       for tall, wide in ((8, 2048), (16, 1024), (16, 128), (16, 64), (16, 32))},
    **{f"sigmoids_b{1000 // own}": Case(lambda _count, own=own, tall=tall: sigmoids(1000, 8192, own, (tall, 256), chip=B4))
       for own, tall in ((50, 25), (25, 25), (20, 20))},
    **{f"weighted_b{16384 // own}": Case(lambda _count, own=own, tile=tile: weighted(16384, 2048, own, tile, chip=B4))
       for own, tile in ((32, (32, 128)), (16, (16, 256)), (8, (8, 512)), (512, (8, 512)))},
    **{f"square_sum_{dtype}": Case(lambda _count, dtype=dtype: squares(2024, 3000, dtype, chip="910B4-1"))
       for dtype in ("float16", "float32")},
    "minus_column_b40": Case(lambda _count: minus_column(2048, 131072, 40, 16384, chip=B4)),
    "minus_column_b256": Case(lambda _count: minus_column(2048, 131072, 256, 16384, chip=B4)),
}
