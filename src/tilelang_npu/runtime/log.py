"""What the package says beside errors: its log, and warnings about a kernel that ran but looks wrong."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from tilelang_npu.errors import Location, TileError

logger = logging.getLogger("tilelang_npu")

__all__ = ["TileWarning", "is_unheard", "logger", "set_log_level", "told", "unheard", "warn_at"]


_UNHEARD: ContextVar[bool] = ContextVar("tilelang_npu_unheard", default=False)


class TileWarning(UserWarning):
    """A kernel ran, and something about it is probably not meant."""


def warn_at(remark: TileError) -> None:
    """Warn of something in a kernel at its line; nothing is raised."""
    if is_unheard():
        return
    place = remark.location or Location("<kernel>", 1)
    text = remark.message + (f"; {remark.help}" if remark.help else "")
    warnings.warn_explicit(f"{remark.code}: {text}", TileWarning, place.file, place.line)


_VERBOSE: ContextVar[bool] = ContextVar("tilelang_npu_verbose", default=False)


class _Told:
    """The logger's level is one of the process; while some thread is told more, it is kept from the others.

    Attributes:
        inside: how many are told more.
        before: the logger's own level.
        least: the level from which on all hear.
    """

    lock = Lock()
    inside = 0
    before = logging.NOTSET
    least = logging.NOTSET


def _is_heard(record: logging.LogRecord) -> bool:
    return not is_unheard() and (_Told.inside == 0 or record.levelno >= _Told.least or _VERBOSE.get())


logger.addFilter(_is_heard)


def is_unheard() -> bool:
    """Whether this thread does what nobody asked for by itself: there is nothing to warn of."""
    return _UNHEARD.get()


@contextmanager
def unheard() -> Iterator[None]:
    """Say nothing of the kernels that this thread compiles and runs in the ``with``: they are for the package's own ends."""
    token = _UNHEARD.set(True)
    try:
        yield
    finally:
        _UNHEARD.reset(token)


@contextmanager
def told(verbose: bool) -> Iterator[None]:
    """Show what this thread logs inside of the ``with`` from INFO on, if ``verbose``."""
    if not verbose:
        yield
        return
    with _Told.lock:
        if _Told.inside == 0:
            _Told.before, _Told.least = logger.level, logger.getEffectiveLevel()
            if not logger.isEnabledFor(logging.INFO):
                set_log_level(logging.INFO)
        _Told.inside += 1
    token = _VERBOSE.set(True)
    try:
        yield
    finally:
        _VERBOSE.reset(token)
        with _Told.lock:
            _Told.inside -= 1
            if _Told.inside == 0:
                logger.setLevel(_Told.before)


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
