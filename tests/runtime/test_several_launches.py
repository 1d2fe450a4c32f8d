"""Kernels with several ``T.Kernel``, which are launched in sequence on the same arguments."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC, split_product
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.jit import recording
from tilelang_npu.simulator import Launches

RNG = np.random.default_rng(0)


def factors(M: int, N: int, K: int, dtype: Any = np.float16) -> tuple[np.ndarray, np.ndarray]:
    return tuple(RNG.standard_normal(shape, np.float32).astype(dtype) for shape in ((M, K), (K, N)))  # type: ignore[return-value]


SIZES = [(70, 50, 96, 3), (33, 17, 64, 2), (5, 40, 48, 1), (64, 64, 128, 4)]


@pytest.mark.parametrize(("M", "N", "K", "parts"), SIZES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_partial_products_and_their_sum(M: int, N: int, K: int, parts: int, dtype: str) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    a, b = factors(M, N, K, kind)
    partial = np.full((parts, M, N), np.nan, np.float32)
    got = split_product(M, N, K, parts, dtype=dtype)(a, b, partial)
    wide = a.astype(np.float64), b.astype(np.float64)
    cut = K // parts
    np.testing.assert_allclose(partial, np.stack([wide[0][:, s * cut:(s + 1) * cut] @ wide[1][s * cut:(s + 1) * cut]
                                                  for s in range(parts)]), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(got, sum(partial[1:], partial[0]).astype(kind))


@tilelang.jit(target="npuir", sanitize=True)
def centred(A, rows: int = 8, dtype=T.float32):  # type: ignore[no-untyped-def]
    """``A - mean(A, axis=0)``: the second launch needs the results of all blocks of the first."""
    M, N = T.const("M, N")
    A: T.Tensor((M, N), dtype)
    blocks = -(-M // rows)
    sums = T.empty((blocks, N), dtype)
    C = T.empty((M, N), dtype)

    with T.Kernel(blocks, threads=128) as block:
        tile = T.alloc_fragment((rows, N), dtype)
        added = T.alloc_fragment((1, N), dtype)
        T.copy(A[block * rows, 0], tile)
        T.reduce_sum(tile, added, dim=0)
        T.copy(added, sums[block, 0])

    scale = 1.0 / M

    with T.Kernel(blocks, threads=128) as block:
        tile = T.alloc_fragment((rows, N), dtype)
        mean = T.alloc_fragment((1, N), dtype)
        part = T.alloc_fragment((1, N), dtype)
        T.clear(mean)
        for other in T.serial(blocks):
            T.copy(sums[other, 0], part)
            for i, j in T.Parallel(1, N):
                mean[i, j] += part[i, j] * scale
        T.copy(A[block * rows, 0], tile)
        for i, j in T.Parallel(rows, N):
            tile[i, j] = tile[i, j] - mean[0, j]
        T.copy(tile, C[block * rows, 0])

    return C


@pytest.mark.parametrize(("m", "n"), [(40, 64), (37, 50), (3, 24)])
@pytest.mark.parametrize("dtype", [T.float32, T.float16])
def test_a_function_that_holds_its_kernels_itself(m: int, n: int, dtype: Any) -> None:
    a = RNG.standard_normal((m, n)).astype(np.float32 if dtype == T.float32 else np.float16)
    got = centred(a, dtype=dtype)
    wide = a.astype(np.float64)
    tolerance = 1e-5 if dtype == T.float32 else 2e-2
    np.testing.assert_allclose(got.astype(np.float64), wide - wide.mean(axis=0), rtol=tolerance, atol=tolerance)


@T.macro
def doubled(source, target, block, columns):  # type: ignore[no-untyped-def]
    with T.Kernel(block, is_npu=True) as (cid, vid):
        row = T.alloc_ub((1, columns), "float32")
        T.copy(source[cid * 2 + vid, 0], row)
        T.tile.add(row, row, row)
        T.copy(row, target[cid * 2 + vid, 0])


def in_macros(columns: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((16, columns), "float32"), B: T.Tensor((16, columns), "float32"),
             C: T.Tensor((16, columns), "float32")):
        doubled(A, B, 8, columns)
        doubled(B, C, 8, columns)
        doubled(C, B, 8, columns)

    return main


@pytest.mark.parametrize("columns", [8, 50, 64])
def test_macros_with_a_kernel_each(columns: int) -> None:
    kernel = tilelang.compile(in_macros(columns), target="ascendc", pass_configs=SYNC)
    kernel.sanitize = True
    a, b, c = RNG.standard_normal((16, columns)).astype(np.float32), *np.zeros((2, 16, columns), np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal((b, c), (8 * a, 4 * a))
    assert [part.blocks for part in kernel.last_launch.parts] == [16, 16, 16]


def test_a_loop_over_kernels_of_run_time_bounds_is_refused() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), n: T.int32):
        for _ in range(n):
            with T.Kernel(1, threads=128):
                row = T.alloc_shared((64,), "float32")
                T.copy(A, row)

    with pytest.raises(TileError, match=r"a loop is outside T\.Kernel") as caught:
        tilelang.compile(main, target="npuir")
    assert caught.value.code == "T160"


def mixed_twice(M: int, N: int) -> Any:
    @T.macro
    def attend(source, target):  # type: ignore[no-untyped-def]
        with T.Kernel(T.ceildiv(M, 16), threads=128) as block:
            left = T.alloc_shared((16, N), "float16")
            right = T.alloc_shared((M, N), "float16")
            score = T.alloc_fragment((16, M), "float32")
            weight = T.alloc_shared((16, M), "float16")
            out = T.alloc_fragment((16, N), "float32")
            T.copy(source[block * 16, 0], left)
            T.copy(source, right)
            T.gemm(left, right, score, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(16, M):
                score[i, j] = T.max(score[i, j] * 0.01, 0)
            T.copy(score, weight)
            T.gemm(weight, right, out, clear_accum=True)
            T.copy(out, target[block * 16, 0])

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16"), C: T.Tensor((M, N), "float16")):
        attend(A, B)
        attend(B, C)

    return main


@pytest.mark.parametrize(("m", "n"), [(32, 32), (48, 20), (40, 64)])
def test_launches_of_both_cores(m: int, n: int) -> None:
    kernel = tilelang.compile(mixed_twice(m, n), target="npuir", sanitize=True)
    assert [program.mixed for program in kernel.programs] == [True, True]
    a = RNG.standard_normal((m, n)).astype(np.float16)
    b, c = np.zeros((2, m, n), np.float16)
    kernel(a, b, c)

    def attended(x: np.ndarray) -> np.ndarray:
        wide = x.astype(np.float32)
        return np.maximum(wide @ wide.T * np.float32(0.01), 0).astype(np.float16).astype(np.float32) @ wide

    np.testing.assert_allclose(b.astype(np.float32), attended(a), rtol=5e-3, atol=5e-3)
    np.testing.assert_allclose(c.astype(np.float32), attended(b), rtol=5e-3, atol=5e-3)


def shifted(rows: int, *, ordered: bool = True, start: int = 0, whole: bool = True) -> Any:
    """B is A by rows; then ``C[i] = B[i + 1]``, which is another block's. Not ``ordered``: all in one launch."""
    blocks = rows if whole else rows - 1

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32"), C: T.Tensor((rows, 64), "float32")):
        with T.Kernel(blocks, threads=128) as block:
            row = T.alloc_shared((1, 64), "float32")
            T.copy(A[block, 0], row)
            T.copy(row, B[block, 0])
            if not ordered:
                T.copy(B[(block + 1) % rows, 0], row)
                T.copy(row, C[block, 0])
        if ordered:
            with T.Kernel(rows, threads=128) as block:
                row = T.alloc_shared((1, 64), "float32")
                T.copy(B[(block + 1) % rows, 0], row)
                T.copy(row, C[block + start, 0])

    return main


