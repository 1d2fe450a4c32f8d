"""Detection of races and of wrong use of flags among cores that run together, with vector clocks (happens-before).

A *step* is one action of an op on one pipe (``PipeStep``). Each pipe of each core has a vector clock: for every other pipe, the
number of that pipe's steps that are known to be done before this pipe's next step. A wait takes over the clock of its set, a
barrier merges clocks, and the waits of the scalar unit also hold for every step that the scalar unit issues later.

Two accesses to the same bytes, at least one of them a write, must be ordered by the clocks; otherwise they are a race. The
steps of one pipe start in order, so a read that precedes a write of the same pipe is safe. A read or write of bytes that an
earlier step of the same pipe writes needs a ``pipe_barrier``, except on pipes S and M (the rule of AscendNPU-IR,
docs/hivm.md#waits).

The result depends neither on cycles nor on which of two unordered steps the walk over the steps visits first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Access, Barrier, Event, Footprint, OpRecord, footprint, number_of
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Kind, Site
from tilelang_npu.simulator.time.pipe_steps import (
    ALL,
    BARRIER,
    CROSS_SET,
    CROSS_WAIT,
    INTERNAL,
    JOIN,
    RELEASE,
    RUN,
    SET,
    WAIT,
)
from tilelang_npu.simulator.time.step_order import EventKey, Key, StepOrder
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import PIPES, Pipe

if TYPE_CHECKING:
    from tilelang_npu.diagnostic_codes import Code


def overlap(first: Footprint, second: Footprint) -> bool:
    """Whether two footprints have a byte in common. Both must be results of ``Footprint.simplified``."""
    if first.empty or second.empty or first.end <= second.offset or second.end <= first.offset:
        return False
    if not first.sizes and not second.sizes:
        return True
    return _shifted(first._replace(offset=0), second._replace(offset=0), second.offset - first.offset)


@lru_cache(maxsize=4096)
def _shifted(first: Footprint, second: Footprint, apart: int) -> bool:
    """Whether two footprints at offset 0 overlap if the second is moved by ``apart`` bytes."""
    if len(first.strides) == 1 and first.strides == second.strides and max(first.element, second.element) <= first.strides[0]:
        return _same_pitch(first, second, apart)
    starts, ends = _runs(first)
    others, other_ends = _runs(second._replace(offset=apart))
    return bool((np.searchsorted(ends, others, "right") < np.searchsorted(starts, other_ends, "left")).any())


def _same_pitch(first: Footprint, second: Footprint, apart: int) -> bool:
    """Whether two footprints of rows with equal stride overlap if the second starts ``apart`` bytes after the first."""
    pitch = first.strides[0]
    rows, others = first.sizes[0], second.sizes[0]
    for column, row in ((apart % pitch, apart // pitch), (apart % pitch - pitch, apart // pitch + 1)):
        # second row j starts at column ``column`` of row ``row + j`` of the first's grid
        meets = column < first.element and column + second.element > 0
        if meets and row < rows and row + others > 0:
            return True
    return False


def _runs(place: Footprint) -> tuple[Array, Array]:
    """Returns the start and end offsets of the contiguous runs of bytes of a footprint, sorted by start."""
    starts = np.asarray([place.offset], np.int64)
    for size, stride in zip(place.sizes, place.strides, strict=True):
        starts = (starts[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    starts.sort()
    return starts, starts + place.element


_IN_ORDER = frozenset({PIPES.index("S"), PIPES.index("M")})
"""Pipes whose steps always see the writes of earlier steps of the same pipe."""
COUNT = len(PIPES)
Places = Mapping[int, tuple[int, int]]
"""For each kernel argument (by position): the number of the memory range in GM that contains it, and its byte offset in that
range. Arguments that overlap share a range."""


class _Use(NamedTuple):
    """An earlier access that later accesses are compared with: its pipe's clock number, the pipe's tick (count of steps), the
    position of the step in the order, and the number of the op's access."""

    clock: int
    tick: int
    place: int
    access: int


@dataclass
class _Region:
    """The bytes of one footprint, the regions that overlap with it, and its latest write and the reads since then."""

    where: Footprint
    neighbours: list[_Region] = field(default_factory=list)
    write: _Use | None = None
    reads: dict[int, _Use] = field(default_factory=dict)


