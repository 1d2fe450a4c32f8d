"""What the blocks of a launch do to one memory of GM: which bytes each reads and writes, and whether two of them meet there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.events import Access, Event, Footprint, OpRecord, footprint, number_of
from tilelang_npu.simulator.machine.shared_bytes import SharedMemory
from tilelang_npu.simulator.run.recorded import BlockRun

NOBODY = -1
"""Mark of bytes that no block has to do with."""


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
        return self.access.reads and self.access.writes


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
        self._places: dict[tuple[int, int], list[tuple[int, int, Access, Footprint]]] = {}

    @property
    def written(self) -> bool:
        return any(access.writes for access in self.accesses)

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

    def of(self, run: BlockRun) -> Iterator[BlockUse]:
        """The accesses of a block, in its order."""
        for lane, (stream, offsets) in enumerate(zip(run.streams, run.gm, strict=True)):
            for where, place, access, shape in self._listed(lane, stream):
                yield BlockUse(access, shape, offsets[where] + self.memory.delta[access.buffer], lane, place)

    def may_meet(self) -> bool:
        """Whether the stretches of memory that two blocks touch, from first to last byte, overlap."""
        alike: dict[tuple[int, int], list[int]] = {}  # by lane and stream, the blocks that did just that
        for place, run in enumerate(self.blocks):
            for lane, stream in enumerate(run.streams):
                alike.setdefault((lane, id(stream)), []).append(place)
        lows = np.full(len(self.blocks), self.memory.size, np.int64)
        highs = np.zeros_like(lows)
        for (lane, _), places in alike.items():
            runs = [self.blocks[place] for place in places]
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
        for writes in (True, False):
            for run in self.blocks:
                for use in self.of(run):
                    if use.access.writes == writes:
                        seen = self.view(writer, use)
                        if ((seen != NOBODY) & (seen != run.block)).any():
                            return False
                        if writes:
                            seen[...] = run.block
        return True
