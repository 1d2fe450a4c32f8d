"""Allocates event ids: there are eight per ordered pair of pipes, and events that can be outstanding together need different
ids.

An event within an iteration is outstanding from its set to its wait. A loop-carried event is outstanding from before the loop
to after the loop around which its *tokens* (the sets before and the waits after a loop) are. An event with several slots
needs as many consecutive ids. If the ids of a pair of pipes run out, events are relaxed one change at a time. Each time, the
change with the least cost is made:

- the tokens of an event are set directly before the loop, and not before earlier operations;
- an event within an iteration uses one id instead of one per slot;
- the tokens of an event of an inner loop move from the outer loop to the inner loop;
- a set moves from inside a branch to after the branch;
- two events are merged into one, which is set after the later set and waited for before the earlier wait;
- a loop-carried event uses fewer ids than its buffer has slots.

A change only adds ordering. Its cost is the number of bytes that pipes access and that can no longer overlap. The caller of
``allocate_event_ids`` replaces events that still have no id with barriers of all pipes.

Ids that the author's events use are not allocated, and dependences that the author's events satisfy get no further events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import hivm
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Pipes, Queue
from tilelang_npu.transforms.hivm.sync.ordering import EventPair

EventName = tuple[Pipes, int]
"""The identity of an event on the hardware: ((setting pipe, waiting pipe), id)."""
EventOp = hivm.SetFlagOp | hivm.WaitFlagOp | hivm.MmadL1Op | hivm.BatchMmadL1Op
"""The operations that set events or wait for them."""


# The author's events


def event_uses(function: func.FuncOp) -> dict[EventName, list[EventOp]]:
    """Returns, for each event, the operations that may set the event or wait for it, in program order.

    An operation with a computed id is listed for each event whose id the value may have.
    """
    found: dict[EventName, list[EventOp]] = defaultdict(list)
    ranges = Ranges()
    for op in function.walk():
        if isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp)):
            number = op.event_id()
            if isinstance(number, SSAValue):
                known = ranges.of(number).meet(Interval(0, hivm.EVENT_IDS - 1))
            else:
                known = Interval.at(int(number))
            source, target = op.pipes()
            for each in known.numbers:
                found[(source, target), each].append(op)
        elif isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
            for event, value in op.shared_events():
                for each in ranges.of(value).meet(Interval(0, hivm.EVENT_IDS - 1)).numbers:
                    found[(event.source, event.target), each].append(op)
    return found


def author_event_pairs(body: BlockItems, uses: Mapping[EventName, list[EventOp]]) -> list[EventPair]:
    """Returns the author's pairs of a set and a wait in a block.

    Only events with a constant id, all of whose uses are in the block and alternate between set and wait, are returned.

    Args:
        body: the block.
        uses: the result of ``event_uses`` for the block's function.
    """
    # items_before[op]: how many items of the block are before a set or a wait
    items_before: dict[Operation, int] = {}
    count = 0
    for op in body.block.ops:
        if isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp)):
            items_before[op] = count
        count += body.items_per_op[op]
    events: list[EventPair] = []
    for ((source, target), number), ops in uses.items():
        sets, waits = ops[::2], ops[1::2]
        if len(sets) == len(waits) and all(
                isinstance(one, hivm.SetFlagOp) and isinstance(two, hivm.WaitFlagOp)
                and one in items_before and two in items_before
                and not isinstance(one.event_id(), SSAValue) and not isinstance(two.event_id(), SSAValue)
                for one, two in zip(sets, waits, strict=True)):
            events += [EventPair(source, target, items_before[one] - 1, items_before[two], 0, id=number)
                       for one, two in zip(sets, waits, strict=True)
                       if items_before[one] and items_before[two] < len(body.items)]
    return events


def free_event_ids(used: Container[EventName], source: Queue, target: Queue) -> list[int]:
    """Returns the ids of a pair of pipes that are not in ``used`` and not reserved by the toolchain's library, lowest first."""
    count = hivm.LIBRARY_EVENT if (source, target) in hivm.LIBRARY_PIPES else hivm.EVENT_IDS
    return [number for number in range(count) if ((source, target), number) not in used]


