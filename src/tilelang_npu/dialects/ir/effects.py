"""Memory effects: what an operation does to its operands in memory, and on which pipe.

A class declares its operands under what the op does to them (:class:`EffectsOp`). Where that depends on the op, the class
overrides ``reads_destination`` and ``writes_partially``. Passes, reports and the simulator ask :func:`effects_of`, which also
knows the ops of xDSL that access memory. xDSL's own passes ask the trait :class:`OperandEffects` and get the same answer.

``tests/simulator/test_effects.py`` proves the declarations: it runs every op on memory in which all bytes that the op is not
declared to read are random.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, NoneAttr, UnrankedMemRefType
from xdsl.ir import Operation, SSAValue
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

from tilelang_npu.dialects.ir.fields import accessors, operand_positions

__all__ = ["ATOMIC", "Allocates", "Effect", "EffectsOp", "Fields", "OperandEffects", "accesses", "check_effects",
           "declare_effects", "effects_of", "is_memory", "is_pure", "op_with_effects"]


@dataclass(frozen=True, init=False)
class Effect:
    """What an operation does to one operand in memory.

    For ``memref.load`` and ``memref.store`` it is what the op does to the element at its indices.

    Attributes:
        op: the operation.
        index: position of the operand in ``op.operands``.
        role: the name of the operand's field, or the name that the class gives the field in ``ROLES``.
        reads: whether the op depends on what the operand held before: elements are read, or some are left unwritten.
        writes: whether elements are written.
        partial: whether elements are not read but some may be left unwritten, so that they keep their values.
        pipe: the pipe that accesses the operand: ``S``, ``V``, ``M``, ``MTE1``, ``MTE2``, ``MTE3`` or ``FIX``. Empty for scalar
            storage, which is on no pipe, and in the tile dialect, where no pipe is chosen yet.
        scratch: whether the op uses the operand as temporary memory, whose contents are not read afterwards.
    """

    op: Operation
    index: int
    role: str
    reads: bool
    writes: bool
    partial: bool = False
    pipe: str = ""
    scratch: bool = False

    def __init__(self, op: Operation, index: int, role: str, reads: bool, writes: bool, partial: bool = False, pipe: str = "",
                 scratch: bool = False) -> None:
        # A kernel has thousands of effects, and the generated __init__ of a frozen dataclass sets the fields one by one.
        vars(self).update(op=op, index=index, role=role, reads=reads, writes=writes, partial=partial, pipe=pipe,
                          scratch=scratch)

    @property
    def value(self) -> SSAValue:
        """The operand."""
        operands: tuple[SSAValue, ...] = self.op._operands
        # xDSL's own __getitem__ is written in Python, and no property is read more often than this one.
        return tuple.__getitem__(operands, self.index)


class OperandEffects(MemoryEffect):
    """xDSL's interface to the effects that an :class:`EffectsOp` declares."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """Reads and writes of operands, and a write of unspecified memory where the op has other side effects."""
        assert isinstance(op, EffectsOp)
        found = {EffectInstance(kind, effect.value) for effect in op.effects()
                 for kind, does in ((MemoryEffectKind.READ, effect.reads), (MemoryEffectKind.WRITE, effect.writes)) if does}
        if op.has_side_effects():
            found.add(EffectInstance(MemoryEffectKind.WRITE))
        return found