def found(kernel: Any, *arrays: np.ndarray) -> list[str]:
    with recording.record(sanitizer=Sanitizer()) as done:
        kernel(*arrays)
    return [f"{finding.kernel}: {finding.code}" for tally in done.tallies for finding in tally.findings]


def test_what_the_first_leaves_is_no_race_in_the_second() -> None:
    a = RNG.standard_normal((5, 64)).astype(np.float32)
    b, c = np.zeros((2, 5, 64), np.float32)
    kernel = tilelang.compile(shifted(5), target="npuir")
    assert found(kernel, a, b, c) == []
    np.testing.assert_array_equal(c, np.roll(a, -1, axis=0))
    assert found(tilelang.compile(shifted(5, ordered=False), target="npuir"), a, b, c) == ["main: S203"]


def clashing() -> Any:
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=128) as block:
            row = T.alloc_shared((1, 64), "float32")
            T.copy(A[block, 0], row)
            T.copy(row, B[block, 0])
        with T.Kernel(4, threads=128) as block:
            other = T.alloc_shared((1, 64), "float32")
            T.copy(A[block, 0], other)
            T.copy(other, B[0, 0])

    return main


def test_a_race_in_the_second_is_the_seconds(tmp_path: Path) -> None:
    a, b = RNG.standard_normal((2, 4, 64)).astype(np.float32)
    kernel = tilelang.compile(clashing(), target="npuir")
    assert found(kernel, a, b) == ["main_2: S203"]
    assert [part.hazards != [] for part in kernel.trace().parts] == [False, True]
    kernel.sanitize = True
    with pytest.raises(tilelang.SanitizerError, match="S203"):
        kernel(a, b)


