"""Element-wise kernels as in their sources: comparisons with one operand that stays on chip, polar numbers of a periodic
angle."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

TILE_OF = {"float16": 9216, "float32": 5120, "bfloat16": 6144, "int8": 10240}
"""Elements of a tile of the comparisons, by element type."""


def greater(rows: int, length: int, dtype: str, kept: str = "", *, cores: int, chip: str) -> Any:
    """``z = x > y`` as bytes 0 and 1. Each core has a range of rows, in tiles of at most ``TILE_OF`` elements; loaded and
    stored tiles have two slots.

    Args:
        kept: ``row`` if ``y`` is one row, which each core loads once and compares with each row separately; ``column``
            if it is one number for each row, which the scalar unit reads from UB.
    """
    wide = {"bfloat16": "float32", "int8": "float16"}.get(dtype, dtype)
    if kept:
        height = TILE_OF[dtype] // length
        tile = height * length
        share = -(-rows // cores)
        total = rows
    else:
        height, tile = 1, TILE_OF[dtype]
        total = rows * length
        share = -(-total // cores)
    own = share if kept != "column" else -(-share // 16) * 16
    pieces = -(-share // (height if kept else tile))
    other = {"row": (length,), "column": (rows + 16,)}.get(kept, (rows * length,))

    @T.macro
    def expand(mask, chosen, one, zero, z, slot):
        T.pipe_barrier("v")
        T.tile.select(chosen, mask, one, zero, "VSEL_TENSOR_TENSOR_MODE")
        T.pipe_barrier("v")
        T.tile.cast(z[slot, :], chosen, "CAST_NONE")

    @T.prim_func
    def greater(X: T.Tensor((rows * length,), dtype), Y: T.Tensor(other, dtype), Z: T.Tensor((rows * length,), "uint8")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((2, tile), dtype)
            y = T.alloc_ub((2, tile) if not kept else (length,) if kept == "row" else (own,), dtype)
            z = T.alloc_ub((2, tile), "uint8")
            mask = T.alloc_ub((tile // 8,), "uint8")
            chosen = T.alloc_ub((tile,), "float16")
            zero = T.alloc_ub((tile,), "float16")
            one = T.alloc_ub((tile,), "float16")
            with T.Scope("V"):
                T.tile.fill(zero, 0.0)
                T.tile.fill(one, 1.0)
                if kept:
                    T.copy(Y[0:length] if kept == "row" else Y[core * share : core * share + own], y)
                    T.set_flag("mte2", "v", 2)
                    T.wait_flag("mte2", "v", 2)
                    if kept == "column":
                        T.set_flag("mte2", "s", 2)
                        T.wait_flag("mte2", "s", 2)
                if wide != dtype:
                    x_wide = T.alloc_ub((tile,), wide)
                    y_wide = T.alloc_ub((tile,), wide)
                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                for i in T.serial(pieces):
                    slot = i % 2
                    if kept:
                        count = T.min(height, T.min(share, total - core * share) - i * height)
                        first = (core * share + i * height) * length
                        size = count * length
                    else:
                        count = 1
                        first = core * share + i * tile
                        size = T.min(tile, T.min(share, total - core * share) - i * tile)
                    T.wait_flag("v", "mte2", slot)
                    T.copy(X[first : first + size], x[slot, 0:size])
                    if not kept:
                        T.copy(Y[first : first + size], y[slot, 0:size])
                    T.set_flag("mte2", "v", slot)
                    T.wait_flag("mte2", "v", slot)
                    T.wait_flag("mte3", "v", slot)
                    if kept == "row":
                        for r in T.serial(count):
                            place = r * length
                            T.tile.compare(mask[place // 8 : (place + length) // 8], x[slot, place : place + length], y, "GT")
                            T.pipe_barrier("v")
                            T.tile.select(chosen[place : place + length], mask[place // 8 : (place + length) // 8],
                                          one[0:length], zero[0:length], "VSEL_TENSOR_TENSOR_MODE")
                            T.pipe_barrier("v")
                            T.tile.cast(z[slot, place : place + length], chosen[place : place + length], "CAST_NONE")
                            T.pipe_barrier("v")
                    elif kept == "column":
                        for r in T.serial(count):
                            place = r * length
                            T.tile.compare(mask[place // 8 : (place + length) // 8], x[slot, place : place + length],
                                           y[i * height + r], "GT")
                            T.pipe_barrier("v")
                            T.tile.select(chosen[place : place + length], mask[place // 8 : (place + length) // 8],
                                          one[0:length], zero[0:length], "VSEL_TENSOR_TENSOR_MODE")
                            T.pipe_barrier("v")
                            T.tile.cast(z[slot, place : place + length], chosen[place : place + length], "CAST_NONE")
                            T.pipe_barrier("v")
                    elif wide != dtype:
                        T.tile.cast(x_wide, x[slot, :], "CAST_NONE")
                        T.tile.cast(y_wide, y[slot, :], "CAST_NONE")
                        T.pipe_barrier("v")
                        T.tile.compare(mask, x_wide, y_wide, "GT")
                        expand(mask, chosen, one, zero, z, slot)
                    else:
                        T.tile.compare(mask, x[slot, :], y[slot, :], "GT")
                        expand(mask, chosen, one, zero, z, slot)
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("v", "mte3", slot)
                    T.wait_flag("v", "mte3", slot)
                    T.copy(z[slot, 0:size], Z[first : first + size])
                    T.set_flag("mte3", "v", slot)
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

    return tilelang.compile(greater, target="ascendc", chip=chip)


def polar(count: int, period: int, *, tile: int = 2048, cores: int = 40, chip: str) -> Any:
    """Pairs of ``length * cosine`` and ``length * sine``: a core multiplies its tiles by one tile of each, which stays on chip,
    and gathers both products into pairs. Loaded and stored tiles have two slots.

    The tiles of cosines and sines are loaded; the source computes them once from ``period`` angles.
    """
    share = -(-count // cores // period) * period

    @T.prim_func
    def polar(X: T.Tensor((count,), "float32"), COS: T.Tensor((tile,), "float32"), SIN: T.Tensor((tile,), "float32"),
              AT: T.Tensor((2 * tile,), "uint32"), Y: T.Tensor((2 * count,), "float32")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((2, tile), "float32")
            y = T.alloc_ub((2, 2 * tile), "float32")
            both = T.alloc_ub((2 * tile,), "float32")
            at = T.alloc_ub((2 * tile,), "uint32")
            cos = T.alloc_ub((tile,), "float32")
            sin = T.alloc_ub((tile,), "float32")
            with T.Scope("V"):
                T.copy(COS, cos)
                T.copy(SIN, sin)
                T.copy(AT, at)
                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                own = T.min(share, count - core * share)
                for i in T.serial(T.ceildiv(own, tile)):
                    slot = i % 2
                    first = core * share + i * tile
                    size = T.min(tile, own - i * tile)
                    T.wait_flag("v", "mte2", slot)
                    T.copy(X[first : first + size], x[slot, 0:size])
                    T.set_flag("mte2", "v", slot)
                    T.wait_flag("mte2", "v", slot)
                    T.tile.mul(both[0:tile], cos, x[slot, :])
                    T.tile.mul(both[tile : 2 * tile], sin, x[slot, :])
                    T.set_flag("v", "mte2", slot)
                    T.pipe_barrier("v")
                    T.wait_flag("mte3", "v", slot)
                    T.tile.gather(y[slot, :], both, at)
                    T.set_flag("v", "mte3", slot)
                    T.wait_flag("v", "mte3", slot)
                    T.copy(y[slot, 0 : 2 * size], Y[2 * first : 2 * (first + size)])
                    T.set_flag("mte3", "v", slot)
                    T.pipe_barrier("v")
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

    return tilelang.compile(polar, target="ascendc", chip=chip)


def gt(rows: int, length: int, dtype: str, kept: str = "", cores: int = 20) -> Case:
    return Case(lambda _count: greater(rows, length, dtype, kept, cores=cores, chip="910B4-1"))


CASES = {
    "gt_same_fp16": gt(8192, 8192, "float16"),
    "gt_same_fp32": gt(8192, 8192, "float32"),
    "gt_same_bf16": gt(8192, 4096, "bfloat16"),
    "gt_same_int8": gt(8192, 8192, "int8"),
    "gt_same_2024x3000": gt(2024, 3000, "float16"),
    "gt_same_8192x1000": gt(8192, 1000, "float16"),
    "gt_same_4096x1000_fp32": gt(4096, 1000, "float32"),
    "gt_row_fp16": gt(16384, 1024, "float16", "row"),
    "gt_row_fp32": gt(16384, 1024, "float32", "row"),
    "gt_row_fp16_65536": gt(65536, 1024, "float16", "row"),
    "gt_row_fp16_65536_c40": gt(65536, 1024, "float16", "row", 40),
    "gt_column_fp16": gt(16384, 1024, "float16", "column"),
    "gt_column_fp32": gt(16384, 1024, "float32", "column"),
    "gt_column_fp16_c40": gt(16384, 1024, "float16", "column", 40),
    "gt_column_fp32_c40": gt(16384, 1024, "float32", "column", 40),
    **{f"polar_{count >> 20}m": Case(lambda _count, count=count, period=period: polar(count, period, chip="910B4"))
       for count, period in ((4 << 20, 64), (8 << 20, 512), (16 << 20, 64), (64 << 20, 64))},
}
