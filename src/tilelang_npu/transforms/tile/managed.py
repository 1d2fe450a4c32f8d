"""Which buffers the compiler may do without: those whose memory the author left open, and those that it made itself."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.transforms.ir.buffers import covers_root, root_of, space_of
from tilelang_npu.transforms.tile.parallel.indices import MADE

OPEN = ("shared", "fragment")


def is_managed(buffer: SSAValue) -> bool:
    """Whether a buffer is the compiler's to place: an allocation of open memory, or a tile made for a ``T.Parallel``."""
    owner = buffer.owner
    return isinstance(owner, tile.AllocOp) and owner.address is None and (
        space_of(buffer) in OPEN or owner.label.data == MADE)


def is_on_a_core(op: Operation) -> bool:
    """Whether the author has put an operation on a core."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, tile.OnCoreOp):
        parent = parent.parent_op()
    return parent is not None


def touches(op: Operation, buffer: SSAValue) -> bool:
    """Whether an operation, or one inside it, reads, writes or views a buffer."""
    return any(root_of(value) is buffer for inner in op.walk() for value in inner.operands)


def overwrites(op: Operation, buffer: SSAValue) -> bool:
    """Whether an operation writes all of a buffer and reads nothing of it."""
    uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
    return (bool(uses) and not op.regions and all(use.writes and not use.reads and use.role != "scalar" for use in uses)
            and any(covers_root(use.value) for use in uses))


__all__ = ["OPEN", "is_managed", "is_on_a_core", "overwrites", "touches"]
