"""Writes files atomically, and makes safe file names from the names of kernels, parameters and plots."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_UNSAFE = re.compile(r"[^\w.,+=@ -]")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE)
"""Names of devices on Windows, with any suffix."""
_MAX_BYTES = 180
"""The longest name: 255 bytes are allowed, of which suffixes and temporary names take some."""


def file_name(name: str) -> str:
    """Returns a safe file name for an arbitrary name: a single component of a path, never ``.`` or ``..``.

    A Python identifier is returned unchanged. Separators, control characters and leading dots become underscores. A name of
    more than 180 bytes is cut, and ends with a digest of the whole name.
    """
    safe = _UNSAFE.sub("_", name.strip(" "))
    safe = re.sub(r"^\.+", lambda dots: "_" * len(dots[0]), safe).rstrip(". ") or "_"
    if _DEVICES.match(safe):
        safe = f"_{safe}"
    if len(safe.encode()) > _MAX_BYTES:
        start = safe.encode()[:_MAX_BYTES - 17].decode(errors="ignore")
        safe = f"{start}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"
    return safe


def file_names(names: Iterable[str]) -> list[str]:
    """Returns a safe file name for each name. The results differ even if upper and lower case are not distinguished.

    The second name with the same file name gets the ending ``-2``, the third ``-3``.
    """
    chosen: list[str] = []
    taken: set[str] = set()
    for name in names:
        first = candidate = file_name(name)
        number = 1
        while candidate.casefold() in taken:
            number += 1
            candidate = f"{first}-{number}"
        taken.add(candidate.casefold())
        chosen.append(candidate)
    return chosen


def write_whole(path: str | Path, text: str) -> None:
    """Writes text to a file atomically: a reader sees the old text or the new text, never a part. Creates the file's directory.

    A device or a pipe is written directly.

    Raises:
        OSError: the file cannot be written; the old content stays.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not target.is_file():  # a device or a pipe
        target.write_text(text, encoding="utf-8")
        return
    with replacing(target) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Opens a temporary file that replaces ``path`` at the end of the ``with`` statement. After an exception, the old file
    stays.

    Args:
        path: the file to write.
        mode: the permissions of the new file; None for those of the replaced file, or the system's default for a new file.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        # 0o666 gives the permissions of any new file: the system removes the bits of the user's umask.
        with os.fdopen(os.open(temporary, flags, 0o666 if mode is None else mode), "wb") as file:
            yield file
        if mode is None and path.exists():
            temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
