"""Whether a piece of a program reads of a buffer what was in it before, or only what the piece itself has put there.

Two questions are answered for operations that run one after the other: may they read something that they did not write, and
have they surely written all of it at their end? A branch that may be skipped reads what its operations read, and has surely
written nothing; what follows it is looked at as if it were not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of, is_pure
from tilelang_npu.linear import Bound
from tilelang_npu.transforms.ir.buffers import root_of, touches, users_of, walk
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.first_iterations import holds_first
from tilelang_npu.transforms.tile.strips import Strips


class _OldValues(NamedTuple):
    """What operations do with what was in a buffer before them: may they read it, and do they surely replace all of it?"""

    reads: bool
    replaces: bool


def reads_earlier(ops: Iterable[Operation], buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether operations may read of a buffer what was in it before them: they do not write all of it first, at once or
    strip by strip."""
    return _found(ops, buffer, ranges, ()).reads


def _found(ops: Iterable[Operation], buffer: SSAValue, ranges: Ranges, inside: tuple[scf.ForOp, ...]) -> _OldValues:
    """For operations one after the other; ``inside`` are the loops around them that are in their first iteration."""
    written = Strips(buffer, ranges)
    for op in ops:
        if op.regions:
            if touches(op, buffer):
                inner = _found_in(op, buffer, ranges, inside)
                if inner.reads or inner.replaces:
                    return inner
            continue
        uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
        for use in uses:
            if use.reads:
                anew = isinstance(op, tile.GemmOp) and holds_first(op.init, inside, ranges)  # the accumulator is not read then
                if not (anew and use.role == "accumulator") and (use.role == "scalar" or not written.holds(use.value)):
                    return _OldValues(reads=True, replaces=False)
        for use in uses:
            if use.writes and use.role != "scalar":
                written.add(use.value)
        if written.complete:
            return _OldValues(reads=False, replaces=True)
    return _OldValues(reads=False, replaces=False)


def _found_in(op: Operation, buffer: SSAValue, ranges: Ranges, inside: tuple[scf.ForOp, ...]) -> _OldValues:
    """For an operation with others in it."""
    if isinstance(op, scf.IfOp):
        taken = [op.true_region] if holds_first(op.cond, inside, ranges) else [op.true_region, op.false_region]
        ways = [_found(region.block.ops if region.blocks else (), buffer, ranges, inside) for region in taken]
        return _OldValues(any(way.reads for way in ways), all(way.replaces for way in ways))
    if isinstance(op, scf.ForOp):
        if _fills_by_slices(op, buffer, ranges):
            return _OldValues(reads=False, replaces=True)
        first = _found(op.body.block.ops, buffer, ranges, (*inside, op))
        if first.reads or first.replaces:
            runs = ranges.trip_count(op).low >= 1 or _always_or_never(op, buffer)
            return _OldValues(first.reads, first.replaces and runs)
        return _OldValues(_found(op.body.block.ops, buffer, ranges, inside).reads, replaces=False)
    return _OldValues(reads=True, replaces=False)


def _always_or_never(loop: scf.ForOp, buffer: SSAValue) -> bool:
    """Whether a loop that alone writes a buffer runs whenever it is reached, or never: of what never was written nothing is
    old."""
    writers = (user for user in users_of(buffer) for use in effects_of(user) if use.writes and root_of(use.value) is buffer)
    return all(loop.is_ancestor(user) for user in writers) and all(
        _same_each_time(bound, buffer) for bound in (loop.lb, loop.ub, loop.step))


def _same_each_time(value: SSAValue, buffer: SSAValue) -> bool:
    """Whether a scalar has one value while a buffer lives: it is not computed in a loop, or from others of which this holds."""
    owner, home = value.owner, buffer.owner
    assert isinstance(home, Operation), "an allocation"
    around = home.parent_op()
    block = owner if isinstance(owner, Block) else owner.parent_block()
    if block is home.parent_block() or block is None or around is None or not around.is_ancestor(block):
        return True
    return isinstance(owner, Operation) and is_pure(owner) and all(_same_each_time(each, buffer) for each in owner.operands)


