"""Traces that execute only some iterations of long loops have the record, and the times, of traces of all iterations."""

from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.machine.repeated_events import RepeatedOffsets, RepeatedStream, kept_events
from tilelang_npu.simulator.run import program as program_module
from tilelang_npu.simulator.run import repeated_trace
from tilelang_npu.simulator.run.repeated_trace import repeatable_loops

AUTO = {tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
        tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True, tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}


def scaled_rows(tiles: int, parts: int, ragged: int) -> Any:
    """Tiles of a vector kernel, each of several parts; the number of parts of a tile grows if ``ragged`` is 1, and the last
    tile has fewer rows."""
    rows = tiles * 32 - 5

    @tilelang.jit(out_idx=[1], target="ascendc", pass_configs=AUTO)
    def factory() -> Any:
        @T.prim_func
        def scale(X: T.Tensor((rows, parts * 64), "float32"), Y: T.Tensor((rows, parts * 64), "float32")):
            with T.Kernel(3, is_npu=True) as (core, vid):
                x = T.alloc_shared((32, 64), "float32")
                for (tile,) in T.Persistent([tiles], 3, core):
                    for part in T.Pipelined(parts - ragged * (tile % 5), num_stages=2):
                        T.copy(X[tile * 32, part * 64], x)
                        for i, j in T.Parallel(32, 64):
                            x[i, j] = x[i, j] * 2.0
                        T.copy(x, Y[tile * 32, part * 64])
        return scale

    return factory()


def products(tiles: int, depth: int, causal: int) -> Any:
    """Tiles of a product, each of which the Vector cores add to a sum: both kinds of cores work in the inner loop."""
    @tilelang.jit(out_idx=[2], target="ascendc", pass_configs=AUTO)
    def factory() -> Any:
        @T.prim_func
        def add(A: T.Tensor((tiles * 64, 64), "float16"), B: T.Tensor((depth * 64, 64), "float16"),
                C: T.Tensor((tiles * 64, 64), "float32")):
            with T.Kernel(2, is_npu=True) as (core, vid):
                a = T.alloc_shared((64, 64), "float16")
                b = T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                total = T.alloc_fragment((64, 64), "float32")
                for (tile,) in T.Persistent([tiles], 2, core):
                    T.copy(A[tile * 64, 0], a)
                    T.fill(total, 0)
                    for k in T.Pipelined(depth - causal * (tile % 7), num_stages=2):
                        T.copy(B[k * 64, 0], b)
                        T.gemm(a, b, c, transpose_B=True, clear_accum=True)
                        for i, j in T.Parallel(64, 64):
                            total[i, j] = total[i, j] + c[i, j]
                    T.copy(total, C[tile * 64, 0])
        return add

    return factory()


def in_bands(heads: int, tiles: int) -> Any:
    """Tiles of several heads in bands of 8 tiles: the number of parts grows with the number of the tile, so that a quotient of
    the loop's variable is a trip count."""
    @tilelang.jit(out_idx=[1], target="ascendc", pass_configs=AUTO)
    def factory() -> Any:
        @T.prim_func
        def sums(X: T.Tensor((heads, tiles * 32, 64), "float32"), Y: T.Tensor((heads, tiles * 32, 64), "float32")):
            with T.Kernel(3, is_npu=True) as (core, vid):
                x = T.alloc_shared((32, 64), "float32")
                y = T.alloc_shared((32, 64), "float32")
                for head, tile in T.Persistent([heads, tiles], 3, core):
                    T.fill(y, 0)
                    for part in T.Pipelined(tile + 1, num_stages=2):
                        T.copy(X[head, part * 32, 0], x)
                        for i, j in T.Parallel(32, 64):
                            y[i, j] = y[i, j] + x[i, j]
                    T.copy(y, Y[head, tile * 32, 0])
        return sums

    return factory()


def both_traces(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Launch, Launch]:
    """The launch whose loops are sampled, and that of all iterations."""
    monkeypatch.setattr(repeated_trace, "LEAST_EVENTS", 0)
    sampled = kernel.estimate()
    monkeypatch.setattr(program_module, "trace_repeated", lambda *_: None)
    return sampled, kernel.estimate()


