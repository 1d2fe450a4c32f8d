"""Accesses of a launch's blocks to one memory range in GM, and whether blocks access bytes that other blocks write.

A *grain* is a group of neighbouring bytes such that every access covers all of them or none. A *mark* is an array element that
contains information about one grain, such as the block that writes the grain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.aliasing_arguments import MemoryRange
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Access, Event, Footprint, OpRecord, accesses_to_gm, footprint
from tilelang_npu.simulator.run.recorded_launch import BlockRun, OffsetsOfBlock, offsets_key, positions

NO_BLOCK = -1
"""The mark of grains that no block accesses."""
AT_ONCE = 1 << 20
"""Number of marks that are compared in one NumPy operation."""
_Listed = tuple[int, int, Access, Footprint]
"""Position among the GM offsets, position in the stream, access, footprint."""


class GmAccess(NamedTuple):
    """One executed access to the memory range.

    Attributes:
        access: the access of the op's record.
        shape: the accessed bytes relative to ``offset``, as a simplified footprint.
        offset: the byte offset of the access from the start of the range.
        lane: the position, among the cores of the block, of the core that makes the access.
        event: the position of the event among the events of this core.
    """

    access: Access
    shape: Footprint
    offset: int
    lane: int
    event: int

    @property
    def atomic(self) -> bool:
        """Whether the access is an atomic update, which reads and writes."""
        return self.access.adds


class GmAccesses:
    """The accesses of the blocks of a launch to one memory range.

    Args:
        records: for each core of a block, the records of its ops.
        blocks: the recorded blocks.
        memory: the memory range.

    Attributes:
        accesses: the accesses of all records to the memory range.
        grain: the number of bytes of a grain, a common divisor of all offsets, sizes and strides; ``may_overlap`` computes it.
    """

    def __init__(self, records: Sequence[Sequence[OpRecord]], blocks: Sequence[BlockRun], memory: MemoryRange) -> None:
        self.records, self.blocks, self.memory = records, blocks, memory
        self.accesses = [access for ops in records for record in ops for access in record.accesses if self._is_here(access)]
        self.grain = 0
        self._places: dict[tuple[int, int], list[_Listed]] = {}

    @property
    def written(self) -> bool:
        """Whether an op writes to the memory range."""
        return any(access.writes for access in self.accesses)

    def _listed(self, lane: int, stream: Sequence[Event]) -> list[_Listed]:
        """Returns the accesses to this memory range among those of a stream of events."""
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
        """Yields the accesses of a block to the memory range: core by core, for each core in the order of execution."""
        for lane, (stream, offsets) in enumerate(zip(run.streams, run.gm, strict=True)):
            for where, place, access, shape in self._listed(lane, stream):
                yield GmAccess(access, shape, offsets[where] + self.memory.delta[access.buffer], lane, place)

    def may_overlap(self) -> bool:
        """Whether two blocks possibly access the same bytes: their intervals from the first to the last accessed byte overlap.
        """
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
        """Returns the groups of blocks in which one core has equal event streams and the GM offsets are represented alike.

        Returns:
            for each group, the position of the core in its block, and the positions of the blocks in ``blocks``.
        """
        alike: dict[tuple[object, ...], list[int]] = {}
        for place, run in enumerate(self.blocks):
            for lane, stream in enumerate(run.streams):
                alike.setdefault((lane, id(stream), offsets_key(run)), []).append(place)
        return [(lane, places) for (lane, *_), places in alike.items() if isinstance(lane, int)]

    def _ends(self, runs: Sequence[BlockRun], lane: int,
              listed: Sequence[_Listed]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the offsets of the first byte that one core of each block accesses, and those after the last byte.

        Also updates ``grain``.

        Args:
            runs: the blocks.
            lane: the position of the core in its block.
            listed: the accesses of the core to this memory range.
        """
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
        """Returns an array with one mark for each grain of the memory range, all ``NO_BLOCK``."""
        return np.full(-(-self.memory.size // self.grain), NO_BLOCK, np.int32)

    def view(self, mark: Array, use: GmAccess) -> Array:
        """Returns a view of the marks of the bytes of an access.

        Args:
            mark: an array with one element for each grain.
            use: the access.
        """
        grain, shape = self.grain, use.shape
        strides = (*(stride // grain * mark.itemsize for stride in shape.strides), mark.itemsize)
        start = use.offset // grain * mark.itemsize
        return np.ndarray((*shape.sizes, shape.element // grain), mark.dtype, mark, start, strides)

    def are_independent(self) -> bool:
        """Whether no block accesses bytes that another block writes, even if it writes equal values."""
        if not self.written or not self.may_overlap():
            return True
        writer = self.marks()
        alike = self._alike()
        return all(self._marked(writer, lane, places, writes=writes) for writes in (True, False) for lane, places in alike)

    def _marked(self, writer: NDArray[np.int32], lane: int, places: Sequence[int], *, writes: bool) -> bool:
        """Checks the writes or the reads of a group of blocks, and marks the bytes that the blocks write.

        Args:
            writer: for each grain, the block that writes it, or ``NO_BLOCK``; updated for the writes of these blocks.
            lane: the position of the core in its block.
            places: the positions of the blocks in ``blocks``.
            writes: whether to check and mark the writes; otherwise the reads are checked.

        Returns:
            whether no other block writes these bytes, as far as the writes are marked.
        """
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
                if ((seen != NO_BLOCK) & (seen != block)).any():
                    return False
                if writes:
                    writer[touched] = block
                    if (writer[touched] != block).any():
                        return False
        return True

    def _grains(self, shape: Footprint) -> NDArray[np.int64]:
        """Returns the numbers of the grains of an access, relative to the access's first grain."""
        found = np.arange(shape.element // self.grain, dtype=np.int64)
        for size, stride in zip(shape.sizes, shape.strides, strict=True):
            found = (np.arange(size, dtype=np.int64)[:, None] * (stride // self.grain) + found).reshape(-1)
        return found
