"""How far one core can run ahead of the other: no flag may have more sets outstanding than it counts.

What one core sends, the other takes when it comes to it. A loop in which the first never waits for the second can send any
number. So it is where that wait is in a branch that is not taken, or in a loop that takes no iteration, and flags are sent all
the same: there, and nowhere else, both exchange the flag that is waited for inside, and no more. Where an iteration sends one
way only, a flag goes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import scf

from tilelang_npu.linear import NATURAL, Interval
from tilelang_npu.transforms.hivm.sync.cover import EventPair, Order
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Item
from tilelang_npu.transforms.ir.ranges import Ranges

_CORES = ("AIC", "AIV")
_NEAR = 4
"""Iterations that a core may be ahead of one that only takes: enough for neither to wait where both are as fast."""


@dataclass(frozen=True)
class Exchange:
    """A set and a wait of an event's flag, behind an item where that does not run.

    Attributes:
        event: the event.
        body: the block of the item.
        item: a branch or a loop.
        taken: of a branch, whether it is where the condition holds.
    """

    event: EventPair
    body: BlockItems
    item: Item
    taken: bool = False


class RunAhead:
    """Finds where a core can run ahead in a function whose blocks are solved, and what holds it back.

    Args:
        solved: the blocks, with the flags in them.
        limit: sets of a flag that may be outstanding.
        shared: whether events of one pipe may have one flag.

    Attributes:
        exchanges: what is to be exchanged where something does not run.
        back: events that were added, by the block that has them.
    """

    def __init__(self, solved: Sequence[tuple[BlockItems, Order]], limit: int, *, shared: bool) -> None:
        self.exchanges: list[Exchange] = []
        self.back: list[EventPair] = []
        self._orders = {id(body): order for body, order in solved}
        self._limit, self._shared = limit, shared
        self._ranges = Ranges()
        self._ahead = ""
        self._exchanged: set[int] = set()
        for self._ahead in _CORES:
            self._exchanged = set()
            for body, _ in solved[-1:]:  # the function's own, which comes behind those in it
                self._hold_back(body, 0)

    def _hold_back(self, body: BlockItems, around: int) -> None:
        """Look at the loops of a block; ``around``: one more than the iterations that a loop around it may be apart in."""
        for item in body.items:
            for block in item.blocks:
                near = max((event.distance for event in self._waits(block)), default=0) + 2 if block.loop is not None else 0
                self._hold_back(block, max(around, near))
                if block.loop is not None:
                    self._ensure(block, partial(self._is_held, block, self._limit // max(1, around)))

    def _is_held(self, loop: BlockItems, most: float) -> bool:
        """Whether a loop sets no flag more than so often without a wait."""
        found = self._sets(loop)
        return found is None or max(self._repeated(found, loop).values(), default=0) <= most

    def _events(self, body: BlockItems) -> list[EventPair]:
        return self._orders[id(body)].events if id(body) in self._orders else []

    def _waits(self, body: BlockItems) -> list[EventPair]:
        """The events of a block for which the core waits."""
        return [event for event in self._events(body) if event.target.startswith(self._ahead)]

    def _sets(self, body: BlockItems) -> Mapping[object, float] | None:
        """How often the core sets each flag in a run of a block in which it waits for none; None where it always waits."""
        if self._waits(body):
            return None
        total: Mapping[object, float] = Counter(self._key(event) for event in self._events(body)
                                                if event.source.startswith(self._ahead))
        for item in body.items:
            found = self._sets_of(item)
            if found is None:
                return None
            total = _sum(total, found)
        return total

    def _sets_of(self, item: Item) -> Mapping[object, float] | None:
        if not item.blocks:
            return {}
        if id(item) in self._exchanged:
            return None
        if isinstance(item.op, scf.IfOp):
            branches: list[Mapping[object, float] | None] = [*map(self._sets, item.blocks), *[{}] * (2 - len(item.blocks))]
            free = [branch for branch in branches if branch is not None]
            return {key: max(branch.get(key, 0) for branch in free) for key in set().union(*free)} if free else None
        total: Mapping[object, float] | None = {}
        for block in item.blocks:
            found = self._sets_of_loop(block) if block.loop is item.op else self._sets(block)
            total = None if total is None or found is None else _sum(total, found)
        return total

    def _sets_of_loop(self, body: BlockItems) -> Mapping[object, float] | None:
        """The same of all iterations of a loop, and what is set in front of it; behind it that is waited for."""
        if any(event.distance for event in self._waits(body)):
            return None
        found = self._sets(body)
        if found is None and self._trips(body).low > 0:
            return None
        return self._repeated(found or {}, body)

    def _repeated(self, found: Mapping[object, float], body: BlockItems) -> Mapping[object, float]:
        primed: Counter[object] = Counter()
        for event in self._events(body):
            if event.distance and event.source.startswith(self._ahead):
                primed[self._key(event)] += event.distance
        return _sum({key: count * self._trips(body).high for key, count in found.items() if count}, primed)

    def _key(self, event: EventPair) -> object:
        return event.source if self._shared else id(event)

    def _trips(self, body: BlockItems) -> Interval:
        return self._ranges.trip_count(body.loop) if isinstance(body.loop, scf.ForOp) else NATURAL

    def _inside(self, blocks: Sequence[BlockItems]) -> Iterator[EventPair]:
        """The events that the core waits for in some blocks and in what is in them, but for loops that go on by a condition."""
        for block in blocks:
            yield from self._waits(block)
            for item in block.items:
                if not isinstance(item.op, scf.WhileOp):
                    yield from self._inside(item.blocks)

    def _ensure(self, body: BlockItems, is_held: Callable[[], bool]) -> None:
        """Let the core wait in the runs of a block until it is held back: in all, or in those in which it sets flags."""
        if is_held() or self._sets(body) is None:
            return
        for item in body.items:
            event = None if isinstance(item.op, scf.WhileOp) else next(self._inside(item.blocks), None)
            if event is None:
                continue
            branches = [block for block in item.blocks if next(self._inside([block]), None) is not None]
            for block in branches:
                self._ensure(block, is_held)
            if is_held():
                return
            if isinstance(item.op, scf.ForOp):
                if self._trips(item.blocks[0]).low <= 0:
                    self.exchanges.append(Exchange(event, body, item))
            elif len(branches) < 2:
                at = item.op.regions[0].block is not branches[0].block
                self.exchanges.append(Exchange(event, body, item, at))
            self._exchanged.add(id(item))
            return
        self._send_back(body)

    def _send_back(self, body: BlockItems) -> None:
        """Let a flag go back in each iteration of a loop."""
        sent = next(event for event in self._all(body) if event.source.startswith(self._ahead))
        made = EventPair(sent.target, sent.source, len(body.items) - 1, 0, _NEAR, 1, None)
        self._orders[id(body)].add(made)
        self.back.append(made)

    def _all(self, body: BlockItems) -> Iterator[EventPair]:
        yield from self._events(body)
        for item in body.items:
            for block in item.blocks:
                yield from self._all(block)


def _sum(one: Mapping[object, float], other: Mapping[object, float]) -> Mapping[object, float]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


__all__ = ["Exchange", "RunAhead"]
