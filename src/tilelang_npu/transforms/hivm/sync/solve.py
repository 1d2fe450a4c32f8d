"""From demands to a small set of events and barriers for one block.

Demands are found nearest first, so that an event made for a near pair covers the far ones; then each event and
barrier is taken out again if the rest still covers every demand (transitive reduction). What remains is needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from tilelang_npu.linear import NATURAL
from tilelang_npu.transforms.hivm.sync.bytes import OperandBytes
from tilelang_npu.transforms.hivm.sync.cover import PIPES, Demand, EventPair, Fence, Left, Order, Position
from tilelang_npu.transforms.hivm.sync.disjoint import disjoint
from tilelang_npu.transforms.hivm.sync.inside import Inside
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Item, Pipes, Touch
from tilelang_npu.transforms.hivm.sync.turns import taken_alike, turned
from tilelang_npu.transforms.ir.ranges import Ranges

_CELL = 2048
"""Bytes of on-chip memory whose accesses are kept together; any number will do."""
_LARGEST = 1 << 20
"""Bytes that no on-chip memory exceeds."""
_INDEPENDENT = "hivm.parallel_loop"
"""What AscendNPU-IR marks a loop with whose iterations do not depend on each other."""
_ORDERED_WITHIN = ("S", "M")  # pipes whose own operations see each other's results (docs/hivm.md#synchronisation)


@dataclass(frozen=True)
class Dependence:
    """Why two accesses must be ordered: the earlier and the later one, and the iterations between them.

    ``around``: also where the branches and loops that they are in do not run, as a flag between the cores counts on it.
    """

    kind: str
    first: Touch
    second: Touch
    distance: int
    around: bool = False


def kind_of(first: Touch, second: Touch) -> str:
    """``RAW``, ``WAR`` or ``WAW``."""
    if first.writes:
        return "WAW" if second.writes else "RAW"
    return "WAR"


def _alike(_: object) -> bool:
    return True


def demands(body: BlockItems, *, tag: Callable[[Touch], object] = _alike, group: Callable[[Dependence], object] = _alike,
            again: bool = False) -> Iterator[Demand]:
    """What must be ordered between the items of a block, nearest pairs first.

    In a loop body the accesses of one iteration are also held against those of the next one that takes the same bytes. Of
    several accesses of a pipe that meet one only the last is told: whoever comes behind that comes behind all. That does not
    hold of those in an item's blocks, which may be met there. A pipe that reads has read when it writes later, as it takes its
    operations in order; AscendNPU-IR holds it there all the same. In global memory the iterations of a loop leave each other
    alone where its author says so; on chip they use the same bytes, whoever says what.

    Args:
        body: the block.
        tag: accesses of which this differs are told apart.
        group: hazards of which this differs are.
        again: of a loop, as if it went on where it ends: what runs it again does.
    """
    items, loop = body.items, body.loop if isinstance(body.loop, scf.ForOp) else None
    seen, windows = _Seen(items, tag), body.windows if not again else [NATURAL] * len(items)

    def found(j: int, *, later: bool) -> list[Demand]:
        nearest: dict[object, Demand] = {}
        for b in items[j].touches:
            for i, a, period in seen.meeting(b):
                if (a.writes or b.writes) and not (a.pipe == b.pipe and (a.pipe in _ORDERED_WITHIN or not a.writes)):
                    slots = max(1, a.place.slots) if a.place.root is b.place.root else 1
                    phase, here, distance = _phase(body, a, b), _alternates_here(body, a), 0
                    if phase and not (later and here):
                        continue
                    if later:
                        slots = distance = phase or (period if period > 1 and here else 1)
                        if windows[i].low + distance > windows[j].high:
                            continue
                    if later and body.loop is not None and a.place.space == "gm" and _INDEPENDENT in body.loop.attributes:
                        continue
                    if (not later or loop is not None) and disjoint(a.place.view, b.place.view, loop, later=later):
                        continue
                    hazard = Dependence(kind_of(a, b), a, b, distance)
                    ends = (i, a.key) if items[i].blocks else a.pipe, b.key if items[j].blocks else b.pipe
                    slot = (a.place, b.place) if turned(a.place, b.place) else None  # each comes round at a time of its own
                    key = ends, slot, distance, group(hazard)
                    known = nearest.get(key)
                    if known is None or known.first < i:
                        nearest[key] = Demand(a.pipe, b.pipe, i, distance * len(items) + j, slots, hazard)
        return sorted(nearest.values(), key=lambda demand: -demand.first)

    for j in range(len(items)):
        yield from found(j, later=False)
        seen.add(j)
    if body.loop is not None:
        for j in range(len(items)):
            yield from found(j, later=True)


class _Seen:
    """The accesses of the items so far, by the bytes that they touch.

    Args:
        items: all items that there will be.
        tag: accesses of which this differs are kept apart.
    """

    def __init__(self, items: Sequence[Item], tag: Callable[[Touch], object]) -> None:
        self._items, self._tag = items, tag
        self._numbers: dict[OperandBytes, int] = {}
        self._places: list[OperandBytes] = []
        self._near: dict[object, list[int]] = defaultdict(list)
        self._meet: dict[int, list[tuple[int, int]]] = {}
        self._last: dict[int, dict[object, tuple[int, Touch]]] = defaultdict(dict)
        for item in items:
            for touch in item.touches:
                self._number(touch.place)

    def _number(self, place: OperandBytes) -> int:
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self._places)
            self._places.append(place)
            for cell in set(_cells(place)):
                self._near[cell].append(number)
        return number

    def add(self, index: int) -> None:
        """The accesses of an item, behind those of the items before it."""
        inside = bool(self._items[index].blocks)
        for touch in self._items[index].touches:
            key = (touch.pipe, touch.writes, self._tag(touch), index if inside else -1)
            self._last[self._number(touch.place)][key] = index, touch

    def meeting(self, touch: Touch) -> Iterator[tuple[int, Touch, int]]:
        """The last accesses that can touch a byte that this one does: item, access, and slots they alternate between."""
        number = self._number(touch.place)
        if number not in self._meet:
            near = dict.fromkeys(other for cell in _cells(touch.place) for other in self._near[cell])
            periods = [(other, self._places[other].meets(touch.place)) for other in near]
            self._meet[number] = [(other, period) for other, period in periods if period is not None]
        for other, period in self._meet[number]:
            for index, access in self._last[other].values():
                yield index, access, period


def _cells(place: OperandBytes) -> Iterator[object]:
    """Where to look for a place's neighbours: two that can meet have one in common."""
    if not place.planned:
        yield place.root
        return
    for address in place.addresses:
        for cell in range((address + place.low) // _CELL, -(-(address + min(place.high, _LARGEST)) // _CELL)):
            yield place.space, cell


def _phase(body: BlockItems, first: Touch, second: Touch) -> int:
    """After how many iterations two accesses of a ring meet, where the block is in the loop that goes round it."""
    turn = first.place.turn
    if turn is None or second.place.turn is None or turn[0] is not second.place.turn[0]:
        return 0
    return first.place.phase(second.place) if turn[0] in _indices_around(body.block) else 0


def _indices_around(block: Block | None) -> Iterator[SSAValue]:
    """The indices of the loops that a block is in."""
    while block is not None:
        yield from block.args
        around = block.parent_op()
        block = around.parent_block() if around is not None else None


def _alternates_here(body: BlockItems, touch: Touch) -> bool:
    """Whether the slots of an access alternate with this loop: the address, or the index round the ring, is of its body."""
    if touch.place.turn is not None:
        return touch.place.turn[0] in body.block.args
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

    @cached_property
    def _on(self) -> Mapping[object, Sequence[int]]:
        """The branches of each condition that have nothing else to do where it does not hold, and the loops of each bounds."""
        found: dict[object, list[int]] = defaultdict(list)
        ranges = Ranges()
        for index, item in enumerate(self.body.items):
            if isinstance(item.op, scf.IfOp) and len(item.blocks) == 1:
                found[item.op.cond].append(index)
            elif isinstance(item.op, scf.ForOp):
                bounds = item.op.lb, item.op.ub, item.op.step
                found[tuple(end if (known := ranges.constant(end)) is None else known for end in bounds)].append(index)
        return found

    def beside(self, demand: Demand) -> Sequence[Position]:
        if _in_blocks(demand) is None:
            return ()
        return [place for end in (demand.first, demand.then) for place in self.alike(end)]

    def alike(self, position: Position) -> Sequence[Position]:
        count = len(self.body.items)
        index = position % count
        places = [other for ones in self._on.values() if index in ones for other in ones if other != index]
        places += [other + far * count for other, far in self.body.stages.get(index, ())]
        return [position - index + place for place in places]

    def left(self, demand: Demand) -> Left:
        item, reason = self.body.items[demand.first], _in_blocks(demand)
        return self.inside.left(item, reason.first, reason.second) if item.blocks and reason is not None else Left()

    def enters(self, demand: Demand, pipe: str, *, started: bool, primed: bool) -> bool:
        item, reason = self.body.items[demand.then % len(self.body.items)], _in_blocks(demand)
        return reason is not None and self.inside.enters(item, reason.second, pipe, started=started, primed=primed,
                                                         first=reason.first)

    def waits(self, demand: Demand, event: EventPair) -> bool:
        item, reason = self.body.items[demand.then % len(self.body.items)], _in_blocks(demand)
        return reason is not None and self.inside.waits(item, reason.second, event)

    @cached_property
    def _busy(self) -> Container[int]:
        """The loops that do something where one of the same bounds does."""
        found = set[int]()
        for ones in self._on.values():
            loops = [self.body.items[index].blocks[0] for index in ones]
            branches = [loop.items[loop.common].op if loop.common is not None else None for loop in loops]
            if all(taken_alike(branches[0], one) for one in branches):
                found.update(ones)
        return found

    def through(self, index: int, pipe: str, *, started: bool, primed: bool, beside: bool = False) -> Left:
        return self.inside.through(self.body.items[index], pipe, started=started, primed=primed,
                                   busy=beside and index in self._busy)

    def carried(self, demand: Demand) -> bool:
        later, then = divmod(demand.then, len(self.body.items))
        item, reason = self.body.items[then], _in_blocks(demand)
        return (later > 0 and then == demand.first and bool(item.blocks) and reason is not None
                and self.inside.carried(item, reason.first, reason.second, self.body))


def _in_blocks(demand: Demand) -> Dependence | None:
    """The accesses of a demand that what is in their items' blocks may meet."""
    reason = demand.reason
    return reason if isinstance(reason, Dependence) and not reason.around else None


def solve(body: BlockItems, inside: Inside, given: Sequence[EventPair] = (),
          counts: Callable[[Dependence], bool] | None = None, tag: Callable[[Touch], object] = _alike, *,
          again: bool = False, around: Sequence[Demand] = ()) -> Order:
    """Events and barriers for one block, behind those of the blocks nested in it.

    Args:
        body: the block.
        inside: the blocks nested in it, solved; takes this one.
        given: what somebody else orders: the author's own flags, those between the cores.
        counts: the meetings that are to be ordered; None: all.
        tag: what of an access ``counts`` looks at.
        again: of a loop, what its next run needs too, as if it went on where it ends.
        around: what is to be ordered besides, as others count on it.
    """
    count = len(body.items)
    inner = {index: item.inner for index, item in enumerate(body.items) if item.inner}
    user = [Fence(item.fence, index, None, user=True) for index, item in enumerate(body.items) if item.fence]
    order = Order(count, inner, user, _Doors(body, inside))
    for event in given:
        order.give(event)
    asked: list[Demand] = []
    for demand in (*around, *demands(body, tag=tag, group=counts or _alike, again=again)):
        if counts is not None and (not isinstance(demand.reason, Dependence) or not counts(demand.reason)):
            continue
        asked.append(demand)
        if order.covers(demand):
            continue
        distance, index = divmod(demand.then, count)
        pipes = demand.source, demand.target
        first, index = body.set_at(demand.first, pipes), body.wait_at(index, pipes)
        if demand.source == demand.target:
            order.add(Fence(demand.source, index, demand.reason))
        else:
            slots = demand.slots if isinstance(body.turns, scf.ForOp) else 1
            if distance and first < index:
                first, index = _set_behind_wait(body, first, index, pipes)
            order.add(EventPair(*pipes, first, index, distance, slots, demand.reason))
    order.asked = _strongest(body, asked)
    _reduce(order, order.asked)
    inside.add(body, order)
    return order


def _set_behind_wait(body: BlockItems, first: int, index: int, pipes: Pipes) -> tuple[int, int]:
    """Where to set and to wait for an event of an iteration before whose set would come in front of its wait.

    The iteration's own set would leave one more outstanding, and so take a number more than the iterations between, in turn. So
    either the set moves down, to behind the wait, or the wait moves up: pipes are queues, so that this delays nothing but what
    the pipe itself does between.
    """
    source, target = pipes
    down, up = body.set_at(index, pipes), body.wait_at(first, pipes)
    later, earlier = body.work(source, first + 1, down + 1), body.work(target, up, index)
    return (down, index) if later <= earlier else (first, up)


def solve_between(body: BlockItems, inside: Inside, counts: Callable[[str, str, object], bool], *, ask: bool
                  ) -> tuple[Order, list[EventPair]]:
    """Flags between the cores for one block: for the demands that ``counts`` accepts, taking those inside a core as met.

    A core's scalar unit waits, and so all of its pipes. An access in a branch or a loop may be waited for inside, where nothing
    waits if that does not run. So what is counted on there is returned too, as orders that have to stand around it.

    Args:
        body: the block.
        inside: the blocks nested in it, solved; takes this one.
        counts: whether a meeting of two pipes in a buffer is one of the cores.
        ask: whether orders can be asked to stand around branches and loops.
    """
    inner = {index: item.inner for index, item in enumerate(body.items) if item.inner}
    order = Order(len(body.items), inner, [], _Doors(body, inside))
    asked: list[Demand] = []
    around: list[EventPair] = []

    def own(hazard: Dependence) -> bool:
        return counts(hazard.first.pipe, hazard.second.pipe, hazard.first.place.root)

    for demand in demands(body, group=own):
        assert isinstance(demand.reason, Dependence)
        if own(demand.reason):
            asked.append(demand)
        elif demand.source != demand.target:
            distance, index = divmod(demand.then, order.count)
            met = EventPair(demand.source, demand.target, demand.first, index, distance, 1, demand.reason)
            if not any(body.items[end].blocks for end in (demand.first, index)):
                order.give(met)
                continue
            _give_inside(body, inside, met, demand.reason)
            if ask:
                around.append(met)
                order.give(met)
    for demand in asked:
        if not order.covers(demand):
            distance, index = divmod(demand.then, order.count)
            order.add(EventPair(demand.source, demand.target, demand.first, index, distance, 1, demand.reason,
                                held=tuple(f"{demand.target.partition('.')[0]}.{pipe}" for pipe in PIPES)))
    order.asked = _strongest(body, asked)
    _reduce(order, order.asked)
    inside.add(body, order)
    return order, around


def _give_inside(body: BlockItems, inside: Inside, met: EventPair, hazard: Dependence) -> None:
    """Let a branch know what is met where it is taken: an access in it behind one in front of it, or before one behind it."""
    first, second = body.items[met.set_after], body.items[met.wait_before]
    given: list[tuple[Order, EventPair]] = []
    if isinstance(first.op, scf.IfOp) and not second.blocks:
        given = [(order, replace(met, set_after=index, out=body)) for branch, order, index in inside.where(first, hazard.first)
                 if not branch.items[index].blocks]
    elif isinstance(second.op, scf.IfOp) and not first.blocks and not met.distance and not any(
            touch.pipe == met.source for item in body.items[met.set_after + 1:met.wait_before] for touch in item.touches):
        given = [(order, replace(met, set_after=-1, wait_before=index))
                 for branch, order, index in inside.where(second, hazard.second) if not branch.items[index].blocks]
    for order, event in given:
        order.give(event)
    if given:
        inside.forget()


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
    users: dict[EventPair | Fence, set[int]] = defaultdict(set)
    paths: list[list[EventPair | Fence]] = []
    for index, demand in enumerate(asked):
        path = order.path(demand)
        assert path is not None
        paths.append(path)
        for step in path:
            users[step].add(index)
    candidates: list[EventPair | Fence] = [*order.fences, *order.events]
    for candidate in candidates:
        if isinstance(candidate, Fence) and candidate.user:
            continue
        order.remove(candidate)
        changed: dict[int, list[EventPair | Fence]] = {}
        for index in sorted(users[candidate]):
            path = order.path(asked[index])
            if path is None:
                order.add(candidate)
                break
            changed[index] = path
        else:
            for index, path in changed.items():
                for step in paths[index]:
                    users[step].discard(index)
                paths[index] = path
                for step in path:
                    users[step].add(index)
