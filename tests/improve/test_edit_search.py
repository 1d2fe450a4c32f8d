"""The search: the order in which versions are tried, and which versions are kept and excluded."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import DATA_DEPENDENT, EAGER, ROWS, program
from tilelang_npu.runtime.improve import edit_search
from tilelang_npu.runtime.improve.edit_search import EditSearch
from tilelang_npu.runtime.kernel.draft import Draft, Timing, time_draft
from tilelang_npu.runtime.kernel.executors import open_executor


def searching(text: str = ROWS, factory: str = "scaled", executor: Executor | None = None, **kwargs: int) -> EditSearch:
    return EditSearch(program(text, factory, **(kwargs or {"rows": 960, "columns": 64})), executor=executor)


def searched(search: EditSearch, trials: int) -> list[tuple[dict[str, int], float | None]]:
    """The versions in the order of their times, after a search of a number of versions."""
    search.trials = trials
    search.begin()
    for _ in search.run(time.monotonic() + 120):
        pass
    found = [(dict(one.choice), one.us) for one in search.versions]
    return sorted(found, key=lambda one: (one[1] or 0.0, sorted(one[0].items())))


def test_the_script_as_it_is_comes_first() -> None:
    search = searching()
    assert set(search.subjects) == {"tile", "'48'", "loop 1", "launch 1"}
    timing = search.begin()
    assert timing.us == search.program.kernel().estimate().time_us
    assert [(dict(one.choice), one.us) for one in search.versions] == [({}, timing.us)] and search.tried == 0
    assert search.text({}) == ROWS


def test_edits_of_several_subjects_are_in_the_text() -> None:
    text = searching().text({"loop 1": 2, "tile": 4})
    assert "def scaled(rows, columns, tile=4):" in text
    assert "for i in T.Pipelined(T.ceildiv(rows, tile * 48), num_stages=2):" in text
    assert text.replace("tile=4", "tile=1").replace("T.Pipelined", "T.serial").replace(", num_stages=2", "") == ROWS


def test_the_text_does_not_depend_on_the_order_of_the_choice() -> None:
    search = searching()
    assert search.text({"loop 1": 2, "tile": 4}) == search.text({"tile": 4, "loop 1": 2})


CALLS = """
TILE = 4
def run(x, tile=4):
    a = scaled(x, 4, factor=3)
    b = scaled(x, TILE, factor=2)
    c = scaled.compile(
        rows=960, columns=64, tile=tile)
    return a, b, c, scaled(*[x, 4])
"""


@pytest.mark.parametrize(("line", "edit"), [
    ("a = scaled(x, 4", ("    a = scaled(x, 4, factor=3)", "    a = scaled(x, 8, factor=3)")),
    ("b = scaled(x, TILE", ("TILE = 4", "TILE = 8")),
    ("rows=960", ("        rows=960, columns=64, tile=tile)", "        rows=960, columns=64, tile=8)"))])
def test_arguments_of_the_call_in_the_script_are_edited(line: str, edit: tuple[str, str]) -> None:
    """The literal of the call, the literal of a variable that is used only there, or else the argument itself."""
    text = EAGER + CALLS
    number = next(number for number, one in enumerate(text.splitlines(), 1) if line in one)
    called = program(text, "scaled", tile=4, rows=960, columns=64)
    search = EditSearch(replace(called, call_line=number))
    version = search.version({"tile": 8})
    changed = [pair for pair in zip(text.splitlines(), version.text.splitlines(), strict=True) if pair[0] != pair[1]]
    assert changed == [edit]
    assert version.kwargs == {"tile": 8, "rows": 960, "columns": 64}
    assert version.draft().traced.parameters[0].shape == (960, 64)
    assert "tile" not in EditSearch(called).subjects, "without a call in the script, the arguments stay"


def test_arguments_of_a_call_with_a_star_stay() -> None:
    text = EAGER + CALLS
    number = next(number for number, one in enumerate(text.splitlines(), 1) if "scaled(*" in one)
    assert "tile" not in EditSearch(replace(program(text, "scaled", tile=4, rows=960, columns=64), call_line=number)).subjects


def test_sizes_are_not_tried_again_once_they_have_changed_the_parameters() -> None:
    text = ROWS + "kernel = scaled(960, columns=64)\n"
    number = len(text.splitlines())
    search = EditSearch(replace(program(text, "scaled", rows=960, columns=64), call_line=number))
    assert {"rows", "columns"} <= search.subjects.keys()
    found = searched(search, 24)
    assert not any({"rows", "columns"} & choice.keys() for choice, _ in found)
    assert search.text(search.best().choice).endswith("kernel = scaled(960, columns=64)\n")


def test_numbers_without_effect_are_not_tried_again() -> None:
    """The number of a GPU's threads means nothing here."""
    text = EAGER.replace("threads=128) as", "threads=threads) as").replace("factor=2", "threads=128").replace("* factor", "* 2")
    search = EditSearch(program(text, "scaled", tile=4, rows=960, columns=64))
    assert "threads" in search.subjects
    assert not any("threads" in choice for choice, _ in searched(search, 12))


