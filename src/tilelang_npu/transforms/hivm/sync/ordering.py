"""Determines the order that the events and barriers of one block guarantee, by a search over the block's unrolled iterations.

A **position** is ``count * n + index``: item ``index`` of iteration ``n`` of a block with ``count`` items. Pipes are in-order
queues, so an event from pipe p to pipe q, set after item s and waited for before item w, orders all operations of p up to item
s before all operations of q from item w on. Between two items, sets are before waits: a set after item s comes after a wait
before item w exactly if s >= w.

A **constraint** demands that operations of one pipe are done before operations of another pipe start. The search starts at the
first access and follows events, barriers, macros and nested blocks::

    items:      0 load a (MTE2)    1 add (V)     2 store b (MTE3)
    events:     MTE2 -> V set after 0, waited for before 1;  V -> MTE3 set after 1, waited for before 2
    search:     (0, MTE2, queued)  ->  (1, V)    ->  (2, MTE3):  the store comes after the load without an event of its own
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, get_args

from tilelang_npu.target.chip_data import Pipe
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Queue, SyncItem

PIPES: tuple[Pipe, ...] = get_args(Pipe)
"""All pipes: those that a barrier of all pipes stops."""
Position = int
State = tuple[Position, Queue, bool]
"""A state of the search, ``(position, pipe, queued)``: the operations of a pipe that are known to be ordered after an access.

