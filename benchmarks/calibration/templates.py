"""GEMMs with the tiling of catlass' examples: the cores process blocks of C round-robin in a swizzled order, two slots in
L1."""

from __future__ import annotations

from math import gcd
from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

WIDE = 3
"""Blocks across a group of the swizzle."""
ROWS = 32
"""Rows that a Vector core scales at once."""


def basic(rows: int, columns: int, depth: int, *, step: int = 256, part: int = 64, tile: tuple[int, int] = (128, 256),
          cores: int = 24, chip: str) -> Any:
    """``C = A @ B`` of float16, A and B by rows.

    Args:
        step: depth of a load to L1; the last one may be shallower.
        part: depth of an MMAD.
        tile: rows and columns of a block of C. The order of blocks is down ``WIDE`` columns of blocks at a time, or,
            if C is at least as wide as it is high, across ``WIDE`` rows of blocks.
    """
    tall, wide = tile
    down, across = rows // tall, columns // wide
    rest = depth % step

    @T.macro
    def multiply(a, b, left, right, c, turn, length, first):
        for i in T.serial(T.ceildiv(length, part)):
            half = i % 2
            T.wait_flag("m", "mte1", half)
            T.copy(a[turn % 2, :, i * part : (i + 1) * part], left[half, :, :])
            T.copy(b[turn % 2, i * part : (i + 1) * part, :], right[half, :, :])
            T.set_flag("mte1", "m", half)
            T.wait_flag("mte1", "m", half)
            T.mma(left[half, :, :], right[half, :, :], c, init=T.And(first, i == 0))
            T.set_flag("m", "mte1", half)

    @T.prim_func
    def gemm(A: T.Tensor((rows, depth), "float16"), B: T.Tensor((depth, columns), "float16"),
             C: T.Tensor((rows, columns), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_L1((2, tall, step), "float16")
            b = T.alloc_L1((2, step, wide), "float16")
            left = T.alloc_L0A((2, tall, part), "float16")
            right = T.alloc_L0B((2, part, wide), "float16")
            c = T.alloc_L0C((tall, wide), "float32")
            with T.Scope("C"):
                for slot in range(2):
                    T.set_flag("mte1", "mte2", slot)
                    T.set_flag("m", "mte1", slot)
                T.set_flag("fix", "m", 0)
                for number in T.serial(T.ceildiv(down * across - core, cores)):
                    block = core + number * cores
                    group = block // (WIDE * down)
                    inside = block % (WIDE * down)
                    width = T.min(WIDE, across - group * WIDE)
                    column = (group * WIDE + inside % width) * wide
                    row = inside // width * tall
                    T.wait_flag("fix", "m", 0)
                    for k in T.serial(depth // step):
                        turn = number * T.ceildiv(depth, step) + k
                        T.wait_flag("mte1", "mte2", turn % 2)
                        T.copy(A[row, k * step], a[turn % 2, :, :])
                        T.copy(B[k * step, column], b[turn % 2, :, :])
                        T.set_flag("mte2", "mte1", turn % 2)
                        T.wait_flag("mte2", "mte1", turn % 2)
                        multiply(a, b, left, right, c, turn, step, k == 0)
                        T.set_flag("mte1", "mte2", turn % 2)
                    if rest:
                        turn = number * T.ceildiv(depth, step) + depth // step
                        T.wait_flag("mte1", "mte2", turn % 2)
                        T.copy(A[row : row + tall, depth - rest : depth], a[turn % 2, :, 0:rest])
                        T.copy(B[depth - rest : depth, column : column + wide], b[turn % 2, 0:rest, :])
                        T.set_flag("mte2", "mte1", turn % 2)
                        T.wait_flag("mte2", "mte1", turn % 2)
                        multiply(a, b, left, right, c, turn, rest, False)
                        T.set_flag("mte1", "mte2", turn % 2)
                    T.set_flag("m", "fix", 0)
                    T.wait_flag("m", "fix", 0)
                    T.copy(c, C[row : row + tall, column : column + wide])
                    T.set_flag("fix", "m", 0)
                for slot in range(2):
                    T.wait_flag("mte1", "mte2", slot)
                    T.wait_flag("m", "mte1", slot)
                T.wait_flag("fix", "m", 0)

    return tilelang.compile(gemm, target="ascendc", chip=chip)


def quantised(rows: int, columns: int, depth: int, *, by_rows: bool = False, whole_a: bool = False, cores: int,
              chip: str) -> Any:
    """``(a @ b) * scale * token_scale`` of int8, in blocks of 128 x 256 that go through a workspace of two blocks for each
    core.

    Each Cube core starts at a different step of the depth. The two Vector cores alternate, 32 rows at a time.

    Args:
        by_rows: whether B has rows along N; else along K.
        whole_a: whether all of a block's rows of A stay in L1; each core then processes consecutive blocks.
    """
    tall, wide, step, part = 128, 256, 512, 128
    down, across, steps = rows // tall, columns // wide, depth // step
    blocks, stages = down * across, 2
    share = -(-blocks // cores)
    done, taken = 0, 2

    @T.macro
    def place_of(block):
        group = block // (WIDE * down)
        inside = block % (WIDE * down)
        width = T.min(WIDE, across - group * WIDE)
        return inside // width * tall, (group * WIDE + inside % width) * wide

    @T.prim_func
    def gemm(
        A: T.Tensor((rows, depth), "int8"),
        B: T.Tensor((depth, columns) if by_rows else (columns, depth), "int8"),
        scale: T.Tensor((1, columns), "float16"),
        token_scale: T.Tensor((rows, 1), "float16"),
        D: T.Tensor((rows, columns), "float16"),
        product_of: T.Tensor((cores, stages, tall, wide), "int32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            a = T.alloc_L1((1, tall, depth) if whole_a else (2, tall, step), "int8")
            b = T.alloc_L1((2, step, wide) if by_rows else (2, wide, step), "int8")
            left = T.alloc_L0A((2, tall, part), "int8")
            right = T.alloc_L0B((2, part, wide), "int8")
            c = T.alloc_L0C((tall, wide), "int32")
            first_block = core * share if whole_a else core
            count = T.max(T.min(share, blocks - core * share), 0) if whole_a else T.ceildiv(blocks - core, cores)
            between = 1 if whole_a else cores

            with T.Scope("C"):
                for slot in range(2):
                    T.set_flag("mte1", "mte2", slot)
                    T.set_flag("m", "mte1", slot)
                T.set_flag("fix", "m", 0)
                if whole_a:
                    T.set_flag("mte1", "mte2", 2)
                for number in T.serial(count):
                    block = first_block + number * between
                    row, column = place_of(block)
                    if T.And(whole_a, T.Or(number == 0, down > 1)):
                        T.wait_flag("mte1", "mte2", 2)
                        T.copy(A[row, 0], a[0, :, :])
                        T.set_flag("mte2", "mte1", 2)
                        T.wait_flag("mte2", "mte1", 2)
                    T.wait_flag("fix", "m", 0)
                    for i in T.serial(steps):
                        slot = (number * steps + i) % 2
                        k = (i + core) % steps * step
                        T.wait_flag("mte1", "mte2", slot)
                        if not whole_a:
                            T.copy(A[row, k], a[slot, :, :])
                        if by_rows:
                            T.copy(B[k, column], b[slot, :, :])
                        else:
                            T.copy(B[column, k], b[slot, :, :])
                        T.set_flag("mte2", "mte1", slot)
                        T.wait_flag("mte2", "mte1", slot)
                        for j in T.serial(step // part):
                            half = j % 2
                            T.wait_flag("m", "mte1", half)
                            if whole_a:
                                T.copy(a[0, :, k + j * part : k + (j + 1) * part], left[half, :, :])
                            else:
                                T.copy(a[slot, :, j * part : (j + 1) * part], left[half, :, :])
                            if by_rows:
                                T.copy(b[slot, j * part : (j + 1) * part, :], right[half, :, :])
                            else:
                                T.copy(b[slot, :, j * part : (j + 1) * part], right[half, :, :], transpose=True)
                            T.set_flag("mte1", "m", half)
                            T.wait_flag("mte1", "m", half)
                            T.mma(left[half, :, :], right[half, :, :], c, init=T.And(i == 0, j == 0))
                            T.set_flag("m", "mte1", half)
                        T.set_flag("mte1", "mte2", slot)
                    if T.And(whole_a, T.Or(number == count - 1, down > 1)):
                        T.set_flag("mte1", "mte2", 2)
                    T.set_flag("m", "fix", 0)
                    T.wait_flag("m", "fix", 0)
                    if number >= stages:
                        T.wait_cross_flag(taken + number % stages)
                    T.copy(c, product_of[core, number % stages, :, :])
                    T.set_flag("fix", "m", 0)
                    T.set_cross_flag("fix", done + number % stages)
                for slot in range(2):
                    T.wait_flag("mte1", "mte2", slot)
                    T.wait_flag("m", "mte1", slot)
                if whole_a:
                    T.wait_flag("mte1", "mte2", 2)
                T.wait_flag("fix", "m", 0)
                for i in T.serial(T.min(count, stages)):
                    T.wait_cross_flag(taken + (T.max(count, stages) - stages + i) % stages)

            loaded = T.alloc_ub((2, ROWS, wide), "int32")
            by_column = T.alloc_ub((2, 1, wide), "float16")
            by_row = T.alloc_ub((2, ROWS, 1), "float16")
            stored = T.alloc_ub((2, ROWS, wide), "float16")
            x = T.alloc_ub((ROWS, wide), "float32")
            columns_of = T.alloc_ub((1, wide), "float32")
            rows_of = T.alloc_ub((ROWS, 1), "float32")
            spread = T.alloc_ub((ROWS, wide), "float32")

            with T.Scope("V"):
                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                for number in T.serial(count):
                    block = first_block + number * between
                    row, column = place_of(block)
                    T.wait_cross_flag(done + number % stages)
                    for i in T.serial(tall // ROWS // 2):
                        slot = i % 2
                        first = (2 * i + vid) * ROWS
                        T.wait_flag("v", "mte2", slot)
                        T.copy(product_of[core, number % stages, first : first + ROWS, :], loaded[slot, :, :])
                        T.copy(scale[:, column : column + wide], by_column[slot, :, :])
                        T.copy(token_scale[row + first : row + first + ROWS, :], by_row[slot, :, :])
                        T.set_flag("mte2", "v", slot)
                        T.wait_flag("mte2", "v", slot)
                        T.copy(loaded[slot, :, :], x)
                        T.copy(by_column[slot, :, :], columns_of)
                        T.copy(by_row[slot, :, :], rows_of)
                        T.set_flag("v", "mte2", slot)
                        T.pipe_barrier("v")
                        T.tile.mul(x, x, columns_of)
                        T.tile.broadcast(spread, rows_of)
                        T.pipe_barrier("v")
                        T.tile.mul(x, x, spread)
                        T.pipe_barrier("v")
                        T.wait_flag("mte3", "v", slot)
                        T.copy(x, stored[slot, :, :])
                        T.set_flag("v", "mte3", slot)
                        T.wait_flag("v", "mte3", slot)
                        T.copy(stored[slot, :, :], D[row + first : row + first + ROWS, column : column + wide])
                        T.set_flag("mte3", "v", slot)
                    T.set_cross_flag("mte3", taken + number % stages)
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

    return tilelang.compile(gemm, target="ascendc", chip=chip, workspace_idx=[5])


def split(rows: int, columns: int, depth: int, *, cores: int, chip: str) -> Any:
    """``quantised`` with B along K, and with the depth divided between the cores: after a barrier of all Vector cores, they add
    the parts of the products, and after a second barrier they scale blocks of 32 rows."""
    tall, wide, step, part = 128, 256, 512, 128
    down, across, steps = rows // tall, columns // wide, depth // step
    blocks = down * across
    slices = max(min(cores // blocks, steps), 1)
    size = rows * columns
    vectors = 2 * cores
    own = min(-(-(size // vectors) // 64) * 64, 49152 // slices // 64 * 64)
    pieces = -(-size // own)
    whole = wide // gcd(own, wide)  # parts of products and blocks to be scaled share it: whole rows of both
    height = -(-max(slices, -(-2 * ROWS * wide // own)) // whole) * whole

    @T.prim_func
    def gemm(
        A: T.Tensor((rows, depth), "int8"),
        B: T.Tensor((columns, depth), "int8"),
        scale: T.Tensor((1, columns), "float32"),
        token_scale: T.Tensor((rows, 1), "float32"),
        D: T.Tensor((rows, columns), "bfloat16"),
        partial: T.Tensor((slices, rows, columns), "int32"),
        reduced: T.Tensor((rows, columns), "int32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            a = T.alloc_L1((2, tall, step), "int8")
            b = T.alloc_L1((2, wide, step), "int8")
            left = T.alloc_L0A((2, tall, part), "int8")
            right = T.alloc_L0B((2, part, wide), "int8")
            c = T.alloc_L0C((tall, wide), "int32")
            flat = T.Tensor((slices, size), "int32", data=partial.data)
            sums = T.Tensor((1, size), "int32", data=reduced.data)

            with T.Scope("C"):
                for slot in range(2):
                    T.set_flag("mte1", "mte2", slot)
                    T.set_flag("m", "mte1", slot)
                if core < blocks * slices:
                    piece = core // blocks
                    row = core % blocks % down * tall
                    column = core % blocks // down * wide
                    longer = T.min(piece, steps % slices)
                    begin = piece * (steps // slices) + longer
                    count = steps // slices + T.if_then_else(piece < steps % slices, 1, 0)
                    for i in T.serial(count):
                        slot = i % 2
                        T.wait_flag("mte1", "mte2", slot)
                        T.copy(A[row, (begin + i) * step], a[slot, :, :])
                        T.copy(B[column, (begin + i) * step], b[slot, :, :])
                        T.set_flag("mte2", "mte1", slot)
                        T.wait_flag("mte2", "mte1", slot)
                        for j in T.serial(step // part):
                            half = j % 2
                            T.wait_flag("m", "mte1", half)
                            T.copy(a[slot, :, j * part : (j + 1) * part], left[half, :, :])
                            T.copy(b[slot, :, j * part : (j + 1) * part], right[half, :, :], transpose=True)
                            T.set_flag("mte1", "m", half)
                            T.wait_flag("mte1", "m", half)
                            T.mma(left[half, :, :], right[half, :, :], c, init=T.And(i == 0, j == 0))
                            T.set_flag("m", "mte1", half)
                        T.set_flag("mte1", "mte2", slot)
                    T.set_flag("m", "fix", 0)
                    T.wait_flag("m", "fix", 0)
                    T.copy(c, partial[piece, row : row + tall, column : column + wide])
                for slot in range(2):
                    T.wait_flag("mte1", "mte2", slot)
                    T.wait_flag("m", "mte1", slot)
                T.set_cross_flag("fix", 0)

            parts = T.alloc_ub((height, own), "int32")
            with T.Scope("V"):
                T.wait_cross_flag(0)
                T.sync_all()
                number = 2 * core + vid
                if number < pieces:
                    first = number * own
                    count = T.min(own, size - first)
                    T.copy(flat[:, first : first + count], parts[0:slices, 0:count])
                    T.set_flag("mte2", "v", 0)
                    T.wait_flag("mte2", "v", 0)
                    for i in T.serial(slices - 1):
                        T.tile.add(parts[0:1, :], parts[0:1, :], parts[i + 1 : i + 2, :])
                        T.pipe_barrier("v")
                    T.set_flag("v", "mte3", 0)
                    T.wait_flag("v", "mte3", 0)
                    T.copy(parts[0:1, 0:count], sums[:, first : first + count])
                T.sync_all()

            loaded = T.Tensor((height * own // wide, wide), "int32", data=parts.data)
            by_column = T.alloc_ub((2, 1, wide), "float32")
            by_row = T.alloc_ub((2, ROWS, 1), "float32")
            stored = T.alloc_ub((2, ROWS, wide), "bfloat16")
            x = T.alloc_ub((ROWS, wide), "float32")
            with T.Scope("V"):
                if core < blocks:
                    row = core % down * tall
                    column = core // down * wide
                    for i in range(tall // ROWS // 2):
                        first = (2 * i + vid) * ROWS
                        T.copy(reduced[row + first : row + first + ROWS, column : column + wide],
                               loaded[i * ROWS : (i + 1) * ROWS, :])
                        T.copy(scale[:, column : column + wide], by_column[i, :, :])
                        T.copy(token_scale[row + first : row + first + ROWS, :], by_row[i, :, :])
                        T.set_flag("mte2", "v", i)
                        T.wait_flag("mte2", "v", i)
                        T.copy(loaded[i * ROWS : (i + 1) * ROWS, :], x)
                        T.pipe_barrier("v")
                        T.tile.mul(x, x, by_column[i, :, :])
                        T.pipe_barrier("v")
                        T.tile.mul(x, x, by_row[i, :, :])
                        T.pipe_barrier("v")
                        T.tile.cast(stored[i, :, :], x, "CAST_RINT")
                        T.set_flag("v", "mte3", i)
                        T.wait_flag("v", "mte3", i)
                        T.copy(stored[i, :, :], D[row + first : row + first + ROWS, column : column + wide])

    return tilelang.compile(gemm, target="ascendc", chip=chip, workspace_idx=[5, 6])


CASES = {
    "basic_2048_4096_4000": Case(lambda _count: basic(2048, 4096, 4000, chip="910B2")),
    "basic_4096_4096_8000": Case(lambda _count: basic(4096, 4096, 8000, chip="910B2")),
    "basic_4096_4096_40000": Case(lambda count: basic(4096, 4096, count, chip="910B2"), (4160, 8256), 40000),
    **{f"quantised_{rows}_{columns}_{depth}": Case(lambda _count, m=rows, n=columns, k=depth:
                                                   quantised(m, n, k, cores=20, chip="910B3"))
       for rows, columns, depth in ((128, 256, 1024), (128, 256, 2048), (128, 256, 4096), (128, 256, 8192), (128, 256, 16384),
                                    (256, 512, 16384), (256, 1024, 16384))},
    **{f"split_{rows}_{columns}_{depth}": Case(lambda _count, m=rows, n=columns, k=depth:
                                               split(m, n, k, cores=20, chip="910B3"))
       for rows, columns, depth in ((128, 256, 1024), (128, 256, 2048), (128, 256, 4096), (128, 256, 8192), (128, 256, 16384),
                                    (256, 512, 16384), (256, 1024, 16384))},
    **{f"{name}_{rows}_{columns}_{depth}": Case(lambda _count, m=rows, n=columns, k=depth, whole=whole:
                                                quantised(m, n, k, by_rows=True, whole_a=whole, cores=24, chip="910B1"))
       for name, whole in (("rowwise", False), ("whole_a", True))
       for rows, columns, depth in ((512, 4096, 1024), (128, 16384, 1024), (1024, 4096, 1024), (512, 8192, 1024),
                                    (128, 16384, 2048))},
}
