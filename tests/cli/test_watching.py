"""What a watch looks at: scripts and texts beside a file, by when they were written and how long they are."""

from __future__ import annotations

from pathlib import Path

from tilelang_npu.cli.watching import _state


def test_a_change_beside_the_file_is_one_and_other_files_are_not(tmp_path: Path) -> None:
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
