"""Temporaries of passes on the tile dialect: a buffer in UB as large as an operand, seen with the operand's shape."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.transforms.ir.buffers import SCRATCH
from tilelang_npu.transforms.ir.locations import refuse


def insert_before(anchor: Operation, op: Operation) -> Operation:
    """Insert in front of ``anchor``, with its location."""
    op.location = anchor.location
    Rewriter().insert_op(op, InsertPoint.before(anchor))
    return op


def temporary(anchor: Operation, like: SSAValue, element: Attribute, label: str, space: Attribute | None = None) -> SSAValue:
    """A new buffer with the shape of ``like`` and another element type, allocated in front of ``anchor``; in UB, or in the
    memory given.

    A size that only run time knows is at most that of the buffer behind it: the buffer has this size and a slice of it is
    handed out.

    Raises:
        TileError: T251, nothing bounds the size.
    """
    sizes = _sizes(like)
    if sizes is None:
        raise refuse(anchor, "a temporary is needed whose size only run time knows", "T251",
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


def _sizes(value: SSAValue) -> list[tuple[SSAValue | int, int]] | None:
    """Per axis the size, and the constant that bounds it."""
    shape = tile.shape_of(value)
    kind = value.type
    assert isinstance(kind, MemRefType)
    if DYNAMIC_INDEX not in kind.get_shape():
        return [(size, size) for size in shape]
    owner = value.owner
    if isinstance(owner, tile.ViewOp):
        inner = _sizes(owner.source)
        rest = [pair for pair in inner or () if pair != (1, 1)]
        if inner is None or len(rest) != sum(size != 1 for size in shape):
            return None
        parts = iter(rest)
        return [(1, 1) if size == 1 else next(parts) for size in shape]
    if not isinstance(owner, tile.RegionOp):
        return None
    outer, sizes = _sizes(owner.source), owner.mixed_sizes()
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
