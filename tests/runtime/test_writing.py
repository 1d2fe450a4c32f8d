"""A file is written whole or not at all, under a name that stays in its directory."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from tilelang_npu.runtime.settings.file_writing import file_name, file_names, write_whole


def test_the_file_is_written_with_its_directory_and_no_other_file(tmp_path: Path) -> None:
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


UNSAFE_NAMES = [
    "../out", "../../out", "/out", "a/../../out", "..", ".", "", "...", "~/out", "..\\out", "C:\\out", "C:out", "a\0b",
    "line\nbreak", "-rf", "nul", "con.txt", "x" * 400, "é" * 200, ".hidden", "\x1b[31m", "a:b", "<k>", "{name}", "\ud800"]


@pytest.mark.parametrize("name", UNSAFE_NAMES)
def test_a_file_name_is_one_component_of_a_path(name: str, tmp_path: Path) -> None:
    made = file_name(name)
    for style in (PurePosixPath, PureWindowsPath):
        assert style(made).parts == (made,)
    assert not made.startswith(".")
    write_whole(tmp_path / f"{made}.auto.mlir", "text")
    assert [file.name for file in tmp_path.iterdir()] == [f"{made}.auto.mlir"]
    assert file_name(made) == made


@pytest.mark.parametrize("name", ["gemm", "Gemm_2", "softmax-2", "v1.2", "größe", "bandwidth of a copy", "a=b,c"])
def test_a_usual_name_is_kept(name: str) -> None:
    assert file_name(name) == name


@pytest.mark.parametrize("name", ["nul", "CON", "con.txt", "Com1", "aux.mlir"])
def test_names_of_windows_devices_are_changed(name: str) -> None:
    assert file_name(name) == f"_{name}"


def test_file_names_differ_where_names_repeat_or_become_equal() -> None:
    names = ["k", "K", "a/b", "a_b", "k", "k-2", "x" * 400, "x" * 401, "k"]
    made = file_names(names)
    assert made[:6] == ["k", "K-2", "a_b", "a_b-2", "k-3", "k-2-2"]
    assert len({name.casefold() for name in made}) == len(names)
