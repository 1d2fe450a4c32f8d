"""What a run records, and how to read it back.

A core appends to two lists while it executes a block. The *events*: an int, the number of an :class:`OpRecord`, or a tuple
``(number, *facts)`` where the record has dynamic facts. The *GM offsets*: one byte offset per GM operand of each event, in
order. Offsets stand apart so that blocks which do the same at other places of GM have equal event streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tilelang_npu.errors import Location

if TYPE_CHECKING:
    from tilelang_npu.simulator.machine.work import Work

Event = int | tuple[int, ...]
Stream = tuple[Event, ...]


@dataclass(frozen=True)
class Fact:
    """A number that an event carries: the place behind the record's number."""

    place: int


Slot = int | Fact


@dataclass(frozen=True)
class Access:
    """An operand that an op reads or writes.

    Attributes:
        memory: ``gm`` or the address space of an on-chip memory.
        buffer: number of the kernel argument behind a GM operand; 0 on chip.
        reads, writes: what is done to it.
        element: bytes of an element.
        offset: byte offset in the memory; None for GM, where it stands in the list of GM offsets.
        sizes: elements of each axis.
        strides: bytes from an element to the next of each axis.
        pipe: the pipe that does it.
        name: what the operand is called in the op (``src``, ``dst``, ``a`` …).
        label: what the user calls the buffer or tensor; empty where the text has no name.
        holder: the core of the block whose memory it is (``AIC``, ``AIV1``), where that is not the one that the op runs on.
        scratch: whether it is memory that the op only computes in.
        unless: what is true in an event where nothing of it is read after all; None where that is never known.
        owner: the number of its buffer among those of its memory; None in GM.
        planned: whether the planner chose the buffer's address: its author did otherwise, or the text gives it.
    """

    memory: str
    buffer: int
    reads: bool
    writes: bool
    element: int
    offset: Slot | None
    sizes: tuple[Slot, ...]
    strides: tuple[Slot, ...]
    pipe: str
    name: str
    label: str = ""
    holder: str = ""
    scratch: bool = False
    unless: Slot | None = None
    owner: int | None = None
    planned: bool = False

    @property
    def adds(self) -> bool:
        """Whether what is there is changed at once, as an addition in GM does."""
        return self.reads and self.writes

    def is_read(self, event: Event) -> bool:
        """Whether an event reads it."""
        return self.reads and (self.unless is None or not value(self.unless, event))


class Footprint(NamedTuple):
    """The bytes of one access of one event: ``offset + sum(i * stride)``, each followed by ``element`` bytes."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    element: int

    def simplified(self) -> Footprint:
        """The same bytes with unit axes dropped and axes that touch merged, outermost first; ``element`` is the run."""
        axes = sorted((stride, size) for size, stride in zip(self.sizes, self.strides, strict=True) if size != 1)
        run = self.element
        rest: list[tuple[int, int]] = []
        for stride, size in axes:
            if not rest and (stride == run or stride == 0):
                run = run * size if stride else run
            elif rest and stride == rest[-1][0] * rest[-1][1]:
                rest[-1] = (rest[-1][0], rest[-1][1] * size)
            elif stride:
                rest.append((stride, size))
        rest.reverse()
        return Footprint(self.offset, tuple(size for _, size in rest), tuple(stride for stride, _ in rest), run)

    def touches(self, byte: int) -> bool:
        """Whether a byte is among them; for a simplified footprint."""
        rest = byte - self.offset
        for stride, size in zip(self.strides, self.sizes, strict=True):
            rest -= min(max(rest // stride, 0), size - 1) * stride
        return 0 <= rest < self.element

    @property
    def empty(self) -> bool:
        return 0 in self.sizes or not self.element  # the latter where axes were merged

    @property
    def nbytes(self) -> int:
        """Bytes that move: elements times their size, whether or not they overlap."""
        total = self.element
        for size in self.sizes:
            total *= size
        return total

    @property
    def end(self) -> int:
        """One past the last byte."""
        reach = self.offset + self.element
        for size, stride in zip(self.sizes, self.strides, strict=True):
            reach += (size - 1) * stride
        return reach


@dataclass(frozen=True)
class OpRecord:
    """What is known of an op before it runs.

    Attributes:
        number: its number in the events.
        name: full name, e.g. ``hivm.hir.vadd``.
        pipe: the pipe that takes it; of a macro op the first.
        core: ``AIC`` or ``AIV``.
        location: the kernel's source line.
        accesses: its operands in memory.
        work: what its cost follows from.
        scalars: scalar instructions that run ahead of it.
        facts: names of the numbers that its events carry.
        loops: depth of loops around it.
    """

    number: int
    name: str
    pipe: str
    core: str
    location: Location | None
    accesses: tuple[Access, ...]
    work: Work
    scalars: int
    facts: tuple[str, ...] = ()
    loops: int = 0

    @property
    def mnemonic(self) -> str:
        """The name without its dialect."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def gm_operands(self) -> int:
        """How many GM offsets each of its events has."""
        return sum(access.offset is None for access in self.accesses)


def number_of(event: Event) -> int:
    """The number of the event's record."""
    return event if isinstance(event, int) else event[0]


def value(slot: Slot, event: Event) -> int:
    """What a slot of a record holds in an event."""
    if isinstance(slot, int):
        return slot
    assert isinstance(event, tuple)
    return event[1 + slot.place]


def footprint(access: Access, event: Event, gm_offset: int = 0) -> Footprint:
    """The bytes that an access of an event touches; ``gm_offset`` is its entry in the list of GM offsets."""
    offset = gm_offset if access.offset is None else value(access.offset, event)
    return Footprint(offset, tuple(value(size, event) for size in access.sizes),
                     tuple(value(stride, event) for stride in access.strides), access.element)


class Executed(NamedTuple):
    """One executed op: its record, event, the GM offsets of its operands and how often the op ran before."""

    record: OpRecord
    event: Event
    gm: tuple[int, ...]
    iteration: int

    def footprints(self) -> list[tuple[Access, Footprint]]:
        """Each access with its bytes."""
        offsets = iter(self.gm)
        return [(access, footprint(access, self.event, next(offsets) if access.offset is None else 0))
                for access in self.record.accesses]


def replay(records: Sequence[OpRecord], stream: Sequence[Event], gm: Sequence[int]) -> Iterator[Executed]:
    """The ops of a recorded block in the order of execution."""
    counts = [0] * len(records)
    position = 0
    for event in stream:
        number = number_of(event)
        record = records[number]
        operands = record.gm_operands
        yield Executed(record, event, tuple(gm[position:position + operands]), counts[number])
        counts[number] += 1
        position += operands
