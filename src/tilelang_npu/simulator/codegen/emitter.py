"""The state of generating one device function: values, scopes, records of ops, and the lines themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, Signedness
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from tilelang_npu.dialects.names import spoken
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.ops.dtypes import DType, dtype
from tilelang_npu.simulator.codegen.reach import checked, part
from tilelang_npu.simulator.codegen.reachable import check_argument, check_operand, check_pipe
from tilelang_npu.simulator.codegen.scope import Atom, Expr, Int, Kind, Scope, deeper, join
from tilelang_npu.simulator.codegen.views import Base, Buffer, Choice, Local, View, alternatives
from tilelang_npu.simulator.machine.events import Access, Fact, OpRecord, Slot
from tilelang_npu.target import Chip, Path

Value = Int | Expr | View | Choice | Local
Pure = Callable[["Emitter", Any], Value | Sequence[Value]]
Effect = Callable[["Emitter", Any], None]

PURE: dict[str, Pure] = {}
"""Ops without effects, by name: they are evaluated when their result is first needed."""
EFFECT: dict[str, Effect] = {}
"""Ops that do something, by name: they are emitted in their order."""
IGNORED = frozenset({
    "annotation.mark", "hivm.hir.set_mask_norm", "hivm.hir.set_ffts_base_addr", "hivm.hir.set_ctrl", "hivm.hir.anchor",
    "hivm.hir.init_debug", "hivm.hir.finish_debug", "hivm.hir.dcci", "memref.dealloc",
    "memref.assume_alignment", "scf.yield", "scf.condition", "func.return"})
"""Ops that change neither values nor times here."""
MAX_BLOCKS = 65535
"""Most blocks of a launch: the width of the block dimension in the runtime's launch call."""
WORD = 1 << 63
"""Beyond the least and the greatest number that comes from outside, of any type."""


class Operand(NamedTuple):
    """A memory operand of an op that is being recorded.

    Attributes:
        buffer: the memref.
        reads, writes: what is done to it.
        pipe: the pipe that does it.
        name: what it is called in the op.
        into: the memory that the pipe takes it to before it is computed with; empty where it stays.
        path: the way of the chip that it is an end of, for ops that only move.
    """

    buffer: Buffer
    reads: bool
    writes: bool
    pipe: str
    name: str
    into: str = ""
    path: Path | None = None


def pure(*names: str) -> Callable[[Pure], Pure]:
    """Register how ops without effects are evaluated."""

    def register(handler: Pure) -> Pure:
        for name in names:
            PURE[name] = handler
        return handler

    return register


def effect(*names: str) -> Callable[[Effect], Effect]:
    """Register how ops with effects are emitted."""

    def register(handler: Effect) -> Effect:
        for name in names:
            EFFECT[name] = handler
        return handler

    return register


CUSTOM: dict[str, Effect] = {}
"""How custom ops are emitted whose symbol is no entry of the op table: loads of L0 and the product of what is there."""


def custom(*symbols: str) -> Callable[[Effect], Effect]:
    """Register how custom ops are emitted."""

    def register(handler: Effect) -> Effect:
        for symbol in symbols:
            CUSTOM[symbol] = handler
        return handler

    return register


def op_name(op: Operation) -> str:
    """The op's full name, also where no dialect that is loaded declares it."""
    name = getattr(op, "op_name", None)
    return name.data if name is not None else op.name


def unsupported(op: Operation, why: str = "", help_: str = "") -> TileError:
    """The error for an op that the simulator does not execute."""
    return TileError(f"the simulator does not execute {op_name(op)}" + (f": {why}" if why else ""), code="T501",
                     location=location_of(op), help=help_)


