"""Profiles: the parts of each time add up to it; bytes, bounds and reasons are those that follow from the kernel."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from simulator.test_time_properties import KERNELS, launch
from simulator.test_waiting_blocks import turned
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.result import launch_result
from tilelang_npu.simulator.result.profile.launch_profile import Profile
from tilelang_npu.simulator.result.profile.time_parts import WORK
from tilelang_npu.simulator.time.critical_path import START
from tilelang_npu.simulator.time.gm_traffic import MovedBytes, gm_use, served


@tilelang.jit(out_idx=[-1], target="npuir")
def product(m: int, n: int, k: int, tile: int = 128, depth: int = 64, stages: int = 2) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(m // tile * (n // tile), is_npu=True) as (block, _):
            a = T.alloc_shared((tile, depth), "float16")
            b = T.alloc_shared((depth, tile), "float16")
            c = T.alloc_fragment((tile, tile), "float32")
            for t in T.Pipelined(k // depth, num_stages=stages):
                T.copy(A[block // (n // tile) * tile, t * depth], a)
                T.copy(B[t * depth, block % (n // tile) * tile], b)
                T.gemm(a, b, c, initC=(t == 0))
            T.copy(c, C[block // (n // tile) * tile, block % (n // tile) * tile])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def softmax(rows: int, columns: int) -> Any:
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), W: T.Tensor((columns, columns), "float16"),
             Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows // 64, is_npu=True) as (block, _):
            x = T.alloc_shared((64, columns), "float32")
            h = T.alloc_shared((64, columns), "float16")
            w = T.alloc_shared((columns, columns), "float16")
            y = T.alloc_fragment((64, columns), "float32")
            T.copy(X[block * 64, 0], x)
            T.vexp(x, x)
            T.copy(x, h)
            T.copy(W[0, 0], w)
            T.gemm(h, w, y, initC=True)
            T.vadd(y, x, y)
            T.copy(y, Y[block * 64, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def in_two(rows: int) -> Any:
    @T.prim_func
    def main(X: T.Tensor((rows, 256), "float32"), Z: T.Tensor((rows, 256), "float32"), Y: T.Tensor((rows, 256), "float32")):
        with T.Kernel(rows // 16, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 256), "float32")
            T.copy(X[block * 16, 0], x)
            T.vexp(x, x)
            T.copy(x, Z[block * 16, 0])
        with T.Kernel(rows // 16, is_npu=True) as (second, _two):
            z = T.alloc_shared((16, 256), "float32")
            T.copy(Z[second * 16, 0], z)
            T.vadd(z, 1.0, z)
            T.copy(z, Y[second * 16, 0])

    return main


MADE: dict[str, Callable[[], Profile]] = {
    **{name: (lambda name=name: launch(name).profile()) for name in KERNELS},  # type: ignore[misc]
    "mixed": lambda: softmax(1024, 128).profile(),
    "waves of two kinds": lambda: product(1280, 1024, 256).profile(),
    "two launches": lambda: in_two(1024).profile(),
    "blocks that wait for each other": lambda: turned().profile(),
}


@cache
def profile(name: str) -> Profile:
    return MADE[name]()


@pytest.mark.parametrize("name", MADE)
def test_the_parts_add_up_to_the_total_exactly(name: str) -> None:
    one = profile(name)
    assert one.time_us == pytest.approx(one.launch.time_us, abs=1e-6)
    assert sum(part.us for part in one.critical_path) == one.time_us
    assert sum(line.us for line in one.lines) == one.time_us
    assert one.pipes
    for pipe in one.pipes:
        assert sum(part.us for part in pipe.parts) == one.time_us, pipe
        assert min(part.us for part in pipe.parts) > 0, pipe
    for part in (*one.critical_path, *(part for pipe in one.pipes for part in pipe.parts)):
        assert part.reason.kind


@pytest.mark.parametrize("name", MADE)
def test_the_parts_are_not_made_to_add_up(name: str) -> None:
    """They do so before they are rounded, too: nothing is spread over them."""
    for part, of in zip(profile(name).parts, profile(name).launch.parts, strict=True):
        assert sum(part.path.values()) == pytest.approx(of.time_us, rel=1e-9)
        for reasons in part.pipes.values():
            assert sum(reasons.values()) == pytest.approx(of.time_us, rel=1e-9)


@pytest.mark.parametrize("name", MADE)
def test_the_path_has_no_gap(name: str) -> None:
    for part in profile(name).parts:
        for block in part.blocks:
            starts = [stretch.start for stretch in block.path]
            ends = [stretch.end for stretch in block.path]
            assert starts == [0.0, *ends[:-1]]
            assert ends[-1] == block.group.timing.cycles
            assert all(stretch.end > stretch.start for stretch in block.path)


@pytest.mark.parametrize("name", MADE)
def test_the_lines_have_all_the_work_of_their_pipes(name: str) -> None:
    """The work is the time in which a pipe is busy, without latencies: those of one instruction pass while the next runs."""
    one = profile(name)
    done: dict[tuple[str, str], float] = {}
    for line in one.lines:
        for row, us in line.work.items():
            done[row] = done.get(row, 0.0) + us
    for pipe in one.pipes:
        latencies = sum(part.us for part in pipe.parts if part.reason.kind == "latency")
        assert done.get((pipe.core, pipe.pipe), 0.0) == pytest.approx(pipe.busy_us - latencies, abs=1e-5), pipe


@pytest.mark.parametrize("name", MADE)
def test_what_waits_for_an_event_waits_for_the_operation_before_the_event(name: str) -> None:
    ops = [part.reason.op for part in profile(name).critical_path if part.reason.kind in ("event", "flag")]
    assert ops
    assert not {"set_flag", "sync_block_set"} & set(ops)


@pytest.mark.parametrize("name", MADE)
def test_pipes_are_busy_as_the_launch_says(name: str) -> None:
    one = profile(name)
    for row in one.pipes:
        expected = sum(part.pipes.get(row.core, {}).get(row.pipe, 0.0) * part.chip.microseconds(part.cycles)
                       for part in one.launch.parts)
        assert row.busy_us == pytest.approx(expected, rel=1e-6, abs=1e-5), (row.core, row.pipe)


@pytest.mark.parametrize("name", ["waves of two kinds", "mixed", "one product"])
def test_what_lies_around_the_blocks_is_of_the_cores_that_take_part(name: str) -> None:
    """On average over them: the launch, the starts of all blocks but the first of each core, and the wait for the last core."""
    for part, of in zip(profile(name).parts, profile(name).launch.parts, strict=True):
        cores = min(of.cores, of.blocks)
        starts, taken = of.block_starts, [group.timing.cycles for group in of.group_of_block]
        gaps = sum(starts[place] - starts[place - cores] - taken[place - cores] for place in range(cores, of.blocks))
        assert (gaps > 0) == (of.blocks > of.cores), "the blocks are shorter than the dispatch of a wave"
        expected = {"launch": of.launch_us, "next block": of.chip.microseconds(gaps) / cores,
                    "idle": of.chip.microseconds(sum(of.cycles - end for end in of.core_cycles) / cores)}
        assert (name == "waves of two kinds") == (of.blocks > of.cores)
        for reasons in part.pipes.values():
            found = {reason.kind: us for reason, us in reasons.items() if reason.kind in expected}
            assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["waves of two kinds", "mixed", "one product", "blocks that wait for each other"])
def test_only_barriers_take_the_time_of_a_barrier(name: str) -> None:
    report = {str(stretch.reason).split(" line")[0] for part in profile(name).parts for block in part.blocks
            for stretch in block.path if stretch.reason.kind == "barrier"}
    assert report
    assert all(reason.endswith(" pipe_barrier") for reason in report)
    assert ("barrier AIV V pipe_barrier" in report) == (name == "mixed")  # between the exponential and the cast


@pytest.mark.parametrize("name", ["waves of two kinds", "mixed", "one product"])
def test_work_is_of_one_core_on_average(name: str) -> None:
    """All that a pipe does in all blocks, divided by the cores that take part and the Vector cores of each."""
    for part, of in zip(profile(name).parts, profile(name).launch.parts, strict=True):
        program = of.recorded.program
        lanes = [program.functions[index].core for index, _ in program.lanes]
        for core, pipe in part.pipes:
            cycles = sum(one.group.count * sum(taken for (row, _), taken in one.work.items() if row == (core, pipe))
                         for one in part.blocks)
            found = sum(us for (row, _), us in part.work.items() if row == (core, pipe))
            assert found == pytest.approx(of.chip.microseconds(cycles) / min(of.cores, of.blocks) / lanes.count(core))


@pytest.mark.parametrize("name", ["mixed", "waves of two kinds", "one product"])
def test_no_step_begins_before_what_decided_it(name: str) -> None:
    for part in profile(name).parts:
        for block in part.blocks:
            walked = block.traced.walked
            for place in range(len(walked.points)):
                for which in range(len(walked.points[place].times)):
                    before = walked.decided_by(walked.points[place].start_by._replace(place=place, which=which))
                    if before is not None:
                        assert walked.time(before) <= walked.points[place].times[which]
                assert walked.points[place].times[START] >= walked.points[place].due


def test_a_load_an_addition_and_a_store_are_the_path() -> None:
    """By hand: instructions are issued, the load arrives, an event, the addition, an event, the store."""
    one = launch("one addition")
    chip = one.chip
    kinds = {(part.reason.kind, part.reason.pipe): part.us for part in one.profile().critical_path}
    rate, repeats = chip.vector["add"], 2048 * 2 / 256
    addition = kinds["compute", "V"] + kinds["latency", "V"]
    assert rate.fixed + rate.slope16 * repeats - 0.1 <= addition * chip.clock / 1e6 <= rate.fixed + 2 * repeats + 0.1
    assert kinds["event", "V"] == pytest.approx(chip.microseconds(chip.sync.event), abs=1e-5)
    assert kinds["event", "MTE2"] == pytest.approx(chip.microseconds(chip.sync.event), abs=1e-5)
    assert kinds["launch", ""] == pytest.approx(one.launch_us, abs=1e-5)
    waits = {part.reason.pipe: part.us for row in one.profile().pipes if row.pipe == "V" for part in row.stalls
             if part.reason.kind == "wait"}
    assert waits.keys() == {"MTE2"}


def cold(name: str) -> Profile:
    """The profile of a launch that finds nothing in L2."""
    launch = profile(name).launch
    assert isinstance(launch, Launch)
    return launch.retimed(l2_state="cold").profile()


def test_bytes_are_those_of_the_tiles_and_of_the_arrays() -> None:
    m, n, k, tile = 1280, 1024, 256, 128
    one = cold("waves of two kinds")
    rows = {row.name: row for row in one.arguments}
    assert [rows[name].used for name in "ABC"] == [m * k * 2 * (n // tile), k * n * 2 * (m // tile), m * n * 4]
    assert [rows[name].needed for name in "ABC"] == [m * k * 2, k * n * 2, m * n * 4]
    assert [rows[name].written for name in "ABC"] == [False, False, True]
    assert [rows[name].hbm for name in "ABC"] == [m * k * 2, k * n * 2, 0], "L2 holds them"
    assert [row.hbm for row in profile("waves of two kinds").arguments] == [0, 0, 0], "and the launch before has read them"
    paths = {row.path: row for row in one.paths}
    assert paths["gm_l1_nd2nz"].used == rows["A"].used + rows["B"].used
    assert paths["l1_l0a"].used == rows["A"].used
    assert paths["l0c_gm_nz2nd"].used == m * n * 4
    assert paths["l1_l0a"].rate == pytest.approx(rows["A"].used / one.launch.time_us / 1e3)


def test_the_table_of_arguments_names_tensors_that_are_read_as_scalars() -> None:
    @tilelang.jit(out_idx=[-1], target="npuir")
    def weighted(count: int) -> Any:
        @T.prim_func
        def main(X: T.Tensor((768, 256), "float32"), W: T.Tensor((48,), "float32"), Y: T.Tensor((768, 256), "float32")):
            with T.Kernel(48, is_npu=True) as (block, _):
                x = T.alloc_shared((16, 256), "float32")
                T.copy(X[block * 16, 0], x)
                T.vmul(x, W[block] if count else 2.0, x)
                T.copy(x, Y[block * 16, 0])

        return main

    for count in (0, 1):
        lines = str(weighted(count).profile(edits=False)).splitlines()
        assert ("  not counted: elements of W, which the scalar unit accesses one by one" in lines) == bool(count)
        assert not any(line.startswith("  W ") for line in lines)


def test_rows_that_begin_anywhere_move_whole_lines() -> None:
    @tilelang.jit(out_idx=[-1], target="npuir")
    def copied(columns: int) -> Any:
        @T.prim_func
        def main(X: T.Tensor((1024, columns), "float32"), Y: T.Tensor((1024, 256), "float32")):
            with T.Kernel(16, is_npu=True) as (block, _):
                x = T.alloc_shared((64, 256), "float32")
                T.copy(X[block * 64, 0], x)
                T.copy(x, Y[block * 64, 0])

        return main

    aligned, shifted = (copied(columns).profile() for columns in (384, 381))
    assert [aligned.arguments[0].moved, aligned.arguments[0].used] == [2**20, 2**20]
    assert shifted.arguments[0].used == 2**20
    assert shifted.arguments[0].moved == 1024 * (1024 + 512 - 4)
    roof = aligned.roofline  # no operations: the share of the memory
    assert roof.operations == 0 and 0 < roof.share == roof.memory_bytes / roof.memory_rate / roof.seconds < 1


def test_achieved_is_what_was_computed_in_the_time() -> None:
    one = cold("waves of two kinds")
    roof = one.roofline
    assert roof.unit == "Cube"
    assert roof.achieved == pytest.approx(2 * 1280 * 1024 * 256 / one.launch.time_us * 1e6)
    assert roof.peak == pytest.approx(one.launch.parts[0].chip.peak_flops("f16"))
    assert roof.hbm_bytes == sum(row.hbm for row in one.arguments) == 2 * 256 * (1280 + 1024)
    assert roof.intensity == pytest.approx(2 * 1280 * 1024 * 256 / roof.hbm_bytes)
    assert roof.achieved < roof.attainable <= roof.peak
    assert cold("48 additions").roofline.unit == "Vector"
    assert cold("48 additions").roofline.bound == "HBM"
    held = profile("waves of two kinds").roofline  # L2 holds all that it reads and writes
    assert (held.hbm_bytes, held.operations, held.memory) == (0, roof.operations, "L2")
    assert held.memory_bytes == sum(row.moved for row in profile("waves of two kinds").arguments)
    assert held.intensity == roof.operations / held.memory_bytes
    assert held.attainable == pytest.approx(min(roof.peak, held.intensity * held.l2_rate))
    assert held.achieved > roof.achieved
    for either in (roof, held, cold("48 additions").roofline):
        assert either.share == pytest.approx(either.achieved / either.attainable)


@pytest.mark.parametrize("l2_state", ["warm", "cold"])
@pytest.mark.parametrize("name", MADE)
def test_the_summary_and_the_profile_agree_on_the_memory(name: str, l2_state: Literal["warm", "cold"]) -> None:
    """The share of the summary's line ``time`` is that of the profile's table ``achieved``, and at most 1."""
    for part in profile(name).launch.parts:
        one = part.retimed(l2_state=l2_state)
        gm, roof = one.to_dict()["gm"], one.profile().roofline
        shares = {"HBM": roof.hbm_seconds / roof.seconds, "L2": roof.l2_seconds / roof.seconds}
        assert gm["share_of_peak"] == pytest.approx(max(shares.values()))
        assert gm["share_of_peak"] == pytest.approx(shares[gm["served_by"]])
        assert gm["share_of_peak"] <= 1.0
        assert roof.l2_seconds == pytest.approx(roof.l2_bytes / roof.l2_rate, abs=1e-12)
        rate = f"L2       {roof.l2_bytes / roof.seconds / 1e9:8.1f} of {roof.l2_rate / 1e9:.1f} GB/s"
        assert f"{rate} {100 * shares['L2']:5.1f} %" in str(one.profile())


@pytest.mark.parametrize(("reads", "writes", "rate"), [(3, 1, "l2"), (1, 0, "l2_read"), (0, 1, "l2_write")])
def test_l2_reads_and_writes_at_the_same_time(reads: int, writes: int, rate: str) -> None:
    """Of mixed bytes L2 gives 7 TB/s in all: the least time of reads and that of writes pass at the same time."""
    chip = profile("one product").launch.parts[0].chip
    moved = {(0, False): MovedBytes(), (1, True): MovedBytes()}
    for part, times in zip(moved.values(), (reads, writes), strict=True):
        part.add(2.0**20, 2.0**20, 2.0**20, 2.0**11, times)
    use = gm_use(moved, served(moved, {}, {}, {}, chip), chip)
    assert (use.hbm_bytes, use.l2_bytes) == (0, (reads + writes) * 2**20)
    assert use.l2_seconds == pytest.approx(max(use.l2_bytes / chip.traffic.l2, reads * 2**20 / chip.traffic.l2_read,
                                               writes * 2**20 / chip.traffic.l2_write))
    assert use.l2_bytes / use.l2_seconds == pytest.approx(getattr(chip.traffic, rate), rel=0.01)


def sums_of_one_row(rows: int, lots: int) -> Launch:
    """Cores that add their sums to one row of GM: each tile, or each ``lots`` tiles."""

    @tilelang.jit(target="npuir")
    def factory() -> Any:
        @T.prim_func
        def main(X: T.Tensor((rows, 1024), "float32"), Y: T.Tensor((1, 1024), "float32")):
            with T.Kernel(48, is_npu=True) as (core, _):
                x = T.alloc_shared((8, 1024), "float32")
                y = T.alloc_shared((1, 1024), "float32")
                for lot in T.serial(rows // 48 // 8 // lots):
                    T.clear(y)
                    for t in T.serial(lots):
                        T.copy(X[core * (rows // 48) + (lot * lots + t) * 8, 0], x)
                        T.reduce_sum(x, y, dim=0, clear=False)
                    T.atomic_add(Y[0, 0], y)

        return main

    launch = factory().trace()
    assert isinstance(launch, Launch)
    return launch


def test_atomic_updates_of_one_line_are_not_bytes_of_l2() -> None:
    """They take turns, so that L2 gives few bytes: the share is that of the bytes, and the bottleneck names the updates."""
    often, seldom = sums_of_one_row(48 * 128, 1), sums_of_one_row(48 * 128, 16)
    assert often.bound_by == "MTE3 (waiting for L2, atomic updates of one line)"
    assert "atomic" not in seldom.bound_by
    assert 0 < often.to_dict()["gm"]["share_of_peak"] < 0.5


def work_on_the_path(one: Launch) -> dict[str, float]:
    """The microseconds of the critical path in which each pipe works; issuing is work of the scalar unit."""
    found: dict[str, float] = {}
    for part in one.profile().critical_path:
        pipe = "S" if part.reason.kind == "issue" else part.reason.pipe if part.reason.kind in WORK else ""
        if pipe:
            key = f"{part.reason.core} {pipe}"
            found[key] = found.get(key, 0.0) + part.us
    return found


@pytest.mark.parametrize("name", MADE)
def test_the_bottleneck_is_the_pipe_with_most_of_the_critical_path(name: str) -> None:
    for one in profile(name).launch.parts:
        pipes = work_on_the_path(one)
        most = max(pipes, key=lambda row: pipes[row]).split()[1]
        assert one.bound_by == "dispatch" or most in one.bound_by.replace("(", "").replace(")", "").split()


def two_products(depth: int) -> Launch:
    """Loads far ahead of two products each, for which M and MTE1 take turns: MTE2 is at work all the time, and nothing waits
    for it."""

    @tilelang.jit(out_idx=[-1], target="npuir")
    def factory() -> Any:
        @T.prim_func
        def main(X: T.Tensor((1024, 2048), "float16"), G: T.Tensor((2048, 1024), "float16"),
                 U: T.Tensor((2048, 1024), "float16"), Y: T.Tensor((1024, 1024), "float16"),
                 Z: T.Tensor((1024, 1024), "float16")):
            with T.Kernel(64, is_npu=True) as (block, _):
                x = T.alloc_shared((128, depth), "float16")
                g = T.alloc_shared((depth, 128), "float16")
                u = T.alloc_shared((depth, 128), "float16")
                gate = T.alloc_fragment((128, 128), "float32")
                up = T.alloc_fragment((128, 128), "float32")
                for k in T.Pipelined(2048 // depth, num_stages=2):
                    T.copy(X[block // 8 * 128, k * depth], x)
                    T.copy(G[k * depth, block % 8 * 128], g)
                    T.copy(U[k * depth, block % 8 * 128], u)
                    T.gemm(x, g, gate, initC=(k == 0))
                    T.gemm(x, u, up, initC=(k == 0))
                T.copy(gate, Y[block // 8 * 128, block % 8 * 128])
                T.copy(up, Z[block // 8 * 128, block % 8 * 128])

        return main

    launch = factory().trace()
    assert isinstance(launch, Launch)
    return launch


@pytest.mark.parametrize("depth", [128, 256])
def test_the_bottleneck_is_not_the_busiest_pipe_where_nothing_waits_for_it(depth: int) -> None:
    one = two_products(depth)
    assert one.busiest[1] == "MTE2"
    gains = {row.change: row.gain for row in one.profile().what_if if row.change.startswith("AIC ")}
    most = max(gains, key=lambda change: gains[change])
    assert most == f"AIC {one.bound_by.split()[0]} twice as fast", gains


def test_a_long_launch_is_bound_by_its_busiest_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_result, "MAX_EVENTS_OF_PATH", 10)
    one = two_products(128)
    assert one.critical_path == {}
    assert one.bound_by.split()[0] == one.busiest[1] == "MTE2"


def test_lines_are_those_of_the_script() -> None:
    one = profile("mixed")
    sources = {line.place.source().strip() for line in one.lines if line.place is not None and line.us}
    assert {"T.vexp(x, x)", "T.copy(X[block * 64, 0], x)"} <= sources
    work = {line.place.source().strip(): line.work for line in one.lines if line.place is not None}
    assert work["T.vexp(x, x)"].keys() >= {("AIV", "V")}
    assert ("AIC", "M") in work["T.gemm(h, w, y, initC=True)"]


def test_json_holds_the_sums() -> None:
    found = json.loads(json.dumps(profile("mixed").to_dict()))
    assert sum(part["us"] for part in found["critical_path"]) == found["time_us"]
    assert all(sum(part["us"] for part in row["parts"]) == found["time_us"] for row in found["pipes"])
    assert {row["path"] for row in found["paths"]} >= {"gm_ub", "gm_l1_nd2nz", "l1_l0a"}


@pytest.mark.parametrize("name", MADE)
def test_every_profile_can_be_shown(name: str) -> None:
    one = profile(name)
    assert str(one).startswith(f"{one.kernel} on {one.chip}")
    assert "<h2>Timeline of a block</h2>" in one.html()
    assert one.to_dict()["what_if"]


def test_the_text_names_lines_and_reasons() -> None:
    text = str(profile("mixed"))
    assert "critical path of" in text
    assert "T.copy(X[block * 64, 0], x)" in text
    assert "waits for AIC FIX fixpipe" in text
    assert "what if" in text


def test_a_profile_is_pickled() -> None:
    one = profile("waves of two kinds")
    assert one.advice
    assert pickle.loads(pickle.dumps(one)).to_dict() == one.to_dict()


def test_a_profile_of_zeros_is_that_of_numbers(rng: np.random.Generator) -> None:
    kernel = product(256, 256, 256)
    traced = kernel.trace().profile().to_dict()
    kernel(*(rng.standard_normal((256, 256)).astype(np.float16) for _ in range(2)))
    assert kernel.last_launch.profile().to_dict() == traced


def test_a_profile_of_generated_inputs_says_so() -> None:
    """The times of this kernel depend on the elements of an array; it is profiled before and after a call."""
    @T.prim_func
    def rows(L: T.Tensor((4,), "int32"), X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(4, is_npu=True) as (block, _):
            x = T.alloc_shared((8, 64), "float32")
            for i in T.serial(L[block]):
                T.copy(X[i * 8, 0], x)
                T.copy(x, Y[i * 8, 0])

    kernel = tilelang.compile(rows, target="npuir")
    words = "on generated inputs, and the time depends on their elements"
    made = kernel.profile(edits=False)
    assert words in str(made).splitlines()[1]
    assert f"This launch ran {words}" in made.html() and made.to_dict()["generated_inputs"] is True
    other = tilelang.compile(rows, target="npuir")
    other(np.full(4, 3, np.int32), *np.zeros((2, 64, 64), np.float32))
    made = other.profile(edits=False)
    assert words not in str(made) and f"This launch ran {words}" not in made.html()
    assert made.to_dict()["generated_inputs"] is False
    assert words not in str(other.profile(np.ones(4, np.int32), *np.zeros((2, 64, 64), np.float32)))
