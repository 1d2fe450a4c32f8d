"""Reads and writes files whose names are command line arguments."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings.file_writing import write_whole

__all__ = ["existing", "read_text", "split_modules", "write_text"]

_DIVIDER = re.compile(r"^// -----.*\n?", re.MULTILINE)
"""The line between two modules of a file."""


def existing(name: str) -> Path:
    """Returns the path of an existing file.

    Raises:
        TileError: T801, the file does not exist, or is a directory.
    """
    path = Path(name)
    if not path.is_file():
        raise TileError(f"{name} {'is a directory' if path.is_dir() else 'does not exist'}", code="T801",
                        help="give the path of a file")
    return path


def read_text(name: str) -> str:
    """Returns the content of a text file, or of standard input for the name ``-``.

    Raises:
        TileError: T801, the file does not exist, or is not text in UTF-8.
    """
    if name == "-":
        return sys.stdin.read()
    try:
        return existing(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TileError(f"{name} is not text in UTF-8: {error.reason} at byte {error.start}", code="T801",
                        help="give an .mlir file") from None


def split_modules(text: str) -> Iterator[str]:
    """Yields the parts of a text between the lines ``// -----``.

    Empty lines precede each part but the first, so that its lines have their numbers in the text.
    """
    line = 0
    for part in _DIVIDER.split(text):
        yield "\n" * line + part
        line += part.count("\n") + 1


def write_text(name: str | None, text: str) -> None:
    """Writes a text atomically to a file, or to standard output if ``name`` is None; missing directories are created."""
    ended = text if text.endswith("\n") else text + "\n"
    if name is None or name == "-":
        sys.stdout.write(ended)
    else:
        write_whole(name, ended)