class _Memory:
    """The regions of one memory that were accessed so far."""

    def __init__(self) -> None:
        self._regions: dict[Footprint, _Region] = {}
        self._all: list[_Region] = []
        self._bounds: Array = np.empty((16, 2), np.int64)

    def region(self, where: Footprint) -> _Region:
        """Returns the region with a footprint; adds it at the first access."""
        found = self._regions.get(where)
        if found is None:
            found = self._regions[where] = self._add(where)
        return found

    def _add(self, where: Footprint) -> _Region:
        made = _Region(where)
        count = len(self._all)
        known = self._bounds[:count]
        for index in np.flatnonzero((known[:, 0] < where.end) & (known[:, 1] > where.offset)):
            other = self._all[index]
            if overlap(where, other.where):
                made.neighbours.append(other)
                other.neighbours.append(made)
        made.neighbours.append(made)
        if count == len(self._bounds):
            self._bounds = np.concatenate([self._bounds, np.empty_like(self._bounds)])
        self._bounds[count] = where.offset, where.end
        self._all.append(made)
        return made


def shared_memories(records: Sequence[Sequence[OpRecord]], places: Places) -> frozenset[int]:
    """Returns the numbers of the memory ranges in GM in which two accesses can conflict.

    These are the ranges that some op writes, except those that only one pipe accesses whose steps see the pipe's own writes.

    Args:
        records: for each core the records of its ops.
        places: the memory range of each kernel argument.
    """
    uses: dict[int, set[tuple[int, str]]] = {}
    written: set[int] = set()
    for core, known in enumerate(records):
        for record in known:
            for access in record.accesses:
                if access.memory == "gm":
                    memory = places[access.buffer][0]
                    uses.setdefault(memory, set()).add((core, access.pipe))
                    if access.writes:
                        written.add(memory)
    return frozenset(memory for memory in written
                     if len(uses[memory]) > 1 or any(PIPES.index(pipe) not in _IN_ORDER for _, pipe in uses[memory]))


HazardKey = tuple[Kind, int, int, int, int]
"""The kind of a hazard, and for each of its two ops the core and the number of the op's record."""
Waited = Key | tuple[int, ...] | str
"""What a wait is counted under: an event or flag, the pair of pipes of an event, or ``flags`` for all flags between cores."""


