"""The records of a launch: the ops with their accesses and the inputs of their cost, and the events that refer to them.

While a core executes a block it appends to two lists:

- The *events*, one for each executed op: the number of the op's :class:`OpRecord`, or a tuple ``(number, *facts)`` if the op
  has sizes, offsets or other numbers that are only known at run time. These numbers are the *facts* of the event.
- The *GM offsets*: for each event in order, the byte offset of each of its operands in GM.

The lists are separate so that blocks that run the same ops at other offsets in GM have equal events. An event here is an
executed op, not an event of ``set_flag``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tilelang_npu.errors import Location
from tilelang_npu.target.chip_data import CoreKind, Pipe, Space, UnitFlagUse


@dataclass(frozen=True)
class Nothing:
    """The work of an op that takes no time."""


@dataclass(frozen=True)
class Scalars:
    """Scalar instructions that no recorded op follows: those before a loop, or those of a loop that contains no recorded op.

    ``OpRecord.scalars`` is the number of these instructions.

    Attributes:
        times: how often the instructions run: the trip count of the loop, or 1 for instructions before a loop.
    """

    times: Slot = 1


@dataclass(frozen=True)
class ScalarAccess:
    """An access of the scalar unit to one element.

    Attributes:
        store: whether the access writes the element; otherwise it reads the element.
    """

    store: bool


@dataclass(frozen=True)
class ScratchUse:
    """The use of the author's buffer as scratch memory of the op before, whose time includes it."""


@dataclass(frozen=True)
class Transfer:
    """A data movement from the operand of ``OpRecord.accesses[0]`` to the operand of ``OpRecord.accesses[1]``.

    Attributes:
        path: the name of the chip's path between two memories that the movement uses.
        unit_flag: how the movement synchronises with pipe M block by block, by unit flags (``UnitFlagUse``).
        turned: whether the movement exchanges rows and columns.
        fills: 1 if the movement fills its whole destination with a value before it moves the source, otherwise 0.
    """

    path: str
    unit_flag: UnitFlagUse = ""
    turned: bool = False
    fills: Slot = 0


@dataclass(frozen=True)
class PatchLoad:
    """A load of a convolution's patches from the operand of ``OpRecord.accesses[0]`` to that of ``OpRecord.accesses[1]``.

    Attributes:
        path: the name of the chip's path between two memories that the load uses.
        run: the number of rows of the destination that are one contiguous piece of the source.
    """

    path: str
    run: int


@dataclass(frozen=True)
class PeerTransfer:
    """A data movement between the operand of ``OpRecord.accesses[0]``, in UB, and the memory of another card.

    Attributes:
        path: the name of the chip's path between UB and GM that the movement uses on this card.
        card: the rank of the other card.
    """

    path: str
    card: Slot


@dataclass(frozen=True)
class PeerSignal:
    """A store of the scalar unit to a word of another card.

    Attributes:
        card: the rank of the other card.
    """

    card: Slot


@dataclass(frozen=True)
class PeerWait:
    """A wait of the scalar unit for other cards: for a word that they write, or at a barrier."""


@dataclass(frozen=True)
class PutsEnd:
    """A wait of the scalar unit until the transfers to other cards have ended."""


@dataclass(frozen=True)
class Lanes:
    """A vector instruction over the elements of one of its operands.

    Attributes:
        cost: the name of the row of the chip's vector rates that gives the cost of the instruction.
        bits: the width in bits of the widest element type of its operands.
        shape: the index in ``OpRecord.accesses`` of the operand whose elements are counted.
        banked: the indices in ``OpRecord.accesses`` of the two operands that possibly conflict in UB banks; None for none.
        spread: the number of rows that a broadcast along the last axis must first expand by the instruction ``brcb``; 0 for
            none.
        times: the number of passes that the instruction makes over the elements.
    """

    cost: str
    bits: int
    shape: int
    banked: tuple[int, int] | None = None
    spread: Slot = 0
    times: int = 1


