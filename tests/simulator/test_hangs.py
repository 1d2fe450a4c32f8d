"""Thirty deadlocks, as authors write them: each ends at once, with the waits, their locations, and the missing sets."""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tilelang_npu.errors import TileError

HEAD = '''
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), S: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"),
             H: T.Tensor((64, 64), "float16"), n: T.int32):
        with T.Kernel({blocks}, is_npu=True) as (cid, vid):
            x = T.alloc_ub((32, 64), "float32")
            y = T.alloc_ub((32, 64), "float32")
            i = T.alloc_var("int32", init=0)
            l1a = T.alloc_L1((64, 64), "float16")
            l1b = T.alloc_L1((64, 64), "float16")
            acc = T.alloc_L0C((64, 64), "float32")
'''


class Case(NamedTuple):
    """A way to hang.

    Attributes:
        code: the code of the diagnostic.
        report: patterns of the text; the first is for its first line.
        vector, cube: the statements of each core; the reported line ends in ``# here``.
        blocks: the number of blocks.
    """

    code: str
    report: tuple[str, ...]
    vector: str = ""
    cube: str = ""
    blocks: int = 1


LOADS = "T.copy(A[vid * 32, 0], x)\n"
STORES = "T.copy(x, B[vid * 32, 0])\n"

CASES = {
    # -- inside a core -------------------------------------------------------------------------------------------------
    "missing set": Case("S302", (
        "MTE3 of AIV0 waits for EVENT_ID0 from MTE2 to MTE3, which nothing sets", "iteration 0", "never set, this is wait 1"),
        LOADS + "T.wait_flag('mte2', 'mte3', 0)  # here\n" + STORES),
    "wrong event id": Case("S302", (
        "MTE3 of AIV0 waits for EVENT_ID1 from MTE2 to MTE3, which nothing sets",
        r"EVENT_ID0 of the same pipes is set at line \d+ and never waited for"),
        LOADS + "T.set_flag('mte2', 'mte3', 0)\nT.wait_flag('mte2', 'mte3', 1)  # here\n" + STORES),
    "wrong pipe pair": Case("S302", (
        "MTE3 of AIV0 waits for EVENT_ID0 from MTE2 to MTE3, which nothing sets",
        r"EVENT_ID0 is set from MTE2 to V at line \d+ and never waited for; the wait is for one from MTE2 to MTE3"),
        LOADS + "T.set_flag('mte2', 'v', 0)\nT.wait_flag('mte2', 'mte3', 0)  # here\n" + STORES),
    "pipes the wrong way round": Case("S302", (
        "MTE2 of AIV0 waits for EVENT_ID0 from MTE3 to MTE2, which nothing sets",
        "EVENT_ID0 is set from MTE2 to MTE3 at line"),
        LOADS + "T.set_flag('mte2', 'mte3', 0)\nT.wait_flag('mte3', 'mte2', 0)  # here\n" + STORES),
    "wait before its set on one pipe": Case("S301", (
        r"S of AIV0 \(line \d+\) waits for itself", r"S of AIV0 sets it at line \d+, after its own wait at line", "cycle: "),
        "T.wait_flag('v', 's', 0)  # here\nT.set_flag('v', 's', 0)\n"),
    "two pipes, each after its wait": Case("S301", (
        r"V of AIV0 \(line \d+\) and MTE2 of AIV0 \(line \d+\) wait for each other",
        r"AIV0 V .*waits for EVENT_ID0 from MTE2 to V .*MTE2 of AIV0 sets it at line \d+, after the wait at line",
        r"cycle: V of AIV0 \(line \d+\) -> MTE2 of AIV0 \(line \d+\) -> V of AIV0"),
        "T.wait_flag('v', 'mte2', 0)\nT.set_flag('mte2', 'v', 0)\n"
        "T.wait_flag('mte2', 'v', 0)  # here\nT.set_flag('v', 'mte2', 0)\n"),
    "three pipes in a ring": Case("S301", (
        r"V of AIV0 \(line \d+\), MTE3 of AIV0 \(line \d+\) and MTE2 of AIV0 \(line \d+\) wait for each other", "cycle: V of"),
        "T.wait_flag('mte3', 'v', 0)  # here\nT.wait_flag('mte2', 'mte3', 0)\nT.wait_flag('v', 'mte2', 0)\n"
        "T.set_flag('v', 'mte2', 0)\nT.set_flag('mte2', 'mte3', 0)\nT.set_flag('mte3', 'v', 0)\n"),
    "one side of a branch": Case("S302", (
        "V of AIV0 waits for EVENT_ID0 from MTE2 to V, which nothing sets",),
        LOADS + "if n > 5:\n    T.set_flag('mte2', 'v', 0)\nT.wait_flag('mte2', 'v', 0)  # here\n"),
    "set in the prologue only": Case("S302", (
        "MTE2 of AIV0 waits for EVENT_ID0 from V to MTE2, which is set once; this is wait 2", "iteration 1",
        r"set once, this is wait 2; the last set is at line \d+"),
        "T.set_flag('v', 'mte2', 0)\nfor k in T.serial(3):\n    T.wait_flag('v', 'mte2', 0)  # here\n    " + LOADS),
    "wait primed by nothing": Case("S301", (
        r"V of AIV0 \(line \d+\) and MTE2 of AIV0 \(line \d+\) wait for each other",
        "MTE2 .*waits for EVENT_ID0 from V to MTE2 .*iteration 0"),
        "for k in T.serial(3):\n    T.wait_flag('v', 'mte2', 0)\n    " + LOADS
        + "    T.set_flag('mte2', 'v', 0)\n    T.wait_flag('mte2', 'v', 0)  # here\n    T.tile.add(x, x, 1.0)\n"
          "    T.set_flag('v', 'mte2', 0)\n"),
    "zero trips that held the set": Case("S302", (
        "MTE3 of AIV0 waits for EVENT_ID2 from V to MTE3, which nothing sets",),
        "for k in T.serial(n):\n    T.tile.fill(x, 1.0)\n    T.set_flag('v', 'mte3', 2)\n"
        "T.wait_flag('v', 'mte3', 2)  # here\n" + STORES),
    "waits in a longer loop": Case("S302", (
        "V of AIV0 waits for EVENT_ID0 from MTE2 to V, which is set twice; this is wait 3", "iteration 2"),
        "for k in T.serial(2):\n    " + LOADS + "    T.set_flag('mte2', 'v', 0)\n"
        "for k in T.serial(3):\n    T.wait_flag('mte2', 'v', 0)  # here\n"),
    "an id used for two things": Case("S302", (
        "MTE3 of AIV0 waits for EVENT_ID0 from V to MTE3, which is set once; this is wait 2",),
        "T.tile.fill(x, 1.0)\nT.set_flag('v', 'mte3', 0)\nT.wait_flag('v', 'mte3', 0)\n" + STORES
        + "T.tile.fill(y, 1.0)\nT.set_flag('v', 'mte3', 1)\nT.wait_flag('v', 'mte3', 0)  # here\nT.copy(y, S[vid * 32, 0])\n"),
    "event by parity, off by one": Case("S302", (
        "MTE3 of AIV0 waits for EVENT_ID1 from V to MTE3, which is set once; this is wait 2", "iteration 2",
        "EVENT_ID0 of the same pipes is set at line"),
        "for k in T.serial(3):\n    T.tile.fill(x, 1.0)\n    T.set_flag('v', 'mte3', k % 2)\n"
        "    T.wait_flag('v', 'mte3', (k + 1) % 2)  # here\n"),
    "barrier after a wait that never ends": Case("S302", (
        "V of AIV0 waits for EVENT_ID0 from MTE2 to V, which nothing sets",),
        "T.wait_flag('mte2', 'v', 0)  # here\nT.barrier_all()\nT.set_flag('v', 'mte2', 0)\n"),
    "set after the barrier that its wait blocks": Case("S301", (
        r"V of AIV0 \(line \d+\) waits for itself", r"sets it at line \d+, after its own wait"),
        "T.wait_flag('mte2', 'v', 0)  # here\nT.barrier_all()\nT.set_flag('mte2', 'v', 0)\n"),
    # -- Cube and Vector -----------------------------------------------------------------------------------------------
    "swapped order of two flags": Case("S301", (
        r"S of AIC \(line \d+\) and S of AIV0 \(line \d+\) wait for each other",
        r"AIC S .*waits for flag 1 .*S of AIV0 sets it at line \d+, after the wait at line",
        r"AIV0 S.*waits for flag 0 .*S of AIC sets it at line \d+, after the wait at line",
        r"cycle: S of AIC \(line \d+\) -> S of AIV0 \(line \d+\) -> S of AIC"),
        "T.wait_cross_flag(0)\nT.set_cross_flag('MTE3', 1)\n", "T.wait_cross_flag(1)  # here\nT.set_cross_flag('FIX', 0)\n"),
    "vector core never sets": Case("S302", (
        "S of AIC waits for flag 1, which nothing sets", r"flag 2 is set for AIC at line \d+ and never waited for"),
        LOADS + "T.set_cross_flag('MTE2', 2)\n", "T.wait_cross_flag(1)  # here\n"),
    "cube core never sets": Case("S302", (
        "S of AIV0 waits for flag 3, which nothing sets", "AIV0 S and 1 more"),
        "T.wait_cross_flag(3)  # here\n" + LOADS, "T.barrier_all()\n"),
    "one vector core sets": Case("S303", (
        "S of AIC waits for flag 1, which AIV1 never sets", "set by AIV0, not by AIV1"),
        LOADS + "if vid == 0:\n    T.set_cross_flag('MTE2', 1)\n", "T.wait_cross_flag(1)  # here\n"),
    "vid 0 sets and vid 1 waits": Case("S302", (
        "S of AIV1 waits for flag 4, which nothing sets", r"flag 4 is set by AIV0 at line \d+, for AIC"),
        "if vid == 0:\n    T.set_cross_flag('MTE3', 4)\nelse:\n    T.wait_cross_flag(4)  # here\n", "T.barrier_all()\n"),
    "loop counts of Cube and Vector differ": Case("S302", (
        "S of AIC waits for flag 0, which is set twice; this is wait 3", "iteration 2", r"the last set is at line \d+"),
        "for k in T.serial(2):\n    T.tile.fill(x, 1.0)\n    T.set_cross_flag('V', 0)\n",
        "for k in T.serial(4):\n    T.wait_cross_flag(0)  # here\n"),
    "loop counts differ, both ways": Case("S302", (
        "S of AIV0 waits for flag 0, which is set twice; this is wait 3", "iteration 2"),
        "for k in T.serial(4):\n    T.wait_cross_flag(0)  # here\n    T.set_cross_flag('V', 1)\n",
        "for k in T.serial(2):\n    T.set_cross_flag('FIX', 0)\n    T.wait_cross_flag(1)\n"),
    "release before the first use is missing": Case("S301", (
        r"S of AIC \(line \d+\) and S of AIV0 \(line \d+\) wait for each other", "iteration 0"),
        "for k in T.serial(3):\n    T.wait_cross_flag(0)\n    T.set_cross_flag('MTE2', 1)\n",
        "for k in T.serial(3):\n    T.wait_cross_flag(1)  # here\n    T.set_cross_flag('FIX', 0)\n"),
    "preload deeper than the releases": Case("S301", (
        r"S of AIC \(line \d+\) and S of AIV0 \(line \d+\) wait for each other",),
        "T.set_cross_flag('MTE2', 1)\nT.set_cross_flag('MTE2', 1)\nfor k in T.serial(4):\n    T.wait_cross_flag(0)\n"
        "    T.set_cross_flag('MTE2', 1)\n",
        "for k in T.serial(4):\n    T.wait_cross_flag(1)  # here\nfor k in T.serial(4):\n    T.set_cross_flag('FIX', 0)\n"),
    "flag in a branch that one core takes": Case("S302", (
        "S of AIV0 waits for flag 0, which is set once; this is wait 2", "iteration 1"),
        "for k in T.serial(3):\n    T.wait_cross_flag(0)  # here\n",
        "for k in T.serial(3):\n    if k == 0:\n        T.set_cross_flag('FIX', 0)\n"),
    "a pipe that is blocked before a set": Case("S301", (
        r"S of AIC \(line \d+\), S of AIV0 \(line \d+\) and FIX of AIC \(line \d+\) wait for each other",
        r"AIV0 S .*waits for flag 0 .*FIX of AIC sets it at line \d+, after the wait at line",
        r"AIC FIX .*EVENT_ID0 from M to FIX .*S of AIC sets it at line \d+, after the wait at line"),
        "T.wait_cross_flag(0)\nT.set_cross_flag('MTE3', 1)\n",
        "T.wait_flag('m', 'fix', 0)\nT.set_cross_flag('FIX', 0)\nT.wait_cross_flag(1)  # here\nT.set_flag('m', 'fix', 0)\n"),
    # -- between blocks ------------------------------------------------------------------------------------------------
    "sync_all in a branch": Case("S303", (
        "blocks 0 to 5: S of AIV0 of block 0 waits at a barrier that AIV0 of block 4 and AIV0 of block 5 never reach",
        "AIV0 S of block 0 and 3 more"),
        "if cid < 2:\n    T.sync_all()  # here\n", blocks=3),
    "barrier of one vector core of two": Case("S303", (
        "waits at a barrier that AIV0 of block 1 and AIV0 of block 3 never reach",),
        "if vid == 0:\n    T.sync_all()  # here\n", blocks=2),
    "barriers in a loop of unequal length": Case("S303", (
        "waits at a barrier that AIV0 of block 0 and AIV0 of block 1 never reach", "iteration 1"),
        "for k in T.serial(cid + 1):\n    T.sync_all()  # here\n", blocks=2),
    "more blocks than cores": Case("S304", (
        "the 60 blocks of main wait for each other and must run at the same time, but Ascend910B2 runs at most 48",),
        "T.sync_all()  # here\n", blocks=30),
    # -- loops that do not end -----------------------------------------------------------------------------------------
    "while whose condition never changes": Case("S305", (
        "AIV0 never leaves this loop: an iteration changes nothing", "iteration 256"),
        "while i < 5:  # here\n    T.tile.fill(x, 1.0)\n"),
    "while that goes back and forth": Case("S305", (
        "AIV0 never leaves this loop: its state repeats every 2 iterations",), "while i < 5:  # here\n    i = 1 - i\n"),
    "while over an element that is not written": Case("S305", (
        "AIV0 never leaves this loop",), LOADS + "T.barrier_all()\nwhile x[0, 0] < 5.0:  # here\n    T.tile.fill(y, 1.0)\n"),
    "while that a branch no longer taken would end": Case("S305", (
        "AIV0 never leaves this loop: an iteration changes nothing", "iteration 256"),
        "while i < 5:  # here\n    if i > 0:\n        i = i + 1\n"),
    "spinning on GM": Case("S305", (
        "AIV0 never leaves this loop: an iteration changes nothing", "to wait for another core or block, use a flag"),
                           "while B[0, 0] < 1.0:  # here\n    i = 0\n"),
    "while that only stops by a value it steps over": Case("S305", (
        "AIV0 never leaves this loop: its state repeats every 5 iterations",),
        "while i != 7:  # here\n    i = (i + 2) % 5\n"),
}
assert len(CASES) >= 30


