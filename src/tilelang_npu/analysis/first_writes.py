"""Whether a sequence of operations reads the earlier value of a buffer, or only values that the sequence itself wrote.

The earlier value is what the buffer holds before the sequence. Two questions are answered: can the sequence read some of the
earlier value, and does the sequence surely overwrite all of it? For a branch that may be skipped, the reads of its operations
count and their writes do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xdsl.dialects import memref, scf
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.analysis.accesses import accesses_within, has_access_to
from tilelang_npu.analysis.buffers import root_of, users_of, walk
from tilelang_npu.analysis.first_iterations import holds_in_first_iteration
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.analysis.written_strips import WrittenStrips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of, is_pure
from tilelang_npu.linear import Bound


class _EarlierValue(NamedTuple):
    """How a sequence of operations uses the value that a buffer held before the sequence.

    Attributes:
        reads: whether the operations may read some of the value.
        replaces: whether the operations surely overwrite all of the value.
    """

    reads: bool
    replaces: bool


def may_read_earlier_value(ops: Iterable[Operation], buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether a sequence of operations can read some of the value that a buffer holds before the sequence.

    Args:
        ops: the operations, in program order.
        buffer: the buffer.
        ranges: bounds of scalars.
    """
    return _analyse_ops(ops, buffer, ranges, ()).reads


def _analyse_ops(ops: Iterable[Operation], buffer: SSAValue, ranges: Ranges, loops: tuple[scf.ForOp, ...]) -> _EarlierValue:
    """Analyses operations in sequence; ``loops`` are the loops around them that are in their first iteration."""
    written = WrittenStrips(buffer, ranges)
    for op in ops:
        if op.regions:
            if has_access_to(op, buffer):
                inner = _analyse_op(op, buffer, ranges, loops)
                if inner.reads or inner.replaces:
                    return inner
            continue
        uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
        for use in uses:
            if use.reads:
                # A gemm with init does not read its accumulator.
                starts_accumulator = isinstance(op, tile.GemmOp) and holds_in_first_iteration(op.init, loops, ranges)
                if not (starts_accumulator and use.role == "accumulator") and (use.role == "scalar"
                                                                               or not written.covers(use.value)):
                    return _EarlierValue(reads=True, replaces=False)
        for use in uses:
            if use.writes and use.role != "scalar":
                written.add(use.value)
        if written.is_complete:
            return _EarlierValue(reads=False, replaces=True)
    return _EarlierValue(reads=False, replaces=False)


def _analyse_op(op: Operation, buffer: SSAValue, ranges: Ranges, loops: tuple[scf.ForOp, ...]) -> _EarlierValue:
    """Analyses an operation that has regions."""
    if isinstance(op, scf.IfOp):
        taken = [op.true_region] if holds_in_first_iteration(op.cond, loops, ranges) else [op.true_region, op.false_region]
        ways = [_analyse_ops(region.block.ops if region.blocks else (), buffer, ranges, loops) for region in taken]
        return _EarlierValue(any(way.reads for way in ways), all(way.replaces for way in ways))
    if isinstance(op, scf.ForOp):
        if _fills_slice_by_slice(op, buffer, ranges):
            return _EarlierValue(reads=False, replaces=True)
        first = _analyse_ops(op.body.block.ops, buffer, ranges, (*loops, op))
        if first.reads or first.replaces:
            runs = ranges.trip_count(op).low >= 1 or _runs_whenever_written(op, buffer)
            return _EarlierValue(first.reads, first.replaces and runs)
        return _EarlierValue(_analyse_ops(op.body.block.ops, buffer, ranges, loops).reads, replaces=False)
    return _EarlierValue(reads=True, replaces=False)


def _runs_whenever_written(loop: scf.ForOp, buffer: SSAValue) -> bool:
    """Whether only a given loop writes a buffer, and its trip count is constant while the buffer is live.

    Such a loop either never writes the buffer, or writes it each time when the loop is reached.
    """
    writers = (user for user in users_of(buffer) for use in effects_of(user) if use.writes and root_of(use.value) is buffer)
    return all(loop.is_ancestor(user) for user in writers) and all(
        _is_constant_while_live(bound, buffer) for bound in (loop.lb, loop.ub, loop.step))


def _is_constant_while_live(value: SSAValue, buffer: SSAValue) -> bool:
    """Whether a scalar is constant while a buffer is live: it does not depend on a loop that is nested in the buffer's block.
    """
    owner, home = value.owner, buffer.owner
    assert isinstance(home, Operation), "an allocation"
    around = home.parent_op()
    block = owner if isinstance(owner, Block) else owner.parent_block()
    if block is home.parent_block() or block is None or around is None or not around.is_ancestor(block):
        return True
    return isinstance(owner, Operation) and is_pure(owner) and all(
        _is_constant_while_live(each, buffer) for each in owner.operands)


