"""The page of known issues elsewhere names existing tests, and lists every reproducer."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = (TESTS.parent / "docs" / "known-issues-elsewhere.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`((?:\w+/|test_)[\w/.-]*)(?:::(\w+))?`", PAGE)


def test_every_test_that_the_page_names_is_there() -> None:
    assert len(NAMED) > 100
    for file, function in NAMED:
        assert (TESTS / file).exists(), file
        assert not function or f"def {function}(" in (TESTS / file).read_text(encoding="utf-8"), f"{file}::{function}"


def test_every_row_says_what_happens_here() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| [A-K]\d+ \|", line)]
    assert len({row.split("|")[1] for row in rows}) == len(rows)
    for row in rows:
        assert "::" in row or ".py`" in row or "filecheck/" in row or "not applicable: " in row, row


def test_every_reproducer_is_on_the_page() -> None:
    names = {function for _, function in NAMED}
    for file in sorted((TESTS / "reproducers").glob("test_*.py")):
        if file.name != Path(__file__).name:
            for function in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE):
                assert function in names, f"{file.name}::{function}"
