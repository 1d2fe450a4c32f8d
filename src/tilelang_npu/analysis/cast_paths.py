"""Conversions between element types as sequences of instructions that the Vector core has.

``vcast`` converts directly between some pairs of types only. Few of these are unsigned: uint8 from and to float16, and four
conversions to wider types on a register-based vector unit. Every other conversion is a sequence of steps. A sequence goes
through types that hold all values of the source, or drops high bits, or goes through a wider signed integer, as in these
conversions of unsigned types:

- uint16 to a wider type: the bits are read as int16 and sign-extended to int32; two shifts then clear the upper 16 bits;
- float32 to uint16: the value is converted to int32, which saturates, then clamped to the range of uint16; the lower 16 bits
  are the result.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache

from tilelang_npu.dialects.hivm.casts import cast_name, is_supported_cast
from tilelang_npu.dialects.ir.mlir_dtypes import mlir_type
from tilelang_npu.ops import DType, dtype

BITS = "bits"
"""The kind of a step that reads the bits of an integer as another integer type of the same width."""
ZERO_EXTEND = "zero-extend"
"""The kind of a step that clears the bits of an integer that a narrower type does not have."""
CLAMP = "clamp"
"""The kind of a step that replaces integers outside of the range of a narrower type by the nearest value of that type."""

_TYPES = tuple(dtype(name) for name in ("i1", "i4", "i8", "ui8", "i16", "i32", "i64", "f16", "bf16", "f32"))
_PRECISION = {"i1": 1, "i4": 4, "i8": 8, "ui8": 8, "i16": 16, "f16": 11, "bf16": 8, "i32": 32, "f32": 24, "i64": 64,
              "f8E4M3FN": 4, "f8E5M2": 3}
_FALLBACKS = ("rint", "truncwithoverflow", "trunc")
_WRAPPING = "truncwithoverflow"


@dataclass(frozen=True)
class CastStep:
    """One instruction of a conversion between element types, or a short fixed sequence of instructions.

    Attributes:
        kind: the element type of the step's result.
        how: the rounding mode, if the step is a ``vcast``; otherwise ``BITS``, ``ZERO_EXTEND`` or ``CLAMP``.
        of: the narrower type of a ``ZERO_EXTEND`` or ``CLAMP`` step; otherwise None.
    """

    kind: DType
    how: str
    of: DType | None = None


Path = tuple[CastStep, ...]


@cache
def cast_path(source: DType, target: DType, mode: str, on_registers: bool = False) -> Path | None:
    """Returns the steps that convert one element type to another, or None if the Vector core cannot convert between them.

    Args:
        source: element type of the input.
        target: element type of the result.
        mode: the rounding mode. All steps before the last one are exact, so that the value is rounded once. If that is
            impossible (int32 to float16), a first step to float32 rounds to nearest. A float outside of the range of an integer
            type becomes the nearest value of that type. Under ``truncwithoverflow`` an integer becomes its low bits in a
            narrower type or in a type of other signedness.
        on_registers: whether the vector unit is register-based (Ascend 950), which has more direct conversions.
    """
    if _is_unsigned(source):
        return _from_unsigned(source, target, mode, on_registers)
    if _is_unsigned(target):
        return _to_unsigned(source, target, mode, on_registers)
    return _through_types(source, target, mode, on_registers)


def _is_unsigned(kind: DType) -> bool:
    return kind.is_integer and not kind.is_signed


def _signed_type(bits: int) -> DType:
    return dtype(f"int{bits}")


def _is_direct(source: DType, target: DType, mode: str, on_registers: bool) -> bool:
    name = cast_name(mlir_type(source), mlir_type(target), mode, unsigned=False)
    return is_supported_cast(name, register_based=on_registers)


def _last_step(source: DType, target: DType, mode: str, on_registers: bool) -> str | None:
    """Returns the rounding mode of a direct ``vcast`` from ``source`` to ``target``; None if there is no direct ``vcast``.

    The result is the requested mode or, if the conversion is exact, the one mode that this ``vcast`` has.
    """
    if _is_direct(source, target, mode, on_registers):
        return mode
    exact = _holds_all_values(source, target) or (target.is_integer and source.is_integer)
    return next((other for other in _FALLBACKS if exact and _is_direct(source, target, other, on_registers)), None)


def _holds_all_values(a: DType, b: DType) -> bool:
    """Whether every value of ``a`` is a value of ``b``."""
    if a.is_float and not b.is_float:
        return False
    if a.is_integer and b.is_integer and a.is_signed != b.is_signed:
        return b.is_signed and b.bits > a.bits
    return _PRECISION.get(b.mlir, 0) >= _PRECISION.get(a.mlir, 99)


def _through_types(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """Returns the shortest sequence of ``vcast`` steps between two types; None where there is none."""
    if source == target:
        return (CastStep(target, mode),) if _is_direct(source, target, mode, on_registers) else None
    whole = source.is_integer and target.is_integer
    if whole and not _holds_all_values(source, target):
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
                fits = _holds_all_values(here, middle) or (not exact and middle.mlir == "f32")
                if middle not in seen and fits and _is_direct(here, middle, "rint", on_registers):
                    seen.add(middle)
                    queue.append((*path, middle))
    return None


def _wrapping_path(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """Returns the steps from an integer type to an integer type that cannot hold all values of the first one.

    The steps are a single conversion, or several conversions that drop high bits.
    """
    last = _last_step(source, target, mode, on_registers)
    if last is not None and (mode != _WRAPPING or last == _WRAPPING):  # any other mode saturates
        return (CastStep(target, last),)
    halves = (kind for kind in reversed(_TYPES) if kind.is_integer and target.bits < kind.bits < source.bits)
    half = next((kind for kind in halves if _is_direct(source, kind, _WRAPPING, on_registers)), None)
    rest = _through_types(half, target, _WRAPPING, on_registers) if half is not None else None
    return (CastStep(half, _WRAPPING), *rest) if half is not None and rest is not None else None


def _from_unsigned(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """Returns the steps from an unsigned type: a direct conversion, a reinterpretation of its bits, or a wider signed type."""
    if source == target:
        return None
    same = CastStep(_signed_type(source.bits), BITS)
    if target.is_bool:
        return _join((same,), _through_types(same.kind, target, mode, on_registers))
    if target.is_integer and (target.bits < source.bits or (target.bits == source.bits and mode == _WRAPPING)):
        if _is_direct(source, target, mode, on_registers):
            return (CastStep(target, mode),)
        return _join((same,), _as_bits(same.kind, target, mode, on_registers)) if mode == _WRAPPING else None
    if target.is_integer and target.bits == source.bits:
        return None
    direct = _through_types(source, target, mode, on_registers)
    if direct is not None:
        return direct
    if target.is_integer and not target.is_signed:
        return _join(_from_unsigned(source, _signed_type(target.bits), mode, on_registers), (CastStep(target, BITS),))
    if source.bits not in (16, 32):
        return None
    wide = _signed_type(2 * source.bits)
    extended = (same, CastStep(wide, "rint"), CastStep(wide, ZERO_EXTEND, source))
    return extended if target == wide else _join(extended, _through_types(wide, target, mode, on_registers))


def _to_unsigned(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """Returns the steps from a float, a bool or a signed integer to an unsigned type."""
    if source.is_bool or mode == _WRAPPING:
        return _through_types(source, target, mode, on_registers) or _as_bits(source, target, mode, on_registers)
    if source.is_integer:
        return None
    if target.bits == 8:
        half, direct = dtype("float16"), _through_types(source, target, mode, on_registers)
        if direct is not None or not _is_direct(half, target, mode, on_registers):
            return direct
        # to odd: the second rounding sees that the first one was inexact, and on which side
        return _join(_through_types(source, half, "odd", on_registers), (CastStep(target, mode),))
    if target.bits == 64:
        return None
    wide, narrow = _signed_type(2 * target.bits), _signed_type(target.bits)
    saturated = _join(_through_types(source, wide, mode, on_registers), (CastStep(wide, CLAMP, target),))
    return _join(saturated, (CastStep(narrow, _WRAPPING), CastStep(target, BITS)))


def _as_bits(source: DType, target: DType, mode: str, on_registers: bool) -> Path | None:
    """Returns the steps that convert an integer to its low bits in another integer type.

    The integer is converted to the signed type of the target's width, whose bits are the result.
    """
    plain = _signed_type(target.bits)
    path: Path | None = () if source == plain else _through_types(source, plain, mode, on_registers)
    return path if path is None or target == plain else (*path, CastStep(target, BITS))


def _join(first: Path | None, second: Path | None) -> Path | None:
    return None if first is None or second is None else (*first, *second)


__all__ = ["BITS", "CLAMP", "ZERO_EXTEND", "CastStep", "Path", "cast_path"]
