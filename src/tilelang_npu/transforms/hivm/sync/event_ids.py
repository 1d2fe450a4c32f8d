"""Event ids: eight for each ordered pair of pipes; two events that can be outstanding together need different ones.

An event within an iteration is outstanding from its set to its wait; one that crosses iterations, from in front of the loop
that holds its tokens to behind it. Events that iterations take in turn need as many consecutive ids. Where the ids of a pair
run out, what there is is changed step by step, each time by what costs least: sets and waits within an iteration need no turns;
the tokens of a loop can be its own; a set need not stand in a branch; two events can be one that is set behind the later set
and waited for in front of the earlier wait; a ring can take fewer turns. Every step orders more, never less. What it costs is
counted in the bytes that pipes move or compute in which they can no longer overlap. What is still too much becomes a full
barrier; the caller is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tilelang_npu.dialects import hivm
from tilelang_npu.transforms.hivm.sync.cover import EventPair
from tilelang_npu.transforms.hivm.sync.items import BlockItems

Name = tuple[tuple[str, str], int]
"""From pipe, to pipe, and the number of an event."""


@dataclass(frozen=True)
class PairPlace:
    """An event and the block it is in."""

    event: EventPair
    body: BlockItems

    @property
    def interval(self) -> tuple[int, int]:
        """From the first set to the last wait, in half positions of the function."""
        event, items = self.event, self.body.items
        if event.distance:
            loop = event.holder or self.body
            return 2 * (event.primed or loop).first - 1, 2 * loop.last + 1
        if event.early is not None:
            start = 2 * event.early.arm.items[event.early.set_after].last + 1
        else:
            start = 2 * items[event.set_after].last + 1 if event.set_after >= 0 else 2 * self.body.first
        return start, 2 * items[event.wait_before].first if event.wait_before < len(items) else 2 * self.body.last + 1

    @property
    def intervals(self) -> list[tuple[int, int]]:
        """All positions at which the event is outstanding, in half positions of the function.

        An event that is set in one arm of a branch is set at once in the other arm. Where that other arm comes first in the
        program, the event is outstanding in it too, although ``interval`` begins later::

            scf.if %a { set %e ... } else { work; set %e ... }
            wait %e
        """
        event, found = self.event, [self.interval]
        if event.early is not None:
            branch = self.body.items[event.set_after]
            blocks = [region.block for region in branch.op.regions if region.blocks]
            for other in blocks[:blocks.index(event.early.arm.block)]:
                inside = [item for block in branch.blocks if block.block is other for item in block.items]
                found += [(2 * inside[0].first - 1, 2 * inside[-1].last + 1)] if inside else []
        return found

    def meets(self, other: PairPlace) -> bool:
        """Whether two events can be outstanding together."""
        return any(a <= d and c <= b for a, b in self.intervals for c, d in other.intervals)


def free_numbers(used: Container[Name], source: str, target: str) -> list[int]:
    """Numbers of a pair of pipes that nobody uses, the toolchain's library neither, lowest first."""
    count = hivm.LIBRARY_EVENT if (source, target) in hivm.LIBRARY_PIPES else hivm.EVENT_IDS
    return [number for number in range(count) if ((source, target), number) not in used]


@dataclass
class Numbered:
    """What became of events that had no number.

    Attributes:
        idle: those that another one stands for now.
        left: those that found none.
    """

    idle: list[PairPlace] = field(default_factory=list)
    left: list[PairPlace] = field(default_factory=list)


def allocate(events: Sequence[PairPlace], used: Container[Name] = ()) -> Numbered:
    """Give every event its ids; returns those that have none.

    Args:
        events: the events; changed where there are too many.
        used: names that are taken: by the author's own flags, and by those that guard L0.
    """
    pairs: dict[tuple[str, str], list[PairPlace]] = defaultdict(list)
    for placed in events:
        pairs[placed.event.source, placed.event.target].append(placed)
    found = Numbered()
    for (source, target), group in sorted(pairs.items()):
        free = free_numbers(used, source, target)
        while failed := colour(group, free):
            step = min(_steps(group, failed), key=lambda one: one.loss, default=None)
            if step is None:
                break
            idle = step.take()
            found.idle += [placed for placed in group if placed.event in idle]
            group = [placed for placed in group if placed.event not in idle]
        found.left += failed
    return found


