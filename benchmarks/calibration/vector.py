"""Vector kernels and copies as in their sources: the steps of an addition, reads of a matrix, the largest elements of rows."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case


def add(rows: int, length: int, cores: int, run: int, *, slots: int = 1, chip: str) -> Any:
    """z = x + y in float16; each core processes its rows as one line in pieces of ``run``; x and y are in the same bank
    groups."""
    share = rows * length // cores
    pieces = T.ceildiv(share, run)

    @T.prim_func
    def add(X: T.Tensor((rows * length,), "float16"), Y: T.Tensor((rows * length,), "float16"),
            Z: T.Tensor((rows * length,), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((slots, run), "float16")
            y = T.alloc_ub((slots, run), "float16")
            z = T.alloc_ub((slots, run), "float16")
            with T.Scope("V"):
                for slot in range(slots):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                for i in T.serial(pieces):
                    slot = i % slots
                    start = core * share + i * run
                    T.wait_flag("v", "mte2", slot)
                    T.copy(X[start : start + run], x[slot, :])
                    T.copy(Y[start : start + run], y[slot, :])
                    T.set_flag("mte2", "v", slot)
                    T.wait_flag("mte2", "v", slot)
                    T.wait_flag("mte3", "v", slot)
                    T.tile.add(z[slot, :], x[slot, :], y[slot, :])
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("v", "mte3", slot)
                    T.wait_flag("v", "mte3", slot)
                    T.copy(z[slot, :], Z[start : start + run])
                    T.set_flag("mte3", "v", slot)
                for slot in range(slots):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

    return tilelang.compile(add, target="ascendc", chip=chip)


def add_scalar(run: int, pieces: int, *, chip: str) -> Any:
    """The addition of ``pieces`` pieces on one core, element by element."""

    @T.prim_func
    def add(X: T.Tensor((pieces * run,), "float16"), Y: T.Tensor((pieces * run,), "float16"),
            Z: T.Tensor((pieces * run,), "float16")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_ub((run,), "float16")
            y = T.alloc_ub((run,), "float16")
            z = T.alloc_ub((run,), "float16")
            with T.Scope("V"):
                for i in T.serial(pieces):
                    T.copy(X[i * run : (i + 1) * run], x)
                    T.copy(Y[i * run : (i + 1) * run], y)
                    T.barrier_all()
                    for j in T.serial(run):
                        z[j] = x[j] + y[j]
                    T.barrier_all()
                    T.copy(z, Z[i * run : (i + 1) * run])
                    T.barrier_all()

    return tilelang.compile(add, target="ascendc", chip=chip)


def read_to_ub(rows: int, length: int, tile: tuple[int, int], *, times: int = 1, chip: str) -> Any:
    """Every core loads its rows of a float16 matrix into the same bytes of UB, tile by tile, without using them."""
    tile_m, tile_n = tile
    share = rows // 48
    whole, rest = divmod(length, tile_n)

    @T.prim_func
    def read(X: T.Tensor((rows, length), "float16")):
        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_ub((tile_m, tile_n), "float16")
            with T.Scope("V"):
                for _time in T.serial(times):
                    for i in T.serial(share // tile_m):
                        for j in T.serial(whole):
                            T.copy(X[core * share + i * tile_m, j * tile_n], x)
                        if rest:
                            T.copy(X[core * share + i * tile_m : core * share + (i + 1) * tile_m, whole * tile_n : length],
                                   x[:, 0:rest])

    return tilelang.compile(read, target="ascendc", chip=chip)


def read_to_l1(rows: int, length: int, tile: tuple[int, int], *, chip: str) -> Any:
    """Like ``read_to_ub``, into L1 as fractals."""
    tile_m, tile_n = tile
    share = rows // 24
    whole, rest = divmod(length, tile_n)

    @T.prim_func
    def read(X: T.Tensor((rows, length), "float16")):
        with T.Kernel(24, is_npu=True) as (core, _):
            x = T.alloc_L1((tile_m, tile_n), "float16")
            with T.Scope("C"):
                for i in T.serial(share // tile_m):
                    for j in T.serial(whole):
                        T.copy(X[core * share + i * tile_m, j * tile_n], x)
                    if rest:
                        T.copy(X[core * share + i * tile_m : core * share + (i + 1) * tile_m, whole * tile_n : length],
                               x[:, 0:rest])

    return tilelang.compile(read, target="ascendc", chip=chip)


def read_all(rows: int, length: int, tile: tuple[int, int], *, in_turn: bool, chip: str) -> Any:
    """Every core loads a whole float16 matrix into UB, tile by tile; all cores load the same tiles at once, or each core begins
    at its own rows."""
    tile_m, tile_n = tile
    bands = rows // tile_m

    @T.prim_func
    def read(X: T.Tensor((rows, length), "float16")):
        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_ub((tile_m, tile_n), "float16")
            with T.Scope("V"):
                for i in T.serial(bands):
                    for j in T.serial(length // tile_n):
                        band = (i + core) % bands if in_turn else i
                        T.copy(X[band * tile_m, j * tile_n], x)

    return tilelang.compile(read, target="ascendc", chip=chip)


def lists_of(count: int) -> list[int]:
    """Returns the lengths of the sorted lists of ``count`` pairs after merging groups of four lists as far as possible, the
    longest first. Pairs after the last complete group of 32 are ignored."""
    longest = 32
    while longest * 4 <= count:
        longest *= 4
    lists, size = [], longest
    while size >= 32:
        lists += [size] * (count // size)
        count, size = count % size, size // 4
    return lists


def top_k(rows: int, length: int, pitch: int, count: int, *, cores: int = 48, chip: str) -> Any:
    """The largest elements of each row with their indices: groups of 32 are sorted, merged by four as far as possible, and then
    one after the other; each step writes another buffer and is copied back. Loads and stores overlap with the sort."""
    share = rows // cores
    ends = [2 * end for end in accumulate(lists_of(count))]
    merges = []  # elements of a list, and the number of groups of four lists
    while 128 * 4 ** len(merges) <= count:
        merges.append((64 * 4 ** len(merges), count // (128 * 4 ** len(merges))))

    @T.macro
    def by_four(pairs, merged, slot, step):
        if step < len(merges):
            width, groups = merges[step]
            for group in T.serial(groups):
                first = 4 * width * group
                T.tile.merge_sort(
                    merged[first : first + 4 * width], pairs[slot, first : first + width],
                    pairs[slot, first + width : first + 2 * width], pairs[slot, first + 2 * width : first + 3 * width],
                    pairs[slot, first + 3 * width : first + 4 * width])
            T.pipe_barrier("v")
            T.copy(merged[0 : 4 * width * groups], pairs[slot, 0 : 4 * width * groups])
            T.pipe_barrier("v")
            by_four(pairs, merged, slot, step + 1)

    @T.macro
    def one_by_one(pairs, merged, slot, step):
        if step + 1 < len(ends):
            T.tile.merge_sort(merged[0 : ends[step + 1]], pairs[slot, 0 : ends[step]], pairs[slot, ends[step] : ends[step + 1]])
            T.pipe_barrier("v")
            T.copy(merged[0 : ends[step + 1]], pairs[slot, 0 : ends[step + 1]])
            T.pipe_barrier("v")
            one_by_one(pairs, merged, slot, step + 1)

    @T.prim_func
    def top_k(X: T.Tensor((rows, pitch), "float32"), index: T.Tensor((length,), "uint32"),
              values: T.Tensor((rows, count), "float32"), places: T.Tensor((rows, count), "float32")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((2, length), "float32")
            at = T.alloc_ub((length,), "uint32")
            pairs = T.alloc_ub((2, 2 * length), "float32")
            merged = T.alloc_ub((2 * length,), "float32")
            best = T.alloc_ub((2, count), "float32")
            where = T.alloc_ub((2, count), "float32")
            with T.Scope("V"):
                T.copy(index, at)
                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                for i in T.serial(share):
                    slot = i % 2
                    row = core * share + i
                    T.wait_flag("v", "mte2", slot)
                    T.copy(X[row, 0:length], x[slot, :])
                    T.set_flag("mte2", "v", slot)
                    T.wait_flag("mte2", "v", slot)
                    T.tile.sort32(pairs[slot, :], x[slot, :], at)
                    T.set_flag("v", "mte2", slot)
                    T.pipe_barrier("v")
                    by_four(pairs, merged, slot, 0)
                    one_by_one(pairs, merged, slot, 0)
                    T.wait_flag("mte3", "v", slot)
                    T.tile.gather_mask(best[slot, :], pairs[slot, 0 : 2 * count], "P0101")
                    T.pipe_barrier("v")
                    T.tile.gather_mask(where[slot, :], pairs[slot, 0 : 2 * count], "P1010")
                    T.set_flag("v", "mte3", slot)
                    T.wait_flag("v", "mte3", slot)
                    T.copy(best[slot, :], values[row, 0:count])
                    T.copy(where[slot, :], places[row, 0:count])
                    T.set_flag("mte3", "v", slot)
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

    return tilelang.compile(top_k, target="ascendc", chip=chip)


A2 = "910B1"
CASES = {
    "add_0": Case(lambda count: add_scalar(4096, count, chip=A2), (2, 4), 8192 * 8192 // 4096),
    "add_1": Case(lambda _count: add(8192, 8192, 1, 4096, chip=A2)),
    "add_2": Case(lambda _count: add(8192, 8192, 48, 4096, chip=A2)),
    "add_3": Case(lambda _count: add(8192, 8192, 48, 16384, chip=A2)),
    "add_4": Case(lambda _count: add(8192, 8192, 48, 16384, slots=2, chip=A2)),
    "ub_1x64": Case(lambda _count: read_to_ub(12288, 12288, (1, 64), chip=A2)),
    "ub_64x64": Case(lambda _count: read_to_ub(12288, 12288, (64, 64), chip=A2)),
    "ub_64x1024": Case(lambda _count: read_to_ub(12288, 12288, (64, 1024), chip=A2)),
    "ub_unaligned": Case(lambda _count: read_to_ub(12288, 12287, (64, 1024), chip=A2)),
    "ub_four_times": Case(lambda _count: read_to_ub(12288, 12288, (64, 1024), times=4, chip=A2)),
    "ub_same_place": Case(lambda _count: read_all(6144, 512, (128, 64), in_turn=False, chip=A2)),
    "ub_in_turn": Case(lambda _count: read_all(6144, 512, (128, 64), in_turn=True, chip=A2)),
    "l1_64x64": Case(lambda _count: read_to_l1(12288, 12288, (64, 64), chip=A2)),
    "l1_64x256": Case(lambda _count: read_to_l1(12288, 12288, (64, 256), chip=A2)),
    "l1_unaligned": Case(lambda _count: read_to_l1(12288, 12287, (64, 256), chip=A2)),
    "topk_4800": Case(lambda _count: top_k(4800, 1024, 1280, 1000, chip="910_9391")),
    "topk_3456": Case(lambda _count: top_k(3456, 1024, 1280, 1000, chip="910_9391")),
}
