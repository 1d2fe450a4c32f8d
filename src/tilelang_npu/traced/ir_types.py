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
from tilelang_npu.errors import TileError
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
    """Returns the MLIR type of a float type.

    Raises:
        TileError: T110, single elements of the type cannot be computed: two of float4 are packed in a byte, and one of
            float8_e8m0 is an exponent.
    """
    found = _FLOATS.get(str(kind))
    if found is None:
        raise TileError(f"a single element of {kind} cannot be read or computed", code="T110",
                        help="such elements are operands of T.gemm_mx only: load them with T.copy, and compute in float32")
    return found


def integer_type(kind: Kind) -> IntegerType:
    """Returns the MLIR type of an integer or ``bool`` type; ``kind`` must not be ``index``."""
    return IntegerType(kind.bits)


@cache
def element_type(kind: DType) -> Attribute:
    """Returns the MLIR type of a buffer's elements; unsigned integers have an unsigned type such as ``ui8``.

    Raises:
        TileError: T190, elements of 4 bits, which :func:`buffer_type` packs in pairs, and which have no address of their own.
    """
    if kind.packed:
        advice = "convert the tile to float16 with T.tile.cast first" if kind == "int4" else "copy tiles, and multiply them"
        raise TileError(f"elements of {kind} have no address of their own: a byte holds two", code="T190", help=advice)
    kind = kind.stored
    if kind.is_integer and not kind.is_signed:
        return IntegerType(kind.bits, Signedness.UNSIGNED)
    return scalar_type(kind)


def packed_size(size: int) -> int:
    """Returns the number of bytes of a row of elements of 4 bits; -1 for a size that is not constant.

    Raises:
        TileError: T111, the size is odd.
    """
    if size > 0 and size % 2:
        raise TileError(f"a buffer of 4-bit elements has an odd contiguous dimension, {size}, and a byte holds two of them",
                        code="T111", help="round the last axis up to an even size")
    return size // 2


@cache
def buffer_type(kind: DType, shape: tuple[int, ...], space: BufferSpace) -> MemRefType[Attribute]:
    """Returns the memref type of a buffer.

    Elements of 4 bits are packed: the memref has bytes (i8), the lower half of which is the element with the even index, and
    half the size along the last axis. Exponents (float8_e8m0fnu) are bytes (ui8).

    Args:
        kind: the element type.
        shape: the size of each axis; -1 for a size that is not constant.
        space: the memory space.

    Raises:
        TileError: T111, the last axis of a buffer of 4-bit elements has an odd size.
    """
    if kind.packed:
        kind, shape = kind.stored, (*shape[:-1], packed_size(shape[-1]))
    memory: Attribute = (tile.ScopeAttr(tile.OpenMemory(space)) if space == "shared" or space == "fragment" or space == "local"
                         else hivm.address_space(space))
    return MemRefType(element_type(kind), shape, NoneAttr(), memory)
