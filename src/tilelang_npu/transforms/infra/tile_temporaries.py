"""Allocates temporary buffers for passes on the tile dialect, with the shape of an operand."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import SCRATCH
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import hivm, tile


def insert_before(anchor: Operation, op: Operation) -> Operation:
    """Inserts ``op`` before ``anchor``, with the source location of ``anchor``; returns ``op``."""
    op.location = anchor.location
    Rewriter().insert_op(op, InsertPoint.before(anchor))
    return op


def temporary(anchor: Operation, like: SSAValue, element: Attribute, label: str, space: Attribute | None = None) -> SSAValue:
    """Allocates a temporary buffer before an operation, with the shape of a tile.

    Along an axis whose size is known only at run time, the buffer has the constant size of the buffer that the tile is a view
    of. A region of the temporary with the shape of the tile is then returned.

    Args:
        anchor: the operation that needs the temporary.
        like: the tile whose shape the temporary has.
        element: the element type of the temporary.
        label: the name of the temporary.
        space: the memory of the temporary; UB if None.

    Returns:
        The temporary, or a region of it.

    Raises:
        TileError: T251, no constant bounds the size of the tile along some axis.
    """
    sizes = _sizes_with_bounds(like)
    if sizes is None:
        raise refuse(anchor, "this operation needs a temporary buffer, and its size has no constant bound", "T251",
                     help="work on a buffer of constant size, or on a slice of one")
    bounds = [bound for _, bound in sizes]
    kind = MemRefType(element, bounds, memory_space=space or hivm.address_space("ub"))
    allocation = tile.AllocOp(label, kind)
    if space is None:
        allocation.attributes[SCRATCH] = UnitAttr()
    made = insert_before(anchor, allocation).results[0]
    if all(size == bound for size, bound in sizes):
        return made
    cut = tile.RegionOp(made, [0] * len(sizes), [size for size, _ in sizes])
    return insert_before(anchor, cut).results[0]


def _sizes_with_bounds(value: SSAValue) -> list[tuple[SSAValue | int, int]] | None:
    """Returns for each axis of a value its size, and a constant that bounds it; None where nothing bounds it."""
    shape = tile.shape_of(value)
    kind = value.type
    assert isinstance(kind, MemRefType)
    if DYNAMIC_INDEX not in kind.get_shape():
        return [(size, size) for size in shape]
    owner = value.owner
    if isinstance(owner, tile.ViewOp):
        inner = _sizes_with_bounds(owner.source)
        rest = [pair for pair in inner or () if pair != (1, 1)]
        if inner is None or len(rest) != sum(size != 1 for size in shape):
            return None
        parts = iter(rest)
        return [(1, 1) if size == 1 else next(parts) for size in shape]
    if not isinstance(owner, tile.RegionOp):
        return None
    outer, sizes = _sizes_with_bounds(owner.source), owner.mixed_sizes()
    found: list[tuple[SSAValue | int, int]] = []
    for axis in owner.kept.get_values():
        size = sizes[axis]
        if isinstance(size, int):
            found.append((size, size))
        elif outer is None:
            return None
        else:
            found.append((size, outer[axis][1]))
    return found
