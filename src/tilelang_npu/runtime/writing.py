"""Writing a file whole or not at all, whenever the process ends; and file names for kernels, parameters and plots."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["file_name", "file_names", "replaced", "write_whole"]

_UNSAFE = re.compile(r"[^\w.,+=@ -]")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE)
"""Names that Windows gives to devices, with any suffix."""
_MOST_BYTES = 180
"""Bytes of a file name that come from the name of a kernel; 255 are allowed, and suffixes and temporary names need some."""


def file_name(name: str) -> str:
    """Returns a file name for something whose name the author or a foreign file chose: one component of a path, never ``..``.

    A Python identifier is returned as it is. Separators, control characters and leading dots become underscores; a name that
    is too long is cut, and ends with a digest of the whole.
    """
    safe = _UNSAFE.sub("_", name.strip(" "))
    safe = re.sub(r"^\.+", lambda dots: "_" * len(dots[0]), safe).rstrip(". ") or "_"
    if _DEVICES.match(safe):
        safe = f"_{safe}"
    if len(safe.encode()) > _MOST_BYTES:
        start = safe.encode()[:_MOST_BYTES - 17].decode(errors="ignore")
        safe = f"{start}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"
    return safe


def file_names(names: Iterable[str]) -> list[str]:
    """Returns a file name for each name, all different, also where case does not count: repetitions end with ``-2``, ``-3``."""
    made: list[str] = []
    taken: set[str] = set()
    for name in names:
        first = chosen = file_name(name)
        number = 1
        while chosen.casefold() in taken:
            number += 1
            chosen = f"{first}-{number}"
        taken.add(chosen.casefold())
        made.append(chosen)
    return made


def write_whole(path: str | Path, text: str) -> None:
    """Put a text into a file; its directory is made. Whoever reads the file sees the old text or the new one, never a part.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not target.is_file():  # a device or a pipe
        target.write_text(text, encoding="utf-8")
        return
    with replaced(target) as file:
        file.write(text.encode())


@contextmanager
def replaced(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` once it is whole: what ends before that leaves the old one, or none.

    Args:
        path: the file to write.
        mode: its permissions; those of the file that is replaced, or of any new file, where None.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        # without a mode, the permissions of any new file: the system takes away what the user's umask names
        with os.fdopen(os.open(temporary, flags, 0o666 if mode is None else mode), "wb") as file:
            yield file
        if mode is None and path.exists():
            temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
