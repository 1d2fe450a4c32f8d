"""Kernels in other orders than program order: synchronised kernels give the same bytes in all orders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from captured import KERNELS, captured, copies
from tilelang_npu import TileError
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import Launch, Program
from tilelang_npu.simulator.run.reordered_execution import policy

SCHEDULES = ["early", "late", "random:0", "random:1", "random:2"]
SYNC = re.compile(r"hivm\.hir\.(set_flag|wait_flag|sync_block_set|sync_block_wait|pipe_barrier)\b")


def _run(text: str, arguments: list[Any], blocks: int, schedule: str | None) -> tuple[list[bytes], Launch]:
    mine = copies(arguments)
    recorded = Program(parse_module(text)).run(mine, blocks=blocks, schedule=schedule)
    return [array.tobytes() for array in mine if isinstance(array, np.ndarray)], Launch(recorded)


@pytest.mark.parametrize("script", KERNELS, ids=[file.stem for file in KERNELS])
def test_no_schedule_changes_a_byte(script: Path) -> None:
    for run in captured(script):
        expected = [array.tobytes() for array in run.after if isinstance(array, np.ndarray)]
        for schedule in SCHEDULES:
            written, launch = _run(run.text, run.before, run.launch.blocks, schedule)
            assert written == expected, schedule
            assert launch.cycles == run.launch.cycles, schedule  # it records the same program


@pytest.mark.parametrize("name", ["softmax_mixed", "matmul_ascendc_expert", "minicv_npuir_developer"])
def test_what_lacks_order_shows(name: str) -> None:
    """Without one set, wait or barrier, some schedule gives a wrong number if and only if the sanitizer reports a race."""
    script = next(file for file in KERNELS if file.stem == name)
    run = min(captured(script), key=lambda each: each.launch.blocks)
    lines = run.text.split("\n")
    races = 0
    for place, line in enumerate(lines):
        if not SYNC.search(line):
            continue
        text = "\n".join(lines[:place] + lines[place + 1:])
        try:
            expected, launch = _run(text, run.before, 2, None)
        except TileError:
            with pytest.raises(TileError, match=r"S30[123]"):
                _run(text, run.before, 2, "late")
            continue
        raced = any(hazard.kind != "flag" for hazard in launch.hazards)
        races += raced
        shown = any(_run(text, run.before, 2, schedule)[0] != expected
                    for schedule in ["late", "early", *(f"random:{seed}" for seed in range(30))])
        assert shown == raced, line
    assert races


def test_a_barrier_after_two_writes_does_not_order_them() -> None:
    """Both have landed when the barrier is over; which of them did last is another matter."""

    @tilelang.jit(target="ascendc")
    def factory() -> Any:
        @T.prim_func
        def main(B: T.Tensor((64,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x = T.alloc_ub((64,), "float32")
                T.annotate_address({x: 0})
                T.tile.fill(x, 1.0)
                T.tile.fill(x, 2.0)
                T.barrier_all()
                T.copy(x, B)
                T.barrier_all()

        return main

    program = factory().program
    left = set()
    for seed in range(40):
        b = np.zeros(64, np.float32)
        program.run([b], blocks=2, schedule=f"random:{seed}")
        left.add(float(b[0]))
    assert left == {1.0, 2.0}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_loop_of_scalar_instructions_alone_is_recorded_as_in_order(schedule: str) -> None:
    @tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    def factory() -> Any:
        @T.prim_func
        def main(N: T.Tensor((8,), "int32"), X: T.Tensor((8,), "float32"), Y: T.Tensor((8,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                x = T.alloc_ub((8,), "float32")
                a = T.alloc_var("float32", init=1.0)
                T.copy(X, x)
                a = x[0]
                for _ in T.serial(N[0]):
                    a = a * 1.5 + 0.5
                for _ in T.serial(5):
                    a = a + 1.0
                x[1] = a
                T.copy(x, Y)

        return main

    program = factory().program
    given = [np.full(8, 7, np.int32), np.ones(8, np.float32)]
    arrays = [[*copies(given), np.zeros(8, np.float32)] for _ in range(2)]
    launches = [Launch(program.run(mine, blocks=1, schedule=which))
                for mine, which in zip(arrays, (None, schedule), strict=True)]
    assert arrays[0][2].tobytes() == arrays[1][2].tobytes()
    assert launches[0].cycles == launches[1].cycles


def test_unknown_schedules() -> None:
    for name in ("", "latest", "random", "random:", "random:x"):
        with pytest.raises(TileError, match="there is no schedule") as caught:
            policy(name)
        assert caught.value.code == "T413"
