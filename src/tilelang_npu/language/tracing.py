"""What the language functions know about a running trace: whether there is one, and who asked.

This module is light on purpose: a kernel file that is only imported needs no IR framework.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar, Token
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from tilelang_npu.errors import Location, TileError

if TYPE_CHECKING:
    from tilelang_npu.frontend.builder import Builder

_ACTIVE: ContextVar[Builder | None] = ContextVar("tilelang_npu_trace", default=None)
_PACKAGE = str(Path(__file__).parent.parent)  # as code objects spell it
_WALKERS = tuple(str(Path(_PACKAGE, "frontend", name)) for name in ("expressions.py", "calls.py", "statements.py"))


class TracedValue:
    """Marks what exists only while a kernel is traced: scalars, buffers, regions, element references."""

    __slots__ = ()


def active() -> Builder | None:
    """The builder of the running trace, or None on the host."""
    return _ACTIVE.get()


def enter(builder: Builder) -> Token[Builder | None]:
    """Make ``builder`` the running trace; give the token to :func:`leave`."""
    return _ACTIVE.set(builder)


def leave(token: Token[Builder | None]) -> None:
    """End the running trace."""
    _ACTIVE.reset(token)


def builder(what: str) -> Builder:
    """The builder of the running trace.

    Raises:
        TileError: T160, ``what`` was used on the host.
    """
    found = _ACTIVE.get()
    if found is None:
        raise TileError(f"{what} is only usable inside a @T.prim_func", code="T160", location=user_location(),
                        help="move it into the kernel's body, below `with T.Kernel(...)`")
    return found


def user_location() -> Location | None:
    """The innermost place on the Python stack that is not in this package; None where the front end itself, which knows the
    place in the kernel, stands in between."""
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
    positions: Any = getattr(frame.f_code, "co_positions", None)
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
