"""Every file of ``tests/filecheck``: its ``RUN`` line is run, and its ``CHECK`` lines match.

The line also works in a shell; here both commands run in this process, which saves starting two interpreters for each file.
"""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options

from tilelang_npu.cli import main

ROOT = Path(__file__).resolve().parent / "filecheck"
FILES = sorted(ROOT.rglob("*.mlir"))


def _commands(file: Path) -> list[list[list[str]]]:
    """The pipelines of the ``RUN`` lines, each a list of commands."""
    marked = [line.partition("RUN:")[2] for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("// RUN:")]
    return [[shlex.split(part.replace("%s", shlex.quote(str(file)))) for part in line.split("|")] for line in marked]


def _tool(words: list[str], monkeypatch: pytest.MonkeyPatch, given: str) -> str:
    """Standard output of ``tilelang-npu`` with these words."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words[1:])
    assert code == 0, err.getvalue()
    return out.getvalue()


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipelines = _commands(file)
    assert pipelines, f"{file} has no RUN line"
    for *tools, check in pipelines:
        assert check[0] == "filecheck"
        assert tools
        text = ""
        for words in tools:
            assert words[0] == "tilelang-npu"
            text = _tool(words, monkeypatch, text)
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        verdict = io.StringIO()
        with redirect_stdout(verdict), redirect_stderr(verdict):
            code = Matcher.from_opts(parse_argv_options(check)).run()
        assert code == 0, verdict.getvalue()


def test_every_pass_has_a_file() -> None:
    from tilelang_npu.transforms.pipeline import passes

    assert sorted(set(passes()) - {file.parent.name for file in FILES}) == []
