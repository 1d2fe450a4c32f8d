"""The files that ``--watch`` observes: scripts and texts in the folder of a file, by modification time and size."""

from __future__ import annotations

from pathlib import Path

from tilelang_npu.cli.watching import _state


def test_changes_of_scripts_in_the_folder_count_and_of_other_files_do_not(tmp_path: Path) -> None:
    script, text = tmp_path / "kernel.py", tmp_path / "kernel.mlir"
    script.write_text("a")
    before = _state({tmp_path})
    (tmp_path / "notes.txt").write_text("b")
    assert _state({tmp_path}) == before
    text.write_text("c")
    more = _state({tmp_path})
    assert {*more} == {script, text}
    script.write_text("longer")
    assert _state({tmp_path}) != more
