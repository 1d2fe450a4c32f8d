"""The records of a launch: the ops with their accesses and the inputs of their cost, the events that name them, their replay.

While a core executes a block it appends to two lists. The *events*: an int, the number of an :class:`OpRecord`, or a tuple
``(number, *facts)`` where the op has operands that are only known at run time. The *GM offsets*: one byte offset for each GM
operand of each event, in order. They are separate so that blocks that run the same ops at other places in GM have equal events.
An event here is an executed op, not a hardware event of ``set_flag``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tilelang_npu.errors import Location


@dataclass(frozen=True)
class Nothing:
    """The op is free."""


@dataclass(frozen=True)
class Scalars:
    """Scalar instructions that run before a loop; the last one sets its counter."""


@dataclass(frozen=True)
class ScalarAccess:
    """The scalar unit reads or writes one element."""

    store: bool


@dataclass(frozen=True)
class Transfer:
    """A data movement; ``path`` names a row of the chip's paths, access 0 is the source and 1 the destination; ``turned``
    exchanges rows and columns."""

    path: str
    unit_flag: bool = False
    turned: bool = False


@dataclass(frozen=True)
class Lanes:
    """A vector instruction over the elements of a destination.

    Attributes:
        cost: row of the chip's vector rates.
        bits: width of the widest element type.
        shape: the access whose elements are counted.
        banked: the two accesses that may conflict in UB banks, or None.
        spread: rows that a broadcast along the last axis must expand first (``brcb``), or 0.
        times: how often the instruction runs over the elements.
    """

    cost: str
    bits: int
    shape: int
    banked: tuple[int, int] | None = None
    spread: Slot = 0
    times: int = 1


@dataclass(frozen=True)
class Sorting:
    """Sorts access ``shape`` as pairs of a value and its index, in groups of 32 by ``cost``; with ``merged``, groups are then
    merged four at a time until one is left."""

    cost: str
    shape: int
    merged: bool


@dataclass(frozen=True)
class Fold:
    """A reduction of access 0 along ``axes``: pairwise ``combine`` down to one repeat, then ``cost`` on the last axis."""

    cost: str
    combine: str
    bits: int
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Mmad:
    """The matmul macro: loads from L1 to L0A and L0B and multiplications, chunk by chunk of K.

    Attributes:
        element: element type of the operands, MLIR spelling.
        wide: whether f32 operands are multiplied in HF32.
        m, k, n: sizes of the logical matrices.
        waits: events of MTE2 that the loads of A and of B wait for, -1 for none.
        frees: events to MTE2 that the loads of A and of B set when done, -1 for none.
        phase: iteration number, whose parity selects the half of L0; -1 outside of loops.
        halves: events from M to MTE1 that guard the halves of L0; -1 where the macro guards them itself.
        unit_flag: whether M and FIX synchronise on L0C block by block.
        bias: whether a bias is added.
        turned: whether A and B are stored in L1 with rows and columns exchanged.
    """

    element: str
    wide: bool
    m: Slot
    k: Slot
    n: Slot
    waits: tuple[Slot, Slot]
    frees: tuple[Slot, Slot]
    phase: Slot
    halves: tuple[Slot, Slot]
    unit_flag: bool
    bias: bool
    turned: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class Multiply:
    """One product of the contents of L0A and L0B.

    Attributes:
        element: element type of the operands, MLIR spelling.
        m, k, n: sizes of the matrices.
    """

    element: str
    m: Slot
    k: Slot
    n: Slot


@dataclass(frozen=True)
class EventSet:
    """``set_flag``: sets an event for ``target`` after the earlier work of ``source``."""

    source: str
    target: str
    event: Slot


@dataclass(frozen=True)
class EventWait:
    """``wait_flag``: holds ``target`` until the event of ``source``."""

    source: str
    target: str
    event: Slot


@dataclass(frozen=True)
class Barrier:
    """``pipe_barrier`` on one pipe, or on all of them."""

    pipe: str


@dataclass(frozen=True)
class CrossSet:
    """Sets a flag on other cores after the earlier work of ``pipe``; ``group`` as in ``Rendezvous.group``."""

    pipe: str
    flag: Slot
    group: str


@dataclass(frozen=True)
class CrossWait:
    """Holds ``pipe`` until another core has set a flag."""

    pipe: str
    flag: Slot


Work = (Nothing | Scalars | ScalarAccess | Transfer | Lanes | Sorting | Fold | Mmad | Multiply | EventSet | EventWait | Barrier
        | CrossSet | CrossWait)
"""The inputs of some op's cost."""


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


def accesses_to_gm(records: Sequence[OpRecord], stream: Sequence[Event], chosen: Callable[[Access], bool] = lambda access: True,
                   ) -> Iterator[tuple[int, int, Event, Access]]:
    """Yields the accesses to GM of a stream, of those that are chosen: the position of its offset among the stream's GM
    offsets, the position of its event in the stream, the event, and the access."""
    operands = [[(number, access) for number, access in enumerate(access for access in record.accesses if access.offset is None)
                 if chosen(access)] for record in records]
    counts = [record.gm_operands for record in records]
    position = 0
    for place, event in enumerate(stream):
        number = event if isinstance(event, int) else event[0]
        for operand, access in operands[number]:
            yield position + operand, place, event, access
        position += counts[number]


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
