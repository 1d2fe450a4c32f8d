"""The command ``check``, which finds hazards (races, broken flags, hangs, invalid accesses) in kernels without running them."""

from __future__ import annotations

import argparse
import ast
import contextlib
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.cli.files import read_text
from tilelang_npu.cli.github_annotations import lines
from tilelang_npu.cli.parser import Commands
from tilelang_npu.cli.sanitizing import add_sanitizer, conclude, sanitizer_of, show
from tilelang_npu.cli.script import Outcome, add_gpu, chosen, execute, gpu_of
from tilelang_npu.cli.selection import HELP, Asked, asked, kernels_of, offered
from tilelang_npu.cli.sim import add_choice, blocks_of, filled, parameters_of, programs_of, size_of
from tilelang_npu.cli.watching import watch
from tilelang_npu.errors import TileError, render
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.jit import recording
from tilelang_npu.runtime.reports.static_checker import ASSUMED_SIZE, Checker, KernelCheck
from tilelang_npu.runtime.settings.environment import most_ops
from tilelang_npu.sharing import parse_python

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator.run.arguments import FunctionParameter
    from tilelang_npu.simulator.sanitizer.findings import Finding
    from tilelang_npu.target import Chip

__all__ = ["ScriptCheck", "add_to", "check", "check_script"]

_COLUMNS = 120
"""The number of columns at which the list of what is open is wrapped."""
_FLAT = 1 << 22
"""The number of elements that is assumed for a flat tensor of dynamic size in an .mlir file; kernels with assumed sizes access
fewer."""


def add_to(commands: Commands) -> None:
    """Adds the command ``check`` to the parser."""
    parser = commands.add_parser(
        "check", help="look for races, broken flags, hangs and invalid accesses without running a kernel",
        description=HELP + " Each launch of a kernel is checked instead of run, and computes no values. The script's"
                    " assertions are left out, and the script's output goes to standard error. The kernels of an .mlir file are"
                    " lowered as by `sim` and then checked. The exit code is 1 if something is found.",
    )
    parser.add_argument("files", metavar="FILE[:KERNEL[#N]]", nargs="+")
    parser.add_argument("--format", choices=("text", "github"), default="text",
                        help="the format of the findings; github also prints a line for each finding that GitHub's workflows"
                             " show at the source line (default: text)")
    parser.add_argument("--watch", action="store_true",
                        help="check again whenever a script in the same folder changes, until Ctrl-C")
    parser.add_argument("--size", metavar="NAME=N", action="append", default=[],
                        help=f"for kernels that the script does not call: the value of a symbolic dimension (default "
                             f"{ASSUMED_SIZE}) or of a number parameter (default 1)")
    add_choice(parser)
    parser.add_argument("--chip", metavar="NAME",
                        help="the chip, or a file that describes chips, for kernels that name no chip")
    add_sanitizer(parser, always=True)
    add_gpu(parser)
    parser.set_defaults(command=check)


def check(args: argparse.Namespace) -> int:
    """Checks the kernels of each file that the arguments name, prints the findings, and returns the exit code."""
    if args.watch:
        watch(args.files, args.words)
    if len(args.files) > 1 and args.report:
        raise TileError("--report can only be used with one file", code="T417",
                        help="check one file at a time, each with its own report")
    worst = 0
    for file in args.files:
        args.file = file
        try:
            worst = max(worst, _one(args))
        except TileError as error:
            _annotate(args, [], [error])
            if len(args.files) == 1:
                raise
            print(f"\n{render(error)}", file=sys.stderr)
            worst = 1
    return worst


def _annotate(args: argparse.Namespace, findings: Sequence[Finding], errors: Sequence[TileError]) -> None:
    if args.format == "github":
        for line in lines(findings, errors):
            print(line, flush=True)


def _one(args: argparse.Namespace) -> int:
    sizes = dict(map(size_of, args.size))
    if args.file.endswith(".mlir") or args.file == "-":
        return _text(args, _checker(args, sizes).session, sizes)
    for name in ("blocks", "kernel"):
        if getattr(args, name):
            raise TileError(f"--{name} can only be used with .mlir files", code="T417",
                            help="a script states the grids itself; FILE:KERNEL selects one of a script's kernels")
    with chosen(chip=args.chip, gpu=gpu_of(args)):
        return _script(args, sizes)


