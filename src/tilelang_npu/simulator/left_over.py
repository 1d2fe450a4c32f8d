"""Bytes that one buffer left and another one reads as its own, where a result depends on them.

Buffers whose lives do not overlap share addresses. One that is written in part and read as a whole then has another one's
values in the rest: they are ordinary numbers, the same in every run, and right or wrong by where the buffers happen to lie.
As with bytes that nothing wrote, reading them is no fault as long as nothing comes of it. So the block runs twice more on
copies, the second time with these bytes replaced just before the read; if a tensor differs then, it depends on what the other
buffer left.

A buffer of which no byte is its own is not looked at: who reads one buffer under another one's name means to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tilelang_npu.simulator.codegen.views import SPOKEN
from tilelang_npu.simulator.events import Event, OpRecord, footprint, number_of
from tilelang_npu.simulator.finding import Hazard
from tilelang_npu.simulator.program import BlockRun, Recorded
from tilelang_npu.simulator.unwritten import OTHER, dependent, site_of


class _Suspect(NamedTuple):
    """A read of bytes that are another buffer's.

    Attributes:
        lane: the core.
        record, iteration, operand: the op, how often it had run, and which of its reading operands it is.
        mask: the elements concerned, in the operand's shape.
        hazard: the report, as far as it is known.
    """

    lane: int
    record: OpRecord
    iteration: int
    operand: int
    mask: NDArray[np.bool_]
    hazard: Hazard


class _Replaced:
    """An observer that puts other numbers in the place of what a buffer left."""

    def __init__(self, suspect: _Suspect, sub: int) -> None:
        self._suspect, self._sub, self._seen = suspect, sub, 0

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[NDArray[Any]],
               writes: Sequence[NDArray[Any]]) -> object:
        """Write over the bytes when the read is about to happen."""
        wanted = self._suspect.record
        if (record.number, record.core, sub) != (wanted.number, wanted.core, self._sub):
            return None
        self._seen += 1
        array = reads[self._suspect.operand]
        if self._seen == self._suspect.iteration + 1 and array.shape == self._suspect.mask.shape:
            array[self._suspect.mask] = np.frombuffer(bytes([OTHER] * array.dtype.itemsize), array.dtype)[0]
        return None

    def after(self, kept: object) -> None:
        """Nothing is looked at here."""


def find_left_over(recorded: Recorded, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """What results depend on though another buffer left it, at most one report for each block, in the order of the blocks.

    Args:
        recorded: the launch.
        blocks: the blocks to look at: one of each kind.
    """
    known: dict[tuple[int, int], _Suspect | None] = {}
    for run in blocks:
        for lane, stream in enumerate(run.streams):
            key = recorded.program.lanes[lane][0], id(stream)
            if key not in known:
                known[key] = next(_suspects(recorded, run, lane), None)
            suspect = known[key]
            if suspect is None:
                continue
            sub = recorded.program.lanes[lane][1]
            first, second = recorded.replay.after(run), recorded.replay.after(run, observer=_Replaced(suspect, sub))
            found = dependent(recorded, run, suspect.hazard, first, second)
            if found is not None:
                yield replace(found, missing=f"{suspect.hazard.missing}; {found.missing}")
                break


def _suspects(recorded: Recorded, run: BlockRun, lane: int) -> Iterator[_Suspect]:
    """Reads of a buffer that is in part another one's."""
    index, _ = recorded.program.lanes[lane]
    records, chip = recorded.program.functions[index].records, recorded.program.chip
    owners: dict[str, NDArray[np.int32]] = {}
    names: dict[str, int] = {}
    writers: dict[int, int] = {}
    counts: dict[int, int] = {}
    done: dict[Event, int] = {}
    changed = 0
    for place, event in enumerate(run.streams[lane]):
        record = records[number_of(event)]
        iteration = counts.get(record.number, 0)
        counts[record.number] = iteration + 1
        if done.get(event) == changed:  # nothing was written by another op since it was looked at
            continue
        reads = [access for access in record.accesses if access.reads and access.name != "temp_buffer"]
        for writes in (False, True):
            for access in record.accesses:
                if access.memory == "gm" or not (access.writes if writes else access in reads) or not access.label:
                    continue
                where = footprint(access, event)
                if where.empty:
                    continue
                owner = owners.setdefault(access.memory, np.zeros(chip.memory[access.memory].size, np.int32))
                view = np.ndarray((*where.sizes, where.element), np.int32, owner, 4 * where.offset,
                                  tuple(4 * stride for stride in (*where.strides, 1)))
                mine = names.setdefault(access.label, len(names) + 1)
                if writes:
                    if (view != mine).any():
                        view[...] = mine
                        changed += 1
                    writers[mine] = record.number
                    continue
                foreign = (view != mine) & (view != 0)
                if foreign.any() and (view == mine).any():
                    tenant = int(view[foreign][0])
                    name = next(name for name, number in names.items() if number == tenant)
                    line = records[writers[tenant]].location
                    what = f"{name} left them" + (f" at line {line.line}" if line is not None else "")
                    bytes_at = np.flatnonzero(foreign.reshape(-1))
                    start = where.offset + _byte(int(bytes_at[0]), where.sizes, where.strides, where.element)
                    end = where.offset + _byte(int(bytes_at[-1]), where.sizes, where.strides, where.element) + 1
                    hazard = Hazard("S222", "left over", site_of(recorded, run, lane, place, record, access.pipe, access.name),
                                    None, SPOKEN[access.memory], start, end, what, run.block, access.label)
                    yield _Suspect(lane, record, iteration, reads.index(access), foreign.any(axis=-1), hazard)
        done[event] = changed


def _byte(flat: int, sizes: Sequence[int], strides: Sequence[int], element: int) -> int:
    """Where a byte of a footprint lies, by its number in it."""
    number, within = divmod(flat, element)
    at = np.unravel_index(number, tuple(sizes)) if sizes else ()
    return within + sum(int(index) * stride for index, stride in zip(at, strides, strict=True))
