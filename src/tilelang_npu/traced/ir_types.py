"""Maps the types of scalars, elements and buffers to MLIR types."""

from __future__ import annotations

from functools import cache
from typing import get_args

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    NoneAttr,
    Signedness,
)
from xdsl.ir import Attribute

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.ops import DType
from tilelang_npu.target.chip_data import BufferSpace, OpenScope
from tilelang_npu.traced.kinds import Kind

_FLOATS: dict[str, AnyFloat] = {
    "float16": Float16Type(), "bfloat16": BFloat16Type(), "float32": Float32Type(), "float64": Float64Type(),
    "float8_e4m3fn": Float8E4M3FNType(), "float8_e5m2": Float8E5M2Type(),
}
OPEN_SPACES: tuple[OpenScope, ...] = get_args(OpenScope)
"""The memory spaces of buffers for which the compiler chooses the memory."""


@cache
def scalar_type(kind: Kind) -> Attribute:
    """Returns the MLIR type of a scalar; integers are signless, as the ``arith`` dialect requires."""
    if not isinstance(kind, DType):
        return IndexType()
    return float_type(kind) if kind.is_float else integer_type(kind)


def float_type(kind: Kind) -> AnyFloat:
    """Returns the MLIR type of a float type."""
    return _FLOATS[str(kind)]


def integer_type(kind: Kind) -> IntegerType:
    """Returns the MLIR type of an integer or ``bool`` type; ``kind`` must not be ``index``."""
    return IntegerType(kind.bits)


@cache
def element_type(kind: DType) -> Attribute:
    """Returns the MLIR type of a buffer's elements; unsigned integers have an unsigned type such as ``ui8``."""
    if kind.is_integer and not kind.is_signed:
        return IntegerType(kind.bits, Signedness.UNSIGNED)
    return scalar_type(kind)


@cache
def buffer_type(kind: DType, shape: tuple[int, ...], space: BufferSpace) -> MemRefType[Attribute]:
    """Returns the memref type of a buffer.

    Args:
        kind: the element type.
        shape: the size of each axis; -1 for a size that is not constant.
        space: the memory space.
    """
    memory: Attribute = (tile.ScopeAttr(tile.OpenMemory(space)) if space == "shared" or space == "fragment" or space == "local"
                         else hivm.address_space(space))
    return MemRefType(element_type(kind), shape, NoneAttr(), memory)
