"""The types of scalars, elements and buffers in the IR."""

from __future__ import annotations

from functools import cache

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
from tilelang_npu.traced.kinds import Kind

_FLOATS: dict[str, AnyFloat] = {
    "float16": Float16Type(), "bfloat16": BFloat16Type(), "float32": Float32Type(), "float64": Float64Type(),
    "float8_e4m3fn": Float8E4M3FNType(), "float8_e5m2": Float8E5M2Type(),
}
OPEN_SPACES = ("shared", "fragment", "local")
"""Memory spaces of buffers whose memory the compiler chooses."""


@cache
def scalar_type(kind: Kind) -> Attribute:
    """The MLIR type of a scalar; integers are signless, as in ``arith``."""
    if not isinstance(kind, DType):
        return IndexType()
    return float_type(kind) if kind.is_float else integer_type(kind)


def float_type(kind: Kind) -> AnyFloat:
    """The MLIR type of a float."""
    return _FLOATS[str(kind)]


def integer_type(kind: Kind) -> IntegerType:
    """The MLIR type of an integer or a truth value, not of an index."""
    return IntegerType(kind.bits)


@cache
def element_type(kind: DType) -> Attribute:
    """The MLIR type of a buffer's element; unsigned integers are ``ui``."""
    if kind.is_integer and not kind.is_signed:
        return IntegerType(kind.bits, Signedness.UNSIGNED)
    return scalar_type(kind)


@cache
def buffer_type(kind: DType, shape: tuple[int, ...], space: str) -> MemRefType[Attribute]:
    """The memref type of a buffer; -1 is a size that is not constant."""
    memory: Attribute = tile.ScopeAttr(tile.OpenMemory(space)) if space in OPEN_SPACES else hivm.address_space(space)
    return MemRefType(element_type(kind), shape, NoneAttr(), memory)
