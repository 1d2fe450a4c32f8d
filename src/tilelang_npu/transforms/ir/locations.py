"""Kernel source locations on operations, and errors that point there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation

from tilelang_npu.dialects.ir.remarks import strip_remarks
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError


def line_of(op: Operation) -> str:
    """``line 31`` for a message, or ``a compiler-made operation``."""
    where = location_of(op)
    return f"line {where.line}" if where else "a compiler-made operation"


def lines_of(ops: Iterable[Operation]) -> str:
    """``line 31, line 40`` for a message: each line once, in order."""
    return ", ".join(line_of(op) for op in {location_of(op): op for op in sorted(ops, key=_position)}.values())


def _position(op: Operation) -> tuple[str, int, int]:
    where = location_of(op)
    return (where.file, where.line, where.column) if where is not None else ("", 0, 0)


def refuse(op: Operation, message: str, code: str, *, notes: Sequence[str] = (),
           help: str = "",  # noqa: A002  (the word the message prints)
           label: str = "") -> TileError:
    """The error that says ``op`` cannot be compiled, at the line it comes from."""
    return TileError(message, code=code, location=location_of(op), notes=notes, help=help, label=label)


def stand_in(op: Operation, *made: Operation) -> None:
    """Give operations that a pass made for ``op`` its source location."""
    for new in made:
        new.location = strip_remarks(op.location)


__all__ = ["line_of", "lines_of", "location_of", "refuse", "stand_in"]
