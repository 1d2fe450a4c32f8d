"""Starts of slices that a kernel reads from a tensor: outside of the tensor they are an error, and what a loop, the block's
index or an argument adds to them may go past the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Block

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen.data_starts import data_start

ROWS, WIDTH, WANTED = 16, 64, 4


@tilelang.jit(out_idx=[-1], target="npuir")
def dropped_axis(step: int) -> object:
    @T.prim_func
    def dropped_axis(X: T.Tensor((ROWS, WIDTH), "float32"), I: T.Tensor((WANTED,), "int32"),
                     Y: T.Tensor((WANTED, WIDTH), "float32")) -> None:
        with T.Kernel(WANTED, is_npu=True) as (block, _):
            places = T.alloc_shared((8,), "int32")
            x = T.alloc_shared((WIDTH,), "float32")
            T.copy(I[0:WANTED], places[0:WANTED])
            T.copy(X[places[block] + step, :], x)
            T.copy(x, Y[block, :])

    return dropped_axis


@tilelang.jit(out_idx=[-1], target="npuir")
def clamped() -> object:
    @T.prim_func
    def clamped(X: T.Tensor((ROWS, WIDTH), "float32"), I: T.Tensor((WANTED,), "int32"),
                Y: T.Tensor((WANTED, WIDTH), "float32")) -> None:
        with T.Kernel(WANTED, is_npu=True) as (block, _):
            places = T.alloc_shared((8,), "int32")
            x = T.alloc_shared((WIDTH,), "float32")
            T.copy(I[0:WANTED], places[0:WANTED])
            T.copy(X[T.min(places[block], ROWS - 1), :], x)
            T.copy(x, Y[block, :])

    return clamped


@tilelang.jit(out_idx=[-1], target="npuir")
def segments(rounds: int) -> object:
    """Sums ``rounds`` tiles of 8 rows from a row on, also where the last tiles are past the end."""
    @T.prim_func
    def segments(X: T.Tensor((ROWS, WIDTH), "float32"), I: T.Tensor((WANTED,), "int32"),
                 Y: T.Tensor((WANTED, WIDTH), "float32")) -> None:
        with T.Kernel(WANTED, is_npu=True) as (block, _):
            places = T.alloc_shared((8,), "int32")
            x = T.alloc_shared((8, WIDTH), "float32")
            total = T.alloc_shared((1, WIDTH), "float32")
            T.clear(total)
            T.copy(I[0:WANTED], places[0:WANTED])
            for t in range(rounds):
                T.copy(X[places[block] + t * 8, 0], x)
                T.reduce_sum(x, total, dim=0, clear=False)
            T.copy(total, Y[block, 0])

    return segments


@tilelang.jit(target="npuir")
def scatter() -> object:
    @T.prim_func
    def scatter(X: T.Tensor((WANTED, WIDTH), "float32"), I: T.Tensor((WANTED,), "int32"),
                Y: T.Tensor((ROWS, WIDTH), "float32")) -> None:
        with T.Kernel(WANTED, is_npu=True) as (block, _):
            places = T.alloc_shared((8,), "int32")
            x = T.alloc_shared((1, WIDTH), "float32")
            T.copy(I[0:WANTED], places[0:WANTED])
            T.copy(X[block, 0], x)
            row = places[block]
            T.copy(x, Y[row, 0])

    return scatter


@tilelang.jit(out_idx=[-1], target="npuir")
def argument() -> object:
    @T.prim_func
    def argument(X: T.Tensor((ROWS, WIDTH), "float32"), first: T.int32, Y: T.Tensor((1, WIDTH), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((1, WIDTH), "float32")
            T.copy(X[first, 0], x)
            T.copy(x, Y)

    return argument


@pytest.fixture
def x() -> np.ndarray:
    return np.arange(1, ROWS * WIDTH + 1, dtype=np.float32).reshape(ROWS, WIDTH)


def _places(last: int) -> np.ndarray:
    return np.array([0, 3, last, 1], np.int32)


def _is_refused(call: Callable[[], object], tensor: str, start: int, block: int) -> None:
    with pytest.raises(TileError) as caught:
        call()
    assert caught.value.code == "T502"
    assert caught.value.message == f"T.copy starts at {start} on axis 0 of {tensor}, which has 0..{ROWS - 1} in block {block}"


@pytest.mark.parametrize("start", [ROWS - 1, ROWS, 99])
def test_an_index_is_inside(start: int, x: np.ndarray) -> None:
    calls = [(lambda: dropped_axis(0)(x, _places(start)), "X", 2), (lambda: dropped_axis(1)(x, _places(start - 1)), "X", 2),
             (lambda: scatter()(x[:WANTED], _places(start), x.copy()), "Y", 2)]
    for call, tensor, block in calls:
        if start < ROWS:
            call()
        else:
            _is_refused(call, tensor, start, block)


@pytest.mark.parametrize("start", [0, ROWS - 1, ROWS, 99])
def test_a_start_from_an_argument_is_clipped(start: int, x: np.ndarray) -> None:
    expected = x[start:start + 1] if start < ROWS else np.zeros((1, WIDTH), np.float32)
    for run in (argument(), argument().interpret):
        np.testing.assert_array_equal(run(x, start), expected)


def test_each_value_of_an_index_is_visited_once() -> None:
    """The operands of 40 remainders are each other's remainders; visited anew for each use, they would be 2 to the 40."""
    index = IndexType()
    number = arith.ConstantOp(IntegerAttr(0, index)).result
    place = memref.LoadOp.get(Block(arg_types=[MemRefType(index, [8])]).args[0], [number]).res
    for _ in range(40):
        place = arith.RemSIOp(place, place).result
    part = data_start(place)
    assert part is not None
    assert part.terms == ((place, 1),)
    assert part.whole


