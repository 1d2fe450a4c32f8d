"""One script of a survey, in a process of its own: ``python -m tilelang_npu.cli.script_case FILE REPORT ROOT``.

The script runs as under ``run``. Its assertions are counted: behind each ``assert`` and each call of a function whose
name begins with ``assert``, in the script itself, stands a call that counts it if a kernel has run by then. What it prints
into a log of its own, by ``contextlib.redirect_stdout`` and ``redirect_stderr``, is heard too.
"""

from __future__ import annotations

import ast
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from tilelang_npu.cli.script import execute
from tilelang_npu.compat.outcomes import of_error
from tilelang_npu.runtime import launches

__all__ = ["main"]

_COUNT = "__tilelang_npu_held__"


class _Counted(ast.NodeTransformer):
    """Puts the counting call behind every assertion."""

    def _with_count(self, node: ast.stmt) -> list[ast.stmt]:
        call = ast.Expr(ast.Call(ast.Name(_COUNT, ast.Load()), [], []))
        return [node, *[ast.fix_missing_locations(ast.copy_location(call, node))]]

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """``assert x``"""
        return self._with_count(node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        """``torch.testing.assert_close(x, y)``"""
        function = node.value.func if isinstance(node.value, ast.Call) else None
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return self._with_count(node) if name.startswith("assert") else node


class _Heard:
    """A stream that a script prints into in place of its output, which gets the text as well."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def write(self, text: str) -> int:
        """Into both."""
        assert sys.__stdout__ is not None
        sys.__stdout__.write(text)
        return int(self._target.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def _hear(redirect: type[Any]) -> type[Any]:
    class Heard(redirect):  # type: ignore[misc]  # a class that is an argument
        def __init__(self, new_target: Any) -> None:
            super().__init__(_Heard(new_target))

    return Heard


def main(file: Path, report: Path, root: Path) -> int:
    """Run the script and write what is known of it but its output.

    Returns:
        The script's exit code.
    """
    held = 0

    def count() -> None:
        nonlocal held
        held += launches.clock_us() > 0

    for redirect in ("redirect_stdout", "redirect_stderr"):
        setattr(contextlib, redirect, _hear(getattr(contextlib, redirect)))
    names: dict[str, Any] = {_COUNT: count}
    started = time.monotonic()
    outcome = execute(file, [], "__main__", names=names, transform=_Counted().visit)
    ran = launches.clock_us() > 0
    found: dict[str, Any] = {"seconds": time.monotonic() - started, "held": held, "ran": ran, "code": outcome.code}
    if outcome.code and outcome.error is not None:
        found["outcome"], found["reason"], found["line"] = of_error(outcome.error, root, ran)
    report.write_text(json.dumps(found), encoding="utf-8")
    sys.stdout.flush()
    if outcome.complaint:
        print(outcome.complaint, file=sys.stderr)
    return outcome.code


if __name__ == "__main__":
    sys.exit(main(*(Path(word) for word in sys.argv[1:4])))
