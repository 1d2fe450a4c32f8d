"""Reads of bytes that another buffer left, if a result depends on them.

Buffers whose live ranges do not overlap share addresses. If such a buffer is written only in part, or not at all, and then read
whole, the rest holds values of another buffer: ordinary numbers, equal in every run, right or wrong by the placement of
buffers. As with uninitialised bytes, the read alone is no fault. So the block runs again on copies, with these bytes replaced
just before the reads; if a result differs, it depends on the other buffer's values.

The planner gives bytes to one buffer after the other, so a read of bytes that another planned buffer wrote is always checked.
An author who pins addresses, or writes HIVM, may intend two buffers as aliases. A read of such a buffer is checked if

- the buffer itself was the last to write other bytes of the same read, or
- the buffer itself wrote these bytes before another buffer did: both need the bytes at the same time.

Two buffers count as aliases once one reads bytes that the other wrote, without having written there before. Bytes that an
author reuses for one buffer after the other are no finding, because each buffer is written before it is read.

The same can happen inside one buffer: a load that transfers less than in an earlier iteration, as for the last tile, leaves the
rest of the earlier tile. Until that is overwritten, it belongs to the earlier load.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import POISON, Array
from tilelang_npu.simulator.machine.op_records import Access, Event, Footprint, OpRecord, footprint, number_of
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch
from tilelang_npu.simulator.run.uninitialised_reads import from_other_cores
from tilelang_npu.simulator.sanitizer.hazard import Hazard
from tilelang_npu.simulator.sanitizer.shadow_memory import overlapping_elements
from tilelang_npu.simulator.sanitizer.uninitialised_memory import OTHER, dependent, site_of
from tilelang_npu.target import name_of

if TYPE_CHECKING:
    from xdsl.ir import Operation


class _Suspect(NamedTuple):
    """A read of bytes that belong to another buffer.

    Attributes:
        record, iteration, operand: the op, how often it had run, and the position among its operands that are read.
        mask: the elements concerned, in the operand's shape.
        hazard: the hazard without the dependent result.
        restores: whether the other buffer still needs the bytes: they are replaced for this read only.
    """

    record: OpRecord
    iteration: int
    operand: int
    mask: NDArray[np.bool_]
    hazard: Hazard
    restores: bool


class _Replaced:
    """An observer that replaces the bytes of other buffers before each suspected read."""

    def __init__(self, suspects: Sequence[_Suspect], block: int, sub: int, byte: int) -> None:
        self._block, self._sub, self._byte = block, sub, byte
        self._suspects: dict[tuple[str, int], dict[int, list[_Suspect]]] = {}
        self._seen: dict[tuple[str, int], int] = {}
        for suspect in suspects:
            op = self._suspects.setdefault((suspect.record.core, suspect.record.number), {})
            op.setdefault(suspect.iteration, []).append(suspect)

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        """Overwrites the bytes before a read."""
        key = record.core, record.number
        if (block, sub) != (self._block, self._sub) or key not in self._suspects:
            return None
        iteration = self._seen[key] = self._seen.get(key, -1) + 1
        held: list[tuple[Array, NDArray[np.bool_], Array]] = []
        for suspect in self._suspects[key].get(iteration, ()):
            array = reads[suspect.operand]
            if array.shape == suspect.mask.shape:
                if suspect.restores:
                    kept = suspect.mask & ~overlapping_elements(array, writes)
                    held.append((array, kept, array[kept]))
                array[suspect.mask] = np.frombuffer(bytes([self._byte] * array.dtype.itemsize), array.dtype)[0]
        return held

    def after(self, kept: object) -> None:
        """Restores bytes that another buffer still needs and the op has not written."""
        for array, where, values in kept if isinstance(kept, list) else ():
            array[where] = values


def find_reused_bytes(recorded: RecordedLaunch, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """Yields reads of bytes of other buffers that a result depends on, at most one for each block, in the order of the blocks.

    Args:
        recorded: the launch.
        blocks: the blocks to check: one of each kind.
    """
    for run in blocks:
        for lane, stream in enumerate(run.streams):
            suspects: list[_Suspect] = recorded.alike.made.get(
                ("stale", recorded.program.lanes[lane][0], id(stream)),
                lambda run=run, lane=lane: list(_suspects(recorded, run, lane)))  # type: ignore[misc]  # defaults of a lambda
            found = _first_dependent(recorded, run, suspects, recorded.program.lanes[lane][1])
            if found is not None:
                yield found
                break


def _first_dependent(recorded: RecordedLaunch, run: BlockRun, suspects: Sequence[_Suspect], sub: int) -> Hazard | None:
    """Returns the hazard of the first suspect that a result depends on.

    All suspects are replaced at once, as few results depend on any; then a binary search finds the first.
    """
    first = recorded.replay.after(run) if suspects else None

    def found(count: int, byte: int) -> Hazard | None:
        second = recorded.replay.after(run, observer=_Replaced(suspects[:count], run.block, sub, byte))
        return dependent(recorded, run, suspects[count - 1].hazard, first, second)

    for byte in (OTHER, POISON) if suspects else ():
        if found(len(suspects), byte) is not None:
            count = bisect_left(range(1, len(suspects) + 1), True, key=lambda count: found(count, byte) is not None) + 1
            hazard = found(count, byte)
            assert hazard is not None, "the same number of suspects had an effect before"
            return replace(hazard, missing=f"{suspects[count - 1].hazard.missing}; {hazard.missing}")
    return None


@dataclass
class _Owners:
    """Which buffer was the last to write each byte of a core's memories.

    Attributes:
        sizes: bytes of each memory.
        from_other_cores: writes of the block's other cores into the memories, at any time; consumed when first needed.
        names: by number minus 1, the label of a buffer, and whether the number stands for its earlier load.
        changed: counter of the changes.
    """

    sizes: Mapping[str, int]
    from_other_cores: Iterable[tuple[str, Footprint]] = ()
    names: list[tuple[str, bool]] = field(default_factory=list)
    changed: int = 0
    _numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    _buffers: dict[int, int] = field(default_factory=dict)
    """The buffer of each number; for an earlier load the number of the buffer itself."""
    _by_hand: set[int] = field(default_factory=set)
    """Buffers that the planner has not placed."""
    _overwritten: dict[int, dict[str, NDArray[np.bool_]]] = field(default_factory=dict)
    """For each of them, the bytes that it wrote and another buffer has overwritten."""
    _same: set[tuple[int, int]] = field(default_factory=set)
    """Pairs of buffers that are aliases."""
    _others: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    _owners: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    _loads: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    _met: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    _before: dict[tuple[int, int], Footprint] = field(default_factory=dict)

    def number(self, access: Access, earlier: bool = False) -> int:
        """Returns the number of an access's buffer."""
        key = access.memory, access.owner, earlier
        if key not in self._numbers:
            self.names.append((access.label or f"a buffer in {name_of(access.memory)}", earlier))
            self._numbers[key] = number = len(self.names)
            self._buffers[number] = self.number(access) if earlier else number
            if not access.planned:
                self._by_hand.add(number)
        return self._numbers[key]

    def of(self, memory: str, where: Footprint) -> NDArray[np.int32]:
        """Returns the number of each byte's owner, in the footprint's shape."""
        return self._view(self._owners, memory, where)

    def foreign(self, access: Access, where: Footprint) -> NDArray[np.bool_]:
        """Returns which bytes of a read belong to another buffer, except those that were reported since they were written."""
        view, mine = self.of(access.memory, where), self.number(access)
        found: NDArray[np.bool_] = (view != mine) & (view != 0)
        if not access.planned and found.any():
            found &= self._needed(access.memory, where, view, mine)
        return found & (self._view(self._met, access.memory, where) != mine) if access.memory in self._met else found

    def _needed(self, memory: str, where: Footprint, view: NDArray[np.int32], mine: int) -> NDArray[np.bool_]:
        """Returns which bytes of a read the author cannot have intended to share with another buffer."""
        found = np.ones(view.shape, np.bool_)
        for space, written in self.from_other_cores:
            self._view(self._others, space, written, np.bool_)[...] = True
        self.from_other_cores = ()
        owners = {int(number): self._buffers[int(number)] for number in np.unique(view[view != 0])}
        if mine not in owners:
            lost = self._overwritten.get(mine, {})
            found = self._view(lost, memory, where).copy() if memory in lost else ~found
        if memory in self._others:
            found &= ~self._view(self._others, memory, where)
        elif not found.any():  # it never wrote there, so it reads what the other buffer provides
            self._same.update((mine, other) for other in owners.values() if other != mine)
        for number, other in owners.items():
            if (mine, other) in self._same or (other, mine) in self._same:
                found &= view != number
        return found

    def overwrote(self, access: Access, where: Footprint, foreign: NDArray[np.bool_]) -> bool:
        """Whether another buffer overwrote bytes of a read that were the buffer's own."""
        lost = self._overwritten.get(self.number(access), {})
        return access.memory in lost and bool(self._view(lost, access.memory, where)[foreign].any())

    def meet(self, access: Access, where: Footprint, foreign: NDArray[np.bool_]) -> None:
        """Notes bytes of a read as reported."""
        self._view(self._met, access.memory, where)[foreign] = self.number(access)

    def is_met(self, record: OpRecord) -> bool:
        """Whether an op may access reported bytes: its writes make them new."""
        return any(access.memory in self._met for access in record.accesses)

    def write(self, record: OpRecord, event: Event, access: Access, where: Footprint) -> None:
        """Notes a write."""
        self._set_owner(access.memory, where, self.number(access))
        if access.memory in self._met:
            self._view(self._met, access.memory, where)[...] = 0
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
                    self.of(access.memory, before)[rest] = self.number(access, earlier=True)
        elif not any(other.reads and other.memory == access.memory and footprint(other, event) == where
                     for other in record.accesses):
            self._set(loads, 0)

    def _set(self, view: NDArray[np.int32], number: int) -> None:
        if (view != number).any():
            view[...] = number
            self.changed += 1

    def _set_owner(self, memory: str, where: Footprint, number: int) -> None:
        view = self.of(memory, where)
        if number in self._overwritten and memory in self._overwritten[number]:
            self._view(self._overwritten[number], memory, where)[...] = False
        if (view == number).all():
            return
        for before in np.unique(view) if self._by_hand else ():
            buffer = self._buffers.get(int(before))
            if buffer in self._by_hand and buffer != number:
                lost = self._overwritten.setdefault(buffer, {})
                if memory not in lost:
                    lost[memory] = np.zeros(self.sizes[memory], np.bool_)
                self._view(lost, memory, where)[view == before] = True
        view[...] = number
        self.changed += 1

    def _view(self, arrays: dict[str, NDArray[Any]], memory: str, where: Footprint,
              dtype: type[np.generic] = np.int32) -> NDArray[Any]:
        array = arrays.get(memory)
        if array is None:
            array = arrays[memory] = np.zeros(self.sizes[memory], dtype)
        width = array.itemsize
        return np.ndarray((*where.sizes, where.element), array.dtype, array, width * where.offset,
                          tuple(width * stride for stride in (*where.strides, 1)))


