"""The body of a vector function (``T.SimdVF``) while it is traced."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects.tile.vector_function import argument_type


class VectorRegion:
    """The body of a vector function while it is traced.

    Attributes:
        what: the name of the construct, for messages.
        block: the block of the body. Its first arguments are those of the buffers.
        buffers: for the memref of each buffer that the body accesses, the argument of the body.
        has_registers: whether the body has an operation on registers.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.block = Block()
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.has_registers = False

    def argument(self, buffer: SSAValue, count: int) -> SSAValue:
        """Returns the argument of the body for a buffer, as memory with one axis.

        Args:
            buffer: the memref of the buffer.
            count: the number of its elements.
        """
        known = self.buffers.get(buffer)
        if known is None:
            kind = buffer.type
            assert isinstance(kind, MemRefType)
            flat = argument_type(MemRefType(kind.element_type, [count]))
            known = self.buffers[buffer] = self.block.insert_arg(flat, len(self.block.args))
            known.name_hint = buffer.name_hint
        return known


def is_inside(op: Operation, block: Block) -> bool:
    """Whether an operation is in a block, or in a region of an operation of the block."""
    parent = op.parent_block()
    while parent is not None:
        if parent is block:
            return True
        parent = parent.parent_block()
    return False
