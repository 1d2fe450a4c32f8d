"""The stages of loops: which loops are found, which edits are tried, and the written text."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import EDITABLE, edited
from tilelang_npu.runtime.improve.subjects.loop_stages import loops
from tilelang_npu.runtime.improve.subjects.subject import ScriptTree


def test_loops_with_copies_are_pipelined() -> None:
    tree = ScriptTree(EDITABLE, "kernel")
    (only,) = loops(tree)  # num_stages of the second is a variable, the third has no copy
    assert edited(tree, only, 2) == {
        27: ("for i in T.serial(4):  # of tiles", "for i in T.Pipelined(4, num_stages=2):  # of tiles")}
    assert [step.value for step in only.steps(0)] == [2, 3, 4]


@pytest.mark.parametrize(("before", "after"), [
    ("range(n)", "T.Pipelined(n, num_stages=3)"), ("T.serial(1, n)", "T.Pipelined(1, n, num_stages=3)"),
    ("T.Pipelined(n)", "T.Pipelined(n, num_stages=3)"), ("T.Pipelined(n, num_stages=1)", "T.Pipelined(n, num_stages=3)")])
def test_forms_of_a_loop(before: str, after: str) -> None:
    text = f"def f(n):\n    with T.Kernel(1) as b:\n        for i in {before}:\n            T.copy(a, b)\n"
    tree = ScriptTree(text, "f")
    (only,) = loops(tree)
    assert tree.edited(only.replacements(3)) == text.replace(before, after)


@pytest.mark.parametrize("loop", ["T.serial(0, n, 2)", "T.Pipelined(n, num_stages=s)", "T.unroll(n)", "T.Parallel(n)", "items"])
def test_loops_that_stay(loop: str) -> None:
    text = f"def f(n, s):\n    with T.Kernel(1) as b:\n        for i in {loop}:\n            T.copy(a, b)\n"
    assert list(loops(ScriptTree(text, "f"))) == []


def test_one_stage_is_tried_where_the_author_has_several() -> None:
    text = "def f(n):\n    with T.Kernel(1) as b:\n        for i in T.Pipelined(n, num_stages=3):\n            T.copy(a, b)\n"
    (only,) = loops(ScriptTree(text, "f"))
    assert [(step.value, step.fine) for step in only.steps(3)] == [(1, True), (2, False), (4, True)]
    assert only.original == 3 and only.what(2) == "num_stages=2 in place of 3"


def test_a_script_without_the_factory_has_no_loops() -> None:
    assert list(loops(ScriptTree(EDITABLE, "absent"))) == []
