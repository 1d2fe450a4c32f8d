"""The command ``improve``, which searches source edits that make a kernel faster and leave its results as they are."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelang_npu.cli.files import existing, write_text
from tilelang_npu.cli.script import add_gpu, add_l2, chosen, execute, gpu_of
from tilelang_npu.cli.selection import Asked, asked
from tilelang_npu.cli.space import SIZES, check_complete, factory_of, fixed_of, sizes_of
from tilelang_npu.cli.worker_options import add_worker_options, executor_of
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.checks.rounding_spread import copied
from tilelang_npu.runtime.kernel.listeners import Listener, listen

if TYPE_CHECKING:
    from tilelang_npu.cli.script import Outcome
    from tilelang_npu.runtime.arguments.binding import BoundCall
    from tilelang_npu.runtime.improve.script_version import ScriptVersion
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel

__all__ = ["add_to", "improve"]

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>s|m|min|h)?")
_UNITS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class _FirstCalls(Listener):
    """Keeps the arguments of the first call of each kernel."""

    def __init__(self) -> None:
        self.calls: list[tuple[JITKernel, list[Any]]] = []

    def on_called(self, kernel: JITKernel, call: BoundCall) -> None:
        if all(kernel is not other for other, _ in self.calls):
            self.calls.append((kernel, copied(call.values)))

    def arguments_of(self, kernel: JITKernel) -> list[Any] | None:
        """Returns the arguments of a kernel's first call, in the order in which a caller passes them; None if there was none.
        """
        values = next((values for other, values in self.calls if other is kernel), None)
        return None if values is None else [values[position] for position in kernel.signature.inputs]


def add_to(commands: Any) -> None:
    """Adds the command ``improve`` to the parser."""
    parser = commands.add_parser(
        "improve", help="search source edits that make a kernel faster",
        description="Search edits of a kernel's source that shorten its modelled time: other numbers (tile sizes, blocks),"
                    " pipelined loops and their stages, and launches of one block for each core. Each version is compiled and"
                    " timed; the results of the best one are compared with those of the script as it is, and its run is"
                    " searched for hazards. With --arg or --size, FILE is imported, and the factory is called with the"
                    " arguments of --arg; without, FILE is run as __main__, and the slowest kernel that it runs (or the named"
                    " one) is improved with the arguments of its calls. Words after -- are arguments of the script: improve"
                    " FILE -- --rows 4096",
    )
    parser.add_argument("file", metavar="FILE[:FACTORY]", help="the script; a script with one factory needs no name")
    parser.add_argument("--arg", metavar="NAME=VALUE", nargs="+", action="extend", default=[],
                        help="arguments of the factory, such as M=4096; edits do not change them")
    parser.add_argument("--size", metavar="NAME=VALUE", nargs="+", action="extend", default=[],
                        help=f"{SIZES}; the kernel runs on generated arrays")
    parser.add_argument("--budget", metavar="TIME", type=_seconds, default=60.0,
                        help="the time for the search, such as 90s or 5min (default: 60s)")
    parser.add_argument("--trials", type=int, metavar="N",
                        help="end after N versions; with enough time, the same edits are found each time")
    add_worker_options(parser, "versions")
    parser.add_argument("--reassociate", action="store_true",
                        help="also make edits after which the results differ within the rounding of their type, such as those"
                             " that change the order of additions")
    parser.add_argument("--write", metavar="OUT.py", help="write the improved script to a file; FILE itself is allowed")
    parser.add_argument("--patch", metavar="OUT.patch", help="write the edits as a patch")
    parser.add_argument("--explain", action="store_true", help="also print why each edit saves time")
    parser.add_argument("--chip", metavar="NAME", help="the chip for kernels that name no chip; see `chips`")
    add_l2(parser)
    add_gpu(parser)
    parser.set_defaults(command=improve, arguments=[])


def _seconds(text: str) -> float:
    match = _DURATION.fullmatch(text)
    if match is None or float(match["number"]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write 90s or 5min")
    return float(match["number"]) * _UNITS[match["unit"]]


def improve(args: argparse.Namespace) -> int:
    """Searches edits, prints the report, writes what the options request, and returns the exit code."""
    from tilelang_npu.runtime.improve import needed_package
    from tilelang_npu.runtime.kernel.executors import open_executor
    from tilelang_npu.runtime.reports.profiler import Profiler

    needed_package()
    wanted = asked(args.file)
    path = existing(wanted.file)
    with chosen(chip=args.chip, l2=args.l2, gpu=gpu_of(args)):
        first_calls = _FirstCalls()
        with listen(first_calls):
            outcome = execute(path, args.arguments, path.stem if args.arg or args.size else "__main__")
        sys.stdout.flush()
        if outcome.code:
            print(outcome.complaint, file=sys.stderr)
            return outcome.code
        arguments: list[Any] | None
        if args.arg or args.size:
            program, arguments = _imported(wanted, path, outcome, args.arg), None
            if args.size:
                arguments = Profiler(program.kernel()).inputs(sizes_of(args.size))
        else:
            program, kernel = _run(wanted, path, outcome)
            arguments = first_calls.arguments_of(kernel)
        from tilelang_npu.runtime.improve.improvement import Improver

        with open_executor(executor_of(args)) as workers:
            result = Improver(program, arguments, executor=workers, reassociate=args.reassociate).run(
                args.budget, args.trials)
    print(result.explained() if args.explain else result)
    if args.write:
        write_text(args.write, result.improved)
        print(f"script {args.write}")
    if args.patch:
        write_text(args.patch, result.patch)
        print(f"patch {args.patch}")
    return 0


def _imported(wanted: Asked, path: Path, outcome: Outcome, given: list[str]) -> ScriptVersion:
    """Returns the factory's call with the arguments of ``--arg``."""
    from tilelang_npu.runtime.improve.script_version import ScriptVersion

    name, factory = factory_of(outcome.names, wanted.file, path.stem, wanted.name)
    fixed = fixed_of(factory, given)
    check_complete(factory, fixed)
    return ScriptVersion(path.read_text(encoding="utf-8"), path, name, outcome.names, (), fixed)


def _run(wanted: Asked, path: Path, outcome: Outcome) -> tuple[ScriptVersion, JITKernel]:
    """Returns the factory's call that made the slowest kernel of the script, or the slowest one of the named factory; and this
    kernel."""
    from tilelang_npu.runtime.improve.script_version import call_of

    found = [tally for tally in outcome.record.tallies if (call := call_of(tally.kernel, path)) is not None
             and wanted.name in (None, call.factory, tally.kernel.name)]
    if not found:
        what = "runs no kernel" if wanted.name is None else f"runs no kernel {wanted.name!r}"
        raise TileError(f"{wanted.file} {what} whose factory is at the top level of the file", code="T803",
                        help="call the factory's kernel in the script, or give the factory's arguments: --arg NAME=VALUE")
    kernel = max(found, key=lambda tally: tally.last.time_us).kernel
    call = call_of(kernel, path)
    assert call is not None
    return call.version(path.read_text(encoding="utf-8"), path, outcome.names), kernel
