"""How the ops of these dialects are declared: xDSL's definition, plus what AscendNPU-IR's ODS adds to it.

``operation`` does four things that ``irdl_op_definition`` does not:

* The assembly format is compiled when an op of that class is first read or written. A hundred and fifty formats would
  otherwise cost a tenth of a second at import.
* As in MLIR, the attribute dictionary of the custom form may hold any property of the op, also one that has a clause.
* Rules (what MLIR calls traits and interfaces: "all operands have one rank") are functions, checked in their order after
  the types and the op's own ``verify_``, which is the order of MLIR.
* An op that does not say what it does to its operands (``dialects/ir/effects.py``) is refused when it is defined.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, TypeVar

from xdsl.dialects.builtin import DenseArrayBase, ShapedType, UnitAttr, i32
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrConstraint,
    IRDLOperation,
    OpDef,
    OperandDef,
    OptPropertyDef,
    ParsePropInAttrDict,
    PropertyDef,
    ResultDef,
    VarConstraint,
    VerificationContext,
)
from xdsl.irdl.declarative_assembly_format import (
    AttrDictDirective,
    AttributeVariable,
    FormatProgram,
    OptionalGroupDirective,
    OptionalUnitAttrVariable,
    ParsingState,
    PrintingState,
)
from xdsl.irdl.operations import get_accessors_from_op_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.ir.effects import EffectsOp, Fields, check_effects, state_effects
from tilelang_npu.dialects.ir.fields import accessors
from tilelang_npu.target.dtypes import DType, dtype

Rule = Callable[[Any], None]
Count = Callable[[int], tuple[int, ...]]
OpT = TypeVar("OpT", bound="DialectOp")


class DialectOp(EffectsOp, ABC):
    """Base of the ops of these dialects; knows what an op does to its operands, and the pipes and the core that execute it."""

    PIPES: ClassVar[tuple[str, ...]] = ()
    CORE: ClassVar[str] = "either"
    RULES: ClassVar[tuple[Rule, ...]] = ()
    BODY_FOLLOWS: ClassVar[bool] = False
    """Whether MLIR's generic form has a body that follows from the op's name; it is read, and left out."""
    COUNTED: ClassVar[staticmethod[[int], tuple[int, ...]] | None] = None
    """How many operands each group has, from their number, where MLIR's generic form does not state it."""
    OLDER_UNITS: ClassVar[Mapping[str, tuple[str, Attribute]]] = {}
    """Unit attributes of older text, each with the property and value it stands for; always read, written for v1.0.0."""

    def pipes(self) -> tuple[str, ...]:
        """Short names of the pipes that the definition names."""
        return self.PIPES

    def core(self) -> str:
        """The core that executes the op: ``AIC``, ``AIV`` or ``either``."""
        return self.CORE

    def fill_in(self) -> None:
        """Add what older text leaves out; called when the op was read in its custom form."""


@dataclass(frozen=True)
class OfClass(AttrConstraint[Attribute]):
    """An attribute or type of one of some Python classes; ``text`` names them in the message."""

    classes: tuple[Any, ...]
    text: str

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if not isinstance(attr, self.classes):
            msg = f"must be {self.text}, but got '{attr}'"
            raise VerifyException(msg)

    def mapping_type_vars(self, type_var_mapping: Any) -> OfClass:
        return self


@dataclass(frozen=True)
class OneOf(AttrConstraint[Attribute]):
    """One of some types; ``text`` names them in the message."""

    types: frozenset[Attribute]
    text: str

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if attr not in self.types:
            msg = f"must be {self.text}, but got '{attr}'"
            raise VerifyException(msg)

    def mapping_type_vars(self, type_var_mapping: Any) -> OneOf:
        return self


@dataclass(frozen=True)
class _AnyPropertyDict(AttrDictDirective):
    """The attribute dictionary as MLIR reads it: properties may stand in it although they have a clause."""

    properties: frozenset[str] = frozenset()

    def parse(self, parser: Parser, state: ParsingState) -> None:
        older = getattr(state.op_type, "OLDER_UNITS", {})
        for name, attribute in parser.parse_optional_attr_dict().items():
            if name in older:
                name, attribute = older[name]
            if name in self.properties:
                state.properties[name] = attribute
            else:
                state.attributes[name] = attribute

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        older = getattr(op, "OLDER_UNITS", {})
        if not older or not writes_older_text(printer):
            super().print(printer, state, op)
            return
        units = {name for name, (prop, value) in older.items() if op.properties.get(prop) == value}
        hidden = self.reserved_attr_names | {prop for prop, _ in older.values()}
        shown = {name: prop for name, prop in op.properties.items() if name in self.expected_properties - hidden
                 and prop != op.get_irdl_definition().properties[name].default_value}
        printer.print_op_attributes({**op.attributes, **shown, **dict.fromkeys(units, UnitAttr())})


