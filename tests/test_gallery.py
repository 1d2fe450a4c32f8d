"""Each step of each ladder has correct values, no sanitizer reports and the time on its page, and is not slower than before."""

from __future__ import annotations

import inspect
import math
import os
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
from ladders.figures import figure_pattern, fill_figures
from ladders.page import FOLLOWED, OTHER
from ladders.profile_summary import OTHER_NUMBERS, ProfileSummary

from tilelang_npu.dialects.text import parse_module

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ladders.folders()
STEPS = [step for folder in FOLDERS for step in ladders.steps(folder)]
NAMES = [f"{step.file.parent.name}-{step.file.stem}" for step in STEPS]
ALL = os.environ.get("TILELANG_GALLERY") == "all"
"""Whether each step is tested at all sizes of its ladder."""
CLOSE = 0.05
"""The largest relative difference between a time and the page's; a larger one means that the page has to be generated again."""
SLOWER = 0.02
"""The largest relative loss of a step: the timing iteration converges to one hundredth, for each of the two times."""


@pytest.fixture(autouse=True)
def _own_path() -> Iterator[None]:
    """Restores the import path and the module ``ladder`` after each test, so that no other test imports a ladder."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    sys.modules.pop("ladder", None)


def _page(folder: Path) -> str:
    return (ROOT / "docs" / "gallery" / f"{folder.name}.md").read_text(encoding="utf-8")


def _tables(folder: Path) -> list[list[tuple[float, float]]]:
    """Returns for each table of a page the microseconds and the share of each step."""
    row = re.compile(r"^\| \d+\. .* \| ([\d.]+) us ± \d+% \|.*\| ([\d.]+)% \|", re.MULTILINE)
    parts = re.split(r"^### ", _page(folder), flags=re.MULTILINE)[1:]
    return [[(float(us), float(share) / 100) for us, share in row.findall(part)] for part in parts if "of the roof" in part]


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_values_sanitizer_and_time_of_a_step(
        step: ladders.Step, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder, name = step.file.parent, step.file.parent.name
    ladder, factory = ladders.load(folder), step.factory()
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")  # no other test makes these kernels
    place = ladders.steps(folder).index(step)
    small, large = ladder.cases, list(range(len(ladder.large)))
    if not ALL:  # one small and one large size a step: the steps of a ladder take turns
        small, large = [small[place % len(small)]], [place % len(large)]
    with monkeypatch.context() as sanitizing:
        sanitizing.setenv("TILELANG_NPU_SANITIZE", "1")
        replace(ladder, cases=small).check_values(factory)  # raises where values are wrong, or the sanitizer finds something
    with monkeypatch.context() as interpreting:
        interpreting.setenv("TILELANG_NPU_INTERPRET", "1")
        smallest = min(ladder.cases, key=lambda case: math.prod(size for size in case.values() if isinstance(size, int)))
        replace(ladder, cases=[smallest]).check_values(step.factory())
    replace(ladder, large=[ladder.large[number] for number in large]).print_times(factory)
    lines = capsys.readouterr().out.splitlines()
    assert step.code.endswith(f'if __name__ == "__main__":\n    check({name})'), "as a script it does the same"
    parse_module(factory(**small[0]).mlir())  # reads and verifies
    for line, number in zip(lines, large, strict=True):
        took = re.search(r"([\d.]+) us ", line)
        assert took is not None
        assert float(took[1]) == pytest.approx(_tables(folder)[number][place][0], rel=CLOSE), (
            f"{line}: the page is older; run benchmarks/gallery.py --only {name}")


def test_profile_option_prints_the_profile_of_each_large_size(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    step = next(step for step in STEPS if step.file.parent.name == "rms_norm")
    ladder = ladders.load(step.file.parent)
    monkeypatch.setattr(sys, "argv", [str(step.file), "--profile"])
    ladder.print_times(step.factory())
    printed = capsys.readouterr().out
    times = re.findall(r"^[\w ]* ([\d.]+) us \+-", printed, re.MULTILINE)
    assert len(times) == len(ladder.large)
    paths = re.findall(r"^critical path of ([\d.]+) us", printed, re.MULTILINE)
    assert [float(took) for took in paths] == pytest.approx([float(took) for took in times], abs=0.06)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_step_is_slower_than_the_previous_one(folder: Path) -> None:
    ladder, tables = ladders.load(folder), _tables(folder)
    assert len(tables) == len(ladder.large)
    for case, table in zip(ladder.large, tables, strict=True):
        assert len(table) == len(ladders.steps(folder))
        for (_, before), (_, share) in zip(table, table[1:], strict=False):
            assert share >= before * (1 - SLOWER), (ladders.case_name(case), table)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_last_step_reaches_its_goal_or_the_page_states_its_limits(folder: Path) -> None:
    ladder = ladders.load(folder)
    tables = zip(ladder.large, _tables(folder), strict=True)
    missed = [ladders.case_name(case) for case, table in tables if table[-1][1] < ladder.goal]
    assert bool(missed) == bool(ladder.limits), missed


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_page_contains_the_texts_of_its_steps(folder: Path) -> None:
    page = _page(folder)
    for number, step in enumerate(ladders.steps(folder), 1):
        assert f"\n## {number}. {step.title}\n\n{step.text}\n" in page, f"run benchmarks/gallery.py --only {folder.name}"
    assert ladders.steps(folder)[0].code in page
    assert ladders.load(folder).about in page
    assert re.search(figure_pattern(ladders.load(folder).limits), page), f"run benchmarks/gallery.py --only {folder.name}"


def test_placeholders_are_filled_from_the_profile_of_their_size() -> None:
    folder = next(folder for folder in FOLDERS if folder.name == "rms_norm")
    ladder, step = ladders.load(folder), ladders.steps(folder)[-1]
    times = [ladder.time_case(step.factory(), case) for case in ladder.large]
    text = "V {1: AIV V}, HBM {AIV MTE2 HBM}, launch {launch} of {time}, {launch share}"
    filled = fill_figures(text, times, 0)
    assert re.fullmatch(figure_pattern(text), filled)
    split, summary = times[0].launch.split, str(times[1].launch.summary())
    busy = re.search(r"AIV .*?V (\d+) %.* of ([\d.]+) us", summary)
    assert busy is not None
    v, hbm, launch, whole, share = map(float, re.findall(r"([\d.]+) (?:%|us)", filled))
    assert v == pytest.approx(float(busy[1]) * float(busy[2]) / times[1].us, abs=1)
    assert 0 < hbm < 100
    assert launch == pytest.approx(split.launch, abs=0.51)
    assert whole == pytest.approx(times[0].us, abs=0.51)
    assert share == pytest.approx(100 * split.launch / times[0].us, abs=0.51)
    with pytest.raises(ValueError, match="unpack"):
        fill_figures("{AIV M}", times, 0)


def _sections(folder: Path) -> list[str]:
    """Returns the section of each step on a page."""
    return re.split(r"^## \d+\. ", _page(folder), flags=re.MULTILINE)[1:]


def _advised(section: str) -> list[dict[str, float]]:
    """Returns the possible gain of each cause, as a share: for the previous step, if there is one, and for this step."""
    found = re.findall(r"^advice +(.*)$", section, re.MULTILINE)
    cause = re.compile(r"([A-Za-z0-9 -]*[a-z]) ([+-]\d+)%")
    return [{name: -float(gain) / 100 for name, gain in cause.findall(row)} for row in found]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_step_follows_the_first_advice_or_states_an_insight(folder: Path) -> None:
    for place, (step, section) in enumerate(zip(ladders.steps(folder), _sections(folder), strict=True)):
        assert bool(step.removed_cause or step.insight) == (place > 0), (
            f"{step.file.name}: the last paragraph begins with Removes cause: or Insight:")
        assert (FOLLOWED in section) + (OTHER in section) == (place > 0)
        if place:
            before, after = _advised(section)
            first = next(iter(before), "")
            assert (FOLLOWED in section) == (first == step.removed_cause != "") or first == OTHER_NUMBERS
        if FOLLOWED in section:
            (was, *_), (now, *_) = ([float(us) for us in re.findall(r"time +([\d.]+) us", part)] for part in
                                    (_sections(folder)[place - 1], section))
            assert after.get(first, 0.0) * now < before[first] * was * (1 + SLOWER), "the removed cause costs less than before"
        elif place:
            assert step.insight in section


def test_half_of_the_edits_with_a_gain_follow_the_first_advice() -> None:
    gaining, followed = _gaining_edits()
    assert 2 * followed >= gaining


def _gaining_edits() -> tuple[int, int]:
    """Returns the number of edits that gain 2 % at one of the large sizes, and how many of these follow the first advice."""
    gaining = followed = 0
    for folder in FOLDERS:
        tables, sections = _tables(folder), _sections(folder)
        for place in range(1, len(sections)):
            if any(table[place - 1][0] > 1.02 * table[place][0] for table in tables):
                gaining += 1
                followed += FOLLOWED in sections[place]
    return gaining, followed


def test_is_followed_by_needs_the_same_cause_or_direction() -> None:
    """A step with another cause does not follow an advice, nor one that changes a numeric argument in the other direction."""
    _, second = ladders.steps(FOLDERS[0])[:2]

    def summary(cause: str, text: str = "") -> ProfileSummary:
        row = SimpleNamespace(cause=cause, text=text, after=1.0)
        return ProfileSummary(SimpleNamespace(advice=[], causes=[row] if cause else []))

    overlapping = replace(second, removed_cause="no overlap")
    assert summary("no overlap").is_followed_by(overlapping)
    assert not summary("few blocks").is_followed_by(overlapping)
    assert not summary("").is_followed_by(replace(second, removed_cause=""))
    cores = inspect.signature(second.factory()).parameters["cores"].default
    assert summary("other numbers", f"cores={cores} in place of {cores // 2}").is_followed_by(overlapping)
    assert not summary("other numbers", f"cores={cores // 2} in place of {cores}").is_followed_by(overlapping)
    assert not summary("other numbers", "nothing=2 in place of 1").is_followed_by(overlapping)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_pictures_of_a_page_exist(folder: Path) -> None:
    shown = re.findall(r"!\[.*?\]\((.*?)\)", _page(folder))
    assert {f"{folder.name}.svg", f"{folder.name}-timeline.svg"} <= set(shown)
    for name in shown:
        picture = ElementTree.parse(ROOT / "docs" / "gallery" / name).getroot()
        assert picture.tag.endswith("svg")
        assert len(list(picture)) > 3


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_axis_of_a_picture_names_the_steps(folder: Path) -> None:
    picture = ElementTree.parse(ROOT / "docs" / "gallery" / f"{folder.name}.svg").getroot()
    texts = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}text") if each.get("class") == "t"]
    assert texts == [f"step {number}" for number in range(1, 1 + len(list(folder.glob("step*.py"))))]


def test_index_counts_agree_with_the_pages() -> None:
    index = (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")
    gaining, followed = _gaining_edits()
    assert f"Of {len(STEPS) - len(FOLDERS)} edits {gaining} gain" in index, "run benchmarks/gallery.py"
    assert f" {followed} of these follow" in index, "run benchmarks/gallery.py"


def test_index_is_written_with_each_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    """An error in a later page keeps the earlier pages. The index needs all pages; a missing page is reported."""
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


def test_roofline_is_the_larger_of_memory_and_cube_time() -> None:
    """Twice the bytes take twice the time; the products bound a case where they take longer than its bytes."""
    from tilelang_npu.target import chip as chip_named

    chip = chip_named("Ascend910B2")
    small, large = ladders.Work(read=2**26), ladders.Work(read=2**27)
    assert large.roofline_us(chip) == pytest.approx(2 * small.roofline_us(chip)) == pytest.approx(2**27 / 1.456e6)
    product = ladders.Work(read=2**20, flops={"f16": 2 * 4096**3})
    assert product.roofline_us(chip) == pytest.approx(2 * 4096**3 / (24 * 16**3 * 2 * 1.85e9) * 1e6 * 1.0, rel=0.05)
