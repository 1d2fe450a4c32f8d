"""The elements of a tensor that a launch wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Access, Event, Footprint, OpRecord, Stream, footprint, number_of
from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch

_Marks = dict[Footprint, list[int]]


def written(recorded: RecordedLaunch, buffer: int, array: Array) -> NDArray[np.bool_]:
    """Returns a mask in the shape of ``array``, which is the kernel's argument number ``buffer``.

    Atomic updates do not count as writes: their result depends on the previous value.
    """
    functions = recorded.program.functions
    writers = [{record.number: _writes(record, buffer) for record in function.records} for function in functions]
    grain = array.itemsize
    for those in writers:
        for uses in those.values():
            for _, access in uses:
                grain = gcd(grain, access.element)
    covered = np.zeros(array.nbytes // grain, np.bool_)
    known: dict[tuple[int, int], _Marks] = {}
    for run in recorded.blocks:
        for stream, offsets, (index, _) in zip(run.streams, run.gm, recorded.program.lanes, strict=True):
            key = index, id(stream)  # equal streams are one object
            if key not in known:
                known[key] = _marks(stream, functions[index].records, writers[index], grain)
            where = np.asarray(offsets) // grain
            for shape, places in known[key].items():
                _mark(covered, shape, where[places].tolist())
    whole = covered.reshape(-1, array.itemsize // grain).all(axis=1)
    return np.asarray(whole.reshape(array.shape))


def _writes(record: OpRecord, buffer: int) -> list[tuple[int, Access]]:
    """Returns the accesses of an op that only write the buffer, each with its position among the op's GM operands."""
    in_gm = (access for access in record.accesses if access.offset is None)
    return [(place, access) for place, access in enumerate(in_gm)
            if access.writes and not access.reads and access.buffer == buffer]


def _marks(stream: Stream, records: Sequence[OpRecord], writers: Mapping[int, list[tuple[int, Access]]], grain: int) -> _Marks:
    """Returns, by footprint at offset 0, the positions of the writes with this footprint among a stream's GM offsets."""
    shapes: dict[tuple[Event, int], Footprint] = {}
    marks: _Marks = {}
    counts = [record.gm_operands for record in records]
    position = 0
    for event in stream:
        number = number_of(event)
        for place, access in writers[number]:
            if (event, place) not in shapes:
                shapes[event, place] = _in_grains(access, event, grain)
            marks.setdefault(shapes[event, place], []).append(position + place)
        position += counts[number]
    return {shape: places for shape, places in marks.items() if not shape.empty}


def _in_grains(access: Access, event: Event, grain: int) -> Footprint:
    """Returns the footprint of an access at offset 0, in units of ``grain`` bytes."""
    place = footprint(access, event).simplified()
    return Footprint(0, place.sizes, tuple(stride // grain for stride in place.strides), place.element // grain)


def _mark(covered: NDArray[np.bool_], place: Footprint, offsets: Sequence[int]) -> None:
    """Marks a footprint at some offsets as written."""
    if not place.sizes:
        for offset in offsets:
            covered[offset:offset + place.element] = True
        return
    for offset in offsets:
        np.ndarray((*place.sizes, place.element), np.bool_, covered, offset, (*place.strides, 1))[...] = True
