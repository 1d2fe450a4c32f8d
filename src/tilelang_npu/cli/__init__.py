"""The command line: ``tilelang-npu`` and ``python -m tilelang_npu``.

Exit codes: 0 success, 1 an error in the user's kernel, script or file, 2 an error in the command line, 130 interrupted. ``run``
returns its script's exit code.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module

from tilelang_npu import __version__
from tilelang_npu.cli.parser import Parser, parse
from tilelang_npu.display import painted
from tilelang_npu.errors import TileError, render

__all__ = ["COMMANDS", "main", "parser_of_all"]

COMMANDS = {
    "run": "run", "compile": "compile_file", "check": "check", "sim": "sim", "opt": "opt", "tune": "tune", "survey": "survey",
    "chips": "tables", "ops": "tables", "stages": "tables", "explain": "explain", "doctor": "doctor", "new": "new",
    "completion": "completion",
}
"""The module of each command; only the module of the command that is called is imported."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code.

    Args:
        argv: the arguments without the program's name; None for those of the process.
    """
    if argv is None:  # the process ends after the command, and most of its objects are modules, which live until then
        gc.set_threshold(20_000, 20, 20)
    words: list[str] = list(sys.argv[1:] if argv is None else argv)
    script: list[str] = []
    if words[:1] == ["run"]:
        from tilelang_npu.cli import run

        words[1:], script = run.own_arguments(words[1:])
    alone = words[:1] if words[:1] != ["completion"] else []  # completion needs the options of all commands
    args = parse(_parser(alone) if alone and alone[0] in COMMANDS else parser_of_all(), words)
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
    """The parser with all commands."""
    return _parser(COMMANDS)


def _parser(names: Iterable[str]) -> Parser:
    """The parser with these commands."""
    parser = Parser(
        prog="tilelang-npu", description="Write, compile, check and time TileLang kernels for Ascend NPUs on any machine."
    )
    parser.add_argument("--version", action="version", version=f"tilelang-npu {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in dict.fromkeys(COMMANDS[command] for command in names):
        import_module(f"tilelang_npu.cli.{name}").add_to(commands)
    return parser