def test_the_author_clamps_an_index(x: np.ndarray) -> None:
    np.testing.assert_array_equal(clamped()(x, _places(99)), x[[0, 3, ROWS - 1, 1]])


@pytest.mark.parametrize("start", [9, ROWS, ROWS + 1])
def test_a_loop_goes_past_the_end_from_a_start_inside(start: int, x: np.ndarray) -> None:
    """A segment without rows may start at the end of the tensor."""
    if start > ROWS:
        _is_refused(lambda: segments(4)(x, _places(start)), "X", start, 2)
    else:
        np.testing.assert_array_equal(segments(4)(x, _places(start)), [x[first:].sum(0) for first in _places(start)])


@pytest.mark.parametrize("start", [ROWS, 99])
def test_the_interpreter_refuses_it_too(start: int, x: np.ndarray) -> None:
    with pytest.raises(TileError, match=rf"T502.*a tile starts at {start} on axis 0 of Y .*which has 0\.\.15"):
        scatter().interpret(x[:WANTED], _places(start), x.copy())


@tilelang.jit(out_idx=[-1], target="npuir")
def padded_groups(blocks: int) -> object:
    """Rows of groups whose places in a padded order are known: block * 4 - padded[g] + offsets[g]."""
    @T.prim_func
    def padded_groups(X: T.Tensor((ROWS, WIDTH), "float32"), G: T.Tensor((blocks,), "int32"), P: T.Tensor((3,), "int32"),
                      F: T.Tensor((3,), "int32"), Y: T.Tensor((blocks * 4, WIDTH), "float32")) -> None:
        with T.Kernel(blocks, is_npu=True) as (block, _):
            x = T.alloc_shared((4, WIDTH), "float32")
            group = G[block]
            first = block * 4 - P[group] + F[group]
            T.copy(X[first:first + 4, 0:WIDTH], x)
            T.copy(x, Y[block * 4, 0])

    return padded_groups


def test_a_number_that_is_subtracted_is_no_place_by_itself(x: np.ndarray) -> None:
    groups, padded, offsets = (np.array(values, np.int32) for values in ([0, 0, 1, 2, 2], [0, 8, 12], [0, 5, 8]))
    starts = np.arange(5) * 4 - padded[groups] + offsets[groups]
    rows = starts[:, None] + np.arange(4)
    expected = np.where(rows[..., None] < ROWS, x[np.minimum(rows, ROWS - 1)], 0).reshape(-1, WIDTH)
    for run in (padded_groups(5), padded_groups(5).interpret):
        np.testing.assert_array_equal(run(x, groups, padded, offsets), expected)
    with pytest.raises(TileError) as caught:  # the whole start is before the tensor
        padded_groups(5)(x, groups, padded + 9, offsets)
    assert caught.value.code == "T502"
    assert "on axis 0 of X" in caught.value.message
