"""The parser of the command line; each command's help ends with examples, and errors suggest similar words."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeAlias

__all__ = ["Parser", "commands_of", "parse"]

EXAMPLES = {
    "run": ("run gemm.py", "run gemm.py --sanitize -- --size 512", "run gemm.py --trace timeline.json --mlir out"),
    "compile": ("compile gemm.py", "compile gemm.py:gemm#2 --annotate", "compile gemm.py --stage hivm-auto -o gemm.mlir"),
    "check": ("check gemm.py", "check gemm.py:gemm --size M=100 --report findings.sarif", "check kernel.mlir --blocks 8"),
    "sim": ("sim kernel.mlir --seed 0", "sim kernel.mlir --seed 0 --sanitize --schedule late"),
    "opt": ("opt kernel.mlir -p insert-sync", "opt kernel.mlir -p plan-memory,insert-sync"),
    "survey": ("survey examples --jobs 2", "survey tests --timeout 60 --json report.json",
               "survey examples --strict"),
    "tune": ("tune gemm.py --arg M=512 N=512 K=512 --space tile_M=64,128 stages=1..2",),
    "improve": ("improve gemm.py", "improve gemm.py --arg M=4096 N=4096 K=4096 --budget 2min --jobs 2 --write faster.py"),
    "chips": ("chips",),
    "ops": ("ops", "ops reduce"),
    "stages": ("stages", "stages gemm.py --html gemm.html", "stages gemm.py --diff hivm-auto hivm",
               "stages gemm.py:gemm#2 --html second.html"),
    "explain": ("explain T104", "explain"),
    "msprof": ("msprof op --output=profile --launch-count=5 python gemm.py", "msprof op --kernel-name=gemm python gemm.py"),
    "doctor": ("doctor",),
    "new": ("new softmax", "new softmax --dir kernels"),
    "completion": ("completion bash", "completion fish"),
    "language-server": ("language-server", "language-server --check-on-save"),
}
"""The examples at the end of each command's help. A test checks that each command has one, and that each example can be parsed.
"""


class _Formatter(argparse.HelpFormatter):
    """Wraps descriptions, but not examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("examples:") else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """An argument parser whose error messages suggest a similar word for an invalid one."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Formatter)
        super().__init__(*args, **settings)
        shown = EXAMPLES.get(self.prog.split()[-1])
        if shown and self.epilog is None:
            self.epilog = "\n".join(["examples:", *(f"  tilelang-npu {line}" for line in shown)])

    def error(self, message: str) -> NoReturn:
        """Prints an error message with a suggested word, and exits with code 2."""
        found = re.search(r"invalid choice: '([^']*)'", message)
        known = [word for action in self._actions for word in action.choices or ()]
        near = guess(found[1], map(str, known)) if found else None
        super().error(message + (f"\ndid you mean {near}?" if near else ""))


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""The commands of a parser, to which each command's module adds its own."""


def guess(word: str, known: Iterable[str]) -> str | None:
    """Returns the known word that is most similar to ``word``; None if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, [*known], n=1)), None)


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Returns the parser of each command, by the command's name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Returns the parsed arguments.

    If there is an unknown argument, prints an error with the usage of the command and exits with code 2.

    Args:
        parser: the parser with all commands.
        words: the words of the command line.
    """
    args, left = parser.parse_known_args(words)
    if left:
        commands = commands_of(parser)
        own = commands[next(word for word in words if word in commands)]
        known = [option for action in own._actions for option in action.option_strings]
        near = {word: guess(word.partition("=")[0], known) for word in left if word.startswith("-")}
        guesses = ", ".join(f"{one} for {word}" for word, one in near.items() if one)
        own.error(f"unrecognized arguments: {' '.join(left)}" + (f"\ndid you mean {guesses}?" if guesses else ""))
    return args
