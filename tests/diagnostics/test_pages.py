"""Every diagnostic has a page, and every page is right: its wrong kernel prints the text, its corrected one has no finding."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from diagnostics.pages import FOLDER, PAGES, Part, outcome, parts, title
from tilelang_npu.cli import main
from tilelang_npu.cli.explain import index
from tilelang_npu.diagnostic_codes import TITLES
from tilelang_npu.runtime.reports.mlir_bindings import installed_bindings


def ran(page: Path, part: Part) -> tuple[int, str]:
    """Returns the outcome of a part; skips the test if this machine cannot run it."""
    if page.stem == "T711" and installed_bindings() is not None:
        pytest.skip("MLIR installed_bindings are installed here")
    if page.stem == "T735" and find_spec("ray") is not None:
        pytest.skip("Ray is installed here")
    return outcome(part)


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert {page.stem for page in PAGES} == set(TITLES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_wrong_half_shows_the_text(page: Path) -> None:
    wrong, _ = parts(page)
    code, shown = ran(page, wrong)
    if sys.version_info >= (3, 11):  # before, Python does not keep the column of a call on the host's side
        assert shown == wrong.shown
    assert shown.partition("\n")[0] == wrong.shown.partition("\n")[0]
    assert f"[{page.stem}]" in shown or shown.startswith(f"{page.stem}: ")  # the latter is a warning
    assert code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_repaired_half_runs(page: Path) -> None:
    _, repaired = parts(page)
    assert repaired.files or repaired.commands
    assert ran(page, repaired) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_first_line_is_the_title_of_the_code(page: Path) -> None:
    assert page.read_text(encoding="utf-8").startswith(title(page.stem))
    assert re.fullmatch(rf"# {page.stem}: \S.*[^.]\n", title(page.stem))


def test_the_index_lists_the_pages() -> None:
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == index()


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "s302"]) == 0
    assert capsys.readouterr().out == (FOLDER / "S302.md").read_text(encoding="utf-8")
    assert main(["explain", "T999"]) == 1
    assert "there is no diagnostic T999" in capsys.readouterr().err
    assert main(["explain"]) == 0
    assert "S302  " in capsys.readouterr().out
