"""Writing a file whole or not at all, whenever the process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["replaced", "write_whole"]


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
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` once it is whole: what ends before that leaves the old one, or none."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        with temporary.open("xb") as file:  # with the permissions of any new file, which only the system knows
            yield file
        if path.exists():
            temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
