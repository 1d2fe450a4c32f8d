"""Every mistake of this folder is tested with ``refused``, which asserts position, caret and advice."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FILES = sorted(path for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_mistake_is_asked_for_its_place(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    entered = [item.context_expr for node in ast.walk(tree) if isinstance(node, ast.With) for item in node.items]
    asked = [call for call in entered if isinstance(call, ast.Call) and ast.unparse(call.func) == "refused"]
    assert asked
    for call in asked:
        assert {"at", "help"} <= {keyword.arg for keyword in call.keywords}
    assert not any(ast.unparse(call).startswith("pytest.raises(TileError") for call in entered)
