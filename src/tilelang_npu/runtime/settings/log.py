"""The package's logger, and warnings about kernels that compile and run but probably contain a mistake."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from tilelang_npu.errors import Location, TileError

logger = logging.getLogger("tilelang_npu")

_SILENCED: ContextVar[bool] = ContextVar("tilelang_npu_silenced", default=False)
_VERBOSE: ContextVar[bool] = ContextVar("tilelang_npu_verbose", default=False)


class TileWarning(UserWarning):
    """A warning about a kernel that compiles and runs but probably contains a mistake."""


def warn_at(remark: TileError) -> None:
    """Issues a :class:`TileWarning` with the code, message and help of ``remark``, at the source location of ``remark``.

    Nothing is issued inside :func:`silenced`.
    """
    if is_silenced():
        return
    place = remark.location or Location("<kernel>", 1)
    text = remark.message + (f"; {remark.help}" if remark.help else "")
    warnings.warn_explicit(f"{remark.code}: {text}", TileWarning, place.file, place.line)


@contextmanager
def silenced() -> Iterator[None]:
    """Suppresses warnings and log messages of the calling thread inside the ``with`` statement.

    The package uses it around kernels that it compiles and runs for its own purposes, such as to time an edit of a kernel.
    """
    token = _SILENCED.set(True)
    try:
        yield
    finally:
        _SILENCED.reset(token)


def is_silenced() -> bool:
    """Whether the calling thread is inside :func:`silenced`."""
    return _SILENCED.get()


class _VerboseThreads:
    """The state for threads that log verbosely.

    The logger's level belongs to the process. While at least one thread logs verbosely, the level is INFO for all threads, and
    :func:`_is_logged` drops the messages that the other threads would not have logged.

    Attributes:
        count: the number of verbose threads.
        level: the level that the logger had before, which is restored when the last verbose thread ends.
        threshold: the lowest level of messages that are logged for all threads.
    """

    lock = Lock()
    count = 0
    level = logging.NOTSET
    threshold = logging.NOTSET


def _is_logged(record: logging.LogRecord) -> bool:
    return not is_silenced() and (
        _VerboseThreads.count == 0 or record.levelno >= _VerboseThreads.threshold or _VERBOSE.get())


logger.addFilter(_is_logged)


@contextmanager
def verbose_log(verbose: bool) -> Iterator[None]:
    """Shows the calling thread's log messages of level INFO and above inside the ``with`` statement, if ``verbose`` is true."""
    if not verbose:
        yield
        return
    with _VerboseThreads.lock:
        if _VerboseThreads.count == 0:
            _VerboseThreads.level, _VerboseThreads.threshold = logger.level, logger.getEffectiveLevel()
            if not logger.isEnabledFor(logging.INFO):
                set_log_level(logging.INFO)
        _VerboseThreads.count += 1
    token = _VERBOSE.set(True)
    try:
        yield
    finally:
        _VERBOSE.reset(token)
        with _VerboseThreads.lock:
            _VerboseThreads.count -= 1
            if _VerboseThreads.count == 0:
                logger.setLevel(_VerboseThreads.level)


def set_log_level(level: int | str) -> None:
    """Shows the package's log messages of a level and above on standard error.

    Args:
        level: the name of the lowest level, such as ``"INFO"``, or its number in :mod:`logging`.

    Raises:
        ValueError: there is no such level.
    """
    logger.setLevel(level.upper() if isinstance(level, str) else level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
