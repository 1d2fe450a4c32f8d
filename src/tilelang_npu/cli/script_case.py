"""Runs one script of a survey in its own process: ``python -m tilelang_npu.cli.script_case FILE REPORT ROOT``.

The script is executed as by the command ``run``. Its assertions are counted: after each ``assert``, and after each call of a
function whose name begins with ``assert``, a call is inserted that counts the assertion if a kernel has run before. Text that
the script redirects into a log with ``contextlib.redirect_stdout`` or ``redirect_stderr`` is recorded too. Of the text on
standard error, the report contains the part that the script itself wrote, directly or through the standard library, and not the
text of libraries.
"""

from __future__ import annotations

import ast
import contextlib
import json
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from tilelang_npu.cli.script import execute
from tilelang_npu.compat.outcomes import of_error
from tilelang_npu.runtime.kernel import listeners

__all__ = ["main"]

_COUNT = "__tilelang_npu_held__"


class _AssertionCounter(ast.NodeTransformer):
    """Inserts the counting call after every assertion."""

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


_STDLIB = sysconfig.get_paths()["stdlib"]
_PACKAGE = Path(__file__).parent.parent
_INSTALLED = {"site-packages", "dist-packages"}


def _is_own(root: Path) -> bool:
    """Whether the code that is currently writing text is in a file below ``root``.

    The innermost stack frame outside of the standard library decides.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        path = Path(name)
        installed = path.is_relative_to(_PACKAGE) or not _INSTALLED.isdisjoint(path.parts)
        if name != __file__ and (installed or not (name.startswith("<frozen") or path.is_relative_to(_STDLIB))):
            return not installed and path.is_relative_to(root)
        frame = frame.f_back
    return False


class _Tee:
    """A stream that writes its text to another stream, and also passes the text to a function ``hear``."""

    def __init__(self, target: TextIO, hear: Callable[[str], object]) -> None:
        self._target, self._hear = target, hear

    def write(self, text: str) -> int:
        """Writes a text to the stream, and passes it to ``hear``."""
        self._hear(text)
        return self._target.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes one line after another."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._target, name)


def _hear_redirected(name: str, hear: Callable[[str], object]) -> None:
    """Replaces ``contextlib.redirect_stdout`` or ``redirect_stderr`` by a subclass whose target passes each text to ``hear``
    too."""
    redirect: Any = getattr(contextlib, name)

    def begin(self: object, new_target: TextIO) -> None:
        redirect.__init__(self, _Tee(new_target, hear))

    setattr(contextlib, name, type(name, (redirect,), {"__init__": begin}))


def main(file: Path, report: Path, root: Path) -> int:
    """Runs the script, writes the report, and returns the script's exit code.

    Args:
        file: the script.
        report: the JSON file to write.
        root: the folder of the survey.
    """
    held = 0

    def count() -> None:
        nonlocal held
        held += listeners.has_run()

    said: list[str] = []

    def hear(text: str) -> None:
        if _is_own(root):
            said.append(text)

    assert sys.__stdout__ is not None
    _hear_redirected("redirect_stdout", sys.__stdout__.write)
    _hear_redirected("redirect_stderr", hear)
    sys.stderr = _Tee(sys.stderr, hear)
    names: dict[str, object] = {_COUNT: count}
    started = time.monotonic()
    outcome = execute(file, [], "__main__", names=names, transform=_AssertionCounter().visit)
    ran = listeners.has_run()
    found: dict[str, object] = {"seconds": time.monotonic() - started, "held": held, "ran": ran, "code": outcome.code,
                             "said": "".join(said)}
    if outcome.code and outcome.error is not None:
        found["outcome"], found["reason"], found["line"] = of_error(outcome.error, root, ran)
    report.write_text(json.dumps(found), encoding="utf-8")
    sys.stdout.flush()
    if outcome.complaint:
        print(outcome.complaint, file=sys.stderr)
    return outcome.code


if __name__ == "__main__":
    sys.exit(main(*(Path(word) for word in sys.argv[1:4])))
