"""Runs a user's script as Python would, except that ``import tilelang`` imports this package."""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import re
import runpy
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tilelang_npu import compat
from tilelang_npu.cli.forked_kernels import ForkedKernel, ForkedKernels
from tilelang_npu.cli.ranks import run_ranks
from tilelang_npu.cli.transformed_imports import transformed_imports
from tilelang_npu.compat.alias import is_own_module
from tilelang_npu.compat.outcomes import asks_for_gpu
from tilelang_npu.errors import TileError, render
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.jit.recording import Record, record
from tilelang_npu.runtime.reports.static_checker import Checker
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.targets import find_chip
from tilelang_npu.sharing import parse_python
from tilelang_npu.transforms.infra.optimisations import OPTIMISATIONS, validate_optimisations

__all__ = [
    "Outcome", "add_as", "add_gpu", "add_interpreter", "add_l2", "add_numbers", "add_schedule", "add_without", "chosen",
    "execute", "gpu_of",
]


@dataclass
class Outcome:
    """The result of running a script.

    Attributes:
        code: the exit code; 1 if the script raised an exception.
        names: the global names of the script at its end, with their values.
        record: the kernels that the script compiled and launched.
        complaint: the text of the error that ended the script; empty if the script succeeded.
        error: the exception that ended the script; None if it succeeded.
        forked: the kernels that ran in processes that the script forked.
    """

    code: int
    names: dict[str, object]
    record: Record
    complaint: str = ""
    error: BaseException | None = None
    forked: Sequence[ForkedKernel] = ()


