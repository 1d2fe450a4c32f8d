"""The text of a kernel is the kernel: its dump, run by ``sim``, gives the same bytes and cycles, and misses every flag."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tilelang_npu import TileError, compat, simulator
from tilelang_npu.cli import main
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.runtime.kernel import JITKernel
from tilelang_npu.simulator.program import Program

KERNELS = sorted((Path(__file__).resolve().parent / "frontend" / "kernels").glob("*.py"))
FLAG = re.compile(r"hivm\.hir\.(set_flag|wait_flag|sync_block_set|sync_block_wait)\b")


class Run(NamedTuple):
    """One call of a kernel: its text, its launch, its arguments before and after."""

    text: str
    names: list[str]
    launch: Any
    before: list[Any]
    after: list[Any]


def _copies(values: Any) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


@pytest.fixture(params=KERNELS, ids=[file.stem for file in KERNELS])
def runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """What a script's kernels were called with, and what came of it."""
    found: list[Run] = []
    arguments: list[tuple[list[Any], list[Any]]] = []
    call, run = JITKernel.__call__, Program.run

    def observed_run(self: Program, args: Any, **options: Any) -> Any:
        before = _copies(args)
        recorded = run(self, args, **options)
        arguments.append((before, _copies(args)))
        return recorded

    def observed_call(self: JITKernel, *args: Any, **options: Any) -> Any:
        result = call(self, *args, **options)
        names = [parameter.name for parameter in self.params]
        found.append(Run(self.mlir(), names, self.last_launch, *arguments.pop()))
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Program, "run", observed_run)
        patch.setattr(JITKernel, "__call__", observed_call)
        compat.install()
        runpy.run_path(str(request.param), run_name="__main__")
    assert found
    return found


def test_sim_of_the_dump_gives_the_same(runs: list[Run], tmp_path: Path) -> None:
    for number, run in enumerate(runs):
        file, saved = tmp_path / f"{number}.mlir", tmp_path / str(number)
        file.write_text(run.text)
        np.savez(tmp_path / "in.npz", *run.before)
        blocks = str(run.launch.blocks)
        assert main(["sim", str(file), "--npz", str(tmp_path / "in.npz"), "--save", str(saved), "--blocks", blocks]) == 0
        for name, expected in zip(run.names, run.after, strict=True):
            assert np.load(saved / f"{name}.npy").tobytes() == expected.tobytes(), name
        assert _report(run.text, run) == (run.launch.cycles, ())


def test_every_flag_that_is_taken_out_is_missed(runs: list[Run]) -> None:
    run = min(runs, key=lambda each: each.launch.blocks)
    whole = _report(run.text, run)
    lines = run.text.split("\n")
    places = [index for index, line in enumerate(lines) if FLAG.search(line)]
    assert places
    idle = [lines[index].strip() for index in places
            if _report("\n".join(lines[:index] + lines[index + 1:]), run) == whole]
    assert idle == []


def _report(text: str, run: Run) -> tuple[object, ...]:
    try:
        launch = simulator.simulate(parse_module(text), _copies(run.before), blocks=run.launch.blocks, hazards=True)
    except TileError as error:
        return (error.code, str(error))
    return (launch.cycles, tuple(map(str, launch.hazards)))