class Emitter:
    """Generates the Python source of one device function.

    Args:
        function: the function.
        core: ``AIC`` or ``AIV``.
        chip: gives the capacities of the memories.
        parallel: sub-blocks of the block (1, or 2 for the Vector half of a mixed kernel).
    """

    stepwise = False
    computes = True

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        self.function = function
        self.core = core
        self.chip = chip
        self.parallel = parallel
        self.launch = Scope("launch", None, 1)
        self.scope = self.block = Scope("block", self.launch, 2)
        self.values: dict[SSAValue, Value] = {}
        self.records: list[OpRecord] = []
        self.recorded: list[Operation] = []  # the op of each record
        self.globals: dict[str, object] = {}
        self.extents: dict[str, int] = {}
        self.switches = self.global_sync = False
        self.depth = 0
        self.turns: dict[Operation, tuple[Int, Int, Int]] = {}
        self.atomic = "none"
        self.written: set[str] = set()
        self.looked: set[str] = set()
        self.loaded: set[str] = set()
        self.parts: dict[tuple[Base, tuple[int, int]], str] = {}
        self.homes: dict[Block, Scope] = {}
        self._events: list[str] = []
        self._gm: list[str] = []
        self._names = 0
        self._atoms = 0
        self._scalars = 0
        self._variant: set[SSAValue] = set()
        self._global_ids: dict[int, str] = {}
        self._who: dict[str, Int] = {}
        self.unwatched = 1  # iterations of the loops at this place, with those in them, that nobody counts
        self.by_data: frozenset[Operation] | None = None  # the counted loops of which data say how often they run

    # -- names ---------------------------------------------------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        """A name that is not in use."""
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, thing: object, prefix: str) -> str:
        """The name of an object that the generated code uses."""
        name = self._global_ids.get(id(thing))
        if name is None:
            name = self._global_ids[id(thing)] = self.fresh(prefix + "_")
            self.globals[name] = thing
        return name

    def numpy_type(self, element: DType) -> str:
        """The name of an element type's NumPy dtype."""
        name = f"t_{element.mlir}"
        self.globals[name] = element.numpy
        return name

    # -- definitions ---------------------------------------------------------------------------------------------------

    def define(self, text: str, scope: Scope, prefix: str = "x") -> str:
        """The name of a pure expression that is computed in ``scope``."""
        if text.isidentifier() or text.lstrip("-").isdigit():
            return text
        place: Scope | None = scope
        while place is not None:
            known = place.names.get(text)
            if known is not None:
                return known
            place = place.parent
        name = self.fresh(prefix)
        scope.line(f"{name} = {text}", self.current)
        scope.names[text] = name
        return name

    def surely_run(self, scope: Scope) -> Scope:
        """Where what may fail can be computed that needs ``scope``: no further out than the current op surely runs."""
        block = self.current.parent_block() if self.current is not None else None
        place = self.homes.get(block, self.scope) if block is not None else self.scope
        while place.depth > scope.depth:
            if place.kind == "branch" or (place.kind == "loop" and not place.certain):
                return place
            assert place.parent is not None
            place = place.parent
        return place

    current: Operation | None = None
    """The op that lines are emitted for."""

    def atom(self, name: str, scope: Scope, low: int | None = None, high: int | None = None) -> Int:
        """An integer behind a name."""
        self._atoms += 1
        return Int(0, ((Atom(name, scope, low, high, self._atoms), 1),))

    def named(self, text: str, scope: Scope, low: int | None = None, high: int | None = None, *, safe: bool = True) -> Int:
        """An integer computed by an expression."""
        if low is not None and low == high:
            return Int(low)
        place = scope if safe else self.surely_run(scope)
        return self.atom(self.define(text, place), place, low, high)

    def spelled(self, value: Int) -> str:
        """The expression of an integer; parts that are known further out are computed there."""
        if not value.terms:
            return str(value.const)
        groups: dict[int, list[tuple[Atom, int]]] = {}
        for atom, factor in value.terms:
            groups.setdefault(atom.scope.depth, []).append((atom, factor))
        const = value.const
        parts: list[tuple[str, int]] = []
        depths = sorted(groups)
        for depth in depths:
            parts += [(atom.name, factor) for atom, factor in groups[depth]]
            if depth != depths[-1] and not (len(parts) == 1 and parts[0][1] == 1):
                parts = [(self.define(join(parts, const), groups[depth][0][0].scope), 1)]
                const = 0
        return join(parts, const)

    def name_of(self, value: Int) -> str:
        """A name or literal that holds an integer."""
        return self.define(self.spelled(value), self.scope_of(value))

    def scope_of(self, *values: Value | Int) -> Scope:
        """The innermost scope that the values depend on."""
        found = self.launch
        for value in values:
            if isinstance(value, Int):
                for atom, _ in value.terms:
                    found = deeper(found, atom.scope)
            elif isinstance(value, Expr):
                found = deeper(found, value.scope)
            elif isinstance(value, View):
                found = deeper(found, self.scope_of(value.offset, *value.sizes, *value.strides))
            elif isinstance(value, Choice):
                found = deeper(found, self.scope_of(value.condition, value.true, value.false))
        return found

    # -- values --------------------------------------------------------------------------------------------------------

    def value(self, ssa: SSAValue) -> Value:
        """What an SSA value is."""
        found = self.values.get(ssa)
        if found is None:
            if isinstance(ssa, BlockArgument):
                found = self.values[ssa] = self.argument(ssa)
            else:
                assert isinstance(ssa, OpResult)
                found = self._evaluate(ssa)
        return found

    def _evaluate(self, ssa: OpResult) -> Value:
        op = ssa.op
        handler = PURE.get(op_name(op))
        if handler is None:
            raise unsupported(op)
        outer, self.current = self.current, op
        made = handler(self, op)
        self.current = outer
        results = made if isinstance(made, (list, tuple)) and not isinstance(made, Operand) else (made,)
        for result, value in zip(op.results, results, strict=True):
            self.values[result] = value
        return self.values[ssa]

    def integer(self, ssa: SSAValue) -> Int:
        """The integer that an SSA value is."""
        value = self.value(ssa)
        if isinstance(value, Int):
            return value
        if isinstance(value, Expr):  # a truth value in integer clothes
            if value.value is not None:
                return Int(int(value.value))
            return self.named(f"int({value.text})", value.scope, 0, 1)
        raise unsupported(self._owner(ssa), "an integer is needed here")

    def expression(self, ssa: SSAValue) -> Expr:
        """A scalar as an expression that is a name or a literal."""
        value = self.value(ssa)
        if isinstance(value, Int):
            return Expr(self.name_of(value), self.scope_of(value), value.const if value.known else None)
        if isinstance(value, Expr):
            return value
        raise unsupported(self._owner(ssa), "a scalar is needed here")

    def buffer(self, ssa: SSAValue) -> Buffer:
        """The memref that an SSA value is."""
        value = self.value(ssa)
        if isinstance(value, (View, Choice)):
            return value
        raise unsupported(self._owner(ssa), "a memref in a device memory is needed here",
                          "give the memref an address space and an address (hivm.hir.pointer_cast)")

    def _owner(self, ssa: SSAValue) -> Operation:
        if self.current is not None:
            return self.current
        owner = ssa.owner
        return owner if isinstance(owner, Operation) else self.function

    def argument(self, ssa: BlockArgument) -> Value:
        """A kernel argument; arguments of other blocks are set by the op that owns them."""
        index = ssa.index
        kind = ssa.type
        name = f"a{index}_{spoken(ssa, f'arg{index}')}"
        if isa(kind, MemRefType):
            element = element_of(kind)
            check_argument(self, kind, spoken(ssa, f"arg{index}"))
            self.launch.line(f"{name} = arrays[{index}]")
            shape = kind.get_shape()
            sizes = []
            for axis, size in enumerate(shape):
                if size >= 0:
                    sizes.append(Int(size))
                else:
                    self.launch.line(f"{name}_{axis} = dims[{index}][{axis}]")
                    sizes.append(self.atom(f"{name}_{axis}", self.launch, 0, WORD))
            known = element.nbytes * int(np.prod(shape)) if all(size >= 0 for size in shape) else None
            return View(Base("gm", index, name, known, spoken(ssa)), element, Int(0), Int(0), tuple(sizes),
                        tuple(self.row_major(sizes, element.nbytes)))
        if isinstance(kind, (IndexType, IntegerType)):
            self.launch.line(f"{name} = scalars[{index}]")
            if isinstance(kind, IntegerType) and kind.width.data == 1:
                return Expr(name, self.launch)
            low, high = bounds(kind) if isinstance(kind, IntegerType) else (-WORD, WORD)
            return self.atom(name, self.launch, low, high)
        self.launch.line(f"{name} = scalars[{index}]")
        return Expr(name, self.launch)

    def who(self, name: str, scope: Scope, low: int, high: int) -> Int:
        """A number that the driver hands to the generated code."""
        found = self._who.get(name)
        if found is None:
            found = self._who[name] = self.atom(name, scope, low, high)
        return found

    def row_major(self, sizes: Sequence[Int], run: int) -> list[Int]:
        """Strides in bytes of a memref without gaps."""
        strides: list[Int] = []
        step = Int(run)
        for size in reversed(sizes):
            strides.append(step)
            step = self.multiplied(step, size)
        return strides[::-1]

    def multiplied(self, a: Int, b: Int) -> Int:
        """The product of two integers."""
        if a.known:
            return b.scaled(a.const)
        if b.known:
            return a.scaled(b.const)
        first, second = ((-WORD if one.low is None else one.low, WORD if one.high is None else one.high) for one in (a, b))
        corners = [x * y for x in first for y in second]
        low, high = min(corners), max(corners)
        scope = deeper(self.scope_of(a), self.scope_of(b))
        return self.named(f"{self.name_of(a)} * {self.name_of(b)}", scope, low, high)

    def on_chip(self, memory: str, label: str) -> Base:
        """One of the core's own memories, for a buffer with a name."""
        return Base(memory, 0, f"m_{memory}", self.chip.memory[memory].size, label)

    # -- arrays --------------------------------------------------------------------------------------------------------

    def array(self, buffer: Buffer, element: np.dtype[Any] | None = None) -> str:
        """The name of the NumPy array over a memref; ``element`` replaces its element type."""
        if isinstance(buffer, Choice):
            scope = self.scope_of(buffer)
            first, second = self.array(buffer.true, element), self.array(buffer.false, element)
            return self.define(f"{first} if {buffer.condition.text} else {second}", self.surely_run(scope), "v")
        inside = checked(self, buffer, element)
        if element is None:
            kind = self.numpy_type(buffer.element)
        else:
            kind = f"t_{element.str.strip('|<>')}"
            self.globals[kind] = element
        shape = _tuple([self.spelled(size) for size in buffer.sizes])
        strides = _tuple([self.spelled(stride) for stride in buffer.strides])
        memory, offset = buffer.base.name, self.name_of(buffer.offset)
        if not inside and buffer.limit is not None:
            memory, offset = part(self, buffer.base, buffer.limit), f"{offset} - {buffer.limit[0]}"
        empty = [self.name_of(size) for size in buffer.sizes if not size.at_least(1)]
        if empty:  # a tile that lies wholly beyond its tensor has no elements, and no address either
            offset = f"{offset} if {' and '.join(empty)} else 0"
        text = f"nd({shape}, {kind}, {memory}, {offset}, {strides})"
        scope = self.scope_of(buffer)
        return self.define(text, scope if inside else self.surely_run(scope), "v")

    def owner_now(self) -> Operation:
        """The op that code is made for."""
        return self.current if self.current is not None else self.function

    # -- lines and events ----------------------------------------------------------------------------------------------

    def line(self, text: str, op: Operation | None = None) -> None:
        """A statement in the current scope."""
        self.scope.line(text, op if op is not None else self.current)

    def flush(self) -> None:
        """Write the events of the ops emitted since the last time."""
        if self._events:
            self.scope.line(f"ev += ({', '.join(self._events)},)")
            self._events = []
        if self._gm:
            self.scope.line(f"gm += ({', '.join(self._gm)},)")
            self._gm = []

    def shown(self, text: str) -> None:
        """A statement that prints for the kernel's author."""
        self.line(text)

    def finish_op(self) -> None:
        """The lines of an op are complete."""

    def read(self, name: str, element: str) -> None:
        """Set a variable to the number in an array of one element."""
        self.line(f"{name} = {element}.item()")

    def decided(self, op: Operation, condition: str) -> str:
        """The condition of a branch or an open loop, as it is written."""
        return condition

    def leave_flag(self, flag: Int, group: str, op: Operation) -> None:
        """Set a flag between cores."""
        self.line(f"set_flag({self.spelled(flag)}, {group!r})", op)

    def take_flag(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """Wait for a flag between cores, handing over to the other cores until it is set."""
        self.flush()
        text = self.name_of(flag)
        self.line(f"while not counts[{text}]: yield {record.number}, {text}", op)
        self.line(f"counts[{text}] -= 1", op)

    def enter(self, kind: Kind, *, certain: bool = False) -> Scope:
        """Open a scope inside the current one."""
        self.flush()
        self.scope = Scope(kind, self.scope, self.scope.indent + 1, certain)
        return self.scope

    def leave(self) -> None:
        """Close the current scope."""
        self.flush()
        scope = self.scope
        if not scope.lines:
            scope.line("pass")
        scope.close()
        assert scope.parent is not None
        self.scope = scope.parent

    def slot(self, value: Int, facts: dict[str, int]) -> Slot:
        """Where an integer of an event stands: in the record if it is constant, else among the event's facts."""
        if value.known:
            return value.const
        text = self.name_of(value)
        return Fact(facts.setdefault(text, len(facts)))

    def record(self, op: Operation, pipe: str, operands: Sequence[Operand],
               work: Callable[[Callable[[Int], Slot]], object]) -> OpRecord:
        """Record that the op runs here.

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
            accesses=tuple(accesses), work=work(lambda value: self.slot(value, facts)), scalars=self._scalars,
            facts=tuple(facts), loops=self.depth)
        self._scalars = 0
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
            label=first.base.label)

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

    # -- blocks --------------------------------------------------------------------------------------------------------

    def emit_block(self, block: Block) -> None:
        """Emit the ops of a block in their order."""
        self._variant.update(block.args)
        self.homes[block] = self.scope
        for op in block.ops:
            name = op_name(op)
            handler = EFFECT.get(name)
            self.current = op
            if handler is not None:
                handler(self, op)
                self.finish_op()
                self._variant.update(op.results)
            elif name in PURE:
                self._count(op)
            elif name not in IGNORED:
                raise unsupported(op, help_="write it with ops of the planned form; docs list those that are executed")
        self.current = None

    def _count(self, op: Operation) -> None:
        """Scalar instructions: what is computed anew in every iteration."""
        if any(operand in self._variant for operand in op.operands):
            self._variant.update(op.results)
            self._scalars += 1

    def add_scalars(self, count: int) -> None:
        """Scalar instructions that run ahead of the next op."""
        self._scalars += count


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def element_of(kind: Attribute) -> DType:
    """The element type of a memref or scalar type.

    Raises:
        TileError: T501, no element type of the op tables.
    """
    element = kind.element_type if isinstance(kind, MemRefType) else kind
    try:
        return dtype(str(element))
    except ValueError:
        raise TileError(f"the simulator has no elements of type {element}", code="T501") from None


def bounds(kind: Attribute) -> tuple[int | None, int | None]:
    """The least and greatest value of an integer type; unknown for ``index``, which does not overflow here."""
    if isinstance(kind, IntegerType):
        half = 1 << (kind.width.data - 1)
        return (0, 2 * half - 1) if kind.signedness.data is Signedness.UNSIGNED else (-half, half - 1)
    return None, None
