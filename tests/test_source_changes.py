"""Changes of source files as data: what they make of a text, and what they refuse."""

from __future__ import annotations

import pytest

from tilelang_npu.source_changes import SourceChange, apply_changes

TEXT = "a\nb\nc\nd\n"


@pytest.mark.parametrize(("changes", "after"), [
    ([], TEXT),
    ([SourceChange("f", 2, ("b",), ("x", "y"))], "a\nx\ny\nc\nd\n"),
    ([SourceChange("f", 2, ("b", "c"), ())], "a\nd\n"),
    ([SourceChange("f", 1, (), ("x",))], "x\na\nb\nc\nd\n"),
    ([SourceChange("f", 5, (), ("x",))], "a\nb\nc\nd\nx\n"),
    ([SourceChange("f", 1, ("a",), ("x",)), SourceChange("f", 4, ("d",), ("y", "z"))], "x\nb\nc\ny\nz\n"),
    ([SourceChange("f", 2, (), ("x",)), SourceChange("f", 2, ("b",), ("y",))], "a\nx\ny\nc\nd\n"),
], ids=["none", "replaced", "removed", "before the first line", "after the last line", "two", "both at one line"])
def test_a_text_after_changes(changes: list[SourceChange], after: str) -> None:
    assert apply_changes(TEXT, changes) == after
    assert apply_changes(TEXT, changes[::-1]) == after, "the order of the changes does not matter"
    assert apply_changes(TEXT.rstrip("\n"), changes) == after.rstrip("\n"), "no newline is added at the end"


def test_other_lines_are_refused() -> None:
    for change in (SourceChange("f.py", 2, ("c",), ()), SourceChange("f.py", 4, ("d", "e"), ())):
        with pytest.raises(ValueError, match=rf"line {change.line} of f.py is not the line that the change replaces"):
            apply_changes(TEXT, [change])


def test_a_change_is_shown_as_lines_of_a_patch() -> None:
    assert str(SourceChange("f", 2, ("b",), ("x", "y"))) == "- b\n+ x\n+ y"
    long = str(SourceChange("f", 1, ("z" * 500,), ()))
    assert long == "- " + "z" * 118
    assert SourceChange("f", 2, ("b",), ()).to_dict() == {"file": "f", "line": 2, "before": ["b"], "after": []}
