"""Loops that go to and fro between the cores compute the same however many iterations are under way."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.dialects.ir.changes import Smaller
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Program
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial

TILE, DIM = 16, 32


def weighted_sums(length: int, keys: int, stages: int, statistic: tuple[int, ...] = (TILE, 1)) -> Any:
    """Attention without the division: block ``b`` processes ``b + keys`` tiles of keys, which may be zero."""
    line = len(statistic) == 1
    tiles = T.ceildiv(length, TILE)

    @T.prim_func
    def main(Q: T.Tensor((length, DIM), "float16"), K: T.Tensor(((tiles + keys) * TILE, DIM), "float16"),
             O: T.Tensor((length, DIM), "float32"), M: T.Tensor((length, 1), "float32")):
        with T.Kernel(tiles, is_npu=True) as (block, _):
            q = T.alloc_shared((TILE, DIM), "float16")
            k = T.alloc_shared((TILE, DIM), "float16")
            p = T.alloc_shared((TILE, TILE), "float16")
            scores = T.alloc_fragment((TILE, TILE), "float32")
            product = T.alloc_fragment((TILE, DIM), "float32")
            result = T.alloc_fragment((TILE, DIM), "float32")
            top = T.alloc_fragment(statistic, "float32")
            before = T.alloc_fragment(statistic, "float32")
            share = T.alloc_fragment(statistic, "float32")
            T.copy(Q[block * TILE, 0], q)
            T.clear(result)
            T.fill(top, -100.0)
            for i in T.Pipelined(block + keys, num_stages=stages):
                T.copy(K[i * TILE, 0], k)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                T.copy(top, before)
                T.reduce_max(scores, share, dim=-1)
                T.vmax(share, before, top)
                T.vsub(before, top, before)
                T.vexp(before, before)
                for a, b in T.Parallel(TILE, TILE):
                    scores[a, b] = T.exp(scores[a, b] - (top[a] if line else top[a, 0]))
                T.copy(scores, p)
                T.gemm(p, k, product, initC=True)
                for a, b in T.Parallel(TILE, DIM):
                    result[a, b] = result[a, b] * (before[a] if line else before[a, 0]) + product[a, b]
            T.copy(result, O[block * TILE, 0])
            T.copy(T.reshape(top, (TILE, 1)) if line else top, M[block * TILE, 0])

    return main


def several_tiles(length: int, keys: int, stages: int, outer: int) -> Any:
    """The same without a largest score, for every tile of rows in one block: a loop around the one that goes to and fro."""
    tiles = T.ceildiv(length, TILE)

    @T.prim_func
    def main(Q: T.Tensor((length, DIM), "float16"), K: T.Tensor((keys * TILE, DIM), "float16"),
             O: T.Tensor((length, DIM), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            q = T.alloc_shared((TILE, DIM), "float16")
            k = T.alloc_shared((TILE, DIM), "float16")
            p = T.alloc_shared((TILE, TILE), "float16")
            scores = T.alloc_fragment((TILE, TILE), "float32")
            product = T.alloc_fragment((TILE, DIM), "float32")
            result = T.alloc_fragment((TILE, DIM), "float32")
            factor = T.alloc_fragment((TILE, 1), "float32")
            for t in T.Pipelined(tiles, num_stages=outer):
                T.copy(Q[t * TILE, 0], q)
                T.clear(result)
                for i in T.Pipelined(keys, num_stages=stages):
                    T.copy(K[i * TILE, 0], k)
                    T.gemm(q, k, scores, initC=True, b_transpose=True)
                    T.reduce_max(scores, factor, dim=-1)
                    T.vmul(scores, 0.25, scores)
                    T.copy(scores, p)
                    T.gemm(p, k, product, initC=True)
                    T.vadd(product, factor, product)
                    T.vadd(result, product, result)
                T.copy(result, O[t * TILE, 0])

    return main


@pytest.mark.parametrize("outer", [1, 2])
@pytest.mark.parametrize("stages", [2, 3])
def test_inside_another_loop(stages: int, outer: int) -> None:
    """Each iteration of the outer loop starts with the ring buffers in the state that the previous one left."""
    length, keys = 40, 3
    rng = np.random.default_rng(0)
    q, k = (rng.integers(-2, 3, (rows, DIM)).astype(np.float16) for rows in (length, keys * TILE))
    results = []
    for depth in (1, stages):
        kernel = tilelang.compile(several_tiles(length, keys, depth, outer), out_idx=[2], target="npuir", sanitize=True)
        results.append(kernel(q, k))
    np.testing.assert_array_equal(results[1], results[0])
    for schedule in ("early", "late", "random:0", "random:1"):
        out = np.empty((length, DIM), np.float32)
        Program(parse_module(kernel.mlir())).run([q, k, out], blocks=1, schedule=schedule)
        np.testing.assert_array_equal(out, results[0])


def run(length: int, keys: int, stages: int,
        statistic: tuple[int, ...] = (TILE, 1)) -> tuple[tuple[np.ndarray[Any, Any], ...], Any]:
    rng = np.random.default_rng(0)
    tiles = -(-length // TILE)
    q = rng.integers(-2, 3, (length, DIM)).astype(np.float16)
    k = rng.integers(-2, 3, ((tiles + keys) * TILE, DIM)).astype(np.float16) / np.float16(4)
    kernel = tilelang.compile(weighted_sums(length, keys, stages, statistic), out_idx=[2, 3], target="npuir", sanitize=True)
    return kernel(q, k), kernel


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize(("length", "keys"), [(16, 0), (48, 0), (40, 1), (16, 7)])
def test_as_many_stages_as_you_like(length: int, keys: int, stages: int) -> None:
    """Loops of no iteration, of fewer than there are stages, and of more; the sanitizer finds nothing."""
    serial, _ = run(length, keys, 1)
    overlapped, kernel = run(length, keys, stages)
    for expected, found in zip(serial, overlapped, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert "before" in kernel.mlir("overlap-iterations")


@pytest.mark.parametrize("schedule", ["early", "late", "random:0", "random:1", "random:2", "random:3"])
def test_no_schedule_changes_a_byte(schedule: str) -> None:
    """All orders that the flags allow give the same result."""
    serial, kernel = run(48, 3, 2)
    rng = np.random.default_rng(0)
    q = rng.integers(-2, 3, (48, DIM)).astype(np.float16)
    k = rng.integers(-2, 3, (6 * TILE, DIM)).astype(np.float16) / np.float16(4)
    arrays = [q, k, np.empty((48, DIM), np.float32), np.empty((48, 1), np.float32)]
    Program(parse_module(kernel.mlir())).run(arrays, blocks=3, schedule=schedule)
    for expected, found in zip(serial, arrays[2:], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_two_stages_take_fewer_cycles() -> None:
    """Each core waits for the other in every iteration of the serial loop: two products, two passes of vector work, four
    hand-overs. With more of them under way it works instead."""
    cycles = [run(16, 24, stages)[1].last_launch.cycles for stages in (1, 2)]
    assert cycles[1] < 0.6 * cycles[0]


@pytest.mark.parametrize("stages", [2, 3])
def test_a_row_statistic_in_one_axis_is_as_fast_as_a_column(stages: int) -> None:
    """A later stage uses a buffer of an earlier one with another shape: it reshapes the slot."""
    line, column = (run(48, 8, stages, statistic) for statistic in ((TILE,), (TILE, 1)))
    for found, expected in zip(line[0], column[0], strict=True):
        np.testing.assert_array_equal(found, expected)
    assert "before" in line[1].mlir("overlap-iterations")
    assert line[1].last_launch.cycles < 1.02 * column[1].last_launch.cycles


def halved_products(stages: int) -> Any:
    """A tile that vector work fills, and two iterations later a load from the other core, under a branch."""
    rows = T.symbolic("rows")

    @T.prim_func
    def main(X: T.Tensor((rows, DIM), "float32"), W: T.Tensor((DIM, DIM), "float16"), rounds: T.int32,
             O: T.Tensor((rows, DIM), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            w = T.alloc_shared((DIM, DIM), "float16")
            x = T.alloc_shared((TILE, DIM), "float32")
            y = T.alloc_shared((TILE, DIM), "float32")
            half = T.alloc_fragment((TILE, DIM), "float16")
            product = T.alloc_fragment((TILE, DIM), "float32")
            top = T.alloc_fragment((TILE, 1), "float32")
            T.copy(W, w)
            if rounds > 0:
                for i in T.Pipelined(rows // TILE, num_stages=stages):
                    T.copy(X[i * TILE, 0], x)
                    T.vmul(x, 0.5, y)
                    T.reduce_max(y, top, dim=-1)
                    T.copy(y, half)
                    T.gemm(half, w, product, initC=True)
                    T.copy(product, y)
                    T.vadd(y, top, y)
                    T.copy(y, O[i * TILE, 0])

    return main


@pytest.mark.parametrize("stages", [2, 3])
def test_no_event_is_set_again_if_a_later_iteration_waits_for_it_after_the_set(stages: int) -> None:
    """An iteration would set an event for which another iteration, two iterations later, has not yet waited."""
    rng = np.random.default_rng(0)
    x, w = rng.integers(-4, 5, (6 * TILE, DIM)).astype(np.float32), rng.integers(-2, 3, (DIM, DIM)).astype(np.float16)
    kernel = tilelang.compile(halved_products(stages), out_idx=[3], target="npuir", sanitize=True)
    np.testing.assert_array_equal(kernel(x, w, 1), x / 2 @ w.astype(np.float32) + x.max(axis=1, keepdims=True) / 2)
    assert kernel.last_launch.hazards == []
    assert "top" in kernel.mlir("overlap-iterations")


def through_a_workspace(keys: int, stages: int, *, wide: int = 8) -> Any:
    """Attention without its softmax, as authors write it who put each core's work down: the tiles go through parameters. Two
    tiles of ``wide`` rows hold something in the two halves of an iteration's vector work."""

    @T.prim_func
    def main(Q: T.Tensor((TILE, DIM), "float16"), K: T.Tensor((keys * TILE, DIM), "float16"),
             O: T.Tensor((TILE, DIM), "float32"),
             W: T.Tensor((wide, 1), "float32"), P: T.Tensor((1, TILE, TILE), "float32"),
             R: T.Tensor((1, TILE, TILE), "float16"), S: T.Tensor((1, TILE, DIM), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            q = T.alloc_shared((TILE, DIM), "float16")
            k = T.alloc_shared((TILE, DIM), "float16")
            p = T.alloc_shared((TILE, TILE), "float16")
            scores = T.alloc_fragment((TILE, TILE), "float32")
            product = T.alloc_fragment((TILE, DIM), "float32")
            tile = T.alloc_shared((TILE, TILE), "float32")
            half = T.alloc_shared((TILE, TILE), "float16")
            line = T.alloc_shared((TILE, DIM), "float32")
            first = T.alloc_shared((wide, 256), "float32")
            second = T.alloc_shared((wide, 256), "float32")
            column = T.alloc_shared((wide, 1), "float32")
            share = T.alloc_shared((TILE, 1), "float32")
            total = T.alloc_shared((TILE, DIM), "float32")
            T.copy(Q, q)
            T.clear(total)
            for i in T.Pipelined(keys, num_stages=stages):
                T.copy(K[i * TILE, 0], k)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                T.copy(scores, P[block, 0, 0])
                T.copy(P[block, 0, 0], tile)
                T.reduce_max(tile, share, dim=-1)
                T.vbrc(1.0, first)
                T.reduce_max(first, column, dim=-1)
                T.vmul(tile, 0.25, tile)
                T.copy(tile, half)
                T.copy(half, R[block, 0, 0])
                T.copy(R[block, 0, 0], p)
                T.gemm(p, k, product, initC=True)
                T.copy(product, S[block, 0, 0])
                T.copy(S[block, 0, 0], line)
                T.vadd(line, share, line)
                T.vbrc(2.0, second)
                T.reduce_max(second, column, dim=-1)
                T.vadd(total, line, total)
            T.copy(total, O)
            T.copy(column, W)

    return main


def sums_through_a_workspace(keys: int, stages: int, wide: int) -> Any:
    """Run it; the kernel."""
    rng = np.random.default_rng(0)
    q, k = rng.integers(-2, 3, (TILE, DIM)).astype(np.float16), rng.integers(-2, 3, (keys * TILE, DIM)).astype(np.float16)
    kernel = tilelang.compile(through_a_workspace(keys, stages, wide=wide), out_idx=[2, 3], workspace_idx=[4, 5, 6],
                              target="npuir", sanitize=True)
    out, last = kernel(q, k)
    assert kernel.last_launch.hazards == []
    expected = np.zeros((TILE, DIM), np.float32)
    for i in range(keys):
        part = k[i * TILE:(i + 1) * TILE].astype(np.float32)
        scores = q.astype(np.float32) @ part.T
        expected += (scores / 4).astype(np.float16).astype(np.float32) @ part + scores.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(last, 2)
    return kernel


@pytest.mark.parametrize("stages", [2, 3])
def test_what_goes_through_a_parameter_overlaps_as_what_the_compiler_passes(stages: int) -> None:
    serial, overlapped = (sums_through_a_workspace(8, depth, 8) for depth in (1, stages))
    assert overlapped.last_launch.cycles < 0.85 * serial.last_launch.cycles
    done = [each.text for each in overlapped.explain().remarks if each.maker == "own-workspaces"]
    assert len(done) == 3 and all("a slot for each iteration in flight" in text for text in done)


def test_buffers_of_different_times_need_no_room_side_by_side() -> None:
    """Results of the two halves of an iteration share bytes: only a plan decides whether the ring buffers fit too."""
    serial, overlapped = (sums_through_a_workspace(4, depth, 240) for depth in (1, 2))
    (memory,) = [each for each in overlapped.memory_report().memories if each.name == "UB"]
    sizes = [each.nbytes for each in memory.buffers if each.name in ("first", "second")]
    assert len(sizes) == 2 and sum(sizes) > 196608
    assert overlapped.last_launch.cycles < 0.75 * serial.last_launch.cycles


def paged(stages: int) -> Any:
    """Attention to pages that a table lists."""
    @T.prim_func
    def main(Q: T.Tensor((TILE, DIM), "float16"), K: T.Tensor((8 * TILE, DIM), "float16"), Table: T.Tensor((1, 8), "int32"),
             O: T.Tensor((TILE, DIM), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            q = T.alloc_shared((TILE, DIM), "float16")
            k = T.alloc_shared((TILE, DIM), "float16")
            s = T.alloc_fragment((TILE, TILE), "float32")
            p = T.alloc_fragment((TILE, TILE), "float16")
            o = T.alloc_fragment((TILE, DIM), "float32")
            total = T.alloc_fragment((TILE, DIM), "float32")
            T.copy(Q, q)
            T.clear(total)
            for n in T.Pipelined(8, num_stages=stages):
                page = Table[b, n]
                T.copy(K[page * TILE, 0], k)
                T.gemm(q, k, s, initC=True, b_transpose=True)
                T.vexp(s, s)
                T.copy(s, p)
                T.gemm(p, k, o, initC=True)
                T.vadd(total, o, total)
            T.copy(total, O)

    return main


def test_iterations_overlap_though_a_table_says_where_to_load() -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.uniform(-0.1, 0.1, (rows, DIM)).astype(np.float16) for rows in (TILE, 8 * TILE))
    table = rng.permutation(8).astype(np.int32)
    left, times = [], []
    for stages in (1, 2):
        kernel = tilelang.compile(paged(stages), out_idx=[3], target="npuir")
        left.append(np.asarray(kernel(q, k, table[None])))
        times.append(kernel.last_launch.cycles)
        assert kernel.last_launch.hazards == []
    np.testing.assert_array_equal(*left)
    pages = k.reshape(8, TILE, DIM).astype(np.float32)[table]
    expected = sum((np.exp(q.astype(np.float32) @ page.T) @ page for page in pages), np.zeros((TILE, DIM), np.float32))
    np.testing.assert_allclose(left[1], expected, rtol=2e-2, atol=2e-2)
    assert times[1] < 0.7 * times[0]


def asking(cross_interval: int | None = None, **by_hand: object) -> Any:
    @T.prim_func
    def main(Q: T.Tensor((TILE, DIM), "float16"), K: T.Tensor((4 * TILE, DIM), "float16"),
             O: T.Tensor((TILE, TILE), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            q = T.alloc_shared((TILE, DIM), "float16")
            k = T.alloc_shared((TILE, DIM), "float16")
            scores = T.alloc_fragment((TILE, TILE), "float32")
            total = T.alloc_fragment((TILE, TILE), "float32")
            T.copy(Q, q)
            T.clear(total)
            for i in T.Pipelined(4, num_stages=2, cross_interval=cross_interval, **by_hand):
                T.copy(K[i * TILE, 0], k)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                T.vexp(scores, scores)
                T.vadd(total, scores, total)
            T.copy(total, O)

    return main


@pytest.mark.parametrize("interval", [None, 1, 2, 4])
def test_an_interval_of_flags_changes_nothing_and_is_reported(interval: int | None) -> None:
    kernel = tilelang.compile(asking(interval), out_idx=[2], target="npuir")
    found = [each for each in kernel.explain().refused if "cross_interval" in each.text]
    assert len(found) == (interval in (2, 4)) and all(f"not one in {interval} " in each.text and each.place for each in found)
    assert kernel.mlir() == tilelang.compile(asking(), out_idx=[2], target="npuir").mlir()


@pytest.mark.parametrize(("asked", "code"), [({"sync": [[0]]}, "T190"), ({"cross_interval": 0}, "T150"),
                                             ({"cross_interval": 1.5}, "T150")])
def test_a_schedule_by_hand_is_refused_with_the_reason(asked: dict[str, Any], code: str) -> None:
    with pytest.raises(tilelang.TileError) as message:
        tilelang.compile(asking(**asked), out_idx=[2], target="npuir")
    assert message.value.code == code and next(iter(asked)) in str(message.value)


def test_no_depth_is_tried_where_a_tile_alone_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """No depth has a memory plan, and each trial would run the planner; the error is about the tile's size, as before."""
    tried = []
    monkeypatch.setattr(PassWithPlanTrial, "missing_room", lambda self, module: tried.append(module) or "there is no room")
    monkeypatch.setitem(globals(), "TILE", 192)
    with pytest.raises(TileError, match=r"L0C needs 147 456 bytes, 131 072 are available") as refusal:
        tilelang.compile(weighted_sums(384, 2, 4, (192, 1)), target="npuir", pass_configs={"tl.disable": ["split-tiles"]})
    assert refusal.value.code == "T104" and not tried
    monkeypatch.setitem(globals(), "TILE", 16)
    sums_through_a_workspace(4, 2, 240)
    assert tried


def chunked(rows: int, dim: int) -> Any:
    """A recurrence over chunks in which the Cube core uses the loaded tiles after the Vector cores have masked the scores."""
    @T.prim_func
    def main(Q: T.Tensor((8 * rows, dim), "float16"), K: T.Tensor((8 * rows, dim), "float16"),
             O: T.Tensor((8 * rows, dim), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            q = T.alloc_shared((rows, dim), "float16")
            k = T.alloc_shared((rows, dim), "float16")
            p = T.alloc_shared((rows, rows), "float16")
            narrow = T.alloc_shared((dim, dim), "float16")
            scores = T.alloc_fragment((rows, rows), "float32")
            state = T.alloc_fragment((dim, dim), "float32")
            o = T.alloc_fragment((rows, dim), "float32")
            for i in T.serial(8):
                T.copy(Q[i * rows, 0], q)
                T.copy(K[i * rows, 0], k)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                for r, c in T.Parallel(rows, rows):
                    p[r, c] = T.if_then_else(r >= c, scores[r, c], 0.0)
                T.gemm(p, k, o, initC=True)
                if i > 0:
                    T.copy(state, narrow)
                    T.gemm(q, narrow, o)
                T.copy(o, O[i * rows, 0])
                T.gemm(k, q, state, initC=(i == 0), a_transpose=True)

    return main


def test_the_edit_of_ring_buffers_that_are_too_large_leaves_what_fits() -> None:
    kernel = tilelang.compile(chunked(64, 128), target="npuir")
    (refusal,) = [one for one in kernel.explain(edits=False).refused if one.about == "overlap-iterations"]
    found = re.search(r"would take ([\d ]+) bytes of L1 .* at most ([\d ]+) bytes of it are used for that", refusal.text)
    assert found is not None and isinstance(refusal.change, Smaller), refusal.text
    needed, room = (int(number.replace(" ", "")) for number in found.groups())
    assert refusal.change.percent == 100 * room // needed < 100


def test_a_refusal_names_the_value_that_both_cores_compute_from_one_iteration_to_the_next() -> None:
    @T.prim_func
    def main(A: T.Tensor((512, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a, state = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            o = T.alloc_fragment((64, 64), "float32")
            T.clear(state)
            for i in T.Pipelined(8, num_stages=2):
                T.copy(A[i * 64, 0], a)
                T.gemm(a, state, o, initC=True)
                for r, c in T.Parallel(64, 64):
                    state[r, c] = o[r, c] * 0.5
            T.copy(state, O)

    (refusal,) = [one for one in tilelang.compile(main, target="npuir").explain(edits=False).refused
                  if one.about == "overlap-iterations"]
    assert re.search(r"passes state_workspace \(line \d+\) to the next", refusal.text), refusal.text


@pytest.mark.filterwarnings("ignore")
def test_a_refusal_of_an_inner_loop_of_loads_asks_to_unroll_it() -> None:
    """The loop reads page numbers with the scalar unit and loads pages, which is no work of one core."""
    @T.prim_func
    def main(Table: T.Tensor((32,), "int32"), K: T.Tensor((64, 32, 64), "float16"), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            k = T.alloc_shared((64, 64), "float16")
            q = T.alloc_shared((64, 64), "float16")
            s = T.alloc_fragment((64, 64), "float32")
            o = T.alloc_fragment((64, 64), "float32")
            T.clear(o)
            T.clear(q)
            for t in T.Pipelined(16, num_stages=2):
                for n in T.serial(2):
                    T.copy(K[Table[t * 2 + n], :, :], k[n * 32:n * 32 + 32, :])
                T.gemm(q, k, s, initC=True, b_transpose=True)
                for i, j in T.Parallel(64, 64):
                    o[i, j] = o[i, j] + T.exp(s[i, j])
            T.copy(o, O)

    found = [one for one in tilelang.compile(main, target="npuir").explain(edits=False).refused
             if one.about == "overlap-iterations"]
    assert [one.edit for one in found] == [
        "unroll the inner loop (T.unroll), so that each of its statements belongs to one core"]
