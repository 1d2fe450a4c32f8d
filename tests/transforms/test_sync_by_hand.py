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


def test_what_stands_between_statements_is_the_authors() -> None:
    kernel = by_hand(added, barriers=False)
    a = np.ones(SIZE, np.float32)
    kernel(a, a.copy())
    (hazard, *_) = kernel.last_launch.hazards
    assert hazard.missing.startswith("pipe_barrier[PIPE_V]")
    assert hazard.first.location.line != hazard.second.location.line
