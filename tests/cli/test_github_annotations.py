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


def test_the_path_is_relative_to_the_checkout_of_a_workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repository" / "kernels").mkdir(parents=True)
    (tmp_path / "repository" / "kernels" / "a.py").write_text("")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "repository"))
    monkeypatch.chdir(tmp_path / "repository" / "kernels")
    for name in ("a.py", str(tmp_path / "repository" / "kernels" / "a.py"), "../kernels/a.py"):
        (line,) = lines([], [TileError("wrong", code="T104", location=Location(name, 3))])
        assert line == "::error file=kernels/a.py,line=3,title=T104::wrong"
    (outside,) = lines([], [TileError("wrong", code="T104", location=Location(str(tmp_path / "b.py"), 3))])
    assert outside.startswith(f"::error file={tmp_path / 'b.py'},")


@pytest.mark.parametrize("workspace", [None, "no/such/directory"])
def test_without_a_checkout_the_path_is_relative_to_the_working_directory(
        workspace: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if workspace:
        monkeypatch.setenv("GITHUB_WORKSPACE", workspace)
    (line,) = lines([], [TileError("wrong", code="T104", location=Location(str(tmp_path / "a.py"), 3))])
    assert line == "::error file=a.py,line=3,title=T104::wrong"


def test_an_error_without_a_place_names_none() -> None:
    assert list(lines([], [TileError("wrong", code="T801")])) == ["::error title=T801::wrong"]