def is_dead_after(op: Operation, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether the value that a buffer holds after an operation is never read.

    Both later operations and later iterations of the loops that contain the operation are considered.

    Args:
        op: the operation, in the block of the buffer's allocation or nested in an operation of that block.
        buffer: the buffer. The result is False if it is not defined by an operation.
        ranges: bounds of scalars.
    """
    home = buffer.owner
    while isinstance(home, Operation) and (block := op.parent_block()) is not None:
        ops, parent = list(block.ops), block.parent_op()
        next_iteration = ops if isinstance(parent, scf.ForOp) else [
            *parent.before_region.block.ops, *ops] if isinstance(parent, scf.WhileOp) else []
        if (may_read_earlier_value(ops[ops.index(op) + 1:], buffer, ranges)
                or may_read_earlier_value(next_iteration, buffer, ranges)):
            return False
        if block is home.parent_block():
            return True
        if not isinstance(parent, (scf.ForOp, scf.WhileOp, scf.IfOp, tile.OnCoreOp)):
            return False
        op = parent
    return False


def _fills_slice_by_slice(loop: scf.ForOp, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether a loop, with the loops in it, writes every slice of a buffer before anything in it reads that slice.

    Reads are allowed only of views that the same iteration wrote before: other slices may not be written yet.
    """
    body = loop.body.block
    trips: dict[SSAValue, Bound] = {body.args[0]: ranges.trip_count(loop).low}
    return (_counts_from_zero(loop, ranges) and _writes_all_slices(body, trips, buffer, WrittenStrips(buffer, ranges), ranges)
            and (not any(use.reads and root_of(use.value) is buffer for use in accesses_within(loop))
                 or reads_only_own_writes(body, buffer)))


def _counts_from_zero(loop: scf.ForOp, ranges: Ranges) -> bool:
    """Whether a loop counts from 0 in steps of 1, with a known positive trip count."""
    return ranges.constant(loop.lb) == 0 and ranges.constant(loop.step) == 1 and (ranges.constant(loop.ub) or 0) > 0


def _writes_all_slices(block: Block, trips: Mapping[SSAValue, Bound], buffer: SSAValue, written: WrittenStrips,
                       ranges: Ranges) -> bool:
    """Whether executions of a block together write all of a buffer, and write each slice before they read the buffer.

    Args:
        block: the body of the innermost loop.
        trips: the induction variables of the loops, from 0 on, with their trip counts.
        buffer: the buffer.
        written: the slices that are written so far.
        ranges: bounds of scalars.
    """
    for op in block.ops:
        uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
        if op.regions and has_access_to(op, buffer):
            if isinstance(op, scf.ForOp):
                body = op.body.block
                inner = {**trips, body.args[0]: ranges.trip_count(op).low}
                return _counts_from_zero(op, ranges) and _writes_all_slices(body, inner, buffer, written, ranges)
            branches = _both_branches(op)
            return bool(branches) and all(_writes_all_slices(branch, trips, buffer, written.copy(), ranges)
                                          for branch in branches)
        if any(use.reads or not use.writes for use in uses):
            return False
        for use in uses:
            if use.role != "scalar":
                written.add(use.value, trips)
            elif isinstance(op, memref.StoreOp) and use.value is buffer:
                written.add_element(op.indices, trips)
        if written.is_complete:
            return True
    return False


def _both_branches(op: Operation) -> list[Block]:
    """Returns the two branches of an ``scf.if``; an empty list for an ``scf.if`` without ``else`` and for other operations."""
    found = [region.block for region in op.regions if region.blocks] if isinstance(op, scf.IfOp) else []
    return found if len(found) == 2 else []


def reads_only_own_writes(block: Block, buffer: SSAValue) -> bool:
    """Whether each read of a buffer in a block is of a view that the block has surely written before the read.

    For each read there must be an earlier operation in the reader's own block, or in both branches of an ``scf.if`` there, that
    writes the same view. An operation that reads and writes the buffer by one operand makes the result False.
    """
    for op in walk(block):
        for use in effects_of(op):
            if use.reads and root_of(use.value) is buffer:
                inner = op.parent_block()
                if inner is None or use.writes or not _is_written_above(op, inner, use.value, buffer):
                    return False
    return True


def _is_written_above(reader: Operation, block: Block, value: SSAValue, buffer: SSAValue) -> bool:
    """Whether a block surely writes all of a view before one of its operations."""
    for op in block.ops:
        if op is reader:
            return False
        branches = _both_branches(op)
        if branches and all(any(_op_writes_view(inner, value, buffer) for inner in branch.ops) for branch in branches):
            return True
        if _op_writes_view(op, value, buffer):
            return True
    return False


def _op_writes_view(op: Operation, value: SSAValue, buffer: SSAValue) -> bool:
    """Whether an operation writes all of a view of a buffer."""
    return any(use.writes and not use.reads and use.role != "scalar" and root_of(use.value) is buffer
               and is_same_value(use.value, value) for use in effects_of(op))


def is_same_value(a: SSAValue, b: SSAValue) -> bool:
    """Whether two SSA values are the same value, or are computed by equal pure operations from the same values."""
    if a is b:
        return True
    x, y = a.owner, b.owner
    return (isinstance(x, Operation) and isinstance(y, Operation) and x.name == y.name
            and is_pure(x)
            and x.properties == y.properties and x.attributes == y.attributes and len(x.operands) == len(y.operands)
            and all(is_same_value(one, other) for one, other in zip(x.operands, y.operands, strict=True)))


__all__ = ["is_dead_after", "is_same_value", "may_read_earlier_value", "reads_only_own_writes"]
