"""The blocks of code of the pages that need torch run and print the output on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from documents import pages

pytest.importorskip("torch", reason="the extra torch is not installed")


@pytest.mark.parametrize("page", [*filter(pages.needs_torch, pages.PAGES)], ids=lambda page: page.name)
def test_what_a_page_shows_is_what_its_code_does(page: Path) -> None:
    pages.check(page)
