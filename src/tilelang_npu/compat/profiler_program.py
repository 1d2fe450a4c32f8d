"""The program ``msprof``, which scripts start to profile other scripts: on this machine it is ``tilelang-npu msprof``.

Scripts look for the program on the search path. While the compatibility layer is installed, a folder with such a program is
there, unless the vendor's is.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

__all__ = ["install", "uninstall"]

_folders: list[tuple[int, Path]] = []
"""The process that has made the folder, and the folder that is on the search path; empty if there is none."""


def install() -> None:
    """Puts the program on the search path of this process and of those that it starts. Calling it again has no effect."""
    if _folders or os.name != "posix" or shutil.which("msprof") is not None:
        return
    folder = Path(tempfile.mkdtemp(prefix="tilelang-npu-"))
    program = folder / "msprof"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tilelang_npu msprof "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    _folders.append((os.getpid(), folder))
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    atexit.register(uninstall)


def uninstall() -> None:
    """Undoes :func:`install`. A process that was forked leaves the folder to the one that made it."""
    while _folders:
        maker, folder = _folders.pop()
        path = os.environ.get("PATH", "").split(os.pathsep)
        os.environ["PATH"] = os.pathsep.join(place for place in path if place != str(folder))
        if maker == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)
