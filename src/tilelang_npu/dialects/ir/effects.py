"""Memory effects: which operands of an operation are read or written in memory, and by which pipe.

An op class lists its operands by effect (:class:`EffectsOp`). If an effect depends on the attributes or operands of the op, the
class overrides ``reads_destination`` and ``writes_partially``. Passes, reports and the simulator call :func:`effects_of`, which
also covers the ops of xDSL that access memory. xDSL's own passes use the trait :class:`OperandEffects`, which returns the same
effects.

In this module a field is a declared name of operands: one operand, an optional operand, or several.

``tests/simulator/test_effects.py`` checks the declarations: it runs every op on memory in which all bytes that the op is not
declared to read are random.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal, TypeVar, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    UnrankedMemRefType,
    VectorType,
)
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
from tilelang_npu.target.chip_data import PipeName

__all__ = ["ATOMIC", "VECTOR_FUNCTION", "Allocates", "Effect", "EffectsOp", "Fields", "OperandEffects", "accesses",
           "atomic_kind_of", "called_function", "check_effects", "declare_effects", "effects_of", "is_memory", "is_pure",
           "is_vector_call", "op_with_effects"]


@dataclass(frozen=True, init=False)
class Effect:
    """The effect of an operation on the memory of one operand.

    For ``memref.load`` and ``memref.store`` it is the effect on the element at the op's indices.

    Attributes:
        op: the operation.
        index: the position of the operand in ``op.operands``.
        role: the name of the operand's field, or the name that the class gives the field in ``ROLES``.
        reads: whether the contents of the operand after the op, or another output of the op, depend on the contents before.
            That is so if the op reads elements, or may leave some elements unwritten.
        writes: whether the op writes elements.
        partial: whether the op reads no elements but may leave some unwritten, which then keep their values.
        pipe: the pipe that accesses the operand: ``S``, ``V``, ``M``, ``MTE1``, ``MTE2``, ``MTE3`` or ``FIX``. Empty for scalar
            storage, which no pipe accesses, and for ops whose pipe is not determined yet, such as those of the tile dialect.
        scratch: whether the op uses the operand as temporary memory, whose contents are not read afterwards.
    """

    op: Operation
    index: int
    role: str
    reads: bool
    writes: bool
    partial: bool = False
    pipe: PipeName | Literal[""] = ""
    scratch: bool = False

    def __init__(self, op: Operation, index: int, role: str, reads: bool, writes: bool, partial: bool = False,
                 pipe: PipeName | Literal[""] = "", scratch: bool = False) -> None:
        # A kernel has thousands of effects, and the generated __init__ of a frozen dataclass sets the fields one by one.
        vars(self).update(op=op, index=index, role=role, reads=reads, writes=writes, partial=partial, pipe=pipe,
                          scratch=scratch)

    @property
    def access_pipe(self) -> PipeName:
        """The pipe of an effect that is an access by a pipe (:func:`accesses`)."""
        assert self.pipe
        return self.pipe

    @property
    def value(self) -> SSAValue:
        """The operand whose memory is affected."""
        operands: tuple[SSAValue, ...] = self.op._operands
        # xDSL's own __getitem__ is written in Python, and no property is read more often than this one.
        return tuple.__getitem__(operands, self.index)


class OperandEffects(MemoryEffect):
    """Trait through which xDSL's passes query the effects that an :class:`EffectsOp` declares."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """Returns the reads and writes of operands, and a write to unspecified memory if the op has other side effects."""
        assert isinstance(op, EffectsOp)
        found = {EffectInstance(kind, effect.value) for effect in op.effects()
                 for kind, does in ((MemoryEffectKind.READ, effect.reads), (MemoryEffectKind.WRITE, effect.writes)) if does}
        if op.has_side_effects():
            found.add(EffectInstance(MemoryEffectKind.WRITE))
        return found


