"""Event streams and GM offsets of which a trace has recorded repeated parts once (``run/repeated_trace.py``).

Both are sequences with all their elements, for code that reads them one by one. Code that can use the repetition reads ``kept``
and ``repeats``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Event, Stream

Numbers = NDArray[np.int64]


class Repeat(NamedTuple):
    """A part of a sequence that is executed several times.

    Attributes:
        start: the position of the first element of the part among the kept elements.
        end: the position after its last element.
        times: how often the part is executed.
    """

    start: int
    end: int
    times: int


@dataclass(frozen=True)
class RepeatedStream(Sequence[Event]):
    """The events of one core in one block, with repeated parts kept once.

    Attributes:
        kept: the events, in order.
        repeats: the repeated parts, nested or disjoint, in the order of their starts, and an outer one before its inner ones.
    """

    kept: tuple[Event, ...]
    repeats: tuple[Repeat, ...]

    def counts(self) -> Counter[Event]:
        """Returns how often each event is executed."""
        found: Counter[Event] = Counter()
        for event, times in zip(self.kept, self._times(), strict=True):
            found[event] += times
        return found

    def _times(self) -> list[int]:
        """Returns how often the event at each kept position is executed."""
        times = np.ones(len(self.kept), np.int64)
        for start, end, repeated in self.repeats:
            times[start:end] *= repeated
        listed: list[int] = times.tolist()
        return listed

    @cached_property
    def _length(self) -> int:
        return sum(self._times())

    @cached_property
    def _all(self) -> tuple[Event, ...]:
        return tuple(self)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Event]:
        return self._part(0, len(self.kept), list(reversed(self.repeats)))

    def _part(self, start: int, end: int, left: list[Repeat]) -> Iterator[Event]:
        """Yields the events of a part; removes its repeats from the end of ``left``."""
        place = start
        while left and left[-1].end <= end:
            one = left.pop()
            inner: list[Repeat] = []
            while left and left[-1].start < one.end:
                inner.append(left.pop())
            yield from self.kept[place:one.start]
            for _ in range(one.times):
                yield from self._part(one.start, one.end, list(reversed(inner)))
            place = one.end
        yield from self.kept[place:end]

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Event, ...]: ...

    def __getitem__(self, index: int | slice) -> Event | tuple[Event, ...]:
        return self._all[index]

    def __reduce__(self) -> tuple[object, ...]:
        return RepeatedStream, (self.kept, self.repeats)


def first_executed(stream: Stream, count: int) -> Numbers:
    """Returns the positions, among the kept events of a stream, of at least the first ``count`` executed events; of all events
    if there are fewer."""
    if not isinstance(stream, RepeatedStream):
        return np.arange(len(stream))
    none = np.zeros(0, np.int64)
    repeats = [OffsetRepeat(*one, none) for one in stream.repeats]
    return _expanded(0, len(stream.kept), repeats, count)[0]


def counted(stream: Stream) -> Counter[Event]:
    """Returns how often each event of a stream is executed."""
    return stream.counts() if isinstance(stream, RepeatedStream) else Counter(stream)


def kept_events(stream: Stream) -> Stream:
    """Returns the events of a stream in the order of their first executions, some of them several times."""
    return stream.kept if isinstance(stream, RepeatedStream) else stream


def unrolled(stream: Stream) -> Stream:
    """Returns a stream with quick access to all of its events."""
    return tuple(stream) if isinstance(stream, RepeatedStream) else stream


class OffsetRepeat(NamedTuple):
    """A part of the GM offsets of a core that is executed several times.

    Attributes:
        start, end, times: as for ``Repeat``.
        growth: for each offset of the part, by how much it grows from one execution to the next.
    """

    start: int
    end: int
    times: int
    growth: Numbers


def _expanded(start: int, end: int, repeats: Sequence[OffsetRepeat], wanted: int) -> tuple[Numbers, Numbers]:
    """Returns, for at least the first ``wanted`` elements of a part, their positions among the kept elements and what to add.

    Args:
        start, end: the part.
        repeats: the repeated parts in it. A ``growth`` without elements is 0.
        wanted: the number of elements.
    """
    places: list[Numbers] = []
    sums: list[Numbers] = []
    have = 0

    def add(place: Numbers, added: Numbers) -> None:
        nonlocal have
        places.append(place)
        sums.append(added)
        have += len(place)

    at, number = start, 0
    while number < len(repeats) and have < wanted:
        one = repeats[number]
        following = number + 1
        while following < len(repeats) and repeats[following].start < one.end:
            following += 1
        add(np.arange(at, one.start), np.zeros(one.start - at, np.int64))
        place, added = _expanded(one.start, one.end, repeats[number + 1:following], wanted - have)
        times = min(one.times, -(-max(1, wanted - have) // max(1, len(place))))
        turns = np.repeat(np.arange(times, dtype=np.int64), len(place))
        grown = turns * np.tile(one.growth[place - one.start], times) if len(one.growth) else 0
        add(np.tile(place, times), np.tile(added, times) + grown)
        at, number = one.end, following
    if have < wanted:
        add(np.arange(at, end), np.zeros(end - at, np.int64))
    return (np.concatenate(places) if places else np.zeros(0, np.int64),
            np.concatenate(sums) if sums else np.zeros(0, np.int64))


class RepeatedOffsets(Sequence[int]):
    """The GM offsets of one core in one block, with repeated parts kept once.

    Args:
        kept: the offsets in the first execution of each part.
        repeats: the repeated parts, nested or disjoint, in the order of their starts, and an outer one before its inner ones.
    """

    def __init__(self, kept: Sequence[int], repeats: Sequence[OffsetRepeat]) -> None:
        self.kept: Numbers = np.array(kept, np.int64)
        self.repeats = tuple(repeats)

    def first(self, count: int) -> Numbers:
        """Returns the first ``count`` offsets; all of them if there are fewer."""
        place, added = _expanded(0, len(self.kept), self.repeats, count)
        return (self.kept[place] + added)[:count]

    @cached_property
    def _length(self) -> int:
        times = np.ones(len(self.kept), np.int64)
        for one in self.repeats:
            times[one.start:one.end] *= one.times
        return int(times.sum())

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...

    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        found: int | Sequence[int] = self.first(len(self))[index].tolist()
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self.first(len(self)).tolist())

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return self.first(len(self)).astype(dtype or np.int64)


def first_offsets(offsets: Sequence[int], count: int) -> Numbers:
    """Returns the first ``count`` GM offsets of a core."""
    if isinstance(offsets, RepeatedOffsets):
        return offsets.first(count)
    return np.asarray(offsets, np.int64)[:count]
