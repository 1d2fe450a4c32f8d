"""Bytes on chip that an op reads though nothing in its block wrote them, where a result depends on them.

That an op reads such bytes is no fault: a tile at the edge is loaded in part and computed as a whole, and what the rest of it
holds goes nowhere. So a block in which it happens runs twice more, on copies, with different bytes in the memories at first. If
the tensors differ then, something that nothing wrote has reached them; it would be another kernel's left-overs on a card.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.events import OpRecord, footprint, number_of
from tilelang_npu.simulator.machine.memory import POISON
from tilelang_npu.simulator.run.recorded import Again, BlockRun, Recorded
from tilelang_npu.simulator.run.unwritten import unwritten_reads
from tilelang_npu.simulator.sanitizer.finding import Hazard, Site
from tilelang_npu.target import name_of

OTHER = 0x5B
"""Byte that fills the memories in the second run: an ordinary number in every type, while POISON makes NaN or -1."""


def find_uninitialised(recorded: Recorded, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """What results depend on though nothing wrote it, at most one report for each block, in the order of the blocks.

    Args:
        recorded: the launch.
        blocks: the blocks to look at: one of each kind.
    """
    for run in blocks:
        suspects: list[Hazard | None] = [
            recorded.alike.made.get(("uninitialised", recorded.program.lanes[lane][0], id(stream)),
                                    lambda run=run, lane=lane: _suspect(recorded, run, lane))  # type: ignore[misc]
            for lane, stream in enumerate(run.streams)]
        suspect = next((one for one in suspects if one is not None), None)
        if suspect is not None:
            hazard = _reaching(recorded, run, suspect)
            if hazard is not None:
                yield hazard
            if recorded.program.global_sync:
                return  # all blocks were in it


def _suspect(recorded: Recorded, run: BlockRun, lane: int) -> Hazard | None:
    """The first read of bytes that nothing wrote before, as a report without the store that makes it matter."""
    read = next(unwritten_reads(recorded.program, run.streams, lane), None)
    if read is None:
        return None
    access = read.access
    site = site_of(recorded, run, lane, read.place, read.record, access.pipe, access.name)
    return Hazard("S221", "unwritten", site, None, name_of(access.memory), read.start, read.end, "", run.block, access.label)


def site_of(recorded: Recorded, run: BlockRun, lane: int, place: int, record: OpRecord, pipe: str, operand: str) -> Site:
    """An op of a block, for a report.

    Args:
        recorded, run, lane: the launch, the block and the core.
        place: of the op's event in the core's stream.
        record, pipe, operand: what is known of the op, and which of its accesses is meant.
    """
    before = sum(number_of(event) == record.number for event in run.streams[lane][:place])
    return Site(record.mnemonic, record.location, pipe, recorded.program.core_ids(run.block)[lane].label, before, operand,
                record.number)


def _reaching(recorded: Recorded, run: BlockRun, suspect: Hazard) -> Hazard | None:
    """The suspect with the store of the first byte that depends on it; None where no byte does."""
    return dependent(recorded, run, suspect, *(recorded.replay.after(run, poison=poison) for poison in (POISON, OTHER)))


def dependent(recorded: Recorded, run: BlockRun, suspect: Hazard, first: Again | None, second: Again | None, *,
              ignored: Mapping[int, NDArray[np.bool_]] | None = None) -> Hazard | None:
    """A report with the store of the first byte in which two runs of a block differ; None where they do not.

    Args:
        recorded, run: the launch and the block.
        suspect: the read whose bytes were different in the two runs.
        first, second: what they left; None where it is not known.
        ignored: bytes of tensors that were different from the start.
    """
    bound = recorded.bound
    if first is None or second is None:
        return None  # not decided: the replay says so
    if first.recorded != second.recorded:
        what = "which ops the block runs, or where, depends on them"
        return Hazard(suspect.code, suspect.kind, suspect.first, None, suspect.memory, suspect.start, suspect.end, what,
                      run.block, suspect.buffer)
    spans = recorded.replay.spans(run)
    for buffer, (one, two) in enumerate(zip(first.arrays, second.arrays, strict=True)):
        if one is None or two is None or bound.parameters[buffer].role == "workspace" or buffer not in spans:
            continue
        start, end = spans[buffer]
        different = one[start:end] != two[start:end]
        if ignored is not None and buffer in ignored:
            different &= ~ignored[buffer][start:end]
        differ = start + np.flatnonzero(different)
        if differ.size:
            byte = int(differ[0])
            store, label = _writer(recorded, run, buffer, byte)
            what = f"{differ.size} bytes of {label or 'a tensor'} depend on them, the first is byte {byte}"
            return Hazard(suspect.code, suspect.kind, suspect.first, store, suspect.memory, suspect.start, suspect.end, what,
                          run.block, suspect.buffer)
    return None


def _writer(recorded: Recorded, run: BlockRun, buffer: int, byte: int) -> tuple[Site | None, str]:
    """The first op of a block, or of one that it waits for, that writes a byte of a tensor, and what the tensor is called."""
    for one in recorded.replay.together(run):
        for lane, (stream, offsets) in enumerate(zip(one.streams, one.gm, strict=True)):
            records = recorded.program.functions[recorded.program.lanes[lane][0]].records
            position = 0
            for place, event in enumerate(stream):
                record = records[number_of(event)]
                for access in (access for access in record.accesses if access.offset is None):
                    where = footprint(access, event, offsets[position]).simplified()
                    position += 1
                    if access.writes and access.buffer == buffer and where.touches(byte):
                        return site_of(recorded, one, lane, place, record, access.pipe, access.name), access.label
    return None, ""
