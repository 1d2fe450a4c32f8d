"""The statements of a block that use a buffer, and the live ranges of the buffer's successive values.

Authors use one buffer for several values, one after another. A live range begins at a statement from which on the buffer is
overwritten before it is read, and ends before the next such statement. No value is carried from one live range to the next, so
each live range could have its own buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tilelang_npu.analysis.accesses import has_access_to
from tilelang_npu.analysis.buffers import users_of
from tilelang_npu.analysis.first_writes import may_read_earlier_value
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile


def statements_using(allocation: tile.AllocOp) -> list[Operation]:
    """Returns the operations of an allocation's block that access the buffer, directly or in a nested operation, in order.
    """
    home, buffer = allocation.parent_block(), allocation.result
    assert home is not None
    users = {user for user in users_of(buffer)
             if not isinstance(user, (tile.RegionOp, tile.ViewOp)) and has_access_to(user, buffer)}
    statements = {home.find_ancestor_op_in_block(user) for user in users}
    return [op for op in home.ops if op in statements]


def successive_live_ranges(allocation: tile.AllocOp, is_moved: Callable[[Sequence[Operation]], bool], ranges: Ranges
                           ) -> list[list[Operation]]:
    """Returns all live ranges of a buffer in its block except for the first, each as the list of its statements.

    Two successive live ranges are returned as one unless ``is_moved`` is true for both the statements of the earlier one and
    the rest of the block.

    Args:
        allocation: an allocation in a loop's body whose contents do not survive an iteration.
        is_moved: returns whether at least one of the given statements copies the buffer from or to another memory.
        ranges: bounds of scalars.
    """
    statements, starts = statements_using(allocation), [0]
    for at in range(1, len(statements)):
        if is_moved(statements[starts[-1]:at]) and is_moved(statements[at:]) and not may_read_earlier_value(
                statements[at:], allocation.result, ranges):
            starts.append(at)
    lives = [statements[start:end] for start, end in zip(starts, [*starts[1:], len(statements)], strict=True)]
    return lives[1:]


def live_ranges_of_loops(allocation: tile.AllocOp, wants_own: Callable[[scf.ForOp], bool],
                         ranges: Ranges) -> list[list[Operation]]:
    """Returns the live ranges of a buffer that consist of one statement and contain a loop that should get a separate buffer.

    If every statement that accesses the buffer is such a live range, the first one is left out, because it can keep the
    allocation. The result is empty if a statement can read what the buffer held before all of them.

    Args:
        allocation: the allocation of the buffer.
        wants_own: returns whether a given loop that accesses the buffer should get a separate buffer.
        ranges: bounds of scalars.
    """
    statements, buffer = statements_using(allocation), allocation.result
    lives = _candidates(statements, buffer, wants_own, ranges)
    return [] if not lives or may_read_earlier_value(statements, buffer, ranges) else lives


def _candidates(statements: Sequence[Operation], buffer: SSAValue, wants_own: Callable[[scf.ForOp], bool], ranges: Ranges
           ) -> list[list[Operation]]:
    def has_loop(statement: Operation) -> bool:
        return any(isinstance(op, scf.ForOp) and wants_own(op) and has_access_to(op, buffer) for op in statement.walk())

    if len(statements) == 1:
        # The two branches of one scf.if share no value: one of them is executed.
        branches = [list(region.block.ops) for region in statements[0].regions if region.blocks]
        both = isinstance(statements[0], scf.IfOp) and sum(
            any(has_access_to(op, buffer) for op in branch) for branch in branches) == 2
        return [branches[1]] if both and has_loop(statements[0]) else []
    found = [[statements[at]] for at in range(len(statements)) if has_loop(statements[at])
             and not (at and may_read_earlier_value(statements[at:], buffer, ranges))
             and not may_read_earlier_value(statements[at + 1:], buffer, ranges)]
    return found[1:] if len(found) == len(statements) else found


__all__ = ["live_ranges_of_loops", "statements_using", "successive_live_ranges"]
