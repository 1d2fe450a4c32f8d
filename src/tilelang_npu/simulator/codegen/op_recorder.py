"""Makes the records of a function's ops: the core and pipe, the accessed bytes, and the inputs of the cost of each op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Literal, NamedTuple

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.effects import EffectsOp, effects_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.ops import Structured, operation_of_symbol
from tilelang_npu.simulator.codegen.code_scopes import Int, ScalarExpr
from tilelang_npu.simulator.codegen.handlers import op_name, unsupported
from tilelang_npu.simulator.codegen.operand_checks import check_operand, check_pipe
from tilelang_npu.simulator.codegen.scalar_work import ScalarWork
from tilelang_npu.simulator.codegen.ssa_values import SsaValues
from tilelang_npu.simulator.codegen.strided_views import Buffer, Choice, alternatives
from tilelang_npu.simulator.machine.op_records import Access, Fact, OpRecord, Scalars, Slot, Work
from tilelang_npu.target import Chip, Path
from tilelang_npu.target.chip_data import CoreKind, Pipe, PipeName, Space

Costing = Callable[[Callable[[Int], Slot]], Work]
"""Returns the inputs of an op's cost. Its argument is a function that converts an integer to an entry of the op's record."""
_BY_POSITION = attrgetter("index")


class Operand(NamedTuple):
    """A memory operand of an op that is being recorded.

    Attributes:
        buffer: the memref.
        reads: whether the op reads elements of the operand; elements that the op leaves unwritten do not count as read.
        writes: whether the op writes elements of the operand.
        pipe: the pipe that accesses the operand.
        name: the operand's role in the op, such as ``src``.
        scratch: whether the operand is temporary memory of the op.
        into: the memory that the pipe loads the operand into before it computes; empty for none.
        path: for a data movement, the path of the chip from its source to its destination.
        unless: the expression of a condition under which the op does not read the operand; empty for none.
    """

    buffer: Buffer
    reads: bool
    writes: bool
    pipe: PipeName | Literal[""]
    name: str
    scratch: bool = False
    into: Space | Literal[""] = ""
    path: Path | None = None
    unless: str = ""


def _source_alignment(op: Operation) -> int:
    """Returns the number of bytes of which the addresses of an op's inputs must be a multiple; 0 for the memory's blocks."""
    entry = operation_of_symbol(op.symbol) if isinstance(op, hivm.CustomOp) else None
    return entry.source_alignment if isinstance(entry, Structured) else 0


class OpRecorder(SsaValues):
    """Records the ops of one device function, and emits the statements that record their execution at run time.

    Args:
        function, core, chip, parallel: as for ``SsaValues``.

    Attributes:
        records: the records; events refer to a record by its position in this list.
        recorded: the op of each record.
        depth: number of loops around the op that is being emitted.
        scalar_work: counts the instructions of the scalar unit.
        written_memories: variables that hold the memories, or the scalar storage, that ops emitted so far write.
        read_memories: variables that hold the memories, or the scalar storage, that ops emitted so far read.
        scalar_read_memories: variables that hold the memories from which the scalar unit reads elements.
    """

    def __init__(self, function: FuncOp, core: CoreKind, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self.records: list[OpRecord] = []
        self.recorded: list[Operation] = []
        self.depth = 0
        self.written_memories: set[str] = set()
        self.read_memories: set[str] = set()
        self.scalar_read_memories: set[str] = set()
        self._events: list[str] = []
        self._gm: list[str] = []
        self.scalar_work = ScalarWork()

    def flush(self) -> None:
        """Emits the statements that append the events and GM offsets of the ops since the last flush to those of the core."""
        if self._events:
            self.scope.line(f"ev += ({', '.join(self._events)},)")
            self._events = []
        if self._gm:
            self.scope.line(f"gm += ({', '.join(self._gm)},)")
            self._gm = []

    def slot(self, value: Int, facts: dict[str, int]) -> Slot:
        """Returns an integer as it is written in the record of an op: as a constant, or, if it is known only at run time, as
        its position among the numbers that each event of the op stores (facts).

        Args:
            value: the integer.
            facts: the positions of the record's facts (run-time numbers) so far, by expression; a new fact is added.
        """
        if value.known:
            return value.constant
        text = self.name_of(value)
        return Fact(facts.setdefault(text, len(facts)))

    def record_op(self, op: Operation, work: Costing, *, pipe: Pipe | Literal[""] = "", path: Path | None = None,
                  held: Mapping[str, Sequence[Buffer]] = MappingProxyType({}), into: Mapping[str, Space] = MappingProxyType({}),
                  called: Mapping[str, str] = MappingProxyType({}), anew: tuple[str, ScalarExpr] | None = None,
                  without: str = "") -> OpRecord:
        """Records an op with the effects that its class declares (``dialects/ir/effects.py``), in operand order.

        Args:
            op: the op.
            work: as for :meth:`record`.
            pipe: the pipe of the op, if its class declares none.
            path: for a data movement, the path of the chip that it uses.
            held: by role of the operand, the memrefs that the op accesses in place of the operand.
            into: by role, the memory that the pipe loads an operand into before it computes.
            called: by role, the name that messages use in place of the role.
            anew: the role of one operand, and a condition under which the op does not read this operand.
            without: the role of an operand that the op does not access on this card; empty for none.

        Raises:
            TileError: as for :meth:`record`.
        """
        pipes = op.pipes() if isinstance(op, EffectsOp) else ()
        own: PipeName | Literal[""] = pipes[0] if pipes else pipe
        role, condition = anew or ("", None)
        surely = condition is not None and bool(condition.value)
        unless = condition.text if condition is not None and condition.value is None else ""
        operands = [
            Operand(buffer, effect.reads and not effect.partial and not (surely and effect.role == role), effect.writes,
                    effect.pipe or own, called.get(effect.role, effect.role), effect.scratch, into.get(effect.role, ""), path,
                    unless if effect.role == role else "")
            for effect in sorted(effects_of(op), key=_BY_POSITION) if effect.role != without
            for buffer in held.get(effect.role) or (self.buffer(effect.value),)]
        return self.record(op, own, operands, work)

    def record(self, op: Operation, pipe: PipeName | Literal[""], operands: Sequence[Operand],
               work: Costing) -> OpRecord:
        """Records an op. Called directly only for ops that synchronise; other ops use :meth:`record_op`.

        Args:
            op: the op.
            pipe: the pipe that runs the op.
            operands: the operands of the op in memory.
            work: makes the inputs of the op's cost.

        Raises:
            TileError: T503, the pipe cannot access the memory of an operand; T504, the core has no such pipe; T501, an operand
                selects between memrefs that differ in more than their address.
        """
        facts: dict[str, int] = {}
        own = check_pipe(self, op, pipe, "runs on")
        for operand in operands:
            check_operand(self, op, operand)
        accesses = [self._access(op, operand, facts) for operand in operands]
        made = OpRecord(
            number=len(self.records), name=op_name(op), pipe=own, core=self.core, location=location_of(op),
            accesses=tuple(accesses), work=work(lambda value: self.slot(value, facts)), scalars=self.scalar_work.take_pending(),
            facts=tuple(facts), loops=self.depth)
        self.records.append(made)
        self.recorded.append(op)
        text = f"({made.number}, {', '.join(facts)})" if facts else str(made.number)
        self._events.append(text)
        return made

    def _access(self, op: Operation, operand: Operand, facts: dict[str, int]) -> Access:
        views = alternatives(operand.buffer)
        first = views[0]
        names = {view.base.name for view in views}
        self.written_memories |= names if operand.writes else set()
        self.read_memories |= names if operand.reads else set()
        if any((v.base, v.sizes, v.strides) != (first.base, first.sizes, first.strides) for v in views):
            raise unsupported(op, "the memrefs between which its operand is selected differ in more than their address")
        offset: Slot | None
        if first.base.memory == "gm":
            self._gm.append(self._place_of(operand.buffer))
            offset = None
        elif not (first.offset.at_least(0) and first.offset.at_most(first.base.size or 0)):
            offset = Fact(facts.setdefault(self._place_of(operand.buffer), len(facts)))
        elif isinstance(operand.buffer, Choice):
            offset = Fact(facts.setdefault(self.offset_of(operand.buffer), len(facts)))
        else:
            offset = self.slot(first.offset, facts)
        return Access(
            memory=first.base.memory, buffer=first.base.buffer, reads=operand.reads, writes=operand.writes,
            element=first.element.nbytes, offset=offset, sizes=tuple(self.slot(size, facts) for size in first.sizes),
            strides=tuple(self.slot(stride, facts) for stride in first.strides),
            pipe=check_pipe(self, op, operand.pipe, "runs on"), name=operand.name, label=first.base.label,
            holder=first.base.holder, owner=first.base.owner, planned=first.base.planned,
            scratch=operand.scratch, alignment=0 if operand.writes else _source_alignment(op),
            unless=Fact(facts.setdefault(operand.unless, len(facts))) if operand.unless else None)

    def finished_records(self) -> tuple[OpRecord, ...]:
        """Returns all records, in which buffers between which an op selects have the same buffer number."""
        return tuple(self.buffer_numbers.renumbered(record) for record in self.records)

    def _place_of(self, buffer: Buffer) -> str:
        """Returns the byte offset of a memref as :meth:`offset_of` does, but 0 for a memref without elements.

        The address of such a memref is possibly not valid.
        """
        place, sizes = self.offset_of(buffer), alternatives(buffer)[0].sizes
        empty = [self.name_of(size) for size in sizes if not size.at_least(1)]
        return self.define(f"{place} if {' and '.join(empty)} else 0", self.scope_of(buffer)) if empty else place

    def offset_of(self, buffer: Buffer) -> str:
        """Returns the byte offset of a memref in its memory, as the name of a variable or a literal."""
        if isinstance(buffer, Choice):
            text = f"{self.offset_of(buffer.true)} if {buffer.condition.text} else {self.offset_of(buffer.false)}"
            return self.define(text, self.scope_of(buffer))
        return self.name_of(buffer.offset)

    def scalars_statement(self, op: Operation, count: int, times: int | str = 1) -> str:
        """Returns a statement that records scalar instructions before a loop, or those of all iterations of a loop.

        Args:
            op: the loop.
            count: the number of instructions.
            times: how often they run: a number, or an expression of the generated code.
        """
        slot: Slot = times if isinstance(times, int) else Fact(0)
        facts = () if isinstance(times, int) else (times,)
        made = OpRecord(number=len(self.records), name=op_name(op), pipe="S", core=self.core, location=location_of(op),
                        accesses=(), work=Scalars(slot), scalars=count, facts=facts, loops=self.depth)
        self.records.append(made)
        self.recorded.append(op)
        return self.record_statement(made, *facts)

    def record_statement(self, record: OpRecord, *facts: str) -> str:
        """Returns a statement that records the execution of an op without operands in memory.

        Args:
            record: the record of the op.
            facts: the expressions of the event's facts (run-time numbers).
        """
        return f"ev += (({record.number}, {', '.join(facts)}),)" if facts else f"ev += ({record.number},)"
