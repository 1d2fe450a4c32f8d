"""The author's place in the source: the statement for which a function of this package was called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NoReturn

from tilelang_npu.errors import Location, TileError

_PACKAGE = __file__.rsplit(os.sep, 2)[0]
"""The folder of this package, spelled as in code objects."""
_WALKERS: set[str] = set()
_Positions = Callable[[], Iterable[tuple["int | None", "int | None", "int | None", "int | None"]]]


def follows_kernels(file: str) -> None:
    """Declares that a module of this package walks the source of kernels: errors that pass through it get their place there,
    not from a Python frame. ``file`` is its ``__file__``.
    """
    _WALKERS.add(file)


def user_location() -> Location | None:
    """The innermost place on the Python stack that is not in this package.

    None where a module that walks a kernel's source is above it: that module knows the place in the kernel.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_code.co_filename in _WALKERS:
            return None
        frame = frame.f_back
    if frame is None:
        return None
    column, end = _columns(frame)
    return Location(frame.f_code.co_filename, frame.f_lineno, column, end)


def _columns(frame: FrameType) -> tuple[int, int]:
    """The first column, and the column after the last, of the frame's instruction; zeros where Python does not have them
    (3.10).
    """
    positions: _Positions | None = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return 0, 0
    for number, (line, end_line, column, end_column) in enumerate(positions()):
        if number == frame.f_lasti // 2:
            same_line = line == end_line == frame.f_lineno
            return ((column or 0) + 1, (end_column or 0) + 1) if same_line and column is not None else (0, 0)
    return 0, 0


def refuse_python_value(what: str, wanted: str, remedy: str) -> NoReturn:
    """Raises T144: Python needs a value that only a run of the kernel has."""
    raise TileError(f"{what} has no Python {wanted} while the kernel is traced", code="T144", location=user_location(),
                    help=remedy)
