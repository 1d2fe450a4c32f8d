"""Detection of results that depend on bytes of another buffer at the same address (S222).

Buffers whose live ranges do not overlap share addresses. If such a buffer is written only in part, or not at all, and is then
read as a whole, the rest of the read returns values of another buffer: ordinary numbers, equal in every run, whose effect
depends on the placement of buffers. As with uninitialised bytes, the read alone is no fault. Therefore the block runs again, on
copies of the arrays, with these bytes replaced just before the reads. If a result differs, it depends on the other buffer.

The memory planner assigns bytes to one buffer at a time, so a read of bytes that another planned buffer wrote is always
checked. An author who pins addresses, or who writes HIVM, can intend two buffers as aliases. A read of such a buffer is checked
only if

- the last write of other bytes of the same read was made through the same buffer, or
- the same buffer wrote these bytes before another buffer overwrote them, so both buffers need the bytes at the same time.

Two buffers count as aliases as soon as one reads bytes that the other wrote without having written there before. If an author
uses bytes for one buffer after the other, there is no finding, because each buffer is written before it is read.

The same fault can occur inside one buffer: a load that transfers less than in an earlier iteration, such as that of the last
tile, leaves a part of the earlier tile in place. Until this part is overwritten, it belongs to the earlier load.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import OTHER, POISON, Array
from tilelang_npu.simulator.machine.op_records import (
    Access,
    Event,
    Footprint,
    OpRecord,
    accessed_parts,
    footprint,
    number_of,
)
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch
from tilelang_npu.simulator.run.uninitialised_reads import from_other_cores
from tilelang_npu.simulator.sanitizer.hazard import Hazard
from tilelang_npu.simulator.sanitizer.shadow_memory import overlapping_elements
from tilelang_npu.simulator.sanitizer.uninitialised_memory import dependent, repair_of, site_of
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import Space

if TYPE_CHECKING:
    from xdsl.ir import Operation


class _Suspect(NamedTuple):
    """A read of bytes that belong to another buffer.

    Attributes:
        record: the record of the op that reads.
        iteration: how often the core had executed the op before.
        operand: the position of the operand among those that the op reads.
        mask: the elements of the operand that hold such bytes, in the operand's shape.
        hazard: the hazard, still without the result that depends on the bytes.
        restores: whether the other buffer still needs the bytes, so that they must be replaced for this read only.
    """

    record: OpRecord
    iteration: int
    operand: int
    mask: NDArray[np.bool_]
    hazard: Hazard
    restores: bool


class _Replaced:
    """An observer that replaces the bytes of other buffers before each suspected read.

    Args:
        suspects: the suspected reads.
        block: the number of the block that executes them.
        sub: the number of the core among the block's cores of its kind.
        byte: the value that replaces the bytes.
    """

    def __init__(self, suspects: Sequence[_Suspect], block: int, sub: int, byte: int) -> None:
        self._block, self._sub, self._byte = block, sub, byte
        self._suspects: dict[tuple[str, int], dict[int, list[_Suspect]]] = {}
        self._seen: dict[tuple[str, int], int] = {}
        for suspect in suspects:
            op = self._suspects.setdefault((suspect.record.core, suspect.record.number), {})
            op.setdefault(suspect.iteration, []).append(suspect)

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        """Overwrites the suspected bytes before an op reads them; returns the bytes that :meth:`after` has to restore."""
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
        """Restores the bytes that another buffer still needs, except those that the op has written."""
        for array, where, values in kept if isinstance(kept, list) else ():
            array[where] = values


def find_reused_bytes(recorded: RecordedLaunch, blocks: Sequence[BlockRun]) -> Iterator[Hazard]:
    """Yields a hazard for each block in which a result depends on a read of another buffer's bytes: the first such read of the
    block, in the order of the blocks.

    Args:
        recorded: the record of the launch.
        blocks: the blocks to check: one of each kind of event streams.
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
    """Returns the hazard of the first suspected read that a result depends on; None if no result depends on any.

    The bytes of all suspected reads are replaced at once, because results rarely depend on any of them. Only if a result
    changes, a binary search finds the first read that changes it.
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
    """The owner of each byte of a core's memories: the buffer whose access wrote the byte last. Buffers have numbers from 1 on.

    Attributes:
        sizes: the number of bytes of each memory.
        from_other_cores: the writes of the block's other cores into these memories, at any time; iterated once, when first
            needed.
        names: at index ``number - 1``, the label of the buffer with that number, and whether the number identifies the part of
            the buffer that an earlier load wrote.
        changed: a counter that increases whenever an owner changes.
    """

    sizes: Mapping[Space, int]
    from_other_cores: Iterable[tuple[Space, Footprint]] = ()
    names: list[tuple[str, bool]] = field(default_factory=list)
    changed: int = 0
    _numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    _buffers: dict[int, int] = field(default_factory=dict)
    """For each number the number of the buffer; they differ if the number identifies an earlier load."""
    _by_hand: set[int] = field(default_factory=set)
    """The numbers of buffers whose address the memory planner did not choose."""
    _overwritten: dict[int, dict[Space, NDArray[np.bool_]]] = field(default_factory=dict)
    """For each buffer of ``_by_hand``, the bytes that it wrote and that another buffer has overwritten since."""
    _same: set[tuple[int, int]] = field(default_factory=set)
    """Pairs of buffers that the author intended as aliases."""
    _others: dict[Space, NDArray[np.bool_]] = field(default_factory=dict)
    _owners: dict[Space, NDArray[np.int32]] = field(default_factory=dict)
    _loads: dict[Space, NDArray[np.int32]] = field(default_factory=dict)
    _met: dict[Space, NDArray[np.int32]] = field(default_factory=dict)
    _before: dict[tuple[int, int], Footprint] = field(default_factory=dict)

    def number(self, access: Access, earlier: bool = False) -> int:
        """Returns the number of the buffer of an access.

        With ``earlier``, returns the number that identifies the part of this buffer that an earlier load wrote.
        """
        key = access.memory, access.owner, earlier
        if key not in self._numbers:
            self.names.append((access.label or f"a buffer in {name_of(access.memory)}", earlier))
            self._numbers[key] = number = len(self.names)
            self._buffers[number] = self.number(access) if earlier else number
            if not access.planned:
                self._by_hand.add(number)
        return self._numbers[key]

    def of(self, memory: Space, where: Footprint) -> NDArray[np.int32]:
        """Returns, for each byte of a footprint, the number of the byte's owner; 0 for a byte that no buffer owns.

        The result has the shape of the footprint, with an additional last axis for the bytes of an element.
        """
        return self._view(self._owners, memory, where)

    def foreign(self, access: Access, where: Footprint) -> NDArray[np.bool_]:
        """Returns a mask of the bytes of a read that belong to another buffer and that were not reported since their last
        write."""
        view, mine = self.of(access.memory, where), self.number(access)
        found: NDArray[np.bool_] = (view != mine) & (view != 0)
        if not access.planned and found.any():
            found &= self._needed(access.memory, where, view, mine)
        return found & (self._view(self._met, access.memory, where) != mine) if access.memory in self._met else found

    def _needed(self, memory: Space, where: Footprint, view: NDArray[np.int32], mine: int) -> NDArray[np.bool_]:
        """Returns a mask of the bytes of a read that the author cannot have intended to share with another buffer."""
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
        """Whether the buffer of a read wrote some of the bytes in the mask ``foreign`` before another buffer overwrote them."""
        lost = self._overwritten.get(self.number(access), {})
        return access.memory in lost and bool(self._view(lost, access.memory, where)[foreign].any())

    def meet(self, access: Access, where: Footprint, foreign: NDArray[np.bool_]) -> None:
        """Marks bytes of a read as reported."""
        self._view(self._met, access.memory, where)[foreign] = self.number(access)

    def is_met(self, record: OpRecord) -> bool:
        """Whether an op accesses a memory in which bytes are marked as reported; a write removes these marks."""
        return any(access.memory in self._met for access in record.accesses)

    def write(self, record: OpRecord, event: Event, access: Access, where: Footprint) -> None:
        """Updates the owners of the bytes that an op writes."""
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

    def _set_owner(self, memory: Space, where: Footprint, number: int) -> None:
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

    def _view(self, arrays: dict[Space, Array], memory: Space, where: Footprint,
              dtype: type[np.generic] = np.int32) -> Array:
        array = arrays.get(memory)
        if array is None:
            array = arrays[memory] = np.zeros(self.sizes[memory], dtype)
        width = array.itemsize
        return np.ndarray((*where.sizes, where.element), array.dtype, array, width * where.offset,
                          tuple(width * stride for stride in (*where.strides, 1)))


def _inside(where: Footprint, other: Footprint, size: int) -> NDArray[np.bool_]:
    """Returns a mask of the bytes of footprint ``where`` that footprint ``other`` contains too."""
    touched = np.zeros(size, np.bool_)
    for part, mark in ((other, True), (where, None)):
        view = np.ndarray((*part.sizes, part.element), np.bool_, touched, part.offset, (*part.strides, 1))
        if mark is None:
            return view
        view[...] = mark
    raise AssertionError


def _suspects(recorded: RecordedLaunch, run: BlockRun, lane: int) -> Iterator[_Suspect]:
    """Yields the reads of bytes of another buffer, or of an earlier load, by one core, in program order.

    Of several reads of the same bytes only the first one since their last write is yielded, unless the other buffer still needs
    the bytes; then all of them are.
    """
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
                parts = accessed_parts(record, access, event)
                if writes:
                    for part in parts:
                        if not part.empty:
                            owners.write(record, event, access, part)
                            writers[owners.number(access)] = writers[owners.number(access, earlier=True)] = record.number
                    continue
                where = footprint(access, event)
                if where.empty or not access.is_read(event):
                    continue
                foreign = owners.foreign(access, where)
                if parts != (where,) and foreign.any():
                    size = owners.sizes[access.memory]
                    foreign &= np.any([_inside(where, part, size) for part in parts], axis=0)
                if foreign.any():
                    tenant = int(owners.of(access.memory, where)[foreign][0])
                    name, earlier = owners.names[tenant - 1]
                    line = records[writers[tenant]].location
                    lost = owners.overwrote(access, where, foreign)
                    what = (f"an earlier load of {name}" if earlier else name) + (" overwrote them" if lost else " wrote them")
                    what += f" at line {line.line}" if line is not None and not earlier else ""
                    bytes_at = np.flatnonzero(foreign.reshape(-1))
                    start = where.offset + _byte(int(bytes_at[0]), where.sizes, where.strides, where.element)
                    end = where.offset + _byte(int(bytes_at[-1]), where.sizes, where.strides, where.element) + 1
                    hazard = Hazard("S222", "left over", site_of(recorded, run, lane, place, record, access.pipe, access.name),
                                    None, name_of(access.memory), start, end, what, run.block, access.label,
                                    repair_of(record, access))
                    mask: NDArray[np.bool_] = np.any(foreign, axis=-1)
                    mask = masks.setdefault((mask.shape, mask.tobytes()), mask)
                    yield _Suspect(record, iteration, reads.index(access), mask, hazard, lost)
                    again |= lost
                    if not lost:
                        owners.meet(access, where, foreign)
        if not again:
            done[event] = owners.changed


def _byte(flat: int, sizes: Sequence[int], strides: Sequence[int], element: int) -> int:
    """Returns the byte offset, relative to the footprint's start, of the byte with number ``flat`` in a footprint."""
    number, within = divmod(flat, element)
    at = np.unravel_index(number, tuple(sizes)) if sizes else ()
    return within + sum(int(index) * stride for index, stride in zip(at, strides, strict=True))
