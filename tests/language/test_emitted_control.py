"""Loops and branches that functions of the language emit: their results compared with NumPy, their bounds and locations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.dialects.text import location_of
from tilelang_npu.frontend import trace
from tilelang_npu.language.emitted_control import counted_loop, guarded
from tilelang_npu.linear import Interval
from tilelang_npu.traced.builder import Builder

SIZE = 16


def kernel_of(emit: Callable[[Builder, Any, Any], None]) -> Any:
    """A kernel in which ``emit`` emits statements on a tile, which holds A's elements, and a number ``n``."""

    def statements(tile: Any, n: Any) -> None:
        emit(Builder.running("statements"), tile, n)

    @T.prim_func
    def main(A: T.Tensor((SIZE,), "int32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (block, _):
            tile = T.alloc_shared((SIZE,), "int32")
            T.copy(A, tile)
            statements(tile, n)
            T.copy(tile, A)

    return main


def run(emit: Callable[[Builder, Any, Any], None], n: int = 0, first: Any = None) -> list[int]:
    """The tile's elements after the statements; before them they are ``first``, or -1."""
    made = np.full(SIZE, -1, np.int32) if first is None else np.array(first, np.int32)
    tilelang.compile(kernel_of(emit), target="npuir")(made, n)
    return made.tolist()


def ops_of(emit: Callable[[Builder, Any, Any], None], name: str) -> list[Any]:
    module = trace(kernel_of(emit), dialect="npuir").module
    module.verify()
    return [op for op in module.walk() if op.name == name]


# -- loops -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 5, SIZE])
@pytest.mark.parametrize("at_run_time", [False, True])
def test_a_loop_counts_from_zero_to_its_size(size: int, at_run_time: bool) -> None:
    def emit(builder: Builder, tile: Any, n: Any) -> None:
        with counted_loop(builder, n if at_run_time else size) as index:
            tile[index].store(index * index)

    assert run(emit, size) == [*(np.arange(size) ** 2).tolist(), *[-1] * (SIZE - size)]


@pytest.mark.parametrize("n", [0, 1, 4])
def test_the_size_of_an_inner_loop_may_be_the_index_of_the_outer_one(n: int) -> None:
    def emit(builder: Builder, tile: Any, n: Any) -> None:
        with counted_loop(builder, n) as row, counted_loop(builder, row) as column:
            tile[row * 4 + column].store(row * 10 + column)

    expected = np.full((4, 4), -1)
    for row in range(n):
        for column in range(row):
            expected[row, column] = 10 * row + column
    assert run(emit, n) == expected.reshape(-1).tolist()


def test_what_an_iteration_writes_the_next_one_reads() -> None:
    def emit(builder: Builder, tile: Any, n: Any) -> None:
        with counted_loop(builder, SIZE - 1) as index:
            tile[index + 1].store(tile[index].load() + tile[index + 1].load())
        tile[0].store(tile[SIZE - 1].load())

    first = np.arange(3, 3 + SIZE)
    expected = np.cumsum(first)
    expected[0] = expected[-1]
    assert run(emit, first=first) == expected.tolist()


def test_an_element_loaded_before_a_loop_may_differ_from_the_one_in_it() -> None:
    def emit(builder: Builder, tile: Any, n: Any) -> None:
        before = tile[0].load()
        with counted_loop(builder, 5) as index:
            changed = tile[0].load() - before  # is not folded to zero
            tile[index + 1].store(changed)
            tile[0].store(tile[0].load() + 2)

    assert run(emit)[:7] == [9, 0, 2, 4, 6, 8, -1]


def test_the_bounds_of_the_index() -> None:
    found: list[Interval] = []

    def emit(builder: Builder, tile: Any, n: Any) -> None:
        with counted_loop(builder, 5) as outer:
            found.append(outer.bounds)
            with counted_loop(builder, outer + 2) as inner:
                found.append(inner.bounds)

    loops = ops_of(emit, "scf.for")
    assert found == [Interval(0, 4), Interval(0, 5)]
    assert len(loops) == 2
    assert all([bound.owner.value.value.data for bound in (loop.lb, loop.step)] == [0, 1] for loop in loops)


# -- branches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [-3, 0, 1, 2, 7])
def test_a_branch_runs_where_its_condition_is_true(n: int) -> None:
    def emit(builder: Builder, tile: Any, n: Any) -> None:
        with counted_loop(builder, SIZE) as index, guarded(builder, builder.compare("lt", index, n)):
            tile[index].store(1)
        with guarded(builder, n):  # an integer is true if it is not zero
            tile[SIZE - 1].store(2)
        tile[SIZE - 2].store(3)

    expected = [1 if place < n else -1 for place in range(SIZE - 2)]
    assert run(emit, n) == [*expected, 3, 2 if n else -1]


@pytest.mark.parametrize("value", [True, False])
def test_a_branch_on_a_number_of_python(value: bool) -> None:
    def emit(builder: Builder, tile: Any, n: Any) -> None:
        with guarded(builder, value):
            tile[3].store(8)

    assert run(emit)[3] == (8 if value else -1)


@pytest.mark.parametrize(("n", "found"), [(0, 1), (5, 6), (SIZE - 1, SIZE), (SIZE, -1), (-1, -1)])
def test_a_branch_around_a_loop_and_in_a_branch(n: int, found: int) -> None:
    def emit(builder: Builder, tile: Any, n: Any) -> None:
        low, high = builder.compare("ge", n, 0), builder.compare("lt", n, SIZE)
        with guarded(builder, low), guarded(builder, high), counted_loop(builder, n + 1) as index:
            tile[index].store(index + 1)

    assert max(run(emit, n)) == found


# -- the position of emitted ops ----------------------------------------------------------------------------------------


def test_a_loop_and_a_branch_have_the_location_of_the_call() -> None:
    lines: list[int] = []

    def emit(builder: Builder, tile: Any, n: Any) -> None:
        call = builder.location
        lines.append(call.line)
        with counted_loop(builder, 5) as index, guarded(builder, builder.compare("lt", index, n)):
            builder.location = replace(call, line=call.line + 1000)
            tile[index].store(1)
        builder.location = call

    for name in ("scf.for", "scf.if"):
        (op,) = ops_of(emit, name)
        location = location_of(op)
        assert location is not None
        assert location.line == lines[0]
    assert {location_of(op).line for op in ops_of(emit, "scf.yield")} == set(lines)


@pytest.mark.parametrize("name", ["scf.for", "scf.if"])
def test_a_body_that_fails_leaves_no_state(name: str) -> None:
    caught: list[str] = []

    def emit(builder: Builder, tile: Any, n: Any) -> None:
        block, path = builder.block, builder.path
        try:
            with counted_loop(builder, 5) if name == "scf.for" else guarded(builder, n):
                tile[1].store(1)
                raise KeyError("in the body")
        except KeyError:
            caught.append(name)
        assert builder.block is block
        assert builder.path == path
        tile[0].store(7)

    assert ops_of(emit, name) == []
    assert run(emit) == [7, *[-1] * (SIZE - 1)]
    assert caught == [name, name]  # of the trace and of the compilation
