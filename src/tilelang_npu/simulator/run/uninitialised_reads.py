"""Reads of on-chip bytes that no op of the block wrote: they hold whatever the core's last block left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.op_records import Access, Event, Footprint, OpRecord, Stream, footprint, number_of

if TYPE_CHECKING:
    from tilelang_npu.simulator.run.program import Program
    from tilelang_npu.target import Chip


class UninitialisedRead(NamedTuple):
    """A read of unwritten bytes.

    Attributes:
        place: position of its event in the core's stream.
        record, access: the op's record, and its access.
        start, end: the first unwritten byte, and ``start`` plus the number of unwritten bytes.
    """

    place: int
    record: OpRecord
    access: Access
    start: int
    end: int


def find_uninitialised_reads(program: Program, streams: Sequence[Stream], lane: int) -> Iterator[UninitialisedRead]:
    """Yields the reads of unwritten bytes by one core of a block; for the same bytes, the first read.

    Args:
        program: the kernel.
        streams: the streams of the block's cores.
        lane: the core.
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
        for writes in (False, True):
            for access in record.accesses:
                if access.memory == "gm" or access.holder or not (access.writes if writes else access.is_read(event)):
                    continue
                where = footprint(access, event).simplified()
                if where.empty:
                    continue
                view = written.of(access.memory, where)
                if writes:
                    view[...] = True
                elif not view.all():
                    at = np.unravel_index(int((~view).argmax()), view.shape)
                    start = where.offset + sum(int(i) * s for i, s in zip(at, (*where.strides, 1), strict=True))
                    yield UninitialisedRead(place, record, access, start, start + int((~view).sum()))
                    view[...] = True


def reads_first(records: Sequence[OpRecord]) -> bool:
    """Whether in program order the first access to some buffer is a read.

    Accumulators that an op may initialise are not counted, nor are buffers of other cores.
    """
    touched: set[tuple[str, int | None]] = set()
    for record in records:
        mine = {access: (access.memory, access.owner) for access in record.accesses
                if access.memory != "gm" and not access.holder}
        if any(access.reads and not access.scratch and access.unless is None and buffer not in touched
               for access, buffer in mine.items()):
            return True
        touched.update(mine.values())
    return False


def from_other_cores(program: Program, streams: Sequence[Stream], lane: int) -> Iterator[tuple[str, Footprint]]:
    """Yields the footprints that the block's other cores write in the memories of a core; flags order these writes."""
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
        self._covers: dict[str, NDArray[np.bool_]] = {}

    def of(self, memory: str, where: Footprint) -> NDArray[np.bool_]:
        """Returns the map of the bytes of a footprint, as a view."""
        cover = self._covers.get(memory)
        if cover is None:
            cover = self._covers[memory] = np.zeros(self._chip.memory[memory].size, np.bool_)
        return np.ndarray((*where.sizes, where.element), np.bool_, cover, where.offset, (*where.strides, 1))
