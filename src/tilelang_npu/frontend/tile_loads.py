"""Rewrites ``T.Parallel`` statements of the ascendc dialect that load a tile into L1 into ``T.copy``.

Single elements of L1 cannot be written, so such a statement can only be a copy. TileLang-Ascend's compiler makes it a
``T.copy`` of the whole buffer, whatever the extents of the loop are: the tile begins at the tensor's element for the first
point of the loop, and elements past the end of the tensor become zero. This module does the same if the loop's extents differ
from the buffer's shape. If they are equal, both interpretations are the same, and the statement is not changed.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.errors import TileError
from tilelang_npu.traced.builder import Builder

__all__ = ["take_tile_loads"]


def take_tile_loads(builder: Builder, block: Block, extents: list[int | None]) -> None:
    """Removes such statements from the body of a loop, emits the copies before the loop, and adds a warning for each.

    Args:
        builder: emits the copies and receives the warnings.
        block: the body of the ``T.Parallel``.
        extents: the extents of the loop; None for an extent that is not constant.
    """
    if builder.dialect != "ascendc":
        return
    for store in [op for op in block.ops if isinstance(op, memref.StoreOp)]:
        load = store.value.owner
        kind = store.memref.type
        assert isinstance(kind, MemRefType)
        shape = kind.get_shape()
        if (not isinstance(load, memref.LoadOp) or load.parent_block() is not block or len(shape) != 2
                or hivm.space_of(kind) != "cbuf" or hivm.space_of(load.memref.type) != "gm" or len(load.indices) != 2
                or not isinstance(store.memref.owner, tile.AllocOp) or not _is_corner(block, store)
                or tuple(extents) == tuple(shape)):
            continue
        made: dict[SSAValue, SSAValue] = {}
        offsets = [_at_start(builder, block, index, made) for index in load.indices]
        region = tile.RegionOp(load.memref, offsets, list(shape), [0, 1])
        builder.discardable(region)
        builder.tile_op(tile.CopyOp(region.results[0], store.memref), "T.Parallel")
        label = store.memref.owner.label.data
        box = "x".join("?" if size is None else str(size) for size in extents)
        builder.remarks.append(TileError(
            f"T.Parallel over {box} loads all of {label}, {shape[0]}x{shape[1]}, from the first point of the loop", code="T114",
            location=builder.location, help="single elements of L1 cannot be written; use T.copy to state the loaded tile"))
        store.detach()
        store.erase()


def _is_corner(block: Block, store: memref.StoreOp) -> bool:
    """Whether the first point is the first element of the buffer: each index is a loop variable or 0."""
    for index in store.indices:
        constant = index.owner.properties.get("value") if isinstance(index.owner, Operation) else None
        if isinstance(index, BlockArgument) and index.owner is block:
            continue
        if not (isinstance(constant, IntegerAttr) and constant.value.data == 0):
            return False
    return True


def _at_start(builder: Builder, block: Block, value: SSAValue, made: dict[SSAValue, SSAValue]) -> SSAValue:
    """The value of an index at the first point of the loop, computed before the loop."""
    if isinstance(value, BlockArgument):
        return builder.index(0) if value.owner is block else value
    owner = value.owner
    assert isinstance(owner, Operation)
    if owner.parent_block() is not block:
        return value
    if value not in made:
        for operand in owner.operands:
            made.setdefault(operand, _at_start(builder, block, operand, made))
        made[value] = builder.discardable(owner.clone(value_mapper=dict(made))).results[0]
    return made[value]
