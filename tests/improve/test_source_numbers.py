"""The integers of a script that edits change: which are found, which values are tried, and the written text."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import EDITABLE, FACTS, edited
from tilelang_npu.runtime.improve.subjects.source_numbers import numbers
from tilelang_npu.runtime.improve.subjects.subject import ScriptTree


def test_numbers_of_the_kernel_and_no_others() -> None:
    found = {one.name: one.original for one in numbers(ScriptTree(EDITABLE, "kernel"), FACTS)}
    assert found == {"tile": 8, "stages": 2, "BLOCK": 64, "wide": 128, "wide#2": 256, "'32'": 32}


def test_a_number_is_replaced_where_it_is_written_and_comments_stay() -> None:
    tree = ScriptTree(EDITABLE, "kernel")
    by_name = {one.name: one for one in numbers(tree, FACTS)}
    assert edited(tree, by_name["BLOCK"], 32) == {4: ("BLOCK = 64  # of rows", "BLOCK = 32  # of rows")}
    assert list(edited(tree, by_name["wide#2"], 512)) == [20]
    assert edited(tree, by_name["tile"], 16)[19][1].endswith('tile=16, *, stages=2):')


def test_values_of_a_number() -> None:
    by_name = {one.name: one for one in numbers(ScriptTree(EDITABLE, "kernel"), FACTS)}
    large = [step.value for step in by_name["tile"].steps(8) if not step.fine]
    every = [step.value for step in by_name["tile"].steps(8)]
    assert large == [16, 4]
    assert {32, 2, 12, 64} <= set(every) and 8 not in every and min(every) > 0
    assert {24, 48, 128, 32} == {step.value for step in by_name["BLOCK"].steps(64) if not step.fine}, "blocks for each core"
    assert [step.value for step in by_name["stages"].steps(2)] == [1, 3, 4], "of no loop more than four"


def test_a_script_without_the_factory_has_no_numbers() -> None:
    assert list(numbers(ScriptTree(EDITABLE, "absent"), FACTS)) == []


def test_a_number_in_words() -> None:
    by_name = {one.name: one for one in numbers(ScriptTree(EDITABLE, "kernel"), FACTS)}
    assert [by_name[name].what(7) for name in ("tile", "wide#2", "'32'")] == [
        "tile = 7 in place of 8", "wide = 7 in place of 256", "7 in place of 32"]
    assert [one.line for one in by_name.values()] == [19, 19, 4, 20, 20, 32]


def test_variables_that_are_assigned_together() -> None:
    """Each number of a tuple is one of its own; variables with one literal change together."""
    allocation = "x = T.alloc_shared((tile, wide), dtype)"
    text = EDITABLE.replace("    wide = 128 if", "    high, spare = 32, 7\n    left = right = 16\n    wide = 128 if")
    tree = ScriptTree(text.replace(allocation, f"{allocation}; y = T.alloc_shared((high, left, right), dtype)"), "kernel")
    found = {one.name: one for one in numbers(tree, FACTS)}
    assert "spare" not in found
    assert list(edited(tree, found["high"], 48).values()) == [("high, spare = 32, 7", "high, spare = 48, 7")]
    assert list(edited(tree, found["left = right"], 8).values()) == [("left = right = 16", "left = right = 8")]
    assert found["left = right"].what(8) == "left = right = 8 in place of 16"
