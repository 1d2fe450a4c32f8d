"""The site of docs/ is built without a warning, and a browser that opens it asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the extra docs is not installed")
pytest.importorskip("material", reason="the extra docs is not installed")
ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = (r"<(?:script|img|iframe|source|video|object|embed)\b[^>]*\b(?:src|data)=\"(?:https?:)?//[^\"]*",
             r"<link\b(?=[^>]*\brel=\"?(?:stylesheet|preload|icon|preconnect|modulepreload))[^>]*href=\"(?:https?:)?//[^\"]*",
             r"@import[^;]*//[^;]*", r"url\([\"']?(?:https?:)?//[^)]*")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)], cwd=ROOT,
                          env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_it_is_built_without_a_warning(site: Path) -> None:
    pages = {str(path.relative_to(site)) for path in site.rglob("index.html")}
    assert {"index.html", "start/index.html", "language/kernels/index.html", "diagnostics/T104/index.html"} <= pages
    reference = (site / "api" / "index.html").read_text(encoding="utf-8")
    for name in ("tilelang_npu.runtime.jit.jit_kernel.JITKernel.explain", "tilelang_npu.target.chip_data.Chip"):
        assert f'id="{name}"' in reference


def test_the_notebooks_are_executed_and_name_the_cell(site: Path) -> None:
    race = (site / "notebooks" / "hunting-a-race" / "index.html").read_text(encoding="utf-8")
    assert re.search(r"SanitizerError: .*? In\[2\]:15 +T\.copy\(x, Y", race, re.DOTALL)
    first = (site / "notebooks" / "first-kernel" / "index.html").read_text(encoding="utf-8")
    assert re.search(r"error\[T104\].*?--&gt; In\[2\]:\d+:\d+", first, re.DOTALL)
    assert '<span style="color:' in first
    tuning = (site / "notebooks" / "tuning-attention" / "index.html").read_text(encoding="utf-8")
    assert re.search(r"<pre>[^<]*32 x 64 [^<]*\n[^<]*128 x 256 [^<]*</pre>", tuning), "lines of one loop stand in one block"


def test_nothing_is_asked_of_another_host(site: Path) -> None:
    for path in (*site.rglob("*.html"), *site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        for pattern in ELSEWHERE:
            assert not (found := re.findall(pattern, text, re.IGNORECASE)), f"{path.relative_to(site)}: {found[0]}"


@pytest.mark.parametrize(("text", "asks"), [
    ('<script src="https://cdn.example/x.js">', True), ('<script src="//x.example/x.js">', True),
    ('<script src="x.js">', False), ('<link rel="stylesheet" href="https://fonts.example/css">', True),
    ('<link rel="canonical" href="https://x.example/">', False),
    ('<a href="https://x.example/">', False), ("@import 'https://x.example/a.css';", True),
    ("a{background:url(//x.example/i.png)}", True)])
def test_what_asks_another_host(text: str, asks: bool) -> None:
    assert any(re.search(pattern, text, re.IGNORECASE) for pattern in ELSEWHERE) is asks
