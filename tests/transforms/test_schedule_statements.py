"""``T.Pipelined(order=, stage=, group=)``: statements have the author's order, and compute the same values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, COLUMNS = 16, 32
SCHEDULES: list[dict[str, Any]] = [
    {"stage": [0, 0, 1, 1, 1]}, {"stage": [0, 0, 1, 1, 2], "num_stages": 2}, {"stage": [0, 1, 2, 3, 5]},
    {"order": [1, 0, 2, 3, 4]}, {"stage": [0, 0, 1, 1, 1], "order": [3, 4, 0, 1, 2]}, {"stage": [3, 3, 3, 3, 4]},
    {"stage": [-1, -1, 0, 0, 1], "order": [-1, -1, 1, 2, 0], "num_stages": 2}, {"group": [[0, 1], [2, 3, 4]], "stage": [0, 1]},
    {"group": [[0], [1], [4], [2, 3]], "order": [1, 2, 0, 3], "stage": [0, 0, 2, 1]},
]


def elementwise(trips: int, dynamic: bool = False, rounds: int = 1, switches: dict[str, Any] | None = None,
                **schedule: Any) -> Any:
    @tilelang.jit(target="npuir", out_idx=[3], pass_configs=switches)
    def make() -> Any:
        @T.prim_func
        def main(X: T.Tensor((rounds * trips * ROWS, COLUMNS), "float32"),
                 Y: T.Tensor((rounds * trips * ROWS, COLUMNS), "float32"),
                 n: T.int32, O: T.Tensor((rounds * trips * ROWS, COLUMNS), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                x = T.alloc_shared((ROWS, COLUMNS), "float32")
                y = T.alloc_shared((ROWS, COLUMNS), "float32")
                z = T.alloc_shared((ROWS, COLUMNS), "float32")
                for r in T.serial(rounds):
                    for i in T.Pipelined(n if dynamic else trips, **schedule):
                        row = (r * trips + i) * ROWS
                        T.copy(X[row, 0], x)
                        T.copy(Y[row, 0], y)
                        T.vexp(x, z)
                        T.vadd(z, y, z)
                        T.copy(z, O[row, 0])

        return main

    return make()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize(("trips", "dynamic", "rounds"), [(1, False, 1), (2, True, 1), (5, False, 2)])
def test_values_are_those_of_the_loop_as_written(trips: int, dynamic: bool, rounds: int, schedule: dict[str, Any]) -> None:
    x, y = np.random.default_rng(trips).uniform(-1, 1, (2, rounds * trips * ROWS, COLUMNS)).astype(np.float32)
    left = []
    for given in ({}, schedule):
        kernel = elementwise(trips, dynamic, rounds, **given)
        left.append(np.asarray(kernel(x, y, trips)))
        assert kernel.last_launch.hazards == []
    np.testing.assert_array_equal(left[0], left[1])
    np.testing.assert_allclose(left[1], np.exp(x) + y, rtol=1e-6)


def attention(trips: int, **schedule: Any) -> Any:
    """Products, vector work on them, products of its results, and a loop-carried sum."""
    @tilelang.jit(target="npuir", out_idx=[3])
    def make(trips: int) -> Any:
        @T.prim_func
        def main(Q: T.Tensor((ROWS, COLUMNS), "float16"), K: T.Tensor((trips * ROWS, COLUMNS), "float16"), n: T.int32,
                 O: T.Tensor((ROWS, COLUMNS), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                q = T.alloc_shared((ROWS, COLUMNS), "float16")
                k = T.alloc_shared((ROWS, COLUMNS), "float16")
                s = T.alloc_fragment((ROWS, ROWS), "float32")
                p = T.alloc_fragment((ROWS, ROWS), "float16")
                o = T.alloc_fragment((ROWS, COLUMNS), "float32")
                total = T.alloc_fragment((ROWS, COLUMNS), "float32")
                T.copy(Q, q)
                T.clear(total)
                for i in T.Pipelined(n, **schedule):
                    T.copy(K[i * ROWS, 0], k)
                    T.gemm(q, k, s, initC=True, b_transpose=True)
                    T.vexp(s, s)
                    T.copy(s, p)
                    T.gemm(p, k, o, initC=True)
                    T.vadd(total, o, total)
                T.copy(total, O)

        return main

    return make(trips)


@pytest.mark.parametrize("schedule", [
    {"stage": [0, 0, 0, 0, 1, 1]}, {"stage": [0, 0, 1, 1, 2, 3], "order": [4, 5, 2, 3, 1, 0], "num_stages": 2},
    {"stage": [-1, 0, 0, 0, 1, 1], "order": [-1, 2, 3, 4, 0, 1], "num_stages": 2}], ids=str)
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_both_cores_work_on_several_iterations(trips: int, schedule: dict[str, Any]) -> None:
    rng = np.random.default_rng(trips)
    q = rng.uniform(-0.2, 0.2, (ROWS, COLUMNS)).astype(np.float16)
    k = rng.uniform(-0.2, 0.2, (max(trips, 1) * ROWS, COLUMNS)).astype(np.float16)
    serial, placed = (attention(max(trips, 1), **given) for given in ({}, schedule))
    left = [np.asarray(kernel(q, k, trips)) for kernel in (serial, placed)]
    assert placed.last_launch.hazards == []
    np.testing.assert_array_equal(left[0], left[1])
    blocks = [k[i * ROWS:(i + 1) * ROWS].astype(np.float32) for i in range(trips)]
    expected = sum((np.exp(q.astype(np.float32) @ block.T) @ block for block in blocks), np.zeros((ROWS, COLUMNS), np.float32))
    np.testing.assert_allclose(left[1], expected, rtol=2e-2, atol=2e-2)


def test_stages_by_hand_hide_the_other_core() -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.uniform(-0.2, 0.2, (rows, COLUMNS)).astype(np.float16) for rows in (ROWS, 8 * ROWS))
    times = []
    for given in ({"num_stages": 1}, {"stage": [0, 0, 0, 0, 1, 1]}):
        kernel = attention(8, **given)
        kernel(q, k, 8)
        times.append(kernel.last_launch.cycles)
    assert times[1] < 0.7 * times[0]


def test_the_optimisation_is_reported_and_can_be_switched_off() -> None:
    kernel = elementwise(4, stage=[0, 0, 1, 1, 1])
    done = [each.text for each in kernel.explain().remarks if each.maker == "schedule-statements"]
    assert done[0] == "the statements of the loop run in the given order, on up to 2 iterations at a time"
    assert "x has 2 slots in UB, because several stages use it" in done
    without = {"tl.disable": ["schedule-statements"]}
    written, placed = (elementwise(4, switches=switches, stage=[0, 0, 1, 1, 1]).mlir() for switches in (without, {}))
    assert written == elementwise(4, num_stages=1).mlir() != placed


@T.macro
def loads(X: Any, Y: Any, row: Any, x: Any, y: Any) -> None:
    T.copy(X[row, 0], x)
    T.copy(Y[row, 0], y)


def test_statements_of_a_macro_count_one_by_one_and_scalars_do_not() -> None:
    @tilelang.jit(target="npuir", out_idx=[3])
    def make(stage: Sequence[int]) -> Any:
        @T.prim_func
        def main(X: T.Tensor((6 * ROWS, COLUMNS), "float32"), Y: T.Tensor((6 * ROWS, COLUMNS), "float32"),
                 I: T.Tensor((6,), "int32"), O: T.Tensor((6 * ROWS, COLUMNS), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                x = T.alloc_shared((ROWS, COLUMNS), "float32")
                y = T.alloc_shared((ROWS, COLUMNS), "float32")
                for i in T.Pipelined(6, stage=stage):
                    row = I[i] * ROWS
                    loads(X, Y, row, x, y)
                    if I[i] > 1:
                        T.vadd(x, y, y)
                    for a, b in T.Parallel(ROWS, COLUMNS):
                        y[a, b] = y[a, b] * 2.0
                    T.copy(y, O[row, 0])

        return main

    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 6 * ROWS, COLUMNS)).astype(np.float32)
    at = np.array([3, 1, 5, 0, 2, 4], np.int32)
    kernel = make([0, 0, 1, 2, 2])
    left = np.asarray(kernel(x, y, at))
    assert kernel.last_launch.hazards == []
    added = np.repeat(np.arange(6) > 1, ROWS)[:, None]
    np.testing.assert_array_equal(left, (y + np.where(added, x, np.float32(0))) * np.float32(2))


def in_place(read: int = 0, written: int = 0, **schedule: Any) -> Any:
    """Exponentials in place: iteration ``i`` reads the rows from ``i * ROWS + read`` on, and writes from ``written`` on."""
    @tilelang.jit(target="npuir")
    def make() -> Any:
        @T.prim_func
        def main(X: T.Tensor((6 * ROWS, COLUMNS), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                x = T.alloc_shared((ROWS, COLUMNS), "float32")
                for i in T.Pipelined(5, **schedule):
                    T.copy(X[i * ROWS + read, 0], x)
                    T.vexp(x, x)
                    T.copy(x, X[i * ROWS + written, 0])

        return main

    return make()


@pytest.mark.parametrize("read", [0, 1, ROWS], ids="reads {} rows ahead".format)
def test_rows_that_no_earlier_iteration_writes_may_be_loaded_ahead(read: int) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (6 * ROWS, COLUMNS)).astype(np.float32)
    expected = x.copy()
    for i in range(5):
        expected[i * ROWS:(i + 1) * ROWS] = np.exp(expected[i * ROWS + read:(i + 1) * ROWS + read])
    kernel = in_place(read=read, stage=[0, 1, 2])
    kernel(x)
    assert kernel.last_launch.hazards == []
    np.testing.assert_allclose(x, expected, rtol=1e-6)


@pytest.mark.parametrize("written", [1, ROWS])
def test_rows_that_an_earlier_iteration_writes_may_not_be_loaded_ahead(written: int) -> None:
    with pytest.raises(tilelang.TileError, match="X passes values from iteration to iteration") as reported:
        in_place(written=written, stage=[0, 1, 2])
    assert reported.value.code == "T206"


def test_rows_that_each_iteration_has_for_itself_keep_their_order_in_it() -> None:
    """The rows that an iteration stores to are those that it loaded before: the store may come any number of stages later,
    and not before the load."""
    def make(**schedule: Any) -> Any:
        @tilelang.jit(target="npuir")
        def made() -> Any:
            @T.prim_func
            def main(X: T.Tensor((5 * ROWS, COLUMNS), "float32"), Y: T.Tensor((5 * ROWS, COLUMNS), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((ROWS, COLUMNS), "float32")
                    y = T.alloc_shared((ROWS, COLUMNS), "float32")
                    for i in T.Pipelined(5, **schedule):
                        T.copy(X[i * ROWS, 0], x)
                        T.copy(Y[i * ROWS, 0], y)
                        T.copy(y, X[i * ROWS, 0])
                        T.copy(x, Y[i * ROWS, 0])

            return main

        return made()

    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 5 * ROWS, COLUMNS)).astype(np.float32)
    left = x.copy(), y.copy()
    make(stage=[0, 0, 2, 1], order=[1, 0, 3, 2])(*left)
    np.testing.assert_array_equal(left, (y, x))
    for order, tensor in (([3, 0, 1, 2], "X"), ([0, 2, 3, 1], "Y")):
        with pytest.raises(tilelang.TileError, match=f"{tensor} passes values from iteration to iteration") as reported:
            make(order=order)
        assert reported.value.code == "T206"


def test_a_schedule_that_changes_what_is_computed_is_refused_with_one_that_does_not() -> None:
    """The suggested schedule is valid."""
    for given, report in (({"order": [0, 1, 3, 2, 4]}, "access z after"), ({"stage": [1, 0, 0, 0, 0]}, "access x after"),
                        ({"stage": [0, 0, 1, 0, 1]}, "access z after")):
        with pytest.raises(tilelang.TileError) as reported:
            elementwise(4, **given)
        assert reported.value.code == "T206" and report in str(reported.value)
        found = re.search(r"stage=(\[.*?\]), order=(\[.*?\])", str(reported.value))
        assert found is not None
        stage, order = ([int(number) for number in re.findall(r"\d+", text)] for text in found.groups())
        x, y = np.random.default_rng(0).uniform(-1, 1, (2, 4 * ROWS, COLUMNS)).astype(np.float32)
        np.testing.assert_allclose(np.asarray(elementwise(4, stage=stage, order=order)(x, y, 4)), np.exp(x) + y, rtol=1e-6)


def test_what_goes_from_iteration_to_iteration_keeps_its_order() -> None:
    """A running sum that one statement adds to and another stores: the store may be at most one iteration late, before the next
    addition."""
    def make(**schedule: Any) -> Any:
        @tilelang.jit(target="npuir", out_idx=[1])
        def made() -> Any:
            @T.prim_func
            def main(X: T.Tensor((5 * ROWS, COLUMNS), "float32"), O: T.Tensor((5 * ROWS, COLUMNS), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((ROWS, COLUMNS), "float32")
                    total = T.alloc_shared((ROWS, COLUMNS), "float32")
                    T.clear(total)
                    for i in T.Pipelined(5, **schedule):
                        T.copy(X[i * ROWS, 0], x)
                        T.vadd(total, x, total)
                        T.copy(total, O[i * ROWS, 0])

            return main

        return made()

    x = np.random.default_rng(0).uniform(-1, 1, (5, ROWS, COLUMNS)).astype(np.float32)
    kernel = make(stage=[0, 1, 2], order=[0, 2, 1])
    left = np.asarray(kernel(x.reshape(-1, COLUMNS)))
    assert kernel.last_launch.hazards == []
    np.testing.assert_array_equal(left.reshape(x.shape), np.cumsum(x, axis=0, dtype=np.float32))
    for given in ({"stage": [0, 1, 2]}, {"stage": [0, 1, 3], "order": [0, 2, 1]}):
        with pytest.raises(tilelang.TileError, match="total passes values from iteration to iteration") as reported:
            make(**given)
        assert reported.value.code == "T206"


@pytest.mark.parametrize(("given", "report"), [
    ({"order": [0, 1, 2]}, "order has 3 numbers for 5 statements"),
    ({"stage": [0] * 6}, "stage has 6 numbers for 5 statements"),
    ({"order": [0, 1, 2, 3, 3]}, "is not a permutation"), ({"order": [0, 1, 2, 3, 9]}, "is not a permutation"),
    ({"stage": [0, 0, 1, 1, -2]}, "is not a schedule"), ({"stage": 1}, "is not a schedule"),
    ({"group": [[0], [1, 2]], "stage": [0, 1]}, "not name each"), ({"group": [[0, 1, 2, 3, 4]]}, "without order and stage"),
    ({"group": 1, "stage": [0]}, "is not a schedule"),
    ({"order": [-1, 0, 1, 2, 3], "stage": [0] * 5}, "has order -1 and stage 0"),
])
def test_numbers_that_are_no_schedule_of_the_body(given: dict[str, Any], report: str) -> None:
    with pytest.raises(tilelang.TileError) as reported:
        elementwise(4, **given)
    assert reported.value.code == "T150" and report in str(reported.value)


def test_only_a_load_can_be_left_to_the_compiler() -> None:
    with pytest.raises(tilelang.TileError, match="this is no load") as reported:
        elementwise(4, stage=[0, 0, -1, 0, 0])
    assert reported.value.code == "T206"