# -- scripts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScriptCheck:
    """The result of the check of a script.

    Attributes:
        code: the exit code of the script.
        outcome: the outcome of the script's run.
        kernels: the kernels that were checked.
        checker: the checker with the results.
        idle: an error for each given size that no check has used.
    """

    code: int
    outcome: Outcome
    kernels: Sequence[JITKernel]
    checker: Checker
    idle: Sequence[TileError]

    @property
    def errors(self) -> list[TileError]:
        """The errors of the script and of the given sizes, without those that the checks of kernels have found."""
        ended = self.outcome.error
        return [*([ended] if isinstance(ended, TileError) else []), *self.idle]


def check_script(spec: str, make_checker: Callable[[Callable[[CompiledKernel], bool] | None], Checker]) -> ScriptCheck:
    """Runs a script with checks of its kernels in place of their launches.

    The script's output and complaint go to standard error.

    Args:
        spec: the script, and optionally one of its kernels, as on the command line.
        make_checker: returns a checker; its argument is the checker's ``wanted``.

    Raises:
        TileError: T803, the script compiles no kernel, or not the named one; T801, the file does not exist.
    """
    wanted = asked(spec)
    checker = make_checker(None)

    def run(path: Path, module_name: str) -> Outcome:
        nonlocal checker  # a script may be imported first and then run: its kernels are checked once
        chosen_only = wanted if module_name == "__main__" else Asked(wanted.file)
        checker = make_checker(lambda kernel: any(
            kernel is one for one in offered(recording.kernels_so_far(), chosen_only)))
        with contextlib.redirect_stdout(sys.stderr):
            outcome = execute(path, [], module_name, checker=checker, transform=_WithoutAssertions().visit,
                              transforms_imports=True)
        if outcome.complaint:
            print(outcome.complaint, file=sys.stderr)
            if checker.looks and not isinstance(outcome.error, TileError):
                print("note: launches compute nothing here; the script was not checked after this line", file=sys.stderr)
        return outcome

    outcome, kernels = kernels_of(wanted, run)
    idle: list[TileError] = []
    if not outcome.code:
        checker.wanted = None  # all kernels of the list below are to be checked
        for kernel in kernels:
            if not checker.has_seen(kernel):
                checker.look_alone(kernel)
        idle = checker.idle()
    return ScriptCheck(outcome.code, outcome, kernels, checker, idle)


def _script(args: argparse.Namespace, sizes: dict[str, int]) -> int:
    done = check_script(args.file, lambda wanted: _checker(args, sizes, wanted))
    return max(done.code, _print_results(done.checker.looks, done.checker.session, args, done.errors, done.idle))


def _checker(args: argparse.Namespace, sizes: dict[str, int], wanted: Callable[[CompiledKernel], bool] | None = None
             ) -> Checker:
    session = sanitizer_of(args, always=True)
    assert session is not None
    return Checker(session, sizes, wanted)


_TRIED = """
try:
    pass
except Exception as _failed:
    from tilelang_npu.errors import TileError as _TileError
    if isinstance(_failed, _TileError):
        raise
"""


class _WithoutAssertions(ast.NodeTransformer):
    """Removes the comparisons of results from a script, because a check computes no results.

    A kernel that is called inside of a comparison is still called.
    """

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return self._tried(node, node.test)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Call):
            called = node.value.func
            name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            if name.startswith("assert"):
                given = [*node.value.args, *(keyword.value for keyword in node.value.keywords)]
                return self._tried(node, ast.List(given, ast.Load()))
        return node

    def _tried(self, node: ast.stmt, compared: ast.expr) -> ast.AST:
        """Returns a statement that evaluates the operands of a removed comparison, and ignores errors of this evaluation."""
        if not any(isinstance(part, ast.Call) for part in ast.walk(compared)):
            return ast.copy_location(ast.Pass(), node)
        (tried,) = parse_python(_TRIED).body
        assert isinstance(tried, ast.Try)
        for part in ast.walk(tried):
            ast.copy_location(part, node)
        tried.body = [ast.copy_location(ast.Expr(compared), node)]
        return ast.fix_missing_locations(tried)


