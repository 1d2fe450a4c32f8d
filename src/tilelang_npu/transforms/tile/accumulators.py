"""How the accumulators of gemms start: from a clear, or from the ``init`` of the first iteration."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.transforms.ir.buffers import covers_root, root_of, touches
from tilelang_npu.transforms.ir.locations import line_of
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.first_iterations import holds_first
from tilelang_npu.transforms.tile.first_writes import is_dead_after


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


def later_reader(fill: tile.FillOp) -> Operation | None:
    """The first operation after the loops and conditions around a clear that touches the buffer."""
    buffer, op = root_of(fill.target), fill.parent_op()
    while op is not None and not isinstance(op, tile.LaunchOp):
        found = next_touching(op.next_op, buffer)
        if found is not None:
            return found
        op = op.parent_op()
    return None


def followers(fill: tile.FillOp) -> Iterator[Operation]:
    """What touches a cleared buffer next: loops from the outside in, and the operation at the end of them."""
    buffer = root_of(fill.target)
    follower = next_touching(fill.next_op, buffer)
    while follower is not None:
        yield follower
        follower = next_touching(follower.body.block.first_op, buffer) if isinstance(follower, scf.ForOp) else None


def folds(fill: tile.FillOp, ranges: Ranges) -> bool:
    """Whether a clear can become the ``init`` of a gemm (the next one, in loops that surely run), or nothing reads it."""
    chain = list(followers(fill))
    if not is_zero(fill.value):
        return False
    if not chain:
        return is_dead_after(fill, root_of(fill.target), ranges)
    return isinstance(chain[-1], tile.GemmOp) and all(
        ranges.trip_count(loop).low >= 1 for loop in chain if isinstance(loop, scf.ForOp))


def not_started(follower: Operation | None) -> Refusal:
    """Why what touches a cleared accumulator next does not start it with its ``init``."""
    if follower is None:
        return Refusal("nothing that surely runs multiplies into it", "remove the clear, or pass init=True to the first gemm")
    if isinstance(follower, scf.ForOp):
        return Refusal(f"the loop at {line_of(follower)}, which multiplies into it, may not run",
                       "give the loop constant bounds, or pass init=True to its first gemm")
    if isinstance(follower, scf.IfOp):
        return Refusal(f"what touches it next, at {line_of(follower)}, is under a condition",
                       "pass init=True to the first gemm, or clear it under the same condition")
    return Refusal(f"what touches it next, at {line_of(follower)}, is no gemm that adds to all of it",
                   "clear it in front of the gemm")


def comes_round(fill: tile.FillOp) -> bool:
    """Whether what reads a cleared buffer may stand above the clear, in the next iteration of a loop around both."""
    buffer, op = root_of(fill.target), fill.parent_op()
    while op is not None:
        if isinstance(op, (scf.ForOp, scf.WhileOp)) and any(
                use.op is not fill and root_of(use.value) is buffer for inner in op.walk() for use in effects_of(inner)):
            return True
        op = op.parent_op()
    return False


def restarted(loop: scf.ForOp, ranges: Ranges) -> frozenset[SSAValue]:
    """The accumulators that a loop which surely runs starts over: the first thing its body does with one is a gemm whose
    ``init`` holds in the first iteration."""
    if ranges.trip_count(loop).low < 1:
        return frozenset()
    seen: set[SSAValue] = set()
    found: set[SSAValue] = set()
    for op in loop.body.block.ops:
        buffers = {root_of(use.value) for inner in op.walk() for use in effects_of(inner)}
        if isinstance(op, tile.GemmOp) and root_of(op.c) not in seen and holds_first(op.init, [loop], ranges):
            found.add(root_of(op.c))
        seen |= buffers
    return frozenset(found)
