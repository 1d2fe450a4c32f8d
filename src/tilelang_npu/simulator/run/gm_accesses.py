"""Accesses of a launch's blocks to one memory range in GM, and whether accesses of different blocks overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.aliasing_arguments import MemoryRange
from tilelang_npu.simulator.machine.op_records import Access, Event, Footprint, OpRecord, accesses_to_gm, footprint
from tilelang_npu.simulator.run.recorded_launch import BlockRun, OffsetsOfBlock, offsets_key, positions

NOBODY = -1
"""Mark of bytes that no block accesses."""
AT_ONCE = 1 << 20
"""Number of marks that are compared at a time."""
_Listed = tuple[int, int, Access, Footprint]
"""Position among the GM offsets, position in the stream, access, footprint."""


class GmAccess(NamedTuple):
    """One access to the memory range.

    Attributes:
        access: the access of the op's record.
        shape: its footprint at offset 0.
        offset: its offset in bytes from the start of the range.
        lane, event: the core, by position in the block, and the position in its stream.
    """

    access: Access
    shape: Footprint
    offset: int
    lane: int
    event: int

    @property
    def atomic(self) -> bool:
        return self.access.adds


class GmAccesses:
    """The accesses of the blocks of a launch to one memory range.

    Args:
        records: for each core of a block, the records of its ops.
        blocks: the recorded blocks.
        memory: the memory range.

    Attributes:
        accesses: the accesses of all records to it.
        grain: bytes per mark: a divisor of all offsets, sizes and strides; computed by ``may_overlap``.
    """

    def __init__(self, records: Sequence[Sequence[OpRecord]], blocks: Sequence[BlockRun], memory: MemoryRange) -> None:
        self.records, self.blocks, self.memory = records, blocks, memory
        self.accesses = [access for ops in records for record in ops for access in record.accesses if self._is_here(access)]
        self.grain = 0
        self._places: dict[tuple[int, int], list[_Listed]] = {}

    @property
    def written(self) -> bool:
        return any(access.writes for access in self.accesses)

    def _listed(self, lane: int, stream: Sequence[Event]) -> list[_Listed]:
        """Returns the accesses of a stream to this memory range."""
        key = id(self.records[lane]), id(stream)  # a Cube core and a Vector core may have equal streams
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = [
                (offset, place, access, shape.simplified())
                for offset, place, event, access in accesses_to_gm(self.records[lane], stream, self._is_here)
                if not (shape := footprint(access, event)).empty]
            for shape in {shape for _, _, _, shape in known}:
                self.grain = gcd(self.grain, shape.element, *shape.strides)
        return known

    def _is_here(self, access: Access) -> bool:
        """Whether an access is to this memory range."""
        return access.memory == "gm" and access.buffer in self.memory.delta

    def of(self, run: BlockRun) -> Iterator[GmAccess]:
        """Yields the accesses of a block, in its order."""
        for lane, (stream, offsets) in enumerate(zip(run.streams, run.gm, strict=True)):
            for where, place, access, shape in self._listed(lane, stream):
                yield GmAccess(access, shape, offsets[where] + self.memory.delta[access.buffer], lane, place)

    def may_overlap(self) -> bool:
        """Whether the intervals of two blocks, from the first to the last accessed byte, overlap."""
        lows = np.full(len(self.blocks), self.memory.size, np.int64)
        highs = np.zeros_like(lows)
        for lane, places in self._alike():
            runs = [self.blocks[place] for place in places]
            listed = self._listed(lane, runs[0].streams[lane])
            if listed:
                low, high = self._ends(runs, lane, listed)
                lows[places] = np.minimum(lows[places], low)
                highs[places] = np.maximum(highs[places], high)
        touched = np.flatnonzero(lows < highs)
        order = touched[np.argsort(lows[touched], kind="stable")]
        return bool((lows[order[1:]] < np.maximum.accumulate(highs[order])[:-1]).any())

    def _alike(self) -> list[tuple[int, list[int]]]:
        """Returns groups of blocks, by position, with equal streams of a lane and the same representation of offsets."""
        alike: dict[tuple[object, ...], list[int]] = {}
        for place, run in enumerate(self.blocks):
            for lane, stream in enumerate(run.streams):
                alike.setdefault((lane, id(stream), offsets_key(run)), []).append(place)
        return [(lane, places) for (lane, *_), places in alike.items() if isinstance(lane, int)]

    def _ends(self, runs: Sequence[BlockRun], lane: int,
              listed: Sequence[_Listed]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the first accessed byte of each block in a lane and one past the last; updates ``grain``."""
        picked = np.array([where for where, _, _, _ in listed], np.intp)
        moved = np.array([self.memory.delta[access.buffer] for _, _, access, _ in listed], np.int64)
        sizes = np.array([shape.end for _, _, _, shape in listed], np.int64)
        common = runs[0].gm[lane]
        if isinstance(common, OffsetsOfBlock):  # among offsets that differ by the same amounts, the extremes suffice
            known, blocks = common.places, positions(runs, lane)
            firsts, kinds = known.constants[picked] + moved, known.kind[picked]
            lasts = firsts + sizes
            lows, highs = [], []
            for kind in np.unique(kinds):
                those = kinds == kind
                apart = known.apart[blocks, kind]
                first = int(firsts[those].min())
                self.grain = gcd(self.grain, int(np.gcd.reduce(firsts[those] - first)), int(np.gcd.reduce(apart + first)))
                lows.append(apart + first)
                highs.append(apart + lasts[those].max())
            return np.minimum.reduce(lows), np.maximum.reduce(highs)
        starts = np.array([run.gm[lane] for run in runs], np.int64)[:, picked] + moved
        self.grain = gcd(self.grain, int(np.gcd.reduce(starts, axis=None)))
        return starts.min(axis=1), (starts + sizes).max(axis=1)

    def marks(self) -> NDArray[np.int32]:
        """Returns a mark for each grain, all ``NOBODY``."""
        return np.full(-(-self.memory.size // self.grain), NOBODY, np.int32)

    def view(self, mark: NDArray[Any], use: GmAccess) -> NDArray[Any]:
        """Returns the marks of the bytes of an access, as a view."""
        grain, shape = self.grain, use.shape
        strides = (*(stride // grain * mark.itemsize for stride in shape.strides), mark.itemsize)
        start = use.offset // grain * mark.itemsize
        return np.ndarray((*shape.sizes, shape.element // grain), mark.dtype, mark, start, strides)

    def are_independent(self) -> bool:
        """Whether no block accesses bytes that another one writes, even with equal values: the blocks are independent."""
        if not self.written or not self.may_overlap():
            return True
        writer = self.marks()
        alike = self._alike()
        return all(self._marked(writer, lane, places, writes=writes) for writes in (True, False) for lane, places in alike)

    def _marked(self, writer: NDArray[np.int32], lane: int, places: Sequence[int], *, writes: bool) -> bool:
        """Marks the writes of a group of blocks, or checks its reads; returns whether no other block had marked the bytes."""
        runs = [self.blocks[place] for place in places]
        common = runs[0].gm[lane]
        numbers = np.array([run.block for run in runs], np.int32)
        for where, _, access, shape in self._listed(lane, runs[0].streams[lane]):
            if access.writes != writes:
                continue
            if isinstance(common, OffsetsOfBlock):
                starts = common.places.some(np.array([where]), positions(runs, lane))[:, 0]
            else:
                starts = np.array([run.gm[lane][where] for run in runs], np.int64)
            grains = self._grains(shape)
            starts = (starts + self.memory.delta[access.buffer]) // self.grain
            step = max(1, AT_ONCE // len(grains))
            for first in range(0, len(runs), step):
                block = numbers[first:first + step, None]
                touched = starts[first:first + step, None] + grains
                seen = writer[touched]
                if ((seen != NOBODY) & (seen != block)).any():
                    return False
                if writes:
                    writer[touched] = block
                    if (writer[touched] != block).any():
                        return False
        return True

    def _grains(self, shape: Footprint) -> NDArray[np.int64]:
        """Returns the grains of an access, relative to its first."""
        found = np.arange(shape.element // self.grain, dtype=np.int64)
        for size, stride in zip(shape.sizes, shape.strides, strict=True):
            found = (np.arange(size, dtype=np.int64)[:, None] * (stride // self.grain) + found).reshape(-1)
        return found