def writes_older_text(printer: Printer) -> bool:
    """Whether the printer writes for the toolchain of AscendNPU-IR v1.0.0 instead of master."""
    return getattr(printer, "toolchain", "master") == "1.0.0"


def _compile(cls: type[DialectOp], op_def: OpDef, text: str) -> FormatProgram:
    segments = {SEGMENTS, "resultSegmentSizes"}
    statements = []
    for statement in FormatProgram.from_str(text, op_def).stmts:
        if isinstance(statement, AttrDictDirective):
            statement = _AnyPropertyDict(
                with_keyword=statement.with_keyword,
                reserved_attr_names=statement.reserved_attr_names,
                expected_properties=statement.expected_properties,
                properties=frozenset(op_def.properties.keys() - segments),
            )
        elif isinstance(statement, AttributeVariable) and not isinstance(statement, OptionalUnitAttrVariable):
            # Outside an optional group the clause is always written, whether or not the value is the default.
            statement = replace(statement, default_value=None)
        statements.append(_written_where_stated(statement, op_def))
    return FormatProgram(tuple(statements))


def _written_where_stated(statement: Any, op_def: OpDef) -> Any:
    """A statement in which the clause of an optional property is written where the op states it, be it the default.

    MLIR's ``DefaultValuedOptionalAttr`` is absent where nothing is stated; its ``DefaultValuedAttr`` always has a value, and
    its clause is left out where that is the default.
    """
    if isinstance(statement, OptionalGroupDirective):
        parts: dict[str, Any] = {
            name: _written_where_stated(getattr(statement, name), op_def) for name in ("anchor", "then_first")}
        lists: dict[str, Any] = {name: tuple(_written_where_stated(part, op_def) for part in getattr(statement, name))
                 for name in ("then_elements", "else_elements")}
        return replace(statement, **parts, **lists)
    if isinstance(statement, AttributeVariable) and not isinstance(statement, OptionalUnitAttrVariable) and isinstance(
            op_def.properties.get(statement.name), OptPropertyDef):
        return replace(statement, default_value=None)
    return statement


def _install_format(cls: type[DialectOp], op_def: OpDef, text: str) -> None:
    compiled: list[FormatProgram] = []

    def program() -> FormatProgram:
        if not compiled:
            compiled.append(_compile(cls, op_def, text))
        return compiled[0]

    def parse(cls: type[DialectOp], parser: Parser) -> DialectOp:
        op: DialectOp = program().parse(parser, cls)
        stated = op.attributes.pop(SEGMENTS, None)
        if stated is not None and stated != op.properties.get(SEGMENTS):
            parser.raise_error(f"{SEGMENTS} is {op.properties.get(SEGMENTS)} by what is written, not {stated}")
        op.fill_in()
        return op

    def print_(self: DialectOp, printer: Printer) -> None:
        program().print(printer, self)

    _define(cls, parse=classmethod(parse), print=print_)


def _define(cls: type[DialectOp], **members: Any) -> None:
    for name, member in members.items():
        setattr(cls, name, member)


SEGMENTS = "operandSegmentSizes"
"""The property that says how many operands each group has."""


def counted_segments(op_type: type[Operation], operands: int) -> Attribute | None:
    """The sizes of the groups that the number of operands tells; None where the text states them."""
    count = op_type.COUNTED if issubclass(op_type, DialectOp) else None
    return None if count is None else DenseArrayBase.from_list(i32, count(operands))


def _counts(op: DialectOp) -> None:
    sizes = counted_segments(type(op), len(op.operands))
    if sizes is not None and op.properties.get(SEGMENTS) != sizes:
        assert isinstance(sizes, DenseArrayBase)
        msg = f"its {len(op.operands)} operands do not come in groups of {', '.join(map(str, sizes.get_values()))}"
        raise VerifyException(msg)