def add_schedule(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--schedule``, which selects another legal order of a kernel's operations, to a parser."""
    parser.add_argument("--schedule", metavar="ORDER",
                        help="late, early or random:SEED: run the ops in another order that events, flags and barriers allow;"
                        " a kernel that lacks a wait possibly computes wrong numbers in this order")


def add_l2(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--l2``, which states the contents of the L2 cache at a launch, to a parser."""
    parser.add_argument("--l2", choices=("warm", "cold"),
                        help="the contents of L2 when a launch begins, for the modelled time: warm, the data that an earlier"
                             " run of the same launch left there, as when a profiler repeats a launch; cold, no data (default:"
                             " warm)")


def add_gpu(parser: argparse.ArgumentParser) -> None:
    """Adds the options ``--gpu`` and ``--gpu-capability``, which run scripts that were written for CUDA, to a parser."""
    parser.add_argument("--gpu", action="store_true",
                        help="run a script that was written for a GPU, unmodified: the device and the target \"cuda\" and"
                        " torch.cuda mean the simulated NPU")
    parser.add_argument("--gpu-capability", metavar="M.N", type=_capability,
                        help="the compute capability that such a script is told (8.0); implies --gpu")


def _capability(text: str) -> str:
    if re.fullmatch(r"\d+\.\d+", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a compute capability: two numbers with a dot, such as 9.0")
    return text


def gpu_of(args: argparse.Namespace) -> str:
    """Returns the value of ``TILELANG_NPU_GPU`` that the options of :func:`add_gpu` ask for; empty if neither was given."""
    return args.gpu_capability or ("1" if args.gpu else "")


def add_as(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--as``, which compiles kernels as TileLang-Ascend's compilers do, to a parser."""
    parser.add_argument("--as", choices=("upstream",), dest="compiler",
                        help="compile and time the kernels as TileLang-Ascend's own compilers do, which insert more waits; the"
                             " times are those of a card today. Also print the time of each source line compared with this"
                             " compiler's code")


def add_numbers(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--numbers``, which reports numerical problems, to a parser."""
    parser.add_argument("--numbers", action="store_true",
                        help="report where NaN and infinities first appear, which conversions change values, and which sums in"
                             " half precision no longer grow; the exit code does not change")


def add_without(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--without``, which switches off an optimisation, to a parser."""
    parser.add_argument("--without", metavar="NAME", action="append", default=[],
                        help=f"compile without an optimisation; may be given several times. Names: {', '.join(OPTIMISATIONS)}")


def add_interpreter(parser: argparse.ArgumentParser) -> None:
    """Adds the options ``--interpret`` and ``--against-interpreter`` to a parser."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--interpret", action="store_true",
                       help="execute kernels as Python, without compiling them: breakpoint() and print() work in them")
    group.add_argument("--against-interpreter", action="store_true",
                       help="run every call of a kernel both compiled and interpreted; if the results differ, end with an error"
                            " that names the first different element, the difference, and the source line that wrote the"
                            " element")


@contextlib.contextmanager
def chosen(*, chip: str | None = None, schedule: str | None = None, l2: str | None = None, numbers: bool = False,
           without: Sequence[str] = (), interpret: bool = False, against: bool = False,
           compiler: str | None = None, gpu: str = "") -> Iterator[None]:
    """A context manager that applies command line options, by environment variables, to kernels that are compiled and run
    inside.

    Args:
        chip: the chip of kernels that name none; None for the default chip.
        schedule: the order of operations: ``late``, ``early`` or ``random:SEED``; None for the modelled order.
        l2: the contents of the L2 cache at the start of a launch: ``warm`` or ``cold``.
        numbers: whether numerical problems (NaN, infinities, lost precision) are reported.
        without: the names of optimisations to switch off.
        interpret: whether kernels are interpreted instead of compiled.
        against: whether the results of compiled kernels are compared with the interpreter.
        compiler: ``upstream`` to compile kernels with the order and the waits of TileLang-Ascend's compilers.
        gpu: ``1``, or a compute capability such as ``9.0``, to run a script for CUDA on the simulated card; empty for no.

    Raises:
        TileError: T701, the chip is unknown; T413, the schedule is unknown, or cannot be combined with ``numbers``; T712, an
            optimisation is unknown.
    """
    given = {}
    if gpu:
        given[environment.GPU.name] = gpu
    if interpret:
        given[environment.INTERPRET.name] = "1"
    if against:
        given[environment.AGAINST.name] = "1"
    if numbers:
        given[environment.NUMBERS.name] = "1"
    if chip is not None:
        given[environment.CHIP.name] = (found := find_chip(chip, None)).file or found.name
    if without:
        given[environment.WITHOUT.name] = ",".join(validate_optimisations(without))
    if compiler is not None:
        given[environment.AS.name] = compiler
    if l2 is not None:
        given[environment.L2.name] = l2
    if schedule is not None:
        from tilelang_npu.simulator.run.reordered_execution import policy

        policy(schedule)
        given[environment.SCHEDULE.name] = schedule
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        if gpu:
            compat.uninstall_gpu()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def execute(
    path: Path, arguments: Sequence[str], module_name: str, *, sanitizer: Sanitizer | None = None,
    checker: Checker | None = None,
    names: Mapping[str, object] | None = None, transform: Callable[[ast.AST], ast.AST] | None = None,
    transforms_imports: bool = False, ranks: int | None = None,
) -> Outcome:
    """Runs a script and returns its outcome.

    Args:
        path: the path of the script.
        arguments: the arguments of the script, which become ``sys.argv[1:]``.
        module_name: the script's ``__name__``: ``"__main__"``, or another name if the part under ``if __name__ == "__main__"``
            must not run.
        sanitizer: looks for hazards in each launch of a kernel; None for no search.
        checker: checks kernels instead of running them; None to run kernels.
        names: additional global names of the script, with their values.
        transform: a function that changes the script's syntax tree before the script runs.
        transforms_imports: whether ``transform`` also changes the modules that the script imports from its folder.
        ranks: the number of processes, each with a rank, that run the script; None for this process alone.
    """
    compat.install()
    old_argv, old_path = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    with record(sanitizer=sanitizer, checker=checker, every_thread=True) as done:
        outcome = Outcome(0, {}, done)
        forked = ForkedKernels(done)

        def body() -> tuple[int, str]:
            try:
                if transform is None:
                    outcome.names = runpy.run_path(str(path), dict(names or {}), module_name)
                else:
                    tree = transform(parse_python(path.read_bytes(), str(path)))
                    with (transformed_imports(path.resolve().parent, transform) if transforms_imports
                          else contextlib.nullcontext()):
                        outcome.names = _run_tree(tree, path, module_name, names or {})
            except SystemExit as end:
                outcome.error = end
                return _exit_code(end.code)
            except TileError as error:
                outcome.error = error
                return 1, render(error)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  (whatever the script raises ends it and is shown, as in Python)
                outcome.error = error
                return 1, _short_complaint(error, path) or _traceback(error, path)
            return 0, ""

        try:
            if ranks is None:
                outcome.code, outcome.complaint = body()
            else:
                outcome.code = run_ranks(ranks, body)
        finally:
            sys.argv, sys.path[:] = old_argv, old_path
            outcome.forked = forked.close()
    return outcome


def _run_tree(tree: ast.AST, path: Path, module_name: str, names: Mapping[str, object]) -> dict[str, object]:
    """Runs a syntax tree as a module with the given name, and returns the module's global names with their values."""
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


def _short_complaint(error: BaseException, path: Path) -> str:
    """The line that replaces the traceback of a script that needs a GPU, or, with ``--gpu``, a library that is not installed;
    empty for every other error."""
    if asks_for_gpu(error) and not environment.GPU.is_on():
        what = ("the script asks for CUDA, which this machine does not have; `tilelang-npu run --gpu` runs it on the simulated"
                " NPU, unmodified")
    elif isinstance(error, ModuleNotFoundError) and error.name and environment.GPU.is_on() and not is_own_module(error.name):
        what = (f"the script imports {error.name.partition('.')[0]}, which is not installed; its TileLang kernels do not need"
                " it: install it, or make the import optional")
    else:
        return ""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return f"{path}:{own[-1].lineno}: {what}" if own else f"{path}: {what}"


def _traceback(error: BaseException, path: Path) -> str:
    """Returns the text of the traceback from the first frame of the script on.

    If the error was raised before the script began to run, the whole traceback is returned.
    """
    frames: TracebackType | None = error.__traceback__
    while frames is not None and Path(frames.tb_frame.f_code.co_filename) != path:
        frames = frames.tb_next
    shown = frames if frames is not None or isinstance(error, SyntaxError) else error.__traceback__
    return "".join(traceback.format_exception(type(error), error, shown)).rstrip("\n")
