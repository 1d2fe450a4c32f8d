"""Detection of results that depend on on-chip bytes that no op of the block wrote (S221).

Reading such bytes alone is no fault: a tile at the edge of a tensor is loaded in part and computed as a whole, and the results
of the rest are not stored. Therefore a block that reads unwritten bytes runs twice more, on copies of the arrays, with
different initial contents of the on-chip memories. If the results differ, they depend on uninitialised bytes. On a real chip
these bytes have the values that another kernel left there. If the block reads unwritten bytes of several buffers, it runs once
more for each, with different contents of this buffer alone, until the results differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import OTHER, POISON, Spot
from tilelang_npu.simulator.machine.op_records import (
    Access,
    Mmad,
    Multiply,
    OpRecord,
    accesses_to_gm,
    footprint,
    number_of,
)
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch, ReplayResult
from tilelang_npu.simulator.run.uninitialised_reads import find_uninitialised_reads
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Site
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import Pipe

_MAX_SUSPECTS = 16
"""The number of reads of a block for which it is tried whether a result depends on their bytes."""


class _UnwrittenRead(NamedTuple):
    """A read of unwritten bytes, as a hazard that does not name a dependent result yet, and the bytes."""

    hazard: Hazard
    spot: Spot


def find_uninitialised_memory(recorded: RecordedLaunch, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """Yields a hazard for each block in which a result depends on a read of unwritten on-chip bytes, in the order of blocks.
    The hazard names the first read of unwritten bytes on which a result depends.

    Args:
        recorded: the record of the launch.
        blocks: the blocks to check: one of each kind of event streams.
    """
    for run in blocks:
        suspects = [
            suspect for lane, stream in enumerate(run.streams)
            for suspect in recorded.alike.made.get(
                ("uninitialised", recorded.program.lanes[lane][0], id(stream)),
                lambda run=run, lane=lane: _suspects(recorded, run, lane))]  # type: ignore[misc]  # as above
        if suspects:
            hazard = _first_dependent(recorded, run, suspects)
            if hazard is not None:
                yield hazard
            if recorded.program.global_sync:
                return  # all blocks took part


def _first_dependent(recorded: RecordedLaunch, run: BlockRun, suspects: Sequence[_UnwrittenRead]) -> Hazard | None:
    """Returns the first of the suspected reads on whose bytes a result of a block depends; None if no result depends on
    unwritten bytes. If a result depends only on the bytes of several reads together, this is the first read."""
    first, second = (recorded.replay.after(run, poison=poison) for poison in (POISON, OTHER))
    found = dependent(recorded, run, suspects[0].hazard, first, second)
    if found is None or len(suspects) == 1:
        return found
    # An ordinary number everywhere else: NaN of one buffer would hide that a result depends on another one, too.
    each = (dependent(recorded, run, hazard, second, recorded.replay.after(run, poison=OTHER, spot=spot))
            for hazard, spot in suspects[:_MAX_SUSPECTS])
    return next((one for one in each if one is not None), found)


def _suspects(recorded: RecordedLaunch, run: BlockRun, lane: int) -> list[_UnwrittenRead]:
    """Returns the reads of unwritten bytes by a core, of each buffer the first one."""
    found: dict[tuple[str, str], _UnwrittenRead] = {}
    for read in find_uninitialised_reads(recorded.program, run.streams, lane):
        access = read.access
        if (access.memory, access.label) not in found and len(found) < _MAX_SUSPECTS:
            site = site_of(recorded, run, lane, read.place, read.record, access.pipe, access.name)
            hazard = Hazard("S221", "unwritten", site, None, name_of(access.memory), read.start, read.end, "", run.block,
                            access.label, repair_of(read.record, access))
            found[access.memory, access.label] = _UnwrittenRead(hazard, Spot(access.memory, read.start, read.reach))
    return list(found.values())


_PRODUCTS = re.compile(r"\b(gemm|gemm_v0|gemm_mx|mma|mma_mx|npuir_dot|dot)\(")
_INITIAL = re.compile(r"\b(initC|init|clear_accum)\s*=\s*")


def repair_of(record: OpRecord, access: Access) -> str:
    """Returns how to repair a read of bytes that the buffer's own ops did not write; empty if no repair is known.

    For an accumulator to which a product adds, the repair is to start the sum from 0.

    Args:
        record: the record of the op that reads.
        access: the access that reads.
    """
    text = record.location.source() if record.location is not None else ""
    call = _PRODUCTS.search(text)
    if not isinstance(record.work, Mmad | Multiply) or access.name != "c" or call is None:
        return ""
    named = bool(access.label) and re.search(rf"\b{re.escape(access.label)}\b", text) is not None
    buffer = access.label if named else "the accumulator"  # the compiler names some buffers itself
    clear = f"T.clear({buffer})" if named else f"T.clear of {buffer}"
    adds = f"the product adds to what {buffer} held before"
    given = _INITIAL.search(text)
    if given is not None and not text[given.end():].startswith("False"):  # a condition, which is never true before the read
        return f"{adds}: {clear} before the first product makes it 0"
    name = given[1] if given is not None else "initC" if call[1] in ("gemm", "npuir_dot", "dot") else "init"
    if not record.loops:
        return f"{adds}: write {name}=True, or {clear} before it"
    return f"{adds}: write {name}=(k == 0), where k is the loop's variable, or {clear} before the loop"


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
        return replace(suspect, missing=what, block=run.block)
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
            return replace(suspect, second=store, missing=what, block=run.block)
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
