"""``compile``: prints the MLIR of a script's kernels at any stage."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelang_npu.cli.files import write_text
from tilelang_npu.cli.script import Outcome, add_without, chosen, execute
from tilelang_npu.cli.selection import HELP, asked, kernels_of

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel

__all__ = ["add_to", "compile_file", "compiled"]


def add_to(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "compile", help="print a script's kernels as MLIR",
        description=HELP + " They are printed even if the script fails later; the script's own output goes to standard error.",
    )
    parser.add_argument("file", metavar="FILE[:KERNEL[#N]]")
    parser.add_argument("--stage", metavar="NAME", default="hivm", help="stage to print; default hivm, `stages` lists them")
    parser.add_argument("--chip", metavar="NAME", help="chip, or TOML file, of the kernels that name none")
    parser.add_argument("--generic", action="store_true", help="the generic form of every operation")
    parser.add_argument("--locations", action="store_true", help="the source line of every operation")
    parser.add_argument("--annotate", action="store_true",
                        help="the line, bytes and cycles of every operation, and which pass inserted it, and why")
    parser.add_argument("--explain", action="store_true", dest="page",
                        help="instead of the text, a page on the compiler's decisions; -o FILE.sarif: optimisations that it "
                             "refused, as notes that editors show, -o FILE.json: all of it as data")
    add_without(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="file to write to; default standard output")
    parser.set_defaults(command=compile_file, usage=parser.error)


def compile_file(args: argparse.Namespace) -> int:
    """Prints the kernels."""
    if args.page and (args.generic or args.locations or args.annotate or args.stage != "hivm"):
        args.usage("--explain prints no text: --stage, --generic, --locations and --annotate have nothing to act on")
    code, kernels = compiled(args.file, args.chip, args.without)
    if not kernels:
        return code
    with chosen(chip=args.chip):
        if args.page:
            from tilelang_npu.runtime.reports.remarks_file import is_report_name, write_remarks

            pages = [kernel.explain() for kernel in kernels]
            if is_report_name(args.output):
                write_remarks(args.output, pages)
            else:
                write_text(args.output, "\n\n".join(map(str, pages)))
            return code
        texts = [kernel.mlir(args.stage, generic=args.generic, locations=args.locations, annotate=args.annotate).rstrip("\n")
                 for kernel in kernels]
    write_text(args.output, "\n// -----\n".join(texts))
    return code  # kernels that a script compiled before it failed are printed too


def compiled(spec: str, chip: str | None, without: Sequence[str] = ()) -> tuple[int, list[JITKernel]]:
    """The exit code of a script, and the kernels that ``FILE[:KERNEL]`` names.

    Raises:
        TileError: T803, the script succeeds and compiles no kernel, or not the one that is named.
    """
    def run(path: Path, module_name: str) -> Outcome:
        with contextlib.redirect_stdout(sys.stderr):
            outcome = execute(path, [], module_name)
        if outcome.complaint:
            print(outcome.complaint, file=sys.stderr)
        return outcome

    with chosen(chip=chip, without=without):
        outcome, kernels = kernels_of(asked(spec), run)
        return outcome.code, kernels