@dataclass(frozen=True)
class RegisterWork:
    """A vector function: instructions on vector registers that pipe V executes as one op.

    Attributes:
        cycles: the cycles of the function.
    """

    cycles: Slot


@dataclass(frozen=True)
class Sorting:
    """A sort of the elements of one operand, as pairs of a value and its index.

    Attributes:
        cost: the name of the row of the chip's vector rates that gives the cost of each pass over the elements.
        shape: the index in ``OpRecord.accesses`` of the operand whose elements are sorted.
        merged: whether the sorted groups are then merged, four at a time, until one group is left.
    """

    cost: str
    shape: int
    merged: bool


@dataclass(frozen=True)
class Fold:
    """A reduction of the operand of ``OpRecord.accesses[0]``.

    Pairwise instructions combine elements until the elements of one repeat of an instruction are left; an instruction that
    reduces the last axis then combines these.

    Attributes:
        cost: the name of the row of the chip's vector rates for the instruction that reduces the last axis.
        combine: the name of the row of the chip's vector rates for the pairwise instruction, such as an addition.
        bits: the width of an element in bits.
        axes: the axes of the operand that are reduced.
    """

    cost: str
    combine: str
    bits: int
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Mmad:
    """The macro ``mmadL1``: loads of A and B from L1 to L0A and L0B, and multiplications, one part of K after the other.

    Attributes:
        element: the element type of the operands in MLIR.
        wide: whether f32 operands are multiplied in HF32.
        m, k, n: the sizes of the matrices.
        waits: the events from MTE2 that the loads of A and of B wait for; -1 for none.
        frees: the events to MTE2 that are set after the loads of A and of B; -1 for none.
        phase: the iteration number, whose parity selects the half of L0A and L0B; -1 outside of loops.
        halves: the events from M to MTE1 that guard the two halves; -1 where the macro synchronises them itself.
        unit_flag: how M and FIX synchronise on L0C block by block (``UnitFlagUse``).
        bias: whether a bias is added.
        turned: whether A and B are stored in L1 with rows and columns exchanged.
        scaled: whether A and B are MX matrices, which are loaded together with their scales.
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
    unit_flag: UnitFlagUse
    bias: bool
    turned: tuple[bool, bool] = (False, False)
    scaled: bool = False


@dataclass(frozen=True)
class Multiply:
    """One product of the contents of L0A and L0B, without loads.

    Attributes:
        element: the element type of the operands in MLIR.
        m, k, n: the sizes of the matrices.
        unit_flag: how M and FIX synchronise on L0C block by block (``UnitFlagUse``).
        flag: if ``unit_flag`` is ``either``, the run-time number that decides: with ``0b10`` pipe M keeps its blocks of L0C,
            with ``0b11`` it passes each of them on to pipe FIX.
        scaled: whether the matrices are MX matrices.
    """

    element: str
    m: Slot
    k: Slot
    n: Slot
    unit_flag: UnitFlagUse = ""
    flag: Slot = 0
    scaled: bool = False


@dataclass(frozen=True)
class EventSet:
    """``set_flag``: sets an event after all earlier work of a pipe, for another pipe to wait for.

    Attributes:
        source: the pipe whose work comes before.
        target: the pipe that waits.
        event: the number of the event among those of the two pipes.
    """

    source: Pipe
    target: Pipe
    event: Slot


@dataclass(frozen=True)
class EventWait:
    """``wait_flag``: stalls a pipe until an event of another pipe is set.

    Attributes:
        source: the pipe that sets the event.
        target: the pipe that is stalled.
        event: the number of the event among those of the two pipes.
    """

    source: Pipe
    target: Pipe
    event: Slot


@dataclass(frozen=True)
class Barrier:
    """``pipe_barrier``: later work of a pipe starts after its earlier work has ended.

    Attributes:
        pipe: the pipe, or ``ALL`` for all pipes of the core.
    """

    pipe: Pipe | Literal["ALL"]


@dataclass(frozen=True)
class CrossSet:
    """``sync_block_set``: sets a flag on other cores after all earlier work of a pipe.

    Attributes:
        pipe: the pipe.
        flag: the number of the flag.
        group: the cores that set and receive the flag, as in ``Rendezvous.group``.
    """

    pipe: Pipe
    flag: Slot
    group: str


@dataclass(frozen=True)
class CrossWait:
    """``sync_block_wait``: stalls a pipe until other cores have set a flag.

    Attributes:
        pipe: the pipe.
        flag: the number of the flag.
    """

    pipe: Pipe
    flag: Slot


Work = (Nothing | Scalars | ScalarAccess | ScratchUse | Transfer | PatchLoad | PeerTransfer | PeerSignal | PeerWait | PutsEnd
        | Lanes | RegisterWork | Sorting | Fold | Mmad | Multiply | EventSet | EventWait | Barrier | CrossSet | CrossWait)
"""The inputs of an op's cost: what kind of work it is, and the numbers that its cost depends on."""


