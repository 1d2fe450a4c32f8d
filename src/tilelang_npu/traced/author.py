"""Where the author's code stands: the place of what a function of this package was called for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NoReturn

from tilelang_npu.errors import Location, TileError

_PACKAGE = __file__.rsplit(os.sep, 2)[0]  # as code objects spell it
_WALKERS: set[str] = set()
_Positions = Callable[[], Iterable[tuple["int | None", "int | None", "int | None", "int | None"]]]


def follows_kernels(file: str) -> None:
    """Say that a module of this package, by its ``__file__``, follows the source of kernels: errors that leave it get the
    place in the kernel there, not that of a Python frame."""
    _WALKERS.add(file)


def user_location() -> Location | None:
    """The innermost place on the Python stack that is not in this package; None where what follows a kernel's source, and
    knows the place in the kernel, stands in between."""
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
    """First and behind-last column of the instruction that the frame is at; zeros where Python does not keep them (3.10)."""
    positions: _Positions | None = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return 0, 0
    for number, (line, end_line, column, end_column) in enumerate(positions()):
        if number == frame.f_lasti // 2:
            same_line = line == end_line == frame.f_lineno
            return ((column or 0) + 1, (end_column or 0) + 1) if same_line and column is not None else (0, 0)
    return 0, 0


def refuse_python_value(what: str, wanted: str, remedy: str) -> NoReturn:
    """Raise T144: Python asked a traced value for an answer that only a run of the kernel has."""
    raise TileError(f"{what} has no Python {wanted} while the kernel is traced", code="T144", location=user_location(),
                    help=remedy)
