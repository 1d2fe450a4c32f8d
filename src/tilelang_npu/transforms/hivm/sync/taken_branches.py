"""Determines in which iterations of a loop the branches of its body are taken, and which branches imply one another.

The stages of a software pipeline are branches on the induction variable: ``if t < n: load``, ``if t >= 1: compute``. The second
branch is taken one iteration after each iteration that takes the first. So other accesses can rely on waits inside these
branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.analysis.guards import conjuncts_of, is_surely_nonnegative, nonnegative_under
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import NATURAL, Interval, Linear

if TYPE_CHECKING:
    from tilelang_npu.transforms.hivm.sync.items import SyncItem

_MAX_DISTANCE = 4
"""The largest iteration distance between two branches that is considered: kernels rarely use more slots."""


def active_iterations(items: Sequence[SyncItem], loop: scf.ForOp | None) -> list[Interval]:
    """Returns, for each item of a loop's body, the interval of iterations (counted from 0) in which it can access memory.

    Args:
        items: the items of the body.
        loop: the loop; None if the loop is not an ``scf.for``, and then each interval is unbounded.
    """
    ranges = Ranges()
    step = None if loop is None else ranges.constant(loop.step)
    if loop is None or step is None or step <= 0:
        return [NATURAL] * len(items)
    everywhere, low, index = Interval(0, ranges.trip_count(loop).high - 1), ranges.constant(loop.lb), loop.body.block.args[0]
    found: list[Interval] = []
    for item in items:
        iterations = everywhere
        if low is not None and isinstance(item.op, scf.IfOp) and not (
                item.op.false_region.blocks and any(inner.accesses for inner in item.blocks[1].items)):
            for sum_ in nonnegative_under(item.op.cond, ranges):  # sum_ = factor * index + constant is nonnegative
                if list(sum_.terms) == [index] and abs(factor := sum_.factor(index)) == 1:
                    bound = -factor * sum_.constant - low
                    iterations = iterations.meet(Interval(-(-bound // step)) if factor == 1 else Interval(0, bound // step))
        found.append(iterations)
    return found


def surely_taken_branches(items: Sequence[SyncItem], loop: scf.ForOp, active: Sequence[Interval]) -> Iterator[tuple[int, int]]:
    """Yields the item index of each branch that is taken at least once whenever the loop runs, and the first such iteration.

    Args:
        items: the items of the body.
        loop: the loop.
        active: the result of ``active_iterations``.
    """
    ranges, index = Ranges(), loop.body.block.args[0]
    trips = ranges.trip_count(loop).low
    if ranges.constant(loop.lb) is None:
        return  # then ``active`` is no narrower than the loop
    for place, (item, iterations) in enumerate(zip(items, active, strict=True)):
        if (isinstance(item.op, scf.IfOp) and len(item.blocks) == 1
                and iterations.low <= iterations.high and iterations.low < trips and all(
                    sum_ is not None and list(sum_.terms) == [index] and abs(sum_.factor(index)) == 1
                    for sum_ in conjuncts_of(item.op.cond, ranges))):
            yield place, int(iterations.low)


def iterations_after(item: SyncItem, loop: scf.ForOp | scf.WhileOp | None) -> int:
    """Returns the number of iterations of a loop that surely follow each iteration that takes a branch (at most 4).

    Args:
        item: the branch, in the loop's body.
        loop: the loop.
    """
    if not isinstance(loop, scf.ForOp) or not isinstance(item.op, scf.IfOp) or len(item.blocks) != 1:
        return 0
    ranges, index = Ranges(), loop.body.block.args[0]
    rest = affine(loop.ub, ranges.constant) - affine(index) - Linear(1)
    step = ranges.constant(loop.step)
    if step is None or step <= 0:
        return 0
    count = 0
    while count < _MAX_DISTANCE and is_surely_nonnegative(rest - Linear((count + 1) * step), [item.op.cond], ranges):
        count += 1
    return count


def implied_branches(items: Sequence[SyncItem], loop: scf.ForOp) -> dict[int, list[tuple[int, int]]]:
    """Returns, for each branch on the induction variable, the branches that are then taken too, as (item index, distance).

    A pair ``(other, d)`` of ``branch`` means: ``other`` is taken ``d`` iterations after each iteration that takes ``branch``
    (``-d`` iterations before, if ``d`` is negative), if the loop has such an iteration.
    """
    ranges, index = Ranges(), loop.body.block.args[0]
    step = ranges.constant(loop.step)
    if step is None or step <= 0:
        return {}
    conditions = {place: list(conjuncts_of(item.op.cond, ranges))
                  for place, item in enumerate(items) if isinstance(item.op, scf.IfOp)}
    on_index = [place for place, conjuncts in conditions.items()
                if any(sum_ is not None and index in sum_.terms for sum_ in conjuncts)]
    found: dict[int, list[tuple[int, int]]] = {place: [] for place in on_index}
    for place, conjuncts in conditions.items():
        sums = [sum_ for sum_ in conjuncts if sum_ is not None
                and all(atom is index or _is_loop_invariant(atom, loop) for atom in sum_.terms)]
        if len(sums) < len(conjuncts) or len(items[place].blocks) != 1:
            continue
        for distance in range(-_MAX_DISTANCE, _MAX_DISTANCE + 1):
            moved = [sum_ + Linear(sum_.factor(index) * distance * step) for sum_ in sums]
            for other in on_index:
                branch = items[other].op
                assert isinstance(branch, scf.IfOp)
                if (distance or place != other) and all(is_surely_nonnegative(sum_, [branch.cond], ranges) for sum_ in moved):
                    found[other].append((place, distance))
    return found


def common_branch(items: Sequence[SyncItem], loop: scf.ForOp, implied: Mapping[int, Sequence[tuple[int, int]]]) -> int | None:
    """Returns the index of a branch that is taken in or before each iteration in which an item accesses memory; None if there
    is no such branch.

    Args:
        items: the items of the body.
        loop: the loop.
        implied: the result of ``implied_branches``.
    """
    ranges, busy = Ranges(), [place for place, item in enumerate(items) if item.accesses]
    index, step = affine(loop.body.block.args[0]) - affine(loop.lb, ranges.constant), ranges.constant(loop.step)

    def implied_by(place: int) -> set[int]:
        branch = items[place].op
        return {place, *(other for other, distance in implied.get(place, ())
                         if isinstance(branch, scf.IfOp) and step is not None
                         and (distance == 0 or (distance < 0 and is_surely_nonnegative(
                             index + Linear(distance * step), [branch.cond], ranges))))}

    shared = set(implied).intersection(*map(implied_by, busy)) if busy else set[int]()
    return min(shared, default=None)


def are_taken_alike(one: Operation | None, other: Operation | None) -> bool:
    """Whether two branches in the bodies of two loops are taken in the same iterations, if the loops have the same bounds."""
    ranges = Ranges()

    def condition(branch: Operation | None) -> list[tuple[int, Linear[SSAValue]]] | None:
        """The conjuncts as factor of the induction variable and rest; None if they cannot be compared."""
        loop = None if branch is None else branch.parent_op()
        if not isinstance(branch, scf.IfOp) or not isinstance(loop, scf.ForOp):
            return None
        conjuncts = list(conjuncts_of(branch.cond, ranges))
        index: SSAValue = loop.body.block.args[0]
        parts = [(sum_.factor(index), sum_ - sum_.factor(index) * Linear.of(index)) for sum_ in conjuncts if sum_ is not None]
        unknown = len(parts) < len(conjuncts) or not all(
            _is_loop_invariant(atom, loop) for _, rest in parts for atom in rest.terms)
        return None if unknown else parts

    first = condition(one)
    return first is not None and first == condition(other)


def _is_loop_invariant(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value is defined outside a loop."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    while block is not None and block is not loop.body.block:
        parent = block.parent_op()
        block = parent.parent_block() if parent is not None else None
    return block is None


__all__ = ["active_iterations", "are_taken_alike", "common_branch", "implied_branches", "iterations_after",
           "surely_taken_branches"]