class _Walk:
    """The walk over a step order: the clocks, the regions of all memories, and the hazards found so far."""

    def __init__(self, order: StepOrder, cores: Sequence[CoreId], streams: Sequence[Sequence[Event]],
                 gm: Sequence[Sequence[int]], records: Sequence[Sequence[OpRecord]], places: Places) -> None:
        self.order, self.cores, self.streams, self.records = order, cores, streams, records
        self._holders = {(core.block, core.label): number for number, core in enumerate(cores)}
        self.places = places
        self.clocks = [[0] * (COUNT * len(cores)) for _ in range(COUNT * len(cores))]
        self.ticks = [0] * (COUNT * len(cores))
        self.sent: dict[int, list[int]] = {}
        self.version = [0] * len(cores)
        self.joined = [0] * (COUNT * len(cores))
        self.memories: dict[tuple[object, ...], _Memory] = {}
        self.regions: dict[tuple[int, Event, int], _Region] = {}
        self.shapes: dict[tuple[int, Event, int], Footprint] = {}
        self.touched: dict[tuple[int, Event, tuple[int, ...]], list[tuple[Access, _Region, int]]] = {}  # on-chip accesses only
        self.found: dict[HazardKey, Hazard] = {}
        self.met: dict[HazardKey, tuple[int, int]] = {}
        self.watched: dict[int, tuple[int, int, list[int]] | None] = {}
        self.turns: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        self.unordered: dict[tuple[int, int, int], tuple[int, Pipe, int, Pipe]] = {}
        self.waited: dict[int, tuple[int, int]] = {}
        self.waits: dict[tuple[int, Waited], tuple[int, int]] = {}
        self.last_set: dict[tuple[int, EventKey], tuple[int, int]] = {}
        self.set_early: set[tuple[int, EventKey, int, int]] = set()
        self.gm = gm
        self.gm_starts = [self._starts(index) for index in range(len(cores))]
        self.shared = shared_memories(records, places)
        self.barriers = frozenset(core for core, known in enumerate(records)
                                  if any(record.work == Barrier("ALL") for record in known[:-1]))  # every kernel ends with one

    def _starts(self, core: int) -> list[int]:
        """Returns, for each event of a core's stream, the position of its first offset among the core's GM offsets."""
        counts = [record.gm_operands for record in self.records[core]]
        numbers = [event if isinstance(event, int) else event[0] for event in self.streams[core]]
        return [0, *accumulate([counts[number] for number in numbers])]

    def walk(self) -> None:
        """Visits all steps in order, updates the clocks, and records the races in ``found``."""
        for place, (core, step, number, partners) in enumerate(self.order.steps.rows()):
            kind, pipe, other, event = step[:4]
            base = core * COUNT
            if pipe == ALL:
                self._drain_all(core)
                continue
            own = base + pipe
            if self.joined[own] != self.version[core]:
                self.joined[own] = self.version[core]
                self._join(own, self.clocks[base])
            if kind in (CROSS_SET, CROSS_WAIT):
                self._turn(core, own, kind, event, number)
            if kind == RUN:
                self._run(core, own, place, number, step.accesses)
            elif kind in (SET, CROSS_SET, RELEASE):
                if kind == SET:
                    self._set(core, own, (pipe, other, event), place, number)
                sent = self.clocks[own].copy()
                sent[own] = self.ticks[own]
                self.sent[place] = sent
            elif kind in (WAIT, CROSS_WAIT, JOIN):
                self.ticks[own] += kind == WAIT
                if kind != JOIN:
                    self._wait(core, (other, pipe, event) if kind == WAIT else event, number)
                for partner in partners:
                    self._join(own, self.sent[partner])
                    self.waited[partner] = own, self.ticks[own]
                if pipe == 0:
                    self.version[core] += 1
            elif kind == BARRIER:
                self.clocks[own][own] = self.ticks[own]
                if pipe == 0:
                    self.version[core] += 1

    def _wait(self, core: int, key: Key, number: int) -> None:
        """Counts a wait for its event or flag, and also for all events of the same two pipes, or for all flags."""
        if isinstance(key, tuple) and key[2] >= INTERNAL:
            return
        for place in ((core, key), (core, key[:2] if isinstance(key, tuple) else "flags")):
            self.waits[place] = self.waits.get(place, (0, 0))[0] + 1, number

    def _set(self, core: int, own: int, key: tuple[int, int, int], place: int, number: int) -> None:
        """Records an event that is set again although nothing orders this set after the wait for the previous set."""
        before = self.last_set.get((core, key))
        self.last_set[core, key] = place, number
        if before is not None:
            waiting, tick = self.waited.get(before[0], (own, self.ticks[own] + 1))
            if self.clocks[own][waiting] < tick:
                self.set_early.add((core, key, before[1], number))

    def _turn(self, core: int, own: int, kind: int, flag: int, number: int) -> None:
        """Records a set (or wait) of a flag between cores that nothing orders after the core's previous set (or wait) of it."""
        self.ticks[own] += 1
        before = self.turns.get((core, kind, flag))
        self.turns[core, kind, flag] = (own, self.ticks[own], number)
        if before is not None:
            last, tick, first = before
            if last not in (own, core * COUNT) and self.clocks[own][last] < tick:
                self.unordered.setdefault((core, kind, flag), (first, PIPES[last % COUNT], number, PIPES[own % COUNT]))

    def _join(self, own: int, known: list[int]) -> None:
        mine = self.clocks[own]
        for index, count in enumerate(known):
            if count > mine[index]:
                mine[index] = count

    def _drain_all(self, core: int) -> None:
        base = core * COUNT
        drained = [0] * len(self.ticks)
        for own in range(base, base + COUNT):
            drained = [max(pair) for pair in zip(drained, self.clocks[own], strict=True)]
            drained[own] = self.ticks[own]
        for own in range(base, base + COUNT):
            self.clocks[own] = drained.copy()

    def _run(self, core: int, own: int, place: int, number: int, indices: tuple[int, ...]) -> None:
        self.ticks[own] += 1
        if place in self.watched:
            self.watched[place] = own, self.ticks[own], self.clocks[own].copy()
        event = self.streams[core][number]
        key = core, event, indices
        touched = self.touched.get(key)
        if touched is None:
            accesses = self.records[core][number_of(event)].accesses
            touched, moves = [], False
            for index in indices:
                access = accesses[index]
                in_gm = access.memory == "gm"
                if not in_gm or self.places[access.buffer][0] in self.shared:
                    moves |= in_gm
                    region = self._region(core, number, event, index)
                    if region is not None:
                        touched.append((access, region, index))
            if not moves:
                self.touched[key] = touched
        for access, region, index in touched:
            self._check(own, place, access.reads, access.writes, region, index)
        for access, region, index in touched:
            use = _Use(own, self.ticks[own], place, index)
            if access.writes:
                region.write = use
                region.reads.clear()
            if access.reads:
                region.reads[own] = use

    def _region(self, core: int, number: int, event: Event, index: int) -> _Region | None:
        record = self.records[core][number_of(event)]
        access = record.accesses[index]
        if access.memory == "gm":
            before = sum(one.offset is None for one in record.accesses[:index])
            memory, delta = self.places[access.buffer]
            shape = self.shapes.get((core, event, index))
            if shape is None:
                shape = footprint(access, event)
                shape = self.shapes[core, event, index] = shape if shape.empty else shape.simplified()
            if shape.empty:
                return None
            offset = delta + self.gm[core][self.gm_starts[core][number] + before]
            where = Footprint(offset, shape.sizes, shape.strides, shape.element)
            return self.memories.setdefault(("gm", memory), _Memory()).region(where)
        key = (core, event, index)
        found = self.regions.get(key)
        if found is None:
            where = footprint(access, event)
            if where.empty:
                return None
            holder = self._holders.get((self.cores[core].block, access.holder), core)
            found = self.memories.setdefault((holder, access.memory), _Memory()).region(where.simplified())
            self.regions[key] = found
        return found

    def _check(self, own: int, place: int, reads: bool, writes: bool, region: _Region, index: int) -> None:
        mine = self.clocks[own]
        in_order = own if own % COUNT in _IN_ORDER else -1
        for other in region.neighbours:
            write = other.write
            if write is not None and write.clock != in_order and mine[write.clock] < write.tick:
                self._report("WAW" if writes and not reads else "RAW", write, own, place, other, region, index)
            if writes:
                for read in other.reads.values():
                    if read.clock != own and mine[read.clock] < read.tick:
                        self._report("WAR", read, own, place, other, region, index)

    # -- reports -------------------------------------------------------------------------------------------------------

    def site(self, core: int, number: int, pipe: Pipe, index: int = -1) -> Site:
        """Returns the report entry for the op of an event.

        Args:
            core: position of the core.
            number: position of the event in the core's stream.
            pipe: name of the pipe.
            index: number of the op's access; -1 for none.
        """
        stream, record = self.streams[core], self.records[core][number_of(self.streams[core][number])]
        before = sum(number_of(event) == record.number for event in stream[:number])
        operand = record.accesses[index].name if index >= 0 else ""
        return Site(record.mnemonic, record.location, pipe, self.cores[core].label, before, operand, record.number)

    def _report(self, kind: Kind, use: _Use, own: int, place: int, other: _Region, region: _Region, index: int) -> None:
        first, second = self.order.steps[use.place], self.order.steps[place]
        one = number_of(self.streams[first.core][first.number])
        two = number_of(self.streams[second.core][second.number])
        key = (kind, first.core, one, second.core, two)
        if key in self.found:
            return
        from_pipe, to_pipe = PIPES[use.clock % COUNT], PIPES[own % COUNT]
        code: Code = "S201"
        near = ""
        if use.clock == own:
            missing = f"pipe_barrier[PIPE_{to_pipe}] between {self._lines((first.core, one), (second.core, two))}"
        elif use.clock // COUNT == own // COUNT:
            missing = f"an event {from_pipe} -> {to_pipe} between {self._lines((first.core, one), (second.core, two))}"
            near = self._nearly(use, place, own)
        else:
            code = "S202"
            missing = f"a flag from {self.cores[first.core].label} {from_pipe} to {self.cores[second.core].label} {to_pipe}"
            if self.cores[first.core].block != self.cores[second.core].block:
                code = "S203"
                missing = f"a barrier of all blocks between {self._lines((first.core, one), (second.core, two))}"
        access = self.records[second.core][two].accesses[index]
        shift = self.places[access.buffer][1] if access.memory == "gm" else 0
        self.met[key] = use.place, place
        one_site = self.site(first.core, first.number, from_pipe, use.access)
        other_site = self.site(second.core, second.number, to_pipe, index)
        if code == "S203":
            one_site, other_site = (site._replace(core=f"{site.core} of block {self.cores[core].block}")
                                    for site, core in ((one_site, first.core), (other_site, second.core)))
        self.found[key] = Hazard(
            code, kind, one_site, other_site, name_of(access.memory),
            max(other.where.offset, region.where.offset) - shift, min(other.where.end, region.where.end) - shift, missing,
            self.cores[second.core].block, access.label, near, barriers=second.core in self.barriers)

    def _lines(self, *sites: tuple[int, int]) -> str:
        """Returns ``line 44 and line 36`` for two ops, given by their cores and numbers."""
        places = [self.records[core][number].location for core, number in sites]
        return " and ".join(f"line {place.line}" if place is not None else "an op" for place in places)

    def _nearly(self, use: _Use, place: int, own: int) -> str:
        """Returns a text about sets and waits between two racing steps that almost order them.

        These are sets by the first step's pipe and waits by the second step's pipe that do not belong to the same event. The
        text is empty if there are none.
        """
        source, target = use.clock % COUNT, own % COUNT
        said = []
        for at in range(use.place + 1, place):
            core, step, number, _ = self.order.steps[at]
            if core == own // COUNT and step.number < INTERNAL:
                location = self.records[core][number_of(self.streams[core][number])].location
                line = f" at line {location.line}" if location is not None else ""
                if step.kind == SET and (step.pipe, step.other) == (source, target):
                    said.append(f"EVENT_ID{step.number} is set{line}")
                elif step.kind == WAIT and (step.pipe, step.other) == (target, source):
                    said.append(f"EVENT_ID{step.number} is waited for{line}")
        return ", ".join(dict.fromkeys(said[-3:]))


