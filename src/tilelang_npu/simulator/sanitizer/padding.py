"""Padding that changes a reduction or a product: elements that ``T.copy`` filled in beyond a tensor.

A tile at the edge is loaded in part, and the rest is filled. The padding is harmless if it is neutral in the operation: 0 in a
sum or a product, minus infinity in a maximum. Whether it is depends on earlier ops (``exp`` turns 0 into 1) and on the other
numbers (0 is neutral in a maximum of magnitudes). So a block with a filled tile runs once more with an observer
(``padding_observer.py``). Whether a tile is filled is known from the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.op_records import Event, OpRecord, footprint, number_of
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch
from tilelang_npu.simulator.sanitizer.hazard import Hazard

_LOAD, _LOAD_TO_L1, _FILL, _REDUCE = "hivm.hir.load", "hivm.hir.nd2nz", "hivm.hir.vbrc", "hivm.hir.vreduce"


def find_padding(recorded: RecordedLaunch, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """Yields the reductions and products whose results padding by ``T.copy`` changes.

    Args:
        recorded: the launch.
        blocks: the blocks to check: one of each kind.
    """
    program = recorded.program
    if not any(record.name == _REDUCE for function in program.functions for record in function.records) and not (
            program.mixed):
        return  # zeros that only the Cube core sees add nothing
    fills = [_fills(function.records) for function in program.functions]
    for run in blocks:
        if any(number_of(event) in fills[index] and _leaves(fills[index][number_of(event)], event)
               for (index, _), stream in zip(program.lanes, run.streams, strict=True) for event in set(stream)):
            from tilelang_npu.simulator.sanitizer.padding_observer import PaddingObserver  # most runs do not need the IR

            watch = PaddingObserver({function.core: filling for function, filling in zip(program.functions, fills,
                                                                                         strict=True)})
            recorded.replay.after(run, observer=watch)
            yield from watch.found.values()
            if program.global_sync:
                return  # all blocks were in it


def _fills(records: Sequence[OpRecord]) -> dict[int, OpRecord]:
    """Returns the ops that fill the rest of a load of the same statement, by number, with the load; loads to L1 do both."""
    loads = {key: record for record in records if record.name == _LOAD for key in _filled(record)}
    found = {record.number: loads[key] for record in records
             if record.name == _FILL and record.location is not None for key in _filled(record) if key in loads}
    return {**found, **{record.number: record for record in records if record.name == _LOAD_TO_L1}}


def _leaves(load: OpRecord, event: Event) -> bool:
    """Whether an op fills anything: a load to L1 does if it loads less than a tile."""
    if load.name != _LOAD_TO_L1:
        return True
    source, target = (footprint(access, event) for access in load.accesses[:2])
    return source.nbytes < target.nbytes


def _filled(record: OpRecord) -> list[tuple[Location | None, str]]:
    """Returns the statement of an op, and the name of each buffer that it writes."""
    return [(record.location, access.label) for access in record.accesses if access.writes and not access.scratch]
