"""GEMMs with the tiling of their sources: a core computes its part of C tile by tile; A and B have rows along K; explicit
flags."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

STEP = 64
"""Depth of an MMAD of float16 in all of them."""


def matmul(size: int, over: tuple[int, int], *, deep: int = 0, tile: tuple[int, int] = (128, 256),
           steps: tuple[int, int] = (1, 1), slots: int = 2, part: tuple[int, int] | None = None, passes: int = 1,
           wide: bool = False, chip: str = "910B1") -> Any:
    """A GEMM of ``size`` in all three directions.

    Args:
        deep: the size K, if it differs.
        over: the number of cores along M and along N.
        tile: rows and columns of a tile of C.
        steps: the depth of a load of A and of B, as a multiple of the depth of an MMAD.
        slots: the number of slots for tiles of A and of B in L1; with one, a load waits until the previous tile was copied to
            L0.
        part: rows and columns of a core's part of C; by default all parts are equal. The last core of a row may have fewer
            columns: fewer whole tiles, or a narrower last tile, if the tiles do not divide the part.
        passes: the number of parts of M that all cores process one after the other, for locality in L2.
        wide: whether C is float32.
    """
    tile_m, tile_n = tile
    step_a, step_b = steps
    inner = step_a // step_b
    part_m, part_n = part or (size // over[0] // passes, size // over[1])
    down, rest = part_m // tile_m, part_n % tile_n
    deep = deep or size
    depth = deep // (STEP * step_a)
    fractals = -(-rest // 16) * 16

    @T.macro
    def tile_of_c(A, B, C, a, b, left, right, c, turn, row, column, width, held):
        T.wait_flag("fix", "m", 0)
        for k in T.serial(depth):
            slot_a = (turn * depth + k) % slots
            T.wait_flag("mte1", "mte2", slot_a)
            T.copy(A[row, k * step_a * STEP], a[slot_a, :, :])
            for i in T.serial(inner):
                slot_b = ((turn * depth + k) * inner + i) % slots
                start = (k * inner + i) * step_b * STEP
                T.wait_flag("mte1", "mte2", 2 + slot_b)
                T.copy(B[column : column + width, start : start + step_b * STEP], b[slot_b, 0:width, :])
                T.set_flag("mte2", "mte1", slot_b)
                T.wait_flag("mte2", "mte1", slot_b)
                for j in T.serial(step_b):
                    half = j % 2 if step_b > 1 else k % 2
                    T.wait_flag("m", "mte1", half)
                    T.copy(a[slot_a, :, (i * step_b + j) * STEP : (i * step_b + j + 1) * STEP], left[half, :, :])
                    T.copy(b[slot_b, 0:held, j * STEP : (j + 1) * STEP], right[half, :, 0:held], transpose=True)
                    T.set_flag("mte1", "m", half)
                    T.wait_flag("mte1", "m", half)
                    T.mma(left[half, :, :], right[half, :, 0:held], c[:, 0:held], init=T.And(k == 0, T.And(i == 0, j == 0)))
                    T.set_flag("m", "mte1", half)
                T.set_flag("mte1", "mte2", 2 + slot_b)
            T.set_flag("mte1", "mte2", slot_a)
        T.set_flag("m", "fix", 0)
        T.wait_flag("m", "fix", 0)
        T.copy(c[:, 0:width], C[row : row + tile_m, column : column + width])
        T.set_flag("fix", "m", 0)

    @T.prim_func
    def gemm(
        A: T.Tensor((size, deep), "float16"),
        B: T.Tensor((size, deep), "float16"),
        C: T.Tensor((size, size), "float32" if wide else "float16"),
    ):
        with T.Kernel(over[0] * over[1], is_npu=True) as (core, _):
            a = T.alloc_L1((slots, tile_m, step_a * STEP), "float16")
            b = T.alloc_L1((slots, tile_n, step_b * STEP), "float16")
            left = T.alloc_L0A((2, tile_m, STEP), "float16")
            right = T.alloc_L0B((2, STEP, tile_n), "float16")
            c = T.alloc_L0C((tile_m, tile_n), "float32")
            first_n = core % over[1] * part_n
            across = T.min(part_n, size - first_n) // tile_n

            with T.Scope("C"):
                for slot in range(slots):
                    T.set_flag("mte1", "mte2", slot)
                    T.set_flag("mte1", "mte2", 2 + slot)
                for half in range(2):
                    T.set_flag("m", "mte1", half)
                T.set_flag("fix", "m", 0)

                for turn in T.serial(passes * down * across):
                    row = (turn // (down * across) * over[0] + core // over[1]) * part_m + turn % down * tile_m
                    column = first_n + turn // down % across * tile_n
                    tile_of_c(A, B, C, a, b, left, right, c, turn, row, column, tile_n, tile_n)
                if rest:
                    for turn in T.serial(down):
                        row = core // over[1] * part_m + turn * tile_m
                        column = T.min(first_n + across * tile_n, size - rest)
                        tile_of_c(A, B, C, a, b, left, right, c, turn, row, column, rest, fractals)

                for slot in range(slots):
                    T.wait_flag("mte1", "mte2", slot)
                    T.wait_flag("mte1", "mte2", 2 + slot)
                for half in range(2):
                    T.wait_flag("m", "mte1", half)
                T.wait_flag("fix", "m", 0)

    return tilelang.compile(gemm, target="ascendc", chip=chip)


def one_core(part: int, tile: tuple[int, int]) -> Case:
    """8192^3 on one core: a part of C with a part of K is modelled, the total is extrapolated linearly."""
    return Case(lambda count: matmul(part, (1, 1), deep=count * STEP, tile=tile, slots=1), (4, 8), 8192 // STEP,
                times=(8192 // part) ** 2)


def on_all(**how: Any) -> Case:
    """8192^3 on 24 cores, 4 by 6."""
    return Case(lambda _count: matmul(8192, (4, 6), **({"part": (2048, 1536)} | how)))


def in_loads_of_256(size: int) -> Case:
    """A case whose loads have four times the depth of an MMAD, with C in float32."""
    return Case(lambda _count: matmul(size, (4, 6), steps=(4, 4), wide=True, chip="910_9391"))


IN_PASSES = on_all(steps=(8, 4), part=(1024, 1536), passes=2)
CASES = {
    "matmul_c0": one_core(2048, (64, 64)),
    "matmul_c1": one_core(4096, (128, 256)),
    "matmul_c2": Case(lambda _count: matmul(8192, (2, 12), slots=1, part=(4096, 683))),
    "matmul_c3": on_all(slots=1),
    "matmul_c4": on_all(steps=(2, 2)),
    "matmul_c5": on_all(steps=(8, 4)),
    "matmul_c6": IN_PASSES,
    "matmul_c7": IN_PASSES,
    "matmul_c8": IN_PASSES,
    "gemm_1536": in_loads_of_256(1536),
    "gemm_6144": in_loads_of_256(6144),
}