def test_rows_that_the_first_launch_leaves_out() -> None:
    """The grid of the first launch is floored; the second reads all rows."""

    @T.prim_func
    def main(A: T.Tensor((20, 64), "float32"), B: T.Tensor((20, 64), "float32"), C: T.Tensor((20, 64), "float32")):
        with T.Kernel(20 // 8, threads=128) as block:
            tile = T.alloc_shared((8, 64), "float32")
            T.copy(A[block * 8, 0], tile)
            T.copy(tile, B[block * 8, 0])
        with T.Kernel(T.ceildiv(20, 8), threads=128) as block:
            tile = T.alloc_shared((8, 64), "float32")
            T.copy(B[block * 8, 0], tile)
            T.copy(tile, C[block * 8, 0])

    kernel = tilelang.compile(main, target="npuir")
    with pytest.warns(tilelang.TileWarning, match=r"rows 16\.\.19 of B are never written: 256 of 1280 elements"):
        kernel(*np.zeros((3, 20, 64), np.float32))


def test_a_result_in_parts_of_two_launches_is_complete() -> None:
    @T.prim_func
    def main(A: T.Tensor((20, 64), "float32"), B: T.Tensor((20, 64), "float32")):
        with T.Kernel(2, threads=128) as block:
            tile = T.alloc_shared((8, 64), "float32")
            T.copy(A[block * 8, 0], tile)
            T.copy(tile, B[block * 8, 0])
        with T.Kernel(1, threads=128):
            rest = T.alloc_shared((4, 64), "float32")
            T.copy(A[16, 0], rest)
            T.copy(rest, B[16, 0])

    a = RNG.standard_normal((20, 64)).astype(np.float32)
    np.testing.assert_array_equal(tilelang.compile(main, target="npuir", out_idx=[1])(a), a)


def test_times_and_timelines() -> None:
    kernel = tilelang.compile(shifted(5), target="npuir")
    arrays = np.zeros((3, 5, 64), np.float32)
    with recording.record() as done:
        kernel(*arrays)
    whole = kernel.last_launch
    assert isinstance(whole, Launches)
    first, second = whole.parts
    assert (first.name, second.name) == ("main_1", "main_2")
    assert whole.time_us == sum(tally.total_us for tally in done.tallies) == first.time_us + second.time_us
    assert whole.cycles == first.cycles + second.cycles
    assert kernel.get_profiler().do_bench() == pytest.approx(whole.time_us / 1000)
    events = whole.trace()["traceEvents"]
    named = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    begins = {name.split()[0]: min(event["ts"] for event in events if event["ph"] == "X" and named[event["pid"]] == name)
              for name in named.values()}
    assert set(begins) == {"main_1", "main_2"}
    assert begins["main_2"] >= first.time_us > begins["main_1"]
    text = whole.summary()
    assert text.index("main_1  5 blocks") < text.index("main_2  5 blocks") < text.index("main: 2 launches one after the other")
    traced = kernel.trace()
    assert [part.cycles for part in traced.parts] == [first.cycles, second.cycles]


def test_blocks_are_counted_through_in_a_picture() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    kernel = tilelang.compile(shifted(5), target="npuir")
    kernel(*np.zeros((3, 5, 64), np.float32))
    assert kernel.last_launch.plot(4).get_title(loc="left").startswith("main_1, block 4")
    assert kernel.last_launch.plot(6).get_title(loc="left").startswith("main_2, block 1")
    with pytest.raises(TileError, match="there is no block 10"):
        kernel.last_launch.plot(10)


def test_reports_say_which_launch() -> None:
    kernel = split_product(70, 50, 96, 3)
    assert [(one.name, one.kernel) for one in kernel.memory_report().memories] == [
        ("L1", "main_1"), ("L0C", "main_1"), ("UB", "main_2")]
    assert any(line.startswith("UB   of AIV in main_2") for line in kernel.explain().sections["memory"])
    waits = kernel.sync_report().entries
    assert {entry.core for entry in waits} == {"AIC", "AIV"}
    assert any(" cycles" in line for line in kernel.mlir(annotate=True).partition("@main_2(")[2].splitlines())


def test_waits_of_a_line_that_two_launches_share() -> None:
    """Both launches are from one macro: each wait is reported with the decisions, and the call, of its own launch."""
    kernel = tilelang.compile(mixed_twice(32, 32), target="npuir")
    waits = kernel.sync_report().entries
    assert len(waits) % 2 == 0
    half = len(waits) // 2
    first, second = ([(one.what, one.line, re.sub(r", called at line \d+", "", one.reason)) for one in part]
                     for part in (waits[:half], waits[half:]))
    assert first == second
    calls = [{one.line.callers[0].line for one in part if one.line is not None and one.line.callers}
             for part in (waits[:half], waits[half:])]
    assert [len(lines) for lines in calls] == [1, 1]
    assert max(calls[0]) + 1 == min(calls[1])


def test_symbolic_sizes_and_an_empty_second_grid() -> None:
    M = T.symbolic("M")

    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32"), n: T.int32):
        with T.Kernel(T.ceildiv(M, 4), threads=128) as block:
            tile = T.alloc_shared((4, 64), "float32")
            T.copy(A[block * 4, 0], tile)
            T.copy(tile, B[block * 4, 0])
        last = n - 1
        with T.Kernel(n, threads=128) as block:
            row = T.alloc_shared((1, 64), "float32")
            T.copy(B[block, 0], row)
            for i, j in T.Parallel(1, 64):
                row[i, j] = row[i, j] + last
            T.copy(row, B[block, 0])

    kernel = tilelang.compile(main, target="npuir", sanitize=True)
    for rows, count in ((7, 3), (1, 1), (12, 5)):
        a = RNG.standard_normal((rows, 64)).astype(np.float32)
        b = np.zeros_like(a)
        kernel(a, b, count)
        wanted = a.copy()
        wanted[:count] += np.float32(count - 1)
        np.testing.assert_array_equal(b, wanted)
    b[...] = 3
    with pytest.raises(TileError, match="the grid of main_2 is 0: there is no block to run"):
        kernel(a, b, 0)
    assert (b == 3).all(), "nothing was launched"


def test_a_buffer_does_not_outlive_its_launch() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=128):
            row = T.alloc_shared((64,), "int32")
            T.copy(A, row)
        with T.Kernel(1, threads=128):
            T.copy(row, A)

    with pytest.raises(TileError, match="'row' is out of scope"):
        tilelang.compile(main, target="npuir")


