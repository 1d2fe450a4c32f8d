"""Detection of padding that changes a reduction or a product (S224). Padding is the part of a tile beyond the end of a tensor,
which ``T.copy`` fills in.

A tile at the edge of a tensor is loaded only in part, and the rest is filled. The padding is harmless if it is neutral in the
operation that uses it: 0 in a sum or a product, minus infinity in a maximum. Whether it is neutral depends on the ops before
(``exp`` turns 0 into 1) and on the other numbers (0 is neutral in a maximum of magnitudes). Therefore a block that fills a tile
runs once more, observed by ``padding_observer.py``. The record of the launch says which blocks fill tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.op_records import Event, OpRecord, footprint, number_of
from tilelang_npu.simulator.machine.repeated_events import kept_events
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch
from tilelang_npu.simulator.sanitizer.hazard import Hazard

_LOAD, _LOAD_TO_L1, _FILL, _REDUCE = "hivm.hir.load", "hivm.hir.nd2nz", "hivm.hir.vbrc", "hivm.hir.vreduce"


def find_padding(recorded: RecordedLaunch, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """Yields a hazard for each reduction and product whose result changes because of padding that ``T.copy`` filled in.

    Args:
        recorded: the record of the launch.
        blocks: the blocks to check: one of each kind of event streams.
    """
    program = recorded.program
    if not any(record.name == _REDUCE for function in program.functions for record in function.records) and not (
            program.mixed):
        return  # zeros that only the Cube core sees add nothing
    fills = [_fills(function.records) for function in program.functions]
    for run in blocks:
        if any(number_of(event) in fills[index] and _leaves(fills[index][number_of(event)], event)
               for (index, _), stream in zip(program.lanes, run.streams, strict=True) for event in set(kept_events(stream))):
            from tilelang_npu.simulator.sanitizer.padding_observer import PaddingObserver  # most runs do not need the IR

            watch = PaddingObserver({function.core: filling for function, filling in zip(program.functions, fills,
                                                                                         strict=True)})
            recorded.replay.after(run, observer=watch)
            yield from watch.found.values()
            if program.global_sync:
                return  # all blocks were in it


def _fills(records: Sequence[OpRecord]) -> dict[int, OpRecord]:
    """Returns the ops that fill the part of a tile that a load leaves, by number, each with the record of the load.

    For a load to UB this is a fill of the same buffer by the same statement. A load to L1 fills the rest of the tile itself.
    """
    loads = {key: record for record in records if record.name == _LOAD for key in _filled(record)}
    found = {record.number: loads[key] for record in records
             if record.name == _FILL and record.location is not None for key in _filled(record) if key in loads}
    return {**found, **{record.number: record for record in records if record.name == _LOAD_TO_L1}}


def _leaves(load: OpRecord, event: Event) -> bool:
    """Whether an execution of a load leaves a part of its tile to be filled. A load to L1 does so if it loads less than the
    tile; a load to UB that belongs to a fill always does."""
    if load.name != _LOAD_TO_L1:
        return True
    source, target = (footprint(access, event) for access in load.accesses[:2])
    return source.nbytes < target.nbytes


def _filled(record: OpRecord) -> list[tuple[Location | None, str]]:
    """Returns pairs of an op's source location and the name of a buffer that the op writes."""
    return [(record.location, access.label) for access in record.accesses if access.writes and not access.scratch]
