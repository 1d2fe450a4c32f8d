"""What the blocks of a launch do to one memory of GM: which bytes each reads and writes, and whether two of them meet there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.events import Access, Event, Footprint, OpRecord, footprint, number_of
from tilelang_npu.simulator.machine.shared_bytes import SharedMemory
from tilelang_npu.simulator.run.recorded import BlockRun, PlacesOfBlock, places_in_common, positions

NOBODY = -1
"""Mark of bytes that no block has to do with."""
AT_ONCE = 1 << 20
"""Marks that are looked at at once."""
_Listed = tuple[int, int, Access, Footprint]
"""Place among the GM offsets, place in the stream, access, footprint."""


class BlockUse(NamedTuple):
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
        return self.access.adds


class BlockUses:
    """The accesses of the blocks of a launch to a memory.

    Args:
        records: of each lane of a block what is known of its ops.
        blocks: what the blocks recorded.
        memory: the memory.

    Attributes:
        accesses: what ops do to it.
        grain: bytes that are marked as one: all accesses begin, end and step at multiples of it; known behind ``may_meet``.
    """

    def __init__(self, records: Sequence[Sequence[OpRecord]], blocks: Sequence[BlockRun], memory: SharedMemory) -> None:
        self.records, self.blocks, self.memory = records, blocks, memory
        self.accesses = [access for ops in records for record in ops for access in record.accesses
                         if access.memory == "gm" and access.buffer in memory.delta]
        self.grain = 0
        self._places: dict[tuple[int, int], list[_Listed]] = {}

    @property
    def written(self) -> bool:
        return any(access.writes for access in self.accesses)

    def _listed(self, lane: int, stream: Sequence[Event]) -> list[_Listed]:
        """The accesses of a stream to this memory: place among the GM offsets, place in the stream, access, footprint."""
        key = id(self.records[lane]), id(stream)  # cores of both kinds may have equal streams
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = list(self._list(self.records[lane], stream))
            for shape in {shape for _, _, _, shape in known}:
                self.grain = gcd(self.grain, shape.element, *shape.strides)
        return known

    def _list(self, records: Sequence[OpRecord], stream: Sequence[Event]) -> Iterator[_Listed]:
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

    def of(self, run: BlockRun) -> Iterator[BlockUse]:
        """The accesses of a block, in its order."""
        for lane, (stream, offsets) in enumerate(zip(run.streams, run.gm, strict=True)):
            for where, place, access, shape in self._listed(lane, stream):
                yield BlockUse(access, shape, offsets[where] + self.memory.delta[access.buffer], lane, place)

    def may_meet(self) -> bool:
        """Whether the stretches of memory that two blocks touch, from first to last byte, overlap."""
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
        """By lane the blocks that did just the same there, at places that are known in the same way; blocks by position."""
        alike: dict[tuple[object, ...], list[int]] = {}
        for place, run in enumerate(self.blocks):
            for lane, stream in enumerate(run.streams):
                alike.setdefault((lane, id(stream), places_in_common(run)), []).append(place)
        return [(lane, places) for (lane, *_), places in alike.items() if isinstance(lane, int)]

    def _ends(self, runs: Sequence[BlockRun], lane: int,
              listed: Sequence[_Listed]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each block the first byte that a lane touches, and the one behind the last; what divides all places is noted."""
        picked = np.array([where for where, _, _, _ in listed], np.intp)
        moved = np.array([self.memory.delta[access.buffer] for _, _, access, _ in listed], np.int64)
        sizes = np.array([shape.end for _, _, _, shape in listed], np.int64)
        common = runs[0].gm[lane]
        if isinstance(common, PlacesOfBlock):  # of the places that are equally far apart in all blocks the first and the last
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
        """A mark for each grain, so far nobody's."""
        return np.full(-(-self.memory.size // self.grain), NOBODY, np.int32)

    def view(self, mark: NDArray[Any], use: BlockUse) -> NDArray[Any]:
        """The marks of the bytes of a use."""
        grain, shape = self.grain, use.shape
        strides = (*(stride // grain * mark.itemsize for stride in shape.strides), mark.itemsize)
        start = use.offset // grain * mark.itemsize
        return np.ndarray((*shape.sizes, shape.element // grain), mark.dtype, mark, start, strides)

    def are_apart(self) -> bool:
        """Whether no block touches what another one writes, be it with the same value: their order is of no concern then."""
        if not self.written or not self.may_meet():
            return True
        writer = self.marks()
        alike = self._alike()
        return all(self._marked(writer, lane, places, writes=writes) for writes in (True, False) for lane, places in alike)

    def _marked(self, writer: NDArray[np.int32], lane: int, places: Sequence[int], *, writes: bool) -> bool:
        """Mark what blocks write that do the same, or look at what they only read; whether all is their own or nobody's."""
        runs = [self.blocks[place] for place in places]
        common = runs[0].gm[lane]
        numbers = np.array([run.block for run in runs], np.int32)
        for where, _, access, shape in self._listed(lane, runs[0].streams[lane]):
            if access.writes != writes:
                continue
            if isinstance(common, PlacesOfBlock):
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
        """The grains of an access, from its first one on."""
        found = np.arange(shape.element // self.grain, dtype=np.int64)
        for size, stride in zip(shape.sizes, shape.strides, strict=True):
            found = (np.arange(size, dtype=np.int64)[:, None] * (stride // self.grain) + found).reshape(-1)
        return found
