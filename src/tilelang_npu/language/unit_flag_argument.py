"""The argument ``unit_flag`` of ``T.mma`` and ``T.copy``: pipe M passes blocks of L0C to pipe FIX without an event."""

from __future__ import annotations

from tilelang_npu.errors import TileError
from tilelang_npu.traced.scalars import Expr

_MODES = {0: None, 0b10: "ENABLED_WITHOUT_UPDATE", 0b11: "ENABLED_WITH_UPDATE"}


def passes_on(what: str, unit_flag: object) -> object:
    """Returns the condition that a unit flag that only run time knows is ``0b11``; None for any other argument.

    Raises:
        TileError: T145, the number may be another one than ``0b10`` and ``0b11``.
    """
    if not isinstance(unit_flag, Expr) or unit_flag.constant is not None:
        return None
    if unit_flag.kind.is_float or unit_flag.kind.is_bool or unit_flag.bounds.low < 0b10 or unit_flag.bounds.high > 0b11:
        raise TileError(f"{what}: unit_flag is {unit_flag}, which may be another number than 0b10 and 0b11", code="T145",
                        help="write T.if_then_else(last, 0b11, 0b10)")
    return unit_flag == 0b11


def unit_flag_mode(what: str, unit_flag: object) -> str | None:
    """Returns HIVM's name of a unit-flag mode, or None for no unit flags.

    Args:
        what: the name of the call, for messages.
        unit_flag: the argument of the call: None, 0, ``0b10`` or ``0b11``.

    Raises:
        TileError: T145, there is no such mode.
    """
    if unit_flag is None:
        return None
    if type(unit_flag) is not int or unit_flag not in _MODES:
        raise TileError(f"{what}: unit_flag is {unit_flag!r}", code="T145",
                        help="unit_flag must be 0b10 (products keep the blocks of L0C), 0b11 (they are passed on), or 0")
    return _MODES[unit_flag]


__all__ = ["passes_on", "unit_flag_mode"]
