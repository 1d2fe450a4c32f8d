"""Copies that only the Vector core can do: where they go, or whether, depends on a scalar that it alone has.

A scalar read from a buffer in UB is the Vector core's. A gather by such an index fills its tile in UB, also where the tile
is an operand of a gemm; ``infer-scopes`` hands it over.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.ir.buffers import root_of, space_of


class _Scalars:
    """Walks a kernel until nothing more turns out to be the Vector core's."""

    def __init__(self) -> None:
        self.values: set[SSAValue] = set()
        """Scalars of the Vector core, and views that stand at them."""
        self.places: set[SSAValue] = set()
        """Scalar storage that holds one."""
        self.copies: set[tile.CopyOp] = set()

    def block(self, block: Block, *, inside: bool) -> None:
        for op in block.ops:
            ours = inside or any(operand in self.values for operand in op.operands)
            if isinstance(op, memref.LoadOp):
                space = space_of(op.memref)
                ours = ours or space in ("ub", "shared", "fragment") or root_of(op.memref) in self.places
            elif isinstance(op, memref.StoreOp):
                if ours and space_of(op.memref) == "local":
                    self.places.add(root_of(op.memref))
            elif isinstance(op, tile.CopyOp) and ours:
                self.copies.add(op)
            if ours:
                self.values.update(value for value in op.results if _is_derived(op, value))
            for region in op.regions:
                for inner in region.blocks:
                    if ours:
                        self.values.update(inner.args)
                    self.block(inner, inside=ours)


def _is_derived(op: Operation, value: SSAValue) -> bool:
    return not isinstance(op, tile.AllocOp) and not (isinstance(value.type, MemRefType) and not op.operands)


def vector_bound(module: Operation) -> set[tile.CopyOp]:
    """The copies below ``module`` that only the Vector core can do."""
    found = _Scalars()
    before = -1
    while before != (before := len(found.values) + len(found.places) + len(found.copies)):
        for region in module.regions:
            for block in region.blocks:
                found.block(block, inside=False)
    return found.copies
