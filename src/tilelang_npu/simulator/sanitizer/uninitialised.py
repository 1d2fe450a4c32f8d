"""Bytes on chip that an op reads though nothing in its block wrote them, where a result depends on them.

That an op reads such bytes is no fault: a tile at the edge is loaded in part and computed as a whole, and what the rest of it
holds goes nowhere. So a block in which it happens runs twice more, on copies, with different bytes in the memories at first. If
the tensors differ then, something that nothing wrote has reached them; it would be another kernel's left-overs on a card.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.events import Event, Footprint, OpRecord, footprint, number_of
from tilelang_npu.simulator.machine.memory import POISON
from tilelang_npu.simulator.run.recorded import Again, BlockRun, Recorded
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
                                    lambda run=run, lane=lane: next(_reads(recorded, run, lane), None))  # type: ignore[misc]
            for lane, stream in enumerate(run.streams)]
        suspect = next((one for one in suspects if one is not None), None)
        if suspect is not None:
            hazard = _reaching(recorded, run, suspect)
            if hazard is not None:
                yield hazard
            if recorded.program.global_sync:
                return  # all blocks were in it


def _reads(recorded: Recorded, run: BlockRun, lane: int) -> Iterator[Hazard]:
    """Reads of bytes that nothing wrote before, as reports without the store that makes them matter."""
    index, _ = recorded.program.lanes[lane]
    records, chip = recorded.program.functions[index].records, recorded.program.chip
    written: dict[str, NDArray[np.bool_]] = {}
    for memory, where in _from_other_cores(recorded, run, lane):
        _view(written.setdefault(memory, np.zeros(chip.memory[memory].size, np.bool_)), where)[...] = True
    done: set[Event] = set()
    for place, event in enumerate(run.streams[lane]):
        if event in done:  # what it reads was looked at, and what it writes is written
            continue
        done.add(event)
        record = records[number_of(event)]
        for writes in (False, True):
            for access in record.accesses:
                if access.memory == "gm" or access.holder or not (access.writes if writes else access.reads):
                    continue
                where = footprint(access, event).simplified()
                if where.empty:
                    continue
                cover = written.setdefault(access.memory, np.zeros(chip.memory[access.memory].size, np.bool_))
                view = _view(cover, where)
                if writes:
                    view[...] = True
                elif not view.all():
                    at = np.unravel_index(int((~view).argmax()), view.shape)
                    start = where.offset + sum(int(i) * s for i, s in zip(at, (*where.strides, 1), strict=True))
                    end = start + int((~view).sum())
                    site = site_of(recorded, run, lane, place, record, access.pipe, access.name)
                    yield Hazard("S221", "unwritten", site, None,
                                 name_of(access.memory), start, end, "", run.block, access.label)
                    view[...] = True


def _from_other_cores(recorded: Recorded, run: BlockRun, lane: int) -> Iterator[tuple[str, Footprint]]:
    """What the block's other cores write into the memories of a core; when they do is for the flags to say."""
    program = recorded.program
    label = program.core_ids(run.block)[lane].label
    for other, (index, _) in enumerate(program.lanes):
        records = program.functions[index].records
        into = {record.number: [access for access in record.accesses if access.writes and access.holder == label]
                for record in records}
        for event in set(run.streams[other]) if any(into.values()) else ():
            for access in into[number_of(event)]:
                where = footprint(access, event).simplified()
                if not where.empty:
                    yield access.memory, where


def _view(cover: NDArray[np.bool_], where: Footprint) -> NDArray[np.bool_]:
    return np.ndarray((*where.sizes, where.element), np.bool_, cover, where.offset, (*where.strides, 1))


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