def test_a_buffer_that_a_list_keeps_does_not_either() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        kept = []
        with T.Kernel(1, threads=128):
            kept.append(T.alloc_shared((64,), "int32"))
            T.copy(A, kept[0])
        with T.Kernel(1, threads=128):
            T.copy(kept[0], A)

    with pytest.raises(TileError, match=r"belongs to another T\.Kernel") as caught:
        tilelang.compile(main, target="npuir")
    assert caught.value.code == "T160"


def test_every_stage_is_text_that_can_be_read_again() -> None:
    kernel = tilelang.compile(mixed_twice(32, 32), target="npuir")
    for stage in kernel.stages():
        parse_module(kernel.mlir(stage)).verify()
    names = [line.split("@")[1].split("(")[0] for line in kernel.mlir().splitlines() if "func.func @" in line]
    assert [name for name in names if not name.endswith("_function")] == [
        f"main_{number}_mix_{core}" for number in (1, 2) for core in ("aic", "aiv")]


def test_export_lists_the_launches(tmp_path: Path) -> None:
    *_, manifest, readme = split_product(33, 17, 64, 2).export(tmp_path)
    facts = json.loads(manifest.read_text())
    assert [(one["symbol"], one["cores"], one["blocks"]) for one in facts["launches"]] == [
        ("main_1", "AIC", 4), ("main_2", "AIV", 5)]
    assert [one["name"] for one in facts["arguments"] if one["role"] == "user"] == ["A", "B", "P", "C"]
    text = readme.read_text()
    assert text.index("1. Register `main_1`") < text.index("2. Register `main_2`")


