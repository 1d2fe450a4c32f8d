"""Detection of results that depend on on-chip bytes that no op of the block wrote (S221).

Reading such bytes alone is no fault: a tile at the edge of a tensor is loaded in part and computed as a whole, and the results
of the rest are not stored. Therefore a block that reads unwritten bytes runs twice more, on copies of the arrays, with
different initial contents of the on-chip memories. If the results differ, they depend on uninitialised bytes. On a real chip
these bytes have the values that another kernel left there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import POISON
from tilelang_npu.simulator.machine.op_records import OpRecord, accesses_to_gm, footprint, number_of
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch, ReplayResult
from tilelang_npu.simulator.run.uninitialised_reads import find_uninitialised_reads
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Site
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import Pipe

OTHER = 0x5B
"""The byte that fills the memories in the second run. It gives an ordinary number in every element type; the byte of the first
run, ``POISON``, gives NaN or -1."""


def find_uninitialised_memory(recorded: RecordedLaunch, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """Yields a hazard for each block in which a result depends on a read of unwritten on-chip bytes, in the order of blocks.
    The hazard names the first read of unwritten bytes by one of the block's cores.

    Args:
        recorded: the record of the launch.
        blocks: the blocks to check: one of each kind of event streams.
    """
    for run in blocks:
        suspects: list[Hazard | None] = [
            recorded.alike.made.get(("uninitialised", recorded.program.lanes[lane][0], id(stream)),
                                    lambda run=run, lane=lane: _suspect(recorded, run, lane))  # type: ignore[misc]  # as above
            for lane, stream in enumerate(run.streams)]
        suspect = next((one for one in suspects if one is not None), None)
        if suspect is not None:
            left = (recorded.replay.after(run, poison=poison) for poison in (POISON, OTHER))
            hazard = dependent(recorded, run, suspect, *left)
            if hazard is not None:
                yield hazard
            if recorded.program.global_sync:
                return  # all blocks took part


def _suspect(recorded: RecordedLaunch, run: BlockRun, lane: int) -> Hazard | None:
    """Returns the first read of unwritten bytes by a core, as a hazard that does not name a dependent result yet; None if there
    is no such read."""
    read = next(find_uninitialised_reads(recorded.program, run.streams, lane), None)
    if read is None:
        return None
    access = read.access
    site = site_of(recorded, run, lane, read.place, read.record, access.pipe, access.name)
    return Hazard("S221", "unwritten", site, None, name_of(access.memory), read.start, read.end, "", run.block, access.label)


def site_of(recorded: RecordedLaunch, run: BlockRun, lane: int, place: int, record: OpRecord, pipe: Pipe, operand: str) -> Site:
    """Returns the report entry for an op of a block.

    Args:
        recorded: the record of the launch.
        run: the block.
        lane: position of the core among the block's cores.
        place: position of the op's event in the core's stream.
        record: the record of the op.
        pipe: the pipe that makes the access.
        operand: the role of the accessed operand in the op.
    """
    before = sum(number_of(event) == record.number for event in run.streams[lane][:place])
    return Site(record.mnemonic, record.location, pipe, recorded.program.core_ids(run.block)[lane].label, before, operand,
                record.number)


def dependent(recorded: RecordedLaunch, run: BlockRun, suspect: Hazard, first: ReplayResult | None, second: ReplayResult | None,
              *, ignored: Mapping[int, NDArray[np.bool_]] | None = None) -> Hazard | None:
    """Returns ``suspect`` completed by the store of the first result byte in which two runs of a block differ; None if the runs
    do not differ or one of them failed.

    Args:
        recorded: the record of the launch.
        run: the block.
        suspect: the read whose bytes were different in the two runs.
        first: the result of the first run; None if that run failed.
        second: the result of the second run; None if that run failed.
        ignored: for some kernel arguments, a mask of the bytes that differed already before the runs.
    """
    bound = recorded.bound
    if first is None or second is None:
        return None  # not decided: ``Replay.failed`` says so
    if first.recorded != second.recorded:
        what = "which ops the block runs, or at which addresses, depends on them"
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


def _writer(recorded: RecordedLaunch, run: BlockRun, buffer: int, byte: int) -> tuple[Site | None, str]:
    """Returns the first op that writes a byte of a tensor, in a block or in the blocks that run together with it, and the name
    of the tensor; None and an empty name if there is no such op.

    Args:
        buffer: the kernel argument of the tensor.
        byte: the byte's offset in the tensor.
    """
    for one in recorded.replay.together(run):
        for lane, (stream, offsets) in enumerate(zip(one.streams, one.gm, strict=True)):
            records = recorded.program.functions[recorded.program.lanes[lane][0]].records
            writes = accesses_to_gm(records, stream, lambda access: access.writes and access.buffer == buffer)
            for position, place, event, access in writes:
                if footprint(access, event, offsets[position]).simplified().touches(byte):
                    record = records[number_of(event)]
                    return site_of(recorded, one, lane, place, record, access.pipe, access.name), access.label
    return None, ""
