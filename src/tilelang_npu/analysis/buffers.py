"""The buffer that a tile operand is a view of, the buffer's memory, and the operations that use it."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.tile import root_of as root_of
from tilelang_npu.target.chip_data import BufferSpace, OpenScope, Space

SCRATCH = "tile.scratch"
"""The attribute of an allocation that a pass made as temporary memory of one operation; ``plan-memory`` removes it."""
PARALLEL_LABEL = "T.Parallel"
"""The label of the tiles that ``vectorise-parallel`` allocates; an author cannot give a buffer this name."""
OPEN_SCOPES: tuple[OpenScope, ...] = ("shared", "fragment")
"""The scopes that ``infer-scopes`` replaces by a memory."""


def space_of(value: SSAValue) -> BufferSpace:
    """Returns the name of a memref value's memory: HIVM's address space, ``gm`` if the type states none.

    While the memory is not chosen yet, the result is the author's scope: ``shared``, ``fragment`` or ``local``.
    """
    kind = value.type
    assert isinstance(kind, MemRefType)
    if isinstance(kind.memory_space, tile.ScopeAttr):
        return kind.memory_space.data.scope
    return hivm.space_of(kind) or "gm"


def memory_of(value: SSAValue) -> Space:
    """Returns the name of a memref value's memory, which must be chosen already; ``gm`` if the type states none."""
    space = space_of(value)
    assert space != "shared" and space != "fragment" and space != "local", "infer-scopes has chosen the memory"
    return space


def users_of(value: SSAValue) -> Iterator[Operation]:
    """Yields the operations that use a buffer directly or through views; the operations that make the views are included."""
    for use in value.uses:
        yield use.operation
        if isinstance(use.operation, (tile.RegionOp, tile.ViewOp)):
            yield from users_of(use.operation.results[0])


def is_managed(buffer: SSAValue) -> bool:
    """Whether the compiler may remove or replace a buffer.

    It may if the author chose neither an address nor a memory for the buffer, or if the compiler made it for a ``T.Parallel``.
    """
    owner = buffer.owner
    return isinstance(owner, tile.AllocOp) and owner.address is None and (
        space_of(buffer) in OPEN_SCOPES or owner.label.data == PARALLEL_LABEL)


def covers_root(value: SSAValue) -> bool:
    """Whether a view surely shows every element of its buffer."""
    while isinstance(value.owner, (tile.RegionOp, tile.ViewOp)):  # no view of an argument shows all of the tensor
        owner = value.owner
        if isinstance(owner, tile.RegionOp) and tuple(owner.mixed_sizes()) != tile.shape_of(owner.source):
            return False
        value = owner.source
    return True


def element_type_of(value: SSAValue) -> Attribute:
    """Returns the element type of a tile."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    element: Attribute = kind.element_type
    return element


def element_bytes(value: SSAValue) -> int:
    """Returns the size of one element of a tile in bytes."""
    return dtype_of(element_type_of(value)).nbytes


def slot_count(allocation: tile.AllocOp) -> int:
    """Returns the number of multi-buffer slots of an allocation; 1 where the allocation states no number."""
    return allocation.slots.value.data if allocation.slots is not None else 1


def with_space(kind: MemRefType[Attribute], space: Space) -> MemRefType[Attribute]:
    """Returns a memref type like ``kind`` in another memory, which is given as HIVM spells it."""
    return MemRefType(kind.element_type, kind.shape, kind.layout, hivm.address_space(space))


def walk(block: Block) -> Iterator[Operation]:
    """Yields all operations in a block, nested ones included, in program order."""
    for op in block.ops:
        yield op
        for region in op.regions:
            for inner in region.blocks:
                yield from walk(inner)


def body_of(loop: scf.ForOp | scf.WhileOp) -> Block:
    """Returns the body of a loop; for an ``scf.while``, the block that runs after the condition held."""
    return loop.body.block if isinstance(loop, scf.ForOp) else loop.after_region.block