Event = int | tuple[int, ...]
Stream = Sequence[Event]
"""The events of one core in one block: a tuple, or a ``RepeatedStream`` (``repeated_events``). Both are hashable."""


@dataclass(frozen=True)
class Fact:
    """A number of a record that is known only at run time, and that each event of the record therefore contains.

    Attributes:
        place: the position of the number among the facts of an event.
    """

    place: int


Slot = int | Fact
"""A number of a record: a constant, or a fact of the event."""


@dataclass(frozen=True)
class Access:
    """A memory access of an op: one operand in memory that the op reads, writes, or both.

    Attributes:
        memory: ``gm``, or the address space of an on-chip memory.
        buffer: the position of the kernel argument that an operand in GM belongs to; 0 on chip.
        reads: whether the op reads the operand.
        writes: whether the op writes the operand.
        element: the number of bytes of an element.
        offset: the byte offset of the first element in the memory; None in GM, for which the list of GM offsets contains it.
        sizes: the number of elements along each axis.
        strides: the distance in bytes between neighbouring elements along each axis.
        pipe: the pipe that makes the access.
        name: the operand's role in the op (``src``, ``dst``, ``a`` …).
        label: the user's name of the buffer or tensor; empty where there is none.
        holder: the core of the block that owns the memory (``AIC``, ``AIV1``), if it is not the core that runs the op;
            otherwise empty.
        scratch: whether the operand is temporary memory of the op.
        unless: for an operand that only some executions of the op read, such as an accumulator: the run-time number of an event
            that is 1 if this execution does not read the operand. None if every execution reads it.
        owner: the number of the operand's buffer, by which buffers of one memory are told apart; None in GM.
        planned: whether the planner chose the buffer's address, not the author of the kernel or of the MLIR text.
        alignment: the number of bytes of which the address must be a multiple; 0 for the blocks of the memory.
    """

    memory: Space
    buffer: int
    reads: bool
    writes: bool
    element: int
    offset: Slot | None
    sizes: tuple[Slot, ...]
    strides: tuple[Slot, ...]
    pipe: Pipe
    name: str
    label: str = ""
    holder: str = ""
    scratch: bool = False
    unless: Slot | None = None
    owner: int | None = None
    planned: bool = False
    alignment: int = 0

    @property
    def adds(self) -> bool:
        """Whether the access both reads and writes, as an atomic addition in GM does."""
        return self.reads and self.writes

    def is_read(self, event: Event) -> bool:
        """Whether the op reads the operand in the execution that an event records; ``unless`` decides for some operands."""
        return self.reads and (self.unless is None or not value(self.unless, event))