# Allocation


@dataclass(frozen=True)
class PlacedEvent:
    """An event and the block that contains its set and its wait."""

    event: EventPair
    body: BlockItems

    @property
    def span(self) -> tuple[int, int]:
        """The positions of the first set and of the last wait in the function: ``2 * p`` is operation ``p``, and ``2 * p + 1``
        is directly after operation ``p``."""
        event, items = self.event, self.body.items
        if event.distance:
            loop = event.token_loop or self.body
            return 2 * (event.tokens_before or loop).first - 1, 2 * loop.last + 1
        if event.branch_set is not None:
            start = 2 * event.branch_set.arm.items[event.branch_set.set_after].last + 1
        else:
            start = 2 * items[event.set_after].last + 1 if event.set_after >= 0 else 2 * self.body.first
        return start, 2 * items[event.wait_before].first if event.wait_before < len(items) else 2 * self.body.last + 1

    @property
    def outstanding_spans(self) -> list[tuple[int, int]]:
        """All spans of positions (see ``span``) in which the event is outstanding.

        An event that is set in one arm of a branch is set at the start of the other arm too. If that arm comes first in the
        program, the event is outstanding in it, although ``span`` begins later::

            scf.if %a { set %e ... } else { work; set %e ... }
            wait %e
        """
        event, found = self.event, [self.span]
        if event.branch_set is not None:
            branch = self.body.items[event.set_after]
            blocks = [region.block for region in branch.op.regions if region.blocks]
            for other in blocks[:blocks.index(event.branch_set.arm.block)]:
                inside = [item for block in branch.blocks if block.block is other for item in block.items]
                found += [(2 * inside[0].first - 1, 2 * inside[-1].last + 1)] if inside else []
        return found

    def overlaps(self, other: PlacedEvent) -> bool:
        """Whether two events can be outstanding at the same time."""
        return any(a <= d and c <= b for a, b in self.outstanding_spans for c, d in other.outstanding_spans)


@dataclass
class AllocationResult:
    """The events that received no id.

    Attributes:
        merged: the events that were merged into another event.
        failed: the events for which no id was left.
    """

    merged: list[PlacedEvent] = field(default_factory=list)
    failed: list[PlacedEvent] = field(default_factory=list)


def allocate_event_ids(events: Sequence[PlacedEvent], used: Container[EventName] = ()) -> AllocationResult:
    """Assigns ids to events, in place, and returns the events that received none.

    Args:
        events: the events. If there are not enough ids, they are changed so that they need fewer (see the module's docstring).
        used: events whose ids are not available: the author's, and those that guard L0A and L0B.
    """
    pairs: dict[Pipes, list[PlacedEvent]] = defaultdict(list)
    for placed in events:
        pairs[placed.event.source, placed.event.target].append(placed)
    found = AllocationResult()
    for (source, target), group in sorted(pairs.items()):
        free = free_event_ids(used, source, target)
        while failed := assign_ids(group, free):
            step = min(_relaxations(group, failed), key=lambda one: one.cost, default=None)
            if step is None:
                break
            idle = step.apply()
            found.merged += [placed for placed in group if placed.event in idle]
            group = [placed for placed in group if placed.event not in idle]
        found.failed += failed
    return found


def assign_ids(group: Sequence[PlacedEvent], ids: Sequence[int],
               must_differ: Callable[[EventPair, EventPair], bool] = lambda one, other: False) -> list[PlacedEvent]:
    """Assigns to each event as many ids as it has slots, the lowest ones that no event outstanding at the same time has.

    Returns the events for which no ids were left.

    Args:
        group: the events.
        ids: the available ids.
        must_differ: returns whether two events need different ids even if they are never outstanding at the same time.
    """
    done: list[PlacedEvent] = []
    failed: list[PlacedEvent] = []
    for placed in sorted(group, key=lambda p: (p.span, p.event.set_after, p.event.wait_before)):
        taken: set[int] = set()
        for other in done:
            if placed.overlaps(other) or must_differ(placed.event, other.event):
                taken.update(range(other.event.id, other.event.id + other.event.slots))
        free = [number for number in ids if number not in taken]
        found = next((start for start in free
                      if all(start + slot in free for slot in range(placed.event.slots))), None)
        if found is None:
            failed.append(placed)
        else:
            placed.event.id = found
            done.append(placed)
    return failed