def find_hazards(order: StepOrder, cores: Sequence[CoreId], streams: Sequence[Sequence[Event]], gm: Sequence[Sequence[int]],
                 records: Sequence[Sequence[OpRecord]], places: Places) -> list[Hazard]:
    """Returns the races among cores that run concurrently, in the order in which the walk finds them, and after them the faults
    of events and flags.

    Args:
        order: the step order of the cores.
        cores: the identity of each core.
        streams: the event stream of each core (its executed ops in program order).
        gm: for each core, the byte offsets of its GM accesses in program order.
        records: the op records of each core.
        places: the memory range of each kernel argument; arguments that overlap share a range.
    """
    walk = _Walk(order, cores, streams, gm, records, places)
    walk.walk()
    across = {key: met for key, met in walk.met.items() if walk.found[key].code == "S202"}
    if len(across) > 1:
        again = _Walk(order, cores, streams, gm, records, places)
        again.watched = dict.fromkeys(place for met in across.values() for place in met)
        again.walk()
        for key, number in _hand_overs(across, walk.found, again.watched).items():
            walk.found[key] = replace(walk.found[key], hand_over=number)
    return [*walk.found.values(), *_flag_faults(walk)]


def _hand_overs(across: Mapping[HazardKey, tuple[int, int]], found: Mapping[HazardKey, Hazard],
                seen: Mapping[int, tuple[int, int, list[int]] | None]) -> dict[HazardKey, int]:
    """Groups the races between two cores by the flag that can order them.

    Races between the same pipes of the same cores are in one group if none of them ends before another one begins, because one
    flag can then order them all.

    Args:
        across: for each race the positions of its two steps in the step order.
        found: the hazards.
        seen: for each such position the clock number of the step's pipe, the pipe's tick, and its vector clock.

    Returns:
        for each race the number of its group among the groups of the same pipes.
    """
    def ends_before(one: tuple[int, int], other: tuple[int, int]) -> bool:
        end, begin = seen[one[1]], seen[other[0]]
        assert end is not None and begin is not None
        return begin[2][end[0]] >= end[1] and end[0] != begin[0]

    groups: dict[tuple[object, ...], list[list[HazardKey]]] = {}
    for key, met in across.items():
        hazard = found[key]
        assert hazard.second is not None
        alike = groups.setdefault((hazard.block, hazard.first.core[:3], hazard.first.pipe, hazard.second.core[:3],
                                   hazard.second.pipe), [])
        for group in alike:
            if not any(ends_before(across[other], met) or ends_before(met, across[other]) for other in group):
                group.append(key)
                break
        else:
            alike.append([key])
    return {key: number for alike in groups.values() for number, group in enumerate(alike) for key in group}


