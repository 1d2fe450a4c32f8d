"""What orders what: events and barriers of one block, unrolled over its iterations, searched for a path.

A position is ``copy * n + index``: item ``index`` of iteration ``copy``. An event p -> q, set behind item s and
waited for in front of item w, orders all work of pipe p up to s before all work of pipe q from w on, because pipes
are in-order queues. Sets stand before waits in one gap, so a set behind item s follows a wait in front of item w
exactly if s >= w.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tilelang_npu.transforms.hivm.sync.items import BlockItems, Item

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
"""What a barrier of all pipes holds."""
Position = int
State = tuple[Position, str, bool]
"""What is known to come later: work of a pipe from a position on; where True, what follows the pipe's own work there."""


@dataclass(eq=False)
class EventPair:
    """One set/wait pair inside a block.

    Attributes:
        source, target: the pipes.
        set_after, wait_before: item indices; -1 and the number of items where they stand at the edges of a branch.
        distance: iterations between the set and its wait; 0 within one.
        slots: number of event ids that iterations take in turn.
        reason: what made it necessary, for the report.
        id: the first event id, once allocated.
        holder: of an event that crosses iterations, the body of a loop around its own in front of which its tokens are set, and
            behind which they are taken back; None: its own loop. Its loop then finds them as it left them when it ran before.
        also: what made others necessary that it stands for.
        primed: in front of which item the tokens are set; None: right in front of the loop, behind all that stands there.
        held: the pipes that its wait holds: those of the scalar unit, which issues for all, all.
        out: of one whose wait stands in a block around its own, that block: its items and iterations are counted.
        into: of one whose wait stands in a block in its own, that block: its items are counted.
        drained: that there is one right behind the loop whose body that is as well.
        early: of one whose set stands behind an item that is a branch: where in the branch it stands instead.
    """

    source: str
    target: str
    set_after: int
    wait_before: int
    distance: int
    slots: int
    reason: object
    id: int = -1
    holder: BlockItems | None = None
    also: tuple[object, ...] = ()
    primed: Item | None = None
    held: tuple[str, ...] = ()
    out: BlockItems | None = None
    into: BlockItems | None = None
    drained: bool = False
    early: Early | None = None

    def __post_init__(self) -> None:
        self.held = self.held or (PIPES if self.target == "S" else (self.target,))


@dataclass(frozen=True, eq=False)
class Early:
    """Where in a branch an event is set that was to be set behind it: behind an item of one arm, and at once in the other.

    Attributes:
        arm: the block that alone has work of the pipe.
        order: its order.
        set_after: the item.
        around: the block that the branch is in.
    """

    arm: BlockItems
    order: Order
    set_after: int
    around: BlockItems


@dataclass(eq=False)
class Fence:
    """A barrier of one pipe (or ``ALL``) in front of an item, in every iteration.

    Attributes:
        pipe: the pipe.
        before: the item; the number of items where it stands at the end of a branch.
        reason: what made it necessary, for the report.
        user: whether it is the author's.
        around: whether another stands behind the loop.
    """

    pipe: str
    before: int
    reason: object
    user: bool = False
    around: bool = False


@dataclass(frozen=True)
class Demand:
    """Work of ``source`` up to item ``first`` must be done before work of ``target`` from position ``then`` on
    starts.
    """

    source: str
    target: str
    first: int
    then: Position
    slots: int
    reason: object


@dataclass(frozen=True)
class Left:
    """Pipes that come behind an access once its item is left.

    Attributes:
        within: pipes that waited for it inside the item; what they do behind the item comes later, sets included.
        behind: pipes that wait for it right behind the item, where tokens are taken back: behind the sets that stand there.
        later: pipes that wait for it behind a loop further out, with the ``id`` of that loop's body.
        out: pipes that wait for it in a block around: the ``id`` of that, so many iterations later, in front of which item.
        drained: pipes that wait for it right behind a loop around, with the ``id`` of that loop's body.
    """

    within: frozenset[str] = frozenset()
    behind: frozenset[str] = frozenset()
    later: frozenset[tuple[int, str]] = frozenset()
    out: frozenset[tuple[int, int, int, str]] = frozenset()
    drained: frozenset[tuple[int, str]] = frozenset()


