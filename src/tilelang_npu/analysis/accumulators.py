"""How a gemm's accumulator gets its initial zeros: by a clear before the gemm, or by the gemm's ``init`` operand.

A clear is a ``tile.fill`` with zeros. A gemm whose ``init`` is true overwrites its accumulator instead of adding to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilelang_npu.analysis.accesses import has_access_to
from tilelang_npu.analysis.buffers import covers_root, root_of
from tilelang_npu.analysis.first_iterations import holds_in_first_iteration
from tilelang_npu.analysis.first_writes import is_dead_after
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of


def is_zero(value: SSAValue) -> bool:
    """Whether a scalar is the constant zero, whatever its type."""
    owner = value.owner
    while isinstance(owner, (arith.ExtFOp, arith.TruncFOp, arith.SIToFPOp)):
        owner = owner.operands[0].owner
    if not isinstance(owner, arith.ConstantOp):
        return False
    constant = owner.value
    return (isinstance(constant, FloatAttr) and constant.value.data == 0) or (
        isinstance(constant, IntegerAttr) and constant.value.data == 0
    )


def next_access(op: Operation | None, buffer: SSAValue) -> Operation | None:
    """Returns the first operation that accesses a buffer, among ``op`` and the operations after ``op`` in the same block.

    None if there is no such operation, or if ``op`` is None.
    """
    while op is not None and not has_access_to(op, buffer):
        op = op.next_op
    return op


def writes_same_part(gemm: tile.GemmOp, fill: tile.FillOp) -> bool:
    """Whether the accumulator operand of a gemm and the target of a clear are the same elements of one buffer.

    Both must be views of the same buffer.
    """
    return _is_same_region(gemm.c, fill.target) or (covers_root(gemm.c) and covers_root(fill.target))


def _is_same_region(left: SSAValue, right: SSAValue) -> bool:
    if left is right:
        return True
    a, b = left.owner, right.owner
    return (isinstance(a, tile.RegionOp) and isinstance(b, tile.RegionOp) and a.mixed_offsets() == b.mixed_offsets()
            and a.mixed_sizes() == b.mixed_sizes() and _is_same_region(a.source, b.source))


def access_after_parents(fill: tile.FillOp) -> Operation | None:
    """Returns the first operation that accesses the cleared buffer after a loop or branch that contains a clear.

    The loops and branches around the clear are searched from the innermost to the outermost. None if no operation of the
    launch accesses the buffer after any of them.
    """
    buffer, op = root_of(fill.target), fill.parent_op()
    while op is not None and not isinstance(op, tile.LaunchOp):
        found = next_access(op.next_op, buffer)
        if found is not None:
            return found
        op = op.parent_op()
    return None


def next_accesses(fill: tile.FillOp) -> Iterator[Operation]:
    """Yields the loops that contain the next access to the cleared buffer after a clear, and then the accessing operation.

    The first result is in the clear's block. While a result is a loop, the next result is the first operation in the loop's
    body that accesses the buffer. So all results but the last one are loops, from the outermost to the innermost.
    """
    buffer = root_of(fill.target)
    follower = next_access(fill.next_op, buffer)
    while follower is not None:
        yield follower
        follower = next_access(follower.body.block.first_op, buffer) if isinstance(follower, scf.ForOp) else None


def can_fold_clear(fill: tile.FillOp, ranges: Ranges) -> bool:
    """Whether a clear can be removed, because the next gemm can overwrite the accumulator instead, or nothing reads the zeros.

    The next gemm can overwrite the accumulator if this gemm is the next access to the buffer, and all loops between the clear
    and the gemm have at least one iteration. Nothing reads the zeros if the buffer is not accessed after the clear in the
    clear's block, and its value is dead at the end of this block. The result is False for a fill with a value other than zero.
    """
    chain = list(next_accesses(fill))
    if not is_zero(fill.value):
        return False
    if not chain:
        return is_dead_after(fill, root_of(fill.target), ranges)
    return isinstance(chain[-1], tile.GemmOp) and all(
        ranges.trip_count(loop).low >= 1 for loop in chain if isinstance(loop, scf.ForOp))


def is_read_by_next_iteration(fill: tile.FillOp) -> bool:
    """Whether a loop that contains a clear also contains another access to the cleared buffer.

    Such an access can read the zeros in the next iteration.
    """
    buffer, op = root_of(fill.target), fill.parent_op()
    while op is not None:
        if isinstance(op, (scf.ForOp, scf.WhileOp)) and any(
                use.op is not fill and root_of(use.value) is buffer for inner in op.walk() for use in effects_of(inner)):
            return True
        op = op.parent_op()
    return False


def accumulators_started_in(loop: scf.ForOp, ranges: Ranges) -> frozenset[SSAValue]:
    """Returns the accumulators that a loop overwrites before it reads them.

    The first access to such an accumulator in the loop's body is a gemm whose ``init`` is true in the first iteration. Empty
    if the loop may have no iteration.
    """
    if ranges.trip_count(loop).low < 1:
        return frozenset()
    seen: set[SSAValue] = set()
    found: set[SSAValue] = set()
    for op in loop.body.block.ops:
        buffers = {root_of(use.value) for inner in op.walk() for use in effects_of(inner)}
        if isinstance(op, tile.GemmOp) and root_of(op.c) not in seen and holds_in_first_iteration(op.init, [loop], ranges):
            found.add(root_of(op.c))
        seen |= buffers
    return frozenset(found)


__all__ = ["access_after_parents", "accumulators_started_in", "can_fold_clear", "is_read_by_next_iteration", "is_zero",
           "next_access",            "next_accesses", "writes_same_part"]
