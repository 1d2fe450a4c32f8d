"""Tracing of blocks with long loops: iterations that only repeat earlier ones are not executed.

The generated code runs with a ``LoopInt`` in place of the induction variable of a counted loop (``machine/loop_integers.py``).
While an iteration runs, its comparisons and remainders tell which later iterations it represents: they issue the same events,
at offsets in GM that grow linearly. So the work of a trace is proportional to the distinct iterations of each loop, and so is
the memory of its record. Loops of which each iteration differs, such as those that contain a loop with another trip count in
each iteration, are executed as written, with the loops in them shortened.

Each core is traced on its own: no core waits for a flag of another one. Cores that hang are found when the steps of the block
are ordered. After any error the caller traces the usual way, so that the error message is the usual one.
"""

from __future__ import annotations

import ast
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.sharing import parse_python
from tilelang_npu.simulator.machine.batched_integers import NotBatchableError
from tilelang_npu.simulator.machine.core_coroutines import FLAGS
from tilelang_npu.simulator.machine.cube_products import NoProducts
from tilelang_npu.simulator.machine.loop_integers import LoopInt, SampledLoop, Unread, viewed
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Event, Stream
from tilelang_npu.simulator.machine.placeholder_data import PlaceholderData
from tilelang_npu.simulator.machine.repeated_events import OffsetRepeat, Repeat, RepeatedOffsets, RepeatedStream
from tilelang_npu.simulator.run.arguments import BoundArguments
from tilelang_npu.simulator.run.bound_core import BoundCore, LaunchResources, cores_of_block
from tilelang_npu.simulator.run.loop_limits import LoopGuard
from tilelang_npu.simulator.run.recorded_launch import BlockRun
from tilelang_npu.target.chip_data import CoreKind

if TYPE_CHECKING:
    from tilelang_npu.simulator.run.program import Program

LEAST_EVENTS = 50_000
"""Least number of events of a block whose record keeps repeated parts once; shorter blocks are traced the usual way."""
LEAST_TRIPS = 4
"""Least trip count of a loop that is sampled."""
LONGEST_PERIOD = 4096
"""Largest number of iterations that repeat together."""
MOST_SINGLE = 64
"""Number of iterations in a row that represent no others, after which all further ones of the loop are executed as they are."""


class _Placeholders(PlaceholderData):
    """Supplies 0 for floats from memory; gives up where the control flow could depend on a number from memory."""

    def read(self, element: Array | Unread) -> float:
        """Returns 0 for a float; raises ``NotBatchableError`` for an integer or a truth value."""
        if element.dtype.kind in "iub":
            raise NotBatchableError
        return 0.0

    def note_scalars(self, block: object, sub: int, *numbers: object) -> None:
        """Records nothing: events of a trace with repetitions are not executed again."""


@dataclass
class _Unit:
    """A part of the events of a loop: consecutive executions of equal iterations, or of equal groups of iterations.

    Attributes:
        start: the position of the first event.
        events: the events of one execution; empty for a group.
        inner: the repeats in one execution, with positions relative to ``start`` or, for a group, with those of the record.
        length: the number of kept events.
        count: the number of executions.
        is_group: whether the unit is a group.
    """

    start: int
    events: tuple[Event, ...]
    inner: tuple[Repeat, ...]
    length: int
    count: int = 1
    is_group: bool = False

    def equals(self, other: _Unit) -> bool:
        """Whether both are executions of equal iterations."""
        return not self.is_group and not other.is_group and self.events == other.events and self.inner == other.inner

    def repeats(self) -> Iterator[Repeat]:
        """Yields the repeats of the unit, an outer one before its inner ones."""
        if self.count > 1 and self.length:
            yield Repeat(self.start, self.start + self.length, self.count)
        if self.is_group:
            yield from self.inner
        else:
            for start, end, count in self.inner:
                yield Repeat(self.start + start, self.start + end, count)


