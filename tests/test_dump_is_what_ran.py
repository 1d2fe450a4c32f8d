"""The text of a kernel is the kernel: its dump, run by ``sim``, gives the same bytes and cycles, and misses every flag."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from captured import KERNELS, Run, captured, copies
from tilelang_npu import TileError, simulator
from tilelang_npu.cli import main
from tilelang_npu.dialects.text import parse_module

FLAG = re.compile(r"hivm\.hir\.(set_flag|wait_flag|sync_block_set|sync_block_wait)\b")


EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))
pytestmark = pytest.mark.shared


@pytest.mark.parametrize("script", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_an_example_means_what_it_prints(script: Path) -> None:
    for run in {run.text: run for run in captured(script)}.values():
        values = copies(run.before)
        launch = simulator.simulate(parse_module(run.text), values, blocks=run.launch.blocks)
        assert launch.cycles == run.launch.cycles
        for made, right in zip(values, run.after, strict=True):
            assert np.asarray(made).tobytes() == np.asarray(right).tobytes()


@pytest.fixture(params=KERNELS, ids=[file.stem for file in KERNELS])
def runs(request: pytest.FixtureRequest) -> list[Run]:
    return captured(request.param)


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
        launch = simulator.simulate(parse_module(text), copies(run.before), blocks=run.launch.blocks, hazards=True)
    except TileError as error:
        return (error.code, str(error))
    return (launch.cycles, tuple(map(str, launch.hazards)))
