"""Reading what the user named on the command line, and writing where they said."""

from __future__ import annotations

import sys
from pathlib import Path

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings.file_writing import write_whole

__all__ = ["existing", "read_text", "write_text"]


def existing(name: str) -> Path:
    """The file of that name.

    Raises:
        TileError: T801 it does not exist, or is a directory.
    """
    path = Path(name)
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        msg = f"{name} {what}"
        raise TileError(msg, code="T801", help="give the path of a file")
    return path


def read_text(name: str) -> str:
    """A text file's content; standard input for ``-``.

    Raises:
        TileError: T801 there is no such file, T801 it is no text.
    """
    if name == "-":
        return sys.stdin.read()
    try:
        return existing(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        msg = f"{name} is not text in UTF-8: {error.reason} at byte {error.start}"
        raise TileError(msg, code="T801", help="give an .mlir file") from None


def write_text(name: str | None, text: str) -> None:
    """Write to a file, whole or not at all, or to standard output where none is named; the directory is made."""
    ended = text if text.endswith("\n") else text + "\n"
    if name is None or name == "-":
        sys.stdout.write(ended)
    else:
        write_whole(name, ended)
