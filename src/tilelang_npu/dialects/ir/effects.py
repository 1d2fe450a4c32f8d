"""What an operation does to its operands in memory, and on which pipe: stated by its class, once, and read here by all.

A class lists its operands under what the op does to them (:class:`EffectsOp`); where that depends on the op, it says so in
``reads_back`` and ``keeps``. Passes, reports and the simulator ask :func:`effects_of`, which also knows the ops of xDSL that
touch memory. xDSL's own passes ask the trait :class:`Stated` and find the same.

``tests/simulator/test_effects.py`` runs every op on memory in which all that it does not say it reads is noise.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, NoneAttr, UnrankedMemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import (
    AttrConstraint,
    IRDLOperation,
    OpDef,
    RangeLengthConstraint,
    RangeOf,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.irdl.operations import get_accessors_from_op_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    NoMemoryEffect,
    Pure,
    RecursiveMemoryEffect,
    is_side_effect_free,
)

from tilelang_npu.dialects.ir.fields import accessors, places


@dataclass(frozen=True, init=False)
class Effect:
    """What an operation does to one operand in memory; of a ``memref.load`` or ``memref.store`` to the element at its indices.

    Attributes:
        op: the operation.
        index: position of the operand in ``op.operands``.
        role: what the operand is to the op: the name of its field, or what the class calls it.
        reads: whether what the operand held before matters: elements are read, or some are left as they are.
        writes: whether elements of it are written.
        keeps: whether it is not read but some of its elements may be left as they are.
        pipe: the pipe that does it: ``S``, ``V``, ``M``, ``MTE1``, ``MTE2``, ``MTE3`` or ``FIX``; empty where no pipe does, as
            for scalar storage, or none is chosen yet, as in the tile dialect.
        scratch: whether it is memory that the op only computes in: nobody needs what is in it afterwards.
    """

    op: Operation
    index: int
    role: str
    reads: bool
    writes: bool
    keeps: bool = False
    pipe: str = ""
    scratch: bool = False

    def __init__(self, op: Operation, index: int, role: str, reads: bool, writes: bool, keeps: bool = False, pipe: str = "",
                 scratch: bool = False) -> None:
        # thousands are made for a kernel, and a frozen dataclass sets its fields one by one
        vars(self).update(op=op, index=index, role=role, reads=reads, writes=writes, keeps=keeps, pipe=pipe, scratch=scratch)

    @property
    def value(self) -> SSAValue:
        """The operand."""
        operands: tuple[SSAValue, ...] = self.op._operands
        return tuple.__getitem__(operands, self.index)  # that of xDSL's is Python, and this is asked for most of all


class Stated(MemoryEffect):
    """xDSL's interface to what an :class:`EffectsOp` states."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """Reads and writes of operands; a write of nothing in particular where the op does more than that."""
        assert isinstance(op, EffectsOp)
        found = {EffectInstance(kind, effect.value) for effect in op.effects()
                 for kind, does in ((MemoryEffectKind.READ, effect.reads), (MemoryEffectKind.WRITE, effect.writes)) if does}
        if op.is_seen():
            found.add(EffectInstance(MemoryEffectKind.WRITE))
        return found


