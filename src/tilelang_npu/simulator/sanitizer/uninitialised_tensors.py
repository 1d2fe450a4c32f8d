"""Detection of results that depend on unwritten elements of tensors in GM (S221).

A tensor that the call allocates for its outputs has no defined contents; a launch must read only elements that this launch or
an earlier launch of the call has written. Reading other elements alone is no fault, as for on-chip memories
(``uninitialised_memory``): the fault is a result that depends on them. Therefore a block that reads unwritten elements runs
twice more, on copies of the arrays, with different bytes in these elements. If the results differ, they depend on the elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import OTHER, POISON
from tilelang_npu.simulator.machine.op_records import Access, Footprint, OpRecord, accesses_to_gm, footprint, number_of
from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch
from tilelang_npu.simulator.sanitizer.hazard import Hazard
from tilelang_npu.simulator.sanitizer.uninitialised_memory import dependent, site_of
from tilelang_npu.target import name_of

MOST = 16
"""Maximum number of reads that are checked by running a block again."""

_Read = tuple[int, int, OpRecord, Access, Footprint]
"""A read: position among the GM offsets of the stream, position in the stream, op, access, footprint at offset 0."""


def find_uninitialised_tensors(recorded: RecordedLaunch, blank: Mapping[int, NDArray[np.bool_]]) -> Iterator[Hazard]:
    """Yields a hazard for each op that reads unwritten elements on which a result depends; only the op's first such read.

    Args:
        recorded: the record of the launch.
        blank: for each kernel argument that the call allocated, a mask of the bytes that neither this launch nor an earlier one
            wrote.
    """
    streams: dict[tuple[int, int], list[_Read]] = {}
    told: set[tuple[int, int]] = set()
    again = 0
    for run in recorded.blocks if blank else ():
        for lane, (stream, offsets) in enumerate(zip(run.streams, run.gm, strict=True)):
            key = lane, id(stream)
            if key not in streams:
                records = recorded.program.functions[recorded.program.lanes[lane][0]].records
                reads = accesses_to_gm(records, stream, lambda one: one.buffer in blank and one.reads and not one.writes)
                streams[key] = [(position, place, records[number_of(event)], access, shape.simplified())
                                for position, place, event, access in reads if not (shape := footprint(access, event)).empty]
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


def _byte(view: NDArray[np.bool_], flat: int, offset: int, shape: Footprint) -> int:
    at = np.unravel_index(flat, view.shape)
    return offset + sum(int(index) * stride for index, stride in zip(at, (*shape.strides, 1), strict=True))
