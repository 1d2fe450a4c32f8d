"""An order of the steps of cores that repeat parts of their streams: equal periods of the order are kept once.

After some iterations of their loops, cores that run concurrently do the same again and again: the state of the order (the steps
that wait in queues, and the sets that no wait has consumed) is that of some iterations before. As long as all cores stay in
their loops, what follows is then the same too. The order has these steps once, and a :class:`Period` says how often more they
are executed. ``timing`` multiplies the time of a period when it no longer changes from one execution to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.machine.op_records import Event
from tilelang_npu.simulator.machine.repeated_events import Repeat, RepeatedStream, kept_events
from tilelang_npu.simulator.time.pipe_steps import Expansion
from tilelang_npu.simulator.time.step_order import CoreState, StepOrder

MOST_HELD = 256
"""A core with more waiting steps issues no further ones while other cores can go on, so that no core is iterations ahead."""


@dataclass(frozen=True)
class Period:
    """A part of an order that is executed several times.

    Attributes:
        first: the position of its first step.
        end: the position after its last step.
        more: how often it is executed after the first time.
        pending: the positions of the sets that no wait has consumed, in pairs: that of a set at the start of the period, and
            that of the set which is in its place at the end, and at the start of the next execution.
        inner: the periods inside of it.
    """

    first: int
    end: int
    more: int
    pending: tuple[tuple[int, int], ...]
    inner: tuple[Period, ...] = ()


@dataclass
class _Cursor:
    """The position of a core in its repeated parts.

    Attributes:
        repeats: the repeated parts of the core's stream.
        opened: the parts that the core is in, the innermost last: the position in ``repeats`` and the executions left.
        next_repeat: the position in ``repeats`` of the part that starts next.
        wraps: how often the core has begun a part again.
    """

    repeats: tuple[Repeat, ...]
    opened: list[list[int]] = field(default_factory=list)
    next_repeat: int = 0
    wraps: int = 0

    def stop(self, end: int) -> int:
        """Returns the position at which the core begins or ends a part, or the end of its stream."""
        following = self.repeats[self.next_repeat].start if self.next_repeat < len(self.repeats) else end
        return min(following, self.repeats[self.opened[-1][0]].end) if self.opened else following

    def step(self, place: int) -> int:
        """Begins and ends the parts at a position; returns the position from which the core continues."""
        while self.opened:
            number, left = self.opened[-1]
            one = self.repeats[number]
            if place != one.end:
                break
            if left:
                self.opened[-1][1] -= 1
                self.wraps += 1
                place, self.next_repeat = one.start, number + 1
                break
            self.opened.pop()
        while self.next_repeat < len(self.repeats) and self.repeats[self.next_repeat].start == place:
            self.opened.append([self.next_repeat, self.repeats[self.next_repeat].times - 1])
            self.next_repeat += 1
        return place


class PeriodicOrder(StepOrder):
    """An order of steps in which every wait follows its set, with equal periods kept once.

    The position of a step's op is that among the kept events of its stream.

    Args:
        cores, streams, expansions, limit: as for ``StepOrder``; a stream may be a ``RepeatedStream``.

    Attributes:
        periods: the parts of the order that are executed several times, from the first one on.

    Raises:
        TileError: the cores hang. The message is that of the shortened streams.
    """

    def __init__(self, cores: Sequence[CoreId], streams: Sequence[Sequence[Event]], expansions: Sequence[Expansion],
                 limit: int) -> None:
        self.periods: list[Period] = []
        self._cursors = [_Cursor(stream.repeats if isinstance(stream, RepeatedStream) else ()) for stream in streams]
        self._known: dict[tuple[object, ...], _OrderState] = {}
        super().__init__(cores, list(map(kept_events, streams)), expansions, limit)

    def _run(self) -> None:
        for core, cursor in zip(self._cores, self._cursors, strict=True):
            core.next_event = cursor.step(0)
            core.stop = cursor.stop(len(core.stream))
        moved, waited = True, False
        while moved or waited:
            moved, patient = False, not waited
            waited = False
            wraps = sum(cursor.wraps for cursor in self._cursors)
            for core, cursor in zip(self._cores, self._cursors, strict=True):
                before = len(self.steps)
                if patient and core.held > MOST_HELD:
                    self._drain(core)
                    waited = True
                    moved = moved or len(self.steps) != before
                    continue
                moved = self._advance(core) or moved
                if core.next_event == core.stop and core.next_step >= len(core.steps) and core.stop < self._end(core, cursor):
                    core.next_event = cursor.step(core.next_event)
                    core.stop = cursor.stop(len(core.stream))
                    moved = True
            if moved:
                waited = False
            if wraps != sum(cursor.wraps for cursor in self._cursors):
                self._find_period()
        super()._run()

    @staticmethod
    def _end(core: CoreState, cursor: _Cursor) -> int:
        """Returns a position that is larger than the core's only if the core has more to execute."""
        return core.stop + 1 if cursor.opened or cursor.next_repeat < len(cursor.repeats) else len(core.stream)

    def _find_period(self) -> None:
        """Records a period if the state is that of an earlier position, and leaves out its further executions."""
        if self.doubled or self.overflowed or any(core.unit_flags.passed_by or core.unit_flags.places[pipe]
                                                  for core in self._cores for pipe in core.unit_flags.places):
            return
        here = len(self.steps)
        state, pending = self._state()
        now = _OrderState(here, [[list(one) for one in cursor.opened] for cursor in self._cursors], pending)
        earlier = self._known.get(state)
        self._known[state] = now
        if earlier is None or earlier.place == here:
            return
        pairs = dict(zip(earlier.pending, pending, strict=True))
        if any(pairs[old] != new for old, new in zip(earlier.pending, pending, strict=True)):
            return  # one set for several cores, of which one is further
        more = _executions(earlier.opened, now.opened)
        if more <= 0:
            return
        for cursor, old in zip(self._cursors, earlier.opened, strict=True):
            for left, then in zip(cursor.opened, old, strict=True):
                left[1] -= more * (then[1] - left[1])
        inner = []
        while self.periods and self.periods[-1].first >= earlier.place:
            inner.append(self.periods.pop())
        self.periods.append(Period(earlier.place, here, more, tuple(pairs.items()), tuple(reversed(inner))))
        self._known = {key: found for key, found in self._known.items() if found.place <= earlier.place}
        self._known[state] = _OrderState(here, [[list(one) for one in cursor.opened] for cursor in self._cursors], pending)

    def _state(self) -> tuple[tuple[object, ...], tuple[int, ...]]:
        """Returns a key of the state of the order, which is equal where all that follows is equal, and the positions of the
        sets that no wait has consumed."""
        parts: list[object] = []
        pending: list[int] = []
        for core, cursor in zip(self._cores, self._cursors, strict=True):
            tokens = []
            for key, waiting in sorted(core.tokens.items(), key=lambda item: str(item[0])):
                if waiting:
                    tokens.append((key, tuple(map(len, waiting))))
                    pending += [place for places in waiting for place in places]
            parts.append((core.next_event, core.next_step, tuple(one[0] for one in cursor.opened),
                          tuple(tuple((id(step), number) for step, number in queue) for queue in core.queues), tuple(tokens),
                          frozenset((key, tuple(sets)) for key, sets in core.outstanding.items() if sets)))
        for flag, sets in self._rendezvous.waiting():
            parts.append((flag, len(sets)))
            pending += [int(place) for place in sets]  # type: ignore[call-overload]  # the tokens are positions
        return tuple(parts), tuple(pending)


@dataclass(frozen=True)
class _OrderState:
    """What is known of a position of the order at which some core has begun a part again.

    Attributes:
        place: the position.
        opened: for each core the parts that it is in, as in ``_Cursor``.
        pending: the positions of the sets that no wait has consumed, in the order of their keys.
    """

    place: int
    opened: list[list[list[int]]]
    pending: tuple[int, ...]


def _executions(before: list[list[list[int]]], now: list[list[list[int]]]) -> int:
    """Returns how often all cores can do again what they did between two positions with equal state; 0 if they cannot.

    Each core may have advanced in one of the repeated parts that it is in, by some executions.

    Args:
        before: for each core the parts that it was in at the first position, with the executions left.
        now: the same at the second position.
    """
    possible: list[int] = []
    for old, new in zip(before, now, strict=True):
        spent = [(then[1] - left[1], left[1]) for then, left in zip(old, new, strict=True) if then[1] != left[1]]
        if len(spent) > 1 or any(one < 0 for one, _ in spent):
            return 0
        possible += [left // one for one, left in spent]
    return min(possible, default=0)


__all__ = ["Period", "PeriodicOrder"]