# -- texts -------------------------------------------------------------------------------------------------------------


def _text(args: argparse.Namespace, session: Sanitizer, sizes: dict[str, int]) -> int:
    from tilelang_npu.simulator.result.static_check import check as check_program

    looks: list[KernelCheck] = []
    used: dict[str, int] = {}
    try:
        programs = programs_of(read_text(args.file), args.file, args.chip, args.kernel)
        first = programs[0]
        values = [_value(parameter, sizes, used, first.chip) for parameter in parameters_of(first.device_functions[0])]
        said = ", ".join(f"{name}={value}" + ("" if name in sizes else " (assumed)") for name, value in used.items())
        for program, blocks in zip(programs, blocks_of(programs, args.file, args.blocks), strict=True):
            done = check_program(program, values, blocks, most_ops=most_ops())
            findings = session.judge(done.hazards, program, program.name)
            looks.append(KernelCheck(program.name, program.chip.name, blocks, said, done, findings))
    except TileError as error:
        conclude(session, args.report, error)
        raise
    idle = [TileError(f"{programs[0].name} has no dynamic size and no number parameter with the name {name}", code="T419",
                      help=f"remove --size {name}")
            for name in sizes if name not in used]
    return _print_results(looks, session, args, idle, idle)


def _value(parameter: FunctionParameter, sizes: dict[str, int], used: dict[str, int], chip: Chip) -> object:
    """Returns an argument of zeros for a parameter.

    Args:
        parameter: the parameter.
        sizes: the values of ``--size``: for a number parameter by its name, for a dynamic size by ``NAME_AXIS``.
        used: the sizes that arguments have used so far; updated.
        chip: the chip, into whose memory an array must fit.
    """

    def open_size(name: str, otherwise: int) -> int:
        used[name] = sizes.get(name, otherwise)
        return used[name]

    if parameter.shape is None:
        return parameter.element.numpy.type(open_size(parameter.name, ASSUMED_SIZE))
    assumed = _FLAT if len(parameter.shape) == 1 else ASSUMED_SIZE
    shape = [open_size(f"{parameter.name}_{axis}", assumed) if size < 0 else size for axis, size in enumerate(parameter.shape)]
    return filled(parameter, shape, chip, lambda: np.zeros(shape, parameter.element.numpy))


# -- what is printed ---------------------------------------------------------------------------------------------------


def _print_results(looks: Sequence[KernelCheck], session: Sanitizer, args: argparse.Namespace, errors: Sequence[TileError],
          idle: Sequence[TileError]) -> int:
    """Prints the findings, writes the report, and returns the exit code."""
    for number, look in enumerate(looks):
        print(("\n" if number else "") + _head(look, args.file))
        show(look.findings)
        for error in look.done.errors:
            print(f"\n{render(error)}")
    sys.stdout.flush()
    for error in idle:
        print(f"\n{render(error)}", file=sys.stderr)
    every = [*errors, *(error for look in looks for error in look.done.errors)]
    _annotate(args, session.findings, every or session.idle())
    return max(conclude(session, args.report, every), int(bool(every)))


def _head(look: KernelCheck, file: str) -> str:
    found = sum(finding.allowed is None for finding in look.findings) + len(look.done.errors)
    plural = "s" if look.blocks != 1 else ""
    lines = [f"{f'{look.kernel}  {look.blocks} block{plural}':<48}  {look.chip}"]
    if look.sizes:
        lines.append(f"  sizes     {look.sizes}")
    lines.append(f"  checked   in {look.done.milliseconds:.0f} ms: {found or 'nothing'} found")
    questions = look.done.open_questions
    for number, question in enumerate(questions):
        lines += textwrap.wrap(question, _COLUMNS, initial_indent=f"  {'' if number else 'open':<8}  ",
                               subsequent_indent=" " * 14, break_long_words=False, break_on_hyphens=False)
    if questions:
        command = f"sim {file} --npz DATA.npz" if file.endswith(".mlir") else f"run {asked(file).file}"
        lines.append(f"  to do     check a run on real data: tilelang-npu {command} --sanitize")
    return "\n".join(lines)


