"""The stub of ``T`` for type checkers and editors has the same names as ``T``, and every function has a docstring."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import tilelang_npu.language as T
from tilelang_npu import ops
from tilelang_npu.language import stubs

PAGE = Path(T.__file__).with_suffix(".pyi")
CALLABLES = stubs.callables()
EXAMPLE = re.compile(r"^ *Example: ``(.+)``$", re.MULTILINE)
WITHOUT_EXAMPLE = {"Macro", "PrimFunc", "Sym", "dtype", *T.TOKENS}  # results of functions, and element types


def test_the_stub_is_what_the_functions_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == stubs.text(), (
        "run `tilelang-npu ops --stubs > src/tilelang_npu/language/__init__.pyi`")


def test_the_stub_has_all_names_and_no_others() -> None:
    tree = ast.parse(PAGE.read_text(encoding="utf-8"))
    (tiles,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "_Tile")
    assert [node.name for node in tiles.body if isinstance(node, ast.FunctionDef)] == dir(T.tile)
    (listed,) = (node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    assert ast.literal_eval(listed) == dir(T)
    bound = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    bound |= {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    bound |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    bound |= {ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)}
    assert set(dir(T)) <= bound
    assert not hasattr(T, "nonexistent")


@pytest.mark.parametrize("name", CALLABLES)
def test_every_callable_says_what_it_does_and_how_it_is_called(name: str) -> None:
    doc = CALLABLES[name].__doc__ or ""
    assert doc.strip()
    if name in WITHOUT_EXAMPLE:
        return
    examples = EXAMPLE.findall(doc)
    assert len(examples) == 1, doc
    called = ast.parse(examples[0].removeprefix("@"), mode="eval").body
    assert ast.unparse(called).startswith("T.")


@pytest.mark.parametrize("name", [name for name, value in CALLABLES.items() if name != "reinterpretcast" and any(
    parameter.name in ("dst", "out", "Out") for parameter in inspect.signature(value).parameters.values())])
def test_what_has_a_destination_says_that_it_is_written(name: str) -> None:
    assert re.search(r"[Ww]rit(e|es|ten)\b", CALLABLES[name].__doc__), CALLABLES[name].__doc__


@pytest.mark.parametrize("name", [name for op in (*ops.elementwise(), *ops.composites()) if op.outputs == 1
                                  for name in (op.name, *op.aliases) if name in CALLABLES
                                  and CALLABLES[name].__module__.endswith(".vector") and name != "tile.cast"])
def test_what_the_op_table_has_says_its_element_types(name: str) -> None:
    assert f"Element types: {', '.join(ops.operation(name).dtypes)}" in CALLABLES[name].__doc__
