"""The command ``compile``, which prints the MLIR of a script's kernels at any stage of the compilation."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.cli.files import write_text
from tilelang_npu.cli.parser import Commands
from tilelang_npu.cli.script import Outcome, add_gpu, add_without, chosen, execute, gpu_of
from tilelang_npu.cli.selection import HELP, asked, kernels_of

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel

__all__ = ["add_to", "compile_file", "compiled"]


def add_to(commands: Commands) -> None:
    """Adds the command ``compile`` to the parser."""
    parser = commands.add_parser(
        "compile", help="print a script's kernels as MLIR",
        description=HELP + " The kernels are printed even if the script fails after it compiled them. The script's own output"
                           " goes to standard error.",
    )
    parser.add_argument("file", metavar="FILE[:KERNEL[#N]]")
    parser.add_argument("--stage", metavar="NAME", default="hivm", help="the stage to print, see `stages` (default: hivm)")
    parser.add_argument("--chip", metavar="NAME",
                        help="the chip, or a file that describes chips, for kernels that name no chip")
    parser.add_argument("--generic", action="store_true", help="print every operation in the generic form")
    parser.add_argument("--locations", action="store_true", help="print the source line of every operation")
    parser.add_argument("--annotate", action="store_true",
                        help="print a comment for every operation: source line, bytes and cycles; for a wait or barrier"
                             " also the pass that inserted it, and the reason")
    parser.add_argument("--python", action="store_true",
                        help="print the Python and NumPy code that the simulator generates from the HIVM and executes")
    parser.add_argument("--explain", action="store_true", dest="page",
                        help="print the compiler's decisions instead of the MLIR text; with -o FILE.sarif, write the refused "
                             "optimisations as notes that editors show; with -o FILE.json, write all decisions as data")
    parser.add_argument("--no-edits", action="store_true",
                        help="with --explain, try no edits of the source, which takes from seconds to minutes")
    add_without(parser)
    add_gpu(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="the file to write to (default: standard output)")
    parser.set_defaults(command=compile_file, usage=parser.error)


def compile_file(args: argparse.Namespace) -> int:
    """Prints the kernels that the arguments name at the requested stage, and returns the exit code."""
    if args.page and (args.generic or args.locations or args.annotate or args.stage != "hivm"):
        args.usage("--explain prints no text: --stage, --generic, --locations and --annotate have nothing to act on")
    if args.python and (args.page or args.generic or args.locations or args.annotate or args.stage != "hivm"):
        args.usage("--python prints no MLIR: --explain, --stage, --generic, --locations and --annotate have nothing to act on")
    if args.no_edits and not args.page:
        args.usage("--no-edits has no effect without --explain: edits are tried for it alone")
    code, kernels = compiled(args.file, args.chip, args.without, gpu_of(args))
    if not kernels:
        return code
    with chosen(chip=args.chip):
        if args.page:
            from tilelang_npu.runtime.reports.remarks_file import is_report_name, write_remarks

            pages = [kernel.explain(edits=not args.no_edits) for kernel in kernels]
            if is_report_name(args.output):
                write_remarks(args.output, pages)
            else:
                write_text(args.output, "\n\n".join(map(str, pages)))
            return code
        if args.python:
            write_text(args.output, "\n\n".join(part for kernel in kernels for part in _python_of(kernel)))
            return code
        texts = [kernel.mlir(args.stage, generic=args.generic, locations=args.locations, annotate=args.annotate).rstrip("\n")
                 for kernel in kernels]
    write_text(args.output, "\n// -----\n".join(texts))
    return code  # kernels that a script compiled before it failed are printed too


def _python_of(kernel: JITKernel) -> Iterator[str]:
    """Yields the generated Python code of each device function of a kernel, below a comment with its name and core."""
    for program in kernel.programs:
        for function in program.functions:
            yield f"# {function.name} on {function.core}\n{function.source.rstrip()}"


def compiled(spec: str, chip: str | None, without: Sequence[str] = (), gpu: str = "") -> tuple[int, list[JITKernel]]:
    """Runs a script, and returns its exit code and the kernels that ``FILE[:KERNEL]`` names.

    Args:
        spec: the script, and optionally one of its kernels.
        chip: the chip of kernels that name none; None for the default chip.
        without: the names of optimisations to switch off.
        gpu: ``1``, or a compute capability, for a script that was written for a GPU; empty for other scripts.

    Raises:
        TileError: T803, the script succeeded, but compiled no kernel, or not the named one.
    """
    def run(path: Path, module_name: str) -> Outcome:
        with contextlib.redirect_stdout(sys.stderr):
            outcome = execute(path, [], module_name)
        if outcome.complaint:
            print(outcome.complaint, file=sys.stderr)
        return outcome

    with chosen(chip=chip, without=without, gpu=gpu):
        outcome, kernels = kernels_of(asked(spec), run)
        return outcome.code, kernels
