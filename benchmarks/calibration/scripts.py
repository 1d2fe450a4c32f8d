"""Kernels of scripts that were measured on a card: element-wise ones and reductions, with their tiles and their order."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

BIG = 2.0**30
"""The index that marks "no index"; exact in float32."""


def lerp(elements: int, *, tile: int = 4096, cores: int = 48, chip: str) -> Any:
    """``a + w * (b - a)`` of float16, computed in float32; each core processes every ``cores``-th tile."""
    tiles = T.ceildiv(elements, tile)

    @T.prim_func
    def lerp(A: T.Tensor((elements,), "float16"), B: T.Tensor((elements,), "float16"), W: T.Tensor((elements,), "float16"),
             OUT: T.Tensor((elements,), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_ub((tile,), "float16")
            b = T.alloc_ub((tile,), "float16")
            w = T.alloc_ub((tile,), "float16")
            out = T.alloc_ub((tile,), "float16")
            a32 = T.alloc_ub((tile,), "float32")
            b32 = T.alloc_ub((tile,), "float32")
            w32 = T.alloc_ub((tile,), "float32")
            for i in T.Pipelined(T.ceildiv(tiles, cores), num_stages=2):
                if i * cores + core < tiles:
                    first = (i * cores + core) * tile
                    T.copy(A[first : first + tile], a)
                    T.copy(B[first : first + tile], b)
                    T.copy(W[first : first + tile], w)
                    T.vcast(a, a32, round_mode="rint")
                    T.vcast(b, b32, round_mode="rint")
                    T.vcast(w, w32, round_mode="rint")
                    T.vsub(b32, a32, b32)
                    T.vmul(w32, b32, b32)
                    T.vadd(a32, b32, b32)
                    T.vcast(b32, out, round_mode="rint")
                    T.copy(out, OUT[first : first + tile])

    return tilelang.compile(lerp, target="npuir", chip=chip)


def argmax(rows: int, length: int, dtype: str, tile: int, *, cores: int = 48, chip: str) -> Any:
    """The first index of the maximum of each row: the tiles of a row are compared with the maximum, and the least index is
    taken."""
    tiles = rows // tile
    used = min(tiles, cores)

    @T.prim_func
    def argmax(X: T.Tensor((rows, length), dtype), OUT: T.Tensor((rows,), "int64")):
        with T.Kernel(used, is_npu=True) as (core, _):
            x = T.alloc_ub((tile, length), dtype)
            wide = T.alloc_ub((tile, length), "float32")
            most = T.alloc_ub((tile, 1), "float32")
            spread = T.alloc_ub((tile, length), "float32")
            equal = T.alloc_ub((tile, length), "bool")
            place = T.alloc_ub((tile, length), "float32")
            none = T.alloc_ub((tile, length), "float32")
            number = T.alloc_ub((length,), "float32")
            row = T.alloc_ub((1, length), "float32")
            first = T.alloc_ub((tile, 1), "float32")
            flat = T.alloc_ub((tile,), "float32")
            out = T.alloc_ub((tile,), "int64")
            T.arange(number, [1], 0)
            T.reshape(number, row)
            T.vbrc(row, place)
            T.vbrc(BIG, none)
            for i in T.serial(T.ceildiv(tiles, used)):
                if i * used + core < tiles:
                    start = (i * used + core) * tile
                    T.copy(X[start : start + tile, :], x)
                    T.vcast(x, wide, round_mode="rint")
                    T.reduce(wide, most, dims=[1], reduce_mode="max")
                    T.vbrc(most, spread)
                    T.vcmp(wide, spread, equal, "eq")
                    T.vselect(equal, place, none, spread)
                    T.reduce(spread, first, dims=[1], reduce_mode="min")
                    T.reshape(first, flat)
                    T.vcast(flat, out, round_mode="rint")
                    T.copy(out, OUT[start : start + tile])

    return tilelang.compile(argmax, target="npuir", chip=chip)


def copy(rows: int, length: int, block: tuple[int, int], *, chip: str) -> Any:
    """A copy of float32, a block of rows and columns for two Vector cores each."""
    tall, wide = block
    across, half = length // wide, tall // 2

    @T.prim_func
    def copy(A: T.Tensor((rows, length), "float32"), B: T.Tensor((rows, length), "float32")):
        with T.Kernel(rows // tall * across, is_npu=True) as (cid, vid):
            x = T.alloc_shared((half, wide), "float32")
            row, column = cid // across * tall + vid * half, cid % across * wide
            T.copy(A[row : row + half, column : column + wide], x)
            T.copy(x, B[row : row + half, column : column + wide])

    return tilelang.compile(copy, target="ascendc", chip=chip)


def softsign(rows: int, length: int, block: tuple[int, int], *, chip: str) -> Any:
    """``x / (1 + |x|)`` of float32, a block of rows and columns for two Vector cores each."""
    tall, wide = block
    across, half = length // wide, tall // 2

    @T.prim_func
    def softsign(A: T.Tensor((rows, length), "float32"), B: T.Tensor((rows, length), "float32")):
        with T.Kernel(rows // tall * across, is_npu=True) as (cid, vid):
            x = T.alloc_shared((half, wide), "float32")
            below = T.alloc_shared((half, wide), "float32")
            row, column = cid // across * tall + vid * half, cid % across * wide
            T.copy(A[row, column], x)
            T.tile.abs(below, x)
            T.tile.add(below, below, 1.0)
            T.tile.div(x, x, below)
            T.copy(x, B[row, column])

    return tilelang.compile(softsign, target="ascendc", chip=chip)


def hinge(rows: int, length: int, tile: int, *, chip: str) -> Any:
    """The sum of ``max(0, 1 - p * t)`` of each row, a block for each row, with a barrier after each operation."""

    @T.prim_func
    def hinge(P: T.Tensor((rows, length), "float32"), TARGET: T.Tensor((length,), "float32"),
              OUT: T.Tensor((1, rows), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _vid):
            p = T.alloc_ub((1, tile), "float32")
            t = T.alloc_ub((1, tile), "float32")
            one = T.alloc_ub((1, tile), "float32")
            loss = T.alloc_ub((1, tile), "float32")
            part = T.alloc_ub((1, 1), "float32")
            total = T.alloc_ub((1, 1), "float32")
            with T.Scope("V"):
                T.tile.fill(total, 0.0)
                T.tile.fill(one, 1.0)
                T.barrier_all()
                for i in T.serial(length // tile):
                    T.copy(P[row, i * tile], p)
                    T.barrier_all()
                    T.copy(TARGET[i * tile : (i + 1) * tile], t)
                    T.barrier_all()
                    T.tile.mul(loss, p, t)
                    T.barrier_all()
                    T.tile.sub(loss, one, loss)
                    T.barrier_all()
                    T.tile.relu(loss, loss)
                    T.barrier_all()
                    T.reduce_sum(loss, part, dim=-1)
                    T.barrier_all()
                    T.tile.add(total, total, part)
                    T.barrier_all()
                T.copy(total, OUT[0, row])

    return tilelang.compile(hinge, target="ascendc", chip=chip)


def squares(rows: int, length: int, tile: int, *, chip: str) -> Any:
    """The mean of squared differences on one core, with a barrier after each operation."""

    @T.prim_func
    def squares(P: T.Tensor((rows, length), "float32"), TARGET: T.Tensor((rows, length), "float32"),
                OUT: T.Tensor((1, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (_core, _vid):
            p = T.alloc_ub((1, tile), "float32")
            t = T.alloc_ub((1, tile), "float32")
            apart = T.alloc_ub((1, tile), "float32")
            part = T.alloc_ub((1, 1), "float32")
            total = T.alloc_ub((1, 1), "float32")
            with T.Scope("V"):
                T.tile.fill(total, 0.0)
                T.barrier_all()
                for row in T.serial(rows):
                    for i in T.serial(length // tile):
                        T.copy(P[row, i * tile], p)
                        T.barrier_all()
                        T.copy(TARGET[row, i * tile], t)
                        T.barrier_all()
                        T.tile.sub(apart, p, t)
                        T.barrier_all()
                        T.tile.mul(apart, apart, apart)
                        T.barrier_all()
                        T.reduce_sum(apart, part, dim=-1)
                        T.barrier_all()
                        T.tile.add(total, total, part)
                        T.barrier_all()
                T.tile.div(total, total, float(rows * length))
                T.barrier_all()
                T.copy(total, OUT[0, 0])

    return tilelang.compile(squares, target="ascendc", chip=chip)


C, B = "910B2C", "910B2"
CASES = {
    **{f"lerp_{count}m": Case(lambda _count, n=count: lerp(n << 20, chip=C), upstream=True) for count in (1, 16, 64, 256)},
    "argmax_128x300": Case(lambda _count: argmax(128, 300, "bfloat16", 8, chip=C), upstream=True),
    "argmax_2048x256": Case(lambda _count: argmax(2048, 256, "float16", 16, chip=C), upstream=True),
    "copy_12gb": Case(lambda _count: copy(4096, 393216, (16, 4096), chip=B), upstream=True),
    "softsign_16x1024": Case(lambda _count: softsign(1024, 65536, (16, 1024), chip=B), upstream=True),
    "softsign_16x512": Case(lambda _count: softsign(1024, 65536, (16, 512), chip=B), upstream=True),
    "hinge_rows": Case(lambda _count: hinge(1024, 65536, 1024, chip=B), upstream=True),
    "squares_one_core": Case(lambda count: squares(count, 65536, 1024, chip=B), (4, 8), 1024, upstream=True),
}
