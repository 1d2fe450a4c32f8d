"""Bytes that something else left and an op reads as its own, where a result depends on them.

Buffers whose lives do not overlap share addresses. One that is written in part and read as a whole then has another one's
values in the rest: they are ordinary numbers, the same in every run, and right or wrong by where the buffers happen to lie.
As with bytes that nothing wrote, reading them is no fault as long as nothing comes of it. So the block runs twice more on
copies, the second time with these bytes replaced just before the read; if a tensor differs then, it depends on what the other
buffer left.

A buffer of which no byte is its own is not looked at: who reads one buffer under another one's name means to.

The same happens inside one buffer: a load that moves less than it did in an earlier iteration, as the last tile's, leaves the
rest as it was. Until something is written over it, that rest is the earlier tile's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.events import Access, Event, Footprint, OpRecord, footprint, number_of
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.run.recorded import BlockRun, Recorded
from tilelang_npu.simulator.sanitizer.finding import Hazard
from tilelang_npu.simulator.sanitizer.uninitialised import OTHER, dependent, site_of
from tilelang_npu.target import name_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

MOST_SUSPECTS = 4
"""Ops of a core that are looked into."""


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

    def __init__(self, suspect: _Suspect, block: int, sub: int) -> None:
        self._suspect, self._block, self._sub, self._seen = suspect, block, sub, 0

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        """Write over the bytes when the read is about to happen."""
        wanted = self._suspect.record
        if (record.number, record.core, block, sub) != (wanted.number, wanted.core, self._block, self._sub):
            return None
        self._seen += 1
        array = reads[self._suspect.operand]
        if self._seen == self._suspect.iteration + 1 and array.shape == self._suspect.mask.shape:
            array[self._suspect.mask] = np.frombuffer(bytes([OTHER] * array.dtype.itemsize), array.dtype)[0]
        return None

    def after(self, kept: object) -> None:
        """Nothing is looked at here."""


def find_stale(recorded: Recorded, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """What results depend on though another buffer left it, at most one report for each block, in the order of the blocks.

    Args:
        recorded: the launch.
        blocks: the blocks to look at: one of each kind.
    """
    for run in blocks:
        for lane, stream in enumerate(run.streams):
            suspects: list[_Suspect] = recorded.alike.made.get(
                ("stale", recorded.program.lanes[lane][0], id(stream)),
                lambda run=run, lane=lane: list(islice(_suspects(recorded, run, lane), MOST_SUSPECTS)))  # type: ignore[misc]
            found = _first_dependent(recorded, run, suspects, recorded.program.lanes[lane][1])
            if found is not None:
                yield found
                break


def _first_dependent(recorded: Recorded, run: BlockRun, suspects: Sequence[_Suspect], sub: int) -> Hazard | None:
    """The report of the first suspect that a result depends on."""
    first = recorded.replay.after(run) if suspects else None
    for suspect in suspects:
        second = recorded.replay.after(run, observer=_Replaced(suspect, run.block, sub))
        found = dependent(recorded, run, suspect.hazard, first, second)
        if found is not None:
            return replace(found, missing=f"{suspect.hazard.missing}; {found.missing}")
    return None


@dataclass
class _Owners:
    """Whose the bytes of a core's memories are.

    Attributes:
        names: the number of each buffer, by its label, and of what an earlier load of it left, by the label and ``True``.
        changed: counts what changed.
    """

    sizes: Mapping[str, int]
    names: dict[tuple[str, bool], int] = field(default_factory=dict)
    changed: int = 0
    _owners: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    _loads: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    _before: dict[tuple[int, int], Footprint] = field(default_factory=dict)

    def number(self, label: str, earlier: bool = False) -> int:
        return self.names.setdefault((label, earlier), len(self.names) + 1)

    def of(self, memory: str, where: Footprint) -> NDArray[np.int32]:
        """The number of each byte's owner, in the footprint's shape."""
        return self._view(self._owners, memory, where)

    def write(self, record: OpRecord, event: Event, access: Access, where: Footprint) -> None:
        """Note a write."""
        self._set(self.of(access.memory, where), self.number(access.label))
        loads = self._view(self._loads, access.memory, where)
        if record.pipe == "MTE2":
            key = record.number, where.offset
            before = self._before.get(key, where)
            self._before[key] = where
            self._set(loads, record.number + 1)
            if before.sizes != where.sizes:
                rest = self._view(self._loads, access.memory, before) == record.number + 1
                rest &= ~_inside(before, where, self.sizes[access.memory])
                if rest.any():
                    self.changed += 1
                    self.of(access.memory, before)[rest] = self.number(access.label, earlier=True)
        elif not any(other.reads and other.memory == access.memory and footprint(other, event) == where
                     for other in record.accesses):
            self._set(loads, 0)

    def _set(self, view: NDArray[np.int32], number: int) -> None:
        if (view != number).any():
            view[...] = number
            self.changed += 1

    def _view(self, arrays: dict[str, NDArray[np.int32]], memory: str, where: Footprint) -> NDArray[np.int32]:
        array = arrays.setdefault(memory, np.zeros(self.sizes[memory], np.int32))
        return np.ndarray((*where.sizes, where.element), np.int32, array, 4 * where.offset,
                          tuple(4 * stride for stride in (*where.strides, 1)))


def _inside(where: Footprint, other: Footprint, size: int) -> NDArray[np.bool_]:
    """Which bytes of a footprint another one touches too."""
    touched = np.zeros(size, np.bool_)
    for part, mark in ((other, True), (where, None)):
        view = np.ndarray((*part.sizes, part.element), np.bool_, touched, part.offset, (*part.strides, 1))
        if mark is None:
            return view
        view[...] = mark
    raise AssertionError


def _suspects(recorded: Recorded, run: BlockRun, lane: int) -> Iterator[_Suspect]:
    """Reads of a buffer that is in part another one's, or an earlier load's: one for each op."""
    index, _ = recorded.program.lanes[lane]
    records = recorded.program.functions[index].records
    owners = _Owners({name: memory.size for name, memory in recorded.program.chip.memory.items()})
    writers: dict[int, int] = {}
    counts: dict[int, int] = {}
    done: dict[Event, int] = {}
    told: set[int] = set()
    for place, event in enumerate(run.streams[lane]):
        record = records[number_of(event)]
        iteration = counts.get(record.number, 0)
        counts[record.number] = iteration + 1
        if done.get(event) == owners.changed:  # nothing was written by another op since it was looked at
            continue
        reads = [access for access in record.accesses if access.reads and not access.scratch]
        for writes in (False, True):
            for access in record.accesses:
                elsewhere = access.memory == "gm" or access.holder
                if elsewhere or not (access.writes if writes else access in reads) or not access.label:
                    continue
                where = footprint(access, event)
                if where.empty:
                    continue
                mine = owners.number(access.label)
                if writes:
                    owners.write(record, event, access, where)
                    writers[mine] = writers[owners.number(access.label, earlier=True)] = record.number
                    continue
                view = owners.of(access.memory, where)
                foreign = (view != mine) & (view != 0)
                if record.number not in told and foreign.any() and (view == mine).any():
                    told.add(record.number)
                    tenant = int(view[foreign][0])
                    name, earlier = next(name for name, number in owners.names.items() if number == tenant)
                    line = records[writers[tenant]].location
                    what = (f"an earlier load of {name}" if earlier else name) + " left them"
                    what += f" at line {line.line}" if line is not None and not earlier else ""
                    bytes_at = np.flatnonzero(foreign.reshape(-1))
                    start = where.offset + _byte(int(bytes_at[0]), where.sizes, where.strides, where.element)
                    end = where.offset + _byte(int(bytes_at[-1]), where.sizes, where.strides, where.element) + 1
                    hazard = Hazard("S222", "left over", site_of(recorded, run, lane, place, record, access.pipe, access.name),
                                    None, name_of(access.memory), start, end, what, run.block, access.label)
                    yield _Suspect(lane, record, iteration, reads.index(access), foreign.any(axis=-1), hazard)
        done[event] = owners.changed


def _byte(flat: int, sizes: Sequence[int], strides: Sequence[int], element: int) -> int:
    """Where a byte of a footprint lies, by its number in it."""
    number, within = divmod(flat, element)
    at = np.unravel_index(number, tuple(sizes)) if sizes else ()
    return within + sum(int(index) * stride for index, stride in zip(at, strides, strict=True))
