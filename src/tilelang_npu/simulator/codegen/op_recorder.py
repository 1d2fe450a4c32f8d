"""The records of a function's ops: the core and pipe, the bytes that they access, and the inputs of their cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilelang_npu.dialects.ir.effects import EffectsOp, effects_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.simulator.codegen.code_scopes import Int, ScalarExpr
from tilelang_npu.simulator.codegen.handlers import op_name, unsupported
from tilelang_npu.simulator.codegen.operand_checks import check_operand, check_pipe
from tilelang_npu.simulator.codegen.scalar_work import ScalarWork
from tilelang_npu.simulator.codegen.ssa_values import SsaValues
from tilelang_npu.simulator.codegen.strided_views import Buffer, Choice, alternatives
from tilelang_npu.simulator.machine.op_records import Access, Fact, OpRecord, Scalars, Slot, Work
from tilelang_npu.target import Chip, Path

Costing = Callable[[Callable[[Int], Slot]], Work]
"""Makes the inputs of an op's cost, given the function from integers to record entries."""
_BY_POSITION = attrgetter("index")


class Operand(NamedTuple):
    """A memory operand of an op that is being recorded.

    Attributes:
        buffer: the memref.
        reads, writes: what the op does to it; an operand that keeps its old value is not read.
        pipe: the pipe that accesses it.
        name: its role in the op.
        scratch: whether it is a temporary of the op.
        into: the memory that the pipe loads it into before it computes; empty for none.
        path: for moves, the chip's path that it is an end of.
        unless: a condition under which it is not read.
    """

    buffer: Buffer
    reads: bool
    writes: bool
    pipe: str
    name: str
    scratch: bool = False
    into: str = ""
    path: Path | None = None
    unless: str = ""


class OpRecorder(SsaValues):
    """The records of the ops of one device function.

    Args:
        function, core, chip, parallel: as for ``SsaValues``.

    Attributes:
        records: by their number in the events.
        recorded: the op of each record.
        depth: number of loops around the current place.
        scalar_work: the instructions of the scalar unit.
        written_memories, read_memories: names of the memories that ops write, and that ops read.
        scalar_read_memories: names of the memories that the scalar unit reads.
    """

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
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
        """Emits the events of the ops since the last flush."""
        if self._events:
            self.scope.line(f"ev += ({', '.join(self._events)},)")
            self._events = []
        if self._gm:
            self.scope.line(f"gm += ({', '.join(self._gm)},)")
            self._gm = []

    def slot(self, value: Int, facts: dict[str, int]) -> Slot:
        """Returns an integer as an entry of a record: a constant, or a fact of the event."""
        if value.known:
            return value.constant
        text = self.name_of(value)
        return Fact(facts.setdefault(text, len(facts)))

    def record_op(self, op: Operation, work: Costing, *, pipe: str = "", path: Path | None = None,
                  held: Mapping[str, Sequence[Buffer]] = MappingProxyType({}), into: Mapping[str, str] = MappingProxyType({}),
                  called: Mapping[str, str] = MappingProxyType({}), anew: tuple[str, ScalarExpr] | None = None) -> OpRecord:
        """Records an op with the effects that its class declares (``dialects/ir/effects.py``), in operand order.

        Args:
            op: the op.
            work: as for :meth:`record`.
            pipe: its pipe, if the op names none.
            path: the chip's path of a move.
            held: by role, the memrefs of an operand, if they are not the memref of its value.
            into: by role, the memory that an operand passes through.
            called: by role, another name for messages.
            anew: the role of an operand that is not read if a condition holds, and the condition.
        """
        pipes = op.pipes() if isinstance(op, EffectsOp) else ()
        pipe = pipes[0] if pipes else pipe
        role, condition = anew or ("", None)
        surely = condition is not None and bool(condition.value)
        unless = condition.text if condition is not None and condition.value is None else ""
        operands = [
            Operand(buffer, effect.reads and not effect.partial and not (surely and effect.role == role), effect.writes,
                    effect.pipe or pipe, called.get(effect.role, effect.role), effect.scratch, into.get(effect.role, ""), path,
                    unless if effect.role == role else "")
            for effect in sorted(effects_of(op), key=_BY_POSITION)
            for buffer in held.get(effect.role) or (self.buffer(effect.value),)]
        return self.record(op, pipe, operands, work)

    def record(self, op: Operation, pipe: str, operands: Sequence[Operand],
               work: Costing) -> OpRecord:
        """Records an op. Called directly only for ops that synchronise; other ops use :meth:`record_op`.

        Args:
            op: the op.
            pipe: its pipe.
            operands: its operands in memory.
            work: makes the inputs of its cost.

        Raises:
            TileError: T503, the op cannot access the memory of an operand; T504, the core has no such pipe.
        """
        facts: dict[str, int] = {}
        check_pipe(self, op, pipe, "runs on")
        for operand in operands:
            check_operand(self, op, operand)
        accesses = [self._access(op, operand, facts) for operand in operands]
        made = OpRecord(
            number=len(self.records), name=op_name(op), pipe=pipe, core=self.core, location=location_of(op),
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
            raise unsupported(op, "it chooses among memrefs that differ in more than their address")
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
            strides=tuple(self.slot(stride, facts) for stride in first.strides), pipe=operand.pipe, name=operand.name,
            label=first.base.label, holder=first.base.holder, owner=first.base.owner, planned=first.base.planned,
            scratch=operand.scratch, unless=Fact(facts.setdefault(operand.unless, len(facts))) if operand.unless else None)

    def finished_records(self) -> tuple[OpRecord, ...]:
        """Returns the records of the whole function, with one number for buffers that an op chooses between."""
        return tuple(self.buffer_numbers.renumbered(record) for record in self.records)

    def _place_of(self, buffer: Buffer) -> str:
        """As ``offset_of``, but 0 for a memref without elements, whose address may be anything."""
        place, sizes = self.offset_of(buffer), alternatives(buffer)[0].sizes
        empty = [self.name_of(size) for size in sizes if not size.at_least(1)]
        return self.define(f"{place} if {' and '.join(empty)} else 0", self.scope_of(buffer)) if empty else place

    def offset_of(self, buffer: Buffer) -> str:
        """Returns the byte offset of a memref as a name or literal."""
        if isinstance(buffer, Choice):
            text = f"{self.offset_of(buffer.true)} if {buffer.condition.text} else {self.offset_of(buffer.false)}"
            return self.define(text, self.scope_of(buffer))
        return self.name_of(buffer.offset)

    def scalars_statement(self, op: Operation, count: int) -> str:
        """Returns the statement that records the scalar instructions before a loop."""
        made = OpRecord(number=len(self.records), name=op_name(op), pipe="S", core=self.core, location=location_of(op),
                        accesses=(), work=Scalars(), scalars=count, facts=(), loops=self.depth)
        self.records.append(made)
        self.recorded.append(op)
        return self.record_statement(made)

    def record_statement(self, record: OpRecord) -> str:
        """Returns the statement that records an op without operands."""
        return f"ev += ({record.number},)"