class SamplingGuard(LoopGuard):
    """Executes only some iterations of the counted loops of a core, and records which others they represent.

    Args:
        core, most_ops: as for ``LoopGuard``.

    Attributes:
        offsets: the GM offsets of the block so far.
        sites: the loops, by their lines in the generated code, whose iterations pass no value to later ones.
        offset_repeats: the repeated parts of ``offsets``.
    """

    def __init__(self, core: CoreKind, most_ops: int | None = None) -> None:
        super().__init__(core, most_ops)
        self.offsets: list[int | LoopInt] = []
        self.sites: frozenset[int] = frozenset()
        self.start()

    def start(self) -> None:
        """Prepares for a new block."""
        self.offset_repeats: list[OffsetRepeat] = []
        self._repeats: list[list[Repeat]] = [[]]  # of the iterations that are executed now, the innermost loop's last

    @property
    def repeats(self) -> list[Repeat]:
        """The repeated parts of the events, after the block has run."""
        return self._repeats[0]

    def guarded_range(self, trips: range, events: Sequence[object], block: int, sub: int, known: bool = True) -> Iterable[int]:
        """Returns the values of the induction variable in the iterations that are executed."""
        site = sys._getframe(1).f_lineno
        if len(trips) < LEAST_TRIPS or site not in self.sites:
            return super().guarded_range(trips, events, block, sub, known)
        assert isinstance(events, list)
        return self._iterations(trips, events)  # type: ignore[return-value]  # a LoopInt takes the place of an int

    def _iterations(self, trips: range, events: list[Event]) -> Iterator[int | LoopInt]:
        loop = SampledLoop(len(trips), len(self._repeats))
        single = 0
        units: list[_Unit] = []
        index = 0
        while index < len(trips):
            first, segment, offset = index, len(units), len(self.offsets)
            times, limits, sampled = 1, [loop.count], single < MOST_SINGLE
            loop.period = 1
            while True:  # the iterations of a segment, which repeats as a whole
                mark = len(events)
                self._repeats.append([])
                loop.index, loop.limit = index, loop.count
                yield LoopInt(trips[index], {loop: trips.step}) if sampled else trips[index]
                inner = tuple(Repeat(start - mark, end - mark, count) for start, end, count in self._repeats.pop())
                unit = _Unit(mark, tuple(map(_known, events[mark:])), inner, len(events) - mark)
                events[mark:] = unit.events
                _append(units, unit, segment, events)
                index += 1
                limits.append(loop.limit + first - (index - 1))  # as if it were that of the first iteration
                if not sampled or index - 1 + loop.period >= loop.limit or index == loop.count:
                    break
                if loop.period > LONGEST_PERIOD:
                    single = MOST_SINGLE
                    break
                if index - first == loop.period:
                    times = -(-(min(limits) - first) // loop.period)
                    break
            single = 0 if times > 1 else single + 1
            if times > 1:
                self._repeat_offsets(offset, times, loop)
                index = first + times * loop.period
                _repeat(units, segment, times)
            if len(units) == segment + 1 and segment and units[segment - 1].equals(units[segment]):
                last = units.pop()
                del events[last.start:]
                units[-1].count += last.count
        self._repeats[-1] += [one for unit in units for one in unit.repeats()]

    def _repeat_offsets(self, first: int, times: int, loop: SampledLoop) -> None:
        """Records that the GM offsets from position ``first`` on are repeated, and grow as they depend on the loop."""
        growth = np.zeros(len(self.offsets) - first, np.int64)
        for place in range(first, len(self.offsets)):
            offset = self.offsets[place]
            if isinstance(offset, LoopInt) and loop in offset.slopes:
                growth[place - first] = int(offset.slopes[loop] * loop.period)
        self.offset_repeats.append(OffsetRepeat(first, len(self.offsets), times, growth))


def _known(event: Event) -> Event:
    """Returns an event with plain integers; an iteration on which one of them depends represents no other iteration."""
    if isinstance(event, int):
        return event
    facts: tuple[int | LoopInt, ...] = event
    return tuple([fact.plain() if isinstance(fact, LoopInt) else fact for fact in facts])


def _append(units: list[_Unit], unit: _Unit, first: int, events: list[Event]) -> None:
    """Appends an iteration to the units of a loop. One that equals the unit before, from position ``first`` on, is counted
    there, and its events are removed."""
    if len(units) > first and units[-1].equals(unit):
        units[-1].count += 1
        del events[unit.start:]
    else:
        units.append(unit)


def _repeat(units: list[_Unit], first: int, times: int) -> None:
    """Notes that the units from position ``first`` on are repeated, each in turn."""
    if len(units) == first + 1:
        units[first].count *= times
        return
    parts = units[first:]
    inner = tuple(one for part in parts for one in part.repeats())
    end = parts[-1].start + parts[-1].length
    units[first:] = [_Unit(parts[0].start, (), inner, end - parts[0].start, times, is_group=True)]


def trace_repeated(program: Program, bound: BoundArguments, blocks: int) -> list[BlockRun] | None:
    """Returns the records of all blocks of a launch, in the order of blocks; None if they must be traced the usual way.

    Args:
        program: the kernel, whose ops do not depend on data.
        bound: the arguments of the launch.
        blocks: the number of blocks.
    """
    guards: list[SamplingGuard] = []

    def guard(core: CoreKind, most_ops: int | None) -> SamplingGuard:
        guards.append(SamplingGuard(core, most_ops))
        return guards[-1]

    sources = [function.source for function in program.traced]
    if not any(map(repeatable_loops, sources)):
        return None
    resources = LaunchResources(program.traced, None, NoProducts, 0, [_Placeholders() for _ in program.traced], viewed,
                                guard=guard)
    found: list[BlockRun] = []
    interned: dict[Stream, Stream] = {}
    try:
        lanes = cores_of_block(program, bound, blocks, resources)
        for one, (index, _) in zip(guards, program.lanes, strict=True):
            one.sites = repeatable_loops(sources[index])
        for block in range(blocks):
            streams: list[Stream] = []
            offsets: list[Sequence[int]] = []
            for lane, one in zip(lanes, guards, strict=True):
                _trace(lane, one, block)
                kept = tuple(lane.events)
                stream = RepeatedStream(kept, tuple(one.repeats)) if one.repeats else kept
                streams.append(interned.setdefault(stream, stream))
                offsets.append(_offsets(one))
            if not found and sum(map(len, streams)) < LEAST_EVENTS:
                return None
            found.append(BlockRun(block, tuple(streams), tuple(offsets)))
    except (TileError, NotBatchableError, ArithmeticError, ValueError, TypeError, IndexError):
        return None
    return found


def _trace(lane: BoundCore, guard: SamplingGuard, block: int) -> None:
    """Traces one core of a block."""
    lane.start()
    guard.start()
    guard.offsets = lane.gm  # type: ignore[assignment]  # a trace may append a LoopInt
    made = lane.run(block, lane.events, lane.gm, [1 << 62] * FLAGS, _ignore)
    if lane.function.switches:
        for _ in made or ():
            raise NotBatchableError  # waits for something that no flag ends


def _ignore(flag: int, group: str) -> None:
    """Does nothing: no core waits for a flag."""


def _offsets(guard: SamplingGuard) -> Sequence[int]:
    """Returns the GM offsets of the block that a guard has seen."""
    kept = [offset.base if isinstance(offset, LoopInt) else offset for offset in guard.offsets]
    if not guard.offset_repeats:
        return array("q", kept)
    outer_first = reversed(guard.offset_repeats)  # the order of two parts with equal ends, of which the inner one ended first
    return RepeatedOffsets(kept, sorted(outer_first, key=lambda one: (one.start, -one.end)))


@lru_cache(256)
def repeatable_loops(source: str) -> frozenset[int]:
    """Returns the lines of the counted loops of generated code in which no iteration passes a value to a later one.

    Generated code assigns each name once, except those that loops pass on: these are also assigned before the loop.

    Args:
        source: the code of a traced function.
    """
    tree = parse_python(source)
    assigned: dict[str, list[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in ("ev", "gm"):
            assigned.setdefault(node.id, []).append(node.lineno)
    found = set()
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For)):
        call = loop.iter
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "guarded_range"):
            continue
        begin, end = loop.lineno, loop.end_lineno or loop.lineno
        passes_on = any(any(begin <= line <= end for line in lines) and not all(begin <= line <= end for line in lines)
                        for lines in assigned.values())
        waits = any(isinstance(node, ast.While) and not _is_flag_wait(node) for node in ast.walk(loop))
        if not passes_on and not waits:
            found.add(loop.lineno)
    return frozenset(found)


def _is_flag_wait(node: ast.While) -> bool:
    """Whether a loop waits for a flag of another core."""
    return "counts" in {inner.id for inner in ast.walk(node.test) if isinstance(inner, ast.Name)}


__all__ = ["LEAST_EVENTS", "SamplingGuard", "repeatable_loops", "trace_repeated"]
