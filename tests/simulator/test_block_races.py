"""Bytes of GM that two blocks are at odds over, and those that they may share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.sanitizer.happens_before import Hazard

ROWS, N = 4, 32
AUTO = {"tl.ascend_auto_sync": True}


def _hazards(function: Any, *arrays: np.ndarray[Any, Any], outputs: Any = None, **settings: Any) -> list[Hazard]:
    kernel = tilelang.compile(function, out_idx=outputs, target="ascendc", pass_configs=AUTO, **settings)
    kernel(*arrays)
    return kernel.last_launch.hazards


def rows(first: int, step: int, *, atomic: bool = False, by_block: bool = True) -> Any:
    """Block b writes rows from ``first + b * step`` on, with its own number or with 1."""

    @T.prim_func
    def main(Y: T.Tensor((ROWS * 8, N), "float32")):
        with T.Kernel(ROWS, is_npu=True) as (b, _):
            y = T.alloc_ub((ROWS, N), "float32")
            T.tile.fill(y, T.Cast("float32", b) if by_block else 1.0)
            if atomic:
                T.tile.atomic_add(Y[first + b * step, 0], y)
            else:
                T.copy(y, Y[first + b * step, 0])

    return main


def test_own_parts(rng: np.random.Generator) -> None:
    assert _hazards(rows(0, ROWS), np.zeros((ROWS * 8, N), np.float32)) == []


def test_parts_that_overlap() -> None:
    (hazard,) = _hazards(rows(0, ROWS - 1), np.zeros((ROWS * 8, N), np.float32))
    assert (hazard.kind, hazard.memory, hazard.start, hazard.end) == ("WAW", "GM", 3 * N * 4, 4 * N * 4)
    assert hazard.first.core.endswith("of block 0")
    assert hazard.second.core.endswith("of block 1")
    assert hazard.first.location.file == __file__
    assert "between the blocks" in str(hazard)


def test_columns_that_overlap() -> None:
    """The report has the bytes of one row that both blocks write, not the bytes of other columns between two rows."""
    @T.prim_func
    def main(Y: T.Tensor((ROWS, N), "float32")):
        with T.Kernel(2, is_npu=True) as (b, _):
            y = T.alloc_ub((ROWS - 1, 16), "float32")
            T.tile.fill(y, T.Cast("float32", b))
            T.copy(y, Y[1, b * 8])

    (hazard,) = _hazards(main, np.zeros((ROWS, N), np.float32))
    assert (hazard.kind, hazard.memory, hazard.start, hazard.end) == ("WAW", "GM", (N + 8) * 4, (N + 16) * 4)


def read_back(*, writes: bool) -> Any:
    """All blocks write the same values to the same bytes, and read them."""

    @T.prim_func
    def main(W: T.Tensor((ROWS, N), "float32"), Y: T.Tensor((ROWS * 4, N), "float32")):
        with T.Kernel(4, is_npu=True) as (b, _):
            w = T.alloc_ub((ROWS, N), "float32")
            y = T.alloc_ub((ROWS, N), "float32")
            if writes or b == 0:
                T.tile.fill(w, 2.0)
                T.barrier_all()
                T.copy(w, W)
            T.barrier_all()
            T.copy(W, y)
            T.barrier_all()
            T.copy(y, Y[b * ROWS, 0])

    return main


@pytest.mark.parametrize("function", [rows(0, 1, atomic=True), rows(0, 1, by_block=False)], ids=["atomic", "same values"])
def test_what_may_be_shared(function: Any) -> None:
    assert _hazards(function, np.zeros((ROWS * 8, N), np.float32)) == []


@pytest.mark.parametrize(("writes", "kinds"), [(True, []), (False, ["RAW"])], ids=["its own", "another block's"])
def test_reading_the_same_value(writes: bool, kinds: list[str]) -> None:
    kernel = tilelang.compile(read_back(writes=writes), target="ascendc")
    kernel(np.zeros((ROWS, N), np.float32), np.zeros((ROWS * 4, N), np.float32))
    assert [hazard.kind for hazard in kernel.last_launch.hazards] == kinds


def test_columns_of_one_matrix_are_apart() -> None:
    """The stretches from first to last byte overlap, the elements do not."""

    @T.prim_func
    def main(X: T.Tensor((8, 4 * N), "float16"), Y: T.Tensor((8, 4 * N), "float16")):
        with T.Kernel(4, is_npu=True) as (b, _):
            x = T.alloc_ub((8, N), "float16")
            T.copy(X[0, b * N], x)
            T.copy(x, Y[0, b * N])

    assert _hazards(main, np.ones((8, 4 * N), np.float16), np.zeros((8, 4 * N), np.float16)) == []
    both = np.ones((8, 4 * N), np.float16)
    assert _hazards(main, both, both) == []  # in place: each block its own columns


def shifted(distance: int) -> Any:
    @T.prim_func
    def main(X: T.Tensor((8, N), "float32"), Y: T.Tensor((8, N), "float32")):
        with T.Kernel(6, is_npu=True) as (b, _):
            x = T.alloc_ub((1, N), "float32")
            T.copy(X[b + distance, 0], x)
            T.copy(x, Y[b, 0])

    return main


@pytest.mark.parametrize(("distance", "alias", "kinds"), [(0, True, []), (1, True, ["RAW"]), (1, False, [])])
def test_reading_what_another_block_writes(distance: int, alias: bool, kinds: list[str]) -> None:
    """One array as both arguments is the same bytes."""
    x = np.arange(8 * N, dtype=np.float32).reshape(8, N)
    found = _hazards(shifted(distance), x, x if alias else np.zeros_like(x))
    assert [hazard.kind for hazard in found] == kinds
    if kinds:
        assert (found[0].first.op, found[0].second.op) == ("store", "load")


def test_random_stripes_against_a_set_of_bytes(rng: np.random.Generator) -> None:
    """The races between blocks that access random rectangles, compared byte by byte."""
    for _ in range(12):
        height, width = (int(value) for value in rng.integers(1, 4, 2))
        down, right = (int(value) for value in rng.integers(0, 5, 2))

        @T.prim_func
        def main(Y: T.Tensor((24, 24), "float32")):
            with T.Kernel(4, is_npu=True) as (b, _):
                y = T.alloc_ub((height, width * 8), "float32")  # noqa: B023  (compiled in this turn)
                T.tile.fill(y, T.Cast("float32", b))
                T.copy(y, Y[b * down:b * down + height, b * right:b * right + width * 2])  # noqa: B023  (compiled in this turn)

        cells = [{(b * down + i, b * right + j) for i in range(height) for j in range(width * 2)} for b in range(4)]
        meet = any(cells[a] & cells[b] for a in range(4) for b in range(a))
        try:
            found = _hazards(main, np.zeros((24, 24), np.float32))
        except tilelang.TileError:
            continue
        assert bool(found) == meet, (height, width, down, right)


def test_a_block_that_meets_itself_where_the_first_does_not() -> None:
    """Without its waits, only block 2 reads bytes that it wrote itself: equal op streams, different addresses."""

    @T.prim_func
    def main(X: T.Tensor((8, N), "float32"), at: T.Tensor((4,), "int32")):
        with T.Kernel(2, is_npu=True) as (b, _):
            x = T.alloc_ub((1, N), "float32")
            y = T.alloc_ub((1, N), "float32")
            T.tile.fill(x, 1.0)
            T.barrier_all()
            T.copy(x, X[b * 4, 0])
            T.copy(X[at[b], 0], y)
            T.barrier_all()

    kernel = tilelang.compile(main, target="ascendc")
    x = np.zeros((8, N), np.float32)
    for places, kinds in (([1, 5, 0, 0], []), ([1, 4, 0, 0], ["RAW"])):
        kernel(x, np.array(places, np.int32))
        assert [hazard.kind for hazard in kernel.last_launch.hazards] == kinds
