"""The tree of a script: edits of the same node, and names that edits introduce."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

import libcst as cst

from tilelang_npu.runtime.improve.subjects.subject import ScriptTree, all_of, called

TEXT = """\
def f(n):
    for i in T.serial(n):  # of tiles
        T.copy(A[i], B[i])
"""


def test_edits_of_one_node_are_made_one_after_the_other() -> None:
    tree = ScriptTree(TEXT, "f")
    (number,) = (one for one in all_of(tree.module, cst.Name) if one.value == "B")
    first = {id(number): lambda updated: updated.with_changes(value=updated.value + "1")}
    second = {id(number): lambda updated: updated.with_changes(value=updated.value + "2")}
    assert tree.edited(first, second) == TEXT.replace("B[i]", "B12[i]")
    assert tree.edited(second, first) == TEXT.replace("B[i]", "B21[i]")
    assert tree.edited(first) == TEXT.replace("B[i]", "B1[i]") and tree.edited() == TEXT


def test_a_node_that_became_several_statements_is_the_last_one() -> None:
    tree = ScriptTree(TEXT, "f")
    (loop,) = all_of(tree.module, cst.For)

    def after(line: str):
        return {id(loop): lambda updated: cst.FlattenSentinel([cst.parse_statement(line), updated])}

    renamed = {id(loop): lambda updated: updated.with_changes(target=cst.Name("j"))}
    assert tree.edited(after("one()"), after("two()"), renamed) == """\
def f(n):
    one()
    two()
    for j in T.serial(n):  # of tiles
        T.copy(A[i], B[i])
"""


def test_parts_of_a_node_are_edited_before_the_node() -> None:
    tree = ScriptTree(TEXT, "f")
    (loop,) = all_of(tree.module, cst.For)
    (call,) = (one for one in all_of(loop, cst.Call) if called(one, "serial"))
    outer = {id(loop): lambda updated: updated.with_changes(target=cst.Name(f"of_{len(updated.iter.args)}"))}
    inner = {id(call): lambda updated: updated.with_changes(args=[*updated.args, cst.Arg(cst.Integer("2"))])}
    for edits in ((outer, inner), (inner, outer)):
        assert "for of_2 in T.serial(n, 2):" in tree.edited(*edits)


@pytest.mark.parametrize(("wanted", "taken", "name"), [
    ("core", (), "core"), ("i", (), "i_2"), ("copy", (), "copy_2"), ("core", {"core", "core_2"}, "core_3"),
    ("i", {"i_2"}, "i_3")])
def test_names_that_are_not_used(wanted: str, taken: set[str], name: str) -> None:
    assert ScriptTree(TEXT, "f").unused_name(wanted, taken) == name


def test_the_functions_of_a_kernel_are_the_factory_and_its_macros() -> None:
    text = "@T.macro\ndef m(): other()\ndef other(): pass\n@T.macro\ndef unused(): pass\ndef f(): m()\n"
    assert [one.name.value for one in ScriptTree(text, "f").functions] == ["f", "m"]
    assert ScriptTree(text, "absent").functions == []
