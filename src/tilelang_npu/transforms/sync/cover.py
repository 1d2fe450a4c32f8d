"""What orders what: events and barriers of one block, unrolled over its iterations, searched for a path.

A position is ``copy * n + index``: item ``index`` of iteration ``copy``. An event p -> q, set behind item s and
waited for in front of item w, orders all work of pipe p up to s before all work of pipe q from w on, because pipes
are in-order queues. Sets stand before waits in one gap, so a set behind item s follows a wait in front of item w
exactly if s >= w.
"""

from __future__ import annotations

from dataclasses import dataclass

Position = int


@dataclass
class Event:
    """One set/wait pair inside a block.

    Attributes:
        source, target: the pipes.
        set_after, wait_before: item indices.
        distance: iterations between the set and its wait; 0 within one.
        slots: number of event ids that iterations take in turn.
        reason: what made it necessary, for the report.
        id: the first event id, once allocated.
    """

    source: str
    target: str
    set_after: int
    wait_before: int
    distance: int
    slots: int
    reason: object
    id: int = -1


@dataclass
class Fence:
    """A barrier of one pipe (or ``ALL``) in front of an item, in every iteration."""

    pipe: str
    before: int
    reason: object
    user: bool = False


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


class Order:
    """The ordering that a block's events, barriers and macro operations give."""

    def __init__(self, count: int, inner: dict[int, tuple[str, ...]], fences: list[Fence]):
        """``count`` items; ``inner`` maps an item to the pipes it runs through; ``fences`` are the user's own."""
        self.count = count
        self.inner = inner
        self.events: list[Event] = []
        self.given: list[Event] = []
        """Orderings that somebody else provides."""
        self.fences: list[Fence] = list(fences)

    def covers(self, demand: Demand) -> bool:
        """Whether the demand is met by what there is."""
        return self.path(demand) is not None

    def path(self, demand: Demand) -> list[Event | Fence] | None:
        """The events and barriers that meet a demand; None if it is not met."""
        goal = demand.then
        best: dict[str, Position] = {}
        via: dict[tuple[str, Position], tuple[tuple[str, Position] | None, Event | Fence | None]] = {}
        # ``reached`` holds (pipe, position): work of that pipe from there on is known to come later.
        pending: list[tuple[Position, str, bool]] = [(demand.first, demand.source, True)]
        via[(demand.source, demand.first)] = (None, None)
        while pending:
            pending.sort(reverse=True)
            position, pipe, start = pending.pop()
            if not start:
                if pipe == demand.target and position <= goal:
                    return self._trace(via, (pipe, position))
                if best.get(pipe, position) < position:
                    continue
            for step, target, where in self._steps(pipe, position, goal, start=start):
                if where <= goal and where < best.get(target, goal + 1):
                    best[target] = where
                    via[(target, where)] = ((pipe, position), step)
                    pending.append((where, target, False))
        return None

    def _trace(self, via: dict[tuple[str, Position], tuple[tuple[str, Position] | None, Event | Fence | None]],
               at: tuple[str, Position]) -> list[Event | Fence]:
        steps: list[Event | Fence] = []
        current: tuple[str, Position] | None = at
        while current is not None:
            current, step = via[current]
            if step is not None:
                steps.append(step)
        return steps

    def _steps(self, pipe: str, position: Position, goal: Position,
               *, start: bool) -> list[tuple[Event | Fence | None, str, Position]]:
        """Where one event, barrier or macro leads from work of ``pipe`` at ``position``."""
        count = self.count
        steps: list[tuple[Event | Fence | None, str, Position]] = []
        for event in (*self.events, *self.given):
            if event.source == pipe:
                copy = max(0, -(-(position - event.set_after) // count))
                steps.append((event, event.target, (copy + event.distance) * count + event.wait_before))
        for fence in self.fences:
            if fence.pipe in (pipe, "ALL"):
                after = position + 1 if start else position
                copy = max(0, -(-(after - fence.before) // count))
                where = copy * count + fence.before
                if fence.pipe == "ALL":
                    steps.extend((fence, other, where) for other in ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"))
                else:
                    steps.append((fence, pipe, where))
        for index, pipes in self.inner.items():
            for a, b in zip(pipes, pipes[1:], strict=False):
                if a == pipe:
                    copy = max(0, -(-(position - index) // count))
                    steps.append((None, b, copy * count + index))
        return steps
