"""The shortest way from one element type to another through the conversions that the Vector core has."""

from __future__ import annotations

from collections import deque
from functools import cache

from tilelang_npu.dialects.hivm.casts import cast_name, is_supported_cast
from tilelang_npu.dialects.hivm.structured import mlir_type
from tilelang_npu.ops import DType, dtype

_TYPES = tuple(dtype(name) for name in ("i1", "i4", "i8", "ui8", "i16", "i32", "i64", "f16", "bf16", "f32"))
_PRECISION = {"i1": 1, "i4": 4, "i8": 8, "ui8": 8, "i16": 16, "f16": 11, "bf16": 8, "i32": 32, "f32": 24, "i64": 64}
_FALLBACKS = ("rint", "truncwithoverflow", "trunc")


def _direct(source: DType, target: DType, mode: str) -> bool:
    name = cast_name(mlir_type(source), mlir_type(target), mode, unsigned=False)
    return is_supported_cast(name, register_based=False)


def _last_step(source: DType, target: DType, mode: str) -> str | None:
    """The mode of a single conversion: the one asked for, or the only one there is for a conversion that is exact."""
    if _direct(source, target, mode):
        return mode
    exact = _widens(source, target) or (target.is_integer and source.is_integer)
    return next((other for other in _FALLBACKS if exact and _direct(source, target, other)), None)


def _widens(a: DType, b: DType) -> bool:
    """Whether every value of ``a`` is a value of ``b``."""
    if a.is_float and not b.is_float:
        return False
    return _PRECISION.get(b.mlir, 0) >= _PRECISION.get(a.mlir, 99)


@cache
def cast_path(source: DType, target: DType, mode: str) -> tuple[tuple[DType, str], ...] | None:
    """The steps (type reached, mode) from one element type to another, or None where no way exists.

    Steps before the last one are exact, so the asked mode rounds once; where that is impossible (an i32 to f16) the
    step through f32 rounds to nearest first.
    """
    if source == target:
        return ((target, mode),) if _direct(source, target, mode) else None
    for exact in (True, False):
        queue: deque[tuple[DType, ...]] = deque([(source,)])
        seen = {source}
        while queue:
            path = queue.popleft()
            here = path[-1]
            last = _last_step(here, target, mode)
            if last is not None:
                return (*((kind, "rint") for kind in path[1:]), (target, last))
            for middle in _TYPES:
                fits = _widens(here, middle) or (not exact and middle.mlir == "f32")
                if middle not in seen and fits and _direct(here, middle, "rint"):
                    seen.add(middle)
                    queue.append((*path, middle))
    return None