@dataclass(frozen=True)
class _Step:
    """A change that needs fewer numbers: what it costs, and what makes it and returns the events that it made idle."""

    loss: float
    take: Callable[[], Container[EventPair]]


def _steps(group: Sequence[PairPlace], failed: Sequence[PairPlace]) -> Iterator[_Step]:
    """What can be changed among the events that are outstanding together with one that found no number."""
    near = [placed for placed in group if any(placed.meets(other) for other in failed)]
    for place, placed in enumerate(near):
        event, body = placed.event, placed.body
        whole = 0, len(body.items)
        if event.primed is not None:
            yield _Step(0, partial(_prime_late, event))
        if event.early is not None:
            arm = event.early.arm
            yield _Step(arm.work(event.source, event.early.set_after + 1, len(arm.items)), partial(_set_late, event))
        if event.distance == 0 and event.slots > 1:
            yield _Step(0, partial(_take_turns, event, 1))
        elif event.slots > 1:
            # of a branch some iterations set nothing: with fewer numbers than slots a wait could miss the one that had its slot
            fewer = event.slots - 1 if body.loop is not None else 1
            yield _Step(body.work(event.source, *whole) + body.work(event.target, *whole), partial(_take_turns, event, fewer))
        if event.holder is not None and body.loop is not None:
            yield _Step(body.work(event.target, *whole), partial(_hold_itself, event))
        for other in near[place + 1:]:
            if other.body is body and _merges(event, other.event):
                sets = sorted((event.set_after, other.event.set_after))
                waits = sorted((event.wait_before, other.event.wait_before))
                loss = body.work(event.source, sets[0] + 1, sets[1] + 1) + body.work(event.target, *waits)
                yield _Step(loss, partial(_merge, event, other.event, [one.event for one in group if one.body is body]))


def _take_turns(event: EventPair, slots: int) -> Container[EventPair]:
    """Fewer ids for the iterations: a wait takes the set of an iteration that is nearer."""
    event.slots = slots
    event.distance = min(event.distance, slots)
    return ()


def _hold_itself(event: EventPair) -> Container[EventPair]:
    event.holder = event.primed = None
    return ()


def _set_late(event: EventPair) -> Container[EventPair]:
    event.early = None
    return ()


def _prime_late(event: EventPair) -> Container[EventPair]:
    event.primed = None
    return ()


def _merges(one: EventPair, two: EventPair) -> bool:
    """Whether one event can stand for two."""
    return (one.early is two.early is None and one.holder is two.holder and one.primed is two.primed
            and one.distance == two.distance and one.slots == two.slots
            and (one.distance > 0 or max(one.set_after, two.set_after) < min(one.wait_before, two.wait_before)))


def _merge(one: EventPair, two: EventPair, others: Sequence[EventPair]) -> Container[EventPair]:
    """Let one event stand for two, and for what lies between."""
    one.set_after = max(one.set_after, two.set_after)
    one.wait_before = min(one.wait_before, two.wait_before)
    idle = [event for event in others if event is not one and event.distance == one.distance
            and event.set_after <= one.set_after and event.wait_before >= one.wait_before]
    one.also += tuple(reason for event in idle for reason in (event.reason, *event.also))
    return idle


def colour(group: Sequence[PairPlace], numbers: Sequence[int],
           apart: Callable[[EventPair, EventPair], bool] = lambda one, other: False) -> list[PairPlace]:
    """Give each event the lowest numbers that nothing outstanding together with it has; returns those that found none.

    Args:
        group: the events.
        numbers: there are.
        apart: whether two must differ although one is over in the program before the other begins.
    """
    done: list[PairPlace] = []
    failed: list[PairPlace] = []
    for placed in sorted(group, key=lambda p: (p.interval, p.event.set_after, p.event.wait_before)):
        taken: set[int] = set()
        for other in done:
            if placed.meets(other) or apart(placed.event, other.event):
                taken.update(range(other.event.id, other.event.id + other.event.slots))
        free = [number for number in numbers if number not in taken]
        found = next((start for start in free
                      if all(start + turn in free for turn in range(placed.event.slots))), None)
        if found is None:
            failed.append(placed)
        else:
            placed.event.id = found
            done.append(placed)
    return failed
