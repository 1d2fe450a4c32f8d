"""When a loop that goes round a ring of slots comes to one that is touched in front of it, or was last at one that is behind.

``x[0]`` is filled in front of the loop, ``x[(t + 1) % 2]`` in it: the first iteration fills the other slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import NATURAL, Interval, Linear
from tilelang_npu.transforms.hivm.sync.bytes import OperandBytes
from tilelang_npu.transforms.ir.guards import leaves, said, surely_natural
from tilelang_npu.transforms.ir.ranges import Ranges

if TYPE_CHECKING:
    from tilelang_npu.transforms.hivm.sync.items import BlockItems, Item


def turned(one: OperandBytes, other: OperandBytes) -> bool:
    """Whether one of two places is a ring, and the other is one slot of it."""
    return _slot(one, other) is not None or _slot(other, one) is not None


def turns_until(first: OperandBytes, ring: OperandBytes, loop: scf.ForOp | scf.WhileOp | None) -> int:
    """How many iterations of a loop surely leave alone what was touched in front of it; 0 where it goes round no ring."""
    slot, start = _slot(first, ring), _start(ring, loop)
    return 0 if slot is None or start is None else (slot - start) % ring.slots


def turns_since(ring: OperandBytes, second: OperandBytes, loop: scf.ForOp | scf.WhileOp | None) -> int:
    """How many iterations at the end of a loop surely leave alone what is touched behind it."""
    slot, start = _slot(second, ring), _start(ring, loop)
    if slot is None or start is None or not isinstance(loop, scf.ForOp):
        return 0
    trips = Ranges().trip_count(loop).constant
    return 0 if trips is None else (start + trips - 1 - slot) % ring.slots


def iterations(items: Sequence[Item], loop: scf.ForOp | None) -> list[Interval]:
    """Which iterations of a loop each item of its body can do something in, from 0: a stage is a branch on the index."""
    ranges = Ranges()
    step = None if loop is None else ranges.constant(loop.step)
    if loop is None or step is None or step <= 0:
        return [NATURAL] * len(items)
    everywhere, low, index = Interval(0, ranges.trip_count(loop).high - 1), ranges.constant(loop.lb), loop.body.block.args[0]
    windows: list[Interval] = []
    for item in items:
        found = everywhere
        if low is not None and isinstance(item.op, scf.IfOp) and not (item.op.false_region.blocks and _touched(item.blocks[1])):
            for sum_ in said(item.op.cond, ranges):  # sum_ = factor * index + constant is not negative
                if list(sum_.terms) == [index] and abs(factor := sum_.factor(index)) == 1:
                    bound = -factor * sum_.constant - low
                    found = found.meet(Interval(-(-bound // step)) if factor > 0 else Interval(0, bound // step))
        windows.append(found)
    return windows


def surely_taken(items: Sequence[Item], loop: scf.ForOp, windows: Sequence[Interval]) -> Iterator[tuple[int, int]]:
    """The branches of a loop's body that are taken whenever it runs, by place, each with the first iteration that takes it.

    Args:
        items: those of the body.
        loop: the loop.
        windows: the iterations that each can do something in.
    """
    ranges, turn = Ranges(), loop.body.block.args[0]
    trips = ranges.trip_count(loop).low
    if ranges.constant(loop.lb) is None:
        return  # the windows are no narrower than the loop
    for index, (item, window) in enumerate(zip(items, windows, strict=True)):
        if isinstance(item.op, scf.IfOp) and len(item.blocks) == 1 and window.low <= window.high and window.low < trips and all(
                sum_ is not None and list(sum_.terms) == [turn] and abs(sum_.factor(turn)) == 1
                for sum_ in leaves(item.op.cond, ranges)):
            yield index, int(window.low)


_FAR = 4
"""Iterations apart that stages are looked at: so many slots are common."""


def after_last(item: Item, loop: scf.ForOp | scf.WhileOp | None) -> int:
    """How many iterations of a loop come at least behind one in which a branch of its body is taken: later stages have them."""
    if not isinstance(loop, scf.ForOp) or not isinstance(item.op, scf.IfOp) or len(item.blocks) != 1:
        return 0
    ranges, index = Ranges(), loop.body.block.args[0]
    rest = affine(loop.ub, ranges.constant) - affine(index) - Linear(1)
    step = ranges.constant(loop.step)
    if step is None or step <= 0:
        return 0
    count = 0
    while count < _FAR and surely_natural(rest - Linear((count + 1) * step), [item.op.cond], ranges):
        count += 1
    return count


def stages(items: Sequence[Item], loop: scf.ForOp) -> dict[int, list[tuple[int, int]]]:
    """By place of a branch in a loop's body which branches are taken so many iterations behind each one that takes it, in front
    of it where the number is below zero, if there is such an iteration: those of a pipeline's stages follow each other."""
    ranges, turn = Ranges(), loop.body.block.args[0]
    step = ranges.constant(loop.step)
    if step is None or step <= 0:
        return {}
    branches = {place: list(leaves(item.op.cond, ranges)) for place, item in enumerate(items) if isinstance(item.op, scf.IfOp)}
    turning = [place for place, holds in branches.items() if any(sum_ is not None and turn in sum_.terms for sum_ in holds)]
    found: dict[int, list[tuple[int, int]]] = {place: [] for place in turning}
    for place, holds in branches.items():
        sums = [sum_ for sum_ in holds if sum_ is not None and all(atom is turn or _outside(atom, loop) for atom in sum_.terms)]
        if len(sums) < len(holds) or len(items[place].blocks) != 1:
            continue
        for far in range(-_FAR, _FAR + 1):
            moved = [sum_ + Linear(sum_.factor(turn) * far * step) for sum_ in sums]
            for one in turning:
                branch = items[one].op
                assert isinstance(branch, scf.IfOp)
                if (far or place != one) and all(surely_natural(sum_, [branch.cond], ranges) for sum_ in moved):
                    found[one].append((place, far))
    return found


