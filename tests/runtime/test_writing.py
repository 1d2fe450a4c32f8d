"""A file is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang_npu.runtime.writing import write_whole


def test_it_is_there_with_its_directory_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "report.json"
    write_whole(path, "one")
    path.chmod(0o640)
    write_whole(path, "two é")
    assert path.read_text(encoding="utf-8") == "two é"
    assert [file.name for file in path.parent.iterdir()] == ["report.json"]
    assert path.stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half \ud800")
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]
    with pytest.raises(OSError, match=r"report\.json"):
        write_whole(path / "below", "x")


def test_a_device(tmp_path: Path) -> None:
    write_whole("/dev/null", "gone")
    assert not Path("/dev/null").is_file()
