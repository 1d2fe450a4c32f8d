"""Each step of the ladders over several cards: values against NumPy, with the sanitizer, and the times of docs/pods.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples" / "pods"))

import pod_ladder

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = pod_ladder.folders()
STEPS = [(folder, step) for folder in FOLDERS for step in pod_ladder.programs(folder)]
NAMES = [f"{folder.name}-{step}" for folder, step in STEPS]
CLOSE = 0.02
OVERLAPPED = 1.5
"""How many times faster the last step of each ladder is at least than the first, which is blocking."""


@pytest.fixture(autouse=True)
def _own_path() -> Iterator[None]:
    """Restores the import path and the module ``problem`` after each test."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    sys.modules.pop("problem", None)


def _rows(folder: Path) -> list[tuple[str, float]]:
    """The step and the microseconds of each row of the ladder's table."""
    text = (ROOT / "docs" / "pods.md").read_text(encoding="utf-8")
    pattern = rf"^\| [^|]+: `{folder.name}/(\w+)\.py` \|.*\| ([\d.]+) us \|"
    return [(step, float(us)) for step, us in re.findall(pattern, text, re.MULTILINE)]


@pytest.mark.parametrize(("folder", "step"), STEPS, ids=NAMES)
def test_values_of_a_step(folder: Path, step: str) -> None:
    program = pod_ladder.programs(folder)[step]
    pod_ladder.load(folder).check_values(program, interleaving=0)


@pytest.mark.parametrize(("folder", "step"), STEPS, ids=NAMES)
def test_the_interpreter_has_the_same_values(folder: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    pod_ladder.load(folder).check_values(pod_ladder.programs(folder)[step])


@pytest.mark.parametrize(("folder", "step"), STEPS, ids=NAMES)
def test_the_time_of_a_step_is_that_of_the_page(folder: Path, step: str) -> None:
    program = pod_ladder.programs(folder)[step]
    times = pod_ladder.load(folder).times_us(program)
    assert sum(times) == pytest.approx(dict(_rows(folder))[step], rel=CLOSE)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_step_is_faster_and_the_last_one_overlaps(folder: Path) -> None:
    rows = _rows(folder)
    assert [step for step, _ in rows] == list(pod_ladder.programs(folder))
    times = [us for _, us in rows]
    assert len(times) >= 3
    assert times == sorted(times, reverse=True)
    assert times[0] > OVERLAPPED * times[-1]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_step_is_a_script(folder: Path) -> None:
    for file in folder.glob("step*.py"):
        assert file.read_text(encoding="utf-8").endswith(f'if __name__ == "__main__":\n    check({folder.name})\n')
