"""The command line interface: ``tilelang-npu`` and ``python -m tilelang_npu``.

The exit code is 0 for success, 1 for an error in the user's kernel, script or file, 2 for an error in the command line, and 130
if the user interrupted the command. ``run`` returns the exit code of its script.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from tilelang_npu import __version__
from tilelang_npu.cli.parser import Parser, commands_of, parse
from tilelang_npu.display import painted
from tilelang_npu.errors import TileError, render

__all__ = ["COMMANDS", "main", "parser_of_all"]

COMMANDS = {
    "run": "run", "compile": "compile_file", "check": "check", "sim": "sim", "opt": "opt", "tune": "tune", "improve": "improve",
    "survey": "survey",
    "chips": "tables", "ops": "tables", "stages": "tables", "explain": "explain", "doctor": "doctor", "new": "new",
    "completion": "completion", "language-server": "language_server", "msprof": "msprof",
}
"""The name of the module that implements each command; only the module of the called command is imported."""
_WITHOUT_PLUGINS = ("new", "completion")
"""The commands that do not load plug-ins, because plug-ins do not affect them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code.

    Args:
        argv: the command line arguments without the program's name; None for ``sys.argv[1:]``.
    """
    if argv is None:  # the process ends after the command, and most of its objects are modules, which live until then
        gc.set_threshold(20_000, 20, 20)
    words: list[str] = list(sys.argv[1:] if argv is None else argv)
    script: list[str] = []
    if words[:1] == ["run"]:
        from tilelang_npu.cli import run

        words[1:], script = run.own_arguments(words[1:])
    elif words[:1] == ["improve"] and "--" in words:
        script = words[words.index("--") + 1:]
        del words[words.index("--"):]
    elif words[:1] == ["msprof"] and words[1:2] not in (["--help"], ["-h"]):  # its options are those of the vendor's program
        script = words[1:]
        del words[1:]
    alone = words[:1] if words[:1] != ["completion"] else []  # completion needs the options of all commands
    args = parse(_parser(alone) if alone and alone[0] in COMMANDS else parser_of_all(), words)
    args.words = words
    if script:
        args.arguments = script
    try:
        with loaded(getattr(args, "load", ())):
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
    """Returns a parser with all commands."""
    return _parser(COMMANDS)


def _parser(names: Iterable[str]) -> Parser:
    """Returns a parser with the given commands."""
    parser = Parser(
        prog="tilelang-npu", description="Write, compile, check and time TileLang kernels for Ascend NPUs on any machine."
    )
    parser.add_argument("--version", action="version", version=f"tilelang-npu {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in dict.fromkeys(COMMANDS[command] for command in names):
        import_module(f"tilelang_npu.cli.{name}").add_to(commands)
    for name, command in commands_of(parser).items():
        if name not in _WITHOUT_PLUGINS:
            command.add_argument("--load", metavar="FILE.py", action="append", default=[],
                                 help="load a plug-in: a file that registers operations, passes or chips; may be given several"
                                      " times")
    return parser


@contextmanager
def loaded(files: Sequence[str]) -> Iterator[None]:
    """A context manager that loads plug-in files, and at its end removes the operations, passes and chips that they registered.

    Processes that are started inside the ``with`` block load the files too.

    Raises:
        TileError: T820, a file cannot be loaded.
    """
    if not files:
        yield
        return
    from tilelang_npu.plugin_loading import loaded_files
    from tilelang_npu.plugins.registry import temporary

    with temporary(), loaded_files(files):
        yield
