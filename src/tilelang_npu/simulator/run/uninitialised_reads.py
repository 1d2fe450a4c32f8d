"""Finds reads of on-chip bytes that no op of the block wrote before. Such bytes contain data of earlier blocks of the core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.op_records import (
    Access,
    Event,
    Footprint,
    OpRecord,
    ScratchUse,
    Stream,
    accessed_parts,
    footprint,
    number_of,
)
from tilelang_npu.target.chip_data import Space

if TYPE_CHECKING:
    from tilelang_npu.simulator.run.program import Program
    from tilelang_npu.target import Chip


class UninitialisedRead(NamedTuple):
    """A read of on-chip bytes that the block has not written.

    Attributes:
        place: the position of the op's event among the events of the core.
        record: the record of the op.
        access: the access that reads the bytes.
        start: the offset of the first unwritten byte in the memory.
        end: ``start`` plus the number of bytes that the access reads and the block has not written. If these bytes are not
            contiguous, ``end`` is not the offset after the last of them.
        reach: the offset after the last byte that the access reads.
    """

    place: int
    record: OpRecord
    access: Access
    start: int
    end: int
    reach: int


def find_uninitialised_reads(program: Program, streams: Sequence[Stream], lane: int) -> Iterator[UninitialisedRead]:
    """Yields the reads of unwritten on-chip bytes by one core of a block, in program order; for each byte the first read.

    Args:
        program: the kernel.
        streams: the events of each core of the block.
        lane: the position of the core in the block.
    """
    index, _ = program.lanes[lane]
    records = program.functions[index].records
    written = _WrittenBytes(program.chip)
    for memory, where in from_other_cores(program, streams, lane):
        written.of(memory, where)[...] = True
    done: set[Event] = set()
    for place, event in enumerate(streams[lane]):
        if event in done:  # its reads were checked, and its writes were noted
            continue
        done.add(event)
        record = records[number_of(event)]
        undefines = isinstance(record.work, ScratchUse)
        for writes in (False, True):
            for access in record.accesses:
                if access.memory == "gm" or access.holder or not (access.writes if writes else access.is_read(event)):
                    continue
                for where in map(Footprint.simplified, accessed_parts(record, access, event)):
                    if where.empty:
                        continue
                    view = written.of(access.memory, where)
                    if writes and undefines and view.any():
                        view[...] = False
                        done.clear()  # an event that was checked may read these bytes when it happens again
                    elif writes and not undefines:
                        view[...] = True
                    elif not writes and not view.all():
                        at = np.unravel_index(int((~view).argmax()), view.shape)
                        start = where.offset + sum(int(i) * s for i, s in zip(at, (*where.strides, 1), strict=True))
                        yield UninitialisedRead(place, record, access, start, start + int((~view).sum()), where.end)
                        view[...] = True


def reads_first(records: Sequence[OpRecord]) -> bool:
    """Whether the first access to an on-chip buffer, in the order of the program's text, is a read.

    Reads that happen only under a condition do not count, such as the read of an accumulator that the op possibly initialises.
    Buffers of other cores do not count either. An op that leaves the contents of a buffer undefined counts as a read: such ops
    remain only for buffers that the kernel also reads.
    """
    if any(isinstance(record.work, ScratchUse) for record in records):
        return True
    touched: set[tuple[str, int | None]] = set()
    for record in records:
        mine = {access: (access.memory, access.owner) for access in record.accesses
                if access.memory != "gm" and not access.holder}
        if any(access.reads and not access.scratch and access.unless is None and buffer not in touched
               for access, buffer in mine.items()):
            return True
        touched.update(mine.values())
    return False


def writes_part_first(records: Sequence[OpRecord]) -> bool:
    """Whether the first access to an on-chip buffer, in the order of the program's text, writes a part of which only run time
    knows the size. Later reads of the whole buffer would read bytes that nothing has written."""
    touched: set[tuple[str, int | None]] = set()
    for record in records:
        for access in record.accesses:
            if access.memory == "gm" or access.holder or access.scratch:
                continue
            if (access.memory, access.owner) not in touched and not all(isinstance(size, int) for size in access.sizes):
                return True
            touched.add((access.memory, access.owner))
    return False


def from_other_cores(program: Program, streams: Sequence[Stream], lane: int) -> Iterator[tuple[Space, Footprint]]:
    """Yields the bytes in the on-chip memories of a core that other cores of the block write.

    Args:
        program: the kernel.
        streams: the events of each core of the block.
        lane: the position of the core in the block.

    Yields:
        the memory, and the bytes as a simplified footprint.
    """
    label = program.core_ids(0)[lane].label
    for other, (index, _) in enumerate(program.lanes):
        records = program.functions[index].records
        into = {record.number: [access for access in record.accesses if access.writes and access.holder == label]
                for record in records}
        for event in set(streams[other]) if any(into.values()) else ():
            for access in into[number_of(event)]:
                where = footprint(access, event).simplified()
                if not where.empty:
                    yield access.memory, where


class _WrittenBytes:
    """A map of the bytes of a core's memories that were written.

    Args:
        chip: gives the sizes of the memories.
    """

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self._covers: dict[Space, NDArray[np.bool_]] = {}

    def of(self, memory: Space, where: Footprint) -> NDArray[np.bool_]:
        """Returns a view of the map for the bytes of a footprint: True where the byte was written.

        Args:
            memory: the on-chip memory.
            where: the simplified footprint.
        """
        cover = self._covers.get(memory)
        if cover is None:
            cover = self._covers[memory] = np.zeros(self._chip.memory[memory].size, np.bool_)
        return np.ndarray((*where.sizes, where.element), np.bool_, cover, where.offset, (*where.strides, 1))