def _inside(where: Footprint, other: Footprint, size: int) -> NDArray[np.bool_]:
    """Returns which bytes of a footprint another one contains too."""
    touched = np.zeros(size, np.bool_)
    for part, mark in ((other, True), (where, None)):
        view = np.ndarray((*part.sizes, part.element), np.bool_, touched, part.offset, (*part.strides, 1))
        if mark is None:
            return view
        view[...] = mark
    raise AssertionError


def _suspects(recorded: RecordedLaunch, run: BlockRun, lane: int) -> Iterator[_Suspect]:
    """Yields reads of bytes of another buffer, or of an earlier load, in program order; for the same bytes the first read since
    they were written, or every read if the other buffer still needs them."""
    index, _ = recorded.program.lanes[lane]
    records = recorded.program.functions[index].records
    owners = _Owners({name: memory.size for name, memory in recorded.program.chip.memory.items()},
                     from_other_cores(recorded.program, run.streams, lane))
    writers: dict[int, int] = {}
    counts: dict[int, int] = {}
    done: dict[Event, int] = {}
    masks: dict[tuple[tuple[int, ...], bytes], NDArray[np.bool_]] = {}
    for place, event in enumerate(run.streams[lane]):
        record = records[number_of(event)]
        iteration = counts.get(record.number, 0)
        counts[record.number] = iteration + 1
        if done.get(event) == owners.changed and not owners.is_met(record):  # no other op has written since
            continue
        reads, again = [access for access in record.accesses if access.reads and not access.scratch], False
        for writes in (False, True):
            for access in record.accesses:
                elsewhere = access.memory == "gm" or access.holder
                if elsewhere or not (access.writes if writes else access in reads):
                    continue
                where = footprint(access, event)
                if where.empty:
                    continue
                if writes:
                    owners.write(record, event, access, where)
                    writers[owners.number(access)] = writers[owners.number(access, earlier=True)] = record.number
                    continue
                if not access.is_read(event):
                    continue
                foreign = owners.foreign(access, where)
                if foreign.any():
                    tenant = int(owners.of(access.memory, where)[foreign][0])
                    name, earlier = owners.names[tenant - 1]
                    line = records[writers[tenant]].location
                    lost = owners.overwrote(access, where, foreign)
                    what = (f"an earlier load of {name}" if earlier else name) + (" overwrote them" if lost else " left them")
                    what += f" at line {line.line}" if line is not None and not earlier else ""
                    bytes_at = np.flatnonzero(foreign.reshape(-1))
                    start = where.offset + _byte(int(bytes_at[0]), where.sizes, where.strides, where.element)
                    end = where.offset + _byte(int(bytes_at[-1]), where.sizes, where.strides, where.element) + 1
                    hazard = Hazard("S222", "left over", site_of(recorded, run, lane, place, record, access.pipe, access.name),
                                    None, name_of(access.memory), start, end, what, run.block, access.label)
                    mask: NDArray[np.bool_] = np.any(foreign, axis=-1)
                    mask = masks.setdefault((mask.shape, mask.tobytes()), mask)
                    yield _Suspect(record, iteration, reads.index(access), mask, hazard, lost)
                    again |= lost
                    if not lost:
                        owners.meet(access, where, foreign)
        if not again:
            done[event] = owners.changed


def _byte(flat: int, sizes: Sequence[int], strides: Sequence[int], element: int) -> int:
    """Returns the offset of a byte of a footprint, by its number."""
    number, within = divmod(flat, element)
    at = np.unravel_index(number, tuple(sizes)) if sizes else ()
    return within + sum(int(index) * stride for index, stride in zip(at, strides, strict=True))