def is_dead_after(op: Operation, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether nothing reads the values that an operation leaves in a buffer: no later operation, and none in a later iteration
    of a loop around it."""
    home = buffer.owner
    while isinstance(home, Operation) and (block := op.parent_block()) is not None:
        ops, parent = list(block.ops), block.parent_op()
        next_iteration = ops if isinstance(parent, scf.ForOp) else [
            *parent.before_region.block.ops, *ops] if isinstance(parent, scf.WhileOp) else []
        if reads_earlier(ops[ops.index(op) + 1:], buffer, ranges) or reads_earlier(next_iteration, buffer, ranges):
            return False
        if block is home.parent_block():
            return True
        if not isinstance(parent, (scf.ForOp, scf.WhileOp, scf.IfOp, tile.OnCoreOp)):
            return False
        op = parent
    return False


def _fills_by_slices(loop: scf.ForOp, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether a loop, with the loops in it, writes every slice of a buffer before anything in it reads the buffer.

    What it reads of the buffer is what it wrote at the same place further up, for of other places it may be too early.
    """
    body = loop.body.block
    return _counts_up(loop, ranges) and _writes_slices(body, {body.args[0]: ranges.trip_count(loop).low}, buffer, Strips(
        buffer, ranges), ranges) and (not _reads(loop, buffer) or reads_what_it_wrote(body, buffer))


def _counts_up(loop: scf.ForOp, ranges: Ranges) -> bool:
    """Whether a loop counts from 0 in steps of 1, a number of times that is known."""
    return ranges.constant(loop.lb) == 0 and ranges.constant(loop.step) == 1 and (ranges.constant(loop.ub) or 0) > 0


def _writes_slices(block: Block, trips: Mapping[SSAValue, Bound], buffer: SSAValue, written: Strips, ranges: Ranges) -> bool:
    """Whether a block first writes all of a buffer, where it runs once for all that the counters of ``trips`` come to."""
    for op in block.ops:
        uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
        if op.regions and touches(op, buffer):
            if isinstance(op, scf.ForOp):
                body = op.body.block
                inner = {**trips, body.args[0]: ranges.trip_count(op).low}
                return _counts_up(op, ranges) and _writes_slices(body, inner, buffer, written, ranges)
            branches = _branches(op)
            return bool(branches) and all(_writes_slices(branch, trips, buffer, written.copy(), ranges) for branch in branches)
        if any(use.reads or not use.writes for use in uses):
            return False
        for use in uses:
            written.add(use.value, trips)
        if written.complete:
            return True
    return False


def _reads(loop: scf.ForOp, buffer: SSAValue) -> bool:
    """Whether anything in a loop reads a buffer."""
    return any(use.reads and root_of(use.value) is buffer for op in loop.walk() for use in effects_of(op))


def _branches(op: Operation) -> list[Block]:
    """The two ways through a branch, one of which is taken; nothing for other operations."""
    found = [region.block for region in op.regions if region.blocks] if isinstance(op, scf.IfOp) else []
    return found if len(found) == 2 else []


def reads_what_it_wrote(block: Block, buffer: SSAValue) -> bool:
    """Whether everything that is read of a buffer was written, at the same place, further up in the innermost block around."""
    for op in walk(block):
        for use in effects_of(op):
            if use.reads and root_of(use.value) is buffer:
                inner = op.parent_block()
                if inner is None or use.writes or not _written_above(op, inner, use.value, buffer):
                    return False
    return True


def _written_above(reader: Operation, block: Block, value: SSAValue, buffer: SSAValue) -> bool:
    """Whether a block surely writes the place of a view before an operation of it."""
    for op in block.ops:
        if op is reader:
            return False
        branches = _branches(op)
        if branches and all(_writes_place(branch, value, buffer) for branch in branches):
            return True
        if _writes_at(op, value, buffer):
            return True
    return False


def _writes_place(block: Block, value: SSAValue, buffer: SSAValue) -> bool:
    return any(_writes_at(op, value, buffer) for op in block.ops)


def _writes_at(op: Operation, value: SSAValue, buffer: SSAValue) -> bool:
    """Whether an operation writes all of the place that a view of the buffer shows."""
    return any(use.writes and not use.reads and use.role != "scalar" and root_of(use.value) is buffer
               and same_value(use.value, value) for use in effects_of(op))


def same_value(a: SSAValue, b: SSAValue) -> bool:
    """Whether two values are the same one, or computed alike from the same ones."""
    if a is b:
        return True
    x, y = a.owner, b.owner
    return (isinstance(x, Operation) and isinstance(y, Operation) and x.name == y.name
            and is_pure(x)
            and x.properties == y.properties and x.attributes == y.attributes and len(x.operands) == len(y.operands)
            and all(same_value(one, other) for one, other in zip(x.operands, y.operands, strict=True)))


__all__ = ["is_dead_after", "reads_earlier", "reads_what_it_wrote", "same_value"]
