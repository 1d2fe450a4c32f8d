"""Modules of a script's folder are imported with a changed source, and only while the script runs."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

from tilelang_npu.cli.transformed_imports import transformed_imports


class _Doubled(ast.NodeTransformer):
    """Doubles every number."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.copy_location(ast.Constant(node.value * 2), node) if isinstance(node.value, int) else node


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for place in ("inside/a_number", "inside/a_package/__init__", "inside/a_package/a_part", "outside/another_number",
                  "inside/site-packages/an_installed_number"):
        path = tmp_path / f"{place}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("NUMBER = 21\n")
    for place in ("inside", "outside", "inside/site-packages"):
        monkeypatch.syspath_prepend(tmp_path / place)
    return tmp_path / "inside"


def number(name: str) -> int:
    found: int = importlib.import_module(name).NUMBER
    sys.modules.pop(name)
    return found


def test_modules_of_the_folder_are_changed_and_others_are_not(folder: Path) -> None:
    finders = list(sys.meta_path)
    with transformed_imports(folder, _Doubled().visit):
        assert importlib.import_module("a_number").NUMBER == 42
        assert importlib.import_module("a_package.a_part").NUMBER == 42
        assert number("another_number") == number("an_installed_number") == 21
    assert sys.meta_path == finders
    assert not {"a_number", "a_package", "a_package.a_part"} & set(sys.modules)
    assert number("a_number") == 21  # no compiled file of the changed source is left


def test_the_import_path_is_as_before_after_an_error(folder: Path) -> None:
    finders = list(sys.meta_path)
    (folder / "a_mistake.py").write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError), transformed_imports(folder, lambda tree: tree):
        importlib.import_module("a_mistake")
    assert sys.meta_path == finders
    assert "a_mistake" not in sys.modules
