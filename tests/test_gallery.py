"""Every step of every ladder is right, clean and as fast as its page says; no step is slower than the one before."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

import ladders
from ladders.advised import NUMBERS, Said
from ladders.figures import pattern, with_figures
from ladders.page import FOLLOWED, OTHER

from tilelang_npu.dialects.text import parse_module

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ladders.folders()
STEPS = [step for folder in FOLDERS for step in ladders.steps(folder)]
NAMES = [f"{step.file.parent.name}-{step.file.stem}" for step in STEPS]
CLOSE = 0.05
"""By what share a time may differ from the page's before the page has to be made again."""
SLOWER = 0.02
"""What a step may lose: a hundredth of a time is no more than how far its iteration settles, and each of two may be off so."""


@pytest.fixture(autouse=True)
def _own_path() -> Iterator[None]:
    """A ladder is found as a script finds it, and no other test finds it."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    sys.modules.pop("ladder", None)


def _page(folder: Path) -> str:
    return (ROOT / "docs" / "gallery" / f"{folder.name}.md").read_text(encoding="utf-8")


def _tables(folder: Path) -> list[list[tuple[float, float]]]:
    """Of each table of a page the microseconds and the share of each step."""
    row = re.compile(r"^\| \d+\. .* \| ([\d.]+) us ± \d+% \|.*\| ([\d.]+)% \|", re.MULTILINE)
    parts = re.split(r"^### ", _page(folder), flags=re.MULTILINE)[1:]
    return [[(float(us), float(share) / 100) for us, share in row.findall(part)] for part in parts if "of the roof" in part]


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_a_step_is_right_and_clean_and_takes_what_its_page_says(
        step: ladders.Step, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder, name = step.file.parent, step.file.parent.name
    ladder, factory = ladders.load(folder), step.factory()
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")  # no other test makes these kernels
    with monkeypatch.context() as sanitizing:
        sanitizing.setenv("TILELANG_NPU_SANITIZE", "1")
        ladder.values(factory)  # raises where values are wrong, or the sanitizer finds something
    with monkeypatch.context() as interpreting:
        interpreting.setenv("TILELANG_NPU_INTERPRET", "1")
        smallest = min(ladder.cases, key=lambda case: math.prod(size for size in case.values() if isinstance(size, int)))
        replace(ladder, cases=[smallest]).values(step.factory())
    ladder.times(factory)
    lines = capsys.readouterr().out.splitlines()
    assert step.code.endswith(f'if __name__ == "__main__":\n    check({name})'), "as a script it does the same"
    parse_module(factory(**ladder.cases[0]).mlir())  # reads and verifies
    place = ladders.steps(folder).index(step)
    for line, table in zip(lines, _tables(folder), strict=True):
        took = re.search(r"([\d.]+) us ", line)
        assert took is not None
        assert float(took[1]) == pytest.approx(table[place][0], rel=CLOSE), (
            f"{line}: the page is older; run benchmarks/gallery.py --only {name}")


def test_a_step_that_is_asked_says_where_the_time_of_each_large_size_goes(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    step = next(step for step in STEPS if step.file.parent.name == "rms_norm")
    ladder = ladders.load(step.file.parent)
    monkeypatch.setattr(sys, "argv", [str(step.file), "--profile"])
    ladder.times(step.factory())
    said = capsys.readouterr().out
    times = re.findall(r"^[\w ]* ([\d.]+) us \+-", said, re.MULTILINE)
    assert len(times) == len(ladder.large)
    paths = re.findall(r"^critical path of ([\d.]+) us", said, re.MULTILINE)
    assert [float(took) for took in paths] == pytest.approx([float(took) for took in times], abs=0.06)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_step_is_slower_than_the_one_before(folder: Path) -> None:
    ladder, tables = ladders.load(folder), _tables(folder)
    assert len(tables) == len(ladder.large)
    for case, table in zip(ladder.large, tables, strict=True):
        assert len(table) == len(ladders.steps(folder))
        for (_, before), (_, share) in zip(table, table[1:], strict=False):
            assert share >= before * (1 - SLOWER), (ladders.name(case), table)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_last_step_is_near_the_roof_or_the_page_says_what_keeps_it(folder: Path) -> None:
    ladder = ladders.load(folder)
    tables = zip(ladder.large, _tables(folder), strict=True)
    missed = [ladders.name(case) for case, table in tables if table[-1][1] < ladder.goal]
    assert bool(missed) == bool(ladder.rest), missed


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_page_has_what_its_steps_have(folder: Path) -> None:
    page = _page(folder)
    for number, step in enumerate(ladders.steps(folder), 1):
        assert f"\n## {number}. {step.title}\n\n{step.text}\n" in page, f"run benchmarks/gallery.py --only {folder.name}"
    assert ladders.steps(folder)[0].code in page
    assert ladders.load(folder).about in page
    assert re.search(pattern(ladders.load(folder).rest), page), f"run benchmarks/gallery.py --only {folder.name}"


def test_figures_in_a_text_are_those_of_the_profile_at_the_size_that_it_names() -> None:
    folder = next(folder for folder in FOLDERS if folder.name == "rms_norm")
    ladder, step = ladders.load(folder), ladders.steps(folder)[-1]
    times = [ladder.timed(step.factory(), case) for case in ladder.large]
    text = "V {1: AIV V}, HBM {AIV MTE2 HBM}, launch {launch} of {time}, {launch share}"
    said = with_figures(text, times, 0)
    assert re.fullmatch(pattern(text), said)
    split, summary = times[0].launch.split, str(times[1].launch.summary())
    busy = re.search(r"AIV .*?V (\d+) %.* of ([\d.]+) us", summary)
    assert busy is not None
    v, hbm, launch, whole, share = map(float, re.findall(r"([\d.]+) (?:%|us)", said))
    assert v == pytest.approx(float(busy[1]) * float(busy[2]) / times[1].us, abs=1)
    assert 0 < hbm < 100
    assert launch == pytest.approx(split.launch, abs=0.51)
    assert whole == pytest.approx(times[0].us, abs=0.51)
    assert share == pytest.approx(100 * split.launch / times[0].us, abs=0.51)
    with pytest.raises(ValueError, match="unpack"):
        with_figures("{AIV M}", times, 0)


def _sections(folder: Path) -> list[str]:
    """What a page says of each step."""
    return re.split(r"^## \d+\. ", _page(folder), flags=re.MULTILINE)[1:]


def _advised(section: str) -> list[dict[str, float]]:
    """What could be won, as a share, by cause: before the step where there is one, and behind it."""
    found = re.findall(r"^advice +(.*)$", section, re.MULTILINE)
    cause = re.compile(r"([A-Za-z0-9 -]*[a-z]) ([+-]\d+)%")
    return [{name: -float(gain) / 100 for name, gain in cause.findall(row)} for row in found]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_step_is_the_advice_that_came_first_or_says_what_a_person_had_to_know(folder: Path) -> None:
    for place, (step, section) in enumerate(zip(ladders.steps(folder), _sections(folder), strict=True)):
        assert bool(step.cures or step.known) == (place > 0), f"{step.file.name}: a last paragraph is Cures: or To know:"
        assert (FOLLOWED in section) + (OTHER in section) == (place > 0)
        if place:
            before, after = _advised(section)
            first = next(iter(before), "")
            assert (FOLLOWED in section) == (first == step.cures != "") or first == NUMBERS
        if FOLLOWED in section:
            (was, *_), (now, *_) = ([float(us) for us in re.findall(r"time +([\d.]+) us", part)] for part in
                                    (_sections(folder)[place - 1], section))
            assert after.get(first, 0.0) * now < before[first] * was * (1 + SLOWER), "what is cured costs less"
        elif place:
            assert step.known in section


def test_the_advice_that_comes_first_is_the_next_step_in_half_of_the_edits_that_win() -> None:
    winning, followed = _winning_edits()
    assert 2 * followed >= winning


def _winning_edits() -> tuple[int, int]:
    """How many edits are faster by 2 % at one of the large sizes, and how many of these were the first advice."""
    winning = followed = 0
    for folder in FOLDERS:
        tables, sections = _tables(folder), _sections(folder)
        for place in range(1, len(sections)):
            if any(table[place - 1][0] > 1.02 * table[place][0] for table in tables):
                winning += 1
                followed += FOLLOWED in sections[place]
    return winning, followed


def test_an_advice_is_followed_only_by_its_own_cure() -> None:
    """Another cause is not, nor no advice; of a number, one that moves the other way is not."""
    first, second = ladders.steps(FOLDERS[0])[:2]

    def said(cause: str, text: str = "") -> Said:
        row = SimpleNamespace(cause=cause, text=text, after=1.0)
        return Said(SimpleNamespace(advice=[], causes=[row] if cause else []))

    curing = replace(second, cures="no overlap")
    assert said("no overlap").leads_to(first, curing)
    assert not said("few blocks").leads_to(first, curing)
    assert not said("").leads_to(first, replace(second, cures=""))
    cores = inspect.signature(second.factory()).parameters["cores"].default
    assert said("other numbers", f"cores={cores} in place of {cores // 2}").leads_to(first, curing)
    assert not said("other numbers", f"cores={cores // 2} in place of {cores}").leads_to(first, curing)
    assert not said("other numbers", "nothing=2 in place of 1").leads_to(first, curing)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_pictures_of_a_page_are_there(folder: Path) -> None:
    shown = re.findall(r"!\[.*?\]\((.*?)\)", _page(folder))
    assert {f"{folder.name}.svg", f"{folder.name}-timeline.svg"} <= set(shown)
    for name in shown:
        picture = ElementTree.parse(ROOT / "docs" / "gallery" / name).getroot()
        assert picture.tag.endswith("svg")
        assert len(list(picture)) > 3


def test_the_index_counts_what_the_pages_say() -> None:
    index = (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")
    winning, followed = _winning_edits()
    assert f"Of {len(STEPS) - len(FOLDERS)} edits {winning} win" in index, "run benchmarks/gallery.py"
    assert f"In {followed} of these" in index, "run benchmarks/gallery.py"


def test_the_index_is_written_with_each_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    """A page that fails late loses nothing; while a ladder has no page there is no index, and that is said."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import gallery

    monkeypatch.setattr(gallery, "PAGES", tmp_path)
    gallery.main(["--only", "rms_norm"])
    assert (tmp_path / "rms_norm.md").exists()
    assert not (tmp_path / "index.md").exists()
    assert "index.md is not written: no page of adam" in capsys.readouterr().out
    for folder in FOLDERS:
        (tmp_path / f"{folder.name}.md").write_text(_page(folder))
    measured = gallery.measure

    def failing(folder: Path, *rest: object) -> object:
        if folder.name == "matmul":
            raise MemoryError
        return measured(folder, *rest)

    monkeypatch.setattr(gallery, "measure", failing)
    with pytest.raises(MemoryError):
        gallery.main(["--only", "rms_norm,matmul"])
    assert (tmp_path / "index.md").read_text().count(".md) |") == len(FOLDERS)


def test_a_case_that_takes_less_is_a_larger_share_of_the_roof() -> None:
    """Half the bytes in the same time are half the share, and products count where they take longer than bytes."""
    from tilelang_npu.target import chip as chip_named

    chip = chip_named("Ascend910B2")
    small, large = ladders.Work(read=2**26), ladders.Work(read=2**27)
    assert large.roof_us(chip) == pytest.approx(2 * small.roof_us(chip)) == pytest.approx(2**27 / 1.456e6)
    product = ladders.Work(read=2**20, flops={"f16": 2 * 4096**3})
    assert product.roof_us(chip) == pytest.approx(2 * 4096**3 / (24 * 16**3 * 2 * 1.85e9) * 1e6 * 1.0, rel=0.05)
