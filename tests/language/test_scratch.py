"""Scratch memory that the author passes (``tmp=``): errors, and that its contents are undefined after the call.

The values of operations with scratch are tested in forms_ascendc.txt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError

AUTOMATIC = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}


@pytest.mark.parametrize(("tmp", "code", "words"), [
    ("3", "T110", "tmp must be a buffer"), ("b", "T111", "has 2 axes"), ("V", "T201", "is in GM"),
    ("flat[4:256]", "T111", "begins at byte 16, which is not a multiple of 32"),
    ("flat[n:n + 64]", "T111", "begins at an element that is not constant"),
    ("line", "T112", "shares elements with an operand"), ("l1flat", "T201", "is in L1"),
])
def test_refused(kernel: Any, tmp: str, code: str, words: str) -> None:
    call = f"T.tile.sigmoid(line, line, tmp={tmp})"
    with pytest.raises(TileError, match=words) as caught:
        kernel(f'l1flat = T.alloc_L1((64,), "float16")\n{call}', "ascendc")
    assert caught.value.code == code


def test_it_is_a_keyword(kernel: Any) -> None:
    with pytest.raises(TileError, match="too many positional arguments"):
        kernel("T.tile.sin(line, line, flat)", "ascendc")


def kernel_that_reads(start: int, rounds: int) -> Any:
    """A kernel that fills a buffer before the loop, uses elements 8 to 72 of it as scratch memory, and stores 64 elements."""
    @T.prim_func
    def main(X: T.Tensor((4, 40), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((4, 40), "float32")
            y = T.alloc_ub((4,), "float32")
            t = T.alloc_ub((136,), "float32")
            T.copy(X, x)
            T.tile.fill(t, 2.0)
            for _ in T.serial(rounds):
                T.copy(t[start:start + 64], Y)
                T.reduce_sum(x, y, dim=-1, tmp=t[8:72])

    return main


@pytest.mark.filterwarnings("ignore:stale")
@pytest.mark.parametrize(("start", "rounds", "count"), [(72, 2, None), (16, 1, None), (16, 2, 56), (64, 2, 8), (0, 3, 56)])
def test_a_later_read_is_one_of_uninitialised_memory(start: int, rounds: int, count: int | None) -> None:
    """``count`` is the number of undefined elements that the kernel stores."""
    kernel = tilelang.compile(kernel_that_reads(start, rounds), target="ascendc", pass_configs=AUTOMATIC)
    kernel(np.ones((4, 40), np.float32), np.zeros(64, np.float32))
    hazards = kernel.last_launch.hazards
    assert [(hazard.code, hazard.buffer) for hazard in hazards] == ([] if count is None else [("S221", "t")])
    assert [hazard.end - hazard.start for hazard in hazards] == ([] if count is None else [4 * count])


def test_a_write_makes_it_defined_again() -> None:
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((64,), "float32")
            t = T.alloc_ub((64,), "float32")
            T.copy(X, x)
            for _ in T.serial(3):
                T.tile.sin(x, x, tmp=t)
                T.tile.mul(t, x, 2.0)
                T.copy(t, Y)

    kernel, y = tilelang.compile(main, target="ascendc", pass_configs=AUTOMATIC), np.zeros(64, np.float32)
    x = np.linspace(0, 1, 64, dtype=np.float32)
    kernel(x, y)
    assert kernel.last_launch.hazards == []
    np.testing.assert_allclose(y, 2 * np.sin(np.sin(np.sin(x))), rtol=1e-5)
    assert kernel.mlir().count('"scratch" tmps(') == 1


def test_its_use_is_ordered_and_its_race_is_found() -> None:
    """A load into the scratch memory without a wait for the operation that uses it."""
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((64,), "float32")
            t = T.alloc_ub((64,), "float32")
            T.copy(X, x)
            T.barrier_all()
            T.tile.sin(x, x, tmp=t)
            T.copy(X, t)
            T.barrier_all()
            T.copy(t, Y)

    y = np.zeros(64, np.float32)
    by_hand = tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": False})
    by_hand(np.ones(64, np.float32), y)
    assert {hazard.code for hazard in by_hand.last_launch.hazards} & {"S202", "S203", "S201"}
    automatic = tilelang.compile(main, target="ascendc", pass_configs=AUTOMATIC)
    automatic(np.ones(64, np.float32), y)
    assert automatic.last_launch.hazards == []


def test_unread_scratch_takes_no_bytes() -> None:
    """Two buffers that fill UB, and scratch memory of the size of UB."""
    @T.prim_func
    def main(X: T.Tensor((64, 128), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((64, 128), "float32")
            y = T.alloc_ub((64,), "float32")
            t = T.alloc_ub((190 * 1024,), "uint8")
            T.copy(X, x)
            T.reduce_sum(x, y, dim=-1, tmp=t)
            T.copy(y, Y)

    x, y = np.arange(64 * 128, dtype=np.float32).reshape(64, 128) % 7, np.zeros(64, np.float32)
    kernel = tilelang.compile(main, target="ascendc", pass_configs=AUTOMATIC)
    kernel(x, y)
    np.testing.assert_array_equal(y, x.sum(1))
    assert '"scratch" tmps(' not in kernel.mlir()


def test_the_interpreter_leaves_poison() -> None:
    kernel = tilelang.compile(kernel_that_reads(16, 2), target="ascendc", pass_configs=AUTOMATIC)
    y = np.zeros(64, np.float32)
    kernel.interpret(np.ones((4, 40), np.float32), y)
    assert np.isnan(y[:56]).all()
    assert (y[56:] == 2).all()
