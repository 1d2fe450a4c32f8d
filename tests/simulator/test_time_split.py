"""Launch, ramp, steady and tail are what the timeline shows, and sum to the time; a launch is a line, and data."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import doubled
from simulator.test_products import gemm
from tilelang_npu.simulator import Launch, Launches
from tilelang_npu.target import accuracies, chip

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


def vector(rows: int) -> Launch:
    launch = doubled(rows, 2048).trace()
    assert isinstance(launch, Launch)
    return launch


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
        if event["ph"] == "X":
            core = event["pid"] // lanes
            done[core] = max(done.get(core, 0.0), event["ts"] + event["dur"])
    ends = [launch.chip.microseconds(cycles) for cycles in launch.core_cycles]
    assert [done[core] for core in range(len(ends))] == pytest.approx(ends, abs=0.05)  # but for the last barriers
    last = ends.index(max(ends))
    work = [event for event in events if event["ph"] == "X" and event["pid"] // lanes == last
            and tracks[event["pid"], event["tid"]] == launch.busiest[1]]
    assert launch.split.launch == launch.launch_us
    assert launch.split.ramp == pytest.approx(min(event["ts"] for event in work))
    behind = max(event["ts"] + event["dur"] for event in work)
    assert launch.split.tail == pytest.approx(max(ends) - min(behind, *ends), abs=0.003)
    assert sum(launch.split) == pytest.approx(launch.time_us)
    assert min(launch.split) >= 0


def test_a_last_wave_of_few_blocks_is_the_tail() -> None:
    full, more = vector(16 * 48), vector(16 * 49)
    assert (full.waves, more.waves) == (2, 3)
    assert full.split.tail < 0.3 * full.time_us / 2
    assert more.split.tail == pytest.approx(more.time_us - more.launch_us - full.time_us + full.launch_us, rel=0.5)


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
    assert launches.error == pytest.approx(accuracies()["vector"].error)
    assert repr(launches).startswith("<twice: 2 launches, ") and "\n" not in repr(launches)
    data = launches.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert [part["kernel"] for part in data["launches"]] == ["twice_1", "twice_2"]


def test_print_of_a_launch_was_an_address() -> None:
    launch = gemm((256, 256, 256), (128, 128, 64))
    error = round(100 * accuracies()["small gemm"].error)
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


def test_bandwidth_of_vector_kernels_was_nowhere() -> None:
    launch = vector(16 * 480)
    moved = 2 * 16 * 480 * 2048 * 4
    gm = launch.to_dict()["gm"]
    assert gm["bytes"] == moved and gm["bytes_per_second"] == pytest.approx(moved / launch.time_us * 1e6)
    traffic = launch.chip.traffic  # 63 MB fit into L2: they are read from HBM once, and nothing is written back
    assert gm["served_by"] == "HBM"
    assert gm["share_of_peak"] == pytest.approx(moved / 2 / traffic.hbm_read / launch.time_us * 1e6)
    shown = f"   {moved / launch.time_us / 1e3:.0f} GB/s, {100 * gm['share_of_peak']:.0f} % of what HBM gives; bound by"
    assert shown in launch.summary()
    assert "GB/s" not in gemm((256, 256, 256), (128, 128, 64)).summary()


def test_what_was_not_measured_has_no_error() -> None:
    launch = Launch(vector(16).recorded, chip=chip("950"))
    assert launch.error is None and "+- ? %" in launch.summary() and launch.to_dict()["error"] is None
    for name in ("910B4", "910_9362"):
        assert Launch(vector(16).recorded, chip=chip(name)).error == accuracies()["vector"].error
