"""``explain``: prints the page of a diagnostic, with a kernel that shows it and its repair."""

from __future__ import annotations

import argparse
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    ("T7", "Settings"), ("T8", "The command line"),
)


def add_to(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("explain", help="explain a diagnostic",
                                 description="Print the page of a diagnostic; without a code, the codes and their titles.")
    parser.add_argument("code", metavar="CODE", nargs="?", help="such as S301")
    parser.add_argument("--markdown", action="store_true", help="print the page docs/diagnostics/README.md")
    parser.set_defaults(command=explain)


def explain(args: argparse.Namespace) -> int:
    """Prints a page, or the list of pages."""
    if args.markdown:
        print(index(), end="")
        return 0
    if args.code is None:
        for code, title in titles().items():
            print(f"{code}  {title}")
        return 0
    page = _folder() / f"{args.code.upper()}.md"
    if not re.fullmatch(r"[A-Z]\d+", args.code.upper()) or not page.is_file():
        raise TileError(f"there is no diagnostic {args.code}", code="T806", help="`tilelang-npu explain` lists them")
    print(page.read_text(encoding="utf-8"), end="")
    return 0


def index() -> str:
    """The text of docs/diagnostics/README.md."""
    known = titles()
    lines = [_INTRODUCTION]
    for start, title in _GROUPS:
        rows = [f"- [{code}]({code}.md) {text}" for code, text in known.items() if code.startswith(start)]
        if rows:
            lines += [f"## {title}\n", *rows, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def titles() -> dict[str, str]:
    """The title of each page, by code, in order."""
    pages = {page.name.removesuffix(".md"): page for page in _folder().iterdir() if re.fullmatch(r"[ST]\d+\.md", page.name)}
    heads = {code: pages[code].read_text(encoding="utf-8").partition("\n")[0] for code in sorted(pages)}
    return {code: head.partition(": ")[2] for code, head in heads.items()}


def _folder() -> Path | Traversable:
    """The folder of the pages: in the installed package, or in the checkout that it is imported from."""
    installed = files("tilelang_npu") / "diagnostics"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[3] / "docs" / "diagnostics"