def common(items: Sequence[Item], loop: scf.ForOp, staged: Mapping[int, Sequence[tuple[int, int]]]) -> int | None:
    """The place of a branch that a loop's body takes if it does anything at all: in the iteration of each other one, or in one
    before. None where there is no such branch.

    Args:
        items: those of the body.
        loop: the loop.
        staged: its ``stages``.
    """
    ranges, busy = Ranges(), [place for place, item in enumerate(items) if item.touches]
    turn, step = affine(loop.body.block.args[0]) - affine(loop.lb, ranges.constant), ranges.constant(loop.step)

    def implied(place: int) -> set[int]:
        branch = items[place].op
        return {place, *(other for other, far in staged.get(place, ()) if isinstance(branch, scf.IfOp) and step is not None
                         and (far == 0 or (far < 0 and surely_natural(turn + Linear(far * step), [branch.cond], ranges))))}

    shared = set(staged).intersection(*map(implied, busy)) if busy else set[int]()
    return min(shared, default=None)


def taken_alike(one: Operation | None, other: Operation | None) -> bool:
    """Whether branches of two loops are taken in the same iterations, if these are of the same bounds."""
    ranges = Ranges()

    def sums(branch: Operation | None) -> list[tuple[int, Linear[SSAValue]]] | None:
        loop = None if branch is None else branch.parent_op()
        if not isinstance(branch, scf.IfOp) or not isinstance(loop, scf.ForOp):
            return None
        found = list(leaves(branch.cond, ranges))
        index: SSAValue = loop.body.block.args[0]
        parts = [(sum_.factor(index), sum_ - sum_.factor(index) * Linear.of(index)) for sum_ in found if sum_ is not None]
        open_ = len(parts) < len(found) or not all(_outside(atom, loop) for _, rest in parts for atom in rest.terms)
        return None if open_ else parts

    first = sums(one)
    return first is not None and first == sums(other)


def _outside(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value is the same in all iterations of a loop."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    while block is not None and block is not loop.body.block:
        around = block.parent_op()
        block = around.parent_block() if around is not None else None
    return block is None


def _touched(body: BlockItems) -> bool:
    return any(item.touches for item in body.items)


def _start(ring: OperandBytes, loop: scf.ForOp | scf.WhileOp | None) -> int | None:
    """The slot that the first iteration takes, if the loop is the one that goes round the ring."""
    if ring.turn is None or not isinstance(loop, scf.ForOp) or ring.turn[0] is not loop.body.block.args[0]:
        return None
    low = Ranges().constant(loop.lb)
    return None if low is None else low + ring.turn[1]


def _slot(place: OperandBytes, ring: OperandBytes) -> int | None:
    """The slot of a ring that a place is in."""
    if place.turn is not None or ring.turn is None or place.root is not ring.root:
        return None
    slot = place.low // ring.high
    return slot if (place.high - 1) // ring.high == slot < ring.slots else None


__all__ = ["after_last", "common", "iterations", "stages", "surely_taken", "taken_alike", "turned", "turns_since",
           "turns_until"]
