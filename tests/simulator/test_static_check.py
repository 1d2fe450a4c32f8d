"""The static check: its findings, the cases that it reports as undecided, and that it never computes values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import Location
from tilelang_npu.simulator.result.static_check import Checked, Undecided, check
from tilelang_npu.simulator.run.program import Program

N = 64
AUTO = {"tl.ascend_auto_sync": True}


def checked(function: Any, *arrays: np.ndarray[Any, Any], **settings: Any) -> Checked:
    """The check of a kernel with arrays whose values do not count."""
    kernel = tilelang.compile(function, target="ascendc", **settings)
    call = kernel.signature.bind(arrays)
    before = [array.copy() for array in arrays]
    done = check(kernel.program, kernel.machine_arguments(call), *kernel.blocks(call))
    assert all(np.array_equal(one, other) for one, other in zip(before, arrays, strict=True)), "nothing is computed"
    return done


def doubled(*, sync: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            T.copy(A, a)
            T.tile.add(a, a, a)
            T.copy(a, B)

    return main


A, B = np.ones(N, np.float32), np.zeros(N, np.float32)


def test_a_race_and_its_absence() -> None:
    assert [hazard.missing.split(" between")[0] for hazard in checked(doubled(sync=False), A, B).hazards] == [
        "an event MTE2 -> V", "an event MTE2 -> V", "an event V -> MTE3"]
    done = checked(doubled(sync=True), A, B, pass_configs=AUTO)
    assert (done.hazards, done.errors, done.open_questions) == ([], [], [])
    assert done.launch is not None and done.launch.time_us > done.launch.launch_us > 0
    assert done.milliseconds > 0


def test_flags() -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            T.copy(A, a)
            T.set_flag("mte2", "mte3", 0)
            T.set_flag("mte2", "mte3", 0)
            T.wait_flag("mte2", "mte3", 0)
            T.copy(a, B)

    assert {hazard.code for hazard in checked(main, A, B).hazards} == {"S211", "S212"}


def test_a_hang() -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            T.copy(A, a)
            for _i in T.serial(2):
                T.wait_flag("mte2", "mte3", 0)
            T.set_flag("mte2", "mte3", 0)
            T.copy(a, B)

    (error,) = checked(main, A, B).errors
    assert error.code == "S302"


def test_bytes_beyond_the_end() -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(4, is_npu=True) as (b, _):
            for i in T.serial(N // 4 + 1):
                B[b * (N // 4) + i] = A[i]

    done = checked(main, A, B)
    assert [error.code for error in done.errors] == ["T502"]
    assert done.errors[0].location.file == __file__ and done.open_questions == []


# -- between blocks: values decide -------------------------------------------------------------------------------------


def stored(*, by_block: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(4, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            T.copy(A, a)
            T.tile.add(a, a, T.Cast("float32", b) if by_block else 1.0)
            T.copy(a, B)

    return main


@pytest.mark.parametrize(("by_block", "codes"), [(False, []), (True, ["S203"])])
def test_blocks_that_write_the_same_bytes(by_block: bool, codes: list[str]) -> None:
    done = checked(stored(by_block=by_block), np.zeros(N, np.float32), B, pass_configs=AUTO)
    assert [hazard.code for hazard in done.hazards] == codes


@pytest.mark.parametrize("whole", [True, False])
def test_bytes_that_nothing_wrote(whole: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            T.copy(A[0:N if whole else N // 2], a[0:N if whole else N // 2])
            T.tile.add(a, a, a)
            T.copy(a, B)

    assert [hazard.code for hazard in checked(main, A, B, pass_configs=AUTO).hazards] == ([] if whole else ["S221"])


# -- data decides ------------------------------------------------------------------------------------------------------

COUNTS = np.zeros(8, np.int32)


def branching(*, both: bool) -> Any:
    """Where the number is 3, the wait is missing."""

    @T.prim_func
    def main(K: T.Tensor((8,), "int32"), A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            T.copy(A, a)
            T.set_flag("mte2", "mte3", 0)
            if K[0] == 3:
                if both:
                    T.wait_flag("mte2", "mte3", 0)
            else:
                T.wait_flag("mte2", "mte3", 0)
            T.copy(a, B)

    return main


@pytest.mark.parametrize(("both", "codes"), [(True, set()), (False, {"S201", "S211"})])
def test_both_ways_of_a_branch_are_looked_at(both: bool, codes: set[str]) -> None:
    done = checked(branching(both=both), COUNTS, A, B)
    assert {hazard.code for hazard in done.hazards} == codes
    (note,) = done.open_questions
    assert note.startswith(f"depends on data, checked both ways: the direction of a branch ({__file__}:")


def test_iterations_that_go_different_ways() -> None:
    """A barrier in each iteration, at its beginning or at its end: it is missing between iterations that take different
    branches."""

    @T.prim_func
    def main(K: T.Tensor((8,), "int32"), A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            for i in T.serial(4):
                if K[i] > 0:
                    T.barrier_all()
                T.copy(A, a)
                T.set_flag("mte2", "mte3", 0)
                T.wait_flag("mte2", "mte3", 0)
                T.copy(a, B)
                if K[i] <= 0:
                    T.barrier_all()

    assert ("S201", "WAR") in {(hazard.code, hazard.kind) for hazard in checked(main, COUNTS, A, B).hazards}


def test_a_loop_whose_end_is_data() -> None:
    @T.prim_func
    def main(K: T.Tensor((8,), "int32"), A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            for _i in T.serial(K[b]):
                T.copy(A, a)
                T.set_flag("mte2", "mte3", 0)
                T.wait_flag("mte2", "mte3", 0)
                T.copy(a, B)

    done = checked(main, COUNTS, A, B)
    assert {(hazard.code, hazard.kind) for hazard in done.hazards} == {
        ("S201", "WAR"), ("S201", "WAW")}  # of two iterations
    assert any("depends on data" in note and "the trip count of a loop" in note for note in done.open_questions)


def test_a_loop_that_data_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    @T.prim_func
    def main(K: T.Tensor((8,), "int32"), A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            while K[0] < 3:
                T.copy(A, a)
                T.barrier_all()
                T.copy(a, B)
                T.barrier_all()

    monkeypatch.setattr("tilelang_npu.simulator.run.loop_limits.MOST_OPS", 1000)
    done = checked(main, COUNTS, A, B)
    assert (done.hazards, done.errors) == ([], [])
    assert any("never leaves this loop" in note or "has not left this loop" in note for note in done.open_questions)
    assert any("depends on data" in note and "the trip count of a loop" in note for note in done.open_questions)


def test_a_place_that_is_data() -> None:
    @T.prim_func
    def main(K: T.Tensor((8,), "int32"), A: T.Tensor((2, N), "float32"), B: T.Tensor((8, N), "float32")):
        with T.Kernel(8, is_npu=True) as (b, _):
            a = T.alloc_ub((1, N), "float32")
            T.copy(A[K[b], 0], a)
            T.copy(a, B[b, 0])

    done = checked(main, COUNTS, np.ones((2, N), np.float32), np.zeros((8, N), np.float32), pass_configs=AUTO)
    assert (done.hazards, done.errors) == ([], [])
    note = done.open_questions[0]
    assert note.startswith("depends on data, checked with 0, 1 and 2, ")
    assert f"the address of an access ({__file__}:" in note


def test_open_questions_of_one_kind_are_one_line() -> None:
    one, two = Location("k.py", 3), Location("k.py", 7)
    done = Checked(undecided=[Undecided("the address of an access", "with 1 in place of data", one),
                              Undecided("the trip count of a loop", "with 1 in place of data", two),
                              Undecided("the address of an access", "with 1 in place of data", two),
                              Undecided("the direction of a branch", "both ways", one)],
                   failures={"a loop does not end": ["1", "2", "0 and 1 in turn"], "x": [""]},
                   notes=["3 of 4 blocks were checked"])
    assert done.open_questions == [
        "depends on data, checked with 1 in place of data: the address of an access (k.py:3, 7); the trip count of a loop "
        "(k.py:7)",
        "depends on data, checked both ways: the direction of a branch (k.py:3)",
        "not decided where the kernel reads 1, 2 and 0 and 1 in turn: a loop does not end", "not decided: x",
        "3 of 4 blocks were checked"]


@pytest.mark.parametrize("rows", [[0, 0], [3, 4], [4, 4]], ids=["not given", "apart", "alike"])
def test_where_blocks_write_is_data(rows: list[int]) -> None:
    """Numbers that the call gives decide; made-up ones do not."""

    @T.prim_func
    def main(K: T.Tensor((2,), "int32"), A: T.Tensor((2, N), "float32"), B: T.Tensor((8, N), "float32")):
        with T.Kernel(2, is_npu=True) as (b, _):
            a = T.alloc_ub((1, N), "float32")
            T.copy(A[b, 0], a)
            T.copy(a, B[K[b], 0])

    arrays = np.array(rows, np.int32), np.zeros((2, N), np.float32), np.zeros((8, N), np.float32)
    done = checked(main, *arrays, pass_configs=AUTO)
    assert [hazard.code for hazard in done.hazards] == (["S203"] if rows == [4, 4] else [])
    report = any("not decided: whether blocks overlap in B depends on data" in note for note in done.open_questions)
    assert report == (rows == [0, 0])


def test_numbers_that_go_through_the_cores_own_storage() -> None:
    @T.prim_func
    def main(K: T.Tensor((8,), "int32"), A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            count = T.alloc_var("int32", init=0)
            for i in T.serial(4):
                if K[i] > 0:
                    count = count + 1
            T.copy(A, a)
            if count < 2:
                T.barrier_all()
            T.copy(a, B)

    done = checked(main, COUNTS, A, B)
    assert [hazard.code for hazard in done.hazards] == ["S201"]
    (branches,) = [note for note in done.open_questions if note.startswith("depends on data, checked both ways: ")]
    assert re.search(rf"{re.escape(__file__)}:\d+, \d+\)$", branches), "both branches, with the file once"


# -- large launches ----------------------------------------------------------------------------------------------------


def test_of_many_blocks_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    @T.prim_func
    def main(A: T.Tensor((200, N), "float32"), B: T.Tensor((200, N), "float32")):
        with T.Kernel(200, is_npu=True) as (b, _):
            a = T.alloc_ub((1, N), "float32")
            T.copy(A[b, 0], a)
            if b == 199:
                T.tile.add(a, a, a)
            T.barrier_all()
            T.copy(a, B[b, 0])

    arrays = np.ones((200, N), np.float32), np.zeros((200, N), np.float32)
    assert checked(main, *arrays).notes == []
    monkeypatch.setattr("tilelang_npu.simulator.result.static_check.EVENTS", 100)
    done = checked(main, *arrays)
    assert len(done.open_questions) == 1 and done.open_questions[0].endswith("of 200 blocks were checked")
    assert [hazard.block for hazard in done.hazards] == [199, 199]


def test_a_trace_is_what_a_run_records(rng: np.random.Generator) -> None:
    """All ops and addresses are equal."""
    kernel = tilelang.compile(stored(by_block=True), target="ascendc", pass_configs=AUTO)
    arrays = [rng.standard_normal(N).astype(np.float32) for _ in range(2)]
    program: Program = kernel.program
    (blocks,) = kernel.blocks(kernel.signature.bind(arrays))
    run, trace = program.run(arrays, blocks=blocks), program.trace(arrays, blocks=blocks)
    assert [one.streams for one in run.blocks] == [one.streams for one in trace.blocks]
    assert [[list(part) for part in one.gm] for one in run.blocks] == [[list(part) for part in one.gm] for one in trace.blocks]
    assert (run.count, trace.count, run.traced, trace.traced) == (blocks, blocks, False, True)
