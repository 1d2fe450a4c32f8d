"""Batched blocks have the same values, records, times and hazards as blocks that run one after the other, bit for bit."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.ops import dtype
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.machine import cube_products
from tilelang_npu.simulator.run import batched_execution
from tilelang_npu.simulator.run.recorded_launch import SharedResults

SWITCHES = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@pytest.fixture(autouse=True)
def small_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_execution, "LEAST_BLOCKS", 2)
    monkeypatch.setattr(batched_execution, "LEAST_BYTES", 0)
    monkeypatch.setattr(batched_execution, "AT_ONCE", 0)


def _small_piles(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    for name in ("ROOM", "MOST_ROOM"):
        monkeypatch.setattr(batched_execution, name, room)


def compiled(kernel: Any, target: str = "ascendc") -> Any:
    switches = {**(SWITCHES if target == "ascendc" else {}), "tl.disable": ["make-persistent"]}  # as many blocks as are written
    return tilelang.compile(kernel, target=target, pass_configs=switches)


def batches(kernel: Any, args: list[Any], blocks: int) -> list[tuple[int, int]] | None:
    """Runs a launch both ways and compares; returns the rows and columns of the batches, None if blocks ran one by one."""
    program = kernel.program
    mine, alone = ([arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args] for _ in range(2))
    found, expected = program.run(mine, blocks=blocks), program.run(alone, blocks=blocks, order=range(blocks))
    for one, other in zip(mine, alone, strict=True):
        if isinstance(one, np.ndarray):
            assert one.tobytes() == other.tobytes()
    for run, same in zip(found.blocks, expected.blocks, strict=True):
        assert (run.block, run.streams) == (same.block, same.streams)
        assert [list(offsets) for offsets in run.gm] == [list(offsets) for offsets in same.gm]
    for _ in range(2):  # the second equal launch shares the results of the first
        first, second = Launch(found), Launch(expected)
        assert first.cycles == second.cycles
        assert list(map(str, first.hazards)) == list(map(str, second.hazards))
        found = program.run(mine, blocks=blocks)
    by_threads = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    program.run(by_threads, blocks=blocks, jobs=3)
    for one, other in zip(by_threads, alone, strict=True):
        assert not isinstance(one, np.ndarray) or one.tobytes() == other.tobytes()
    plan = program._planned[1]
    return None if plan is None else [batch.layouts[0].sizes for batch in plan.batches]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray[Any, Any]:
    element = dtype(kind)
    made = rng.standard_normal(shape, np.float32) if element.is_float else rng.integers(-9, 9, shape)
    return made.astype(element.numpy)


def product(M: int, N: int, K: int, kind: str, stages: int, transposed: bool) -> Any:
    total = "int32" if kind == "int8" else "float32"
    columns = -(-N // 32)

    @T.prim_func
    def product(A: T.Tensor((M, K), kind), B: T.Tensor((N, K) if transposed else (K, N), kind), C: T.Tensor((M, N), total)):
        with T.Kernel(T.ceildiv(M, 32) * columns, is_npu=True) as (block, _):
            a = T.alloc_shared((32, 32), kind)
            b = T.alloc_shared((32, 32), kind)
            c = T.alloc_fragment((32, 32), total)
            row, column = block // columns * 32, block % columns * 32
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=stages):
                T.copy(A[row, k * 32], a)
                if transposed:
                    T.copy(B[column, k * 32], b)
                else:
                    T.copy(B[k * 32, column], b)
                T.gemm(a, b, c, initC=(k == 0), b_transpose=transposed)
            T.copy(c, C[row, column])

    return compiled(product, "npuir")


@pytest.mark.parametrize(("kind", "stages", "transposed"), [
    ("float16", 2, False), ("float16", 3, True), ("bfloat16", 2, False), ("int8", 1, False), ("float32", 2, True)])
@pytest.mark.parametrize(("M", "N", "K"), [(96, 128, 96), (96, 128, 80), (70, 100, 64)])
def test_tiles_of_a_product(kind: str, stages: int, transposed: bool, M: int, N: int, K: int, rng: np.random.Generator) -> None:
    kernel = product(M, N, K, kind, stages, transposed)
    a, b = numbers(rng, (M, K), kind), numbers(rng, (N, K) if transposed else (K, N), kind)
    c = np.zeros((M, N), np.int32 if kind == "int8" else np.float32)
    found = batches(kernel, [a, b, c], 12)
    assert found is not None
    assert max(rows for rows, _ in found) > 1  # blocks of a row read the same of A, those of a column the same of B
    assert max(columns for _, columns in found) > 1


def test_operands_that_blocks_share_are_converted_once(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(cube_products._Accumulator, "__init__", _noting(cube_products._Accumulator.__init__, made))
    kernel = product(64, 64, 64, "float16", 2, False)
    args = [numbers(rng, (64, 64), "float16"), numbers(rng, (64, 64), "float16"), np.zeros((64, 64), np.float32)]
    kernel.program.run(args, blocks=4)
    assert made == [((2, 1), (1, 2))]


def _noting(init: Any, made: list[Any]) -> Any:
    def noted(self: Any, call: Any, *given: Any, **named: Any) -> None:
        made.append(call.batches)
        init(self, call, *given, **named)

    return noted


def test_both_kinds_of_cores(rng: np.random.Generator) -> None:
    @T.prim_func
    def linear(X: T.Tensor((128, 64), "float16"), W: T.Tensor((64, 96), "float16"), B: T.Tensor((1, 96), "float32"),
               Y: T.Tensor((128, 96), "float32")):
        with T.Kernel(12, is_npu=True) as (block, _):
            x = T.alloc_shared((32, 32), "float16")
            w = T.alloc_shared((32, 32), "float16")
            y = T.alloc_fragment((32, 32), "float32")
            bias = T.alloc_shared((1, 32), "float32")
            T.copy(B[0, block % 3 * 32], bias)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(X[block // 3 * 32, k * 32], x)
                T.copy(W[k * 32, block % 3 * 32], w)
                T.gemm(x, w, y, initC=(k == 0))
            T.vadd(y, bias, y)
            T.vexp(y, y)
            T.copy(y, Y[block // 3 * 32, block % 3 * 32])

    args = [numbers(rng, (128, 64), "float16"), numbers(rng, (64, 96), "float16"), numbers(rng, (1, 96), "float32"),
            np.zeros((128, 96), np.float32)]
    assert batches(compiled(linear, "npuir"), args, 12) == [(4, 3)]


def normed(rows: int, columns: int, body: str) -> Any:
    """Each block changes 8 rows of X, with 8 numbers of its own and the row W, which all blocks share."""

    @T.prim_func
    def normed(X: T.Tensor((rows, columns), "float32"), W: T.Tensor((1, columns), "float32"),
               Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows // 16, is_npu=True) as (block, half):
            x = T.alloc_ub((8, columns), "float32")
            w = T.alloc_ub((1, columns), "float32")
            wide = T.alloc_ub((8, columns), "float32")
            other = T.alloc_ub((8, columns), "float32")
            narrow = T.alloc_ub((8, 1), "float32")
            mask = T.alloc_ub((8, columns // 8), "uint8")
            row = (2 * block + half) * 8
            T.copy(X[row, 0], x)
            T.copy(W[0, 0], w)
            T.tile.broadcast(wide, w)
            if body == "norm":
                T.tile.mul(other, x, x)
                T.reduce_sum(other, narrow, dim=-1)
                T.tile.div(x, x, narrow)
                T.tile.mul(x, x, wide)
            elif body == "choose":
                T.tile.compare(mask, x, wide, "LT")
                T.tile.select(x, mask, x, wide, "VSEL_TENSOR_TENSOR_MODE")
            elif body == "unwritten":
                T.tile.add(x, x, other)
            elif body == "number":
                T.tile.add(x, x, T.cast(block, "float32"))
            elif body == "branch":
                if block == 1:
                    T.tile.exp(x, x)
            elif body == "own":
                T.tile.exp(wide, wide)
                if block == 2:
                    T.tile.add(wide, wide, 1.0)
                T.tile.add(x, x, wide)
            T.copy(x, Y[row, 0])

    return compiled(normed)


@pytest.mark.parametrize(("body", "expected"), [
    ("norm", [(1, 8)]), ("choose", [(1, 8)]), ("unwritten", [(1, 8)]), ("number", [(1, 2)] * 4),
    ("own", [(1, 2), (1, 2), (1, 4)]), ("branch", [(1, 2), (1, 2), (2, 2)])])
def test_rows(body: str, expected: list[tuple[int, int]], rng: np.random.Generator) -> None:
    """Blocks that take another number, or another branch, are not among the others."""
    x, w = numbers(rng, (64, 64), "float32"), numbers(rng, (1, 64), "float32")
    assert sorted(batches(normed(64, 64, body), [x, w, np.zeros_like(x)], 8) or []) == expected


def handed_on(kind: str) -> Any:
    """Blocks that access the same elements of Y: each writes or adds to the same rows, or reads what the previous block
    wrote."""

    @T.prim_func
    def handed_on(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((72, 64), "float32")):
        with T.Kernel(4, is_npu=True) as (block, half):
            x = T.alloc_ub((8, 64), "float32")
            y = T.alloc_ub((8, 64), "float32")
            row = (2 * block + half) * 8
            T.copy(X[row, 0], x)
            if kind == "same":
                T.copy(x, Y[0, 0])
            elif kind == "add":
                T.tile.atomic_add(Y[0, 0], x)
            else:
                T.copy(Y[row, 0], y)
                T.tile.add(y, y, x)
                T.copy(y, Y[row + 8, 0])

    return compiled(handed_on)


def test_the_plan_has_the_bytes_that_all_blocks_write(rng: np.random.Generator) -> None:
    x, w = numbers(rng, (64, 64), "float32"), numbers(rng, (1, 64), "float32")
    kernel = normed(64, 64, "own")
    assert batches(kernel, [x, w, np.zeros_like(x)], 8) is not None
    tile, row = 8 * 64 * 4, 64 * 4
    # each block writes W, and five tiles: it loads x, broadcasts W, takes exp, adds and stores; block 2 adds 1 in its two parts
    assert kernel.program._planned[1].written == 8 * (row + 5 * tile) + 2 * tile


@pytest.mark.parametrize("kind", ["same", "add", "next"])
def test_blocks_that_meet_keep_their_order(kind: str, rng: np.random.Generator) -> None:
    assert batches(handed_on(kind), [numbers(rng, (64, 64), "float32"), np.zeros((72, 64), np.float32)], 8) is None


def test_arguments_that_are_one_array(rng: np.random.Generator) -> None:
    """In place, each block reads the rows that it writes; one row further, it would read a row that another block writes."""
    program = normed(64, 64, "norm").program
    w = numbers(rng, (1, 64), "float32")
    for shift in (0, 1):
        held = numbers(rng, (64 + shift, 64), "float32")
        alone = held.copy()
        program.run([held[:64], w, held[shift:]], blocks=8)
        program.run([alone[:64], w, alone[shift:]], blocks=8, order=range(8))
        assert held.tobytes() == alone.tobytes()
        assert (program._planned[1] is None) == bool(shift)


def test_an_access_out_of_range_is_reported_with_its_block(rng: np.random.Generator) -> None:
    @T.prim_func
    def gathered(X: T.Tensor((64, 64), "float32"), I: T.Tensor((64, 64), "uint32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(4, is_npu=True) as (block, half):
            x = T.alloc_ub((8, 64), "float32")
            i = T.alloc_ub((8, 64), "uint32")
            y = T.alloc_ub((8, 64), "float32")
            row = (2 * block + half) * 8
            T.copy(X[row, 0], x)
            T.copy(I[row, 0], i)
            T.tile.gather(y, x, i, 0)
            T.copy(y, Y[row, 0])

    program = compiled(gathered).program
    places = rng.integers(0, 64, (64, 64)).astype(np.uint32) * 4
    args = [numbers(rng, (64, 64), "float32"), places, np.zeros((64, 64), np.float32)]
    assert batches(compiled(gathered), args, 8) == [(1, 8)]
    places[41, 3] = 1 << 20
    with pytest.raises(tilelang.TileError, match="in block 5"):
        program.run(args, blocks=8)


def test_threads_raise_what_the_first_block_raises(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    @T.prim_func
    def gathered(X: T.Tensor((512, 64), "float32"), I: T.Tensor((512, 64), "uint32"), Y: T.Tensor((512, 64), "float32")):
        with T.Kernel(32, is_npu=True) as (block, half):
            x = T.alloc_ub((8, 64), "float32")
            i = T.alloc_ub((8, 64), "uint32")
            y = T.alloc_ub((8, 64), "float32")
            row = (2 * block + half) * 8
            T.copy(X[row, 0], x)
            T.copy(I[row, 0], i)
            T.tile.gather(y, x, i, 0)
            T.copy(y, Y[row, 0])

    _small_piles(monkeypatch, 1 << 14)
    program = compiled(gathered).program
    places = rng.integers(0, 64, (512, 64)).astype(np.uint32) * 4
    args = [numbers(rng, (512, 64), "float32"), places, np.zeros((512, 64), np.float32)]
    program.run(args, blocks=64, jobs=3)
    assert len(program._planned[1].batches) > 16
    places[[301, 77, 511], 3] = 1 << 20
    for _ in range(5):
        with pytest.raises(tilelang.TileError, match="in block 9") as one:
            program.run(args, blocks=64, jobs=1)
        with pytest.raises(tilelang.TileError, match="in block 9") as several:
            program.run(args, blocks=64, jobs=3)
        assert str(one.value) == str(several.value)


@pytest.mark.parametrize("blocks", [4, 12])
def test_a_plan_counts_the_bytes_that_all_blocks_write(blocks: int, rng: np.random.Generator) -> None:
    """In each block, a load and an addition write a tile in UB, and a store writes it in GM."""
    @T.prim_func
    def doubled(X: T.Tensor((blocks * 8, 64), "float32"), Y: T.Tensor((blocks * 8, 64), "float32")):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            x = T.alloc_ub((8, 64), "float32")
            T.copy(X[block * 8, 0], x)
            T.tile.add(x, x, x)
            T.copy(x, Y[block * 8, 0])

    program = compiled(doubled).program
    x = numbers(rng, (blocks * 8, 64), "float32")
    program.run([x, np.zeros_like(x)], blocks=blocks)
    plan = program._planned[1]
    assert plan.written == 3 * x.nbytes


def test_large_launches_have_a_thread_for_each_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2}, raising=False)
    batches = (batched_execution.Batch(0, ()),) * 8
    enough, calls = batched_execution.LEAST_WRITTEN, batched_execution.LEAST_WRITTEN // batched_execution.LEAST_AT_A_TIME
    assert batched_execution.threads_for(batched_execution.BatchPlan((), batches, enough, calls, SharedResults()), None) == 3
    assert batched_execution.threads_for(batched_execution.BatchPlan((), batches[:2], enough, calls, SharedResults()),
                                         None) == 2
    assert batched_execution.threads_for(batched_execution.BatchPlan((), batches, enough, 2 * calls, SharedResults()),
                                         None) == 1
    assert batched_execution.threads_for(batched_execution.BatchPlan((), batches, enough - 1, 1, SharedResults()), None) == 1
    assert batched_execution.threads_for(batched_execution.BatchPlan((), batches, 0, 1, SharedResults()), 5) == 5


def test_threads_work_far_from_each_other_and_leave_none_idle() -> None:
    hands = batched_execution._BatchQueue(10, 2)
    assert [hands.next(0), hands.next(1), hands.next(0), hands.next(1)] == [0, 5, 1, 6]
    assert [hands.next(0) for _ in range(7)] == [2, 3, 4, 9, 8, 7, None]


def test_batches_before_a_failing_one_are_computed_and_later_ones_are_not(rng: np.random.Generator) -> None:
    for _ in range(200):
        batches, threads = (int(number) for number in rng.integers(1, (30, 6)))
        hands, failing = batched_execution._BatchQueue(batches, threads), int(rng.integers(batches))
        taken: list[int] = []
        stopped = False
        while (number := hands.next(int(rng.integers(threads)))) is not None:
            assert not stopped or number < failing
            taken.append(number)
            if number == failing:
                hands.stop(number)
                stopped = True
        assert len(set(taken)) == len(taken)
        assert set(range(failing + 1)) <= set(taken)


def test_turns_are_short_while_threads_compute_and_then_what_they_were(rng: np.random.Generator,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    _small_piles(monkeypatch, 1 << 13)

    @T.prim_func
    def doubled(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(4, is_npu=True) as (block, half):
            x = T.alloc_ub((8, 64), "float32")
            T.copy(X[(2 * block + half) * 8, 0], x)
            T.tile.add(x, x, x)
            T.copy(x, Y[(2 * block + half) * 8, 0])

    seen: list[float] = []
    compute = batched_execution._BatchWorker.compute

    def noting(work: Any, batch: batched_execution.Batch) -> None:
        seen.append(sys.getswitchinterval())
        compute(work, batch)
        if not np.isfinite(x).all():
            raise OSError("no number")

    monkeypatch.setattr(batched_execution._BatchWorker, "compute", noting)
    program, x, before = compiled(doubled).program, numbers(rng, (64, 64), "float32"), sys.getswitchinterval()
    for jobs, expected in ((1, before), (3, 5e-6)):
        seen.clear()
        program.run([x, np.zeros_like(x)], blocks=8, jobs=jobs)
        assert seen and all(abs(found - expected) < 1e-6 for found in seen)
        assert sys.getswitchinterval() == before
    x[3, 3] = np.nan
    with pytest.raises(OSError, match="no number"):
        program.run([x, np.zeros_like(x)], blocks=8, jobs=3)
    assert sys.getswitchinterval() == before


def test_each_processor_has_as_many_piles() -> None:
    for blocks, most, processors in itertools.product(range(1, 200, 7), (1, 5, 16, 43), (1, 2, 3, 8)):
        wide = batched_execution._evenly(blocks, most, processors)
        assert 1 <= wide <= most
        assert -(-blocks // wide) <= -(-blocks // most) + processors
        if blocks % processors == 0 and blocks // processors <= most:
            assert blocks // wide == processors


def test_ops_of_a_pile_write_enough_for_threads_to_win(rng: np.random.Generator) -> None:
    """Small blocks are batched as far as the batch's memory limit allows."""
    @T.prim_func
    def scaled(X: T.Tensor((512, 1024), "float32"), Y: T.Tensor((512, 1024), "float32")):
        with T.Kernel(256, is_npu=True) as (block, half):
            x = T.alloc_ub((1, 1024), "float32")
            spare = T.alloc_ub((40, 1024), "float32")
            T.copy(X[2 * block + half, 0], x)
            T.tile.fill(spare, 1.0)
            for _ in T.serial(40):
                T.tile.add(x, x, spare[3, :])
            T.copy(x, Y[2 * block + half, 0])

    args = [numbers(rng, (512, 1024), "float32"), np.zeros((512, 1024), np.float32)]
    found = batches(compiled(scaled), args, 256)
    assert found is not None
    used = 41 * 4096
    assert batched_execution.ROOM // used < max(columns for _, columns in found) <= batched_execution.MOST_ROOM // used


