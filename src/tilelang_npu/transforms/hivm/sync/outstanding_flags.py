"""Limits how far one core runs ahead of the other, so that no flag has more sets outstanding than its counter can hold.

One core sets flags, and the other core waits for them later. In a loop in which the first core never waits for the second one,
any number of sets can be outstanding. This also happens if the first core's wait is in a branch that is not taken, or in a loop
without iterations, while flags are set outside of it. In these cases only, both cores *exchange* the flag of that wait when the
branch or loop does not run: the second core sets the flag, and the first core waits for it. If the flags in a loop go in one
direction only, a flag in the other direction is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import scf

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.linear import NATURAL, Interval
from tilelang_npu.target.chip_data import CORES
from tilelang_npu.transforms.hivm.sync.items import BlockItems, SyncItem
from tilelang_npu.transforms.hivm.sync.ordering import BlockOrder, EventPair

_LEAD = 4
"""The number of iterations that a sending core may be ahead of a core that only receives: enough that neither waits if both are
equally fast."""


@dataclass(frozen=True)
class Exchange:
    """A set and a wait of a flag after a branch or loop, which are executed only if the branch or loop does not run.

    Attributes:
        event: the event whose flag is set and waited for.
        body: the block that contains the branch or loop.
        item: the branch or loop.
        taken: for a branch, whether the set and wait are executed if the condition is true; otherwise, if it is false.
    """

    event: EventPair
    body: BlockItems
    item: SyncItem
    taken: bool = False


class FlagLimiter:
    """Finds loops in which a core could set a flag too often without waiting for the other core, and adds waits to them.

    The constructor does all the work. If all flags in a loop go from one core to the other, the constructor adds an event in
    the opposite direction to the order of the loop's body, so that the first core waits. If the first core's wait is in a
    branch or an inner loop that possibly does not run, the constructor adds an ``Exchange`` to ``exchanges``: a set and a wait
    for the case that the branch or loop does not run, so that each flag is set as often as waited for on every path.

    Args:
        solved: the blocks of a function and their orders; the function's own block must be the last.
        limit: the number of sets of a flag that may be outstanding, that is, set and not yet waited for.
        shared: whether events that are set by the same pipe may share a flag.

    Attributes:
        exchanges: the sets and waits to be inserted for branches and loops that do not run.
    """

    def __init__(self, solved: Sequence[tuple[BlockItems, BlockOrder]], limit: int, *, shared: bool) -> None:
        self.exchanges: list[Exchange] = []
        self._orders = {id(body): order for body, order in solved}
        self._limit, self._shared = limit, shared
        self._ranges = Ranges()
        self._core = ""  # the core that may run ahead
        self._exchanged: set[int] = set()
        for self._core in CORES:
            self._exchanged = set()
            for body, _ in solved[-1:]:
                self._limit_loops(body, 0)

    def _limit_loops(self, body: BlockItems, around: int) -> None:
        """Limit the loops of a block.

        Args:
            body: the block.
            around: one more than the number of iterations by which the cores may be apart in a loop around the block; 0 if the
                block is in no loop.
        """
        for item in body.items:
            for block in item.blocks:
                apart = max((event.distance for event in self._waits(block)), default=0) + 2 if block.loop is not None else 0
                self._limit_loops(block, max(around, apart))
                if block.loop is not None:
                    self._make_core_wait(block, partial(self._is_limited, block, self._limit // max(1, around)))

    def _is_limited(self, loop: BlockItems, most: float) -> bool:
        """Whether a loop sets no flag more than ``most`` times without waiting."""
        found = self._sets_without_wait(loop)
        return found is None or max(self._times_trips(found, loop).values(), default=0) <= most

    def _events(self, body: BlockItems) -> list[EventPair]:
        return self._orders[id(body)].events if id(body) in self._orders else []

    def _waits(self, body: BlockItems) -> list[EventPair]:
        """Returns the events of a block that the core waits for."""
        return [event for event in self._events(body) if event.target.startswith(self._core)]

    def _sets_without_wait(self, body: BlockItems) -> Mapping[object, float] | None:
        """Returns how often the core sets each flag in a run of a block in which it never waits; None if it always waits."""
        if self._waits(body):
            return None
        total: Mapping[object, float] = Counter(self._flag_of(event) for event in self._events(body)
                                                if event.source.startswith(self._core))
        for item in body.items:
            found = self._sets_of_item(item)
            if found is None:
                return None
            total = _sum(total, found)
        return total

    def _sets_of_item(self, item: SyncItem) -> Mapping[object, float] | None:
        if not item.blocks:
            return {}
        if id(item) in self._exchanged:
            return None
        if isinstance(item.op, scf.IfOp):
            branches: list[Mapping[object, float] | None] = [*map(self._sets_without_wait, item.blocks),
                                                             *[{}] * (2 - len(item.blocks))]
            free = [branch for branch in branches if branch is not None]
            return {key: max(branch.get(key, 0) for branch in free) for key in set().union(*free)} if free else None
        total: Mapping[object, float] | None = {}
        for block in item.blocks:
            found = self._sets_of_loop(block) if block.loop is item.op else self._sets_without_wait(block)
            total = None if total is None or found is None else _sum(total, found)
        return total

    def _sets_of_loop(self, body: BlockItems) -> Mapping[object, float] | None:
        """Returns the same for all iterations of a loop, with the tokens set before it, which are waited for after it."""
        if any(event.distance for event in self._waits(body)):
            return None
        found = self._sets_without_wait(body)
        if found is None and self._trips(body).low > 0:
            return None
        return self._times_trips(found or {}, body)

    def _times_trips(self, found: Mapping[object, float], body: BlockItems) -> Mapping[object, float]:
        tokens: Counter[object] = Counter()
        for event in self._events(body):
            if event.distance and event.source.startswith(self._core):
                tokens[self._flag_of(event)] += event.distance
        return _sum({key: count * self._trips(body).high for key, count in found.items() if count}, tokens)

    def _flag_of(self, event: EventPair) -> object:
        """Returns equal objects for events that may have one flag."""
        return event.source if self._shared else id(event)

    def _trips(self, body: BlockItems) -> Interval:
        return self._ranges.trip_count(body.loop) if isinstance(body.loop, scf.ForOp) else NATURAL

    def _waits_within(self, blocks: Sequence[BlockItems]) -> Iterator[EventPair]:
        """Yields the events that the core waits for in some blocks and those nested in them, ``while`` loops excepted."""
        for block in blocks:
            yield from self._waits(block)
            for item in block.items:
                if not isinstance(item.op, scf.WhileOp):
                    yield from self._waits_within(item.blocks)

    def _make_core_wait(self, body: BlockItems, is_limited: Callable[[], bool]) -> None:
        """Make the core wait in the runs of a block until it is limited: in all runs, or at least in those in which it sets
        flags."""
        if is_limited() or self._sets_without_wait(body) is None:
            return
        for item in body.items:
            event = None if isinstance(item.op, scf.WhileOp) else next(self._waits_within(item.blocks), None)
            if event is None:
                continue
            waiting = [block for block in item.blocks if next(self._waits_within([block]), None) is not None]
            for block in waiting:
                self._make_core_wait(block, is_limited)
            if is_limited():
                return
            if isinstance(item.op, scf.ForOp):
                if self._trips(item.blocks[0]).low <= 0:
                    self.exchanges.append(Exchange(event, body, item))
            elif len(waiting) < 2:
                taken = item.op.regions[0].block is not waiting[0].block
                self.exchanges.append(Exchange(event, body, item, taken))
            self._exchanged.add(id(item))
            return
        # the core waits nowhere in the loop: a flag goes back in each iteration
        sent = next(event for event in self._events_within(body) if event.source.startswith(self._core))
        self._orders[id(body)].add(EventPair(sent.target, sent.source, len(body.items) - 1, 0, _LEAD))

    def _events_within(self, body: BlockItems) -> Iterator[EventPair]:
        yield from self._events(body)
        for item in body.items:
            for block in item.blocks:
                yield from self._events_within(block)


def _sum(one: Mapping[object, float], other: Mapping[object, float]) -> Mapping[object, float]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


__all__ = ["Exchange", "FlagLimiter"]
