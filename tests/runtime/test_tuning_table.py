"""The table of a tuning on disk: its own lines are read again, and other files are not changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.kernel.draft import Timing
from tilelang_npu.runtime.tuning.tuning_table import Table, TuningRow

TITLE = {"factory": "gemm", "chip": "Ascend910B2"}
ROWS = [TuningRow({"tile": 64}, "one", Timing(3.5)), TuningRow({"tile": 999}, "two", Timing(None, "T104", "no room")),
        TuningRow({"tile": 128}, "three", Timing(None, "", "took too long"))]


def test_a_table_goes_on_with_what_is_known_and_tries_again_what_took_too_long(tmp_path: Path) -> None:
    file = tmp_path / "table.jsonl"
    first = Table(file, TITLE)
    first.write([])
    for row in ROWS:
        first.add(row)
    with file.open("a") as broken:
        broken.write('{"config": {"ti')  # interrupted while it wrote
    assert Table(file, TITLE).known == {"one": Timing(3.5), "two": Timing(None, "T104", "no room")}


def test_the_end_writes_rows_in_order_whatever_came_first(tmp_path: Path) -> None:
    one, other = (tmp_path / name for name in ("one", "other"))
    for file, order in ((one, ROWS), (other, ROWS[::-1])):
        table = Table(file, TITLE)
        table.write([])
        for row in order:
            table.add(row)
        table.write(ROWS)
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(("text", "what"), [('{"tuning": {"factory": "softmax"}}\n', "another tuning"), ("mine\n", "not the")])
def test_a_file_of_somebody_else_is_refused_and_kept(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "table.jsonl"
    file.write_text(text)
    with pytest.raises(TileError, match=what) as raised:
        Table(file, TITLE)
    assert raised.value.code == "T736" and file.read_text() == text
