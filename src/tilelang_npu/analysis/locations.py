"""Source locations of operations, and errors that point there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from tilelang_npu.dialects.ir.remarks import strip_remarks
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.diagnostic_codes import Code


def line_of(op: Operation) -> str:
    """Returns the source line of an operation as text for a message.

    The text is ``line 31``, or ``a compiler-made operation`` if the operation has no location.
    """
    where = location_of(op)
    return f"line {where.line}" if where else "a compiler-made operation"


def lines_of(ops: Iterable[Operation]) -> str:
    """Returns the source lines of operations as text for a message: ``line 31, line 40``, in order and each position once."""
    return ", ".join(line_of(op) for op in {location_of(op): op for op in sorted(ops, key=_sort_key)}.values())


def _sort_key(op: Operation) -> tuple[str, int, int]:
    where = location_of(op)
    return (where.file, where.line, where.column) if where is not None else ("", 0, 0)


def refuse(op: Operation, message: str, code: Code, *, notes: Sequence[str] = (),
           help: str = "",  # noqa: A002  (TileError has a parameter of this name)
           label: str = "") -> TileError:
    """Returns an error at the source location of an operation; the caller raises the error.

    Args:
        op: the operation that cannot be compiled.
        message: what is wrong.
        code: the code of the error, such as ``T294``.
        notes: further facts, one per line of the printed error.
        help: what the author can change.
        label: the text at the marked part of the source line.
    """
    return TileError(message, code=code, location=location_of(op), notes=notes, help=help, label=label)


def copy_location(op: Operation, *made: Operation) -> None:
    """Copies the source location of ``op``, without its remarks, to operations that a pass made for ``op``."""
    for new in made:
        new.location = strip_remarks(op.location)


__all__ = ["copy_location", "line_of", "lines_of", "location_of", "refuse"]