@pytest.fixture
def launched(tmp_path: Path) -> Callable[[Case], tuple[TileError, list[str], float]]:
    """Run a case: its error, its lines, and the seconds from the call to the error."""

    def run(case: Case) -> tuple[TileError, list[str], float]:
        text = HEAD.format(blocks=case.blocks)
        cube = "T.copy(H, l1a)\n" + case.cube if case.cube else ""
        for scope, statements in (("C", cube), ("V", case.vector)):
            if statements:
                text += f"            with T.Scope({scope!r}):\n"
                text += "".join(f"                {line}\n" for line in statements.splitlines())
        text += "    return main\n"
        file = tmp_path / "hang.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("hang", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        arrays: list[Any] = [np.zeros((64, 64), np.float32) for _ in range(3)]
        kernel = module.factory()
        kernel.mlir()
        started = time.monotonic()
        with pytest.raises(TileError) as raised:
            kernel(*arrays, np.zeros((64, 64), np.float16), 0)
        return raised.value, text.splitlines(), time.monotonic() - started

    return run


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_hang_is_explained(launched: Any, case: Case) -> None:
    error, lines, seconds = launched(case)
    text = str(error)
    assert error.code == case.code, text
    assert re.search(case.report[0], error.message), text
    for pattern in case.report:
        assert re.search(pattern, text), f"{pattern!r} is not in\n{text}"
    assert error.help
    if case.code != "S304":  # a barrier of all blocks has no single line
        assert error.location is not None
        assert lines[error.location.line - 1].endswith("# here"), text
    assert seconds < 2


