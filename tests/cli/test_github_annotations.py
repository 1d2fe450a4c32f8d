"""An error is one workflow command in one line; characters that would end a line or a property are escaped for GitHub."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang_npu.cli.github_annotations import lines
from tilelang_npu.errors import Location, TileError


def test_an_error_is_a_line_at_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = TileError("100 % of UB\nis full", code="T104", location=Location(str(tmp_path / "a,b.py"), 3, 5), help="less")
    (line,) = lines([], [error])
    assert line == "::error file=a%2Cb.py,line=3,col=5,title=T104::100 %25 of UB%0Ais full%0Ahelp: less"


def test_an_error_without_a_place_names_none() -> None:
    assert list(lines([], [TileError("wrong", code="T801")])) == ["::error title=T801::wrong"]
