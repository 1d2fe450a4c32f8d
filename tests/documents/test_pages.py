"""Every block of code in docs/ runs and prints the output on the page; every link has a target; every page is in the menu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documents import pages
from documents.pages import DOCS, PAGES, RUN, SHOWN

ROOT = DOCS.parent
EVERY = [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+)\)")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if any(block.kind in RUN for block in pages.blocks(page))
                                  and not pages.needs_torch(page)], ids=named)
def test_what_a_page_shows_is_what_its_code_does(page: Path) -> None:
    pages.check(page)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_is_run_or_is_what_a_run_prints(page: Path) -> None:
    every = pages.blocks(page)
    assert page.read_text(encoding="utf-8").count("\n```") == 2 * len(every), "a fence that is not understood"
    commands = "\n".join(block.text for block in every if block.kind == "sh")
    for before, block in zip([None, *every], every, strict=False):
        where = f"{named(page)}:{block.line}"
        if block.kind == "text" and not block.title:  # one with a title is a file
            assert before is not None and before.kind in RUN and not before.title, f"{where}: of what is this the output?"
        elif block.title and block.kind == "python":
            assert Path(block.title).name in commands or Path(block.title).stem.startswith(("test_", "conftest")), (
                f"{where}: nothing runs {block.title}")
        else:
            assert block.kind in (*RUN, *SHOWN, "text"), f"{where}: {block.kind or 'a block of no language'}"


@pytest.mark.parametrize("page", EVERY, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in LINK.findall(text):
        if re.match(r"https?://", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{named(page)}: {link}"
        if page.is_relative_to(DOCS):
            assert target.is_relative_to(DOCS), f"{named(page)}: the site has no {link}"
        if anchor:
            assert anchor in anchors(target), f"{named(page)}: {link}"


def anchors(page: Path) -> set[str]:
    """Returns the anchors of the headings; anchors of the generated reference exist only when the site is built."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_every_page_is_in_the_menu_once() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r'^ +- (?:(?:"[^"\n]+"|[^:\n]+): )?([\w./-]+\.md)$', menu, re.MULTILINE)
    assert len(listed) == len({*listed})
    pages_ = {str(page.relative_to(DOCS)) for page in PAGES} | {"diagnostics/README.md", "gallery/index.md", "tuning.md"}
    notebooks = {str(path.relative_to(DOCS).with_suffix(".md")) for path in DOCS.rglob("*.ipynb")}
    assert {*listed} == pages_ | notebooks


@pytest.mark.parametrize(("shown", "printed", "expected"), [
    ("a\nb\n", "a\nb\n", True),
    ("a\n", "a\nb\n", False), ("a ...\n", "a 1.5 us\n", True), ("a\n...\nd\n", "a\nb\nc\nd\n", True),
    ("a\n...\nd\n", "a\nd\n", True), ("a.c\n", "abc\n", False), ("...\n", "", True), ("b\n", "a\nb\n", False)])
def test_three_points_stand_for_what_is_left_out(shown: str, printed: str, expected: bool) -> None:
    assert pages.agrees(shown, printed) is expected