def test_the_cache_gives_the_same_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILELANG_DISABLE_CACHE", raising=False)
    texts = [tilelang.compile(shifted(6), target="npuir") for _ in range(2)]
    assert [kernel._lowering.from_cache for kernel in texts] == [False, True]
    assert texts[0].mlir() == texts[1].mlir()
    a = RNG.standard_normal((6, 64)).astype(np.float32)
    b, c = np.zeros((2, 6, 64), np.float32)
    texts[1](a, b, c)
    np.testing.assert_array_equal(c, np.roll(a, -1, axis=0))


def test_there_is_no_single_program() -> None:
    kernel = tilelang.compile(shifted(5), target="npuir")
    with pytest.raises(TileError, match="exactly one kernel is needed, but the module has main_1, main_2"):
        _ = kernel.program
    assert [program.name for program in kernel.programs] == ["main_1", "main_2"]


@pytest.mark.parametrize("schedule", ["late", "early", "random:3"])
def test_another_order_of_the_ops_gives_the_same(schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_SCHEDULE", schedule)
    kernel = tilelang.compile(mixed_twice(32, 20), target="npuir")
    a = RNG.standard_normal((32, 20)).astype(np.float16)
    results = np.zeros((2, 2, 32, 20), np.float16)
    kernel(a, *results[0])
    monkeypatch.delenv("TILELANG_NPU_SCHEDULE")
    kernel(a, *results[1])
    np.testing.assert_array_equal(results[0], results[1])


@tilelang.jit(target="npuir", out_idx=[-1], sanitize=True)
def softmax(rows: int, columns: int, parts: int, dtype: str = "float16") -> Any:
    """By rows, in parts: the first launch leaves each part's maximum and sum in tensors of the call's own."""
    width = -(-columns // parts)

    @T.prim_func
    def softmax(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        largest = T.alloc_global((parts, rows), "float32")
        sums = T.alloc_global([parts, rows], dtype="float32", scope="global")
        with T.Kernel(rows, parts, threads=128) as (row, part):
            x = T.alloc_fragment((1, width), "float32")
            high = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            for i, j in T.Parallel(1, width):
                x[i, j] = T.if_then_else(part * width + j < columns, A[row, part * width + j], -T.infinity("float32"))
            T.reduce_max(x, high, dim=1)
            for i, j in T.Parallel(1, width):
                x[i, j] = T.exp(x[i, j] - high[i])
            T.reduce_sum(x, total, dim=1)
            largest[part, row] = high[0]
            sums[part, row] = total[0]
        with T.Kernel(rows, parts, threads=128) as (row, part):
            x = T.alloc_fragment((1, width), "float32")
            high = T.alloc_var("float32", init=largest[0, row])
            total = T.alloc_var("float32", init=0.0)
            for p in T.serial(parts):
                high = T.max(high, largest[p, row])
            for p in T.serial(parts):
                total = total + sums[p, row] * T.exp(largest[p, row] - high)
            T.copy(A[row:row + 1, part * width:(part + 1) * width], x)
            for i, j in T.Parallel(1, width):
                x[i, j] = T.exp(x[i, j] - high) / total
            T.copy(x, B[row:row + 1, part * width:(part + 1) * width])

    return softmax


@pytest.mark.parametrize(("rows", "columns", "parts"), [(5, 96, 3), (3, 50, 4), (1, 33, 1)])
def test_tensors_of_the_calls_own(rows: int, columns: int, parts: int) -> None:
    a = RNG.standard_normal((rows, columns)).astype(np.float16)
    kernel = softmax(rows, columns, parts)
    assert [parameter.name for parameter in kernel.params] == ["A", "B", "largest", "sums"]
    wide = np.exp(a.astype(np.float64))
    for _ in range(2):
        np.testing.assert_allclose(kernel(a), wide / wide.sum(axis=1, keepdims=True), rtol=2e-3, atol=1e-4)


def test_own_tensors_of_symbolic_sizes() -> None:
    M = T.symbolic("M")

    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
        turned = T.alloc_global((A.shape[0] + 1, 64), "float32")
        with T.Kernel(M, threads=128) as row:
            x = T.alloc_shared((1, 64), "float32")
            T.copy(A[row, 0], x)
            T.copy(x, turned[M - row, 0])
        with T.Kernel(M, threads=128) as row:
            x = T.alloc_shared((1, 64), "float32")
            T.copy(turned[row + 1, 0], x)
            T.copy(x, B[row, 0])

    kernel = tilelang.compile(main, target="npuir", out_idx=-1, sanitize=True)
    assert kernel.out_idx == [1], "positions count what a caller sees"
    for rows in (1, 7):
        a = RNG.standard_normal((rows, 64)).astype(np.float32)
        np.testing.assert_array_equal(kernel(a), a[::-1])
    assert str(kernel.params[-1].shape[0]) == "M + 1"
    with pytest.raises(TileError, match="turned: allocated by the call"):
        kernel(a, a, a)


@tilelang.jit(target="npuir", sanitize=True)
def twice_added(A):  # type: ignore[no-untyped-def]
    """``A + A + A``, through a tensor that is not returned."""
    M = T.const("M")
    A: T.Tensor((M, 32), "float32")
    between = T.alloc_global((M, 32), "float32")
    B = T.empty((M, 32), "float32")
    with T.Kernel(M, threads=128) as row:
        x = T.alloc_shared((1, 32), "float32")
        T.copy(A[row, 0], x)
        for i, j in T.Parallel(1, 32):
            x[i, j] = x[i, j] + x[i, j]
        T.copy(x, between[row, 0])
    with T.Kernel(M, threads=128) as row:
        x = T.alloc_shared((1, 32), "float32")
        y = T.alloc_shared((1, 32), "float32")
        T.copy(A[row, 0], x)
        T.copy(between[row, 0], y)
        for i, j in T.Parallel(1, 32):
            y[i, j] = y[i, j] + x[i, j]
        T.copy(y, B[row, 0])
    return B


def test_an_own_tensor_in_a_function_that_holds_its_kernels_itself() -> None:
    a = RNG.standard_normal((5, 32)).astype(np.float32)
    np.testing.assert_array_equal(twice_added(a), a + a + a)


@pytest.mark.parametrize(("where", "report"), [
    ("inside", r"T\.alloc_global is inside T\.Kernel"), ("size", "size n of axis 0 is computed on the device"),
    ("scope", "there is no scope 'shared'")])
def test_own_tensors_that_cannot_be(where: str, report: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        if where == "size":
            W = T.alloc_global((A[0],), "int32")
        if where == "scope":
            W = T.alloc_global((64,), "int32", "shared")
        with T.Kernel(1, threads=128):
            if where == "inside":
                W = T.alloc_global((64,), "int32")
            x = T.alloc_shared((64,), "int32")
            T.copy(A, x)
            T.copy(x, W)

    with pytest.raises(TileError, match=report.replace("size n", "size .*")):
        tilelang.compile(main, target="npuir")


def chosen(later: float) -> Any:
    """Reads uninitialised bytes if A is positive; a second launch writes a number to all of A."""

    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((8, 64), "float32")
            s = T.alloc_shared((8, 64), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(8, 64):
                a[i, j] = T.if_then_else(a[i, j] > 0, s[i, j], a[i, j])
            T.copy(a, C)
        with T.Kernel(1, threads=128):
            b = T.alloc_shared((8, 64), "float32")
            T.fill(b, later)
            T.copy(b, A)

    return tilelang.compile(main, target="npuir")


@pytest.mark.filterwarnings("ignore:stale")
@pytest.mark.parametrize(("first", "later", "codes"), [(1.0, -1.0, ["S221"]), (-1.0, 1.0, [])])
def test_hazards_read_after_several_launches_are_of_what_each_left(first: float, later: float, codes: list[str]) -> None:
    kernel = chosen(later)
    a = np.full((8, 64), first, np.float32)
    kernel(a, np.zeros((8, 64), np.float32))
    assert (a == later).all()
    assert [hazard.code for hazard in kernel.last_launch.hazards] == codes
    assert [[hazard.code for hazard in part.hazards] for part in kernel.last_launch.parts] == [codes, []]


def test_only_what_a_later_launch_changes_is_copied_for_its_hazards() -> None:
    a, b = factors(40, 32, 64)
    partial = np.zeros((2, 40, 32), np.float32)
    kernel = split_product(40, 32, 64, 2)
    kernel.sanitize = False
    kernel(a, b, partial)
    first = kernel.last_launch.parts[0].recorded.bound.given
    assert [one is other for one, other in zip(first, (a, b, partial), strict=False)] == [True] * 3
    kernel = chosen(1.0)
    mine = np.full((8, 64), -1.0, np.float32), np.zeros((8, 64), np.float32)
    kernel(*mine)
    kept, result = kernel.last_launch.parts[0].recorded.bound.given
    assert (kept == -1).all()
    assert result is mine[1]
