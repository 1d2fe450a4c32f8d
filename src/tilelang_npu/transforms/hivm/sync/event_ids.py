"""Event ids: eight for each ordered pair of pipes; two events that can be outstanding together need different ones.

An event within an iteration is outstanding from its set to its wait; one that crosses iterations, from in front of
the loop to behind it. Events that iterations take in turn need as many consecutive ids. Where the ids of a pair run
out, the events of that pair stop taking turns, and what is still too much becomes a full barrier; the caller is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass

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
            return 2 * self.body.first - 1, 2 * self.body.last + 1
        return 2 * items[event.set_after].last + 1, 2 * items[event.wait_before].first


def free_numbers(used: Container[Name], source: str, target: str) -> list[int]:
    """Numbers of a pair of pipes that nobody uses, the toolchain's library neither, lowest first."""
    count = hivm.LIBRARY_EVENT if (source, target) in hivm.LIBRARY_PIPES else hivm.EVENT_IDS
    return [number for number in range(count) if ((source, target), number) not in used]


def allocate(events: Sequence[PairPlace], used: Container[Name] = ()) -> list[PairPlace]:
    """Give every event its ids; returns those that found none.

    Args:
        events: the events.
        used: names that are taken: by the author's own flags, and by those that guard L0.
    """
    pairs: dict[tuple[str, str], list[PairPlace]] = defaultdict(list)
    for placed in events:
        pairs[placed.event.source, placed.event.target].append(placed)
    left: list[PairPlace] = []
    for (source, target), group in sorted(pairs.items()):
        free = free_numbers(used, source, target)
        failed = colour(group, free)
        if failed:
            for placed in group:
                _stop_alternating(placed.event)
            failed = colour(group, free)
        left += failed
    return left


def _stop_alternating(event: EventPair) -> None:
    """One id for all iterations: the next iteration's wait takes this iteration's set."""
    event.slots = 1
    event.distance = min(event.distance, 1)


def colour(group: Sequence[PairPlace], numbers: Sequence[int]) -> list[PairPlace]:
    """Give each event the lowest numbers that nothing outstanding together with it has; returns those that found none."""
    done: list[PairPlace] = []
    failed: list[PairPlace] = []
    for placed in sorted(group, key=lambda p: (p.interval, p.event.set_after, p.event.wait_before)):
        low, high = placed.interval
        taken: set[int] = set()
        for other in done:
            a, b = other.interval
            if a <= high and low <= b:
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
