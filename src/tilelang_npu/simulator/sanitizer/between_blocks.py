"""Races between blocks: bytes of GM that one block writes and another reads or writes, with nothing between them.

Blocks run in any order and side by side. Unless all of them meet at a barrier, what two of them do to one byte is in no
order, however far apart they are launched. Atomic adds of both are no race. Nor are writes of the same value, which one that
wrote it may read: where writes meet, the blocks run once more, on copies, to see whether they leave the bytes as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.events import Access, Event, Footprint, OpRecord, footprint, number_of
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.shared_bytes import SharedMemory, memories
from tilelang_npu.simulator.run.recorded import BlockRun, Recorded
from tilelang_npu.simulator.sanitizer.finding import Hazard, Kind, Site
from tilelang_npu.target import name_of

MISSING = "an order between blocks: there is none; give each block its own part, add atomically, or meet at T.sync_all()"

REPLAYED = 8
"""Blocks of which what they write again is kept at a time."""
_NOBODY, _SEVERAL = -1, -2
"""Marks of bytes that no block writes, and that several write with the same value."""


class _BlockUse(NamedTuple):
    """One access to a memory.

    Attributes:
        access: what it does.
        shape: its footprint at offset 0.
        offset: where it is, in bytes from the start of the memory.
        lane, event: who did it, by position in the block's lanes and in the lane's stream.
    """

    access: Access
    shape: Footprint
    offset: int
    lane: int
    event: int

    @property
    def atomic(self) -> bool:
        return self.access.reads and self.access.writes


def find_between_blocks(recorded: Recorded) -> list[Hazard]:
    """The races between the blocks of a launch in which blocks do not wait for each other."""
    if len(recorded.blocks) < 2:
        return []
    found: list[Hazard] = []
    for memory in memories(recorded.bound.arrays):
        found += _Check(recorded, memory).run()
    return found


class _Check:
    """The search in one memory."""

    def __init__(self, recorded: Recorded, memory: SharedMemory) -> None:
        self.recorded = recorded
        self.memory = memory
        self.records = [recorded.program.functions[index].records for index, _ in recorded.program.lanes]
        self.found: dict[object, Hazard] = {}
        self._runs = {run.block: run for run in recorded.blocks}
        self._replayed: dict[int, Sequence[Array | None]] = {}
        self._places: dict[tuple[int, int], list[tuple[int, int, Access, Footprint]]] = {}
        accesses = [access for records in self.records for record in records for access in record.accesses
                    if access.memory == "gm" and access.buffer in memory.delta]
        self.written = any(access.writes for access in accesses)
        self.grain = 0
        """Bytes that are marked as one: all accesses begin, end and step at multiples of it."""

    def run(self) -> list[Hazard]:
        if not self.written or not self._may_meet():
            return []
        return self._marked()

    def _listed(self, lane: int, stream: Sequence[Event]) -> list[tuple[int, int, Access, Footprint]]:
        """The accesses of a stream to this memory: place among the GM offsets, place in the stream, access, footprint."""
        key = id(self.records[lane]), id(stream)  # cores of both kinds may have equal streams
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = list(self._list(self.records[lane], stream))
            for shape in {shape for _, _, _, shape in known}:
                self.grain = gcd(self.grain, shape.element, *shape.strides)
        return known

    def _list(self, records: Sequence[OpRecord], stream: Sequence[Event]) -> Iterator[tuple[int, int, Access, Footprint]]:
        mine = {record.number: [(place, access) for place, access in enumerate(a for a in record.accesses if a.offset is None)
                                if access.buffer in self.memory.delta] for record in records}
        counts = [record.gm_operands for record in records]
        position = 0
        for place, event in enumerate(stream):
            number = number_of(event)
            for operand, access in mine[number]:
                shape = footprint(access, event)
                if not shape.empty:
                    yield position + operand, place, access, shape.simplified()
            position += counts[number]

    def _uses(self, run: BlockRun) -> Iterator[_BlockUse]:
        for lane, (stream, offsets) in enumerate(zip(run.streams, run.gm, strict=True)):
            for where, place, access, shape in self._listed(lane, stream):
                yield _BlockUse(access, shape, offsets[where] + self.memory.delta[access.buffer], lane, place)

    def _may_meet(self) -> bool:
        """Whether the stretches of memory that two blocks touch, from first to last byte, overlap."""
        alike: dict[tuple[int, int], list[int]] = {}  # by lane and stream, the blocks that did just that
        for place, run in enumerate(self.recorded.blocks):
            for lane, stream in enumerate(run.streams):
                alike.setdefault((lane, id(stream)), []).append(place)
        lows = np.full(len(self.recorded.blocks), self.memory.size, np.int64)
        highs = np.zeros_like(lows)
        for (lane, _), places in alike.items():
            runs = [self.recorded.blocks[place] for place in places]
            listed = self._listed(lane, runs[0].streams[lane])
            if listed:
                picked = [where for where, _, _, _ in listed]
                starts = np.array([run.gm[lane] for run in runs], np.int64)[:, picked]
                starts += [self.memory.delta[access.buffer] for _, _, access, _ in listed]
                self.grain = gcd(self.grain, int(np.gcd.reduce(starts, axis=None)))
                lows[places] = np.minimum(lows[places], starts.min(axis=1))
                highs[places] = np.maximum(highs[places], (starts + [shape.end for _, _, _, shape in listed]).max(axis=1))
        touched = np.flatnonzero(lows < highs)
        order = touched[np.argsort(lows[touched], kind="stable")]
        return bool((lows[order[1:]] < np.maximum.accumulate(highs[order])[:-1]).any())

    def _marked(self) -> list[Hazard]:
        """Mark each written byte with its block, then look whose marks others meet."""
        self.writer = np.full(-(-self.memory.size // self.grain), _NOBODY, np.int32)
        accesses = [access for records in self.records for record in records for access in record.accesses]
        adds = any(access.reads and access.writes for access in accesses)
        self.adder = np.full_like(self.writer, _NOBODY) if adds else None
        for run in self.recorded.blocks:
            for use in self._uses(run):
                if use.access.writes:
                    self._write(run, use)
        own = np.full_like(self.writer, _NOBODY)
        for run in self.recorded.blocks:
            for use in self._uses(run):
                if use.access.writes and not use.atomic:
                    self._view(own, use)[...] = run.block
            for use in self._uses(run):
                if not use.access.writes:
                    seen = self._view(self.writer, use)
                    harmless = (seen == run.block) | ((seen == _SEVERAL) & (self._view(own, use) == run.block))
                    self._meet(run, use, seen, (seen != _NOBODY) & ~harmless)
                    self._meet_adds(run, use)
        return list(self.found.values())

    def _write(self, run: BlockRun, use: _BlockUse) -> None:
        seen = self._view(self.writer, use)
        others = (seen != _NOBODY) & (seen != run.block)
        if use.atomic:
            self._meet(run, use, seen, others)
            assert self.adder is not None
            self._view(self.adder, use)[...] = run.block
            return
        self._meet_adds(run, use)
        if not others.any():
            seen[...] = run.block
            return
        blocks = {run.block, *np.unique(seen[others]).tolist()} - {_SEVERAL}
        self.recorded.replay.settle(blocks)
        if all(self._leaves(block, use, others) for block in blocks):
            seen[...] = np.where(others, _SEVERAL, run.block)
        else:
            self._meet(run, use, seen, others)
            seen[...] = run.block

    def _meet_adds(self, run: BlockRun, use: _BlockUse) -> None:
        if self.adder is not None:
            seen = self._view(self.adder, use)
            self._meet(run, use, seen, (seen != _NOBODY) & (seen != run.block))

    def _view(self, mark: NDArray[np.int32], use: _BlockUse) -> NDArray[np.int32]:
        grain, shape = self.grain, use.shape
        strides = (*(stride // grain * mark.itemsize for stride in shape.strides), mark.itemsize)
        start = use.offset // grain * mark.itemsize
        return np.ndarray((*shape.sizes, shape.element // grain), mark.dtype, mark, start, strides)

    def _byte(self, use: _BlockUse, at: Sequence[np.intp]) -> int:
        steps = (*use.shape.strides, self.grain)
        return use.offset + sum(int(place) * step for place, step in zip(at, steps, strict=True))

    def _meet(self, run: BlockRun, use: _BlockUse, seen: NDArray[np.int32], others: NDArray[np.bool_]) -> None:
        """Report the first byte at which a use meets the marks of another block."""
        if not others.any():
            return
        at = np.unravel_index(int(others.argmax()), seen.shape)
        byte = self._byte(use, at)
        first_run, first = next((other, each) for other in self.recorded.blocks
                                if other.block == seen[at] or (seen[at] == _SEVERAL and other.block != run.block)
                                for each in self._uses(other) if each.access.writes and each.shape.touches(byte - each.offset))
        key = (first.lane, self._record(first_run, first).number, use.lane, self._record(run, use).number)
        if key not in self.found:
            start, end = self._common(first, use, byte)
            delta = self.memory.delta[use.access.buffer]
            kind: Kind = "WAW" if use.access.writes else "RAW"
            self.found[key] = Hazard("S203", kind, self._site(first_run, first), self._site(run, use), name_of("gm"),
                                     start - delta, end - delta, MISSING, run.block, use.access.label)

    def _common(self, first: _BlockUse, second: _BlockUse, byte: int) -> tuple[int, int]:
        """The run of bytes around ``byte`` that both touch."""
        start, end = 0, self.memory.size
        for use in (first, second):
            rest = byte - use.offset
            for stride, size in zip(use.shape.strides, use.shape.sizes, strict=True):
                rest -= min(max(rest // stride, 0), size - 1) * stride
            start, end = max(start, byte - rest), min(end, byte - rest + use.shape.element)
        return start, end

    def _leaves(self, block: int, use: _BlockUse, where: NDArray[np.bool_]) -> bool:
        """Whether a block, run again, leaves some of the bytes of a use as they are: others wrote the same values."""
        if len(self.memory.delta) > 1:
            return False  # copies of arguments that share bytes would not
        after = self._replayed.get(block)
        if after is None:
            if len(self._replayed) == REPLAYED:
                self._replayed.clear()
            again = self.recorded.replay.behind(self._runs[block])
            if again is None:
                return True  # not decided: the replay says so
            after = [array if number in self.memory.delta else None for number, array in enumerate(again.arrays)]
            self._replayed[block] = after
        grain, shape = self.grain, use.shape
        sizes, strides = (*shape.sizes, shape.element // grain, grain), (*shape.strides, grain, 1)
        offset = use.offset - self.memory.delta[use.access.buffer]
        one, two = (np.ndarray(sizes, np.uint8, arrays[use.access.buffer], offset, strides)
                    for arrays in (after, self.recorded.replay.arrays))
        return bool(np.array_equal(one[where], two[where]))

    def _record(self, run: BlockRun, use: _BlockUse) -> OpRecord:
        return self.records[use.lane][number_of(run.streams[use.lane][use.event])]

    def _site(self, run: BlockRun, use: _BlockUse) -> Site:
        record = self._record(run, use)
        before = sum(number_of(event) == record.number for event in run.streams[use.lane][:use.event])
        label = self.recorded.program.core_ids(run.block)[use.lane].label
        return Site(record.mnemonic, record.location, use.access.pipe, f"{label} of block {run.block}", before, use.access.name,
                    record.number)