class Allocates(MemoryEffect):
    """Trait of an op that allocates a buffer: passes never merge two such ops, and may erase one whose results are unused."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """Returns an allocation effect for each result."""
        return {EffectInstance(MemoryEffectKind.ALLOC, result) for result in op.results}


class EffectsOp(IRDLOperation, ABC):
    """Base of the ops that declare their effects on the memory of their operands.

    A class must list each operand that may be memory in ``READS``, ``WRITES``, ``SCRATCH`` or ``UNTOUCHED``. A class without
    such operands must have a trait that states its effects, such as ``Pure``, or set ``SIDE_EFFECTS``. :func:`check_effects`
    rejects a class that omits an operand.
    """

    READS: ClassVar[tuple[str, ...]] = ()
    """Fields that the op reads."""
    WRITES: ClassVar[tuple[str, ...]] = ()
    """Fields that the op writes."""
    SCRATCH: ClassVar[tuple[str, ...]] = ("temp_buffer",)
    """Fields that the op uses as temporary memory. A listed field that the op does not have is ignored."""
    UNTOUCHED: ClassVar[tuple[str, ...]] = ()
    """Fields whose elements the op does not access: scalars whose declaration accepts any type, addresses, locks."""
    ROLES: ClassVar[Mapping[str, str]] = {}
    """The role of each field whose role differs from the field's name; see :class:`Effect`."""
    SIDE_EFFECTS: ClassVar[bool] = False
    """Whether the op has effects other than on its operands: it orders other ops, prints, or changes the state of the core."""
    traits = traits_def(OperandEffects())

    def pipes(self) -> tuple[PipeName, ...]:
        """Returns short names of the pipes that execute the op, in the order in which data passes through them.

        Returns an empty tuple if no pipe executes the op.
        """
        return ()

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the op reads ``target``, one of its destinations: it accumulates, or the destination is also an input."""
        return False

    def writes_partially(self) -> bool:
        """Whether the op may leave elements of its destinations unwritten."""
        return False

    def role(self, field: str, index: int) -> str:
        """Returns the role of the operand at position ``index``, which belongs to ``field``; see :class:`Effect`."""
        return self.ROLES.get(field, field)

    def has_side_effects(self) -> bool:
        """Whether this op has effects other than on its operands."""
        return self.SIDE_EFFECTS

    def effects(self) -> tuple[Effect, ...]:
        """Returns the effects on the fields in ``READS``, then on those in ``WRITES``, then on those in ``SCRATCH``."""
        operands, pipes, fields = tuple(self._operands), self.pipes(), operand_positions(self)
        first: PipeName | Literal[""] = pipes[0] if pipes else ""
        last: PipeName | Literal[""] = pipes[-1] if pipes else ""
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


def _pipe(pipe: PipeName | Literal[""], value: SSAValue) -> PipeName | Literal[""]:
    """The pipe that accesses an operand; accesses of the scalar unit to its own storage (``memref.alloca``) are on none."""
    if pipe != "S":
        return pipe
    kind = value.type
    is_scalar_storage = isinstance(kind, (MemRefType, UnrankedMemRefType)) and isinstance(kind.memory_space, NoneAttr)
    return "" if is_scalar_storage else pipe


def is_memory(value: SSAValue) -> bool:
    """Whether a value is a memref, ranked or unranked, in any memory."""
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
VECTOR_FUNCTION = "hivm.vector_function"
"""The attribute of a function that computes on vector registers, and of the calls of it."""
ATOMIC = "tile.atomic"
"""The attribute of a ``memref.store`` that atomically combines the value with the element instead of replacing the element: a
string attribute, ``add``, ``max`` or ``min``."""


def atomic_kind_of(store: Operation) -> str | None:
    """Returns how a ``memref.store`` combines its value with the element, by its attribute :data:`ATOMIC`; None if it does not.
    """
    kind = store.attributes.get(ATOMIC)
    return kind.data if isinstance(kind, StringAttr) else None


@cache
def _declares_effects(kind: type[Operation]) -> bool:
    """Whether a class of ops declares its effects. Cached, because ``issubclass`` of an abstract class is slow."""
    return issubclass(kind, EffectsOp)


def effects_of(op: Operation) -> tuple[Effect, ...]:
    """Returns the effects of an operation on the memory of its operands; empty for views and scalar operations."""
    if _declares_effects(type(op)):
        effects: tuple[Effect, ...] = cast(EffectsOp, op).effects()
        return effects
    declared = _XDSL_EFFECTS.get(op.name)
    if declared is None:
        return _effects_of_call(op) if is_vector_call(op) else ()
    if any(isinstance(getattr(op.operands[index].type, "element_type", None), VectorType) for index, *_ in declared):
        return ()  # the registers of a vector function are no memory
    # No pipe is chosen yet for a memref.copy; the other ops are executed by the scalar unit.
    return tuple(Effect(op, index, role, reads=reads or ATOMIC in op.attributes, writes=writes,
                        pipe=_pipe("S", op.operands[index]) if role == "scalar" else "")
                 for index, role, reads, writes in declared)


def is_vector_call(op: Operation) -> bool:
    """Whether an op calls a vector function, which pipe V of a Vector core executes as one op."""
    return op.name == "func.call" and VECTOR_FUNCTION in op.attributes


def called_function(op: Operation) -> Operation | None:
    """Returns the function of the module that a ``func.call`` names; None if the module has none."""
    callee, module = op.properties.get("callee"), op
    while (parent := module.parent_op()) is not None:
        module = parent
    name = callee.root_reference if isinstance(callee, SymbolRefAttr) else None
    return next((one for one in module.regions[0].block.ops if one.properties.get("sym_name") == name), None)


def _effects_of_call(op: Operation) -> tuple[Effect, ...]:
    """The effects of a call of a vector function, from the attribute ``hivm.memory_effect`` of each parameter.

    A function writes the lanes that its masks select, so that a parameter that it only writes may keep elements.
    """
    function = called_function(op)
    stated = function.properties.get("arg_attrs") if function is not None else None
    found = []
    for index, value in enumerate(op.operands):
        if is_memory(value):
            given = stated.data[index] if isinstance(stated, ArrayAttr) else None
            attribute = given.data.get("hivm.memory_effect") if isinstance(given, DictionaryAttr) else None
            word = getattr(attribute, "data", "read_write")
            writes, partial = word != "read", word == "write"
            found.append(Effect(op, index, "vector", True, writes, partial, "V"))
    return tuple(found)


def is_pure(op: Operation) -> bool:
    """Whether an operation has results and no regions, and its only effect is to compute the results from its operands."""
    return bool(op.results) and not op.regions and is_side_effect_free(op)


def accesses(op: Operation) -> tuple[Effect, ...]:
    """Returns the effects of an operation that are accesses by a pipe.

    Accesses to scalar storage are omitted: they need no synchronisation, no address and no time of a pipe.
    """
    return tuple(effect for effect in effects_of(op) if effect.pipe)


# -- definitions -------------------------------------------------------------------------------------------------------

Fields = Sequence[str] | Mapping[str, str]
"""Names of fields; a mapping maps each name to the role of the field."""
OpT = TypeVar("OpT", bound=EffectsOp)
_SUFFICIENT_TRAITS = (NoMemoryEffect, RecursiveMemoryEffect, IsTerminator, Allocates)
"""Traits that say what an op does, so that it need not list its operands."""


def op_with_effects(*, side_effects: bool | None = None, **fields: Fields) -> Callable[[type[OpT]], type[OpT]]:
    """Returns a class decorator that turns a class body into an op class with these effects; see :func:`declare_effects`.

    The ops of the tile dialect use this decorator. The decorator ``operation`` of ``declaration.py`` is for the ops of
    AscendNPU-IR, whose text and verification follow MLIR more closely.
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


