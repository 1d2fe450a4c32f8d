"""Causes of lost time: in each of sixteen kernels with a fault, the fault comes first, and its removal saves that time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import target
from tilelang_npu.dialects.ir.remarks import DONE, REFUSED, module_remarks
from tilelang_npu.runtime.reports.edit_trials import TriedEdit, refuted_causes
from tilelang_npu.simulator.result.profile.advice import Tried
from tilelang_npu.simulator.result.profile.launch_profile import Profile

SMALL_L2 = replace(target.chip("910B2"), name="small L2", aliases=(), hivm_target="", l2=6 * 2**20)


@tilelang.jit(out_idx=[-1], target="npuir")
def narrow_columns(rows: int, columns: int, width: int) -> Any:
    """Tiles of all rows and few columns: each row of one is a few bytes."""

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(columns // width, is_npu=True) as (block, _):
            x = T.alloc_shared((128, width), "float32")
            for t in T.Pipelined(rows // 128, num_stages=2):
                T.copy(X[t * 128, block * width], x)
                T.vexp(x, x)
                T.copy(x, Y[t * 128, block * width])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def in_turn(rows: int, stages: int) -> Any:
    """Loads, work and stores one behind the other, where ``stages`` is 1."""

    @T.prim_func
    def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 512), "float32")
            for t in T.Pipelined(rows // 48 // 16, num_stages=stages):
                T.copy(X[block * (rows // 48) + t * 16, 0], x)
                for _ in T.serial(3):
                    T.vexp(x, x)
                    T.vln(x, x)
                T.copy(x, Y[block * (rows // 48) + t * 16, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def scattered(m: int, n: int, k: int) -> Any:
    """Neighbouring blocks have neither rows nor columns of their tiles in common."""
    rows, columns = m // 128, n // 128

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(rows * columns, is_npu=True) as (block, _):
            a = T.alloc_shared((128, 256), "float16")
            b = T.alloc_shared((256, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            for t in T.Pipelined(k // 256, num_stages=2):
                T.copy(A[block % rows * 128, t * 256], a)
                T.copy(B[t * 256, (block // rows + block % rows) % columns * 128], b)
                T.gemm(a, b, c, initC=(t == 0))
            T.copy(c, C[block % rows * 128, (block // rows + block % rows) % columns * 128])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def one_block_a_core(m: int, n: int, k: int, band: int, width: int = 256, blocks: int = 24) -> Any:
    """Each core goes through tiles of its own, in bands of some rows, column by column; wider ones than 256 do not fit L0C.

    There are 24 cores, which run more blocks in several waves.
    """
    rows, columns = m // 128, n // width

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(blocks, is_npu=True) as (core, _):
            a = T.alloc_shared((128, 256), "float16")
            b = T.alloc_shared((256, width), "float16")
            c = T.alloc_fragment((128, width), "float32")
            for turn in T.serial(rows * columns // blocks):
                tile = turn * blocks + core
                row = (tile // (band * columns) * band + tile % band) * 128
                column = tile % (band * columns) // band * width
                for t in T.Pipelined(k // 256, num_stages=2):
                    T.copy(A[row, t * 256], a)
                    T.copy(B[t * 256, column], b)
                    T.gemm(a, b, c, initC=(t == 0))
                T.copy(c, C[row, column])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def two_passes(rows: int, columns: int) -> Any:
    """Each core reads rows of its own twice, from HBM both times where they are long."""

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_shared((1, 4096), "float32")
            total = T.alloc_shared((1, 1), "float32")
            share = T.alloc_shared((1, 1), "float32")
            for row in T.serial(rows // 48):
                T.clear(total)
                for t in T.Pipelined(columns // 4096, num_stages=2):
                    T.copy(X[row * 48 + core, t * 4096], x)
                    T.reduce_sum(x, share, dim=1)
                    T.vadd(total, share, total)
                for t in T.Pipelined(columns // 4096, num_stages=2):
                    T.copy(X[row * 48 + core, t * 4096], x)
                    T.vdiv(x, total, x)
                    T.copy(x, Y[row * 48 + core, t * 4096])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def flat_tiles(m: int, n: int, k: int, height: int) -> Any:
    """Tiles of few rows, for each of which all of B is read."""

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(m // height * (n // 256), is_npu=True) as (block, _):
            a = T.alloc_shared((height, 128), "float16")
            b = T.alloc_shared((128, 256), "float16")
            c = T.alloc_fragment((height, 256), "float32")
            for t in T.Pipelined(k // 128, num_stages=2):
                T.copy(A[block // (n // 256) * height, t * 128], a)
                T.copy(B[t * 128, block % (n // 256) * 256], b)
                T.gemm(a, b, c, initC=(t == 0))
            T.copy(c, C[block // (n // 256) * height, block % (n // 256) * 256])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def one_by_one(rows: int) -> Any:
    """A recurrence along the row in a scalar loop."""

    @T.prim_func
    def main(X: T.Tensor((rows, 256), "float32"), Y: T.Tensor((rows, 256), "float32")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((rows // 48, 256), "float32")
            T.copy(X[block * (rows // 48), 0], x)
            for i, j in T.grid(rows // 48, 256):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, Y[block * (rows // 48), 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def with_barriers(rows: int) -> Any:
    """Barriers of all pipes where nothing needs one."""

    @T.prim_func
    def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 512), "float32")
            for t in T.Pipelined(rows // 48 // 16, num_stages=2):
                T.copy(X[block * (rows // 48) + t * 16, 0], x)
                T.barrier_all()
                for _ in T.serial(6):
                    T.vexp(x, x)
                T.barrier_all()
                T.copy(x, Y[block * (rows // 48) + t * 16, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def shifted_rows(rows: int, columns: int) -> Any:
    """Rows of a tensor that begin at no line of L2."""

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, 256), "float32")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((32, 256), "float32")
            for t in T.Pipelined(rows // 48 // 32, num_stages=2):
                T.copy(X[block * (rows // 48) + t * 32, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[block * (rows // 48) + t * 32, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir", pass_configs={"tl.disable": ["bind-sub-blocks"]})
def on_one_core(rows: int) -> Any:
    """What follows a product is all done by one of the two Vector cores."""

    @T.prim_func
    def main(A: T.Tensor((rows, 128), "float16"), B: T.Tensor((128, 128), "float16"), C: T.Tensor((rows, 128), "float32")):
        with T.Kernel(rows // 64, is_npu=True) as (block, _):
            a = T.alloc_shared((64, 128), "float16")
            b = T.alloc_shared((128, 128), "float16")
            c = T.alloc_fragment((64, 128), "float32")
            d = T.alloc_fragment((64, 128), "float32")
            T.copy(A[block * 64, 0], a)
            T.copy(B[0, 0], b)
            T.gemm(a, b, c, initC=True)
            T.vexp(c, d)
            for _ in T.serial(40):
                T.vln(d, d)
                T.vexp(d, d)
            T.copy(d, C[block * 64, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir", pass_configs={"tl.disable": ["overlap-iterations"]})
def to_and_fro(rows: int, width: int) -> Any:
    """A few rows at a time from core to core and back."""

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((rows, 64), "float32")):
        with T.Kernel(24, is_npu=True) as (block, _):
            a = T.alloc_shared((width, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            p = T.alloc_shared((width, 64), "float16")
            c = T.alloc_fragment((width, 64), "float32")
            d = T.alloc_fragment((width, 64), "float32")
            T.copy(B[0, 0], b)
            for t in T.serial(rows // 24 // width):
                T.copy(A[block * (rows // 24) + t * width, 0], a)
                T.gemm(a, b, c, initC=True)
                T.vexp(c, c)
                T.copy(c, p)
                T.gemm(p, b, d, initC=True)
                T.vadd(d, 1.0, d)
                T.copy(d, C[block * (rows // 24) + t * width, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def alone(rows: int) -> Any:
    """One block for a whole chip."""

    @T.prim_func
    def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 512), "float32")
            for t in T.Pipelined(rows // 16, num_stages=3):
                T.copy(X[t * 16, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[t * 16, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def few_rows(rows: int, height: int) -> Any:
    """Tiles of few rows, two of them under way, in a memory that has room for many."""

    @T.prim_func
    def main(X: T.Tensor((rows, 512), "float16"), Y: T.Tensor((rows, 512), "float16")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((height, 512), "float16")
            for t in T.Pipelined(rows // 48 // height, num_stages=2):
                T.copy(X[block * (rows // 48) + t * height, 0], x)
                for _ in T.serial(8):
                    T.vadd(x, x, x)
                T.copy(x, Y[block * (rows // 48) + t * height, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def in_two_launches(rows: int) -> Any:
    """The exponentials of X go to GM, and a second launch multiplies them by X."""

    @T.prim_func
    def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32")):
        E = T.alloc_global((rows, 512), "float32")
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 512), "float32")
            for t in T.Pipelined(rows // 48 // 16, num_stages=2):
                T.copy(X[block * (rows // 48) + t * 16, 0], x)
                T.vexp(x, x)
                T.copy(x, E[block * (rows // 48) + t * 16, 0])
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 512), "float32")
            e = T.alloc_shared((16, 512), "float32")
            for t in T.Pipelined(rows // 48 // 16, num_stages=2):
                T.copy(X[block * (rows // 48) + t * 16, 0], x)
                T.copy(E[block * (rows // 48) + t * 16, 0], e)
                T.vmul(x, e, e)
                T.copy(e, Y[block * (rows // 48) + t * 16, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def in_one_launch(rows: int) -> Any:
    """What ``in_two_launches`` computes, with the exponentials in UB."""

    @T.prim_func
    def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 512), "float32")
            e = T.alloc_shared((16, 512), "float32")
            for t in T.Pipelined(rows // 48 // 16, num_stages=2):
                T.copy(X[block * (rows // 48) + t * 16, 0], x)
                T.vexp(x, e)
                T.vmul(x, e, e)
                T.copy(e, Y[block * (rows // 48) + t * 16, 0])

    return main


def cube_then_vector(m: int, *, returned: bool) -> Any:
    """A product, and a second launch that takes its exponential; the product is returned, or a workspace."""

    @tilelang.jit(out_idx=[2, 3] if returned else [3], workspace_idx=None if returned else [2], target="npuir")
    def factory(m: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((m, 512), "float16"), B: T.Tensor((512, 256), "float16"), C: T.Tensor((m, 256), "float32"),
                 Y: T.Tensor((m, 256), "float32")):
            with T.Kernel(m // 128, is_npu=True) as (block, _):
                a = T.alloc_shared((128, 256), "float16")
                b = T.alloc_shared((256, 256), "float16")
                c = T.alloc_fragment((128, 256), "float32")
                for t in T.Pipelined(2, num_stages=2):
                    T.copy(A[block * 128, t * 256], a)
                    T.copy(B[t * 256, 0], b)
                    T.gemm(a, b, c, initC=(t == 0))
                T.copy(c, C[block * 128, 0])
            with T.Kernel(m // 64, is_npu=True) as (block, _):
                x = T.alloc_shared((64, 256), "float32")
                T.copy(C[block * 64, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[block * 64, 0])

        return main

    return factory(m)


@tilelang.jit(out_idx=[-1], target="npuir")
def full_ub(rows: int, height: int) -> Any:
    """Tiles of rows that are loaded into one buffer, one iteration after the other."""

    @T.prim_func
    def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((height, 512), "float32")
            y = T.alloc_shared((height, 512), "float32")
            for t in T.Pipelined(rows // 48 // height, num_stages=1):
                T.copy(X[block * (rows // 48) + t * height, 0], x)
                T.vexp(x, y)
                T.copy(y, Y[block * (rows // 48) + t * height, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def best_copy(length: int) -> Any:
    """A copy that HBM bounds, whatever its number of stages."""

    @T.prim_func
    def main(X: T.Tensor((length,), "float32"), Y: T.Tensor((length,), "float32")):
        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_shared((16384,), "float32")
            for t in T.Pipelined(T.ceildiv(length // 16384 - core, 48), num_stages=2):
                T.copy(X[(t * 48 + core) * 16384], x)
                T.copy(x, Y[(t * 48 + core) * 16384])

    return main


def one_tile() -> Any:
    @T.prim_func
    def main(X: T.Tensor((8,), "float32"), Y: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_shared((8,), "float32")
            T.copy(X, x)
            T.copy(x, Y)

    return tilelang.compile(main, target="npuir")


def of_any_length() -> Any:
    length = T.symbolic("length")

    @T.prim_func
    def main(X: T.Tensor((length,), "float32"), Y: T.Tensor((length,), "float32")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_shared((4096,), "float32")
            T.copy(X[0:4096], x)
            T.copy(x, Y[0:4096])

    return tilelang.compile(main, target="npuir")


@tilelang.jit(out_idx=[-1], target="npuir")
def many_instructions(rounds: int) -> Any:
    @T.prim_func
    def main(X: T.Tensor((48, 8), "float32"), Y: T.Tensor((48, 8), "float32")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((1, 8), "float32")
            T.copy(X[block, 0], x)
            for _ in T.serial(4000 * rounds):
                T.vexp(x, x)
            T.copy(x, Y[block, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def summed_to_one(rows: int, lots: int) -> Any:
    """All rows are added to one row of GM: each tile, where ``lots`` is 1, or the sum of some tiles."""

    @T.prim_func
    def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((8, 512), "float32")):
        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_shared((8, 512), "float32")
            total = T.alloc_shared((8, 512), "float32")
            for lot in T.serial(rows // 48 // 8 // lots):
                T.clear(total)
                for t in T.Pipelined(lots, num_stages=2):
                    T.copy(X[core * (rows // 48) + (lot * lots + t) * 8, 0], x)
                    T.vadd(total, x, total)
                T.atomic_add(Y, total)

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def cast_in_each_turn(rows: int, once: bool) -> Any:
    """A scale that is cast from float16 to float32 for each row that it multiplies, or once."""

    @T.prim_func
    def main(S: T.Tensor((16, 512), "float16"), X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32")):
        with T.Kernel(48, is_npu=True) as (core, _):
            narrow = T.alloc_shared((16, 512), "float16")
            wide = T.alloc_shared((16, 512), "float32")
            x = T.alloc_shared((16, 512), "float32")
            T.copy(S, narrow)
            T.copy(X[core * 16, 0], x)
            if once:
                T.copy(narrow, wide)
                for _ in T.serial(rows // 48):
                    T.vmul(x, wide, x)
            else:
                for _ in T.serial(rows // 48):
                    T.copy(narrow, wide)
                    T.vmul(x, wide, x)
            T.copy(x, Y[core * 16, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def reversed_rows(regular: bool) -> Any:
    """Rows shifted by one element, by a gather or by a copy."""

    @T.prim_func
    def main(X: T.Tensor((768, 256), "float32"), I: T.Tensor((16, 128), "int32"), Y: T.Tensor((768, 128), "float32")):
        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_shared((16, 256), "float32")
            at = T.alloc_shared((16, 128), "int32")
            y = T.alloc_shared((16, 128), "float32")
            T.copy(X[core * 16, 0], x)
            T.copy(I, at)
            for _ in T.serial(8):
                if regular:
                    T.copy(x[:, 8:136], y)
                else:
                    T.gather(x, y, at)
            T.copy(y, Y[core * 16, 0])

    return main


# The cause that is planted: the kernel, what is first (any of these words), what the kernel is like without it.
PLANTED: dict[str, tuple[Any, tuple[str, ...], Any]] = {
    "small bursts": (lambda: narrow_columns(1024, 384, 8), ("small bursts", "width="), lambda: narrow_columns(1024, 6144, 128)),
    "no double buffering": (lambda: in_turn(6144, 1), ("no overlap", "num_stages=", "stages="), lambda: in_turn(6144, 3)),
    "bad block order": (lambda: scattered(4096, 4096, 1024), ("block order",), None),
    "bad order of tiles": (lambda: one_block_a_core(3072, 4096, 1024, 1), ("tile order",),
                           lambda: one_block_a_core(3072, 4096, 1024, 12)),
    "narrow tile": (lambda: flat_tiles(2048, 2048, 1024, 16), ("narrow tile", "height="),
                    lambda: flat_tiles(2048, 2048, 1024, 128)),
    "scalar fallback": (lambda: one_by_one(768), ("scalar work",), None),
    "redundant barrier": (lambda: with_barriers(8192), ("redundant barrier",), None),
    "unaligned rows": (lambda: shifted_rows(12288, 267), ("unaligned rows",), lambda: shifted_rows(12288, 384)),
    "vector work on one core": (lambda: on_one_core(1536), ("one Vector core",), None),
    "too many hand-overs": (lambda: to_and_fro(3072, 16), ("hand-overs", "width="), lambda: to_and_fro(3072, 128)),
    "small tiles": (lambda: few_rows(12288, 2), ("small tiles", "height="), lambda: few_rows(12288, 32)),
    "one block": (lambda: alone(512), ("few blocks",), None),
    "atomic updates": (lambda: summed_to_one(48 * 8 * 32, 1), ("atomic updates",), lambda: summed_to_one(48 * 8 * 32, 32)),
    "conversions": (lambda: cast_in_each_turn(48 * 64, once=False), ("conversions",),
                    lambda: cast_in_each_turn(48 * 64, once=True)),
    "gathers": (lambda: reversed_rows(regular=False), ("gathers",), lambda: reversed_rows(regular=True)),
    "a tensor between launches": (lambda: in_two_launches(24576), ("separate launches",), lambda: in_one_launch(24576)),
}


@pytest.mark.parametrize(("make", "text"), [
    (lambda: alone(64), r"few blocks: 1 block for 48 cores: divide the work into about (\d+) equal parts; more cores take"
                        r" longer to launch than they save"),
    (lambda: flat_tiles(24 * 16, 256, 64, 16), r"many blocks: launching a core for each of 24 blocks takes longer than it"
                                               r" saves: divide the work among about (\d+)"),
], ids=["few", "many"])
def test_launching_a_core_costs_time(make: Callable[[], Any], text: str) -> None:
    (cause,) = [one for one in make().profile(edits=False).causes if one.cause in ("few blocks", "many blocks")]
    found = re.match(text, f"{cause.cause}: {cause.text}")
    assert found, str(cause)
    launch, blocks = make().trace(), int(found[1])
    times = {count: launch.launch_us_of(count) + launch.chip.microseconds(launch.cycles) * launch.blocks / count
             for count in range(1, launch.cores + 1)}
    assert times[blocks] == min(times.values()) == pytest.approx(cause.after)


def told(profile: Any) -> list[Any]:
    """The causes of lost time and the edits that were tried, the largest gain first."""
    return sorted([*profile.causes, *profile.advice], key=lambda one: one.after)


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_is_first(name: str) -> None:
    make, words, better = PLANTED[name]
    profile = make().profile()
    found = told(profile.on(SMALL_L2) if "order" in name else profile)
    assert found, "nothing is told"
    first = found[0]
    assert any(word in f"{first.cause}: {first.text}" for word in words), [str(one) for one in found]
    assert first.gain > 0.1
    assert [one.after for one in found] == sorted(one.after for one in found)
    if better is not None:
        better_profile = better().profile()
        causes = [one.cause for one in told(better_profile.on(SMALL_L2) if "order" in name else better_profile)
                  if one.gain > 0.1]
        assert not set(causes) & {words[0]}, "what is not done badly is not told"


def by_hand(needed: bool) -> Any:
    """Flags by hand, and a barrier: in front of the store, where nothing else waits, or where a flag does."""

    @tilelang.jit(out_idx=[-1], target="ascendc")
    def factory(rows: int) -> Any:
        @T.prim_func
        def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32")):
            with T.Kernel(24, is_npu=True) as (block, vid), T.Scope("V"):
                x = T.alloc_ub((2, 16, 512), "float32")
                y = T.alloc_ub((16, 512), "float32")
                T.set_flag("v", "mte2", 0)
                T.set_flag("v", "mte2", 1)
                for t in T.serial(rows // 48 // 16):
                    row = (block * 2 + vid) * (rows // 48) + t * 16
                    T.wait_flag("v", "mte2", t % 2)
                    T.copy(X[row, 0], x[t % 2, :, :])
                    T.set_flag("mte2", "v", 0)
                    T.wait_flag("mte2", "v", 0)
                    T.tile.exp(y, x[t % 2, :, :])
                    T.set_flag("v", "mte2", t % 2)
                    for _ in T.serial(6):
                        T.pipe_barrier("v")
                        T.tile.exp(y, y)
                    if needed:
                        T.barrier_all()
                    else:
                        T.barrier_all()
                        T.set_flag("v", "mte3", 0)
                        T.wait_flag("v", "mte3", 0)
                    T.copy(y, Y[row, 0])
                    T.set_flag("mte3", "v", 0)
                    T.wait_flag("mte3", "v", 0)
                T.wait_flag("v", "mte2", 0)
                T.wait_flag("v", "mte2", 1)

        return main

    return factory(6144)


@pytest.mark.parametrize("needed", [True, False])
def test_a_necessary_barrier_is_not_reported(needed: bool) -> None:
    launch = by_hand(needed).profile().launch.retimed(l2_state="cold")  # so that a load takes longer than the store beside it
    found = [one for one in launch.profile().causes if one.cause == "redundant barrier"]
    if needed:
        assert not found
    else:
        assert found[0].place is not None
        assert found[0].place.source().strip() == "T.barrier_all()"
        assert found[0].how == "timed again"


def test_tiles_twice_as_large_win_the_predicted_time() -> None:
    """What is advised is done: the kernel with twice the rows takes the time that was told, but for the ends of its loop."""
    first = next(one for one in few_rows(12288, 4).profile().causes if one.cause == "small tiles")
    assert first.how == "estimate", "fewer tiles overlap less, and fewer blocks are dispatched"
    assert first.gain > 0.1
    assert few_rows(12288, 8).profile().time_us == pytest.approx(first.after, rel=0.05)


@pytest.mark.parametrize(("held", "larger"), [(16, "at least twice"), (60, "1.5 times"), (76, "1.2 times")])
def test_tiles_are_to_grow_no_larger_than_the_memory(held: int, larger: str) -> None:
    """UB has room for 96 rows. It holds a tile of ``held`` rows, and two slots of two rows."""
    @tilelang.jit(target="npuir")
    def factory() -> Any:
        @T.prim_func
        def main(X: T.Tensor((12288, 1024), "float16"), Z: T.Tensor((48 * held, 1024), "float16")):
            with T.Kernel(48, is_npu=True) as (block, _):
                x = T.alloc_shared((2, 1024), "float16")
                z = T.alloc_shared((held, 1024), "float16")
                T.copy(Z[block * held, 0], z)
                for t in T.Pipelined(128, num_stages=2):
                    T.copy(X[block * 256 + t * 2, 0], x)
                    for _ in T.serial(8):
                        T.vadd(x, x, x)
                    T.copy(x, X[block * 256 + t * 2, 0])
                T.vadd(z, z, z)
                T.copy(z, Z[block * held, 0])

        return main

    cause = next(one for one in factory().profile().causes if one.cause == "small tiles")
    assert f"room for tiles {larger} as large" in cause.text


def test_tiles_in_strips_are_not_to_grow() -> None:
    """The tile is larger than UB, which holds a strip of it; the room beside the strip is no room for a larger tile."""
    @T.prim_func
    def main(X: T.Tensor((48 * 2, 512, 256), "float32")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((512, 256), "float32")
            for t in T.serial(2):
                T.copy(X[block * 2 + t, 0, 0], x)
                T.vexp(x, x)
                T.copy(x, X[block * 2 + t, 0, 0])

    kernel = tilelang.compile(main, target="npuir")
    assert any(remark.about == "split-tiles" and remark.kind == DONE for remark in module_remarks(kernel._lowering.final))
    assert "small tiles" not in {one.cause for one in kernel.profile().causes}


def test_a_result_tile_twice_as_large_wins_the_predicted_time() -> None:
    """What is advised is done: where all cores read the same columns of B at the same time, half as many requests for them."""
    narrow, wide = (one_block_a_core(3072, 4096, 1024, 24, width).profile() for width in (128, 256))
    first = next(one for one in narrow.causes if one.cause == "narrow tile")
    assert first.gain > 0.2
    assert wide.time_us == pytest.approx(first.after, rel=0.02)


def test_no_larger_tile_is_advised_where_none_fits() -> None:
    """Sums that take more than half of L0C are not to be twice as large, however often A and B are read."""
    causes = [one.cause for one in flat_tiles(1024, 1024, 4096, 128).profile().causes]
    assert "narrow tile" not in causes
    assert "narrow tile" in [one.cause for one in flat_tiles(1024, 1024, 4096, 64).profile().causes]


@tilelang.jit(out_idx=[-2, -1], target="npuir")
def two_sums(width: int) -> Any:
    """Two products with one operand in common, whose sums of 128 x ``width`` are in L0C at the same time."""
    columns = 1024 // width

    @T.prim_func
    def main(X: T.Tensor((3072, 4096), "float16"), G: T.Tensor((4096, 1024), "float16"), U: T.Tensor((4096, 1024), "float16"),
             Y: T.Tensor((3072, 1024), "float16"), Z: T.Tensor((3072, 1024), "float16")):
        with T.Kernel(24, is_npu=True) as (core, _):
            x = T.alloc_shared((128, 128), "float16")
            g = T.alloc_shared((128, width), "float16")
            u = T.alloc_shared((128, width), "float16")
            gate = T.alloc_fragment((128, width), "float32")
            up = T.alloc_fragment((128, width), "float32")
            for column in T.serial(columns):
                for k in T.Pipelined(32, num_stages=2):
                    T.copy(X[core * 128, k * 128], x)
                    T.copy(G[k * 128, column * width], g)
                    T.copy(U[k * 128, column * width], u)
                    T.gemm(x, g, gate, initC=(k == 0))
                    T.gemm(x, u, up, initC=(k == 0))
                T.copy(gate, Y[core * 128, column * width])
                T.copy(up, Z[core * 128, column * width])

    return main


def test_all_sums_need_room_in_l0c() -> None:
    """Each of two sums takes half of L0C, or a quarter: only the second leaves room for both twice as large."""
    full, half = (two_sums(width).profile(edits=False) for width in (128, 64))
    assert (full.launch.memory["L0C"], half.launch.memory["L0C"]) == (128 * 1024, 64 * 1024)
    assert "narrow tile" not in [one.cause for one in full.causes]
    cause = next(one for one in half.causes if one.cause == "narrow tile")
    assert cause.how == "estimate", "the rows of wider tiles are longer, too"
    assert full.time_us < cause.after < half.time_us


@tilelang.jit(out_idx=[-1], target="npuir")
def tables(heads: int, inside: bool) -> Any:
    """All heads are multiplied by one table: a block for each tile of each head, or a loop over the heads in a block."""

    @T.prim_func
    def in_loops(X: T.Tensor((heads, 3072, 128), "float16"), C: T.Tensor((3072, 128), "float16"),
                 Y: T.Tensor((heads, 3072, 128), "float16")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((64, 128), "float16")
            c = T.alloc_shared((64, 128), "float16")
            T.copy(C[block * 64, 0], c)
            for head in T.Pipelined(heads, num_stages=2):
                T.copy(X[head, block * 64, 0], x)
                T.vmul(x, c, x)
                T.copy(x, Y[head, block * 64, 0])

    @T.prim_func
    def in_blocks(X: T.Tensor((heads, 3072, 128), "float16"), C: T.Tensor((3072, 128), "float16"),
                  Y: T.Tensor((heads, 3072, 128), "float16")):
        with T.Kernel(48, heads, is_npu=True) as (block, head):
            x = T.alloc_shared((64, 128), "float16")
            c = T.alloc_shared((64, 128), "float16")
            T.copy(X[head, block * 64, 0], x)
            T.copy(C[block * 64, 0], c)
            T.vmul(x, c, x)
            T.copy(x, Y[head, block * 64, 0])

    return in_loops if inside else in_blocks


def test_tiles_that_several_blocks_read_are_to_be_loaded_once() -> None:
    """What is advised is done: the loop over the heads saves what was told, at most, and then nothing is told."""
    blocks, loops = (tables(32, inside).profile(edits=False) for inside in (False, True))
    cause = next(one for one in blocks.causes if one.cause == "repeated reads")
    assert cause.text.startswith("equal tiles of C are read 32 times: let a block load such a tile once")
    assert cause.place is not None
    assert cause.place.source().strip() == "T.copy(C[block * 64, 0], c)"
    assert loops.time_us == pytest.approx(cause.after, rel=0.05)
    assert cause.gain > 0.1
    for causes in (blocks.causes, loops.causes):
        assert "narrow tile" not in [one.cause for one in causes]
    assert "repeated reads" not in [one.cause for one in loops.causes], "each core reads each tile once"


def test_overlapping_tiles_are_not_equal() -> None:
    """A stencil reads each row nine times in nine tiles, which no loop of a block and no larger tile reads less often."""
    @tilelang.jit(out_idx=[-1], target="npuir")
    def stencil() -> Any:
        @T.prim_func
        def main(X: T.Tensor((12296, 128), "float32"), Y: T.Tensor((12288, 128), "float32")):
            with T.Kernel(48, is_npu=True) as (block, _):
                x = T.alloc_shared((64, 128), "float32")
                y = T.alloc_shared((64, 128), "float32")
                for t in T.serial(4):
                    T.clear(y)
                    for shift in T.serial(9):
                        T.copy(X[block * 256 + t * 64 + shift, 0], x)
                        T.vadd(y, x, y)
                    T.copy(y, Y[block * 256 + t * 64, 0])

        return main

    profile = stencil().profile(edits=False)
    row = next(row for row in profile.arguments if row.name == "X")
    assert row.used > 8 * row.needed
    assert not {"narrow tile", "repeated reads"} & {one.cause for one in profile.causes}


@tilelang.jit(out_idx=[-1], target="npuir")
def rows_of_tiles(rows: int, height: int) -> Any:
    """Tiles of ``height`` rows, dealt out to the cores in turn."""

    @T.prim_func
    def main(X: T.Tensor((rows, 512), "float16"), Y: T.Tensor((rows, 512), "float16")):
        with T.Kernel(rows // height, is_npu=True) as (block, _):
            x = T.alloc_shared((height, 512), "float16")
            T.copy(X[block * height, 0], x)
            for _ in T.serial(8):
                T.vadd(x, x, x)
            T.copy(x, Y[block * height, 0])

    return main


@pytest.mark.parametrize(("tiles", "told"), [(48, False), (48 * 8, True)])
def test_a_core_with_one_tile_needs_no_larger_one(tiles: int, told: bool) -> None:
    """Half as many tiles would leave half of the cores without work."""
    causes = [one.cause for one in rows_of_tiles(tiles * 4, 4).profile(edits=False).causes]
    assert ("small tiles" in causes) == told


def test_a_trial_refutes_larger_tiles() -> None:
    """Where larger tiles were tried and are slower, no report tells to make them larger."""
    def edit(growth: float, after: float, *, wins: bool) -> TriedEdit:
        return TriedEdit("tile=1 in place of 2", None, 10.0, after, wins=wins, growth=growth)

    larger_wins, larger_loses = edit(2.0, 8.0, wins=True), edit(2.0, 11.0, wins=False)
    smaller_wins, same_wins = edit(0.5, 8.0, wins=True), edit(1.0, 8.0, wins=True)
    refuted = frozenset({"small tiles"})
    for trials, expected in [((), ()), ((larger_wins,), ()), ((larger_wins, smaller_wins), ()), ((same_wins,), ()),
                             ((smaller_wins,), refuted), ((larger_loses,), refuted), ((larger_loses, smaller_wins), refuted),
                             ((larger_loses, larger_wins), ())]:
        assert refuted_causes(trials) == frozenset(expected), trials

    one = few_rows(12288, 4).profile()
    assert "small tiles" in [cause.cause for cause in one.unrefuted_causes]
    told = Profile(one.launch, try_edits=lambda: Tried((), refuted=refuted))
    assert "small tiles" in [cause.cause for cause in told.causes]
    assert "small tiles" not in [cause.cause for cause in told.unrefuted_causes]
    assert "small tiles" not in str(told)
    assert "small tiles" not in [cause["cause"] for cause in told.to_dict()["causes"]]


def test_padded_rows_win_the_predicted_time() -> None:
    """What is advised is done: the padded kernel takes the time that was told."""
    before = shifted_rows(12288, 267).profile()
    first = before.causes[0]
    assert "pad the rows of the tensor to 1152 bytes" in first.text
    assert shifted_rows(12288, 1152 // 4).profile().time_us == pytest.approx(first.after, rel=0.02)


def test_tiles_in_the_advised_order_win_most_of_the_predicted_time() -> None:
    """What is advised is done: in bands of twelve rows most of what is shared stays in L2."""
    row_by_row, bands = (one_block_a_core(3072, 4096, 1024, band).profile().on(SMALL_L2) for band in (1, 12))
    first = row_by_row.causes[0]
    assert (first.cause, first.how) == ("tile order", "at most")
    assert first.text.startswith("B comes from HBM 16.0 times, 128 MB although 8 MB suffice")
    assert first.place is not None
    assert first.place.source().strip() == "T.copy(B[t * 256, column], b)"
    assert first.after <= bands.time_us < row_by_row.time_us - 0.8 * (first.before - first.after)


@pytest.mark.parametrize("profile", [
    lambda: one_block_a_core(3072, 4096, 1024, 1).profile(),  # L2 holds all
    lambda: two_passes(96, 131072).profile().on(SMALL_L2),  # read twice by the one that needs it
    lambda: scattered(4096, 4096, 1024).profile().on(SMALL_L2),  # a block has one tile: that is the order of blocks
    lambda: one_block_a_core(3072, 4096, 1024, 1, blocks=48).profile().on(SMALL_L2),  # blocks in an order of their own
], ids=["held", "two passes", "one tile a block", "two waves"])
def test_another_order_of_tiles_is_not_advised_where_none_helps(profile: Callable[[], Any]) -> None:
    assert "tile order" not in [one.cause for one in profile().causes]


def test_joined_launches_win_most_of_the_predicted_time() -> None:
    """What is advised is done; X is loaded once there, and E neither stored nor loaded."""
    two, one = in_two_launches(24576).profile(), in_one_launch(24576).profile()
    first = two.causes[0]
    assert (first.cause, first.how) == ("separate launches", "timed again")
    assert first.text.startswith("E is written by an earlier launch and read by this one, 48.0 MB: compute all in one T.Kernel")
    assert first.place is not None
    assert first.place.source().strip().startswith("T.copy(E[")
    assert one.time_us < two.time_us - 0.8 * (first.before - first.after)


@pytest.mark.parametrize("returned", [False, True], ids=["workspace", "returned"])
def test_launches_of_cube_and_vector_cores_would_work_at_the_same_time(returned: bool) -> None:
    """No transfer is saved there, whether a caller sees the tensor between them or not: the two overlap."""
    kernel = cube_then_vector(6144, returned=returned)
    found = [one for one in kernel.profile().causes if one.cause == "separate launches"]
    first, second = kernel.profile().launch.parts
    assert len(found) == 1
    assert found[0].text.endswith("where the tiles go from the Cube to the Vector core")
    law = first.chip.launch
    assert found[0].after == pytest.approx(
        max(first.launch_us, second.launch_us) + law.mixed_us
        + max(first.time_us - first.launch_us, second.time_us - second.launch_us))


def test_launches_that_pass_nothing_are_not_to_be_one() -> None:
    @tilelang.jit(out_idx=[1, 2], target="npuir")
    def factory(rows: int) -> Any:
        @T.prim_func
        def main(X: T.Tensor((rows, 512), "float32"), Y: T.Tensor((rows, 512), "float32"), Z: T.Tensor((rows, 512), "float32")):
            with T.Kernel(48, is_npu=True) as (block, _):
                x = T.alloc_shared((rows // 48, 512), "float32")
                T.copy(X[block * (rows // 48), 0], x)
                T.copy(x, Y[block * (rows // 48), 0])
            with T.Kernel(48, is_npu=True) as (block, _):
                x = T.alloc_shared((rows // 48, 512), "float32")
                T.copy(X[block * (rows // 48), 0], x)
                T.copy(x, Z[block * (rows // 48), 0])

        return main

    assert "separate launches" not in [one.cause for one in factory(768).profile().causes]


def test_a_second_buffer_is_advised_only_where_it_fits() -> None:
    """Two tiles of 40 rows are 160 kB of the 192 kB of UB: there is no room for a third one."""
    assert "no overlap" in [one.cause for one in full_ub(1920 * 4, 16).profile().causes]
    assert "no overlap" not in [one.cause for one in full_ub(1920 * 4, 40).profile().causes]


@tilelang.jit(out_idx=[-1], target="npuir")
def work_of_blocks(rows: int, height: int) -> Any:
    """More blocks than cores, so that the compiler makes the loop over the tiles, each with two loads and two large buffers."""

    @T.prim_func
    def main(X: T.Tensor((rows, 1024), "float16"), U: T.Tensor((rows, 1024), "float16"),
             Y: T.Tensor((rows, 1024), "float16")):
        with T.Kernel(rows // height, is_npu=True) as (block, _):
            x = T.alloc_shared((height, 1024), "float16")
            u = T.alloc_shared((height, 1024), "float16")
            v = T.alloc_shared((height, 1024), "float32")
            e = T.alloc_shared((height, 1024), "float32")
            T.copy(X[block * height, 0], x)
            T.copy(U[block * height, 0], u)
            T.copy(u, v)
            T.vexp(v, e)
            T.vadd(v, e, v)
            T.copy(v, u)
            T.vadd(x, u, x)
            T.copy(x, Y[block * height, 0])

    return main


def test_the_compiler_says_why_iterations_do_not_overlap() -> None:
    """The loop is not in the source. One more tile would fit into UB, but not one more of each of the two that are loaded."""
    kernel = work_of_blocks(48 * 8 * 13, 13)
    cause = next(one for one in kernel.profile(edits=False).causes if one.cause == "no overlap")
    (refused,) = [one for one in module_remarks(kernel._lowering.final)
                  if one.about == "pipeline-loops" and one.kind == REFUSED]
    assert cause.text == f"each load waits until the previous tile is no longer needed: {refused.text}: {refused.edit}"
    assert "T.Pipelined" not in cause.text
    assert "UB has too little room" in cause.text and "shrink the tiles" in cause.text


def test_causes_are_in_the_text_and_in_json() -> None:
    one = in_turn(6144, 1).profile()
    lines = str(one).splitlines()
    assert f"  {one.causes[0]}" == lines[lines.index("causes of lost time, with the time without each") + 1]
    assert one.to_dict()["causes"][0]["cause"] == one.causes[0].cause
    assert {row["how"] for row in one.to_dict()["causes"]} <= {"timed again", "at most", "estimate"}


def test_edits_that_were_tried_are_in_the_text_and_in_json() -> None:
    one = in_turn(6144, 1).profile()
    first = one.advice[0]
    lines = str(one).splitlines()
    assert lines[2:4] == ["what to change, largest gain first", f"  {str(first).splitlines()[0]}"]
    assert one.to_dict()["advice"][0]["changes"] == [change.to_dict() for change in first.changes]
    assert first.changes[0].before != first.changes[0].after
    assert (one.to_dict()["advice_note"], one.tried.note) == ("", "")


@pytest.mark.parametrize(("launch", "step"), [
    (lambda: in_turn(6144, 1).trace(), r"line \d+ `T\.vln\(x, x\)` is \d+% of the critical path"),
    (lambda: one_tile().trace(), r"launch overhead is \d\d% of the time: give the launch more work"),
    (lambda: flat_tiles(25 * 64, 256, 4096, 64).trace(),
     r"the last wave uses 1 of 24 cores: choose tiles with which blocks fill each wave, such as 24 blocks"),
    (lambda: flat_tiles(25 * 64, 256, 64, 64).trace(), r"launch overhead is \d\d% of the time: give the launch more work"),
    (lambda: flat_tiles(24 * 16, 256, 64, 16).trace(),
     r"launch overhead is \d\d% of the time: give the launch more work, or compute it in the launch before or after it, or"
     r" divide it among about \d+ blocks, as each core takes time to launch"),
    (lambda: many_instructions(1).trace(), ""),
    (lambda: in_turn(48 * 16 * 3000, 1).trace(), r"kernel.profile\(\) says which lines take the time, and tries edits"),
], ids=["line", "launch", "waves", "launch of two waves", "many blocks", "busy", "long"])
def test_the_summary_says_where_time_is_lost(launch: Callable[[], Any], step: str) -> None:
    found = [line for line in launch().summary().splitlines() if line.startswith("  next")]
    assert len(found) == bool(step)
    assert not step or re.match(f"  next      {step}", found[0]), found


@pytest.mark.parametrize(("profile", "note"), [
    (lambda: in_turn(6144, 1).profile().launch.profile(), "nothing was tried: edits are tried by kernel.profile()"),
    (lambda: best_copy(1 << 20).profile(), r"none of \d+ edits that were tried saves 1%"),
    (lambda: one_tile().profile(), "nothing was tried: no edit applies to this kernel"),
    (lambda: of_any_length().profile((4096,), (4096,)), "nothing was tried: no edit applies to this kernel"),
], ids=["a launch", "no gain", "no edit", "sizes of a call"])
def test_why_there_is_no_advice(profile: Callable[[], Any], note: str) -> None:
    one = profile()
    assert one.advice == ()
    assert re.match(note, one.tried.note)
    assert f"  {one.tried.note}" in str(one).splitlines()
    assert one.to_dict()["advice_note"] == one.tried.note
