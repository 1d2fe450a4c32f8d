"""Launch, ramp, steady and tail agree with the timeline, and sum to the time; a launch as a line, and as data."""

from __future__ import annotations

import json
import math
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import doubled
from simulator.test_products import gemm
from tilelang_npu.simulator import Launch, Launches
from tilelang_npu.target import Chip, chip, measured_kernels

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


def vector(rows: int) -> Launch:
    launch = doubled(rows, 2048).trace()
    assert isinstance(launch, Launch)
    return launch


def error_of_vector(us: float, one: Chip) -> float:
    """The share of its time within which four of five measured kernels of its size are, with a row to spare: the element-wise
    ones of that size are of too few sources."""
    sizes = [us > limit for limit in (10, 100)]
    alike = [row for row in measured_kernels() if row.kind in ("copy", "element-wise", "rearrangement", "reduction", "sort")
             and one.family in row.families and [row.modelled > limit for limit in (10, 100)] == sizes]
    narrow = [row for row in alike if row.kind == "element-wise"]
    rows = narrow if len(narrow) >= 8 and len({row.source for row in narrow}) >= 4 else alike
    errors = sorted(row.left_out for row in rows)
    return errors[math.ceil(0.82 * (len(errors) + 1)) - 1]


LAUNCHES = {
    "one block": lambda: vector(16), "equal waves": lambda: vector(16 * 48 * 2), "a last wave of two": lambda: vector(16 * 49),
    "products": lambda: gemm((256, 256, 256), (128, 128, 64)),
    "products in waves": lambda: gemm((640, 128, 640), (128, 128, 64)),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_the_parts_are_those_of_the_timeline(name: str) -> None:
    launch = LAUNCHES[name]()
    events = launch.trace()["traceEvents"]
    tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    lanes = len(launch.recorded.program.lanes)
    done: dict[int, float] = {}
    for event in events:
        if event["ph"] == "X" and event["cat"] == "pipe":
            core = event["pid"] // lanes
            done[core] = max(done.get(core, 0.0), event["ts"] + event["dur"])
    ends = [launch.chip.microseconds(cycles) for cycles in launch.core_cycles]
    assert [done[core] for core in range(len(ends))] == pytest.approx(ends, abs=0.05)  # but for the last barriers
    last = ends.index(max(ends))
    work = [event for event in events if event["ph"] == "X" and event["cat"] == "pipe" and event["pid"] // lanes == last
            and tracks[event["pid"], event["tid"]] == launch.busiest[1]]
    assert launch.split.launch == launch.launch_us
    assert launch.split.ramp == pytest.approx(min(event["ts"] for event in work), abs=0.001)  # whole nanoseconds
    last_end = max(event["ts"] + event["dur"] for event in work)
    assert launch.split.tail == pytest.approx(max(ends) - min(last_end, *ends), abs=0.004)
    assert sum(launch.split) == pytest.approx(launch.time_us)
    assert min(launch.split) >= 0


def test_a_last_wave_of_few_blocks_is_the_tail() -> None:
    """On a chip that dispatches at once; otherwise blocks that are shorter than the dispatch of a wave end one by one."""
    usual = vector(16 * 48)
    at_once = replace(usual.chip, launch=replace(usual.chip.launch, dispatch_us=0.0))
    full, more = usual.retimed(at_once), vector(16 * 49).retimed(at_once)
    assert (full.waves, more.waves) == (2, 3)
    assert full.split.tail < 0.3 * full.time_us / 2
    assert more.split.tail == pytest.approx(more.time_us - more.launch_us - full.time_us + full.launch_us, rel=0.5)
    each = full.groups[0].timing.cycles
    first, last = 2 * each, usual.cores * usual.dispatch_cycles + each  # its second block is the 48th after the first wave
    assert last > first
    assert usual.split.tail >= usual.chip.microseconds(last - first)


def test_the_parts_of_several_launches_add_up() -> None:
    @T.prim_func
    def twice(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(4, is_npu=True) as (b, _):
            a = T.alloc_ub((16, 64), "float32")
            T.copy(A[b * 16, 0], a)
            T.copy(a, B[b * 16, 0])
        with T.Kernel(2, is_npu=True) as (b, _):
            a = T.alloc_ub((32, 64), "float32")
            T.copy(B[b * 32, 0], a)
            T.copy(a, C[b * 32, 0])

    launches = tilelang.compile(twice, target="npuir").trace()
    assert isinstance(launches, Launches)
    assert launches.split == tuple(map(sum, zip(*(part.split for part in launches.parts), strict=True)))
    assert sum(launches.split) == pytest.approx(launches.time_us)
    errors = [part.error for part in launches.parts]
    assert launches.error == pytest.approx(sum(map(float.__mul__, errors, [part.time_us for part in launches.parts]))
                                           / launches.time_us)
    assert repr(launches).startswith("<twice: 2 launches, ") and "\n" not in repr(launches)
    data = launches.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert [part["kernel"] for part in data["launches"]] == ["twice_1", "twice_2"]


def test_print_of_a_launch_was_an_address() -> None:
    launch = gemm((256, 256, 256), (128, 128, 64))
    assert launch.error is not None
    error = round(100 * launch.error)
    assert str(launch) == (f"<{launch.name}: {launch.time_us:.1f} us +- {error} % on {launch.chip.name}, 4 blocks, "
                           f"bound by {launch.bound_by}>")


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_launch_as_data(name: str) -> None:
    launch = LAUNCHES[name]()
    data = launch.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["time_us"] == launch.time_us and sum(data["split_us"].values()) == pytest.approx(launch.time_us)
    listed = PAGE.read_text(encoding="utf-8").partition("## A launch as data")[2].partition("## ")[0]
    keys = {key for row in re.findall(r"^\| (`.*?) \|", listed, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    assert keys == set(data)
    shapes = [argument.get("shape") for argument in data["arguments"]]
    assert shapes == [list(array.shape) if isinstance(array, np.ndarray) else None for array in launch.recorded.bound.given]
    again = pickle.loads(pickle.dumps(launch))
    assert again.to_dict() == data


@pytest.mark.parametrize("l2_state", ["warm", "cold"])
def test_bandwidth_of_vector_kernels_was_nowhere(l2_state: Literal["warm", "cold"]) -> None:
    launch = vector(16 * 480).retimed(l2_state=l2_state)
    each = 16 * 480 * 2048 * 4
    gm = launch.to_dict()["gm"]
    assert gm["bytes"] == 2 * each and gm["bytes_per_second"] == pytest.approx(2 * each / launch.time_us * 1e6)
    traffic = launch.chip.traffic  # 126 MB fit into L2, except a part of the 63 MB that are written
    kept = traffic.dirty
    assert kept < each < 2 * each < launch.chip.l2
    if l2_state == "warm":
        read, write = traffic.l2_rates(each / (each + kept))
        busy = max(each / read, kept / write)  # at the same time
        assert busy > (each - kept) / traffic.hbm_write
    else:  # all that is read comes from HBM, once
        busy = each / traffic.hbm_read + (each - kept) / traffic.hbm_write
    memory = "L2" if l2_state == "warm" else "HBM"
    assert gm["served_by"] == memory
    assert gm["share_of_peak"] == pytest.approx(busy / launch.time_us * 1e6)
    shown = f"   {2 * each / launch.time_us / 1e3:.0f} GB/s, {100 * gm['share_of_peak']:.0f} % of what {memory} gives; bound by"
    assert shown in launch.summary()
    assert "GB/s" not in gemm((256, 256, 256), (128, 128, 64)).summary()


def test_what_was_not_measured_has_no_error() -> None:
    few, many = vector(16 * 240), vector(16 * 4800)
    launch = Launch(few.recorded, chip=chip("950"))
    assert launch.error is None and "+- ? %" in launch.summary() and launch.to_dict()["error"] is None
    for name in ("910B2", "910B4", "910_9362"):
        for size, recorded in enumerate((few.recorded, many.recorded), 1):
            launch = Launch(recorded, chip=chip(name))
            assert sum(launch.time_us > limit for limit in (10, 100)) == size
            assert launch.error == error_of_vector(launch.time_us, launch.chip)
