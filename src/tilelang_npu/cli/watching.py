"""The option ``check --watch``, which runs the command again whenever a file in the folder of a checked file changes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from tilelang_npu.cli.selection import asked

__all__ = ["watch"]

_PAUSE = 0.2


def watch(files: Sequence[str], words: Sequence[str]) -> NoReturn:
    """Runs the command in its own process, now and after each change, until the user interrupts the command.

    Args:
        files: the files that the command checks; all scripts and .mlir files in their folders are watched.
        words: the words of the command line; ``--watch`` is removed.
    """
    command = [sys.executable, "-m", "tilelang_npu",
               *(word for word in words if len(word) < 3 or not "--watch".startswith(word))]
    folders = {Path(asked(file).file).resolve().parent for file in files}
    while True:
        before = _state(folders)
        subprocess.run(command, check=False)
        print("\nwatching; Ctrl-C ends it", flush=True)
        while _state(folders) == before:
            time.sleep(_PAUSE)
        print(flush=True)


def _state(folders: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Returns the time of the last change and the size of each watched file."""
    found = {}
    for folder in folders:
        for path in folder.iterdir():
            if path.suffix in (".py", ".mlir"):
                try:
                    stat = path.stat()
                except FileNotFoundError:  # an editor is replacing it
                    continue
                found[path] = stat.st_mtime_ns, stat.st_size
    return found