@pytest.mark.parametrize("make", [lambda: scaled_rows(80, 24, 0), lambda: scaled_rows(61, 12, 1), lambda: products(41, 23, 0),
                                  lambda: products(40, 24, 1), lambda: in_bands(24, 16), lambda: in_bands(10, 24)])
def test_record_and_times_are_those_of_all_iterations(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled, whole = both_traces(make(), monkeypatch)
    shortened = [stream for _, stream, _ in sampled.recorded.distinct_streams]
    assert any(isinstance(stream, RepeatedStream) for stream in shortened)
    assert sum(len(kept_events(stream)) for stream in shortened) < sum(map(len, shortened)) / 2
    for one, other in zip(sampled.recorded.blocks, whole.recorded.blocks, strict=True):
        assert list(map(tuple, one.streams)) == list(other.streams)
        assert list(map(list, one.gm)) == list(map(list, other.gm))
    assert sampled.cycles == pytest.approx(whole.cycles, rel=1e-11)
    for name in ("busy_cycles", "worked_cycles"):
        for core, row in getattr(whole, name).items():
            assert getattr(sampled, name)[core] == pytest.approx(row, rel=1e-9)
    assert sampled.held_us == pytest.approx(whole.held_us, rel=1e-9)
    assert sampled.serves == whole.serves
    for name in ("moved", "kind", "produced", "__str__"):
        one, other = getattr(sampled, name), getattr(whole, name)
        assert (one() == other()) if callable(one) else (one == other)


def test_the_record_does_not_grow_with_the_number_of_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_trace, "LEAST_EVENTS", 0)
    few, many = (scaled_rows(tiles, parts, 0).estimate().recorded for tiles, parts in ((96, 32), (960, 320)))
    assert len(many.blocks[0].streams[0]) > 80 * len(few.blocks[0].streams[0])
    for recorded in (few, many):
        offsets = recorded.blocks[0].gm[0]
        assert len(kept_events(recorded.blocks[0].streams[0])) < 200
        assert isinstance(offsets, RepeatedOffsets)
        assert len(offsets.kept) < 200


def test_a_quotient_that_is_a_trip_count_ends_a_repeated_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 128 tiles on each core, which are 4 bands of 32 tiles, only the first ones of each band are executed."""
    monkeypatch.setattr(repeated_trace, "LEAST_EVENTS", 0)
    (stream, *_) = in_bands(48, 32).estimate().recorded.blocks[0].streams
    assert isinstance(stream, RepeatedStream)
    assert len(kept_events(stream)) < len(stream) / 20


def test_times_need_one_period_of_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_trace, "LEAST_EVENTS", 0)
    launch = products(200, 50, 0).estimate()
    for order in launch._periodic_orders.values():
        assert len(order.steps) < 4000
    assert launch.groups[0].timing.cycles > 200 / 2 * 50 * 500


@pytest.mark.parametrize("make", [lambda: scaled_rows(200, 50, 0), lambda: products(200, 50, 0)])
def test_an_estimate_reads_no_iteration_twice(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the line of an estimate needs is computed from the events that are kept."""
    def unrolled(stream: RepeatedStream) -> Any:
        raise AssertionError(f"all {len(stream)} events are read")

    monkeypatch.setattr(repeated_trace, "LEAST_EVENTS", 0)
    monkeypatch.setattr(RepeatedStream, "__iter__", unrolled)
    launch = make().estimate()
    assert isinstance(launch.recorded.blocks[0].streams[0], RepeatedStream)
    assert " us " in repr(launch)


def test_short_blocks_are_traced_the_usual_way() -> None:
    launch = scaled_rows(12, 8, 0).estimate()
    assert all(isinstance(stream, tuple) for run in launch.recorded.blocks for stream in run.streams)


SOURCE = """
def run(bid, ev, gm):
    x = 0
    for i1 in guard.guarded_range(range(9), ev, bid, sid):
        y = i1 * 2
        for i2 in guard.guarded_range(range(y), ev, bid, sid):
            x = x + 1
    for i3 in guard.guarded_range(range(9), ev, bid, sid):
        while not counts[1]: yield 21, 1
        z = i3 * 2
    for i4 in guard.guarded_range(range(9), ev, bid, sid):
        while i4: ev += (1,)
    for i5 in range(9): gm += (i5,)
"""


def test_loops_that_pass_values_on_or_wait_for_data_are_not_sampled() -> None:
    assert repeatable_loops(SOURCE) == {8}
