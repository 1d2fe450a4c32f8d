"""Pages of HTML: whatever a script holds is shown and not obeyed, lines are marked, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tilelang_npu.html_sheet import document, page, row, source


class Seen(HTMLParser):
    """The text of each line, its number, and the tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.lines: list[tuple[str | None, str]] = []
        self._open = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if tag == "span" and str(given.get("class", "")).split()[:1] == ["l"]:
            self.lines.append((given.get("data-p"), ""))

    def handle_data(self, data: str) -> None:
        if self.lines:
            place, text = self.lines[-1]
            self.lines[-1] = place, text + data


def test_a_script_is_shown_line_by_line_with_its_annotations() -> None:
    seen = Seen(source("if a < b:\n    x = '<script>&amp;'\n", lambda number: f"<b>{number * 10}</b>"))
    assert seen.lines == [("1", "101if a < b:"), ("2", "202    x = '<script>&amp;'")]
    assert set(seen.tags) == {"span", "b"}


def test_a_line_has_its_kind_and_its_place_where_it_has_any() -> None:
    assert row("new", "a", 3) == '<span class="l new" data-p="3">a</span>'
    assert row("", "a", None) == '<span class="l">a</span>'


def test_a_page_escapes_its_title_and_loads_nothing() -> None:
    text = document("a<b>&c", "stages", source("x = 1"), "lead\n<p>rest</p>", style="p { color: red }", script="let y = 2;")
    assert "<title>a&lt;b&gt;&amp;c: stages</title>" in text
    assert "default-src 'none'" in text
    assert not re.search(r"\b(?:src|href)=|https?://|@import|url\(", text)
    assert text.index("<p>lead</p>") < text.index("<p>rest</p>")
    assert "p { color: red }</style>" in text
    assert "let y = 2;</script>" in text


@pytest.mark.parametrize(("script", "allowed"), [("", False), ("f()", True)])
def test_a_page_without_scripts_forbids_scripts(script: str, allowed: bool) -> None:
    text = page("a < b", "p { margin: 0 }", "<p>x</p>", script=script)
    assert "<title>a &lt; b</title><style>p { margin: 0 }</style></head><body><p>x</p>" in text
    assert ("<script>f()</script></body>" in text, "script-src" in text) == (allowed, allowed)
    assert "default-src 'none'" in text
