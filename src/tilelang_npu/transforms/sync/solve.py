"""From demands to a small set of events and barriers for one block.

Demands are found nearest first, so that an event made for a near pair covers the far ones; then each event and
barrier is taken out again if the rest still covers every demand (transitive reduction). What remains is needed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import scf

from tilelang_npu.transforms.ranges import Ranges
from tilelang_npu.transforms.sync.cover import Demand, Event, Fence, Left, Order
from tilelang_npu.transforms.sync.inside import Inside
from tilelang_npu.transforms.sync.items import BlockItems, Item, Touch

_ORDERED_WITHIN = ("S", "M")  # pipes whose own operations see each other's results (hivm.md 6.3, step 2)


@dataclass(frozen=True)
class Hazard:
    """Why two accesses must be ordered: the earlier and the later one, and the iterations between them."""

    kind: str
    first: Touch
    second: Touch
    distance: int


def _kind(first: Touch, second: Touch) -> str:
    if first.writes:
        return "WAW" if second.writes else "RAW"
    return "WAR"


def _meetings(earlier: Item, later: Item) -> Iterator[tuple[Touch, Touch, int]]:
    """Pairs of accesses of two items that can touch a common byte, with the slots they alternate between (0 for
    none).
    """
    for a in earlier.touches:
        for b in later.touches:
            if (a.writes or b.writes) and not (a.pipe == b.pipe and a.pipe in _ORDERED_WITHIN):
                period = a.place.meets(b.place)
                if period is not None:
                    yield a, b, period


def demands(body: BlockItems) -> Iterator[Demand]:
    """What must be ordered between the items of a block, nearest pairs first.

    In a loop body the accesses of one iteration are also held against those of the next one that takes the same bytes.
    """
    items, count = body.items, len(body.items)
    for j in range(count):
        for i in range(j - 1, -1, -1):
            for a, b, _ in _meetings(items[i], items[j]):
                slots = max(1, a.place.slots) if a.place.root is b.place.root else 1
                yield Demand(a.pipe, b.pipe, i, j, slots, Hazard(_kind(a, b), a, b, 0))
    if body.loop is None:
        return
    trips = Ranges().trip_count(body.loop).high if isinstance(body.loop, scf.ForOp) else math.inf
    for j in range(count):
        for i in range(count - 1, -1, -1):
            for a, b, period in _meetings(items[i], items[j]):
                distance = period if period > 1 and _alternates_here(body, a) else 1
                if distance < trips:
                    yield Demand(a.pipe, b.pipe, i, distance * count + j, distance, Hazard(_kind(a, b), a, b, distance))


def _alternates_here(body: BlockItems, touch: Touch) -> bool:
    """Whether the slots of an access alternate with this loop: the address is defined in its body."""
    owner = touch.place.root.owner
    parent = getattr(owner, "parent_block", None)
    return parent is not None and parent() is body.block


@dataclass(frozen=True)
class _Doors:
    """How the demands of a block leave, enter and pass its items."""

    body: BlockItems
    inside: Inside

    @cached_property
    def running(self) -> Sequence[int]:
        ranges = Ranges()
        return [index for index, item in enumerate(self.body.items)
                if isinstance(item.op, scf.ForOp) and ranges.trip_count(item.op).low > 0]

    def left(self, demand: Demand) -> Left:
        item, reason = self.body.items[demand.first], demand.reason
        return self.inside.left(item, reason.first) if item.blocks and isinstance(reason, Hazard) else Left()

    def enters(self, demand: Demand, pipe: str, *, started: bool, primed: bool) -> bool:
        item, reason = self.body.items[demand.then % len(self.body.items)], demand.reason
        return isinstance(reason, Hazard) and self.inside.enters(item, reason.second, pipe, started=started, primed=primed)

    def through(self, index: int, pipe: str, *, started: bool, primed: bool) -> Left:
        return self.inside.through(self.body.items[index], pipe, started=started, primed=primed)


def solve(body: BlockItems, inside: Inside, given: Sequence[Event] = (),
          counts: Callable[[Hazard], bool] | None = None) -> Order:
    """Events and barriers for one block, behind those of the blocks nested in it.

    Args:
        body: the block.
        inside: the blocks nested in it, solved; takes this one.
        given: what somebody else orders: the author's own flags, those between the cores.
        counts: the meetings that are to be ordered; None: all.
    """
    count = len(body.items)
    inner = {index: item.inner for index, item in enumerate(body.items) if item.inner}
    user = [Fence(item.fence, index, None, user=True) for index, item in enumerate(body.items) if item.fence]
    order = Order(count, inner, user, _Doors(body, inside))
    order.given.extend(given)
    asked: list[Demand] = []
    for demand in demands(body):
        if counts is not None and (not isinstance(demand.reason, Hazard) or not counts(demand.reason)):
            continue
        asked.append(demand)
        if order.covers(demand):
            continue
        distance, index = divmod(demand.then, count)
        if demand.source == demand.target:
            order.fences.append(Fence(demand.source, index, demand.reason))
        else:
            slots = demand.slots if isinstance(body.loop, scf.ForOp) else 1
            order.events.append(
                Event(demand.source, demand.target, demand.first, index, distance, slots, demand.reason))
    _reduce(order, _strongest(body, asked))
    inside.add(body, order)
    return order


def solve_between(body: BlockItems, inside: Inside, counts: Callable[[str, str, object], bool]) -> Order:
    """Flags between the cores for one block: for the demands that ``counts`` accepts, taking all others as met."""
    inner = {index: item.inner for index, item in enumerate(body.items) if item.inner}
    order = Order(len(body.items), inner, [], _Doors(body, inside))
    asked: list[Demand] = []
    for demand in demands(body):
        reason = demand.reason
        assert isinstance(reason, Hazard)
        if counts(demand.source, demand.target, reason.first.place.root):
            asked.append(demand)
        elif demand.source != demand.target:
            distance, index = divmod(demand.then, order.count)
            order.given.append(Event(demand.source, demand.target, demand.first, index, distance, 1, reason))
    for demand in asked:
        if not order.covers(demand):
            distance, index = divmod(demand.then, order.count)
            order.events.append(Event(demand.source, demand.target, demand.first, index, distance, 1, demand.reason))
    _reduce(order, _strongest(body, asked))
    inside.add(body, order)
    return order


def _strongest(body: BlockItems, asked: list[Demand]) -> list[Demand]:
    """Demands that no other one implies: same pipes, a later first and an earlier second. One that goes into an item's blocks
    may be met there, and implies none.
    """
    groups: dict[tuple[str, str], list[Demand]] = defaultdict(list)
    kept: list[Demand] = []
    for demand in asked:
        if body.items[demand.first].blocks or body.items[demand.then % len(body.items)].blocks:
            kept.append(demand)
        else:
            groups[demand.source, demand.target].append(demand)
    for group in groups.values():
        best: dict[int, Demand] = {}
        for demand in group:
            known = best.get(demand.first)
            if known is None or demand.then < known.then:
                best[demand.first] = demand
        earliest: int | None = None
        for first in sorted(best, reverse=True):
            if earliest is None or best[first].then < earliest:
                kept.append(best[first])
                earliest = best[first].then
    return kept


def _reduce(order: Order, asked: list[Demand]) -> None:
    """Take out what the rest makes unnecessary; the weakest candidates (those that bind soonest) first."""
    paths: dict[int, list[Event | Fence]] = {}
    for index, demand in enumerate(asked):
        path = order.path(demand)
        assert path is not None
        paths[index] = path
    candidates: list[Event | Fence] = [*order.fences, *order.events]
    for candidate in candidates:
        if isinstance(candidate, Fence) and candidate.user:
            continue
        _take_out(order, candidate)
        changed: dict[int, list[Event | Fence]] = {}
        for index, demand in enumerate(asked):
            if any(step is candidate for step in paths[index]):
                path = order.path(demand)
                if path is None:
                    break
                changed[index] = path
        else:
            paths.update(changed)
            continue
        _put_back(order, candidate)


def _take_out(order: Order, candidate: Event | Fence) -> None:
    if isinstance(candidate, Event):
        order.events = [event for event in order.events if event is not candidate]
    else:
        order.fences = [fence for fence in order.fences if fence is not candidate]


def _put_back(order: Order, candidate: Event | Fence) -> None:
    if isinstance(candidate, Event):
        order.events.append(candidate)
    else:
        order.fences.append(candidate)
