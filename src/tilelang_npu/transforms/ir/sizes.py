"""What a tile takes, for those who plan and for what passes say of it."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.target import name_of
from tilelang_npu.transforms.ir.buffers import space_of


def nbytes_of(value: SSAValue) -> int:
    """Bytes of a tile of constant sizes."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    each: int = dtype_of(kind.element_type).nbytes
    return each * prod(kind.get_shape())


def spaced(number: int) -> str:
    """A number in groups of three digits: ``98 304``."""
    return f"{number:,}".replace(",", " ")


def sized(value: SSAValue) -> str:
    """An allocation in words: ``k (16 384 bytes of L1)``."""
    owner, space = value.owner, space_of(value)
    name = owner.label.data if isinstance(owner, tile.AllocOp) else value.name_hint or "the buffer"
    memory = f" of {name_of(space)}" if name_of(space) != space else ""  # else it is open yet
    return f"{name} ({spaced(nbytes_of(value))} bytes{memory})"


__all__ = ["nbytes_of", "sized", "spaced"]
