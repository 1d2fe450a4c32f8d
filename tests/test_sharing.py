"""Python source is parsed by one thread at a time."""

from __future__ import annotations

import ast
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu
from tilelang_npu.sharing import parse_python
from tilelang_npu.traced import source


def test_threads_do_not_parse_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads that are in ``ast.parse`` at the same time get a SystemError now and then."""
    inside, most, parse = 0, 0, ast.parse

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.01)
        tree = parse(*args, **kwargs)
        inside -= 1
        return tree

    monkeypatch.setattr(ast, "parse", counted)
    monkeypatch.setattr(source, "_PARSED", {})
    trees: list[ast.AST | None] = []
    threads = [threading.Thread(target=lambda: trees.append(parse_python("x = 1"))) for _ in range(3)]
    threads += [threading.Thread(target=lambda: trees.append(source.find(parse_python).node)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(trees) == 6
    assert most == 1


def test_a_tree_has_the_lines_of_the_text() -> None:
    (statement,) = parse_python("\n\nx = 1", "a.py").body
    assert statement.lineno == 3
    with pytest.raises(SyntaxError, match="invalid syntax"):
        parse_python("x =", "a.py")


def test_no_other_module_calls_the_parser() -> None:
    """``code_reads`` parses expressions, with the same lock; the plug-in of mypy may import nothing of the package."""
    root = Path(tilelang_npu.__file__).parent
    texts = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in root.rglob("*.py")}
    found = {name for name, text in texts.items() if "ast.parse(" in text}
    assert found == {"sharing.py", "runtime/cache/code_reads.py", "mypy_plugin.py"}
