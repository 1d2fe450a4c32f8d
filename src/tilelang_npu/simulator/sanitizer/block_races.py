"""Detection of races between blocks (S203): bytes of GM that one block writes and another one reads or writes.

Blocks run concurrently and in any order. Unless all blocks synchronise at a barrier, accesses of two blocks to the same byte
are not ordered. Two atomic updates are no race. Two writes of equal values are no race either, and a block that wrote the value
itself can also read it. To compare the values, blocks whose writes overlap run once more, on copies of the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.aliasing_arguments import MemoryRange, memory_ranges
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import OpRecord, number_of
from tilelang_npu.simulator.run.gm_accesses import NO_BLOCK, GmAccess, GmAccesses
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Kind, Site
from tilelang_npu.target import name_of

MISSING = ("an order between the blocks, which run in any order: let each block access a different part, add atomically, or "
           "synchronise with T.sync_all()")

REPLAYED = 8
"""Maximum number of blocks whose arrays from a repeated run are kept in memory at a time."""
_SEVERAL = -2
"""Mark of bytes that several blocks write with equal values."""


def find_block_races(recorded: RecordedLaunch) -> list[Hazard]:
    """Returns the races between the blocks of a launch without barriers of all blocks, at most one for each pair of ops.

    Args:
        recorded: the record of the launch.
    """
    if len(recorded.blocks) < 2 or recorded.alike.apart:
        return []
    found: list[Hazard] = []
    for memory in memory_ranges(recorded.bound.arrays):
        found += _Check(recorded, memory).run()
    return found


class _Check:
    """The search for races in one range of GM, which contains one kernel argument or several that overlap."""

    def __init__(self, recorded: RecordedLaunch, memory: MemoryRange) -> None:
        self.recorded = recorded
        self.memory = memory
        self.records = [recorded.program.functions[index].records for index, _ in recorded.program.lanes]
        self.uses = GmAccesses(self.records, recorded.blocks, memory)
        self.found: dict[object, Hazard] = {}
        self._runs = {run.block: run for run in recorded.blocks}
        self._replayed: dict[int, Sequence[Array | None]] = {}

    def run(self) -> list[Hazard]:
        """Returns the races in the memory range, at most one for each pair of ops."""
        if not self.uses.written or not self.uses.may_overlap():
            return []
        # Mark each written byte with its block, then compare every read with the marks.
        self.writer = self.uses.marks()
        adds = any(access.reads and access.writes for access in self.uses.accesses)
        self.adder = self.uses.marks() if adds else None
        for run in self.recorded.blocks:
            for use in self.uses.of(run):
                if use.access.writes:
                    self._write(run, use)
        own = self.uses.marks()
        for run in self.recorded.blocks:
            for use in self.uses.of(run):
                if use.access.writes and not use.atomic:
                    self.uses.view(own, use)[...] = run.block
            for use in self.uses.of(run):
                if not use.access.writes:
                    seen = self.uses.view(self.writer, use)
                    harmless = (seen == run.block) | ((seen == _SEVERAL) & (self.uses.view(own, use) == run.block))
                    self._meet(run, use, seen, (seen != NO_BLOCK) & ~harmless)
                    self._meet_adds(run, use)
        return list(self.found.values())

    def _write(self, run: BlockRun, use: GmAccess) -> None:
        seen = self.uses.view(self.writer, use)
        others = (seen != NO_BLOCK) & (seen != run.block)
        if use.atomic:
            self._meet(run, use, seen, others)
            assert self.adder is not None
            self.uses.view(self.adder, use)[...] = run.block
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

    def _meet_adds(self, run: BlockRun, use: GmAccess) -> None:
        """Reports an access that overlaps with an atomic update by another block."""
        if self.adder is not None:
            seen = self.uses.view(self.adder, use)
            self._meet(run, use, seen, (seen != NO_BLOCK) & (seen != run.block))

    def _byte(self, use: GmAccess, at: Sequence[np.intp]) -> int:
        steps = (*use.shape.strides, self.uses.grain)
        return use.offset + sum(int(place) * step for place, step in zip(at, steps, strict=True))

    def _meet(self, run: BlockRun, use: GmAccess, seen: NDArray[np.int32], others: NDArray[np.bool_]) -> None:
        """Reports a race at the first byte of an access that another block wrote.

        Args:
            run: the block that makes the access.
            use: the access.
            seen: for each byte of the access, the block that wrote the byte.
            others: a mask of the bytes that another block wrote and that race.
        """
        if not others.any():
            return
        at = np.unravel_index(int(others.argmax()), seen.shape)
        byte = self._byte(use, at)
        first_run, first = next((other, each) for other in self.recorded.blocks
                                if other.block == seen[at] or (seen[at] == _SEVERAL and other.block != run.block)
                                for each in self.uses.of(other)
                                if each.access.writes and each.shape.touches(byte - each.offset))
        key = (first.lane, self._record(first_run, first).number, use.lane, self._record(run, use).number)
        if key not in self.found:
            start, end = self._common(first, use, byte)
            delta = self.memory.delta[use.access.buffer]
            kind: Kind = "WAW" if use.access.writes else "RAW"
            self.found[key] = Hazard("S203", kind, self._site(first_run, first), self._site(run, use), name_of("gm"),
                                     start - delta, end - delta, MISSING, run.block, use.access.label)

    def _common(self, first: GmAccess, second: GmAccess, byte: int) -> tuple[int, int]:
        """Returns the start and end of the contiguous bytes around ``byte`` that both accesses contain."""
        start, end = 0, self.memory.size
        for use in (first, second):
            rest = byte - use.offset
            for stride, size in zip(use.shape.strides, use.shape.sizes, strict=True):
                rest -= min(max(rest // stride, 0), size - 1) * stride
            start, end = max(start, byte - rest), min(end, byte - rest + use.shape.element)
        return start, end

    def _leaves(self, block: int, use: GmAccess, where: NDArray[np.bool_]) -> bool:
        """Whether a repeated run of a block leaves the values in the selected bytes unchanged, which means that all blocks that
        write these bytes write equal values.

        Args:
            block: the number of the block.
            use: the access.
            where: a mask of the selected bytes of the access.
        """
        if len(self.memory.delta) > 1:
            return False  # copies of arguments do not overlap as the arguments do
        after = self._replayed.get(block)
        if after is None:
            if len(self._replayed) == REPLAYED:
                self._replayed.clear()
            again = self.recorded.replay.run_after_launch(self._runs[block])
            if again is None:
                return True  # not decided: ``Replay.failed`` says so
            after = [array if number in self.memory.delta else None for number, array in enumerate(again.arrays)]
            self._replayed[block] = after
        grain, shape = self.uses.grain, use.shape
        sizes, strides = (*shape.sizes, shape.element // grain, grain), (*shape.strides, grain, 1)
        offset = use.offset - self.memory.delta[use.access.buffer]
        one, two = (np.ndarray(sizes, np.uint8, arrays[use.access.buffer], offset, strides)
                    for arrays in (after, self.recorded.replay.arrays))
        return bool(np.array_equal(one[where], two[where]))

    def _record(self, run: BlockRun, use: GmAccess) -> OpRecord:
        return self.records[use.lane][number_of(run.streams[use.lane][use.event])]

    def _site(self, run: BlockRun, use: GmAccess) -> Site:
        record = self._record(run, use)
        before = sum(number_of(event) == record.number for event in run.streams[use.lane][:use.event])
        label = self.recorded.program.core_ids(run.block)[use.lane].label
        return Site(record.mnemonic, record.location, use.access.pipe, f"{label} of block {run.block}", before, use.access.name,
                    record.number)