class Allocates(MemoryEffect):
    """Trait of an op that allocates a buffer: two such ops are never merged, and one without uses can be erased."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """An allocation of each result."""
        return {EffectInstance(MemoryEffectKind.ALLOC, result) for result in op.results}


class EffectsOp(IRDLOperation, ABC):
    """Base of the ops that declare what they do to their operands.

    The class lists each operand that may be memory in ``READS``, ``WRITES``, ``SCRATCH`` or ``UNTOUCHED``. An op without such
    operands is pure by its traits, or has ``SIDE_EFFECTS``. :func:`check_effects` refuses a class that omits an operand.
    """

    READS: ClassVar[tuple[str, ...]] = ()
    """Fields that the op reads."""
    WRITES: ClassVar[tuple[str, ...]] = ()
    """Fields that the op writes."""
    SCRATCH: ClassVar[tuple[str, ...]] = ("temp_buffer",)
    """Fields that are temporary memory, where the op has them."""
    UNTOUCHED: ClassVar[tuple[str, ...]] = ()
    """Fields of which no element is accessed: scalars whose declaration accepts any type, addresses, locks."""
    ROLES: ClassVar[Mapping[str, str]] = {}
    """The roles of fields whose role is not the field's name."""
    SIDE_EFFECTS: ClassVar[bool] = False
    """Whether the op has effects beyond its operands: it orders other ops, prints, or changes the state of the core."""
    traits = traits_def(OperandEffects())

    def pipes(self) -> tuple[str, ...]:
        """Short names of the pipes that execute the op, in the order data takes them; empty where no pipe does."""
        return ()

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the op reads a destination before it writes it: it accumulates, or the destination is an input as well."""
        return False

    def writes_partially(self) -> bool:
        """Whether the op may leave elements of its destinations unwritten."""
        return False

    def role(self, field: str, index: int) -> str:
        """The role of the operand at a position, which is of a field."""
        return self.ROLES.get(field, field)

    def has_side_effects(self) -> bool:
        """Whether this op has effects beyond its operands."""
        return self.SIDE_EFFECTS

    def effects(self) -> tuple[Effect, ...]:
        """The effects on the fields that the op reads, then on those that it writes, then on its scratch."""
        operands, pipes, fields = tuple(self._operands), self.pipes(), operand_positions(self)
        first, last = (pipes[0], pipes[-1]) if pipes else ("", "")
        found = []
        for name in self.READS:
            for index in fields[name]:
                if is_memory(operands[index]):
                    found.append(Effect(self, index, self.role(name, index), True, False, False, _pipe(first, operands[index])))
        partial = self.writes_partially()
        for name in self.WRITES:
            for index in fields[name]:
                if is_memory(operands[index]):
                    reads = self.reads_destination(operands[index])
                    found.append(Effect(self, index, self.role(name, index), reads or partial, True, partial and not reads,
                                        _pipe(last, operands[index])))
        for name in self.SCRATCH:
            for index in fields.get(name, ()):
                if is_memory(operands[index]):
                    found.append(Effect(self, index, self.role(name, index), False, True, False, last, True))
        return tuple(found)


def _pipe(pipe: str, value: SSAValue) -> str:
    """The pipe that accesses an operand; accesses of the scalar unit to its own storage (``memref.alloca``) are on none."""
    if pipe != "S":
        return pipe
    kind = value.type
    is_scalar_storage = isinstance(kind, (MemRefType, UnrankedMemRefType)) and isinstance(kind.memory_space, NoneAttr)
    return "" if is_scalar_storage else pipe


def is_memory(value: SSAValue) -> bool:
    """Whether a value is a buffer, in whichever memory."""
    return isinstance(value.type, (MemRefType, UnrankedMemRefType))


# -- ops of xDSL -------------------------------------------------------------------------------------------------------

_XDSL_EFFECTS: dict[str, tuple[tuple[int, str, bool, bool], ...]] = {
    "memref.load": ((0, "scalar", True, False),),
    "memref.store": ((1, "scalar", False, True),),
    "memref.atomic_rmw": ((1, "scalar", True, True),),
    "memref.copy": ((0, "src", True, False), (1, "dst", False, True)),
}
"""Effects of the ops of xDSL: position of the operand, its role, whether it is read, whether it is written."""
# xDSL lacks the traits of these two ops.
arith.RemUIOp.traits = traits_def(*arith.RemUIOp.traits, NoMemoryEffect())
arith.ExtSIOp.traits = traits_def(*arith.ExtSIOp.traits, Pure())
ATOMIC = "tile.atomic"
"""Attribute of a ``memref.store`` that adds to the element in one indivisible step."""


@cache
def _declares_effects(kind: type[Operation]) -> bool:
    """Whether a class of ops declares its effects. Cached, because ``issubclass`` of an abstract class is slow."""
    return issubclass(kind, EffectsOp)


def effects_of(op: Operation) -> tuple[Effect, ...]:
    """What an operation does to its operands in memory; empty for views and scalar operations."""
    if _declares_effects(type(op)):
        effects: tuple[Effect, ...] = cast(EffectsOp, op).effects()
        return effects
    declared = _XDSL_EFFECTS.get(op.name)
    if declared is None:
        return ()
    # No pipe is chosen yet for a memref.copy; the other ops are executed by the scalar unit.
    return tuple(Effect(op, index, role, reads=reads or ATOMIC in op.attributes, writes=writes,
                        pipe=_pipe("S", op.operands[index]) if role == "scalar" else "")
                 for index, role, reads, writes in declared)


def is_pure(op: Operation) -> bool:
    """Whether an operation only computes results, which depend on its operands alone."""
    return bool(op.results) and not op.regions and is_side_effect_free(op)


def accesses(op: Operation) -> tuple[Effect, ...]:
    """The effects of an operation that a pipe executes: those that need ordering, addresses and time."""
    return tuple(effect for effect in effects_of(op) if effect.pipe)


# -- definitions -------------------------------------------------------------------------------------------------------

Fields = Sequence[str] | Mapping[str, str]
"""Names of fields; a mapping also gives their roles."""
OpT = TypeVar("OpT", bound=EffectsOp)
_SUFFICIENT_TRAITS = (NoMemoryEffect, RecursiveMemoryEffect, IsTerminator, Allocates)
"""Traits that say what an op does, so that it need not list its operands."""


def op_with_effects(*, side_effects: bool | None = None, **fields: Fields) -> Callable[[type[OpT]], type[OpT]]:
    """Class decorator: defines the op that the class body declares, with these effects; see :func:`declare_effects`.

    The ops of the tile dialect use it. The decorator ``operation`` of ``declaration.py`` is for the ops of AscendNPU-IR, whose
    text and verification follow MLIR more closely.
    """

    def define(cls: type[OpT]) -> type[OpT]:
        definition = OpDef.from_pyrdl(cls)
        text, definition.assembly_format = definition.assembly_format, None
        members = {**get_accessors_from_op_def(definition, getattr(cls, "verify_", None)), **accessors(definition)}
        definition.assembly_format = text
        for name, member in {**members, **({} if text is None else _text_members(text, definition))}.items():
            setattr(cls, name, member)
        declare_effects(cls, side_effects, fields)
        check_effects(cls, definition)
        return cls

    return define


def _text_members(text: str, definition: OpDef) -> dict[str, Any]:
    """``parse`` and ``print`` by an assembly format, which is compiled at first use: most runs print no text."""

    @cache
    def program() -> FormatProgram:
        return FormatProgram.from_str(text, definition)

    def parse(cls: type[OpT], parser: Parser) -> OpT:
        return program().parse(parser, cls)

    def print_(self: EffectsOp, printer: Printer) -> None:
        program().print(printer, self)

    return {"parse": classmethod(parse), "print": print_}


def declare_effects(cls: type[EffectsOp], side_effects: bool | None, fields: Mapping[str, Fields]) -> None:
    """Sets the effects that a class decorator states; those that it does not state are inherited.

    Args:
        cls: the class of the op.
        side_effects: ``SIDE_EFFECTS`` of the class.
        fields: ``reads``, ``writes``, ``scratch`` and ``untouched``, each with the fields that the class variable of that name
            lists. A mapping also gives the roles of the fields.

    Raises:
        TypeError: ``fields`` has another name.
    """
    for name, listed in fields.items():
        if name not in ("reads", "writes", "scratch", "untouched"):
            msg = f"{cls.name}: an op has no {name}"
            raise TypeError(msg)
        setattr(cls, name.upper(), tuple(listed))
        if isinstance(listed, Mapping):
            cls.ROLES = {**cls.ROLES, **listed}
    if side_effects is not None:
        cls.SIDE_EFFECTS = side_effects


def check_effects(cls: type[EffectsOp], definition: OpDef) -> None:
    """Refuses the definition of an op that does not declare its effects.

    Args:
        cls: the class of the op.
        definition: its operands and traits.

    Raises:
        TypeError: an operand that may be memory is not listed, a listed operand does not exist, or nothing is declared.
    """
    names = {name for name, _ in definition.operands}
    listed = {*cls.READS, *cls.WRITES, *cls.SCRATCH, *cls.UNTOUCHED}
    unknown = sorted({*cls.READS, *cls.WRITES, *cls.UNTOUCHED} - names)
    if unknown:
        msg = f"{cls.name} declares an effect on {', '.join(unknown)}, and has no such operand"
        raise TypeError(msg)
    missing = [name for name, operand in definition.operands if _may_be_memory(operand.constr) and name not in listed]
    declares = cls.SIDE_EFFECTS or bool({*cls.READS, *cls.WRITES, *cls.UNTOUCHED})
    if (declares and not missing) or any(isinstance(trait, _SUFFICIENT_TRAITS) for trait in definition.traits):
        return
    if missing:
        msg = (f"{cls.name} does not declare its effect on the operand {', '.join(missing)}: "
               "list the operand in READS, WRITES, SCRATCH or UNTOUCHED of the class")
        raise TypeError(msg)
    msg = f"{cls.name} declares no effect: give it the trait Pure, operands that it writes, or SIDE_EFFECTS"
    raise TypeError(msg)


def _may_be_memory(constraint: object) -> bool:
    """Whether a constraint accepts a buffer."""
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
