"""The records of a function's ops: who runs them, on which bytes, at which cost; and the events that name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilelang_npu.dialects.ir.effects import EffectsOp, effects_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.simulator.codegen.handlers import op_name, unsupported
from tilelang_npu.simulator.codegen.lines import Int, ScalarExpr
from tilelang_npu.simulator.codegen.reachable import check_operand, check_pipe
from tilelang_npu.simulator.codegen.scalar_work import ScalarWork
from tilelang_npu.simulator.codegen.strided import Buffer, Choice, alternatives
from tilelang_npu.simulator.codegen.values import Values
from tilelang_npu.simulator.machine.events import Access, Fact, OpRecord, Slot
from tilelang_npu.simulator.machine.work import Scalars, Work
from tilelang_npu.target import Chip, Path

Costing = Callable[[Callable[[Int], Slot]], Work]
"""Describes what the cost of an op follows from; gets the function from integers to slots."""
_BY_POSITION = attrgetter("index")


class Operand(NamedTuple):
    """A memory operand of an op that is being recorded.

    Attributes:
        buffer: the memref.
        reads, writes: what is done to it; what is only left as it was is not read.
        pipe: the pipe that does it.
        name: what it is called in the op.
        scratch: whether the op only computes in it.
        into: the memory that the pipe takes it to before it is computed with; empty where it stays.
        path: the way of the chip that it is an end of, for ops that only move.
        unless: a condition on which it is not read.
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


class Records(Values):
    """What is known of the ops of one device function.

    Args:
        function, core, chip, parallel: as for ``Values``.

    Attributes:
        records: by the number in the events.
        recorded: the op of each record.
        depth: loops around the current place.
        scalar_work: the instructions of the scalar unit.
        written, looked, loaded: names of the memories that ops write, that they read, and that the scalar unit reads from.
    """

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        self.records: list[OpRecord] = []
        self.recorded: list[Operation] = []
        self.depth = 0
        self.written: set[str] = set()
        self.looked: set[str] = set()
        self.loaded: set[str] = set()
        self._events: list[str] = []
        self._gm: list[str] = []
        self.scalar_work = ScalarWork()

    def flush(self) -> None:
        """Write the events of the ops emitted since the last time."""
        if self._events:
            self.scope.line(f"ev += ({', '.join(self._events)},)")
            self._events = []
        if self._gm:
            self.scope.line(f"gm += ({', '.join(self._gm)},)")
            self._gm = []

    def slot(self, value: Int, facts: dict[str, int]) -> Slot:
        """Where an integer of an event stands: in the record if it is constant, else among the event's facts."""
        if value.known:
            return value.constant
        text = self.name_of(value)
        return Fact(facts.setdefault(text, len(facts)))

    def step(self, op: Operation, work: Costing, *, pipe: str = "", path: Path | None = None,
             held: Mapping[str, Sequence[Buffer]] = MappingProxyType({}), into: Mapping[str, str] = MappingProxyType({}),
             called: Mapping[str, str] = MappingProxyType({}), anew: tuple[str, ScalarExpr] | None = None) -> OpRecord:
        """Record that an op runs here, which does to its operands what it says (``dialects/ir/effects.py``), in their order.

        Args:
            op: the op.
            work: as for :meth:`record`.
            pipe: the pipe that takes it, where it names none.
            path: the way of the chip that a move goes.
            held: by role the memrefs that an operand is, where it is not just the one that its value is.
            into: by role the memory that an operand passes through.
            called: what roles are called in messages that are called something else.
            anew: the role of what is not read after all on a condition, and that: the op's text does not show its value.
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
        """Record that the op runs here; directly only for ops that order others, of which a pipe is an end.

        Args:
            op: the op.
            pipe: the pipe that takes it.
            operands: its operands in memory.
            work: makes the description of its cost; gets the function from integers to slots.

        Raises:
            TileError: T503, an operand is in a memory that the op does not reach; T504, the core has no such pipe.
        """
        facts: dict[str, int] = {}
        check_pipe(self, op, pipe, "runs on")
        for operand in operands:
            check_operand(self, op, operand)
        accesses = [self._access(op, operand, facts) for operand in operands]
        made = OpRecord(
            number=len(self.records), name=op_name(op), pipe=pipe, core=self.core, location=location_of(op),
            accesses=tuple(accesses), work=work(lambda value: self.slot(value, facts)), scalars=self.scalar_work.take(),
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
        self.written |= names if operand.writes else set()
        self.looked |= names if operand.reads else set()
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
        """The records of the whole function: buffers of which an op takes one or the other have one number."""
        return tuple(self.buffer_numbers.renumbered(record) for record in self.records)

    def _place_of(self, buffer: Buffer) -> str:
        """As ``offset_of``, and 0 of what has no elements, which may be anywhere."""
        place, sizes = self.offset_of(buffer), alternatives(buffer)[0].sizes
        empty = [self.name_of(size) for size in sizes if not size.at_least(1)]
        return self.define(f"{place} if {' and '.join(empty)} else 0", self.scope_of(buffer)) if empty else place

    def offset_of(self, buffer: Buffer) -> str:
        """The byte offset of a memref as a name or literal."""
        if isinstance(buffer, Choice):
            text = f"{self.offset_of(buffer.true)} if {buffer.condition.text} else {self.offset_of(buffer.false)}"
            return self.define(text, self.scope_of(buffer))
        return self.name_of(buffer.offset)

    def ahead(self, op: Operation, count: int) -> str:
        """The statement that records the scalar instructions which run ahead of a loop."""
        made = OpRecord(number=len(self.records), name=op_name(op), pipe="S", core=self.core, location=location_of(op),
                        accesses=(), work=Scalars(), scalars=count, facts=(), loops=self.depth)
        self.records.append(made)
        self.recorded.append(op)
        return self.now(made)

    def now(self, record: OpRecord) -> str:
        """The statement that records an op without operands, where it stands."""
        return f"ev += ({record.number},)"
