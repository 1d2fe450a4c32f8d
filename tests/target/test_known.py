"""The sets that are derived from the chips' rows, and that no other code repeats them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tilelang_npu import target
from tilelang_npu.target import chip, known

PACKAGE = Path(target.__file__).resolve().parent.parent
# The values of HIVM's attribute; the memories in which operands of a gemm may not be; the order in which memories are tried.
OTHER_FACTS = {"dialects/hivm/enums.py", "language/matrix.py", "transforms/tile/infer_scopes/coherence.py"}


def _outside() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        if not name.startswith("target/"):
            yield name, ast.parse(file.read_text(encoding="utf-8"))


def _words(node: ast.AST) -> set[str]:
    listed = node.keys if isinstance(node, ast.Dict) else node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else ()
    return {each.value for each in listed if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def _pairs(node: ast.AST) -> list[tuple[str, ...]]:
    listed = node.keys if isinstance(node, ast.Dict) else node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else ()
    return [tuple(str(end.value) for end in each.elts if isinstance(end, ast.Constant))
            for each in listed if isinstance(each, ast.Tuple)]


def test_there_is_no_second_table_of_memories_or_paths() -> None:
    spaces = set(target.memories())
    ways = {way for one in target.chips() for way in one.ways}
    found = {f"{name}:{node.lineno}" for name, tree in _outside() if name not in OTHER_FACTS for node in ast.walk(tree)
             if isinstance(node, (ast.Dict, ast.Tuple, ast.List, ast.Set))
             and (len(_words(node) & spaces) > 2 or len(ways.intersection(_pairs(node))) > 3)}
    assert found == set()


def test_the_usual_chip_is_named_once() -> None:
    usual = target.DEFAULT.removeprefix("Ascend")
    named = {name for name, tree in _outside() for node in ast.walk(tree)
             if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.removeprefix("Ascend") == usual}
    assert named == set()
    assert target.chip(target.DEFAULT).name == target.DEFAULT == "Ascend910B2"


_NAME = re.compile(r"(ascend.*\d|(ascend)?(310|910|950)|a[2-9]$|dav-)", re.IGNORECASE)
"""How names of chips, of families and of their instruction sets begin."""


def _names_chips(node: ast.AST) -> bool:
    """Whether a constant, or one of a tuple, names a chip or a family."""
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) and _NAME.match(part.value) for part in parts)


def lines_that_ask_for_names(tree: ast.AST) -> Iterator[int]:
    """The lines at which code does one thing or another by the name of a chip or family."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            found = any(map(_names_chips, (node.left, *node.comparators)))
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", "")
            found = called in ("startswith", "endswith", "match", "search", "fullmatch", "find", "count") and any(
                map(_names_chips, node.args))
        elif isinstance(node, ast.MatchValue):
            found = _names_chips(node.value)
        elif isinstance(node, ast.Dict):
            found = any(key is not None and _names_chips(key) for key in node.keys)
        elif isinstance(node, (ast.FunctionDef, ast.Attribute)):
            name = node.name if isinstance(node, ast.FunctionDef) else node.attr
            found = re.search(r"(is|on|before|has)_(ascend|a[2-9]$|910|950)", name) is not None
        else:
            continue
        if found:
            yield node.lineno


def test_no_code_asks_for_the_name_of_a_chip_or_of_a_family() -> None:
    """The capabilities of a chip are its fields: an unknown family works like the others."""
    found = {f"{name}:{line}" for name, tree in _outside() for line in lines_that_ask_for_names(tree)}
    assert found == set()


@pytest.mark.parametrize("code", [
    "chip.family == 'A5'", "target.startswith('Ascend950')", "target.startswith(('Ascend950', 'Ascend910_95'))",
    "'910B' in name", "chip.name in ('Ascend910B2', 'Ascend910B3')", "{'A2': 1, 'A3': 2}[chip.family]",
    "hacc.is_ascend950(target)", "match name:\n  case 'a5': pass", "re.match('Ascend310B', name)"])
def test_code_that_asks_for_a_name_is_found(code: str) -> None:
    assert list(lines_that_ask_for_names(ast.parse(code)))


@pytest.mark.parametrize(("family", "name"), [("A2", "Ascend910B2"), ("A3", "Ascend910_9382"), ("A5", "Ascend910_95")])
def test_the_usual_chip_of_a_family(family: str, name: str) -> None:
    found = target.usual(family)
    assert found is not None
    assert (found.name, found.family) == (name, family)


def test_names_and_cores_of_memories() -> None:
    assert [target.name_of(space) for space in ("gm", "ub", "cbuf", "ca", "cb", "cc", "bt", "fb", "shared")] == [
        "GM", "UB", "L1", "L0A", "L0B", "L0C", "BT", "FB", "shared"]
    assert [target.core_of(space) for space in ("gm", "ub", "cbuf", "cc", "fragment")] == ["", "AIV", "AIC", "AIC", ""]
    assert [space for space in target.memories() if target.is_fractal(space)] == ["cbuf", "ca", "cb", "cc"]


def test_copy_of_hivm_goes_where_some_chip_has_a_path_for_it() -> None:
    """Each pair is a row of AscendNPU-IR's verifier."""
    assert target.pipes_of("copy") == {
        ("ub", "ub"): "V", ("gm", "cbuf"): "MTE2", ("gm", "ub"): "MTE2", ("ub", "gm"): "MTE3", ("ub", "cbuf"): "MTE3"}
    assert target.pipes_of("vadd") == {}


def test_ways_keep_matrices_as_their_memories_hold_them() -> None:
    a2 = chip("910B2")
    assert {ends: path.name for ends, path in a2.ways.items()} == {
        ("gm", "ub"): "gm_ub", ("gm", "cbuf"): "gm_l1_nd2nz", ("ub", "gm"): "ub_gm", ("ub", "ub"): "ub_ub",
        ("cbuf", "gm"): "l1_gm_nz2nd", ("cc", "gm"): "l0c_gm_nz2nd", ("cc", "cbuf"): "l0c_l1", ("cbuf", "ca"): "l1_l0a",
        ("cbuf", "cb"): "l1_l0b"}
    assert {ends for ends, path in a2.ways.items() if not a2.converts(path)} == {
        ("gm", "cbuf"), ("cbuf", "gm"), ("cbuf", "ca"), ("cbuf", "cb")}
    assert a2.ways["cc", "cbuf"].widest == 16


def test_a_registered_chip_is_found_by_name_and_counts_in_the_union(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_CHIPS", dict(known._CHIPS))
    monkeypatch.setattr(known, "_BY_KEY", dict(known._BY_KEY))
    a2 = chip("910B2")
    way = target.Path("cbuf", "ub", "MTE1", "AIC", ops=("copy",))
    mine = replace(a2, name="Ascend910X", hivm_target="Ascend910X", paths=target.table(a2.memory, *a2.paths.values(), way))
    target.register(mine)
    try:
        assert chip("910x") is mine
        assert target.pipes_of("copy")["cbuf", "ub"] == "MTE1"
        assert chip("910B2") is a2
    finally:
        monkeypatch.undo()
        target.register()
    assert ("cbuf", "ub") not in target.pipes_of("copy")
