"""The command ``opt``, which runs passes over an .mlir file."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilelang_npu.cli.files import read_text, split_modules, write_text
from tilelang_npu.cli.parser import Commands
from tilelang_npu.errors import TileError, render

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

__all__ = ["add_to", "opt"]


def add_to(commands: Commands) -> None:
    """Adds the command ``opt`` to the parser."""
    parser = commands.add_parser(
        "opt", help="run passes over an .mlir file",
        description="Parse a module, run passes over the module, verify the module after each pass, and print the result. The"
                    " file - is standard input.",
    )
    parser.add_argument("file", metavar="FILE.mlir", nargs="?", default="-")
    parser.add_argument("-p", "--passes", metavar="P,Q{option=1}", default="",
                        help="the passes to run, in order; see --list. @FILE reads them from a file, such as the output of"
                        " stages --pipeline")
    parser.add_argument("--list", action="store_true", help="list the passes with their options")
    parser.add_argument("--print-op-generic", action="store_true", help="print every operation in the generic form")
    parser.add_argument("--print-locations", action="store_true", help="print the source line of every operation")
    parser.add_argument("--remarks", action="store_true", help="print the remarks of the passes to standard error")
    parser.add_argument("--print-between-passes", action="store_true", help="print the module after each pass but the last")
    parser.add_argument("--split-input-file", action="store_true",
                        help="process the parts of the file between lines // ----- separately")
    parser.add_argument("--verify-diagnostics", action="store_true",
                        help="print errors to the output, and succeed in spite of them")
    parser.add_argument("--timing", action="store_true", help="print the time of each pass to standard error")
    parser.add_argument("--allow-unregistered-dialect", action="store_true",
                        help="accept operations, attributes and types of unknown dialects, in the generic form")
    parser.add_argument("-o", "--output", metavar="OUT", help="the file to write to (default: standard output)")
    parser.set_defaults(command=opt)


def opt(args: argparse.Namespace) -> int:
    """Runs the passes that the arguments name over the modules of the file, prints the modules, and returns the exit code."""
    if args.list:
        _list()
        return 0
    passes = _read_passes(args.passes)
    text = read_text(args.file)
    printed: list[str] = []
    for number, part in enumerate(split_modules(text) if args.split_input_file else [text]):
        if number:
            printed.append("// -----")
        try:
            printed += _run(part, args, passes)
        except TileError as error:
            if not args.verify_diagnostics:
                raise
            printed.append(render(error))
    write_text(args.output, "\n".join(printed))
    return 0


def _run(text: str, args: argparse.Namespace, passes: Sequence[ModulePass]) -> list[str]:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from tilelang_npu.dialects.context import make_context
    from tilelang_npu.dialects.ir.remarks import REFUSED, module_remarks
    from tilelang_npu.dialects.text import location_of, parse_module, print_module, verify_module

    printed: list[str] = []
    module = parse_module(text, "<stdin>" if args.file == "-" else args.file,
                          allow_unregistered=args.allow_unregistered_dialect, empty=args.split_input_file)

    for function in module.walk() if passes else ():
        if isinstance(function, FuncOp) and len(function.body.blocks) != 1:
            raise TileError(f"{function.sym_name.data} has {len(function.body.blocks)} blocks; passes work on functions of one",
                            code="T602", location=location_of(function), help="write loops and branches as scf ops")

    # A file of several modules is read as a module that contains them; passes work on the module of a kernel.
    inner = [op for op in module.ops if isinstance(op, ModuleOp)]
    parts = inner if len(inner) > 1 and len(inner) == len(list(module.ops)) and not module.attributes else [module]

    def show() -> str:
        texts = (print_module(part, generic=args.print_op_generic, locations=args.print_locations) for part in parts)
        return "\n// -----\n".join(text.rstrip("\n") for text in texts)

    context = make_context()
    for position, made in enumerate(passes):
        started = time.perf_counter()
        for part in parts:
            made.apply(context, part)
        verify_module(module)
        if args.timing:
            print(f"{(time.perf_counter() - started) * 1000:9.2f} ms  {made.name}", file=sys.stderr)
        if args.print_between_passes and position < len(passes) - 1:
            printed += [f"// after {made.name}", show()]
    for remark in module_remarks(module) if args.remarks else ():
        where = f"line {remark.place.line}: " if remark.place is not None else ""
        edit = f"; to have it: {remark.edit}" if remark.kind == REFUSED else ""
        print(f"{remark.about}: {where}{remark.text}{edit}", file=sys.stderr)
    return [*printed, show()]


def _read_passes(given: str) -> list[ModulePass]:
    """Returns the passes that a text, or the file F in ``@F``, lists. Lines that begin with // are comments."""
    text = read_text(given[1:]) if given.startswith("@") else given
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
    if not text.strip():
        return []
    from tilelang_npu.transforms.pipeline import passes_of_text

    return passes_of_text(text)


def _list() -> None:
    from tilelang_npu.transforms import pipeline
    from tilelang_npu.transforms.infra.pass_options import options_of, summary_of

    for name, pass_type in pipeline.passes().items():
        options = options_of(pass_type)
        defaults = " ".join(f"{option.name}={option.default}" for option in options)
        print(name + (f"{{{defaults}}}" if defaults else ""))
        print("    " + summary_of(pass_type))
        for option in options:
            print(f"      {option.name} ({option.kind}): {option.doc}")
