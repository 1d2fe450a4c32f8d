"""Edits written as changes of a file: the text after them, and that it is still Python."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
from tilelang_npu.dialects.ir.changes import InFront, OwnBuffer, Rounds, Unpinned
from tilelang_npu.errors import Location
from tilelang_npu.runtime.reports import source_edits
from tilelang_npu.source_changes import SourceChange, apply_changes

SCRIPT = textwrap.dedent('''\
    import tilelang_npu as tilelang
    import tilelang_npu.language as T

    WIDTH = 64


    @tilelang.jit(out_idx=[-1], target="npuir", pass_configs={"tl.disable": ["hoist-loads", "banks"]})
    def add(rows, columns, height=16, *,
            stages=2, width=64):
        @T.prim_func
        def main(X: T.Tensor((rows, columns), "float32"), B: T.Tensor((1, columns), "float32"),
                 Y: T.Tensor((rows, columns), "float32")):
            with T.Kernel(rows // height, is_npu=True) as (block, _):
                x = T.alloc_shared((height, columns), "float32")
                b = T.alloc_shared((1, columns), "float32")
                # The bias of each column.
                for t in T.serial(1, 3):
                    T.copy(B, b)
                    T.copy(X[block * height, 0], x)
                    T.vadd(x, b, x)
                    T.barrier_all(); T.vexp(x, x)
                    T.barrier_all()
                for t in T.Pipelined(2,
                                     num_stages=stages):
                    T.copy(
                        X[block * height, 0],
                        x,
                    )
                for t in range(4):
                    T.barrier_all()
                for t in T.Persistent([4], 2, block):
                    T.copy(x, Y[block * height, 0])
                T.copy(x, Y[block * height, 0])

        return main


    kernel = add(
        256, 256, width=WIDTH,
        height=16)
    ''')


def line_of(text: str, *, script: str = SCRIPT, nth: int = 0) -> int:
    """The number of the n-th line of a script that begins with a text."""
    return [number for number, line in enumerate(script.splitlines(), 1) if line.strip().startswith(text)][nth]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def at(script: Path, text: str, nth: int = 0) -> Location:
    return Location(str(script), line_of(text, nth=nth))


def changed(script: Path, changes: Sequence[SourceChange]) -> list[str]:
    """The lines that changes add to a script and remove from it, after ``+`` and ``-``; what is made is still Python."""
    assert changes
    before = script.read_text(encoding="utf-8")
    after = apply_changes(before, changes)
    ast.parse(after)
    return [row for row in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
            if row[0] in "+-" and row[:3] not in ("+++", "---")]


def test_stages_of_a_serial_loop_and_of_a_pipelined_one(script: Path) -> None:
    assert changed(script, source_edits.change_stages(at(script, "for t in T.serial"), 2)) == [
        "-            for t in T.serial(1, 3):", "+            for t in T.Pipelined(1, 3, num_stages=2):"]
    assert changed(script, source_edits.change_stages(at(script, "for t in range"), 3)) == [
        "-            for t in range(4):", "+            for t in T.Pipelined(4, num_stages=3):"]
    assert changed(script, source_edits.change_stages(at(script, "for t in T.Pipelined"), 4)) == [
        "-                                 num_stages=stages):", "+                                 num_stages=4):"]


@pytest.mark.parametrize("text", ["for t in T.Persistent", "T.copy(B, b)", "return main"])
def test_stages_are_not_written_where_there_is_no_such_loop(script: Path, text: str) -> None:
    assert source_edits.change_stages(at(script, text), 2) == ()
    assert source_edits.change_stages(Location("<string>", 3), 2) == ()
    assert source_edits.change_stages(None, 2) == ()


def test_a_load_moves_before_its_loop(script: Path) -> None:
    assert changed(script, source_edits.hoist_load(InFront(at(script, "T.copy(B, b)"), at(script, "for t in T.serial")))) == [
        "+            T.copy(B, b)", "-                T.copy(B, b)"]
    # Its only statement leaves a loop that still needs one, and a statement of several lines moves whole.
    loop = at(script, "for t in T.Pipelined")
    assert changed(script, source_edits.hoist_load(InFront(at(script, "T.copy(", 2), loop))) == [
        "+            T.copy(", "+                X[block * height, 0],", "+                x,", "+            )",
        "-                T.copy(", "-                    X[block * height, 0],", "-                    x,",
        "-                )", "+                pass"]


def test_a_load_that_needs_the_loop_stays(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("for t in T.serial(4):\n    i = t * 2\n    T.copy(X[i, 0], x)\n    T.copy(X[t, 0], x)\n"
                    "    a = 1; T.copy(X, x)\nT.copy(X, x)\n", encoding="utf-8")
    for line in (3, 4, 5, 6):
        assert source_edits.hoist_load(InFront(Location(str(path), line), Location(str(path), 1))) == ()


def test_barriers_are_removed_where_they_are_alone(script: Path) -> None:
    places = [at(script, "T.barrier_all()", 1), at(script, "T.barrier_all()", 2)]
    assert changed(script, source_edits.remove_statements(places)) == [
        "-                T.barrier_all()", "-                T.barrier_all()", "+                pass"]
    assert source_edits.remove_statements([*places, at(script, "T.barrier_all();")]) == ()
    assert source_edits.remove_statements([*places, None]) == ()
    assert source_edits.remove_statements([]) == ()


def test_a_text_leaves_the_list_that_has_it(script: Path) -> None:
    (row,) = source_edits.remove_from_list(at(script, "@tilelang.jit"), "banks")
    assert row.after[0].endswith('pass_configs={"tl.disable": ["hoist-loads"]})')
    assert source_edits.remove_from_list(at(script, "@tilelang.jit"), "sink-buffers") == ()


def test_a_buffer_gets_another_one_from_a_line_on(script: Path) -> None:
    """From the first statement that writes it without reading it; not from one that also reads it."""
    place = at(script, "x = T.alloc_shared")
    edit = OwnBuffer("x", place, at(script, "T.copy(", 2))
    assert changed(script, source_edits.add_own_buffer(edit)) == [
        '+            x_2 = T.alloc_shared((height, columns), "float32")',
        "-                    x,", "+                    x_2,",
        "-                T.copy(x, Y[block * height, 0])", "-            T.copy(x, Y[block * height, 0])",
        "+                T.copy(x_2, Y[block * height, 0])", "+            T.copy(x_2, Y[block * height, 0])"]
    assert source_edits.add_own_buffer(OwnBuffer("x", place, at(script, "T.vadd(x, b, x)"))) == ()
    assert source_edits.add_own_buffer(OwnBuffer("y", place, at(script, "T.vadd(x, b, x)"))) == ()


def test_an_inserted_line_and_a_replaced_one_at_the_same_place(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("def main():\n    x = T.alloc_ub((8,), 'int8')\n    T.copy(A, x)\n    T.copy(x, B)\n", encoding="utf-8")
    made = source_edits.add_own_buffer(OwnBuffer("x", Location(str(path), 2), Location(str(path), 3)))
    assert apply_changes(path.read_text(encoding="utf-8"), made).splitlines()[1:] == [
        "    x = T.alloc_ub((8,), 'int8')", "    x_2 = T.alloc_ub((8,), 'int8')", "    T.copy(A, x_2)", "    T.copy(x_2, B)"]


def test_an_address_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("a = T.alloc_ub((8,), 'int8')\nb = T.alloc_ub((8,), 'int8')\nT.annotate_address({a: 0, b: 256})\n"
                    "é = T.alloc_ub((8,), 'int8'); T.annotate_address({é: 0})\n", encoding="utf-8")
    assert changed(path, source_edits.remove_address(Unpinned(Location(str(path), 2)))) == [
        "-T.annotate_address({a: 0, b: 256})", "+T.annotate_address({a: 0})"]
    assert source_edits.remove_address(Unpinned(Location(str(path), 3))) == ()


def test_fewer_blocks_loop_over_the_grid(script: Path) -> None:
    assert source_edits.add_persistent_loop(Rounds(at(script, "for t in T.serial"), 8)) == (), "a block has such a loop already"
    text = SCRIPT.replace("T.Persistent([4], 2, block)", "T.serial(4)")
    script.write_text(text, encoding="utf-8")
    after = apply_changes(text, source_edits.add_persistent_loop(Rounds(at(script, "for t in T.serial"), 8))).splitlines()
    begin = line_of("with T.Kernel") - 1
    assert after[begin:begin + 8] == [
        "        with T.Kernel(8, is_npu=True) as (core, _):",
        '            x = T.alloc_shared((height, columns), "float32")',
        '            b = T.alloc_shared((1, columns), "float32")',
        "            # The bias of each column.",
        "            for block in T.Persistent([rows // height], 8, core):",
        "                for t in T.serial(1, 3):",
        "                    T.copy(B, b)",
        "                    T.copy(X[block * height, 0], x)"]
    ast.parse("\n".join(after))


@pytest.mark.parametrize(("body", "loop_at"), [
    (["T.copy(X[b], x)", "y = T.alloc_shared((8,), 'int8')", "T.copy(x, y)"], 2),
    (["n = b + 1", "y = T.alloc_shared((n,), 'int8')", "T.copy(x, y)"], None),
    (["T.copy(X[b], x); y = T.alloc_shared((8,), 'int8')", "T.copy(x, y)"], None),
], ids=["moved before the loop", "size of the launch", "no line of its own"])
def test_allocations_between_statements_of_a_launch(tmp_path: Path, body: list[str], loop_at: int | None) -> None:
    path = tmp_path / "script.py"
    text = "\n".join(["with T.Kernel(100, is_npu=True) as b:", *(f"    {line}" for line in body), ""])
    path.write_text(text, encoding="utf-8")
    changes = source_edits.add_persistent_loop(Rounds(Location(str(path), 2), 48))
    assert bool(changes) is (loop_at is not None)
    if loop_at is not None:
        after = apply_changes(text, changes).splitlines()
        assert after[loop_at] == "    for b in T.Persistent([100], 48, core):"
        assert after[1] == f"    {body[1]}" and after[3:] == [f"        {body[0]}", f"        {body[2]}"]


@pytest.mark.parametrize(("call", "name", "old", "new", "rows"), [
    (lambda add: add(256, 256), "height", 16, 32,
     ["-def add(rows, columns, height=16, *,", "+def add(rows, columns, height=32, *,"]),
    (lambda add: add(256, 256), "stages", 2, 3, ["-        stages=2, width=64):", "+        stages=3, width=64):"]),
    (lambda add: add(*(256, 256)), "rows", 256, 512, None),
    (None, "height", 16, 32, ["-    height=16)", "+    height=32)"]),
    (None, "width", 64, 128, ["-WIDTH = 64", "+WIDTH = 128"]),
    (None, "rows", 256, 512, ["-    256, 256, width=WIDTH,", "+    512, 256, width=WIDTH,"]),
    (None, "columns", 128, 512, None),  # another number than the call's
], ids=["default", "keyword default", "passed elsewhere", "keyword", "variable", "position", "other number"])
def test_a_number_changes_where_the_call_takes_it_from(
        script: Path, call: Callable[[Any], Any] | None, name: str, old: int, new: int, rows: list[str] | None) -> None:
    spec = importlib.util.spec_from_file_location("script_of_test", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.kernel if call is None else call(module.add)
    made = source_edits.change_number(kernel.made_by, name, old, new)
    assert (changed(script, made) if made else None) == rows
    assert source_edits.change_number(None, name, old, new) == ()


def test_changes_are_refused_for_another_text(script: Path) -> None:
    made = source_edits.change_stages(at(script, "for t in T.serial"), 2)
    with pytest.raises(ValueError, match=r"line 17 of .*script.py is not the line that the change replaces"):
        apply_changes("\n" + SCRIPT, made)


def test_a_long_change_is_shown_in_part() -> None:
    change = SourceChange("f.py", 3, tuple("abcdef"), tuple("ghijkl"))
    assert str(change).splitlines() == ["- a", "- b", "- c", "- d", "- e", "- f", "+ g", "  and 5 lines more"]
    assert change.to_dict() == {"file": "f.py", "line": 3, "before": list("abcdef"), "after": list("ghijkl")}


@pytest.mark.parametrize("call", ["scale(x, 8)", "scale.compile(N=64, tile=8)", "scale.compile(tile=8, X=x)"])
def test_a_number_of_a_function_that_contains_its_kernel_changes_in_the_call(tmp_path: Path, call: str) -> None:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(f'''\
        import numpy as np
        import tilelang_npu as tilelang
        import tilelang_npu.language as T

        @tilelang.jit
        def scale(X, tile):
            N = T.const("N")
            X: T.Tensor((N,), "float32")
            Y = T.empty((N,), "float32")
            with T.Kernel(T.ceildiv(N, tile), threads=128) as block:
                x = T.alloc_shared((tile,), "float32")
                T.copy(X[block * tile], x)
                T.copy(x, Y[block * tile])
            return Y

        x = np.ones(64, np.float32)
        made = {call}
        kernel = made if hasattr(made, "made_by") else scale.compile(x, 8)
        '''), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("script_of_test", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.kernel
    assert kernel.made_by.arguments()["tile"] == 8
    changes = source_edits.change_number(kernel.made_by, "tile", 8, 16)
    assert changed(path, changes) == [f"-made = {call}", f"+made = {call.replace('8', '16')}"]
    assert "memref<16xf32" in tilelang.compile(kernel.made_by.prim_func({"tile": 16})).mlir("tile")
