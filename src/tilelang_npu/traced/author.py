"""Finds the position in the author's source from which a function of this package was called, for error messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NoReturn

from tilelang_npu.errors import Location, TileError

_PACKAGE = __file__.rsplit(os.sep, 2)[0]
"""The directory of the package ``tilelang_npu``, spelled as in code objects."""
_COMMANDS = (f"{_PACKAGE}{os.sep}cli{os.sep}", f"{_PACKAGE}{os.sep}__main__.py")
_WALKERS: set[str] = set()
_Positions = Callable[[], Iterable[tuple["int | None", "int | None", "int | None", "int | None"]]]


def follows_kernels(file: str) -> None:
    """Registers a module of this package that walks the syntax tree of kernels.

    Such a module itself adds the position in the kernel's source to errors, so :func:`user_location` returns None below it.

    Args:
        file: the module's ``__file__``.
    """
    _WALKERS.add(file)


def user_location() -> Location | None:
    """Returns the position of the innermost frame on the Python stack that is not in this package.

    Returns None if a module that was registered with :func:`follows_kernels` is called from that frame: such a module adds the
    position in the kernel's source to errors itself. Returns None also if that frame started a command (``tilelang-npu tune``):
    it is not the author's.
    """
    frame: FrameType | None = sys._getframe(1)
    in_command = False
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_code.co_filename in _WALKERS:
            return None
        in_command = frame.f_code.co_filename.startswith(_COMMANDS)
        frame = frame.f_back
    if frame is None or in_command:
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
    """Raises the error for Python code that needs a value which is only known when the kernel runs.

    Args:
        what: the object, for the message.
        wanted: what Python needs: ``truth value``, ``integer``, ``length``.
        remedy: what the author can do, for the error's help.

    Raises:
        TileError: T144, always.
    """
    raise TileError(f"{what} has no Python {wanted} while the kernel is traced", code="T144", location=user_location(),
                    help=remedy)