If ``queued`` is false, all operations of the pipe from the position on start after the access is done. If it is true, the
access is in the pipe's own queue, at or before the position: events that the pipe sets later are set after the access is done,
but the pipe's next operations may start before the access is done.
"""


@dataclass(eq=False)
class EventPair:
    """A set and a wait of one event in a block.

    Attributes:
        source: the pipe that sets the event.
        target: the pipe that waits for the event.
        set_after: the index of the item after which the event is set; -1 for the start of a branch.
        wait_before: the index of the item before which the target waits; the number of items for the end of a branch.
        distance: the number of iterations from the set to its wait; 0 for the same iteration. If it is positive (the event is
            *loop-carried*), each id is also set once before the loop and waited for once after the loop (the event's *tokens*),
            so that the loop may run any number of iterations.
        slots: the number of event ids; iteration ``n`` uses the id ``id + n % slots``.
        reason: the dependence for which the event was inserted, for reports; None for an event that others guarantee.
        id: the first event id; -1 before ids are allocated.
        token_loop: the body of the loop around which the tokens are set and waited for, if this is not the event's own loop but
            a loop around it. Each run of the own loop then waits for sets of the previous run.
        merged_reasons: the reasons of the events that were merged into this one.
        tokens_before: the item before which the tokens are set; None for directly before the loop.
        blocked_pipes: the pipes that the wait stops: the target, or all pipes if the target is the scalar unit, which issues
            the operations of all pipes.
        outer_wait_block: if the wait is in an enclosing block, that block; ``wait_before`` and ``distance`` then refer to its
            items and iterations.
        inner_wait_block: if the wait is in a nested block, that block; ``wait_before`` then refers to its items.
        drains_loop: if ``outer_wait_block`` is the body of a loop: whether there is another wait directly after the loop.
        branch_set: if the set was moved into a branch (the item ``set_after``), the position of the set in the branch.
    """

    source: Queue
    target: Queue
    set_after: int
    wait_before: int
    distance: int
    slots: int = 1
    reason: object = None
    id: int = -1
    token_loop: BlockItems | None = None
    merged_reasons: tuple[object, ...] = ()
    tokens_before: SyncItem | None = None
    blocked_pipes: tuple[Queue, ...] = ()
    outer_wait_block: BlockItems | None = None
    inner_wait_block: BlockItems | None = None
    drains_loop: bool = False
    branch_set: BranchSet | None = None

    def __post_init__(self) -> None:
        self.blocked_pipes = self.blocked_pipes or (PIPES if self.target == "S" else (self.target,))


@dataclass(frozen=True, eq=False)
class BranchSet:
    """The position of a set inside a branch: the event is set after an item of one arm, and at the start of the other arm.

    Attributes:
        arm: the arm that contains all accesses of the setting pipe in the branch.
        order: the order of that arm.
        set_after: the index of the item in the arm after which the event is set.
        block: the block that contains the branch.
    """

    arm: BlockItems
    order: BlockOrder
    set_after: int
    block: BlockItems


@dataclass(eq=False)
class PipeBarrier:
    """A barrier of one pipe (or of all pipes) before an item, in every iteration.

    Attributes:
        pipe: the pipe; ``ALL`` for all pipes.
        before: the index of the item; the number of items for the end of a branch.
        reason: the dependence for which the barrier was inserted, for reports.
        by_author: whether the author wrote the barrier.
        after_loop: whether a second barrier is inserted after the loop.
    """

    pipe: Queue
    before: int
    reason: object
    by_author: bool = False
    after_loop: bool = False


@dataclass(frozen=True)
class Constraint:
    """The demand that all operations of the pipe ``source`` up to item ``first`` are done before any operation of the pipe
    ``target`` from position ``then`` on starts.

    Attributes:
        source: the pipe of the earlier access.
        target: the pipe of the later access.
        first: the index of the item with the earlier access.
        then: the position of the item with the later access; in a later iteration if the dependence is loop-carried.
        slots: the number of slots of the multi-buffer that both accesses use in turn; 1 for any other buffer.
        reason: the dependence between the two accesses, for reports.
    """

    source: Queue
    target: Queue
    first: int
    then: Position
    slots: int
    reason: object


@dataclass(frozen=True)
class ExitOrder:
    """The pipes whose operations after an item are ordered after an access in a nested block of the item.

    Attributes:
        within: the pipes that waited for the access inside the item. Events that they set after the item are ordered too.
        at_exit: the pipes that wait directly after the item, for the last sets of loop-carried events. Events that are set
            directly after the item are set before these waits.
        at_outer_exits: the pipes that wait for loop-carried events after an enclosing loop, as (``id`` of the loop's body,
            pipe).
        outer_waits: the waits in an enclosing block, as (``id`` of the block, number of iterations until the wait, index of the
            item after the wait, pipe).
        drained: the pipes that wait directly after an enclosing loop for the last sets in the loop, as (``id`` of the loop's
            body, pipe).
    """

    within: frozenset[Queue] = frozenset()
    at_exit: frozenset[Queue] = frozenset()
    at_outer_exits: frozenset[tuple[int, Queue]] = frozenset()
    outer_waits: frozenset[tuple[int, int, int, Queue]] = frozenset()
    drained: frozenset[tuple[int, Queue]] = frozenset()


@dataclass(frozen=True)
class LaterWork:
    """The operations that a search found to be ordered after an access.

    Attributes:
        work: for each pipe, the position from which on all operations of the pipe are ordered after the access.
        sets: for each pipe, the position of the item after which events that the pipe sets are ordered after the access.
        pipes: the pipes whose operations after the limit of the search are all ordered after the access.
    """

    work: Mapping[Queue, Position]
    sets: Mapping[Queue, Position]
    pipes: frozenset[Queue]

    def includes_set_of(self, event: EventPair, start: Position = 0) -> bool:
        """Whether the event is set after the access, in the iteration that begins at position ``start``."""
        at = start + event.set_after
        return any(event.source in found and found[event.source] <= at for found in (self.work, self.sets))


def exit_states(index: int, count: int, pipe: Queue, left: ExitOrder, body: BlockItems | None) -> list[State]:
    """Returns the states at which the search for the operations that are ordered after an access starts (see ``State``).

    The first state is that of the access itself, in the queue of its pipe. The others are those of the pipes that wait for the
    access in the access's item, directly after the item, or at a later item of the block.

    Args:
        index: the index of the item that is or contains the access.
        count: the number of items of the block.
        pipe: the pipe that executes the access.
        left: the pipes that have waited for the access when the item has ended; empty if the access is in no nested block.
        body: the block that contains the item, in which the search takes place; None if no item has nested blocks.
    """
    return [(index, pipe, True), *((index, other, True) for other in left.within),
            *((index + 1, other, False) for other in left.within | left.at_exit),
            *((later * count + place, other, False) for block, later, place, other in left.outer_waits if block == id(body))]


class NestedItems(Protocol):
    """Tells the search of a block which order the waits inside the loops and branches among the block's items guarantee.

    The search knows that operations of a pipe are ordered after some access (see ``State``), and reaches an item with nested
    blocks. It then asks whether the order continues from the access out of the item (``exit_order``), into the item
    (``is_entered_after``), or through the item to the items after it (``order_through``).

    The argument ``queued`` of the methods is the ``queued`` of the ``State`` before the item: true if the access itself is in
    the queue of ``pipe``; false if all operations of ``pipe`` in the item start after the access is done. The argument
    ``tokens_follow`` is true if an event that ``pipe`` sets directly before the item is set after the access is done. Such sets
    are the tokens of loop-carried events (see ``EventPair``): a wait for a token inside the loop then waits for the access too.
    """

    @property
    def body(self) -> BlockItems:
        """The block that contains the items, and in which the search takes place."""

    @property
    def running_loops(self) -> Sequence[int]:
        """The indices of the items that are loops with at least one iteration."""

    def taken_with_accesses(self, constraint: Constraint) -> Sequence[Position]:
        """Returns the positions of the branches and loops that run whenever the constraint's two accesses are executed."""

    def taken_with(self, position: Position) -> Sequence[Position]:
        """Returns the positions of the branches and loops that run whenever the branch or loop at a position does.

        These are branches on the same condition, loops with the same bounds, and other stages of a software pipeline, possibly
        in other iterations.
        """

    def exit_order(self, constraint: Constraint) -> ExitOrder:
        """Returns the pipes that are ordered after the constraint's first access when the item whose nested block contains the
        access has ended.
        """

    def is_entered_after(self, constraint: Constraint, pipe: Queue, *, queued: bool, tokens_follow: bool) -> bool:
        """Whether the constraint's second access, which is in a nested block, is ordered after the first access, given that
        ``pipe`` is ordered after the first access before the item."""

    def waits_for(self, constraint: Constraint, event: EventPair) -> bool:
        """Whether the constraint's second access, which is in a nested block, always comes after the wait of ``event`` there.
        """

    def order_through(self, index: int, pipe: Queue, *, queued: bool, tokens_follow: bool, taken: bool = False) -> ExitOrder:
        """Returns the pipes that are ordered after an earlier access when a later item of the block, an operation, a loop or a
        branch that is certain to be executed, has ended.

        Args:
            index: the index of the item, which is after the access.
            pipe: the pipe that is ordered after the access, or executes the access, before the item.
            queued: whether ``pipe`` has the access in its queue before the item; if false, the access is done.
            tokens_follow: whether an event that ``pipe`` sets directly before the item is set after the access is done.
            taken: whether the item is certain to be executed only because another branch or loop is executed.
        """

    def is_carried(self, constraint: Constraint) -> bool:
        """Whether loop-carried events of a nested loop order two successive runs of the loop as the constraint demands."""


def _next_occurrences(places: Sequence[Position], after: Position, position: Position, count: int) -> Iterator[Position]:
    """Yields, for each item of the sorted ``places``, its first occurrence from ``after`` on.

    For an item that occurs at ``position`` itself, the next occurrence is yielded too.
    """
    seen: set[int] = set()
    for place in places:
        if place >= after and place % count not in seen:
            yield place
            if place > position:
                seen.add(place % count)


class _SortedByItem:
    """Events, barriers or macros, sorted by the index of the item at which they are set or inserted."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self.values: list[EventPair | PipeBarrier | None] = []

    def add(self, place: int, value: EventPair | PipeBarrier | None) -> None:
        index = bisect_right(self.places, place)
        self.places.insert(index, place)
        self.values.insert(index, value)

    def remove(self, place: int, value: EventPair | PipeBarrier) -> None:
        index = self.values.index(value, bisect_left(self.places, place))
        del self.places[index], self.values[index]

    def next(self, position: Position, count: int) -> tuple[EventPair | PipeBarrier | None, Position] | None:
        """Returns the first entry at or after a position, in this iteration or the next one, and the entry's position."""
        if not self.places:
            return None
        iteration, place = divmod(position, count)
        index = bisect_left(self.places, place)
        if index == len(self.places):
            return self.values[0], (iteration + 1) * count + self.places[0]
        return self.values[index], iteration * count + self.places[index]

    def earliest_wait(self, position: Position, count: int) -> tuple[EventPair, Position] | None:
        """Returns, of events sorted by their sets, the one set at or after a position that is waited for first, and where."""
        iteration, place = divmod(position, count)
        start, found = bisect_left(self.places, place), None
        for index in range(start, start + len(self.places)):
            wrapped, index = divmod(index, len(self.places))
            event = self.values[index]
            assert isinstance(event, EventPair)
            base = (iteration + wrapped) * count
            if found is not None and event.distance == 0 and base + event.set_after >= found[1]:
                break  # a wait comes after its set, so that no later event is earlier
            where = base + event.distance * count + event.wait_before
            if found is None or where < found[1]:
                found = event, where
        return found


class BlockOrder:
    """The order that a block's events, barriers and macros guarantee.

    The class distinguishes *inserted* events, which the pass writes into the function, from *given* events, which this order
    does not insert: events of the author, orders that flags between the cores imply, and events of other blocks.

    Args:
        count: the number of items of the block.
        pipe_chains: for the index of each macro operation, the pipes that the operation uses one after another.
        barriers: the barriers that the author wrote.
        nested: tells which order the waits inside loops and branches guarantee; None if no item has nested blocks.

    Attributes:
        constraints: the constraints that the order must guarantee, without those that other constraints imply.
        inner_waits: the given events whose waits are in nested blocks.
    """

    def __init__(self, count: int, pipe_chains: dict[int, tuple[Queue, ...]], barriers: Iterable[PipeBarrier],
                 nested: NestedItems | None = None) -> None:
        self.count = count
        self.nested = nested
        self.constraints: Sequence[Constraint] = ()
        self.inner_waits: list[EventPair] = []
        self._at_edges: list[EventPair | PipeBarrier] = []  # inserted at the start or the end of a branch
        self._given_at_start: list[EventPair] = []
        self._given_outer_waits: list[EventPair] = []
        self._given_carried: list[EventPair] = []
        self._inserted_events: dict[EventPair, _SortedByItem] = {}
        self._inserted_barriers: dict[PipeBarrier, _SortedByItem] = {}
        self._branch_sets: dict[EventPair, list[tuple[EventPair, BlockOrder]]] = {}
        self._events: dict[Queue, dict[tuple[Queue, int], _SortedByItem]] = {}  # by source, then by target and distance
        self._barriers: dict[Queue, _SortedByItem] = {}
        self._macros: dict[Queue, dict[Queue, _SortedByItem]] = {}
        for barrier in barriers:
            self.add(barrier)
        for index, pipes in pipe_chains.items():
            for a, b in zip(pipes, pipes[1:], strict=False):
                self._macros.setdefault(a, {}).setdefault(b, _SortedByItem()).add(index, None)

    @property
    def events(self) -> list[EventPair]:
        """The inserted events."""
        return [*self._inserted_events, *self._branch_sets, *(one for one in self._at_edges if isinstance(one, EventPair))]

    @property
    def carried_events(self) -> list[EventPair]:
        """The inserted and given events that make an iteration of the block's loop wait for the previous iteration. These are
        the events whose ``token_loop`` is set.
        """
        return [*self._given_carried, *(event for event in self.events if event.token_loop is not None)]

    @property
    def inserted(self) -> list[EventPair | PipeBarrier]:
        """The inserted events and barriers, without those of the author."""
        return [*self._inserted_events, *self._branch_sets,
                *(barrier for barrier in self._inserted_barriers if not barrier.by_author), *self._at_edges]

    @property
    def barriers(self) -> list[PipeBarrier]:
        """All barriers: the inserted ones and those of the author."""
        return [*self._inserted_barriers, *(one for one in self._at_edges if isinstance(one, PipeBarrier))]

    # The sets and waits at the edges of a branch

    def pipes_waiting_at_end(self, pipe: Queue, later: LaterWork) -> Iterator[Queue]:
        """Yields the pipes that wait at the end of a branch for an access in the branch.

        Args:
            pipe: the pipe of the access.
            later: the operations of the branch that are ordered after the access.
        """
        for one in self._at_edges:
            if isinstance(one, PipeBarrier):
                if one.pipe == "ALL":
                    yield from PIPES
                elif one.pipe == pipe:
                    yield pipe
            elif one.set_after >= 0 and later.includes_set_of(one):
                yield one.target

    def states_after_start(self, pipe: Queue) -> Iterator[State]:
        """Yields the states that follow from operations of ``pipe`` before a branch, by events that are set at the branch's
        start.
        """
        for one in (*self._given_at_start, *self._at_edges):
            if isinstance(one, EventPair) and one.set_after < 0 and one.source == pipe:
                yield one.wait_before, one.target, False

    def outer_waits_after(self, later: LaterWork) -> Iterator[EventPair]:
        """Yields the given events with a wait in an enclosing block that are set after an access.

        Args:
            later: the operations of this block that are ordered after the access.
        """
        yield from (event for event in self._given_outer_waits if later.includes_set_of(event))

    # Inserting, giving and taking away. Inserted events are written into the function; given ones are guaranteed by others.

    def add(self, one: EventPair | PipeBarrier) -> None:
        """Inserts an event or a barrier."""
        if isinstance(one, EventPair) and one.branch_set is not None:
            self._add_branch_set(one, one.branch_set)
        elif self._is_at_edge(one):
            self._at_edges.append(one)
        elif isinstance(one, EventPair):
            self._inserted_events[one] = self._sort_in(one)
        else:
            row = self._inserted_barriers[one] = self._barriers.setdefault(one.pipe, _SortedByItem())
            row.add(one.before, one)

    def _add_branch_set(self, event: EventPair, branch_set: BranchSet) -> None:
        """Inserts an event that is set in a branch, and so orders the pipe's operations before the branch and those in the
        branch up to the set.

        The event is represented by two given events: one in the order of the arm, whose wait is in this block, and one in this
        order, which is set before the branch.
        """
        later, before = divmod(event.set_after - 1, self.count)  # of the iteration before, if the branch is the first item
        parts = [(replace(event, set_after=branch_set.set_after, branch_set=None, outer_wait_block=branch_set.block),
                  branch_set.order),
                 (replace(event, set_after=before, distance=event.distance - later, branch_set=None), self)]
        self._branch_sets[event] = parts
        for part, order in parts:
            order.give(part)

    def retract_from_branches(self) -> None:
        """Revokes the events that this order has given to the orders of branches, because this order is about to be replaced.
        """
        for part, order in self._given_to_branches():
            order.revoke(part)

    def restore_in_branches(self) -> None:
        """Gives the events again that ``retract_from_branches`` revoked."""
        for part, order in self._given_to_branches():
            order.give(part)

    def _given_to_branches(self) -> Iterator[tuple[EventPair, BlockOrder]]:
        yield from (given for parts in self._branch_sets.values() for given in parts if given[1] is not self)

    def give(self, event: EventPair) -> None:
        """Adds a given event: one that exists without being inserted by this order."""
        if event.outer_wait_block is not None:
            self._given_outer_waits.append(event)
        elif event.inner_wait_block is not None:
            self.inner_waits.append(event)
        elif event.set_after < 0:
            self._given_at_start.append(event)
        else:
            self._sort_in(event)
        if event.token_loop is not None:
            self._given_carried.append(event)

    def revoke(self, event: EventPair) -> None:
        """Removes a given event."""
        if event.outer_wait_block is not None:
            self._given_outer_waits.remove(event)
        else:
            self._events[event.source][event.target, event.distance].remove(event.set_after, event)

    def _sort_in(self, event: EventPair) -> _SortedByItem:
        """Returns the row that the event was added to."""
        row = self._events.setdefault(event.source, {}).setdefault((event.target, event.distance), _SortedByItem())
        row.add(event.set_after, event)
        return row

    def remove(self, one: EventPair | PipeBarrier) -> None:
        """Removes an inserted event or barrier."""
        if isinstance(one, EventPair) and one in self._branch_sets:
            for part, order in self._branch_sets.pop(one):
                order.revoke(part)
        elif self._is_at_edge(one):
            self._at_edges.remove(one)
        elif isinstance(one, EventPair):
            self._inserted_events.pop(one).remove(one.set_after, one)
        else:
            self._inserted_barriers.pop(one).remove(one.before, one)

    def _is_at_edge(self, one: EventPair | PipeBarrier) -> bool:
        if isinstance(one, PipeBarrier):
            return one.before == self.count
        return one.set_after < 0 or one.wait_before == self.count

    # The search

    def implies(self, constraint: Constraint) -> bool:
        """Whether the order guarantees a constraint."""
        return self.path(constraint) is not None

    def path(self, constraint: Constraint) -> list[EventPair | PipeBarrier] | None:
        """Returns the events and barriers of one chain that guarantees a constraint; None if the constraint is not guaranteed.
        """
        goal, nested = constraint.then, self.nested
        if nested and nested.is_carried(constraint):
            return []
        via: dict[State, tuple[State | None, EventPair | PipeBarrier | None]] = {}
        left, body = (nested.exit_order(constraint), nested.body) if nested else (ExitOrder(), None)
        starts = exit_states(constraint.first, self.count, constraint.source, left, body)
        for state in self._explore(starts, goal, via, nested.taken_with_accesses(constraint) if nested else ()):
            position, pipe, queued = state
            if not queued and pipe == constraint.target:
                return self._trace(via, state)
            tokens_follow = position < goal
            if nested and (tokens_follow or not queued) and nested.is_entered_after(
                    constraint, pipe, queued=queued, tokens_follow=tokens_follow):
                return self._trace(via, state)
            iteration = goal // self.count
            if nested and any(event.source == pipe
                              and position <= (iteration - event.distance) * self.count + event.set_after
                              and nested.waits_for(constraint, event) for event in self.inner_waits):
                return self._trace(via, state)
        return None

    def later_work(self, starts: Iterable[State], limit: Position, taken: Sequence[Position] = ()) -> LaterWork:
        """Returns the operations of the block that are ordered after an access.

        The search stops at the item at position ``limit``, which is included. ``LaterWork.pipes`` says which pipes are ordered
        after the access once this item has ended.

        Args:
            starts: the states at which the search starts: what is ordered after the access because of the access's own item.
            limit: the position of the last item of the search.
            taken: the positions of branches and loops that surely run, so that the waits in them count.
        """
        work: dict[Queue, Position] = {}
        sets: dict[Queue, Position] = {}
        pipes: set[Queue] = set()
        nested = self.nested
        for position, pipe, queued in self._explore(starts, limit, {}, taken):
            (sets if queued else work).setdefault(pipe, position)
            if nested is not None and position + queued <= limit and (
                    limit % self.count in nested.running_loops or limit in taken):
                through = nested.order_through(limit % self.count, pipe, queued=queued,
                                               tokens_follow=queued or position < limit)
                pipes |= through.within | through.at_exit
        return LaterWork(work, sets, frozenset({*pipes, *work}))

    def taken_with(self, position: Position) -> Sequence[Position]:
        """Returns the positions of the branches and loops that run whenever the item at a position does."""
        return self.nested.taken_with(position) if self.nested is not None else ()

    def _explore(self, starts: Iterable[State], goal: Position,
                 via: dict[State, tuple[State | None, EventPair | PipeBarrier | None]],
                 taken: Sequence[Position] = ()) -> Iterator[State]:
        """Yields the states that follow from the starting ones up to ``goal``, nearest first.

        Args:
            starts: the states to start from.
            goal: the last position.
            via: receives, for each state, the state and the event or barrier that it follows from.
            taken: positions of branches and loops that run.
        """
        best: dict[Queue, Position] = {}
        taken = sorted({place for place in taken if 0 <= place <= goal})
        pending = [state for state in starts if state[0] <= goal]
        via.update(dict.fromkeys(pending, (None, None)))
        heapq.heapify(pending)
        while pending:
            state = heapq.heappop(pending)
            position, pipe, queued = state
            if not queued:
                if best.get(pipe, position) < position:
                    continue
                best[pipe] = position
            yield state
            for step, new in self._successors(pipe, position, taken, queued=queued):
                where, target, still_queued = new
                if where > goal or where >= best.get(target, goal + 1) or (still_queued and new in via):
                    continue
                if not still_queued:
                    best[target] = where
                via[new] = (state, step)
                heapq.heappush(pending, new)

    def _trace(self, via: dict[State, tuple[State | None, EventPair | PipeBarrier | None]], at: State
               ) -> list[EventPair | PipeBarrier]:
        steps: list[EventPair | PipeBarrier] = []
        current: State | None = at
        while current is not None:
            current, step = via[current]
            if step is not None:
                steps.append(step)
        return steps

    def _successors(self, pipe: Queue, position: Position, taken: Sequence[Position], *, queued: bool
                    ) -> Iterator[tuple[EventPair | PipeBarrier | None, State]]:
        """Yields the states that one event, barrier, macro or nested item leads to from a state: of each kind the earliest."""
        count, after, position = self.count, position + queued, max(position, 0)
        for row in self._events.get(pipe, {}).values():
            event = row.earliest_wait(position, count)
            if event is not None:
                for blocked in event[0].blocked_pipes:
                    yield event[0], (event[1], blocked, False)
        for kind in (pipe, "ALL"):
            barrier = self._barriers[kind].next(after, count) if kind in self._barriers else None
            if barrier is not None:
                assert isinstance(barrier[0], PipeBarrier)
                for other in PIPES if kind == "ALL" else (pipe,):
                    yield barrier[0], (barrier[1], other, False)
        for target, row in self._macros.get(pipe, {}).items():
            macro = row.next(position, count)
            if macro is not None:
                yield None, (macro[1], target, False)
        nested = self.nested
        running = ([max(0, -(-(after - index) // count)) * count + index for index in nested.running_loops]
                   if nested is not None else [])
        ways = [(where, False) for where in running]
        ways += [(where, True) for where in _next_occurrences(taken, after, position, count)]
        for where, is_taken in ways:
            assert nested is not None
            through = nested.order_through(where % count, pipe, queued=queued, tokens_follow=queued or position < where,
                                           taken=is_taken)
            for other in through.within:
                yield None, (where, other, True)
            for other in through.within | through.at_exit:
                yield None, (where + 1, other, False)
