"""The records of a launch, and their replay.

While a core executes a block it appends to two lists. The *events*: an int, the number of an :class:`OpRecord`, or a tuple
``(number, *facts)`` where the op has operands that are only known at run time. The *GM offsets*: one byte offset for each GM
operand of each event, in order. They are separate so that blocks that run the same ops at other places in GM have equal events.
An event here is an executed op, not a hardware event of ``set_flag``.
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
"""The events of one core in one block."""


@dataclass(frozen=True)
class Fact:
    """A number that is only known at run time: its position among the facts of the event."""

    place: int


Slot = int | Fact
"""A number of a record: a constant, or a fact of the event."""


@dataclass(frozen=True)
class Access:
    """A memory access of an op: one operand that it reads or writes.

    Attributes:
        memory: ``gm`` or the address space of an on-chip memory.
        buffer: position of the kernel argument that a GM operand belongs to; 0 on chip.
        reads, writes: what the op does to the operand.
        element: bytes of an element.
        offset: byte offset in the memory; None in GM, where it is in the list of GM offsets.
        sizes: elements of each axis.
        strides: bytes between neighbouring elements of each axis.
        pipe: the pipe that makes the access.
        name: the operand's role in the op (``src``, ``dst``, ``a`` …).
        label: the user's name of the buffer or tensor; empty where there is none.
        holder: the core of the block that owns the memory (``AIC``, ``AIV1``), if it is not the core that runs the op.
        scratch: whether the operand is a temporary of the op.
        unless: a fact that is true in events that do not read the operand; None where it is always read.
        owner: the number of its buffer among those of its memory; None in GM.
        planned: whether the planner chose the buffer's address, not the author or the text.
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
        """Whether the access is an atomic update, such as an addition in GM."""
        return self.reads and self.writes

    def is_read(self, event: Event) -> bool:
        """Whether the access reads its operand in this event."""
        return self.reads and (self.unless is None or not value(self.unless, event))


class Footprint(NamedTuple):
    """The bytes of one access of one event: ``offset + sum(i * stride)``, each followed by ``element`` bytes."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    element: int

    def simplified(self) -> Footprint:
        """Returns the same bytes without unit axes and with contiguous axes merged, outermost first; ``element`` is the run."""
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
        """Whether a byte belongs to a simplified footprint."""
        rest = byte - self.offset
        for stride, size in zip(self.strides, self.sizes, strict=True):
            rest -= min(max(rest // stride, 0), size - 1) * stride
        return 0 <= rest < self.element

    @property
    def empty(self) -> bool:
        return 0 in self.sizes or not self.element  # the latter where axes were merged

    @property
    def nbytes(self) -> int:
        """Bytes that are moved: elements times their size, whether or not they overlap."""
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
    """The static facts about an op.

    Attributes:
        number: its number in the events.
        name: full name, e.g. ``hivm.hir.vadd``.
        pipe: the pipe that runs it; the first pipe of a macro op.
        core: ``AIC`` or ``AIV``.
        location: the kernel's source line.
        accesses: its operands in memory.
        work: the inputs of its cost.
        scalars: scalar instructions that run before it.
        facts: names of the facts of its events.
        loops: number of loops around it.
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
        """The op's name without its dialect."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def gm_operands(self) -> int:
        """The number of GM offsets of each of its events."""
        return sum(access.offset is None for access in self.accesses)


def number_of(event: Event) -> int:
    """Returns the number of the event's record."""
    return event if isinstance(event, int) else event[0]


def value(slot: Slot, event: Event) -> int:
    """Returns a number of a record in an event."""
    if isinstance(slot, int):
        return slot
    assert isinstance(event, tuple)
    return event[1 + slot.place]


def footprint(access: Access, event: Event, gm_offset: int = 0) -> Footprint:
    """Returns the bytes of an access in an event; ``gm_offset`` is its entry in the list of GM offsets."""
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
        """Returns each access with its bytes."""
        offsets = iter(self.gm)
        return [(access, footprint(access, self.event, next(offsets) if access.offset is None else 0))
                for access in self.record.accesses]


def replay(records: Sequence[OpRecord], stream: Sequence[Event], gm: Sequence[int]) -> Iterator[Executed]:
    """Yields the ops of a recorded block in the order of execution."""
    counts = [0] * len(records)
    position = 0
    for event in stream:
        number = number_of(event)
        record = records[number]
        operands = record.gm_operands
        yield Executed(record, event, tuple(gm[position:position + operands]), counts[number])
        counts[number] += 1
        position += operands
