"""Replaces the scalar storage that a point of a ``T.Parallel`` uses for itself by SSA values.

``T.alloc_local`` and ``T.alloc_var`` give each point elements of its own: the body assigns them before it reads them. A read is
replaced by the value that was assigned last, so that the body has elementwise operations only. Inner loops with constant bounds
that access such storage are unrolled first, so that all indices of the storage are constants.
"""

from __future__ import annotations

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import space_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.transforms.tile.unroll_loops import unroll_loop

_MOST_ITERATIONS = 16
"""The most iterations of an inner loop to unroll: the registers of a GPU thread hold about as many elements."""
_MOST_OPERATIONS = 1 << 10
"""The most operations of a body after unrolling, so that compilation stays short."""


def promote_locals(loop: tile.ParallelOp, ranges: Ranges) -> tile.ParallelOp:
    """Replaces the scalar storage of a loop's points by SSA values.

    Returns:
        The new loop, which replaces the given one; the loop itself if it has no such storage, or if an element may be read
        before it is assigned, is used after the loop, is assigned under a condition, or has an index that is no constant.
    """
    storage = {access.memref for access in loop.body.block.walk() if isinstance(access, memref.LoadOp | memref.StoreOp)
               and _is_storage(access.memref)}
    storage = {root for root in storage if all(_is_inside(use.operation, loop) for use in root.uses)}
    if not storage:
        return loop
    made = loop.clone()
    Rewriter().insert_op(made, InsertPoint.before(loop))
    own = _unroll(made.body.block, storage, ranges) and _promote(made.body.block, storage)
    Rewriter.erase_op(loop if own else made)
    if not own:
        return loop
    for root in storage:
        assert isinstance(root.owner, Operation)
        Rewriter.erase_op(root.owner)
    return made


def _is_storage(value: SSAValue) -> bool:
    return isinstance(value.owner, tile.AllocOp) and isinstance(value.type, MemRefType) and space_of(value) == "local"


def _is_inside(op: Operation, loop: tile.ParallelOp) -> bool:
    """Whether an operation is a load or a store in the body of a loop."""
    return isinstance(op, memref.LoadOp | memref.StoreOp) and loop.is_ancestor(op)


def _unroll(block: Block, storage: set[SSAValue], ranges: Ranges) -> bool:
    """Unrolls the loops of a body that access the storage; returns False if one of them cannot be unrolled."""
    for op in [op for op in block.walk() if isinstance(op, scf.ForOp)][::-1]:
        if not any(isinstance(inner, memref.LoadOp | memref.StoreOp) and inner.memref in storage for inner in op.walk()):
            continue
        trips = ranges.trip_count(op).constant
        if trips is None or trips > _MOST_ITERATIONS or len(list(op.walk())) * trips > _MOST_OPERATIONS:
            return False
        unroll_loop(op, ranges)
    return len(list(block.walk())) <= _MOST_OPERATIONS


def _promote(block: Block, storage: set[SSAValue]) -> bool:
    """Replaces the reads of a body by the assigned values, and erases the assignments; returns False if it cannot."""
    values: dict[tuple[SSAValue, tuple[int, ...]], SSAValue] = {}
    accesses: list[memref.LoadOp | memref.StoreOp] = []
    replaced: list[tuple[SSAValue, SSAValue]] = []
    for op in block.ops:
        if op.regions and any(isinstance(inner, memref.LoadOp | memref.StoreOp) and inner.memref in storage
                              for inner in op.walk()):
            return False
        if not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref not in storage:
            continue
        place = [constant_value(index) for index in op.indices]
        known = tuple(index for index in place if index is not None)
        if len(known) < len(place) or tile.ATOMIC in op.attributes:  # an atomic update also reads the element
            return False
        accesses.append(op)
        if isinstance(op, memref.StoreOp):
            values[op.memref, known] = op.value
        elif (op.memref, known) in values:
            replaced.append((op.res, values[op.memref, known]))
        else:
            return False
    latest: dict[SSAValue, SSAValue] = {}
    for old, new in replaced:  # an assigned value may be a read that has been replaced itself
        latest[old] = latest.get(new, new)
        old.replace_all_uses_with(latest[old])
    for access in reversed(accesses):
        Rewriter.erase_op(access)
    return True


__all__ = ["promote_locals"]
