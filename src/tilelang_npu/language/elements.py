"""Element types (``T.float16``, ``T.int32``), and arguments that name one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from tilelang_npu.dispatch import interpreting
from tilelang_npu.errors import TileError
from tilelang_npu.ops import DType
from tilelang_npu.traced import numbers
from tilelang_npu.traced.active_trace import Scalar, active
from tilelang_npu.traced.symbols import Sym

SCALAR_NAMES = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "int4", "int8", "int16", "int32",
                "int64", "uint8", "uint16", "uint32", "uint64", "bool")


class Sized(Protocol):
    """An element type of NumPy or torch."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""


ElementType: TypeAlias = str | type[Any] | Sized
"""An element type: ``"float16"``, ``T.float16``, ``numpy.float16`` or ``torch.float16``."""
Whole: TypeAlias = int | Sym | Scalar
"""An integer of the host, of a call, or of the kernel."""
Extents: TypeAlias = Whole | Sequence[Whole]
"""A shape: its sizes, or one size."""


class ScalarType(DType):
    """An element type in ``T``: a string, an annotation (``n: T.int32``) and a conversion (``T.float32(x)``)."""

    __slots__ = ()

    def __new__(cls, spelling: object) -> ScalarType:
        made = str.__new__(cls, str(DType(spelling)))
        made._row = DType(spelling)._row
        return made

    def __call__(self, value: Any) -> Any:  # a number of the host, or a scalar of the trace
        """Return ``value`` converted to this element type: a value of the kernel, or a Python number rounded to the type."""
        if isinstance(value, str) and self.is_float:
            value = float(value)  # "inf", "-inf" and "nan" have no literal
        interpreted = interpreting()
        if interpreted is not None:
            return interpreted.call("cast", (value, DType(str(self))), {})
        current = active()
        if current is not None:
            return current.cast(value, DType(str(self)))
        if isinstance(value, Sym):
            return value.astype(self)
        return numbers.cast(value, DType(str(self)))

    def as_torch(self) -> Any:  # torch is not imported for its types
        """The type of torch with the same name."""
        return getattr(import_module("torch"), str(self))


TOKENS: dict[str, ScalarType] = {name: ScalarType(name) for name in (*SCALAR_NAMES, "float", "int", "float8_e4m3")}


def infinity(dtype: ElementType) -> float:
    """Return positive infinity of a floating-point type, or the largest value of an integer type, as a Python number.

    Example: ``T.infinity("float16")``
    """
    element = element_type(dtype, "T.infinity")
    if element.is_float:
        return math.inf
    return (1 << (element.bits - int(element.is_signed))) - 1


def element_type(spelling: object, what: str) -> DType:
    """Returns the element type that ``spelling`` names.

    Raises:
        TileError: T110, there is none of that name.
    """
    try:
        return DType(str(spelling)) if isinstance(spelling, DType) else DType(spelling)
    except ValueError as problem:
        raise TileError(f"{what}: {problem}", code="T110",
                        help="write it as a string or as T.float16, T.int32, ...") from None


def sizes_of(shape: object) -> Sequence[Any]:  # checked by the caller
    """A shape argument as a sequence; a single size becomes a shape with one axis."""
    return shape if isinstance(shape, (tuple, list)) else (shape,)
