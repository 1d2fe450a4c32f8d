"""Conditions in ``T.Parallel`` that keep points from writing beyond the end of a tensor, and do nothing else.

``if by * 32 + i < M: C[by * 32 + i, j] = ...`` is what a copy to ``C`` does by itself: it finds no place there for the rest.
"""

from __future__ import annotations

from xdsl.dialects import memref, scf
from xdsl.ir import SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Linear
from tilelang_npu.transforms.ir.buffers import space_of
from tilelang_npu.transforms.ir.guards import leaves
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.parallel.every_point import is_computed_anywhere, is_there, put_before


def drop_guards(loop: tile.ParallelOp) -> None:
    """Write at all points what copies to tensors write, whose places beyond the end they leave out.

    Args:
        loop: the loop, changed in place; point by point it would write beyond the end then.
    """
    for op in reversed([inner for inner in loop.body.block.walk() if isinstance(inner, scf.IfOp) and not inner.results]):
        if is_a_guard(op):
            put_before(op.true_region.block, op)
            op.detach()
            op.erase()


def is_a_guard(choice: scf.IfOp) -> bool:
    """Whether a condition holds where the places that are written are there, and all else can be done at every point."""
    if choice.results or (choice.false_region.blocks and len(list(choice.false_region.block.ops)) > 1):
        return False
    ranges, stores = Ranges(), list[memref.StoreOp]()
    for op in choice.true_region.block.ops:
        if isinstance(op, memref.StoreOp) and space_of(op.memref) == "gm":
            stores.append(op)
        elif isinstance(op, memref.LoadOp):
            if not is_there(op, clipped=True):
                return False
        elif isinstance(op, scf.IfOp):
            if not is_a_guard(op):
                return False
            stores += [inner for inner in op.walk() if isinstance(inner, memref.StoreOp)]
        elif not is_computed_anywhere(op):
            return False
    return bool(stores) and all(leaf is not None and all(_keeps_inside(leaf, store, ranges) for store in stores)
                                for leaf in leaves(choice.cond, ranges))


def _keeps_inside(natural: Linear[SSAValue], store: memref.StoreOp, ranges: Ranges) -> bool:
    """Whether a sum is natural where an index of an access is inside, and nowhere else."""
    owner = store.memref.owner
    sizes = owner.mixed_sizes() if isinstance(owner, tile.TensorOp) else tile.shape_of(store.memref)
    return any(affine(size, ranges.constant) - affine(index, ranges.constant) - Linear(1) == natural
               for index, size in zip(store.indices, sizes, strict=True) if size != -1)


__all__ = ["drop_guards", "is_a_guard"]
