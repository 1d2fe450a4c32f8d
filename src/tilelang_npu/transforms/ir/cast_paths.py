"""Conversions between element types as sequences of steps that the Vector core has.

``vcast`` converts directly between some pairs of types only, and few of these are unsigned: uint8 from and to float16, and on a
register-based unit four widenings. Every other conversion is a sequence: through types that hold all values of the source, by
dropping high bits, or through a wider signed integer for unsigned ones:

- uint16 to a wider type: its bits as int16, which widen with their sign to int32; two shifts then clear the upper half;
- float32 to uint16: to int32, which saturates, then into the range of uint16, then the lower half.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache

from tilelang_npu.dialects.hivm.casts import cast_name, is_supported_cast
from tilelang_npu.dialects.ir.mlir_dtypes import mlir_type
from tilelang_npu.ops import DType, dtype

BITS = "bits"
"""A step that reads the same bits as another integer type of the same width."""
ZERO_EXTEND = "zero-extend"
"""A step that clears the bits above those of a narrower type."""
CLAMP = "clamp"
"""A step that brings integers into the range of a narrower type."""

_TYPES = tuple(dtype(name) for name in ("i1", "i4", "i8", "ui8", "i16", "i32", "i64", "f16", "bf16", "f32"))
_PRECISION = {"i1": 1, "i4": 4, "i8": 8, "ui8": 8, "i16": 16, "f16": 11, "bf16": 8, "i32": 32, "f32": 24, "i64": 64,
              "f8E4M3FN": 4, "f8E5M2": 3}
_FALLBACKS = ("rint", "truncwithoverflow", "trunc")
_WRAPPING = "truncwithoverflow"


@dataclass(frozen=True)
class CastStep:
    """One step of a conversion.

    Attributes:
        kind: element type of its result.
        how: a rounding mode of ``vcast``, or ``BITS``, ``ZERO_EXTEND`` or ``CLAMP``.
        of: the narrower type of ``ZERO_EXTEND`` and ``CLAMP``.
    """

    kind: DType
    how: str
    of: DType | None = None


Path = tuple[CastStep, ...]


@cache
def cast_path(source: DType, target: DType, mode: str, on_registers: bool = False) -> Path | None:
    """The steps from one element type to another, or None where no way exists.

    Args:
        source: element type of the input.
        target: element type of the result.
        mode: the rounding mode. Steps before the last one are exact, so it rounds once; where that is impossible (int32 to
            float16) the step through float32 rounds to nearest first. A float becomes the nearest value of an integer type that
            does not hold it. Under ``truncwithoverflow`` an integer becomes a narrower one, or one of the other sign, by its
            low bits.
        on_registers: whether the vector unit is register-based (the 950's), which has more direct conversions.
    """
    if _is_unsigned(source):
        return _from_unsigned(source, target, mode, on_registers)
    if _is_unsigned(target):
        return _to_unsigned(source, target, mode, on_registers)
    return _through_types(source, target, mode, on_registers)


def _is_unsigned(kind: DType) -> bool:
    return kind.is_integer and not kind.is_signed


def _signed(bits: int) -> DType:
    return dtype(f"int{bits}")


def _direct(source: DType, target: DType, mode: str, on_registers: bool) -> bool:
    name = cast_name(mlir_type(source), mlir_type(target), mode, unsigned=False)
    return is_supported_cast(name, register_based=on_registers)


def _last_step(source: DType, target: DType, mode: str, on_registers: bool) -> str | None:
    """The mode of a single conversion: the one asked for, or the only one there is for a conversion that is exact."""
    if _direct(source, target, mode, on_registers):
        return mode
    exact = _widens(source, target) or (target.is_integer and source.is_integer)
    return next((other for other in _FALLBACKS if exact and _direct(source, target, other, on_registers)), None)


def _widens(a: DType, b: DType) -> bool:
    """Whether every value of ``a`` is a value of ``b``."""
    if a.is_float and not b.is_float:
        return False
    if a.is_integer and b.is_integer and a.is_signed != b.is_signed:
        return b.is_signed and b.bits > a.bits
    return _PRECISION.get(b.mlir, 0) >= _PRECISION.get(a.mlir, 99)


def _through_types(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """The shortest way by ``vcast`` alone."""
    if source == target:
        return (CastStep(target, mode),) if _direct(source, target, mode, on_registers) else None
    whole = source.is_integer and target.is_integer
    if whole and not _widens(source, target):
        return _wrapping_path(source, target, mode, on_registers)
    for exact in (True,) if whole else (True, False):
        queue: deque[tuple[DType, ...]] = deque([(source,)])
        seen = {source, target}
        while queue:
            path = queue.popleft()
            here = path[-1]
            last = _last_step(here, target, mode, on_registers)
            if last is not None:
                return (*(CastStep(kind, "rint") for kind in path[1:]), CastStep(target, last))
            for middle in _TYPES:
                fits = _widens(here, middle) or (not exact and middle.mlir == "f32")
                if middle not in seen and fits and _direct(here, middle, "rint", on_registers):
                    seen.add(middle)
                    queue.append((*path, middle))
    return None


def _wrapping_path(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """From an integer type to one that does not hold all its values: one step, or dropping high bits until they are gone."""
    last = _last_step(source, target, mode, on_registers)
    if last is not None and (mode != _WRAPPING or last == _WRAPPING):  # any other mode saturates
        return (CastStep(target, last),)
    halves = (kind for kind in reversed(_TYPES) if kind.is_integer and target.bits < kind.bits < source.bits)
    half = next((kind for kind in halves if _direct(source, kind, _WRAPPING, on_registers)), None)
    rest = _through_types(half, target, _WRAPPING, on_registers) if half is not None else None
    return (CastStep(half, _WRAPPING), *rest) if half is not None and rest is not None else None


def _from_unsigned(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """From an unsigned type: directly, by its bits, or by way of a signed type that is wide enough."""
    if source == target:
        return None
    same = CastStep(_signed(source.bits), BITS)
    if target.is_bool:
        return _joined((same,), _through_types(same.kind, target, mode, on_registers))
    if target.is_integer and (target.bits < source.bits or (target.bits == source.bits and mode == _WRAPPING)):
        if _direct(source, target, mode, on_registers):
            return (CastStep(target, mode),)
        return _joined((same,), _as_bits(same.kind, target, mode, on_registers)) if mode == _WRAPPING else None
    if target.is_integer and target.bits == source.bits:
        return None
    direct = _through_types(source, target, mode, on_registers)
    if direct is not None:
        return direct
    if target.is_integer and not target.is_signed:
        return _joined(_from_unsigned(source, _signed(target.bits), mode, on_registers), (CastStep(target, BITS),))
    if source.bits not in (16, 32):
        return None
    wide = _signed(2 * source.bits)
    extended = (same, CastStep(wide, "rint"), CastStep(wide, ZERO_EXTEND, source))
    return extended if target == wide else _joined(extended, _through_types(wide, target, mode, on_registers))


def _to_unsigned(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """From a float, a truth value or a signed integer to an unsigned type."""
    if source.is_bool or mode == _WRAPPING:
        return _through_types(source, target, mode, on_registers) or _as_bits(source, target, mode, on_registers)
    if source.is_integer:
        return None
    if target.bits == 8:
        half, direct = dtype("float16"), _through_types(source, target, mode, on_registers)
        if direct is not None or not _direct(half, target, mode, on_registers):
            return direct
        # to odd: the second rounding sees that the first one was inexact, and on which side
        return _joined(_through_types(source, half, "odd", on_registers), (CastStep(target, mode),))
    if target.bits == 64:
        return None
    wide, narrow = _signed(2 * target.bits), _signed(target.bits)
    saturated = _joined(_through_types(source, wide, mode, on_registers), (CastStep(wide, CLAMP, target),))
    return _joined(saturated, (CastStep(narrow, _WRAPPING), CastStep(target, BITS)))


def _as_bits(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """To an integer type by the low bits of another one: as the signed type of its width, whose bits are then the result."""
    plain = _signed(target.bits)
    path: Path | None = () if source == plain else _through_types(source, plain, mode, on_registers)
    return path if path is None or target == plain else (*path, CastStep(target, BITS))


def _joined(first: Path | None, second: Path | None) -> Path | None:
    return None if first is None or second is None else (*first, *second)


__all__ = ["BITS", "CLAMP", "ZERO_EXTEND", "CastStep", "Path", "cast_path"]
