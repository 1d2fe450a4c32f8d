"""The command line: ``tilelang-npu`` and ``python -m tilelang_npu``.

Exit codes: 0 done, 1 the user's kernel, script or file is wrong, 2 the command line is, 130 interrupted. ``run`` ends with its
script's code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tilelang_npu import __version__
from tilelang_npu.cli import (
    check,
    compile_file,
    completion,
    doctor,
    explain,
    new,
    opt,
    run,
    sim,
    survey,
    tables,
    tune,
)
from tilelang_npu.cli.colours import painted
from tilelang_npu.cli.parser import Parser, parse
from tilelang_npu.errors import TileError, render

__all__ = ["main", "parser_of_all"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code.

    Args:
        argv: the arguments without the program's name; those of the process where None.
    """
    words: list[str] = list(sys.argv[1:] if argv is None else argv)
    script: list[str] = []
    if words[:1] == ["run"]:
        words[1:], script = run.own_arguments(words[1:])
    args = parse(parser_of_all(), words)
    args.words = words
    if script:
        args.arguments = script
    try:
        code: int = args.command(args)
    except TileError as error:
        sys.stdout.flush()
        print(painted(render(error), sys.stderr), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe, such as head, has gone
        sys.stderr.close()
        return 1
    except OSError as error:
        if error.filename is None:
            raise
        print(f"error[T801]: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return code


def parser_of_all() -> Parser:
    """The parser with every command."""
    parser = Parser(
        prog="tilelang-npu", description="Write, compile, check and time TileLang kernels for Ascend NPUs on any machine."
    )
    parser.add_argument("--version", action="version", version=f"tilelang-npu {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (run, compile_file, check, sim, opt, tune, survey, tables, explain, doctor, new, completion):
        module.add_to(commands)
    return parser
