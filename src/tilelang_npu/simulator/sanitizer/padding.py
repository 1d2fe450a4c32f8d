"""Padding that decides a reduction or a product: what ``T.copy`` filled in beyond a tensor is no number of the user's.

A tile at the edge is loaded in part, and the rest filled. The filling is harmless as long as it is neutral to what is made of
it: 0 in a sum or a product, minus infinity in a maximum. Whether it is depends on what happened to it on the way (0 becomes 1
in ``exp``) and on the other numbers (0 is neutral in a maximum of magnitudes). So a block with a filled tile runs once more,
and is watched (``marked_padding.py``). Where no tile is filled, that is known from what the ops recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.events import Event, OpRecord, footprint, number_of
from tilelang_npu.simulator.run.recorded import BlockRun, Recorded
from tilelang_npu.simulator.sanitizer.finding import Hazard

_LOAD, _LOAD_TO_L1, _FILL, _REDUCE = "hivm.hir.load", "hivm.hir.nd2nz", "hivm.hir.vbrc", "hivm.hir.vreduce"


def find_padding(recorded: Recorded, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """Reductions and products that come to another result without what ``T.copy`` filled in.

    Args:
        recorded: the launch.
        blocks: the blocks to look at: one of each kind.
    """
    program = recorded.program
    if not any(record.name == _REDUCE for function in program.functions for record in function.records) and not (
            program.mixed):
        return  # zeros that only the Cube core sees add nothing
    fills = [_fills(function.records) for function in program.functions]
    for run in blocks:
        if any(number_of(event) in fills[index] and _leaves(fills[index][number_of(event)], event)
               for (index, _), stream in zip(program.lanes, run.streams, strict=True) for event in set(stream)):
            from tilelang_npu.simulator.sanitizer.marked_padding import MarkedPadding  # it looks at ops: most runs need none

            watch = MarkedPadding({function.core: filling for function, filling in zip(program.functions, fills, strict=True)})
            recorded.replay.after(run, observer=watch)
            yield from watch.found.values()
            if program.global_sync:
                return  # all blocks were in it


def _fills(records: Sequence[OpRecord]) -> dict[int, OpRecord]:
    """The ops that fill what a load of the same statement leaves, by number, with their loads; those to L1 fill and load."""
    loads = {key: record for record in records if record.name == _LOAD for key in _filled(record)}
    found = {record.number: loads[key] for record in records
             if record.name == _FILL and record.location is not None for key in _filled(record) if key in loads}
    return {**found, **{record.number: record for record in records if record.name == _LOAD_TO_L1}}


def _leaves(load: OpRecord, event: Event) -> bool:
    """Whether an op fills in something: one to L1 does where it loads less than a tile."""
    if load.name != _LOAD_TO_L1:
        return True
    source, target = (footprint(access, event) for access in load.accesses[:2])
    return source.nbytes < target.nbytes


def _filled(record: OpRecord) -> list[tuple[Location | None, str]]:
    """The statement of an op and what it writes, by name."""
    return [(record.location, access.label) for access in record.accesses if access.writes and not access.scratch]
