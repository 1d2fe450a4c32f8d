"""The element types, each with its spelling in TileLang, in MLIR and in NumPy, its width and its kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np


@dataclass(frozen=True)
class _Row:
    name: str
    mlir: str
    held: type[np.generic] | str  # an argument of np.dtype, or a name in ml_dtypes, which is loaded on demand
    bits: int
    kind: str  # "float", "int", "uint" or "bool"
    aliases: tuple[str, ...] = ()

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype that holds an element."""
        held = self.held
        if isinstance(held, str):
            import ml_dtypes

            held = getattr(ml_dtypes, held)
        made: np.dtype[np.generic] = np.dtype(held)
        return made


def _row(name: str, mlir: str, numpy: type[np.generic] | str, bits: int, kind: str, *aliases: str) -> _Row:
    return _Row(name, mlir, numpy, bits, kind, aliases)


_ROWS = (
    _row("float16", "f16", np.float16, 16, "float", "half", "fp16"),
    _row("bfloat16", "bf16", "bfloat16", 16, "float"),
    _row("float32", "f32", np.float32, 32, "float", "float", "fp32", "tfloat32"),
    _row("float64", "f64", np.float64, 64, "float", "double"),
    _row("float8_e4m3fn", "f8E4M3FN", "float8_e4m3fn", 8, "float", "e4m3_float8", "float8_e4m3"),
    _row("float8_e5m2", "f8E5M2", "float8_e5m2", 8, "float", "e5m2_float8"),
    _row("float8_e8m0fnu", "f8E8M0FNU", "float8_e8m0fnu", 8, "float", "e8m0_float8", "float8_e8m0"),
    _row("float4_e2m1fn", "f4E2M1FN", "float4_e2m1fn", 4, "float", "e2m1_float4", "float4_e2m1", "float4_e2m1fn_x2"),
    _row("int4", "i4", "int4", 4, "int"),
    _row("int8", "i8", np.int8, 8, "int"),
    _row("int16", "i16", np.int16, 16, "int", "short"),
    _row("int32", "i32", np.int32, 32, "int", "int"),
    _row("int64", "i64", np.int64, 64, "int", "long"),
    _row("uint8", "ui8", np.uint8, 8, "uint"),
    _row("uint16", "ui16", np.uint16, 16, "uint"),
    _row("uint32", "ui32", np.uint32, 32, "uint", "uint"),
    _row("uint64", "ui64", np.uint64, 64, "uint"),
    _row("bool", "i1", np.bool_, 1, "bool"),
)
_BY_NAME = {key: row for row in _ROWS for key in (row.name, row.mlir, *row.aliases)}


@cache
def _by_numpy() -> dict[np.dtype[np.generic], _Row]:
    return {row.numpy: row for row in _ROWS}


class DType(str):
    """An element type. A ``DType`` is a string, the type's name in TileLang, so ``T.float16 == "float16"``.

    Args:
        spelling: the name in TileLang or MLIR, an alias such as ``half``, a NumPy dtype, or an object whose string ends in
            such a name after a dot, as that of a torch dtype does.

    Raises:
        ValueError: the spelling names no element type; the message lists the names that exist.
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
        """The name of the builtin MLIR type, e.g. ``f16``, ``i8``, ``ui8``."""
        return self._row.mlir

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype that holds one element; ``bool`` and types of 4 bits take one byte there."""
        return self._row.numpy

    @property
    def bits(self) -> int:
        """The width of an element in bits."""
        return self._row.bits

    @property
    def nbytes(self) -> int:
        """The number of bytes of an element in memory; an element of less than 8 bits takes one byte."""
        return max(1, self._row.bits // 8)

    @property
    def packed(self) -> bool:
        """Whether a byte of memory holds two elements: the lower four bits the one with the even index."""
        return self._row.bits == 4

    @property
    def stored(self) -> DType:
        """The element type of the memory that holds such elements: int8 for a pair of 4 bits, uint8 for the exponents of
        ``float8_e8m0fnu``, and the type itself for all others."""
        if self.packed:
            return DType("int8")
        return DType("uint8") if self._row.name == "float8_e8m0fnu" else self

    bytes = itemsize = nbytes
    """TileLang's names of :attr:`nbytes`."""

    @property
    def lanes(self) -> int:
        """1: there are no vector types."""
        return 1

    @property
    def is_float(self) -> bool:
        """Whether this is a floating-point type."""
        return self._row.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed or unsigned integer type; ``bool`` is not."""
        return self._row.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        """Whether this is a signed integer type or a floating-point type."""
        return self._row.kind in ("int", "float")

    @property
    def is_bool(self) -> bool:
        """Whether this is ``bool``."""
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
    """Returns the element type that ``spelling`` names; see :class:`DType` for the spellings and errors."""
    return DType(spelling)