@pytest.mark.parametrize("schedule", ["early", "late", "random:1"])
@pytest.mark.parametrize("name", ["swapped order of two flags", "missing set", "one vector core sets", "sync_all in a branch"])
def test_a_schedule_gives_the_same_error(launched: Any, monkeypatch: pytest.MonkeyPatch, name: str, schedule: str) -> None:
    plain = launched(CASES[name])[0]
    monkeypatch.setenv("TILELANG_NPU_SCHEDULE", schedule)
    assert str(launched(CASES[name])[0]) == str(plain)


@pytest.mark.parametrize("statements", [
    "for k in T.serial(2147483647):  # here\n    T.tile.fill(x, 1.0)\n",
    "while i != -1:  # here\n    i = (i + 2) % 100000\n    T.tile.fill(x, 1.0)\n",
    "for j in T.serial(100000):\n    for k in T.serial(20):  # here\n        T.tile.fill(x, 1.0)\n",
])
def test_a_core_that_issues_ops_without_end_runs_out_of_them(launched: Any, monkeypatch: pytest.MonkeyPatch,
                                                             statements: str) -> None:
    monkeypatch.setenv("TILELANG_NPU_MAX_OPS", "5000")
    error, lines, _ = launched(Case("S306", (), statements))
    assert error.code == "S306"
    assert re.search(r"block 0: AIV0 has issued [\d ]+ ops and has not left this loop", error.message)
    assert error.notes == ("a core may issue at most 5 000 ops in a block: each op is recorded in memory",)
    assert lines[error.location.line - 1].endswith("# here")


@pytest.mark.parametrize("name", ["TILELANG_NPU_MAX_OPS", "TILELANG_NPU_JOBS"])
@pytest.mark.parametrize("value", ["0", "many", "-3"])
def test_the_limit_is_a_number(launched: Any, monkeypatch: pytest.MonkeyPatch, value: str, name: str) -> None:
    monkeypatch.setenv(name, value)
    assert launched(CASES["missing set"])[0].code == "T418"


def test_long_loops_that_end_do(launched: Any) -> None:
    """A while loop that returns to a part of an earlier state, but not to all of it, continues."""
    ends = "while i < 5000:\n    i = i + 1\n    T.tile.fill(x, 1.0)\n"
    assert launched(Case("S302", (), ends + "T.wait_flag('v', 's', 3)\n"))[0].code == "S302"
