"""Finds the copies that only the Vector core can execute, because they depend on a scalar that only the Vector core has.

Such a scalar is loaded from a buffer in UB. The copy uses it in an offset or size, or is in a branch or loop whose condition or
bounds depend on it. A gather by such an index writes its tile to UB, even if the tile is an operand of a gemm; ``infer-scopes``
then inserts the transfer to the Cube core.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.dialects import tile


class _VectorScalars:
    """Finds the scalars of the Vector core, by walks over a kernel until nothing changes.

    Attributes:
        values: scalars of the Vector core, and views whose offsets they are.
        storage: scalar storage that holds one.
        copies: the copies that depend on them.
    """

    def __init__(self) -> None:
        self.values: set[SSAValue] = set()
        self.storage: set[SSAValue] = set()
        self.copies: set[tile.CopyOp] = set()

    def walk_block(self, block: Block, *, in_vector_code: bool) -> None:
        for op in block.ops:
            on_vector_core = in_vector_code or any(operand in self.values for operand in op.operands)
            if isinstance(op, memref.LoadOp):
                space = space_of(op.memref)
                on_vector_core = on_vector_core or space in ("ub", "shared", "fragment") or root_of(op.memref) in self.storage
            elif isinstance(op, memref.StoreOp):
                if on_vector_core and space_of(op.memref) == "local":
                    self.storage.add(root_of(op.memref))
            elif isinstance(op, tile.CopyOp) and on_vector_core:
                self.copies.add(op)
            if on_vector_core:
                # An allocation is a buffer whoever uses it, and a tensor without operands is the kernel's.
                self.values.update(value for value in op.results if not isinstance(op, tile.AllocOp)
                                   and (op.operands or not isinstance(value.type, MemRefType)))
            for region in op.regions:
                for inner in region.blocks:
                    if on_vector_core:
                        self.values.update(inner.args)
                    self.walk_block(inner, in_vector_code=on_vector_core)


def vector_core_copies(module: Operation) -> set[tile.CopyOp]:
    """Returns the copies in a module that only the Vector core can execute (see the module's docstring)."""
    found = _VectorScalars()
    size = -1
    while size != (size := len(found.values) + len(found.storage) + len(found.copies)):
        for region in module.regions:
            for block in region.blocks:
                found.walk_block(block, in_vector_code=False)
    return found.copies
