"""Lines of a checked text in a text that was edited since."""

from __future__ import annotations

from tilelang_npu.cli.checked_text import LineMap
from tilelang_npu.source_changes import SourceChange

CHECKED = ["a", "b", "c", "d"]


def test_unchanged_lines_keep_their_numbers_where_lines_are_added_and_removed() -> None:
    lines = LineMap(CHECKED, ["new", "a", "c", "other"])
    assert [lines.to_edited(number) for number in range(1, 6)] == [2, None, 3, None, None]
    assert [lines.to_checked(number) for number in range(1, 5)] == [None, 1, 3, None]


def test_the_same_text_maps_each_line_to_itself_whatever_ends_the_lines() -> None:
    lines = LineMap(CHECKED, [f"{line}\r\n" for line in CHECKED])
    assert [lines.to_edited(number) for number in range(1, 6)] == [1, 2, 3, 4, None]


def test_a_change_moves_with_its_lines_and_is_dropped_if_one_of_them_was_edited() -> None:
    change = SourceChange("f.py", 2, ("b", "c"), ("x",))
    assert LineMap(CHECKED, ["new", *CHECKED]).moved(change) == SourceChange("f.py", 3, ("b", "c"), ("x",))
    assert LineMap(CHECKED, ["a", "b", "changed", "d"]).moved(change) is None
    assert LineMap(CHECKED, ["a", "b", "between", "c", "d"]).moved(change) is None
    assert LineMap(CHECKED, CHECKED).moved(SourceChange("f.py", 2, ("other", "c"), ())) is None, "checked another text"


def test_an_insertion_moves_with_the_line_before_which_it_is() -> None:
    change = SourceChange("f.py", 3, (), ("x",))
    assert LineMap(CHECKED, ["c"]).moved(change) == SourceChange("f.py", 1, (), ("x",))
    assert LineMap(CHECKED, ["a", "b"]).moved(change) is None