def operation(*, pipes: Sequence[str] = (), core: str = "either", rules: Sequence[Rule] = (), counted: Count | None = None,
              seen: bool | None = None, **fields: Fields) -> Callable[[type[OpT]], type[OpT]]:
    """Class decorator: define the op that the class body declares.

    Args:
        pipes: short names of the pipes that execute it, in the order data takes them.
        core: the core that executes it: ``AIC``, ``AIV`` or ``either``.
        rules: checks that run after the types of operands and attributes were verified; they raise VerifyException.
        counted: how many operands each group has, where MLIR counts them and its generic form does not state it.
        seen, fields: what the op does, where its base does not say it: ``reads``, ``writes``, ``scratch`` and ``aside`` are
            the members of ``EffectsOp`` of those names.
    """

    def define(cls: type[OpT]) -> type[OpT]:
        text = cls.assembly_format
        op_def = OpDef.from_pyrdl(cls)
        state_effects(cls, seen, fields)
        check_effects(cls, op_def)
        op_def.options.append(ParsePropInAttrDict())
        own_verify: tuple[Rule, ...] = () if cls.verify_ is Operation.verify_ else (cls.verify_,)
        op_def.assembly_format = None
        _define(cls, **{**get_accessors_from_op_def(op_def, None), **accessors(op_def)})
        op_def.assembly_format = text
        cls.PIPES = tuple(pipes)
        cls.CORE = core
        cls.COUNTED = staticmethod(counted) if counted is not None else None
        cls.RULES = (*own_verify, *rules)
        checks: tuple[Rule, ...] = (_counts, lambda op: op_def.verify(op), *cls.RULES)

        def verify_(self: Operation) -> None:
            for check in checks:
                check(self)

        _define(cls, verify_=verify_)
        if text is not None:
            _install_format(cls, op_def, text)
        return cls

    return define


def _same_variable(old: Any, constraint: AttrConstraint[Any]) -> AttrConstraint[Any]:
    """A constraint under the variable that another one is bound to."""
    theirs = getattr(getattr(old.constr, "constraint", None), "constr", None)
    return VarConstraint(theirs.name, constraint) if isinstance(theirs, VarConstraint) else constraint


def widened(base: Any, check: Rule, *, properties: Mapping[str, PropertyDef] | None = None,
            **members: Any) -> Any:
    """An op of xDSL, of which it stays a subclass, that takes what MLIR takes and xDSL does not.

    Args:
        base: xDSL's op.
        check: the rules, in place of those that xDSL wrote.
        properties: definitions of properties that are others there, or that it has not.
        members: constraints of operands and results that have others than there, by name; any other member replaces
            xDSL's.
    """
    theirs: OpDef = base.get_irdl_definition()
    constraints = {name: members.pop(name) for name, _ in (*theirs.operands, *theirs.results) if name in members}

    def definition(constraint: Callable[[str, Any], Any]) -> OpDef:
        return replace(
            theirs,
            operands=[(name, OperandDef(constraint(name, old)) if name in constraints else old)
                      for name, old in theirs.operands],
            results=[(name, ResultDef(constraint(name, old)) if name in constraints else old)
                     for name, old in theirs.results],
            properties={**theirs.properties, **(properties or {})})

    op_def = definition(lambda name, old: constraints[name])
    # Text that states one type for all is read with xDSL's variables, whose values need not fit each other in MLIR.
    text_def = definition(lambda name, old: _same_variable(old, constraints[name]))
    reading = base if not constraints and not members else type(base)(
        base.__name__, (base,), {**members, "get_irdl_definition": classmethod(lambda cls: text_def)})

    def verify_(self: IRDLOperation) -> None:
        op_def.verify(self)
        check(self)

    def parse(cls: Any, parser: Parser) -> Any:
        read = base.parse.__func__(reading, parser)
        made = cls.create(operands=list(read.operands), result_types=list(read.result_types), properties=read.properties,
                          attributes=read.attributes, successors=list(read.successors),
                          regions=[read.detach_region(region) for region in list(read.regions)])
        read.erase()
        return made

    return type(base)(base.__name__, (base,), {
        "__doc__": base.__doc__, "__module__": check.__module__, "verify_": verify_, "parse": classmethod(parse),
        "get_irdl_definition": classmethod(lambda cls: op_def), **members})


def replacing(dialect: Dialect, *ops: Any, attributes: Sequence[Any] = ()) -> Dialect:
    """A dialect of xDSL with some ops in place of those of their names, or added, and attributes added."""
    names = {op.name for op in ops}
    return Dialect(dialect.name, [*ops, *(op for op in dialect.operations if op.name not in names)],
                   [*attributes, *dialect.attributes])


def value(operand: SSAValue | Operation) -> SSAValue:
    """The value itself, or the single result of an op."""
    return SSAValue.get(operand)


def element_type(type_: Attribute) -> Attribute:
    """The element type of a tensor or memref type; any other type itself."""
    if isinstance(type_, ShapedType) and hasattr(type_, "element_type"):
        element: Attribute = type_.element_type
        return element
    return type_


@cache
def dtype_of(type_: Attribute) -> DType:
    """The element type of the op tables that a type of elements is.

    Raises:
        ValueError: it is none of these.
    """
    return dtype(str(type_))
