"""Give a loop a buffer of its own in place of one that other statements use for something else.

A name that is used again has several lives: what a statement finds in the buffer was put there by itself or by one of the same
life. Where a life is one statement with a loop in it that has use for a buffer of its own, the life gets an allocation, which
can move into the loop, have a slot for each of its stages, and be of one iteration. What outlives a statement stays one buffer.

In an iteration a buffer of several slots may have several lives too. Where each of two is moved between memories, what loads
the one would wait for what stores the other, so the later one gets an allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.ir.buffers import root_of, touches, users_of
from tilelang_npu.transforms.ir.locations import stand_in
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.first_writes import reads_earlier

_LINKS = (tile.RegionOp, tile.ViewOp)
Wants = Callable[[scf.ForOp], bool]
"""Whether a loop, which uses a buffer, has use for one of its own."""


def split(allocation: tile.AllocOp, wants: Wants, ranges: Ranges) -> list[tile.AllocOp]:
    """New allocations, one for each further life of a buffer that is one statement with a loop in it that wants it."""
    statements, buffer = users_in_order(allocation), allocation.result
    lives = _lives(statements, buffer, wants, ranges)
    if not lives or reads_earlier(statements, buffer, ranges):
        return []
    return [give_own(allocation, life) for life in lives]


def lives_in_turn(allocation: tile.AllocOp, moved: Callable[[Sequence[Operation]], bool], ranges: Ranges
                  ) -> list[list[Operation]]:
    """The lives, but the first, that a buffer has one after the other in its block, where it and one before are moved.

    Args:
        allocation: of a buffer of which nothing goes from one time that the block runs to the next.
        moved: whether statements move the buffer between memories.
        ranges: bounds of scalars.
    """
    statements, starts = users_in_order(allocation), [0]
    for at in range(1, len(statements)):
        if moved(statements[starts[-1]:at]) and moved(statements[at:]) and not reads_earlier(
                statements[at:], allocation.result, ranges):
            starts.append(at)
    lives = [statements[start:end] for start, end in zip(starts, [*starts[1:], len(statements)], strict=True)]
    return lives[1:]


def users_in_order(allocation: tile.AllocOp) -> list[Operation]:
    """The statements of an allocation's block that use the buffer."""
    home, buffer = allocation.parent_block(), allocation.result
    assert home is not None
    users = {user for user in users_of(buffer) if not isinstance(user, _LINKS) and touches(user, buffer)}
    statements = {home.find_ancestor_op_in_block(user) for user in users}
    return [op for op in home.ops if op in statements]


def _lives(statements: Sequence[Operation], buffer: SSAValue, wants: Wants, ranges: Ranges) -> list[list[Operation]]:
    """The statements of each life that is to have an allocation; one of them keeps what there is."""
    def loops(statement: Operation) -> bool:
        return any(isinstance(op, scf.ForOp) and wants(op) and touches(op, buffer) for op in statement.walk())

    if len(statements) == 1:  # of a branch one way is taken, and shares nothing with the other
        ways = [list(region.block.ops) for region in statements[0].regions if region.blocks]
        two = isinstance(statements[0], scf.IfOp) and sum(any(touches(op, buffer) for op in way) for way in ways) == 2
        return [ways[1]] if two and loops(statements[0]) else []
    found = [[statements[at]] for at in range(len(statements)) if loops(statements[at])
             and not (at and reads_earlier(statements[at:], buffer, ranges))
             and not reads_earlier(statements[at + 1:], buffer, ranges)]
    return found[1:] if len(found) == len(statements) else found


def give_own(allocation: tile.AllocOp, life: Sequence[Operation]) -> tile.AllocOp:
    """An allocation like another, which has its place in some statements."""
    made = allocation.clone()
    stand_in(allocation, made)
    made.result.name_hint = allocation.result.name_hint
    Rewriter().insert_op(made, InsertPoint.after(allocation))
    for statement in life:
        for op in list(statement.walk()):
            for index, operand in enumerate(op.operands if not isinstance(op, _LINKS) else ()):
                if root_of(operand) is allocation.result:
                    op.operands[index] = _based_on(operand, allocation.result, made.result)
                    _drop(operand)
    return made


def _based_on(value: SSAValue, old: SSAValue, new: SSAValue) -> SSAValue:
    """The same view of another buffer."""
    if value is old:
        return new
    link = value.owner
    assert isinstance(link, _LINKS)
    source = _based_on(link.source, old, new)
    made = link.clone({link.source: source})
    stand_in(link, made)
    made.results[0].name_hint = value.name_hint
    Rewriter().insert_op(made, InsertPoint.before(link))
    return made.results[0]


def _drop(value: SSAValue) -> None:
    """Erase views that nothing uses any more."""
    while isinstance(link := value.owner, _LINKS) and not list(value.uses):
        value = link.source
        Rewriter.erase_op(link)


__all__ = ["give_own", "lives_in_turn", "split", "users_in_order"]
