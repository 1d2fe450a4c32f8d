"""Conversions of tiles: the shortest way from one element type to another through those that the Vector core has."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from tilelang_npu.dialects import hacc, hivm
from tilelang_npu.dialects.hivm.casts import cast_name, is_supported_cast
from tilelang_npu.dialects.hivm.structured import mlir_type
from tilelang_npu.ops import DType, dtype
from tilelang_npu.transforms.ir.locations import refuse
from tilelang_npu.transforms.lower.views import View, broadcast_axes, materialise

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering

_TYPES = tuple(dtype(name) for name in ("i1", "i4", "i8", "ui8", "i16", "i32", "i64", "f16", "bf16", "f32"))
_PRECISION = {"i1": 1, "i4": 4, "i8": 8, "ui8": 8, "i16": 16, "f16": 11, "bf16": 8, "i32": 32, "f32": 24, "i64": 64,
              "f8E4M3FN": 4, "f8E5M2": 3}
_FALLBACKS = ("rint", "truncwithoverflow", "trunc")


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


@cache
def cast_path(source: DType, target: DType, mode: str, on_registers: bool = False) -> tuple[tuple[DType, str], ...] | None:
    """The steps (type reached, mode) from one element type to another, or None where no way exists.

    Steps before the last one are exact, so the asked mode rounds once; where that is impossible (an i32 to f16) the
    step through f32 rounds to nearest first. A vector unit ``on_registers`` (the 950's) has more of them, float8 among these.
    """
    if source == target:
        return ((target, mode),) if _direct(source, target, mode, on_registers) else None
    if source.is_integer and target.is_integer and not _widens(source, target):
        return _wrapping_path(source, target, mode, on_registers)
    for exact in (True, False):
        queue: deque[tuple[DType, ...]] = deque([(source,)])
        seen = {source, target}
        while queue:
            path = queue.popleft()
            here = path[-1]
            last = _last_step(here, target, mode, on_registers)
            if last is not None:
                return (*((kind, "rint") for kind in path[1:]), (target, last))
            for middle in _TYPES:
                fits = _widens(here, middle) or (not exact and middle.mlir == "f32")
                if middle not in seen and fits and _direct(here, middle, "rint", on_registers):
                    seen.add(middle)
                    queue.append((*path, middle))
    return None


def _wrapping_path(source: DType, target: DType, mode: str, on_registers: bool) -> tuple[tuple[DType, str], ...] | None:
    """From an integer type to one that does not hold all its values: one step, or dropping high bits until they are gone."""
    last = _last_step(source, target, mode, on_registers)
    if last is not None:
        return ((target, last),)
    halves = (kind for kind in reversed(_TYPES) if kind.is_integer and target.bits < kind.bits < source.bits)
    half = next((kind for kind in halves if _direct(source, kind, "truncwithoverflow", on_registers)), None)
    rest = cast_path(half, target, "truncwithoverflow", on_registers) if half is not None else None
    return ((half, "truncwithoverflow"), *rest) if half is not None and rest is not None else None


def convert(lowering: KernelLowering, op: Operation, source: View, target: View, mode: str) -> None:
    """``target = cast(source)`` in UB, through the types that the hardware converts directly; unit axes repeat.

    Raises:
        TileError: T234, no way between the types, or none with that rounding mode.
    """
    emit, kinds = lowering.emit, (source.buffer.dtype, target.buffer.dtype)
    on_registers = hacc.is_register_based(hacc.target_of(op))
    path = cast_path(*kinds, mode, on_registers)
    if path is None:
        modes = [other for other in ("rint", "round", "floor", "ceil", "trunc", "odd")
                 if cast_path(*kinds, other, on_registers) is not None]
        raise refuse(op, f"there is no conversion from {kinds[0]} to {kinds[1]} with the rounding mode {mode}", "T234",
                     notes=(f"{source.buffer.label} is {kinds[0]}, {target.buffer.label} is {kinds[1]}",),
                     help=f"there is one with {', '.join(modes)}" if modes else "convert to float16 or float32 first")
    current = source
    for kind, step_mode in path:
        last = kind == target.buffer.dtype
        landing = target if last else lowering.scratch(target, lowering.type_of(kind))
        unsigned = any(side.is_integer and not side.is_signed for side in (current.buffer.dtype, kind))
        emit.insert(hivm.VCastOp([materialise(emit, current, op)], [materialise(emit, landing, op)], round_mode=step_mode,
                                 cast="cast_unsigned" if unsigned else "cast_signed",
                                 broadcast=broadcast_axes([current], landing)))
        current = landing
