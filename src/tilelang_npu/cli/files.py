"""Reads and writes the files that the user names on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings.file_writing import write_whole

__all__ = ["existing", "read_text", "write_text"]


def existing(name: str) -> Path:
    """The file with that name.

    Raises:
        TileError: T801, it does not exist, or is a directory.
    """
    path = Path(name)
    if not path.is_file():
        raise TileError(f"{name} {'is a directory' if path.is_dir() else 'does not exist'}", code="T801",
                        help="give the path of a file")
    return path


def read_text(name: str) -> str:
    """The content of a text file; standard input for ``-``.

    Raises:
        TileError: T801, there is no such file, or it is not text.
    """
    if name == "-":
        return sys.stdin.read()
    try:
        return existing(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TileError(f"{name} is not text in UTF-8: {error.reason} at byte {error.start}", code="T801",
                        help="give an .mlir file") from None


def write_text(name: str | None, text: str) -> None:
    """Writes a file atomically, or to standard output where no file is named; directories are created."""
    ended = text if text.endswith("\n") else text + "\n"
    if name is None or name == "-":
        sys.stdout.write(ended)
    else:
        write_whole(name, ended)