# Relaxations


@dataclass(frozen=True)
class _Relaxation:
    """A change that needs fewer ids: its cost, and the function that makes it and returns the events that are merged away."""

    cost: float
    apply: Callable[[], Container[EventPair]]


def _relaxations(group: Sequence[PlacedEvent], failed: Sequence[PlacedEvent]) -> Iterator[_Relaxation]:
    """Yields the possible changes of events that are outstanding at the same time as one that found no id."""
    near = [placed for placed in group if any(placed.overlaps(other) for other in failed)]
    for place, placed in enumerate(near):
        event, body = placed.event, placed.body
        whole = 0, len(body.items)
        if event.tokens_before is not None:
            yield _Relaxation(0, partial(_set_tokens_at_loop, event))
        if event.branch_set is not None:
            arm = event.branch_set.arm
            yield _Relaxation(arm.accessed_nbytes(event.source, event.branch_set.set_after + 1, len(arm.items)),
                              partial(_set_after_branch, event))
        if event.distance == 0 and event.slots > 1:
            yield _Relaxation(0, partial(_use_ids, event, 1))
        elif event.slots > 1:
            # some iterations of a branch set nothing: with fewer ids than slots, a wait could miss the set of its slot
            fewer = event.slots - 1 if body.loop is not None else 1
            yield _Relaxation(body.accessed_nbytes(event.source, *whole) + body.accessed_nbytes(event.target, *whole),
                              partial(_use_ids, event, fewer))
        if event.token_loop is not None and body.loop is not None:
            yield _Relaxation(body.accessed_nbytes(event.target, *whole), partial(_hold_own_tokens, event))
        for other in near[place + 1:]:
            if other.body is body and _can_merge(event, other.event):
                sets = sorted((event.set_after, other.event.set_after))
                waits = sorted((event.wait_before, other.event.wait_before))
                cost = body.accessed_nbytes(event.source, sets[0] + 1, sets[1] + 1) + body.accessed_nbytes(event.target, *waits)
                yield _Relaxation(cost, partial(_merge, event, other.event, [one.event for one in group if one.body is body]))


def _use_ids(event: EventPair, count: int) -> Container[EventPair]:
    """Makes an event use only ``count`` ids, cyclically: a wait then waits for the set of a later iteration than before."""
    event.slots = count
    event.distance = min(event.distance, count)
    return ()


def _hold_own_tokens(event: EventPair) -> Container[EventPair]:
    event.token_loop = event.tokens_before = None
    return ()


def _set_after_branch(event: EventPair) -> Container[EventPair]:
    event.branch_set = None
    return ()


def _set_tokens_at_loop(event: EventPair) -> Container[EventPair]:
    event.tokens_before = None
    return ()


def _can_merge(one: EventPair, two: EventPair) -> bool:
    """Whether ``one``, set later and waited for earlier, can replace both events."""
    return (one.branch_set is two.branch_set is None and one.token_loop is two.token_loop
            and one.tokens_before is two.tokens_before and one.distance == two.distance and one.slots == two.slots
            and (one.distance > 0 or max(one.set_after, two.set_after) < min(one.wait_before, two.wait_before)))


def _merge(one: EventPair, two: EventPair, others: Sequence[EventPair]) -> Container[EventPair]:
    """Makes ``one`` replace both events, and all other events that it then implies; returns the replaced events."""
    one.set_after = max(one.set_after, two.set_after)
    one.wait_before = min(one.wait_before, two.wait_before)
    idle = [event for event in others if event is not one and event.distance == one.distance
            and event.set_after <= one.set_after and event.wait_before >= one.wait_before]
    one.merged_reasons += tuple(reason for event in idle for reason in (event.reason, *event.merged_reasons))
    return idle