class Allocates(MemoryEffect):
    """The op makes a buffer: two of them are two, and one that nothing uses can go."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """An allocation of each result."""
        return {EffectInstance(MemoryEffectKind.ALLOC, result) for result in op.results}


class EffectsOp(IRDLOperation, ABC):
    """Base of the ops that say what they do to their operands.

    Each operand that may be memory stands under ``READS``, ``WRITES``, ``SCRATCH`` or ``ASIDE``; an op without such
    operands is pure by its traits, or ``SEEN``. :func:`check_effects` refuses the definition of a class that leaves one out.
    """

    READS: ClassVar[tuple[str, ...]] = ()
    """Fields that the op reads."""
    WRITES: ClassVar[tuple[str, ...]] = ()
    """Fields that it writes."""
    SCRATCH: ClassVar[tuple[str, ...]] = ("temp_buffer",)
    """Fields that it computes in, where it has them."""
    ASIDE: ClassVar[tuple[str, ...]] = ()
    """Fields of which no element is touched: numbers that the declaration takes as anything, addresses, locks."""
    ROLES: ClassVar[Mapping[str, str]] = {}
    """What fields are called that are called something else."""
    SEEN: ClassVar[bool] = False
    """Whether the op does what is seen elsewhere: orders others, prints, changes what the core is set to."""
    traits = traits_def(Stated())

    def pipes(self) -> tuple[str, ...]:
        """Short names of the pipes that execute the op, in the order data takes them; empty where none does."""
        return ()

    def reads_back(self, target: SSAValue) -> bool:
        """Whether it reads what an operand that it writes held before: it adds to it, or has it as a source, too."""
        return False

    def keeps(self) -> bool:
        """Whether it may leave elements of what it writes as they were."""
        return False

    def role(self, field: str, index: int) -> str:
        """What the operand at a position is to the op: what the class calls the field that it is of."""
        return self.ROLES.get(field, field)

    def is_seen(self) -> bool:
        """Whether this op does more than what it does to its operands."""
        return self.SEEN

    def effects(self) -> tuple[Effect, ...]:
        """What it reads, then what it writes, then its scratch."""
        operands, pipes, fields = tuple(self._operands), self.pipes(), places(self)
        first, last = (pipes[0], pipes[-1]) if pipes else ("", "")
        found = []
        for name in self.READS:
            for index in fields[name]:
                if is_memory(operands[index]):
                    found.append(Effect(self, index, self.role(name, index), True, False, False, _pipe(first, operands[index])))
        keeps = self.keeps()
        for name in self.WRITES:
            for index in fields[name]:
                if is_memory(operands[index]):
                    back = self.reads_back(operands[index])
                    found.append(Effect(self, index, self.role(name, index), back or keeps, True, keeps and not back,
                                        _pipe(last, operands[index])))
        for name in self.SCRATCH:
            for index in fields.get(name, ()):
                if is_memory(operands[index]):
                    found.append(Effect(self, index, self.role(name, index), False, True, False, last, True))
        return tuple(found)


def _pipe(pipe: str, value: SSAValue) -> str:
    """The pipe of an operand; what the scalar unit does in its own storage (``memref.alloca``) is on none."""
    if pipe != "S":
        return pipe
    kind = value.type
    own = isinstance(kind, (MemRefType, UnrankedMemRefType)) and isinstance(kind.memory_space, NoneAttr)
    return "" if own else pipe


_EQUAL = 0  # of arith.cmpi's predicates


def constant(value: SSAValue) -> int | None:
    """The number that an integer is, where it is a constant."""
    held = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return held.value.data if isinstance(held, IntegerAttr) else None


def surely_true(value: SSAValue) -> bool:
    """Whether an i1 is the constant true, or asks whether a constant is itself, or the first time of a loop that runs once."""
    asks = value.owner
    if not isinstance(asks, arith.CmpiOp):
        return bool(constant(value))
    first = known if (known := constant(asks.lhs)) is not None else _only_value(asks.lhs)
    return first is not None and first == constant(asks.rhs) and asks.predicate.value.data == _EQUAL


def _only_value(value: SSAValue) -> int | None:
    """The number that counts a loop which runs once, where its bounds say so."""
    block = value.owner
    loop = block.parent_op() if isinstance(block, Block) else None
    if not isinstance(loop, scf.ForOp) or block is not loop.body.block or value is not block.args[0]:
        return None
    start, end, step = (constant(bound) for bound in (loop.lb, loop.ub, loop.step))
    once = start is not None and end is not None and step is not None and start < end <= start + step
    return start if once else None


def is_memory(value: SSAValue) -> bool:
    """Whether a value is a buffer, wherever it is."""
    return isinstance(value.type, (MemRefType, UnrankedMemRefType))


# -- ops of xDSL -------------------------------------------------------------------------------------------------------

_OF_XDSL: dict[str, tuple[tuple[int, str, bool, bool], ...]] = {
    "memref.load": ((0, "scalar", True, False),),
    "memref.store": ((1, "scalar", False, True),),
    "memref.atomic_rmw": ((1, "scalar", True, True),),
    "memref.copy": ((0, "src", True, False), (1, "dst", False, True)),
}
"""Ops of xDSL that touch elements: position of the operand, its role, whether it is read, whether it is written."""
arith.RemUIOp.traits = traits_def(*arith.RemUIOp.traits, NoMemoryEffect())  # xDSL does not say it of these two
arith.ExtSIOp.traits = traits_def(*arith.ExtSIOp.traits, Pure())
ATOMIC = "tile.atomic"
"""Attribute of ``memref.store``: it adds to the element, indivisibly."""


@cache
def _states(kind: type[Operation]) -> bool:
    """Whether a class says what its ops do: ``isinstance`` of an abstract class takes as long as all else that is asked."""
    return issubclass(kind, EffectsOp)


def effects_of(op: Operation) -> tuple[Effect, ...]:
    """What an operation does to its operands in memory; nothing for views and scalars."""
    if _states(type(op)):
        effects: tuple[Effect, ...] = cast(EffectsOp, op).effects()
        return effects
    stated = _OF_XDSL.get(op.name)
    if stated is None:
        return ()
    return tuple(Effect(op, index, role, reads=reads or ATOMIC in op.attributes, writes=writes,
                        pipe=_pipe("S", op.operands[index]) if role == "scalar" else "")  # of a copy none is chosen yet
                 for index, role, reads, writes in stated)


def is_pure(op: Operation) -> bool:
    """Whether an operation only makes results, which depend on its operands alone."""
    return bool(op.results) and not op.regions and is_side_effect_free(op)


def accesses(op: Operation) -> tuple[Effect, ...]:
    """Those effects of an operation that a pipe has: what is to be ordered, planned and paid for."""
    return tuple(effect for effect in effects_of(op) if effect.pipe)


Fields = Sequence[str] | Mapping[str, str]
OpT = TypeVar("OpT", bound=EffectsOp)

# -- definitions -------------------------------------------------------------------------------------------------------

_OTHERWISE = (NoMemoryEffect, RecursiveMemoryEffect, IsTerminator, Allocates)
"""Traits that say what an op does."""


def stating(*, seen: bool | None = None, **fields: Fields) -> Callable[[type[OpT]], type[OpT]]:
    """Class decorator: define the op that the class body declares, which does what is said here; see :func:`state_effects`."""

    def define(cls: type[OpT]) -> type[OpT]:
        definition = OpDef.from_pyrdl(cls)
        text, definition.assembly_format = definition.assembly_format, None
        members = {**get_accessors_from_op_def(definition, getattr(cls, "verify_", None)), **accessors(definition)}
        definition.assembly_format = text
        for name, member in {**members, **({} if text is None else _written(text, definition))}.items():
            setattr(cls, name, member)
        state_effects(cls, seen, fields)
        check_effects(cls, definition)
        return cls

    return define


def _written(text: str, definition: OpDef) -> dict[str, Any]:
    """How an op is read and written by an assembly format, which is looked at when it is needed: most runs print no text."""

    @cache
    def program() -> FormatProgram:
        return FormatProgram.from_str(text, definition)

    def read(cls: type[OpT], parser: Parser) -> OpT:
        return program().parse(parser, cls)

    def write(self: EffectsOp, printer: Printer) -> None:
        program().print(printer, self)

    return {"parse": classmethod(read), "print": write}


def state_effects(cls: type[EffectsOp], seen: bool | None, fields: Mapping[str, Fields]) -> None:
    """Set what a class decorator says of an op; what it does not say stays as in the base.

    Args:
        cls: the class of the op.
        seen: ``SEEN`` of the class.
        fields: ``reads``, ``writes``, ``scratch`` and ``aside``: the fields that the members of those names list; with what
            they are called, where that is not the field's name.
    """
    for name, listed in fields.items():
        if name not in ("reads", "writes", "scratch", "aside"):
            msg = f"{cls.name}: an op has no {name}"
            raise TypeError(msg)
        setattr(cls, name.upper(), tuple(listed))
        if isinstance(listed, Mapping):
            cls.ROLES = {**cls.ROLES, **listed}
    if seen is not None:
        cls.SEEN = seen


def check_effects(cls: type[EffectsOp], definition: OpDef) -> None:
    """Refuse the definition of an op that does not say what it does.

    Args:
        cls: the class of the op.
        definition: its operands and traits.

    Raises:
        TypeError: an operand that may be memory is not mentioned, one that is mentioned is not there, or nothing is said.
    """
    names = {name for name, _ in definition.operands}
    stated = {*cls.READS, *cls.WRITES, *cls.SCRATCH, *cls.ASIDE}
    unknown = sorted({*cls.READS, *cls.WRITES, *cls.ASIDE} - names)
    if unknown:
        msg = f"{cls.name} has no operand {', '.join(unknown)}, and says what it does to it"
        raise TypeError(msg)
    missing = [name for name, operand in definition.operands if _may_be_memory(operand.constr) and name not in stated]
    says = cls.SEEN or bool({*cls.READS, *cls.WRITES, *cls.ASIDE})
    if (says and not missing) or any(isinstance(trait, _OTHERWISE) for trait in definition.traits):
        return
    if missing:
        msg = (f"{cls.name} does not say what it does to its operand {', '.join(missing)}: "
               "list it in READS, WRITES, SCRATCH or ASIDE of the class")
        raise TypeError(msg)
    msg = f"{cls.name} does not say that it does anything: give it the trait Pure, operands that it writes, or SEEN"
    raise TypeError(msg)


def _may_be_memory(constraint: object) -> bool:
    """Whether a constraint lets a buffer through."""
    if isinstance(constraint, RangeLengthConstraint):
        constraint = constraint.constraint
    if isinstance(constraint, RangeOf):
        constraint = constraint.constr
    named: Iterable[object] | None = getattr(constraint, "classes", None)
    if named is None and isinstance(types := getattr(constraint, "types", None), frozenset):
        named = {type(each) for each in types}
    if named is None and isinstance(constraint, AttrConstraint):
        named = constraint.get_bases()
    return named is None or any(isinstance(each, type) and issubclass(kind, each) for each in named
                                for kind in (MemRefType, UnrankedMemRefType))


__all__ = ["ATOMIC", "Allocates", "Effect", "EffectsOp", "Stated", "accesses", "check_effects", "constant", "effects_of",
           "is_memory", "is_pure", "state_effects", "stating", "surely_true"]
