"""Runs a user's script as Python would, with ``import tilelang`` meaning this package."""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import runpy
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tilelang_npu import compat
from tilelang_npu.errors import TileError, render
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.jit.recording import Record, record
from tilelang_npu.runtime.reports.static_checker import Checker
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.targets import find_chip
from tilelang_npu.transforms.ir.optimisations import OPTIMISATIONS, checked

__all__ = ["Outcome", "add_interpreter", "add_numbers", "add_schedule", "add_without", "chosen", "execute"]


@dataclass
class Outcome:
    """The result of a script.

    Attributes:
        code: its exit code; 1 where it raised.
        names: the names of its module.
        record: the kernels that it compiled and ran.
        complaint: the error that ended it, as text to be printed; empty where it succeeded.
        error: the exception that ended it.
    """

    code: int
    names: dict[str, Any]
    record: Record
    complaint: str = ""
    error: BaseException | None = None


def add_schedule(parser: argparse.ArgumentParser) -> None:
    """Adds ``--schedule``."""
    parser.add_argument("--schedule", metavar="ORDER",
                        help="late, early or random:SEED: run the ops in another order that events, flags and barriers allow;"
                        " a kernel with a missing wait may then give wrong numbers")


def add_numbers(parser: argparse.ArgumentParser) -> None:
    """Adds ``--numbers``."""
    parser.add_argument("--numbers", action="store_true",
                        help="report where NaN and infinities first appear, the loss of conversions, and sums in half precision"
                        " that no longer grow; the exit code does not change")


def add_without(parser: argparse.ArgumentParser) -> None:
    """Adds ``--without``."""
    parser.add_argument("--without", metavar="NAME", action="append", default=[],
                        help=f"compile without an optimisation; may be given several times: {', '.join(OPTIMISATIONS)}")


def add_interpreter(parser: argparse.ArgumentParser) -> None:
    """Adds ``--interpret`` and ``--against-interpreter``."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--interpret", action="store_true",
                       help="execute kernels as Python, without compiling them: breakpoint() and print() work in them")
    group.add_argument("--against-interpreter", action="store_true",
                       help="compute every call compiled and interpreted; end with the first element that differs, the line"
                       " that wrote it, and by how much")


@contextlib.contextmanager
def chosen(*, chip: str | None = None, schedule: str | None = None, numbers: bool = False,
           without: Sequence[str] = (), interpret: bool = False, against: bool = False) -> Iterator[None]:
    """Applies options while the body of the ``with`` runs.

    Args:
        chip: the chip of kernels that name none.
        schedule: the order in which ops run.
        numbers: whether numbers are watched.
        without: optimisations that are left out.
        interpret: whether kernels are interpreted.
        against: whether kernels are compared with the interpreter.

    Raises:
        TileError: T701, there is no such chip; T413, there is no such schedule, or numbers cannot be watched in it; T712, there
            is no such optimisation.
    """
    given = {}
    if interpret:
        given[environment.INTERPRET.name] = "1"
    if against:
        given[environment.AGAINST.name] = "1"
    if numbers:
        given[environment.NUMBERS.name] = "1"
    if chip is not None:
        given[environment.CHIP.name] = (found := find_chip(chip, None)).file or found.name
    if without:
        given[environment.WITHOUT.name] = ",".join(checked(without))
    if schedule is not None:
        from tilelang_npu.simulator.run.reordered_execution import policy

        policy(schedule)
        given[environment.SCHEDULE.name] = schedule
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def execute(
    path: Path, arguments: Sequence[str], module_name: str, *, sanitizer: Sanitizer | None = None,
    checker: Checker | None = None,
    names: Mapping[str, object] | None = None, transform: Callable[[ast.AST], ast.AST] | None = None,
) -> Outcome:
    """Runs a script and returns its outcome.

    Args:
        path: the script.
        arguments: ``sys.argv`` after the script's name.
        module_name: ``"__main__"``, or another name where the part under ``if __name__ == "__main__"`` is not to run.
        sanitizer: looks for hazards in every run of a kernel.
        checker: checks kernels instead of running them.
        names: further names that the script sees.
        transform: changes the script's syntax tree before it runs.
    """
    compat.install()
    old_argv, old_path = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    with record(sanitizer=sanitizer, checker=checker, every_thread=True) as done:
        outcome = Outcome(0, {}, done)
        try:
            if transform is None:
                outcome.names = runpy.run_path(str(path), dict(names or {}), module_name)
            else:
                outcome.names = _run_tree(transform(ast.parse(path.read_bytes(), str(path))), path, module_name, names or {})
        except SystemExit as end:
            outcome.error = end
            outcome.code, outcome.complaint = _exit_code(end.code)
        except TileError as error:
            outcome.error = error
            outcome.code, outcome.complaint = 1, render(error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (an exception of the script is shown as Python would)
            outcome.error = error
            outcome.code, outcome.complaint = 1, _traceback(error, path)
        finally:
            sys.argv, sys.path[:] = old_argv, old_path
    return outcome


def _run_tree(tree: ast.AST, path: Path, module_name: str, names: Mapping[str, object]) -> dict[str, Any]:
    """Runs a syntax tree as the module with a name, and returns its names."""
    assert isinstance(tree, ast.Module)
    module = types.ModuleType(module_name)
    vars(module).update(names, __file__=str(path), __builtins__=__builtins__)
    before, sys.modules[module_name] = sys.modules.get(module_name), module
    try:
        exec(compile(tree, str(path), "exec", dont_inherit=True), vars(module))
    finally:
        if before is not None:
            sys.modules[module_name] = before
    return dict(vars(module))


def _exit_code(code: object) -> tuple[int, str]:
    if code is None or isinstance(code, int):
        return code or 0, ""
    return 1, str(code)


def _traceback(error: BaseException, path: Path) -> str:
    """The traceback from the script's first frame on; the whole traceback where the script was not reached."""
    frames: TracebackType | None = error.__traceback__
    while frames is not None and Path(frames.tb_frame.f_code.co_filename) != path:
        frames = frames.tb_next
    shown = frames if frames is not None or isinstance(error, SyntaxError) else error.__traceback__
    return "".join(traceback.format_exception(type(error), error, shown)).rstrip("\n")