def test_trials_end_the_search_and_threads_find_the_same() -> None:
    search = searching()
    alone = searched(search, 10)
    assert search.tried == 10 and len(alone) > 4
    assert search.best().us == min(us for _, us in alone if us is not None) < alone[-1][1]  # type: ignore[operator]
    with open_executor("threads:2") as workers:
        assert searched(searching(executor=workers), 10) == alone


def test_refused_combinations_are_not_tried_and_their_parts_are() -> None:
    search = searching()
    search.refused.add(frozenset({("tile", 2), ("loop 1", 2)}))
    assert search.is_allowed({"tile": 2}) and search.is_allowed({"loop 1": 2}) and search.is_allowed({"tile": 4, "loop 1": 2})
    assert not search.is_allowed({"tile": 2, "loop 1": 2}) and not search.is_allowed({"loop 1": 2, "launch 1": 24, "tile": 2})
    choices = [choice for choice, _ in searched(search, 24)]
    assert {"tile": 2} in choices and {"loop 1": 2} in choices
    assert all(search.is_allowed(choice) for choice in choices), choices


def test_the_best_version_is_one_that_is_allowed() -> None:
    search = searching()
    searched(search, 10)
    best = search.best()
    search.refused.add(frozenset(best.choice.items()))
    assert not best.choice.items() <= search.best().choice.items() and search.best().us >= best.us  # type: ignore[operator]


def test_a_version_without_room_is_continued_with_smaller_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_WITHOUT", "split-tiles")
    search = searching(rows=9600, columns=24_000)  # a row has 96 000 bytes: UB has room for two
    search.begin()
    full = search._time(search.versions[0], [{"tile": 4}], time.monotonic() + 60)
    assert full == [] and [dict(one.choice) for one in search.versions if one.us is None] == [{"tile": 4}]
    without_room = search.versions[-1]
    assert without_room.expected > search.versions[0].expected
    steps = [step.value for step in search._steps(without_room, search.subjects["tile"])]
    assert steps and max(steps) < 4


def test_a_kernel_whose_time_depends_on_data_has_no_version() -> None:
    search = searching(DATA_DEPENDENT, "chosen", n=8)
    assert search.begin() == Timing() and search.versions == []


def test_an_interrupt_keeps_the_versions_that_have_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    search = searching()
    search.begin()
    timed: list[float | None] = []

    def interrupted(draft: Draft, seconds: float, arguments: object = None) -> Timing:
        if len(timed) == 2:
            raise KeyboardInterrupt
        made = time_draft(draft, seconds)
        timed.append(made.us)
        return made

    monkeypatch.setattr(edit_search, "time_draft", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(search.run(time.monotonic() + 60))
    assert sorted(one.us for one in search.versions[1:] if one.us is not None) == sorted(us for us in timed if us is not None)
    assert len(timed) == 2


def test_no_version_begins_that_cannot_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each version takes 7 seconds of a clock that the test sets."""
    clock, limits = [100.0], list[tuple[float, float]]()

    def timed(draft: Draft, seconds: float, arguments: object = None) -> Timing:
        limits.append((clock[0], seconds))
        clock[0] += 7
        return Timing(us=10.0)

    monkeypatch.setattr(edit_search, "time_draft", timed)
    monkeypatch.setattr(edit_search, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    search = searching()
    search.begin()
    for _ in search.run(130.0):
        pass
    assert [start for start, _ in limits] == [100.0, 107.0, 114.0, 121.0]
    assert all(start + seconds <= 130 for start, seconds in limits[1:]), limits
    assert search.time_of({"tile": 64}, 130.0) is None and len(limits) == 4


def test_edits_that_change_roundings_are_made_only_if_asked_for() -> None:
    text = ROWS.replace("x[r, c] * 2 + 1", "x[r, c] / x[r, 0]")
    given = program(text, "scaled", rows=96, columns=8)
    plain, rounding = EditSearch(given), EditSearch(given, reassociate=True)
    (only,) = rounding.subjects.keys() - plain.subjects.keys()
    assert only.startswith("division")
