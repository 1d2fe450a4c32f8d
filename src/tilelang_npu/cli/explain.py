"""The command ``explain``, which prints the page of a diagnostic code: a kernel that causes the diagnostic, and its repair."""

from __future__ import annotations

import argparse
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.cli.parser import Commands
from tilelang_npu.diagnostic_codes import TITLES
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["add_to", "explain", "index"]

_INTRODUCTION = """# Diagnostics

A page for each code: a kernel that shows it, the message, and the repair. `tilelang-npu explain CODE` prints a page.
(Made by `tilelang-npu explain --markdown > docs/diagnostics/README.md`.)
"""
_GROUPS = (
    ("S2", "What the sanitizer finds"), ("S3", "Hangs"), ("S4", "Numbers"), ("T1", "The kernel's text"),
    ("T2", "What the chip cannot do"), ("T4", "Calls and arguments"), ("T5", "Modules in the simulator"), ("T6", "MLIR text"),
    ("T7", "Settings"), (("T80", "T81"), "The command line"), ("T82", "Plug-ins"),
)
"""The groups of diagnostics: the prefix of the codes in the group, and the title of the group."""


def add_to(commands: Commands) -> None:
    """Adds the command ``explain`` to the parser."""
    parser = commands.add_parser("explain", help="explain the code of a diagnostic",
                                 description="Print the page of a diagnostic. Without a code, print all codes with their"
                                             " titles.")
    parser.add_argument("code", metavar="CODE", nargs="?", help="the code of the diagnostic, such as S301")
    parser.add_argument("--markdown", action="store_true", help="print the page docs/diagnostics/README.md")
    parser.set_defaults(command=explain)


def explain(args: argparse.Namespace) -> int:
    """Prints the page of a diagnostic code, or the list of all codes, and returns the exit code."""
    if args.markdown:
        print(index(), end="")
        return 0
    if args.code is None:
        for code, title in TITLES.items():
            print(f"{code}  {title}")
        return 0
    page = _folder() / f"{args.code.upper()}.md"
    if not re.fullmatch(r"[A-Z]\d+", args.code.upper()) or not page.is_file():
        raise TileError(f"there is no diagnostic {args.code}", code="T806", help="`tilelang-npu explain` lists the diagnostics")
    print(page.read_text(encoding="utf-8"), end="")
    return 0


def index() -> str:
    """Returns the text of the page docs/diagnostics/README.md, which lists all codes."""
    lines = [_INTRODUCTION]
    for start, title in _GROUPS:
        rows = [f"- [{code}]({code}.md) {text}" for code, text in TITLES.items() if code.startswith(start)]
        if rows:
            lines += [f"## {title}\n", *rows, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _folder() -> Path | Traversable:
    """Returns the folder of the pages: in the installed package, or in the checkout from which the package is imported."""
    installed = files("tilelang_npu") / "diagnostics"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[3] / "docs" / "diagnostics"
