"""Element types and annotations: ``T.float16``, ``T.int32``, ``T.Tensor(shape, dtype)``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tilelang_npu.errors import TileError
from tilelang_npu.frontend import numbers
from tilelang_npu.language import tracing
from tilelang_npu.language.symbols import Sym
from tilelang_npu.ops import DType

SCALAR_NAMES = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "int4", "int8", "int16", "int32",
                "int64", "uint8", "uint16", "uint32", "uint64", "bool")


class ScalarType(DType):
    """An element type as it stands in ``T``: a string, an annotation (``n: T.int32``) and a cast (``T.float32(x)``)."""

    __slots__ = ()

    def __new__(cls, spelling: object) -> ScalarType:
        made = str.__new__(cls, str(DType(spelling)))
        made._row = DType(spelling)._row
        return made

    def __call__(self, value: Any) -> Any:
        """``value`` as this element type: an operation on a traced value, else a Python number rounded to the type."""
        if isinstance(value, str) and self.is_float:
            value = float(value)  # "inf", "-inf" and "nan" have no literal
        current = tracing.active()
        if current is not None:
            return current.cast(value, DType(str(self)))
        if isinstance(value, Sym):
            return value.astype(self)
        return numbers.cast(value, DType(str(self)))

    def as_torch(self) -> Any:
        """torch's type of the same name."""
        return getattr(import_module("torch"), str(self))


TOKENS: dict[str, ScalarType] = {name: ScalarType(name) for name in (*SCALAR_NAMES, "float", "int", "float8_e4m3")}


class Tensor:
    """A global tensor as a parameter: ``A: T.Tensor((M, N), "float16")`` or ``A: T.Tensor[(M, N), "float16"]``.

    ``T.Tensor(shape, dtype, A.data)`` in a kernel is no parameter but ``T.view(A, shape, dtype)``.

    Args:
        shape: sizes, numbers or symbolic dimensions; one size may stand alone.
        dtype: element type; ``float32`` without it.
    """

    __slots__ = ("dtype", "shape")

    def __new__(cls, shape: Any, dtype: Any = "float32", data: Any = None, **_: Any) -> Any:
        if data is None:
            return super().__new__(cls)
        from tilelang_npu.language.movement import view_of

        return view_of(data, shape, dtype)

    def __init__(self, shape: Any, dtype: Any = "float32", **unused: Any) -> None:
        if unused:
            raise TileError(f"T.Tensor: argument {next(iter(unused))!r} is not supported yet", code="T190",
                            location=tracing.user_location(), help="leave it out: tensors are row-major without gaps")
        self.shape: tuple[Any, ...] = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.dtype = dtype

    def __class_getitem__(cls, item: Any) -> Tensor:
        if isinstance(item, tuple) and item and not _is_size(item[-1]) and not isinstance(item[-1], (tuple, list)):
            *sizes, dtype = item
            shape = sizes[0] if len(sizes) == 1 else tuple(sizes)
            return cls(shape, dtype)
        return cls(item)

    def __repr__(self) -> str:
        return f"T.Tensor({self.shape}, {str(self.dtype)!r})"


def _is_size(value: Any) -> bool:
    return isinstance(value, Sym) or (hasattr(value, "__index__") and not isinstance(value, str))


def infinity(dtype: object) -> Any:
    """Positive infinity of a floating-point type (the largest value of an integer type), as a Python number."""
    element = element_type(dtype, "T.infinity")
    if element.is_float:
        return math.inf
    return (1 << (element.bits - int(element.is_signed))) - 1


def element_type(spelling: object, what: str) -> DType:
    """The element type that ``spelling`` names.

    Raises:
        TileError: T110, there is none of that name.
    """
    try:
        return DType(str(spelling)) if isinstance(spelling, DType) else DType(spelling)
    except ValueError as problem:
        raise TileError(f"{what}: {problem}", code="T110",
                        help="write it as a string or as T.float16, T.int32, ...") from None


def sizes_of(shape: Any) -> Sequence[Any]:
    """A shape argument as a sequence; one size may stand alone."""
    return shape if isinstance(shape, (tuple, list)) else (shape,)