class Footprint(NamedTuple):
    """The bytes of one access of one event: for all indices ``i``, the ``element`` bytes from ``offset + sum(i * stride)`` on.

    Attributes:
        offset: the byte offset of the first element in its memory, or in the kernel argument.
        sizes: the number of indices along each axis.
        strides: the bytes between neighbouring indices along each axis.
        element: the bytes of an element.
    """

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    element: int

    def simplified(self) -> Footprint:
        """Returns the same set of bytes with as few axes as possible, the outermost first.

        Axes of size 1 are dropped, contiguous axes are merged, and ``element`` is the length of the contiguous runs.
        """
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
        """Whether the byte at an offset belongs to the footprint, which must be simplified."""
        rest = byte - self.offset
        for stride, size in zip(self.strides, self.sizes, strict=True):
            rest -= min(max(rest // stride, 0), size - 1) * stride
        return 0 <= rest < self.element

    @property
    def empty(self) -> bool:
        """Whether the footprint has no bytes."""
        return 0 in self.sizes or not self.element  # the latter where axes were merged

    @property
    def nbytes(self) -> int:
        """The number of bytes that are moved: the number of elements times their size, even if elements overlap."""
        total = self.element
        for size in self.sizes:
            total *= size
        return total

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        reach = self.offset + self.element
        for size, stride in zip(self.sizes, self.strides, strict=True):
            reach += (size - 1) * stride
        return reach


@dataclass(frozen=True)
class OpRecord:
    """The properties of an op of a device function that are equal in all its executions.

    Attributes:
        number: the number by which events refer to the record.
        name: the full name of the op, such as ``hivm.hir.vadd``.
        pipe: the pipe that runs the op; the first pipe of a macro.
        core: the kind of core that runs the op, ``AIC`` or ``AIV``.
        location: the source line of the kernel; None where it is not known.
        accesses: the operands in memory.
        work: the inputs of the op's cost.
        scalars: the number of scalar instructions between the previous recorded op and this one.
        facts: the expressions of the generated code whose values are the facts (run-time numbers) of the record's events.
        loops: the number of loops around the op.
        polls: whether the op reads a tensor in a ``while`` loop, which may wait for another card to write the tensor.
    """

    number: int
    name: str
    pipe: Pipe
    core: CoreKind
    location: Location | None
    accesses: tuple[Access, ...]
    work: Work
    scalars: int
    facts: tuple[str, ...] = ()
    loops: int = 0
    polls: bool = False

    @property
    def mnemonic(self) -> str:
        """The op's name without its dialect, such as ``vadd`` for ``hivm.hir.vadd``."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def gm_operands(self) -> int:
        """The number of the op's operands in GM; each event of the record has as many GM offsets."""
        return sum(access.offset is None for access in self.accesses)


def number_of(event: Event) -> int:
    """Returns the number of the record that an event refers to."""
    return event if isinstance(event, int) else event[0]


def value(slot: Slot, event: Event) -> int:
    """Returns the value that an entry of a record has in an event.

    Args:
        slot: the entry: a constant, or the position of a run-time number among the facts of the event.
        event: an event of the record.
    """
    if isinstance(slot, int):
        return slot
    assert isinstance(event, tuple)
    return event[1 + slot.place]


def footprint(access: Access, event: Event, gm_offset: int = 0) -> Footprint:
    """Returns the bytes of an access in an event.

    Args:
        access: an access of the event's record.
        event: the event.
        gm_offset: for an access to GM, its byte offset in the kernel argument.
    """
    offset = gm_offset if access.offset is None else value(access.offset, event)
    return Footprint(offset, tuple(value(size, event) for size in access.sizes),
                     tuple(value(stride, event) for stride in access.strides), access.element)


def accessed_parts(record: OpRecord, access: Access, event: Event) -> tuple[Footprint, ...]:
    """Returns the bytes of an on-chip access that the op really reads or writes in an event.

    The operands of a Cube core are whole fractals, of which an op often uses only the first rows and columns. A load to L1
    writes the rows and columns of its source. A product reads and writes the elements of its sizes m, k and n. A move out of
    L0C or L1 reads the elements that it stores.

    Args:
        record: the record of the op.
        access: the access, one of the record's.
        event: the event.

    Returns:
        the footprints, which do not overlap; for other operands and ops, :func:`footprint` of the access alone.
    """
    where = footprint(access, event)
    used = _used_matrix(record, access, event) if len(access.sizes) == 4 else None
    return (where,) if used is None else _first_rows_and_columns(where, *used)


def _used_matrix(record: OpRecord, access: Access, event: Event) -> tuple[int, int] | None:
    """Returns how many rows and columns of an operand in fractals an op uses; None for all of them."""
    work = record.work
    if isinstance(work, Mmad | Multiply) and access.name in ("a", "b", "c") and work.element != "i4" and not work.scaled:
        m, k, n = (value(size, event) for size in (work.m, work.k, work.n))
        rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[access.name]
        turned = isinstance(work, Mmad) and access.name != "c" and work.turned["ab".index(access.name)]
        return (columns, rows) if turned else (rows, columns)
    if not isinstance(work, Transfer) or len(record.accesses) != 2:
        return None
    source, target = record.accesses
    if access is target and source.memory == "gm" and len(source.sizes) == 2 and not value(work.fills, event):
        rows, columns = (value(size, event) for size in source.sizes)
        return rows, columns
    if access is source and access.memory in ("cc", "cbuf") and len(target.sizes) == 2 and not work.turned:
        rows, columns = (value(size, event) for size in target.sizes)
        return rows, columns
    return None


def _first_rows_and_columns(where: Footprint, rows: int, columns: int) -> tuple[Footprint, ...]:
    """Returns the footprints of the first rows and columns of a matrix in fractals ``[C1, R1, r0, c0]``: of the whole panels of
    c0 columns, and of the rest of the columns."""
    _, outer, inner, width = where.sizes
    panel, fractal, row, step = where.strides
    if outer > 1 and fractal != inner * row:
        return (where,)  # the rows of a panel are not equally far apart
    whole, rest = divmod(min(columns, where.sizes[0] * width), width)
    rows = min(rows, outer * inner)
    parts = (Footprint(where.offset, (whole, rows, width), (panel, row, step), where.element),
             Footprint(where.offset + whole * panel, (rows, rest), (row, step), where.element))
    return tuple(part for part in parts if not part.empty)


class Executed(NamedTuple):
    """One executed op.

    Attributes:
        record: the record of the op.
        event: the event of this execution.
        gm: the GM offsets of the op's operands in GM.
        iteration: how often the op was executed before in the block.
    """

    record: OpRecord
    event: Event
    gm: tuple[int, ...]
    iteration: int

    def footprints(self) -> list[tuple[Access, Footprint]]:
        """Returns each access of the op with the bytes that it accesses in this execution."""
        offsets = iter(self.gm)
        return [(access, footprint(access, self.event, next(offsets) if access.offset is None else 0))
                for access in self.record.accesses]


def accesses_to_gm(records: Sequence[OpRecord], stream: Sequence[Event], chosen: Callable[[Access], bool] = lambda access: True,
                   ) -> Iterator[tuple[int, int, Event, Access]]:
    """Yields the accesses to GM of a stream of events.

    Args:
        records: the records of the function.
        stream: the events.
        chosen: returns whether to yield an access; by default all accesses are yielded.

    Yields:
        the position of the access's offset among the GM offsets of the stream, the position of the event in the stream, the
        event, and the access.
    """
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
    """Yields the executed ops of one core in a recorded block, in the order of execution.

    Args:
        records: the records of the function.
        stream: the events of the core.
        gm: the GM offsets of the core.
    """
    counts = [0] * len(records)
    position = 0
    for event in stream:
        number = number_of(event)
        record = records[number]
        operands = record.gm_operands
        yield Executed(record, event, tuple(gm[position:position + operands]), counts[number])
        counts[number] += 1
        position += operands
