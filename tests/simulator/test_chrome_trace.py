"""The timeline for Perfetto: flows from sets to waits and between cores, counters of memories and bandwidth, the launch."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator import Launch
from tilelang_npu.target.chip_data import PIPES

Event = dict[str, Any]


@tilelang.jit(out_idx=[2], target="npuir")
def scaled_product(rows: int, inner: int, columns: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((rows, inner), "float16"), B: T.Tensor((inner, columns), "float16"),
               C: T.Tensor((rows, columns), "float16")):
        with T.Kernel(T.ceildiv(rows, 64), is_npu=True) as (block, _):
            a = T.alloc_shared((64, inner), "float16")
            b = T.alloc_shared((inner, columns), "float16")
            c = T.alloc_fragment((64, columns), "float32")
            d = T.alloc_shared((64, columns), "float16")
            T.copy(A[block * 64, 0], a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            T.vmul(c, 0.5, c)
            T.vcast(c, d)
            T.copy(d, C[block * 64, 0])

    return kernel


@pytest.fixture(scope="module")
def launch() -> Launch:
    kernel = scaled_product(64 * 30, 64, 64)
    return kernel.trace().parts[0]


@pytest.fixture(scope="module")
def events(launch: Launch) -> list[Event]:
    found: list[Event] = json.loads(json.dumps(launch.trace()))["traceEvents"]
    return found


def _slices(events: list[Event], category: str = "pipe") -> list[Event]:
    return [event for event in events if event["ph"] == "X" and event["cat"] == category]


def _flows(events: list[Event]) -> dict[int, tuple[Event, Event]]:
    """The start and the end of each flow, by its number."""
    ends: dict[int, dict[str, Event]] = defaultdict(dict)
    for event in events:
        if event["ph"] in ("s", "f"):
            assert event["ph"] not in ends[event["id"]], "each flow has a number of its own"
            ends[event["id"]][event["ph"]] = event
    return {number: (both["s"], both["f"]) for number, both in ends.items()}


def _slice_at(events: list[Event], end: Event) -> Event:
    """The slice that a viewer binds an end of a flow to: the one of its track around its time."""
    (found,) = [one for one in _slices(events) if (one["pid"], one["tid"]) == (end["pid"], end["tid"])
                and one["ts"] <= end["ts"] <= one["ts"] + one["dur"]]
    return found


def test_each_flow_leads_from_finished_work_to_work_that_begins_later(events: list[Event]) -> None:
    flows = _flows(events)
    assert flows
    for start, end in flows.values():
        first, second = _slice_at(events, start), _slice_at(events, end)
        assert first["ts"] + first["dur"] <= second["ts"] + 1e-9
        assert end["bp"] == "e"
        assert start["name"] == end["name"]
        assert start["cat"] == end["cat"] == ("wait" if start["pid"] == end["pid"] else "hand-over")


@pytest.mark.parametrize("convert", [int, round])
def test_slices_of_a_pipe_do_not_overlap_in_nanoseconds(events: list[Event], convert: Callable[[float], int]) -> None:
    """Perfetto converts the begin and the duration of a slice separately, and drops slices that overlap."""
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for one in _slices(events):
        begin = convert(one["ts"] * 1000)
        tracks[one["pid"], one["tid"]].append((begin, begin + convert(one["dur"] * 1000)))
    assert len(tracks) > 100
    for track in tracks.values():
        track.sort()
        assert all(end <= begin for (_, end), (begin, _) in zip(track, track[1:], strict=False))


def test_a_flow_has_the_pipes_of_its_event(events: list[Event]) -> None:
    starts = [start for start, _ in _flows(events).values() if start["cat"] == "wait"]
    found = {(start["name"].split(", ")[1], PIPES[start["tid"]]) for start in starts}
    assert ("MTE2 to MTE1", "MTE2") in found
    assert all(name.startswith(pipe + " to ") for name, pipe in found)


def test_the_product_hands_over_to_both_vector_cores(events: list[Event]) -> None:
    names = {event["pid"]: event["args"]["name"].split() for event in events if event["name"] == "process_name"}
    crossing = [(names[start["pid"]], names[end["pid"]]) for start, end in _flows(events).values()
                if start["cat"] == "hand-over" and names[start["pid"]][2] == "AIC"]
    assert {(first[1], second[1], second[2]) for first, second in crossing} >= {
        (str(core), str(core), vector) for core in range(24) for vector in ("AIV0", "AIV1")}
    assert all(first[1] == second[1] for first, second in crossing), "cores of one block"


def test_the_bandwidth_adds_up_to_the_bytes_that_were_moved(launch: Launch) -> None:
    for state in (launch, launch.retimed(l2_state="cold")):
        events = state.trace()["traceEvents"]
        total = {}
        for name in ("HBM GB/s", "L2 GB/s"):
            samples = [(event["ts"], event["args"]["rate"]) for event in events if event["ph"] == "C" and event["name"] == name]
            assert samples[-1][1] == 0.0
            total[name] = sum(rate * (later - time) * 1e3
                              for (time, rate), (later, _) in zip(samples, samples[1:], strict=False))
        far = sum(state.serves[key].far * moved.nbytes for key, moved in state.moved.items())
        assert total["HBM GB/s"] == pytest.approx(far, rel=0.01, abs=1)
        assert sum(total.values()) == pytest.approx(sum(moved.nbytes for moved in state.moved.values()), rel=0.01)
    assert total["HBM GB/s"] > 0, "a cold L2 loads from HBM"


def test_the_live_bytes_of_memories_are_below_their_sizes_and_end_at_zero(launch: Launch, events: list[Event]) -> None:
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    by_track: dict[tuple[str, str], list[int]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C" and event["name"].endswith(" bytes"):
            by_track[names[event["pid"]], event["name"]].append(event["args"]["live"])
    assert {memory for core, memory in by_track if core == "core 0 AIC"} >= {"L1 bytes", "L0C bytes"}
    assert {memory for core, memory in by_track if core == "core 0 AIV0"} == {"UB bytes"}
    sizes = {"UB bytes": launch.chip.memory["ub"].size, "L1 bytes": launch.chip.memory["cbuf"].size}
    for (_, memory), live in by_track.items():
        assert live[-1] == 0
        assert 0 < max(live) <= sizes.get(memory, 1 << 20)
    assert max(by_track["core 0 AIC", "L1 bytes"]) == 2 * 64 * 64 * 2


def test_the_launch_has_the_time_of_the_blocks_and_the_overhead(launch: Launch, events: list[Event]) -> None:
    running, overhead = _slices(events, "launch")
    assert running["name"] == "kernel"
    assert running["args"]["blocks"] == 30
    assert running["args"]["waves"] == 2
    assert running["dur"] == pytest.approx(launch.chip.microseconds(launch.cycles), abs=1e-3)
    assert overhead["ts"] == pytest.approx(running["dur"], abs=1e-3)
    assert overhead["dur"] == pytest.approx(launch.launch_us, abs=1e-3)
    assert running["pid"] not in {event["pid"] for event in _slices(events)}


def test_flows_of_several_launches_have_numbers_of_their_own() -> None:
    from tilelang_npu.simulator.result.call_launches import in_a_row

    one = scaled_product(64, 64, 64).trace()
    alone = _flows(list(one.trace()["traceEvents"]))
    both = _flows(list(in_a_row([(one, "first "), (one, "second ")])))
    assert len(both) == 2 * len(alone)
    for number, (start, end) in alone.items():
        again = both[number + len(alone)]
        assert np.allclose([again[0]["ts"] - start["ts"], again[1]["ts"] - end["ts"]], one.time_us)
