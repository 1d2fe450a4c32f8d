"""Element types: one row each, with the spelling of TileLang, of MLIR and of NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class _Row:
    name: str
    mlir: str
    held: Any  # an argument of np.dtype, or a name in ml_dtypes, which is loaded on demand
    bits: int
    kind: str  # "float", "int", "uint" or "bool"
    aliases: tuple[str, ...] = ()

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type of an element."""
        held = self.held
        if isinstance(held, str):
            import ml_dtypes

            held = getattr(ml_dtypes, held)
        made: np.dtype[Any] = np.dtype(held)
        return made


def _row(name: str, mlir: str, numpy: Any, bits: int, kind: str, *aliases: str) -> _Row:
    return _Row(name, mlir, numpy, bits, kind, aliases)


_ROWS = (
    _row("float16", "f16", np.float16, 16, "float", "half", "fp16"),
    _row("bfloat16", "bf16", "bfloat16", 16, "float"),
    _row("float32", "f32", np.float32, 32, "float", "float", "fp32"),
    _row("float64", "f64", np.float64, 64, "float", "double"),
    _row("float8_e4m3fn", "f8E4M3FN", "float8_e4m3fn", 8, "float", "e4m3_float8", "float8_e4m3"),
    _row("float8_e5m2", "f8E5M2", "float8_e5m2", 8, "float", "e5m2_float8"),
    _row("int4", "i4", "int4", 4, "int"),
    _row("int8", "i8", np.int8, 8, "int"),
    _row("int16", "i16", np.int16, 16, "int"),
    _row("int32", "i32", np.int32, 32, "int", "int"),
    _row("int64", "i64", np.int64, 64, "int"),
    _row("uint8", "ui8", np.uint8, 8, "uint"),
    _row("uint16", "ui16", np.uint16, 16, "uint"),
    _row("uint32", "ui32", np.uint32, 32, "uint"),
    _row("uint64", "ui64", np.uint64, 64, "uint"),
    _row("bool", "i1", np.bool_, 1, "bool"),
)
_BY_NAME = {key: row for row in _ROWS for key in (row.name, row.mlir, *row.aliases)}


@cache
def _by_numpy() -> dict[np.dtype[Any], _Row]:
    return {row.numpy: row for row in _ROWS}


class DType(str):
    """An element type. It is the TileLang name as a string, so ``T.float16 == "float16"``.

    Accepts any spelling (TileLang, MLIR, NumPy dtype, an object whose string ends in a known name, as torch dtypes do).

    Raises:
        ValueError: the spelling names no element type; the message lists those that exist.
    """

    __slots__ = ("_row",)
    _row: _Row

    def __new__(cls, spelling: object) -> DType:
        if isinstance(spelling, DType):
            return spelling
        row = _find(spelling)
        if row is None:
            known = ", ".join(r.name for r in _ROWS)
            msg = f"unknown element type {str(spelling)!r}; known are {known}"
            raise ValueError(msg)
        return _make(row.name)

    def __reduce__(self) -> tuple[type[DType], tuple[str]]:
        return DType, (str(self),)  # unpickling returns the instance of this process

    @property
    def mlir(self) -> str:
        """The builtin MLIR type, e.g. ``f16``, ``i8``, ``ui8``."""
        return self._row.mlir

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype that holds one element (``bool`` takes one byte there)."""
        return self._row.numpy

    @property
    def bits(self) -> int:
        """The width of an element in bits."""
        return self._row.bits

    @property
    def nbytes(self) -> int:
        """The bytes of an element in memory; sub-byte types are stored one per byte."""
        return max(1, self._row.bits // 8)

    @property
    def is_float(self) -> bool:
        return self._row.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self._row.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        return self._row.kind in ("int", "float")

    @property
    def is_bool(self) -> bool:
        return self._row.kind == "bool"


def _find(spelling: object) -> _Row | None:
    if isinstance(spelling, str):
        return _BY_NAME.get(spelling)
    try:
        row = _by_numpy().get(np.dtype(spelling))  # type: ignore[call-overload]  # raises for the rest
    except TypeError:
        row = None
    return row or _BY_NAME.get(str(spelling).rsplit(".", 1)[-1])


@cache
def _make(name: str) -> DType:
    made = str.__new__(DType, name)
    made._row = _BY_NAME[name]
    return made


def dtype(spelling: object) -> DType:
    """The element type that ``spelling`` names; see :class:`DType`."""
    return DType(spelling)