@dataclass(frozen=True)
class Reached:
    """What comes later than something in a block, as far as it was asked.

    Attributes:
        work: from where on the work of each pipe does.
        sets: behind which item what a pipe sets does.
        pipes: those of which all comes later that stands behind.
    """

    work: Mapping[str, Position]
    sets: Mapping[str, Position]
    pipes: frozenset[str]

    def set_of(self, event: EventPair, start: Position = 0) -> bool:
        """Whether the set of an event does, in the iteration that begins at a position."""
        at = start + event.set_after
        return any(event.source in found and found[event.source] <= at for found in (self.work, self.sets))


def leaving(index: int, count: int, pipe: str, left: Left, body: BlockItems | None) -> list[State]:
    """Where the search for what comes behind an access starts: its pipe, and those that come behind it inside its item, one of
    ``count`` of a block, or wait for it."""
    return [(index, pipe, True), *((index, other, True) for other in left.within),
            *((index + 1, other, False) for other in left.within | left.behind),
            *((later * count + place, other, False) for block, later, place, other in left.out if block == id(body))]


class Doors(Protocol):
    """How demands leave, enter and pass items that have blocks of their own."""

    @property
    def body(self) -> BlockItems:
        """The block."""

    @property
    def running(self) -> Sequence[int]:
        """The items that are loops which run at least once."""

    def beside(self, demand: Demand) -> Sequence[Position]:
        """The branches and loops that run where the demand's accesses do."""

    def alike(self, position: Position) -> Sequence[Position]:
        """The branches on the same condition as one, the loops of the same bounds, the stages so many iterations before it and
        behind it: they run where it does, those that there are."""

    def left(self, demand: Demand) -> Left:
        """What comes behind the demand's first access inside its item."""

    def enters(self, demand: Demand, pipe: str, *, started: bool, primed: bool) -> bool:
        """Whether the demand's second access comes behind what work of a pipe in its item comes behind."""

    def waits(self, demand: Demand, event: EventPair) -> bool:
        """Whether the demand's second access comes behind a wait in its item."""

    def through(self, index: int, pipe: str, *, started: bool, primed: bool, beside: bool = False) -> Left:
        """What comes behind the same on the far side of a loop that runs, ``beside``: where one like it does something."""

    def carried(self, demand: Demand) -> bool:
        """Whether tokens that a loop finds as it left them meet a demand between two of its runs."""


def _next(places: Sequence[Position], after: Position, position: Position, count: int) -> Iterator[Position]:
    """Of each item's places, in ascending order, the first from one on; of one that work at ``position`` is at the next too."""
    seen: set[int] = set()
    for place in places:
        if place >= after and place % count not in seen:
            yield place
            if place > position:
                seen.add(place % count)


