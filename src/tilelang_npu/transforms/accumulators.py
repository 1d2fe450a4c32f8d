"""How the accumulators of gemms start: from a clear, or from the ``init`` of the first iteration."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.buffers import covers_root, root_of, uses_of
from tilelang_npu.transforms.ranges import Ranges


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


def touches(op: Operation, buffer: SSAValue) -> bool:
    """Whether an operation, or one inside it, reads or writes a buffer."""
    return any(root_of(use.value) is buffer for inner in op.walk() for use in uses_of(inner))


def next_touching(op: Operation | None, buffer: SSAValue) -> Operation | None:
    """The first of an operation and those behind it in its block that touches a buffer."""
    while op is not None and not touches(op, buffer):
        op = op.next_op
    return op


def starts_over(gemm: tile.GemmOp, fill: tile.FillOp) -> bool:
    """Whether a gemm with ``init`` writes what a clear writes, no less and no more: the same part of the accumulator."""
    return _same_part(gemm.c, fill.target) or (covers_root(gemm.c) and covers_root(fill.target))


def _same_part(left: SSAValue, right: SSAValue) -> bool:
    if left is right:
        return True
    a, b = left.owner, right.owner
    return (isinstance(a, tile.RegionOp) and isinstance(b, tile.RegionOp) and a.mixed_offsets() == b.mixed_offsets()
            and a.mixed_sizes() == b.mixed_sizes() and _same_part(a.source, b.source))


def followers(fill: tile.FillOp) -> Iterator[Operation]:
    """What touches a cleared buffer next: loops from the outside in, and the operation at the end of them."""
    buffer = root_of(fill.target)
    follower = next_touching(fill.next_op, buffer)
    while follower is not None:
        yield follower
        follower = next_touching(follower.body.block.first_op, buffer) if isinstance(follower, scf.ForOp) else None


def folds(fill: tile.FillOp, ranges: Ranges) -> bool:
    """Whether a clear can become the ``init`` of a gemm: the next one, in loops that surely run."""
    chain = list(followers(fill))
    if not is_zero(fill.value) or (not chain and comes_round(fill)):
        return False
    return (not chain or isinstance(chain[-1], tile.GemmOp)) and all(
        ranges.trip_count(loop).low >= 1 for loop in chain if isinstance(loop, scf.ForOp))


def comes_round(fill: tile.FillOp) -> bool:
    """Whether what reads a cleared buffer may stand above the clear, in the next iteration of a loop around both."""
    buffer, op = root_of(fill.target), fill.parent_op()
    while op is not None:
        if isinstance(op, (scf.ForOp, scf.WhileOp)) and any(
                use.op is not fill and root_of(use.value) is buffer for inner in op.walk() for use in uses_of(inner)):
            return True
        op = op.parent_op()
    return False


def restarted(loop: scf.ForOp, ranges: Ranges) -> frozenset[SSAValue]:
    """The accumulators that a loop which surely runs starts over: the first thing its body does with one is a gemm whose
    ``init`` is that this is the first iteration."""
    if ranges.trip_count(loop).low < 1:
        return frozenset()
    seen: set[SSAValue] = set()
    found: set[SSAValue] = set()
    for op in loop.body.block.ops:
        buffers = {root_of(use.value) for inner in op.walk() for use in uses_of(inner)}
        if isinstance(op, tile.GemmOp) and root_of(op.c) not in seen and _first_iteration(op.init, loop, ranges):
            found.add(root_of(op.c))
        seen |= buffers
    return frozenset(found)


def _first_iteration(value: SSAValue, loop: scf.ForOp, ranges: Ranges) -> bool:
    """Whether a truth value says that a loop is in its first iteration."""
    owner = value.owner
    if not isinstance(owner, arith.CmpiOp) or owner.predicate.value.data != 0:  # 0: eq
        return False
    sides = {_plain(owner.lhs), _plain(owner.rhs)} - {loop.body.block.args[0]}
    if len(sides) != 1:
        return False
    (other,) = sides
    start = ranges.constant(loop.lb)
    return other is loop.lb or (start is not None and ranges.constant(other) == start)


def _plain(value: SSAValue) -> SSAValue:
    """The integer behind conversions between integer types."""
    while isinstance(value.owner, (arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp)):
        value = value.owner.operands[0]
    return value
