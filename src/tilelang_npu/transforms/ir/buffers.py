"""Which buffer a tile operand belongs to, in which memory it is, and who uses it."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.tile import root_of as root_of

SCRATCH = "tile.scratch"
"""Attribute of an allocation that a pass made for one operation; gone after planning."""


def space_of(value: SSAValue) -> str:
    """Memory of a memref value by HIVM address space, or its scope while that is open (``shared``, ``fragment``, ``local``)."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    if isinstance(kind.memory_space, tile.ScopeAttr):
        return str(kind.memory_space.data.value)
    return hivm.space_of(kind) or "gm"


def users_of(value: SSAValue) -> Iterator[Operation]:
    """The operations that use a buffer: its views, and what uses it through them."""
    for use in value.uses:
        yield use.operation
        if isinstance(use.operation, (tile.RegionOp, tile.ViewOp)):
            yield from users_of(use.operation.results[0])


def covers_root(value: SSAValue) -> bool:
    """Whether a view surely has every element of its root."""
    while isinstance(value.owner, (tile.RegionOp, tile.ViewOp)):  # no view of an argument has all of what is behind it
        owner = value.owner
        if isinstance(owner, tile.RegionOp) and tuple(owner.mixed_sizes()) != tile.shape_of(owner.source):
            return False
        value = owner.source
    return True


def touches(op: Operation, buffer: SSAValue) -> bool:
    """Whether an operation, or one inside it, reads or writes a buffer."""
    return any(root_of(use.value) is buffer for inner in op.walk() if any(root_of(value) is buffer for value in inner.operands)
               for use in effects_of(inner))


def with_space(kind: MemRefType[Attribute], space: str) -> MemRefType[Attribute]:
    """The same memref type in another memory."""
    return MemRefType(kind.element_type, kind.shape, kind.layout, hivm.address_space(space))


def walk(block: Block) -> Iterator[Operation]:
    """All operations below a block in program order."""
    for op in block.ops:
        yield op
        for region in op.regions:
            for inner in region.blocks:
                yield from walk(inner)


def body_of(loop: scf.ForOp | scf.WhileOp) -> Block:
    """The block that a loop repeats; of a ``while`` the one behind its condition."""
    return loop.body.block if isinstance(loop, scf.ForOp) else loop.after_region.block
