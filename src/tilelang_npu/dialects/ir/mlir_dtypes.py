"""Converts element types of tensors and memrefs between MLIR types and :class:`DType` (``target/dtypes.py``)."""

from __future__ import annotations

from functools import cache

from xdsl.dialects.builtin import IntegerType, ShapedType, Signedness, bf16, f8E4M3FN, f8E5M2, f16, f32, f64
from xdsl.ir import Attribute

from tilelang_npu.target.dtypes import DType, dtype

_FLOATS: dict[str, Attribute] = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64, "f8E4M3FN": f8E4M3FN, "f8E5M2": f8E5M2}


def element_type(type_: Attribute) -> Attribute:
    """Returns the element type of a tensor, memref or vector type; returns any other type unchanged."""
    if isinstance(type_, ShapedType) and hasattr(type_, "element_type"):
        element: Attribute = type_.element_type
        return element
    return type_


@cache
def dtype_of(type_: Attribute) -> DType:
    """Returns the :class:`DType` of an MLIR type.

    Raises:
        ValueError: no DType corresponds to the type.
    """
    return dtype(str(type_))


def mlir_type(spelling: DType | str) -> Attribute:
    """Returns the builtin MLIR type of a DType, or of a name such as ``f16``, ``i8`` or ``ui8``."""
    name = dtype(spelling).mlir
    if name in _FLOATS:
        return _FLOATS[name]
    if name.startswith("u"):
        return IntegerType(int(name[2:]), Signedness.UNSIGNED)
    return IntegerType(int(name[1:]))


def dtypes(*names: str) -> tuple[DType, ...]:
    """Returns the DTypes of names such as ``f16``, ``i8`` or ``ui8``, in the same order."""
    return tuple(dtype(name) for name in names)
