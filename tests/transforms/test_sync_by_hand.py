"""A kernel whose author orders its statements by hand: inside a statement that becomes several ops the compiler does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

SIZE = 64


def by_hand(statement: Callable[..., None], barriers: bool) -> Any:
    @tilelang.jit(target="ascendc")
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((SIZE,), "float32"), B: T.Tensor((SIZE,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((SIZE,), "float32")
                b = T.alloc_ub((SIZE,), "float32")
                with T.Scope("V"):
                    T.copy(A, a)
                    T.barrier_all()
                    T.tile.fill(b, 2.0)
                    if barriers:
                        T.pipe_barrier("v")
                    statement(b, a)
                    T.barrier_all()
                    T.copy(b, B)

        return main

    return made()


@T.macro
def silu(b: Any, a: Any) -> None:
    T.tile.silu(b, a)


@T.macro
def multiply_add(b: Any, a: Any) -> None:
    T.tile.mul_add_dst(b, a, a)


@T.macro
def sigmoid(b: Any, a: Any) -> None:
    T.tile.sigmoid(b, a)


MEANINGS = [(silu, lambda a: a / (1 + np.exp(-a))), (multiply_add, lambda a: 2 + a * a),
            (sigmoid, lambda a: 1 / (1 + np.exp(-a)))]


@pytest.mark.parametrize(("statement", "meaning"), MEANINGS, ids=["silu", "mul_add_dst", "sigmoid"])
@pytest.mark.parametrize("schedule", [None, "late", "early", "random:7"])
def test_a_statement_is_in_order_in_itself(statement: Callable[..., None], meaning: Callable[[Any], Any],
                                           schedule: str | None) -> None:
    a = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
    b = np.zeros_like(a)
    kernel = by_hand(statement, barriers=True)
    recorded = kernel.program.run([a, b], blocks=1, schedule=schedule)
    np.testing.assert_allclose(b, meaning(a), rtol=1e-5, atol=1e-6)
    if schedule is None:
        from tilelang_npu.simulator import Launch

        assert Launch(recorded).hazards == []


@T.macro
def added(b: Any, a: Any) -> None:
    T.tile.add(b, b, a)


def test_synchronisation_between_statements_is_the_authors() -> None:
    kernel = by_hand(added, barriers=False)
    a = np.ones(SIZE, np.float32)
    kernel(a, a.copy())
    (hazard, *_) = kernel.last_launch.hazards
    assert hazard.missing.startswith("pipe_barrier[PIPE_V]")
    assert hazard.first.location.line != hazard.second.location.line


def copied_by_hand(rows: int, columns: int, tile: tuple[int, int], through: str) -> Any:
    """Tile after tile of a tensor through one of two slots, to MTE3 at once or by way of the Vector pipe."""
    down, across = -(-rows // tile[0]), -(-columns // tile[1])

    @tilelang.jit(target="ascendc")
    def made(rows: int, columns: int, lines: int, width: int, turns: int, across: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((turns * lines, width), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((2, lines, width), "float32")
                b = T.alloc_ub((2, lines, width), "float32")
                with T.Scope("V"):
                    for slot in range(2):
                        T.set_flag(through, "mte2", slot)
                        T.set_flag("mte3", "v", slot)
                    for i in T.serial(turns):
                        slot = i % 2
                        T.wait_flag(through, "mte2", slot)
                        T.copy(A[i // across * lines, i % across * width], a[slot, :, :])
                        T.set_flag("mte2", through, slot)
                        T.wait_flag("mte2", through, slot)
                        if through == "v":
                            T.wait_flag("mte3", "v", slot)
                            T.tile.add(b[slot, :, :], a[slot, :, :], 1.0)
                            T.set_flag("v", "mte2", slot)
                            T.set_flag("v", "mte3", slot)
                            T.wait_flag("v", "mte3", slot)
                            T.copy(b[slot, :, :], B[i * lines, 0])
                            T.set_flag("mte3", "v", slot)
                        else:
                            T.copy(a[slot, :, :], B[i * lines, 0])
                            T.set_flag("mte3", "mte2", slot)
                    for slot in range(2):
                        T.wait_flag(through, "mte2", slot)
                        T.wait_flag("mte3", "v", slot)

        return main

    return made(rows, columns, *tile, down * across, across)


@pytest.mark.parametrize("through", ["v", "mte3"])
@pytest.mark.parametrize(("rows", "columns"), [(37, 64), (16, 200), (37, 200)], ids=["rows", "columns", "both"])
@pytest.mark.parametrize("schedule", [None, "late", "early", "random:7"])
def test_the_fill_of_a_tile_cut_short_is_where_its_load_is(rows: int, columns: int, through: str, schedule: str | None) -> None:
    from tilelang_npu.simulator import Launch

    a = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    down, across = -(-rows // 8), -(-columns // 64)
    whole = np.zeros((down * 8, across * 64), np.float32)
    whole[:rows, :columns] = a
    expected = whole.reshape(down, 8, across, 64).swapaxes(1, 2).reshape(-1, 64) + (through == "v")
    b = np.full_like(expected, np.nan)
    recorded = copied_by_hand(rows, columns, (8, 64), through).program.run([a, b], blocks=1, schedule=schedule)
    np.testing.assert_array_equal(b, expected)
    if schedule is None:
        assert Launch(recorded).hazards == []
