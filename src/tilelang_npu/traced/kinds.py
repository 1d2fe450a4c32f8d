"""The types of scalars: element types, and ``index`` for loop variables, block ids and sizes."""

from __future__ import annotations

from tilelang_npu.ops import DType, dtype


class IndexKind:
    """The type ``index`` of loop variables, block ids and sizes, with the same properties as a :class:`DType`."""

    mlir = "index"
    bits = 64
    is_float = False
    is_integer = True
    is_signed = True
    is_bool = False

    def __str__(self) -> str:
        return "index"

    __repr__ = __str__


INDEX = IndexKind()
BOOL = dtype("bool")
INT32 = dtype("int32")
INT64 = dtype("int64")
FLOAT32 = dtype("float32")

Kind = DType | IndexKind
"""The type of a scalar."""