def test_what_no_block_has_fits_what_each_of_them_has(rng: np.random.Generator) -> None:
    """The second half of the blocks has no row: their stores are empty and have the same address."""
    @T.prim_func
    def doubled(X: T.Tensor((5, 61), "float32"), Y: T.Tensor((5, 61), "float32")):
        with T.Kernel(4, is_npu=True) as (block, half):
            x = T.alloc_ub((8, 16), "float32")
            T.tile.fill(x, 1.0)
            T.copy(X[half * 8, block * 16], x)
            T.tile.add(x, x, x)
            T.copy(x, Y[half * 8, block * 16])

    args = [numbers(rng, (5, 61), "float32"), np.zeros((5, 61), np.float32)]
    assert batches(compiled(doubled), args, 4) is not None
    np.testing.assert_array_equal(args[1], 0)


@pytest.mark.parametrize("loaded", [32, 64])
def test_bytes_that_nothing_wrote_are_those_of_a_block_by_itself(loaded: int, rng: np.random.Generator,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches use the same memories in turn: none reads data of the previous batch."""
    @T.prim_func
    def part(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(8, is_npu=True) as (block, _):
            x = T.alloc_ub((8, 64), "float32")
            T.copy(X[block * 8:block * 8 + 8, 0:loaded], x[0:8, 0:loaded])
            T.copy(x, Y[block * 8:block * 8 + 8, 0:64])

    _small_piles(monkeypatch, 1 << 13)
    args = [numbers(rng, (64, 64), "float32"), np.zeros((64, 64), np.float32)]
    kernel = compiled(part)
    found = batches(kernel, args, 8)
    assert found is not None
    assert len(found) > 2
    assert kernel.program._planned[1].alike.filled == (loaded == 64)
    kernel.program.run(args, blocks=8)
    np.testing.assert_array_equal(args[1][:, :loaded], args[0][:, :loaded])
    assert np.isnan(args[1][:, loaded:]).all()


def test_small_launches_are_not_looked_at(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_execution, "LEAST_BYTES", 1 << 20)
    program = normed(64, 64, "norm").program
    program.run([numbers(rng, (64, 64), "float32"), numbers(rng, (1, 64), "float32"), np.zeros((64, 64), np.float32)], blocks=8)
    assert program._planned == (None, None)


def test_a_small_launch_is_looked_at_when_it_comes_again(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_execution, "AT_ONCE", 1 << 25)
    program = normed(64, 64, "norm").program
    x, w = numbers(rng, (64, 64), "float32"), numbers(rng, (1, 64), "float32")
    found = [np.zeros_like(x) for _ in range(3)]
    for y in found:
        program.run([x, w, y], blocks=8)
        assert (program._planned[1] is None) == (y is found[0])
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