def _text_members(text: str, definition: OpDef) -> dict[str, object]:
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
    """Sets the class variables of an op class that hold its memory effects; effects that are not passed are inherited.

    Args:
        cls: the class of the op.
        side_effects: the value for ``SIDE_EFFECTS``; None inherits it.
        fields: maps ``reads``, ``writes``, ``scratch`` and ``untouched`` to the fields for the class variable of the
            upper-case name. If the fields are a mapping, it also gives their roles.

    Raises:
        TypeError: ``fields`` has another key.
    """
    for name, listed in fields.items():
        if name not in ("reads", "writes", "scratch", "untouched"):
            msg = f"{cls.name}: {name!r} is not a kind of effect; these are 'reads', 'writes', 'scratch' and 'untouched'"
            raise TypeError(msg)
        setattr(cls, name.upper(), tuple(listed))
        if isinstance(listed, Mapping):
            cls.ROLES = {**cls.ROLES, **listed}
    if side_effects is not None:
        cls.SIDE_EFFECTS = side_effects


def check_effects(cls: type[EffectsOp], definition: OpDef) -> None:
    """Checks that an op class declares its memory effects.

    Args:
        cls: the class of the op.
        definition: the operands and traits of the op.

    Raises:
        TypeError: an operand that may be memory is not listed, a listed operand does not exist, or the class declares no
            effect.
    """
    names = {name for name, _ in definition.operands}
    listed = {*cls.READS, *cls.WRITES, *cls.SCRATCH, *cls.UNTOUCHED}
    unknown = sorted({*cls.READS, *cls.WRITES, *cls.UNTOUCHED} - names)
    if unknown:
        msg = f"{cls.name} declares an effect on {', '.join(unknown)}, but has no such operand"
        raise TypeError(msg)
    missing = [name for name, operand in definition.operands if _may_be_memory(operand.constr) and name not in listed]
    declares = cls.SIDE_EFFECTS or bool({*cls.READS, *cls.WRITES, *cls.UNTOUCHED, *(names & {*cls.SCRATCH})})
    if (declares and not missing) or any(isinstance(trait, _SUFFICIENT_TRAITS) for trait in definition.traits):
        return
    if missing:
        msg = (f"{cls.name} does not declare its effect on the operand {', '.join(missing)}: "
               "list the operand in READS, WRITES, SCRATCH or UNTOUCHED of the class")
        raise TypeError(msg)
    msg = f"{cls.name} declares no effect: add the trait Pure, list operands in READS, WRITES or SCRATCH, or set SIDE_EFFECTS"
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
