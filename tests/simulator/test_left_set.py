"""An event that a launch leaves set is found by the next one on the same cores, as on the chip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import language as T
from tilelang_npu.simulator.run.program import Left

SIZE = 64


def doubling(extra: str, blocks: int = 1) -> Any:
    @tilelang.jit(target="ascendc")
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((blocks, SIZE), "float32"), B: T.Tensor((blocks, SIZE), "float32")):
            with T.Kernel(blocks, is_npu=True) as (cid, _), T.Scope("V"):
                a = T.alloc_ub((SIZE,), "float32")
                T.copy(A[cid, 0], a)
                T.set_flag("mte2", "v", 0)
                T.wait_flag("mte2", "v", 0)
                T.tile.add(a, a, a)
                T.set_flag("v", "mte3", 0)
                T.wait_flag("v", "mte3", 0)
                T.copy(a, B[cid, 0])
                if extra == "set":
                    T.set_flag("mte2", "v", 0)
                if extra == "pair":
                    T.set_flag("mte2", "v", 0)
                    T.wait_flag("mte2", "v", 0)

        return main

    return factory()


def launched(kernel: Any, blocks: int, left: Left | None) -> bool:
    a = np.arange(1, blocks * SIZE + 1, dtype=np.float32).reshape(blocks, SIZE)
    b = np.zeros_like(a)
    kernel.program.run([a, b], blocks=blocks, schedule="late", left=left)
    return bool((b == 2 * a).all())


@pytest.mark.parametrize(("extra", "second", "third"), [("", True, True), ("pair", True, True), ("set", False, False)])
def test_the_next_launch_finds_what_is_set(extra: str, second: bool, third: bool) -> None:
    kernel, left = doubling(extra), Left()
    assert launched(kernel, 1, left)
    assert [sum(core.events.values()) for core in left.values()] == [extra == "set"]
    assert (launched(kernel, 1, left), launched(kernel, 1, left)) == (second, third)
    assert [sum(core.events.values()) for core in left.values()] == [3 * (extra == "set")]
    assert launched(kernel, 1, None)


@pytest.mark.parametrize(("extra", "right"), [("", True), ("set", False)])
def test_so_does_the_next_block_of_a_core(extra: str, right: bool) -> None:
    kernel = doubling(extra, 50)
    assert kernel.program.cores == 48
    assert launched(kernel, 50, None) == right


def test_the_hazard_names_the_left_over_set() -> None:
    kernel = doubling("set")
    kernel(np.ones((1, SIZE), np.float32), np.zeros((1, SIZE), np.float32))
    assert [hazard.code for hazard in kernel.last_launch.hazards] == ["S211"]
