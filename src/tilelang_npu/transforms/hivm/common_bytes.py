"""Which allocations may have bytes in common although there is room for all of them: those that wait no longer for it.

Three ways. An elementwise operation writes its result over what it reads for the last time (:meth:`~CommonBytes.joined`). And
what one pipe alone touches takes bytes that nothing but this pipe needed before: a pipe takes its operations in order, so
that it has read when it writes. A write over a write would want a barrier in between; where one stands there anyhow, it costs
nothing either. And what a pipe fills behind a loop takes bytes that this pipe was the last to touch in the loop, each time
behind all others: it has waited for them (:class:`CommonBytes`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.transforms.ir.lifetimes import Life, Loop, root_of


def _loops_around(op: Operation) -> Iterator[Loop]:
    """The loops that an operation is in, from the inside out."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, (scf.ForOp, scf.WhileOp)):
            yield parent
        parent = parent.parent_op()


class CommonBytes:
    """Which allocations would wait for each other if they had bytes in common.

    Args:
        order: the operations of the function, by the positions that lives are told in.
    """

    def __init__(self, order: Sequence[Operation]) -> None:
        self._order = order
        self._ends = _last_positions(order)
        self._barriers: dict[str, list[int]] = {}
        self._written: dict[Life, bool] = {}
        self._touched: dict[SSAValue, list[tuple[int, str, bool]]] = defaultdict(list)
        for position, op in enumerate(order):
            for access in accesses(op):
                self._touched[root_of(access.value)].append((position, access.pipe, access.writes))

    def joined(self, lives: Sequence[Life], may: Callable[[Life], bool]) -> list[Life]:
        """The lives, two that ``may`` as one where one takes over the other's bytes and nothing waits longer for it.

        Outside of loops nothing does: each byte is filled once. Inside, what fills the bytes for the next iteration would wait
        for all that touches them in this one, unless one pipe does all of it and what it did last was a read.
        """
        units: dict[SSAValue, Life] = {life.value: life for life in lives}
        given: set[SSAValue] = set()
        able = [life for life in lives if may(life)]
        givers: dict[SSAValue, list[Life]] = defaultdict(list)
        for giver in sorted(able, key=lambda life: life.nbytes):
            for value in giver.takers:
                givers[value].append(giver)
        for heir in sorted(able, key=lambda life: life.used):
            for giver in givers[heir.value]:
                if giver.value in given:
                    continue
                one, other = units[giver.value], units[heir.value]
                if one.slots == other.slots == 1 and not self._take_over_waits(one, other):
                    used = min(one.used[0], other.used[0]), max(one.used[1], other.used[1])
                    whole = replace(one, nbytes=max(one.nbytes, other.nbytes), start=min(one.start, other.start),
                                    end=max(one.end, other.end), used=used, pipes=one.pipes | other.pipes, heirs=frozenset(),
                                    members=(*one.members, *other.members))
                    units.update(dict.fromkeys(whole.members, whole))
                    given.add(giver.value)
                    break
        return list(dict.fromkeys(units[life.value] for life in lives))

    def _take_over_waits(self, giver: Life, heir: Life) -> bool:
        if not any(_loops_around(self._order[heir.used[0]])):
            return False
        pipes = giver.pipes | heir.pipes
        return len(pipes) > 1 or self._next_turn_waits(next(iter(pipes)), giver, heir)

    def wait(self, one: Life, other: Life) -> bool:
        """Whether something would wait longer for it that two allocations, which are not alive together, share bytes."""
        first, second = (one, other) if one.used <= other.used else (other, one)
        pipes = one.pipes | other.pipes
        if one.slots > 1 or other.slots > 1 or len(pipes) > 1:
            last = self._last_pipe(first)
            if last is None or {pipe for pipe, _ in self._first_touches(second)} != {last} or set(
                    _loops_around(self._order[first.used[0]])) & set(_loops_around(self._order[second.used[0]])):
                return True
            pipes = frozenset({last})
        (pipe,) = pipes or {""}
        if self._written_last(first) and not self._fenced(pipe, first.used[1], second.used[0]):
            return True
        return self._next_turn_waits(pipe, first, second)

    def _next_turn_waits(self, pipe: str, first: Life, second: Life) -> bool:
        """Whether a pipe's write of the first would want a barrier behind its last one of the second, an iteration before."""
        loops = set(_loops_around(self._order[second.used[0]]))
        common = next((loop for loop in _loops_around(self._order[first.used[0]]) if loop in loops), None)
        if common is None or not self._written_last(second):
            return False
        start, end = self._ends[common]
        return not (self._fenced(pipe, second.used[1], end) or self._fenced(pipe, start, first.used[0]))

    def _accesses(self, life: Life) -> list[tuple[int, str, bool]]:
        """Who touches an allocation: where, which pipe, and whether it writes."""
        return sorted(touch for member in life.members for touch in self._touched[member])

    def _first_touches(self, life: Life) -> list[tuple[str, bool]]:
        return [(pipe, writes) for position, pipe, writes in self._accesses(life) if position == life.used[0]]

    def _last_pipe(self, life: Life) -> str | None:
        """The pipe that, in each block, touches an allocation behind all others, so that it waits for them; None: none does."""
        last: dict[object, list[tuple[int, str, bool]]] = defaultdict(list)
        for touch in self._accesses(life):
            last[self._order[touch[0]].parent_block()].append(touch)
        found = set()
        for touches in last.values():
            final, pipe, _ = touches[-1]
            found |= {each for position, each, _ in touches if position == final}
            own = [(position, writes) for position, each, writes in touches if each == pipe]
            for position, each, writes in touches:
                if each != pipe and not any(later > position and (writes or wrote) for later, wrote in own):
                    return None
        return found.pop() if len(found) == 1 else None

    def _fenced(self, pipe: str, first: int, last: int) -> bool:
        """Whether a barrier of a pipe stands behind a position and not behind another one."""
        if pipe not in self._barriers:
            self._barriers[pipe] = _barriers(self._order, pipe)
        return self._barriers[pipe][last] > self._barriers[pipe][first]

    def _written_last(self, life: Life) -> bool:
        """Whether the last that happens to an allocation may be a write."""
        if life not in self._written:
            last = [access for access in accesses(self._order[life.used[1]]) if root_of(access.value) in life.members]
            self._written[life] = not last or any(access.writes for access in last)
        return self._written[life]


def _last_positions(order: Sequence[Operation]) -> dict[Operation, tuple[int, int]]:
    """The first and the last position of each loop."""
    found: dict[Operation, tuple[int, int]] = {}
    for position, op in enumerate(order):
        for loop in _loops_around(op):
            found[loop] = found.get(loop, (position - 1, 0))[0], position
    return found


def _barriers(order: Sequence[Operation], pipe: str) -> list[int]:
    """Of each position how many barriers of a pipe stand up to it: one in front of each operation that touches what the pipe
    has written since the one before."""
    written: set[SSAValue] = set()
    found, count = [], 0
    for op in order:
        touched = [(root_of(access.value), access.writes) for access in accesses(op) if access.pipe == pipe]
        if any(root in written for root, _ in touched):
            written = set()
            count += 1
        written.update(root for root, writes in touched if writes)
        found.append(count)
    return found


__all__ = ["CommonBytes"]
