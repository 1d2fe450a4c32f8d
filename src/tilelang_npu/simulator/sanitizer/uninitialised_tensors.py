"""Reads of tensors that the call allocated, of elements that no launch has written, if a result depends on them.

A tensor that a call allocates has no contents: a launch may only read what it or an earlier launch has written. As on chip (see
``uninitialised``) the read alone is no fault. So a block with such a read runs twice more, on copies, with different bytes in
these elements; if the results differ, they depend on uninitialised memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import POISON
from tilelang_npu.simulator.machine.op_records import Access, Event, Footprint, OpRecord, footprint, number_of
from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch
from tilelang_npu.simulator.sanitizer.hazard import Hazard
from tilelang_npu.simulator.sanitizer.uninitialised_memory import OTHER, dependent, site_of
from tilelang_npu.target import name_of

MOST = 16
"""Limit of the blocks that run again."""

_Read = tuple[int, int, OpRecord, Access, Footprint]
"""A read: position among the GM offsets of the stream, position in the stream, op, access, footprint at offset 0."""


def find_uninitialised_tensors(recorded: RecordedLaunch, blank: Mapping[int, NDArray[np.bool_]]) -> Iterator[Hazard]:
    """Yields the reads of unwritten elements that a result depends on: the first such read of each op.

    Args:
        recorded: the launch.
        blank: by GM argument that the call allocated, the bytes that no launch wrote, including this one.
    """
    streams: dict[tuple[int, int], list[_Read]] = {}
    told: set[tuple[int, int]] = set()
    again = 0
    for run in recorded.blocks if blank else ():
        for lane, (stream, offsets) in enumerate(zip(run.streams, run.gm, strict=True)):
            key = lane, id(stream)
            if key not in streams:
                streams[key] = list(_reads(recorded.program.functions[recorded.program.lanes[lane][0]].records, stream, blank))
            for position, place, record, access, shape in streams[key]:
                if (lane, record.number) in told:
                    continue
                offset = offsets[position]
                view = np.ndarray((*shape.sizes, shape.element), np.bool_, blank[access.buffer], offset, (*shape.strides, 1))
                if not view.any():
                    continue
                if again == MOST:
                    return
                again += 1
                start = _byte(view, int(view.argmax()), offset, shape)
                end = _byte(view, view.size - 1 - int(view.reshape(-1)[::-1].argmax()), offset, shape) + 1
                suspect = Hazard("S221", "blank", site_of(recorded, run, lane, place, record, access.pipe, access.name), None,
                                 name_of("gm"), start, end, "", run.block, access.label)
                left = (recorded.replay.after(run, poison=byte, blank=blank) for byte in (POISON, OTHER))
                hazard = dependent(recorded, run, suspect, *left, ignored=blank)
                if hazard is not None:
                    told.add((lane, record.number))
                    yield hazard


def _reads(records: Sequence[OpRecord], stream: Sequence[Event], blank: Mapping[int, object]) -> Iterator[_Read]:
    mine = {record.number: [(number, access) for number, access in enumerate(a for a in record.accesses if a.offset is None)
                            if access.buffer in blank and access.reads and not access.writes] for record in records}
    counts = [record.gm_operands for record in records]
    position = 0
    for place, event in enumerate(stream):
        number = number_of(event)
        for operand, access in mine[number]:
            shape = footprint(access, event).simplified()
            if not shape.empty:
                yield position + operand, place, records[number], access, shape
        position += counts[number]


def _byte(view: NDArray[np.bool_], flat: int, offset: int, shape: Footprint) -> int:
    at = np.unravel_index(flat, view.shape)
    return offset + sum(int(index) * stride for index, stride in zip(at, (*shape.strides, 1), strict=True))
