"""What the chips' rows say together, and that nothing says it again elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tilelang_npu import target
from tilelang_npu.target import chip, known

PACKAGE = Path(target.__file__).resolve().parent.parent
# What HIVM's attribute can be; which memories the operands of a gemm may not be in; in which order homes are tried.
OTHER_FACTS = {"dialects/hivm/enums.py", "language/matrix.py", "transforms/tile/infer_scopes.py"}


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


def test_no_second_table_of_memories_or_paths_stands_outside_the_chips() -> None:
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
    """As AscendNPU-IR's verifier has it, of which each of these is a row."""
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
