"""The element types of ``T`` (``T.float16``, ``T.int32``), and the conversion of arguments that name an element type."""

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

SCALAR_NAMES = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn",
                "int4", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")


class Sized(Protocol):
    """The interface of an element type object of NumPy or torch."""

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element."""


ElementType: TypeAlias = str | type[Any] | Sized
"""The type of arguments that name an element type: ``"float16"``, ``T.float16``, ``numpy.float16`` or ``torch.float16``."""
Whole: TypeAlias = int | Sym | Scalar
"""The type of integer arguments: a Python integer, a symbolic dimension, or an integer value of the kernel."""
Extents: TypeAlias = Whole | Sequence[Whole]
"""The type of shape arguments: a list of sizes, or one size for a shape with one axis."""


class ScalarType(DType):
    """An element type in ``T``, such as ``T.float32``. It is a string, an annotation of number parameters (``n: T.int32``) and
    a function that converts scalars (``T.float32(x)``).
    """

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
        """Returns the torch ``dtype`` with the same name."""
        return getattr(import_module("torch"), str(self))


class _TensorFloat32(ScalarType):
    """``T.tfloat32``: float32, whose products a GPU computes with fewer bits. Here they are computed in float32."""

    __slots__ = ()


_SHORT_NAMES = ("float", "int", "float8_e4m3", "half", "double", "short", "long", "uint")
TOKENS: dict[str, ScalarType] = {**{name: ScalarType(name) for name in (*SCALAR_NAMES, *_SHORT_NAMES)},
                                 "tfloat32": _TensorFloat32("tfloat32")}


def infinity(dtype: ElementType) -> float:
    """Return positive infinity of a floating-point type, or the largest value of an integer type, as a Python number.

    Example: ``T.infinity("float16")``
    """
    element = element_type(dtype, "T.infinity")
    if element.is_float:
        return math.inf
    return (1 << (element.bits - int(element.is_signed))) - 1


def element_type(spelling: object, what: str) -> DType:
    """Returns the element type that an argument names.

    Args:
        spelling: a string, an element type of ``T``, NumPy or torch.
        what: the name of the call, for messages.

    Raises:
        TileError: T110, there is no element type with this name.
    """
    if isinstance(spelling, _TensorFloat32) or spelling == "tfloat32":
        trace: Any = active()
        if trace is not None:
            trace.ignore("T.tfloat32, whose products are computed in float32")
    try:
        return DType(str(spelling)) if isinstance(spelling, DType) else DType(spelling)
    except ValueError as problem:
        raise TileError(f"{what}: {problem}", code="T110",
                        help="write it as a string or as T.float16, T.int32, ...") from None


def sizes_of(shape: object) -> Sequence[Any]:  # checked by the caller
    """Returns a shape argument as a sequence of sizes; a single size becomes a shape with one axis."""
    return shape if isinstance(shape, (tuple, list)) else (shape,)
