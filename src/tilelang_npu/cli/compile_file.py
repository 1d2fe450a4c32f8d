"""``compile``: the MLIR of a script's kernels at any stage."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelang_npu.cli.files import existing, write_text
from tilelang_npu.cli.script import Outcome, add_without, chosen, execute
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["add_to", "compile_file", "compiled", "named", "parted"]


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compile", help="print a script's kernels as MLIR",
        description="With KERNEL, the script is imported, and KERNEL is a kernel or a @T.prim_func at its top level."
                    " Without, the script runs as __main__, and every kernel it compiles is printed, also where the script"
                    " fails behind that; what the script itself prints goes to standard error.",
    )
    parser.add_argument("file", metavar="FILE[:KERNEL]")
    parser.add_argument("--stage", metavar="NAME", default="hivm", help="stage to print; default hivm, `stages` lists them")
    parser.add_argument("--chip", metavar="NAME", help="chip of the kernels that name none")
    parser.add_argument("--generic", action="store_true", help="the generic form of every operation")
    parser.add_argument("--locations", action="store_true", help="the source line of every operation")
    parser.add_argument("--explain", action="store_true", dest="page",
                        help="in place of the text a page on what the compiler made of the kernel")
    add_without(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="file to write to; default standard output")
    parser.set_defaults(command=compile_file, usage=parser.error)


def compile_file(args: argparse.Namespace) -> int:
    """Print the kernels."""
    if args.page and (args.generic or args.locations or args.stage != "hivm"):
        args.usage("--explain prints no text: --stage, --generic and --locations have nothing to act on")
    code, kernels = compiled(args.file, args.chip, args.without)
    if not kernels:
        return code
    with chosen(chip=args.chip):
        if args.page:
            write_text(args.output, "\n\n".join(str(kernel.explain()) for kernel in kernels))
            return code
        texts = [kernel.mlir(args.stage, generic=args.generic, locations=args.locations).rstrip("\n") for kernel in kernels]
    write_text(args.output, "\n// -----\n".join(texts))
    return code  # a script that failed after it compiled something is read for what it compiled


def compiled(spec: str, chip: str | None, without: Sequence[str] = ()) -> tuple[int, list[JITKernel]]:
    """The exit code of a script, and its kernels: the one that ``FILE:KERNEL`` names, or all that it compiles.

    Raises:
        TileError: T803 it ends well and compiles none.
    """
    with chosen(chip=chip, without=without):
        file, name = parted(spec)
        path = existing(file)
        with contextlib.redirect_stdout(sys.stderr):
            outcome = execute(path, [], "__main__" if name is None else path.stem)
        if outcome.complaint:
            print(outcome.complaint, file=sys.stderr)
        if outcome.code and name is not None:
            return outcome.code, []
        kernels = list(outcome.record.kernels) if name is None else [named(outcome, name, file)]
        if not kernels and not outcome.code:
            msg = f"{file} compiles no kernel"
            raise TileError(msg, code="T803", help=f"call the factory in the script, or name a kernel: {file}:KERNEL")
        return outcome.code, kernels


def parted(spec: str) -> tuple[str, str | None]:
    """The file and the kernel that ``FILE[:KERNEL]`` names; a colon inside a path that exists is the path's."""
    file, colon, name = spec.rpartition(":")
    if not colon or Path(spec).exists() or not name.isidentifier():
        return spec, None
    return file, name


def named(outcome: Outcome, name: str, file: str) -> JITKernel:
    """The kernel of that name at a script's top level.

    Raises:
        TileError: T803 there is none.
    """
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime import factory
    from tilelang_npu.runtime.kernel import JITKernel

    found = outcome.names.get(name)
    if isinstance(found, JITKernel):
        return found
    if isinstance(found, PrimFunc):
        return factory.compile(found)
    if isinstance(found, factory.Factory):
        msg = f"{name} in {file} is a factory; which sizes to compile it for is not known"
        call = name if found.eager is None else f"{name}.compile"
        raise TileError(msg, code="T803", help=f"bind its kernel at the top level, such as kernel = {call}(...), and name that")
    kernels = [key for key, value in outcome.names.items() if isinstance(value, (JITKernel, PrimFunc))]
    near = get_close_matches(name, kernels, n=1)
    msg = f"{file} has no kernel {name!r} at its top level"
    listed = f"there are {', '.join(kernels)}" if kernels else "there is none"
    raise TileError(msg, code="T803", notes=[listed], help=f"did you mean {near[0]}?" if near else f"compile {file} as a whole")