def _flag_faults(walk: _Walk) -> list[Hazard]:
    order, cores = walk.order, walk.cores

    def fault(code: Code, core: int, number: int, pipe: Pipe, what: str, second: Site | None = None,
              flag: tuple[str, str] = ("", ""), near: str = "") -> Hazard:
        return Hazard(code, "flag", walk.site(core, number, pipe), second, "", 0, 0, what, cores[core].block, near=near,
                      flag=flag)

    faults = []
    for core, key, place in order.leftover:
        if isinstance(key, tuple) and key[2] >= INTERNAL:
            continue
        setter = order.steps[place]
        flag = (f"EVENT_ID{key[2]}", PIPES[key[1]]) if isinstance(key, tuple) else (f"flag {key}", cores[core].label)
        what = f"{flag[0]} for {flag[1]} is set and never waited for"
        faults.append(fault("S211", setter.core, setter.number, PIPES[setter.step.pipe], what, flag=flag,
                            near=f"it stays set after the block; {_waits(walk, core, key)}"))
    for core, key, first, second in order.doubled:
        if key[2] < INTERNAL and (core, key, first, second) in walk.set_early:
            pipe = PIPES[key[0]]
            flag = (f"EVENT_ID{key[2]}", PIPES[key[1]])
            what = f"{flag[0]} for {flag[1]} is set again before it was waited for"
            faults.append(fault("S212", core, second, pipe, what, walk.site(core, first, pipe), flag,
                                _waits(walk, core, key)))
    for core, number, place in order.overflowed:
        setter = order.steps[place]
        faults.append(fault("S213", setter.core, setter.number, PIPES[setter.step.pipe],
                            f"flag {number} has more sets outstanding than it can count",
                            flag=(f"flag {number}", cores[core].label),
                            near=f"it can count {order.limit} sets without a wait; {_waits(walk, core, number)}"))
    for (core, kind, number), (first, pipe, second, other) in walk.unordered.items():
        done = "set" if kind == CROSS_SET else "waited for"
        what = f"flag {number} is {done} by two pipes, and nothing decides which of the two comes first"
        faults.append(fault("S214", core, first, pipe, what, walk.site(core, second, other), (f"flag {number}", "")))
    return faults


def _waits(walk: _Walk, core: int, key: Waited) -> str:
    """Returns a text that says how often and where a core waits for an event or flag; if it never does, which other event or
    flag it waits for."""
    def line(number: int) -> str:
        place = walk.records[core][number_of(walk.streams[core][number])].location
        return f"line {place.line}" if place is not None else "an op"

    like: Waited
    if isinstance(key, tuple):
        name, instead, like = f"EVENT_ID{key[2]}", "another event of these pipes", key[:2]
    else:
        name, instead, like = f"flag {key}", "another flag", "flags"
    label = walk.cores[core].label
    count, last = walk.waits.get((core, key), (0, 0))
    if count:
        return f"{label} waits for {name} {count} times, the last at {line(last)}"
    if (core, like) in walk.waits:
        return f"{label} never waits for {name}; it waits for {instead} at {line(walk.waits[core, like][1])}"
    return f"{label} never waits for {name}"
