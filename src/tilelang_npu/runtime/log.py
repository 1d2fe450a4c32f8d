"""What the package says beside errors: its log, and warnings about a kernel that ran but looks wrong."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from tilelang_npu.errors import Location, TileError

logger = logging.getLogger("tilelang_npu")

__all__ = ["TileWarning", "logger", "set_log_level", "told", "warn_at"]


class TileWarning(UserWarning):
    """A kernel ran, and something about it is probably not meant."""


def warn_at(remark: TileError) -> None:
    """Warn of something in a kernel at its line; nothing is raised."""
    place = remark.location or Location("<kernel>", 1)
    text = remark.message + (f"; {remark.help}" if remark.help else "")
    warnings.warn_explicit(f"{remark.code}: {text}", TileWarning, place.file, place.line)


@contextmanager
def told(verbose: bool) -> Iterator[None]:
    """Show what is logged inside of the ``with`` from INFO on, if ``verbose``."""
    before = logger.level
    if verbose and not logger.isEnabledFor(logging.INFO):
        set_log_level(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)


def set_log_level(level: int | str) -> None:
    """Show the package's messages from ``level`` on: a name such as ``"INFO"``, or a number of :mod:`logging`.

    Raises:
        ValueError: there is no such level.
    """
    logger.setLevel(level.upper() if isinstance(level, str) else level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
