"""``opt``: runs passes over an .mlir file."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tilelang_npu.cli.files import read_text, write_text
from tilelang_npu.errors import TileError, render

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

__all__ = ["add_to", "opt"]

_DIVIDER = re.compile(r"^// -----.*\n?", re.MULTILINE)


def add_to(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "opt", help="run passes over an .mlir file",
        description="Parse a module, run passes over it, verify it after each, print it. Standard input for -.",
    )
    parser.add_argument("file", metavar="FILE.mlir", nargs="?", default="-")
    parser.add_argument("-p", "--passes", metavar="P,Q{option=1}", default="", help="passes in order; `opt --list` names them")
    parser.add_argument("--list", action="store_true", help="list the passes with their options")
    parser.add_argument("--print-op-generic", action="store_true", help="print every operation in the generic form")
    parser.add_argument("--print-locations", action="store_true", help="print the source line of every operation")
    parser.add_argument("--print-between-passes", action="store_true", help="print the module after each pass but the last")
    parser.add_argument("--split-input-file", action="store_true", help="process the parts between // ----- separately")
    parser.add_argument("--verify-diagnostics", action="store_true", help="print an error instead of failing with it")
    parser.add_argument("--timing", action="store_true", help="print the time of each pass to standard error")
    parser.add_argument("--allow-unregistered-dialect", action="store_true",
                        help="take operations, attributes and types of dialects that are not known, in the generic form")
    parser.add_argument("-o", "--output", metavar="OUT", help="file to write to; default standard output")
    parser.set_defaults(command=opt)


def opt(args: argparse.Namespace) -> int:
    """Runs the passes."""
    if args.list:
        _list()
        return 0
    passes = _passes(args.passes)
    text = read_text(args.file)
    chunks = _DIVIDER.split(text) if args.split_input_file else [text]
    printed: list[str] = []
    line = 0
    for number, chunk in enumerate(chunks):
        if number:
            printed.append("// -----")
        try:
            printed += _run(chunk, args, passes, line)
        except TileError as error:
            if not args.verify_diagnostics:
                raise
            printed.append(render(error))
        line += chunk.count("\n") + 1
    write_text(args.output, "\n".join(printed))
    return 0


def _run(text: str, args: argparse.Namespace, passes: Sequence[ModulePass], first_line: int) -> list[str]:
    from xdsl.dialects.func import FuncOp

    from tilelang_npu.dialects.context import make_context
    from tilelang_npu.dialects.text import location_of, parse_module, print_module, verify_module

    printed: list[str] = []
    # empty lines before the text, so that a part of a split file has the line numbers of the file
    module = parse_module("\n" * first_line + text, "<stdin>" if args.file == "-" else args.file,
                          allow_unregistered=args.allow_unregistered_dialect, empty=args.split_input_file)

    for function in module.walk() if passes else ():
        if isinstance(function, FuncOp) and len(function.body.blocks) != 1:
            raise TileError(f"{function.sym_name.data} has {len(function.body.blocks)} blocks; passes work on functions of one",
                            code="T602", location=location_of(function), help="write loops and branches as scf ops")

    def show() -> str:
        return print_module(module, generic=args.print_op_generic, locations=args.print_locations).rstrip("\n")

    context = make_context()
    for position, made in enumerate(passes):
        started = time.perf_counter()
        made.apply(context, module)
        verify_module(module)
        if args.timing:
            print(f"{(time.perf_counter() - started) * 1000:9.2f} ms  {made.name}", file=sys.stderr)
        if args.print_between_passes and position < len(passes) - 1:
            printed += [f"// after {made.name}", show()]
    return [*printed, show()]


def _passes(spec: str) -> list[ModulePass]:
    """The passes that a pipeline text names.

    Raises:
        TileError: T805, an unknown pass, an unknown option, or a text that is not a list of passes.
    """
    from xdsl.utils.arg_spec import parse_pipeline
    from xdsl.utils.exceptions import ArgSpecParseError

    from tilelang_npu.transforms import pipeline

    known = pipeline.passes()
    made: list[ModulePass] = []
    try:
        for part in parse_pipeline(spec) if spec else ():
            found = known.get(part.name)
            if found is None:
                near = get_close_matches(part.name, known, n=1)
                raise TileError(f"there is no pass {part.name!r}", code="T805", notes=["the passes are " + ", ".join(known)],
                                help=f"did you mean {near[0]}?" if near else "opt --list shows them with their options")
            made.append(found.from_spec(part))
    except (ArgSpecParseError, ValueError, TypeError) as error:
        raise TileError(f"the passes {spec!r} cannot be read: {error}", code="T805",
                        help="write them as first,second{option=1}") from None
    return made


def _list() -> None:
    from xdsl.passes import get_pass_option_infos

    from tilelang_npu.transforms import pipeline

    for name, made in pipeline.passes().items():
        options = [f"{o.name}={o.default_value}" if o.default_value else o.name for o in get_pass_option_infos(made)]
        print(name + (f"{{{' '.join(options)}}}" if options else ""))
        print("    " + (made.__doc__ or "").strip().splitlines()[0])