class _PlacesInOrder:
    """Places of items in ascending order, each with what stands there."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self.values: list[EventPair | Fence | None] = []

    def add(self, place: int, value: EventPair | Fence | None) -> None:
        index = bisect_right(self.places, place)
        self.places.insert(index, place)
        self.values.insert(index, value)

    def remove(self, place: int, value: EventPair | Fence) -> None:
        index = self.values.index(value, bisect_left(self.places, place))
        del self.places[index], self.values[index]

    def next(self, position: Position, count: int) -> tuple[EventPair | Fence | None, Position] | None:
        """What stands at or next behind a position, in this iteration or the next."""
        if not self.places:
            return None
        copy, place = divmod(position, count)
        index = bisect_left(self.places, place)
        if index == len(self.places):
            return self.values[0], (copy + 1) * count + self.places[0]
        return self.values[index], copy * count + self.places[index]

    def soonest(self, position: Position, count: int) -> tuple[EventPair, Position] | None:
        """Of events, which are kept by their sets, the one that is waited for first of those set at or behind a position."""
        copy, place = divmod(position, count)
        start, found = bisect_left(self.places, place), None
        for index in range(start, start + len(self.places)):
            turn, index = divmod(index, len(self.places))
            event = self.values[index]
            assert isinstance(event, EventPair)
            base = (copy + turn) * count
            if found is not None and event.distance == 0 and base + event.set_after >= found[1]:
                break  # a wait comes behind its set
            where = base + event.distance * count + event.wait_before
            if found is None or where < found[1]:
                found = event, where
        return found


class Order:
    """The ordering that a block's events, barriers and macro operations give.

    Args:
        count: number of items.
        inner: the pipes that an item runs through, where there are several.
        fences: the author's own.
        doors: of the items that have blocks.

    Attributes:
        asked: what it must meet, as far as nothing else implies it.
        into: the events whose waits stand in blocks of its items.
    """

    def __init__(self, count: int, inner: dict[int, tuple[str, ...]], fences: Iterable[Fence],
                 doors: Doors | None = None) -> None:
        self.count = count
        self.doors = doors
        self.asked: Sequence[Demand] = ()
        self.into: list[EventPair] = []
        self._edges: list[EventPair | Fence] = []
        self._given_at_start: list[EventPair] = []
        self._given_out: list[EventPair] = []
        self._carrying: list[EventPair] = []
        self._own_events: dict[EventPair, _PlacesInOrder] = {}
        self._own_fences: dict[Fence, _PlacesInOrder] = {}
        self._early: dict[EventPair, list[tuple[EventPair, Order]]] = {}
        self._events: dict[str, dict[tuple[str, int], _PlacesInOrder]] = {}
        self._fences: dict[str, _PlacesInOrder] = {}
        self._macros: dict[str, dict[str, _PlacesInOrder]] = {}
        for fence in fences:
            self.add(fence)
        for index, pipes in inner.items():
            for a, b in zip(pipes, pipes[1:], strict=False):
                self._macros.setdefault(a, {}).setdefault(b, _PlacesInOrder()).add(index, None)

    @property
    def events(self) -> list[EventPair]:
        """The events that were added."""
        return [*self._own_events, *self._early, *(one for one in self._edges if isinstance(one, EventPair))]

    @property
    def carrying(self) -> list[EventPair]:
        """The events from one time that the block runs to the next, which a loop around it holds, those given included."""
        return [*self._carrying, *(event for event in self.events if event.holder is not None)]

    @property
    def own(self) -> list[EventPair | Fence]:
        """The events and barriers that were added, those of the author left out."""
        return [*self._own_events, *self._early, *(fence for fence in self._own_fences if not fence.user), *self._edges]

    @property
    def fences(self) -> list[Fence]:
        """The barriers."""
        return [*self._own_fences, *(one for one in self._edges if isinstance(one, Fence))]

    def at_end(self, pipe: str, reached: Reached) -> Iterator[str]:
        """The pipes that what stands at the end of a branch lets wait for an access there, by what comes later than that."""
        for one in self._edges:
            if isinstance(one, Fence):
                if one.pipe == "ALL":
                    yield from PIPES
                elif one.pipe == pipe:
                    yield pipe
            elif one.set_after >= 0 and reached.set_of(one):
                yield one.target

    def at_start(self, pipe: str) -> Iterator[State]:
        """What work comes later that a pipe enters a branch in front of, by what stands at its start."""
        for one in (*self._given_at_start, *self._edges):
            if isinstance(one, EventPair) and one.set_after < 0 and one.source == pipe:
                yield one.wait_before, one.target, False

    def outside(self, reached: Reached) -> Iterator[EventPair]:
        """What waits around a branch for an access in it, by what comes later than that."""
        yield from (event for event in self._given_out if reached.set_of(event))

    def add(self, one: EventPair | Fence) -> None:
        """Take an event or a barrier in."""
        if isinstance(one, EventPair) and one.early is not None:
            self._add_early(one, one.early)
        elif self._at_edge(one):
            self._edges.append(one)
        elif isinstance(one, EventPair):
            self._own_events[one] = self._insert(one)
        else:
            row = self._own_fences[one] = self._fences.setdefault(one.pipe, _PlacesInOrder())
            row.add(one.before, one)

    def _add_early(self, event: EventPair, early: Early) -> None:
        """What an event orders that is set in a branch: all that its pipe did in front of that, and in it."""
        later, before = divmod(event.set_after - 1, self.count)  # the iteration before, where nothing is in front
        parts = [(replace(event, set_after=early.set_after, early=None, out=early.around), early.order),
                 (replace(event, set_after=before, distance=event.distance - later, early=None), self)]
        self._early[event] = parts
        for part, order in parts:
            order.give(part)

    def withdraw(self) -> None:
        """Take back what this order says in those of branches: it is to be another one."""
        for part, order in self._said_elsewhere():
            order.take_back(part)

    def stand(self) -> None:
        """Say again what was taken back."""
        for part, order in self._said_elsewhere():
            order.give(part)

    def _said_elsewhere(self) -> Iterator[tuple[EventPair, Order]]:
        yield from (said for parts in self._early.values() for said in parts if said[1] is not self)

    def take_back(self, event: EventPair) -> None:
        """An ordering that was given, and is no more."""
        if event.out is not None:
            self._given_out.remove(event)
        else:
            self._events[event.source][event.target, event.distance].remove(event.set_after, event)

    def give(self, event: EventPair) -> None:
        """An ordering that somebody else provides."""
        if event.out is not None:
            self._given_out.append(event)
        elif event.into is not None:
            self.into.append(event)
        elif event.set_after < 0:
            self._given_at_start.append(event)
        else:
            self._insert(event)
        if event.holder is not None:
            self._carrying.append(event)

    def _insert(self, event: EventPair) -> _PlacesInOrder:
        """Returns where it is kept."""
        row = self._events.setdefault(event.source, {}).setdefault((event.target, event.distance), _PlacesInOrder())
        row.add(event.set_after, event)
        return row

    def remove(self, one: EventPair | Fence) -> None:
        """Take an event or a barrier out again."""
        if isinstance(one, EventPair) and one in self._early:
            for part, order in self._early.pop(one):
                order.take_back(part)
        elif self._at_edge(one):
            self._edges.remove(one)
        elif isinstance(one, EventPair):
            self._own_events.pop(one).remove(one.set_after, one)
        else:
            self._own_fences.pop(one).remove(one.before, one)

    def _at_edge(self, one: EventPair | Fence) -> bool:
        if isinstance(one, Fence):
            return one.before == self.count
        return one.set_after < 0 or one.wait_before == self.count

    def covers(self, demand: Demand) -> bool:
        """Whether the demand is met by what there is."""
        return self.path(demand) is not None

    def path(self, demand: Demand) -> list[EventPair | Fence] | None:
        """The events and barriers that meet a demand; None if it is not met."""
        goal, doors = demand.then, self.doors
        if doors and doors.carried(demand):
            return []
        via: dict[State, tuple[State | None, EventPair | Fence | None]] = {}
        left, body = (doors.left(demand), doors.body) if doors else (Left(), None)
        starts = leaving(demand.first, self.count, demand.source, left, body)
        for state in self._explore(starts, goal, via, doors.beside(demand) if doors else ()):
            position, pipe, start = state
            if not start and pipe == demand.target:
                return self._trace(via, state)
            primed = position < goal
            if doors and (primed or not start) and doors.enters(demand, pipe, started=start, primed=primed):
                return self._trace(via, state)
            iteration = goal // self.count
            if doors and any(event.source == pipe and position <= (iteration - event.distance) * self.count + event.set_after
                             and doors.waits(demand, event) for event in self.into):
                return self._trace(via, state)
        return None

    def reach(self, starts: Iterable[State], limit: Position, runs: Sequence[Position] = ()) -> Reached:
        """What comes later up to the item at ``limit`` and right behind it, in a run in which the branches at ``runs`` do."""
        work: dict[str, Position] = {}
        sets: dict[str, Position] = {}
        pipes: set[str] = set()
        doors = self.doors
        for position, pipe, start in self._explore(starts, limit, {}, runs):
            (sets if start else work).setdefault(pipe, position)
            if doors is not None and position + start <= limit and (limit % self.count in doors.running or limit in runs):
                through = doors.through(limit % self.count, pipe, started=start, primed=start or position < limit)
                pipes |= through.within | through.behind
        return Reached(work, sets, frozenset({*pipes, *work}))

    def beside(self, position: Position) -> Sequence[Position]:
        """The branches and loops that run where one item does."""
        return self.doors.alike(position) if self.doors is not None else ()

    def _explore(self, starts: Iterable[State], goal: Position,
                 via: dict[State, tuple[State | None, EventPair | Fence | None]],
                 beside: Sequence[Position] = ()) -> Iterator[State]:
        """What follows from the starts up to ``goal``, nearest first; ``via`` takes where each comes from. ``beside``: branches
        that run."""
        best: dict[str, Position] = {}
        beside = sorted({place for place in beside if 0 <= place <= goal})
        pending = [state for state in starts if state[0] <= goal]
        via.update(dict.fromkeys(pending, (None, None)))
        heapq.heapify(pending)
        while pending:
            state = heapq.heappop(pending)
            position, pipe, start = state
            if not start:
                if best.get(pipe, position) < position:
                    continue
                best[pipe] = position
            yield state
            for step, new in self._steps(pipe, position, beside, start=start):
                where, target, behind = new
                if where > goal or where >= best.get(target, goal + 1) or (behind and new in via):
                    continue
                if not behind:
                    best[target] = where
                via[new] = (state, step)
                heapq.heappush(pending, new)

    def _trace(self, via: dict[State, tuple[State | None, EventPair | Fence | None]], at: State) -> list[EventPair | Fence]:
        steps: list[EventPair | Fence] = []
        current: State | None = at
        while current is not None:
            current, step = via[current]
            if step is not None:
                steps.append(step)
        return steps

    def _steps(self, pipe: str, position: Position, beside: Sequence[Position], *, start: bool
               ) -> Iterator[tuple[EventPair | Fence | None, State]]:
        """Where one event, barrier, macro or loop leads from work of ``pipe`` at ``position``: of each kind the soonest."""
        count, after, position = self.count, position + start, max(position, 0)
        for row in self._events.get(pipe, {}).values():
            event = row.soonest(position, count)
            if event is not None:
                for held in event[0].held:
                    yield event[0], (event[1], held, False)
        for kind in (pipe, "ALL"):
            fence = self._fences[kind].next(after, count) if kind in self._fences else None
            if fence is not None:
                assert isinstance(fence[0], Fence)
                for other in PIPES if kind == "ALL" else (pipe,):
                    yield fence[0], (fence[1], other, False)
        for target, row in self._macros.get(pipe, {}).items():
            macro = row.next(position, count)
            if macro is not None:
                yield None, (macro[1], target, False)
        doors = self.doors
        running = [max(0, -(-(after - index) // count)) * count + index for index in doors.running] if doors is not None else []
        ways = [(where, False) for where in running] + [(where, True) for where in _next(beside, after, position, count)]
        for where, alike in ways:
            assert doors is not None
            through = doors.through(where % count, pipe, started=start, primed=start or position < where, beside=alike)
            for other in through.within:
                yield None, (where, other, True)
            for other in through.within | through.behind:
                yield None, (where + 1, other, False)
