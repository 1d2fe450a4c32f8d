"""Finds and removes conditions in ``T.Parallel`` that only keep points from writing beyond the end of a tensor.

The condition of ``if by * 32 + i < M: C[by * 32 + i, j] = ...`` is unnecessary if the stores become a copy to ``C``, because a
copy does not write beyond the end of a tensor: it is clipped.
"""

from __future__ import annotations

from xdsl.dialects import memref, scf
from xdsl.ir import SSAValue

from tilelang_npu.analysis.buffers import space_of
from tilelang_npu.analysis.guards import conjuncts_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Linear
from tilelang_npu.transforms.tile.vectorise_parallel.speculation import (
    is_in_bounds,
    is_speculatable,
    move_ops_before,
)


def drop_bounds_guards(loop: tile.ParallelOp) -> None:
    """Removes the conditions that only keep stores inside of tensors in GM (see ``is_bounds_guard``).

    Args:
        loop: the loop, which is changed in place. It must not be executed point by point afterwards, because it would write
            beyond the end of a tensor.
    """
    for op in reversed([inner for inner in loop.body.block.walk() if isinstance(inner, scf.IfOp) and not inner.results]):
        if is_bounds_guard(op):
            move_ops_before(op.true_region.block, op)
            op.detach()
            op.erase()


def is_bounds_guard(choice: scf.IfOp) -> bool:
    """Whether a branch can be executed at every point if its stores are clipped to their tensors.

    The condition must hold exactly where the stored elements are inside of their tensors in GM, and all other operations of
    the branch must be executable at every point.
    """
    if choice.results or (choice.false_region.blocks and len(list(choice.false_region.block.ops)) > 1):
        return False
    ranges, stores = Ranges(), list[memref.StoreOp]()
    for op in choice.true_region.block.ops:
        if isinstance(op, memref.StoreOp) and space_of(op.memref) == "gm":
            stores.append(op)
        elif isinstance(op, memref.LoadOp):
            if not is_in_bounds(op, clipped=True):
                return False
        elif isinstance(op, scf.IfOp):
            if not is_bounds_guard(op):
                return False
            stores += [inner for inner in op.walk() if isinstance(inner, memref.StoreOp)]
        elif not is_speculatable(op):
            return False
    return bool(stores) and all(leaf is not None and all(_is_upper_bound_of(leaf, store, ranges) for store in stores)
                                for leaf in conjuncts_of(choice.cond, ranges))


def _is_upper_bound_of(natural: Linear[SSAValue], store: memref.StoreOp, ranges: Ranges) -> bool:
    """Whether a linear form is non-negative exactly where an index of an access is below its size."""
    owner = store.memref.owner
    sizes = owner.mixed_sizes() if isinstance(owner, (tile.TensorOp, tile.StridedTensorOp)) else tile.shape_of(store.memref)
    return any(affine(size, ranges.constant) - affine(index, ranges.constant) - Linear(1) == natural
               for index, size in zip(store.indices, sizes, strict=True) if size != -1)


__all__ = ["drop_bounds_guards", "is_bounds_guard"]
