"""``stages FILE --html``: one page that says what each pass changed."""

from __future__ import annotations

import html
import re
from pathlib import Path


def test_the_page(tool, script: Path, tmp_path: Path) -> None:
    out = tmp_path / "stages.html"
    done = tool("stages", script, "--html", out)
    assert done.code == 0, done.err
    text = out.read_text()
    assert not re.search(r'(src|href)=|@import|url\(', text), "the page needs nothing from elsewhere"
    stages = tool("stages").out.split()
    assert re.findall(r"<summary><b>([\w-]+)</b>", text) == stages
    python = re.search(r'<div id="python"><pre>(.*?)</pre>', text, re.DOTALL)
    assert python is not None
    rows = re.findall(r'<span class="l" data-p.*?</span>(.*?)</span>', python[1])
    assert [html.unescape(row) for row in rows] == script.read_text().splitlines()


def test_the_changes_lead_from_the_first_stage_to_the_last(tool, script: Path, tmp_path: Path) -> None:
    """What the passes remove was there, what they add is there, and each line points to a line of the script."""
    out = tmp_path / "stages.html"
    tool("stages", script, "--html", out)
    text = out.read_text()
    final = tool("compile", script).out.splitlines()
    parts = re.findall(r"<details.*?</details>", text, re.DOTALL)
    added = {html.unescape(row) for part in parts for row in re.findall(r'<span class="l a"[^>]*>\+ (.*?)</span>', part)}
    assert any("hivm.hir.vadd" in row for row in added)
    waits = {line for line in final if "wait_flag" in line}
    assert waits <= added
    numbers = {int(number) for number in re.findall(r'<span class="l a" data-p="(\d+)"', text)}
    assert numbers <= set(range(1, len(script.read_text().splitlines()) + 1))
    assert numbers


def test_a_page_needs_a_script_with_one_kernel(tool, script: Path, tmp_path: Path) -> None:
    assert "error[T417]" in tool("stages", script).err
    assert "error[T417]" in tool("stages", "--html", tmp_path / "o.html").err
    (tmp_path / "empty.py").write_text("x = 1\n")
    assert "error[T803]" in tool("stages", tmp_path / "empty.py", "--html", tmp_path / "o.html").err
