"""Declares the ops of the dialects of AscendNPU-IR and of this package: xDSL's op definition, plus the parts of MLIR's ODS that
AscendNPU-IR uses and xDSL lacks.

There are two ways. Ops that passes of this package create are classes with the decorator :func:`operation`. All others are made
by :func:`define_op`, which returns a class for given names of operands, properties and results. Both differ from xDSL's
``irdl_op_definition`` in four points:

* The assembly format is compiled when an op of the class is first parsed or printed. Compiling all hundred and fifty formats
  would take a tenth of a second at import.
* As in MLIR, the attribute dictionary of the custom form may hold any property of the op, also one that the format prints
  elsewhere.
* Rules are functions that raise VerifyException, such as "all operands have the same rank". MLIR expresses them as traits and
  interfaces. As in MLIR, they run after the verification of the types and after the op's own ``verify_``.
* A class that does not declare the memory effects of its ops (``dialects/ir/effects.py``) is rejected with a TypeError.

:func:`replace_rules` and :func:`extend_dialect` adapt the ops of xDSL's own dialects to the rules of MLIR.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

from typing_extensions import TypeVar
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrConstraint,
    AttrSizedOperandSegments,
    IntConstraint,
    IRDLOperation,
    OpDef,
    OperandDef,
    OptPropertyDef,
    ParsePropInAttrDict,
    PropertyDef,
    ResultDef,
    SameVariadicOperandSize,
    VarConstraint,
    VerificationContext,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
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

from tilelang_npu.dialects.ir.effects import EffectsOp, Fields, check_effects, declare_effects
from tilelang_npu.dialects.ir.fields import accessors
from tilelang_npu.target.chip_data import OpCore, PipeName

Rule = Callable[[Any], None]
"""A function that takes an op and raises VerifyException if the op breaks a rule."""
CountSegments = Callable[[int], tuple[int, ...]]
Operand: TypeAlias = SSAValue | Operation
"""An operand for a constructor: a value, or the op whose single result is the value."""
OpT = TypeVar("OpT", bound="DialectOp")
XdslOpT = TypeVar("XdslOpT", bound=IRDLOperation)
SEGMENTS = "operandSegmentSizes"
"""The property that holds the number of operands of each group; a group is the operands of one declared name."""


class DialectOp(EffectsOp, ABC):
    """Base of the ops of these dialects.

    Attributes:
        PIPES: short names of the pipes that execute the op, in the order in which data passes through them.
        CORE: the core that executes the op: ``AIC``, ``AIV`` or ``either``.
        RULES: the checks that run after the types of operands and attributes were verified.
    """

    PIPES: ClassVar[tuple[PipeName, ...]] = ()
    CORE: ClassVar[OpCore] = "either"
    RULES: ClassVar[tuple[Rule, ...]] = ()
    BODY_FOLLOWS: ClassVar[bool] = False
    """Whether MLIR's generic form has a region that follows from the op's name; the parser of this package drops the region."""
    COUNTED: ClassVar[staticmethod[[int], tuple[int, ...]] | None] = None
    """Returns the sizes of the operand groups for a number of operands, if MLIR's generic form does not state the sizes."""
    OLDER_UNITS: ClassVar[Mapping[str, tuple[str, Attribute]]] = {}
    """Maps unit attributes of AscendNPU-IR v1.0.0 to the property and the value that replaced each. The parser always accepts
    these attributes; the printer writes them only for v1.0.0."""

    def pipes(self) -> tuple[PipeName, ...]:
        """Returns short names of the pipes that execute the op, in the order in which data passes through them."""
        return self.PIPES

    def core(self) -> OpCore:
        """Returns the core that executes the op: ``AIC``, ``AIV`` or ``either``."""
        return self.CORE

    def complete_parsed(self) -> None:
        """Adds the properties that text of AscendNPU-IR v1.0.0 omits; called after the custom form of an op was parsed."""


@dataclass(frozen=True)
class OfClass(AttrConstraint[Attribute]):
    """Constrains an attribute or type to instances of given Python classes.

    Attributes:
        classes: the accepted classes.
        text: the description of the classes in the error message.
    """

    classes: tuple[type[Attribute] | UnionType, ...]
    text: str

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if not isinstance(attr, self.classes):
            msg = f"must be {self.text}, but got '{attr}'"
            raise VerifyException(msg)

    def mapping_type_vars(self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]) -> OfClass:
        return self


@dataclass(frozen=True)
class OneOf(AttrConstraint[Attribute]):
    """Constrains an attribute or type to the members of a set.

    Attributes:
        types: the accepted attributes or types.
        text: the description of the set in the error message.
    """

    types: frozenset[Attribute]
    text: str

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if attr not in self.types:
            msg = f"must be {self.text}, but got '{attr}'"
            raise VerifyException(msg)

    def mapping_type_vars(self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]) -> OneOf:
        return self


def fail(message: str) -> NoReturn:
    """Raises a VerifyException with the message; verifiers of ops call it.

    Raises:
        VerifyException: always.
    """
    raise VerifyException(message)


def require(holds: object, message: str) -> None:
    """Raises a VerifyException with the message if a condition does not hold; verifiers of ops call it.

    Raises:
        VerifyException: ``holds`` is false.
    """
    if not holds:
        raise VerifyException(message)


# -- assembly formats --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _AnyPropertyDict(AttrDictDirective):
    """The attribute dictionary as MLIR reads it: it may also hold properties that have a clause in the format."""

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
    """Whether the printer writes the syntax of AscendNPU-IR v1.0.0 instead of that of its master branch."""
    return getattr(printer, "toolchain", "master") == "1.0.0"


def _compile_format(op_def: OpDef, text: str) -> FormatProgram:
    """Returns the format of an op, with the differences to xDSL that the module's docstring lists."""
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
            # A clause outside of an optional group is always printed, even if its value is the default.
            statement = replace(statement, default_value=None)
        statements.append(_print_stated_defaults(statement, op_def))
    return FormatProgram(tuple(statements))


def _print_stated_defaults(statement: Any, op_def: OpDef) -> Any:
    """Returns a statement that prints the clause of an optional property wherever the op has the property.

    MLIR's ``DefaultValuedOptionalAttr`` is absent unless it is stated, and a stated default is printed. Its
    ``DefaultValuedAttr`` always has a value, and its clause is left out where the value is the default.
    """
    if isinstance(statement, OptionalGroupDirective):
        parts: dict[str, Any] = {
            name: _print_stated_defaults(getattr(statement, name), op_def) for name in ("anchor", "then_first")}
        lists: dict[str, Any] = {name: tuple(_print_stated_defaults(part, op_def) for part in getattr(statement, name))
                 for name in ("then_elements", "else_elements")}
        return replace(statement, **parts, **lists)
    if isinstance(statement, AttributeVariable) and not isinstance(statement, OptionalUnitAttrVariable) and isinstance(
            op_def.properties.get(statement.name), OptPropertyDef):
        return replace(statement, default_value=None)
    return statement


def _install_format(cls: type[DialectOp], op_def: OpDef, text: str) -> None:
    """Gives a class ``parse`` and ``print`` that compile its format at first use."""

    @cache
    def program() -> FormatProgram:
        return _compile_format(op_def, text)

    def parse(cls: type[DialectOp], parser: Parser) -> DialectOp:
        op: DialectOp = program().parse(parser, cls)
        stated = op.attributes.pop(SEGMENTS, None)
        if stated is not None and stated != op.properties.get(SEGMENTS):
            parser.raise_error(f"the operands as written make {SEGMENTS} {op.properties.get(SEGMENTS)}, not {stated}")
        op.complete_parsed()
        return op

    def print_(self: DialectOp, printer: Printer) -> None:
        program().print(printer, self)

    _set_members(cls, parse=classmethod(parse), print=print_)


def typed(*names: str) -> str:
    """Returns the assembly format of operands, each followed by its type: ``$a `:` type($a) `,` $b `:` type($b)``.

    A name that ends with ``?`` is an optional operand: an absent operand is printed without its comma. A name that ends with
    ``*`` is a list of operands in square brackets.
    """
    parts = []
    for place, spec in enumerate(names):
        name, comma = spec.rstrip("?*"), "`,` " if place else ""
        if spec.endswith("?"):
            parts.append(f"({comma}${name}^ `:` type(${name}))?")
        elif spec.endswith("*"):
            parts.append(f"{comma}`[` ${name} `:` type(${name}) `]`")
        else:
            parts.append(f"{comma}${name} `:` type(${name})")
    return " ".join(parts)


def group(keyword: str, *names: str) -> str:
    """Returns the assembly format of a keyword and operands in parentheses: ``ins(%a : T)``.

    If ``keyword`` ends with ``?``, there must be one name, and the whole clause is omitted if its operand is absent.
    """
    word = keyword.rstrip("?")
    if keyword.endswith("?"):
        (name,) = names
        return f"(`{word}` `(` ${name}^ `:` type(${name}) `)`)?"
    return f"`{word}` `(` {typed(*names)} `)`"


# -- definitions -------------------------------------------------------------------------------------------------------


def _set_members(cls: type[DialectOp], **members: object) -> None:
    for name, member in members.items():
        setattr(cls, name, member)


def counted_segments(op_type: type[Operation], operands: int) -> Attribute | None:
    """Returns how many operands of an op belong to each operand group, as the attribute ``SEGMENTS``.

    An operand group is the operands of one declared name. The class's function ``counted`` computes the numbers from the total
    number of operands.

    Args:
        op_type: the class of the op.
        operands: the number of all operands of the op.

    Returns:
        The attribute; None if the class has no such function, because the text of the op states the numbers.
    """
    count = op_type.COUNTED if issubclass(op_type, DialectOp) else None
    return None if count is None else DenseArrayBase.from_list(i32, count(operands))


def _verify_segments(op: DialectOp) -> None:
    sizes = counted_segments(type(op), len(op.operands))
    if sizes is not None and op.properties.get(SEGMENTS) != sizes:
        assert isinstance(sizes, DenseArrayBase)
        msg = f"its {len(op.operands)} operands do not come in groups of {', '.join(map(str, sizes.get_values()))}"
        raise VerifyException(msg)


def operation(*, pipes: Sequence[PipeName] = (), core: OpCore = "either", rules: Sequence[Rule] = (),
              counted: CountSegments | None = None, side_effects: bool | None = None,
              **fields: Fields) -> Callable[[type[OpT]], type[OpT]]:
    """Returns a class decorator that turns a class body with operand, property and result definitions into an op class.

    Args:
        pipes: short names of the pipes that execute the op, in the order in which data passes through them.
        core: the core that executes the op: ``AIC``, ``AIV`` or ``either``.
        rules: checks that run after the types of operands and attributes were verified; they raise VerifyException.
        counted: returns the sizes of the operand groups for a number of operands, if MLIR's generic form does not state them.
        side_effects: whether the op has effects other than on its operands; None inherits this from the base class.
        fields: the memory effects that the base class does not declare. ``reads``, ``writes``, ``scratch`` and ``untouched``
            set the class variables ``READS``, ``WRITES``, ``SCRATCH`` and ``UNTOUCHED`` of :class:`EffectsOp`.
    """

    def define(cls: type[OpT]) -> type[OpT]:
        text = cls.assembly_format
        op_def = OpDef.from_pyrdl(cls)
        declare_effects(cls, side_effects, fields)
        check_effects(cls, op_def)
        op_def.options.append(ParsePropInAttrDict())
        own_verify: tuple[Rule, ...] = () if cls.verify_ is Operation.verify_ else (cls.verify_,)
        op_def.assembly_format = None
        _set_members(cls, **{**get_accessors_from_op_def(op_def, None), **accessors(op_def)})
        op_def.assembly_format = text
        cls.PIPES = tuple(pipes)
        cls.CORE = core
        cls.COUNTED = staticmethod(counted) if counted is not None else None
        cls.RULES = (*own_verify, *rules)
        checks: tuple[Rule, ...] = (_verify_segments, lambda op: op_def.verify(op), *cls.RULES)

        def verify_(self: Operation) -> None:
            for check in checks:
                check(self)

        _set_members(cls, verify_=verify_)
        if text is not None:
            _install_format(cls, op_def, text)
        return cls

    return define


# -- ops that are rows of a table --------------------------------------------------------------------------------------

Fact: TypeAlias = Attribute | str | int | bool | Sequence[int]
"""A property that the constructor of a :class:`TableOp` accepts: an attribute, or the Python value of the attribute."""


class TableOp(DialectOp):
    """Base of the classes that :func:`define_op` returns; has the constructor that all of them share."""

    PROPERTIES: ClassVar[Mapping[str, object]] = {}
    """The constraint of each property by its name."""

    def __init__(self, *operands: Operand | Sequence[Operand] | None, results: Sequence[Attribute] = (),
                 attributes: Mapping[str, Attribute] | None = None, **fields: Any) -> None:
        """Builds the op.

        Args:
            operands: the operands in the order of the declaration, with a sequence for a variadic operand. Further operands may
                be passed by name; an operand that is not passed is absent.
            results: the types of the results.
            attributes: further attributes.
            fields: operands and properties by name. A property is an attribute, or a Python value: the word of an enum, a bool,
                an integer (which becomes an i64) or a list of integers.

        Raises:
            TypeError: a name is neither an operand nor a property of the op.
        """
        definition = self.get_irdl_definition()
        names = [name for name, _ in definition.operands]
        unknown = sorted(fields.keys() - self.PROPERTIES.keys() - set(names[len(operands):]))
        if unknown:
            msg = f"{self.name} has no field {', '.join(unknown)}; it has: {', '.join((*names, *self.PROPERTIES))}"
            raise TypeError(msg)
        given = [*operands, *(fields.get(name) for name in names[len(operands):])]
        IRDLOperation.__init__(
            self, operands=[list(each) if isinstance(each, Sequence) else [] if each is None else each for each in given],
            result_types=self.group_results(results, given),
            properties={name: _attribute(constraint, fields.get(name)) for name, constraint in self.PROPERTIES.items()},
            attributes=attributes)

    def group_results(self, results: Sequence[Attribute], operands: Sequence[object]) -> list[Sequence[Attribute]]:
        """Returns the types of the results, one sequence for each declared result name; by default one type per name."""
        return [[type_] for type_ in results]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


TableOpT = TypeVar("TableOpT", bound=TableOp)


def _attribute(constraint: object, given: Fact | None) -> Attribute | None:
    """A property from its Python value."""
    if given is None or isinstance(given, Attribute):
        return given
    if constraint is UnitAttr:
        return UnitAttr() if given else None
    if isinstance(given, str):
        assert isinstance(constraint, type)
        made: Attribute = constraint(given)
        return made
    if isinstance(given, bool):
        return IntegerAttr(int(given), i1)
    return IntegerAttr(given, i64) if isinstance(given, int) else DenseArrayBase.from_list(i64, given)


_OPERANDS: dict[str, Callable[..., object]] = {"": operand_def, "?": opt_operand_def, "*": var_operand_def}
_RESULTS: dict[str, Callable[..., object]] = {"": result_def, "?": opt_result_def, "*": var_result_def}


def _split(spec: str) -> tuple[str, str]:
    """A field's name, and its mark: ``?``, ``*`` or nothing."""
    name = spec.rstrip("?*")
    return name, spec[len(name):]


def _class_name(name: str) -> str:
    """The name of the class of an op: ``GatherLoadOp`` for ``hivm.hir.gather_load``."""
    words = name.rpartition(".")[2].split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "Op"


def define_op(base: type[TableOpT], name: str, doc: str, *, operands: Mapping[str, object] | None = None,
              results: Mapping[str, object] | None = None, properties: Mapping[str, object] | None = None,
              text: str | None = None, same_sizes: bool = False, members: Mapping[str, object] | None = None,
              pipes: Sequence[PipeName] = (), core: OpCore = "either", rules: Sequence[Rule] = (),
              counted: CountSegments | None = None, side_effects: bool | None = None, **effects: Fields) -> type[TableOpT]:
    """Returns an op class made from names with constraints, an assembly format, and rules.

    Args:
        base: the base class, which may override methods that determine the memory effects.
        name: the op's name, with the dialect.
        doc: the docstring of the class.
        operands: the constraint of each operand by name, in the order of the operands; None accepts every type. A name that
            ends with ``?`` is optional, a name that ends with ``*`` variadic.
        results: the constraint of each result by name, in the same form.
        properties: the constraint of each property by name; a name that ends with ``?`` is optional. In place of a constraint
            a pair gives the constraint and the default value.
        text: the assembly format; None if the op has only the generic form.
        same_sizes: whether all optional and variadic operands must have the same number of values. No property then states the
            sizes of the groups.
        members: further members of the class, such as methods and traits.
        pipes: as for :func:`operation`.
        core: as for :func:`operation`.
        rules: as for :func:`operation`.
        counted: as for :func:`operation`.
        side_effects: as for :func:`operation`.
        effects: the ``fields`` of :func:`operation`.
    """
    fields: dict[str, object] = {"name": name, "__doc__": doc, "__module__": base.__module__, "__annotations__": {}}
    varying = 0
    for spec, constraint in (operands or {}).items():
        field, mark = _split(spec)
        fields[field] = _OPERANDS[mark](AnyAttr() if constraint is None else constraint)
        varying += bool(mark)
    for spec, declared in (properties or {}).items():
        field, mark = _split(spec)
        constraint, default = declared if isinstance(declared, tuple) else (declared, None)
        define: Callable[..., object] = opt_prop_def if mark else prop_def
        fields[field] = define(AnyAttr() if constraint is None else constraint, default_value=default)
    for spec, constraint in (results or {}).items():
        field, mark = _split(spec)
        fields[field] = _RESULTS[mark](AnyAttr() if constraint is None else constraint)
    if same_sizes:
        fields["irdl_options"] = (SameVariadicOperandSize(),)
    elif varying > 1:
        fields["irdl_options"] = (AttrSizedOperandSegments(as_property=True),)
    made: type[TableOpT] = type(_class_name(name), (base,), {**fields, "assembly_format": text, **(members or {})})
    made = operation(pipes=pipes, core=core, rules=rules, counted=counted, side_effects=side_effects, **effects)(made)
    made.PROPERTIES = {_split(spec)[0]: declared[0] if isinstance(declared, tuple) else declared
                       for spec, declared in (properties or {}).items()}
    return made


# -- ops of xDSL -------------------------------------------------------------------------------------------------------


def _keep_type_variable(old: OperandDef | ResultDef, constraint: AttrConstraint) -> AttrConstraint:
    """Returns ``constraint``, bound to the type variable that the definition ``old`` is bound to, if any."""
    theirs = getattr(getattr(old.constr, "constraint", None), "constr", None)
    return VarConstraint(theirs.name, constraint) if isinstance(theirs, VarConstraint) else constraint


def replace_rules(base: type[XdslOpT], check: Rule, *, properties: Mapping[str, PropertyDef] | None = None,
                  **members: Any) -> type[XdslOpT]:
    """Returns a subclass of an xDSL op class that verifies the rules of MLIR instead of those of xDSL.

    Args:
        base: xDSL's op class.
        check: the rules, which replace xDSL's ``verify_``.
        properties: definitions of properties that xDSL lacks or defines differently.
        members: replacements by name. The name of an operand or a result maps to the constraint that replaces xDSL's; any
            other name maps to a member of the class.
    """
    theirs = base.get_irdl_definition()
    constraints = {name: members.pop(name) for name, _ in (*theirs.operands, *theirs.results) if name in members}

    def definition(constraint: Callable[[str, OperandDef | ResultDef], AttrConstraint]) -> OpDef:
        return replace(
            theirs,
            operands=[(name, OperandDef(constraint(name, old)) if name in constraints else old)
                      for name, old in theirs.operands],
            results=[(name, ResultDef(constraint(name, old)) if name in constraints else old)
                     for name, old in theirs.results],
            properties={**theirs.properties, **(properties or {})})

    op_def = definition(lambda name, old: constraints[name])
    # xDSL's formats state one type for all operands of a type variable, so parsing needs the variables; MLIR's rules do not
    # require their types to be equal, so verification does without them.
    text_def = definition(lambda name, old: _keep_type_variable(old, constraints[name]))
    make: Callable[..., type[XdslOpT]] = type(base)  # the metaclass
    reading = base if not constraints and not members else make(
        base.__name__, (base,), {**members, "get_irdl_definition": classmethod(lambda cls: text_def)})

    def verify_(self: IRDLOperation) -> None:
        op_def.verify(self)
        check(self)

    def parse(cls: type[XdslOpT], parser: Parser) -> XdslOpT:
        read = reading.parse(parser)
        made = cls.create(operands=list(read.operands), result_types=list(read.result_types), properties=read.properties,
                          attributes=read.attributes, successors=list(read.successors),
                          regions=[read.detach_region(region) for region in list(read.regions)])
        read.erase()
        return made

    return make(base.__name__, (base,), {
        "__doc__": base.__doc__, "__module__": check.__module__, "verify_": verify_, "parse": classmethod(parse),
        "get_irdl_definition": classmethod(lambda cls: op_def), **members})


def extend_dialect(dialect: Dialect, *ops: type[Operation], rules: Mapping[type[IRDLOperation], Rule] | None = None,
                   attributes: Sequence[type[Attribute]] = ()) -> Dialect:
    """Returns a copy of an xDSL dialect with added and replaced ops and attributes.

    Args:
        dialect: xDSL's dialect.
        ops: op classes to add. A class replaces an op of the dialect with the same name.
        rules: maps op classes of xDSL to the rules that replace xDSL's ``verify_``.
        attributes: attribute classes to add.
    """
    replaced = [*ops, *(replace_rules(op, check) for op, check in (rules or {}).items())]
    names = {op.name for op in replaced}
    return Dialect(dialect.name, [*replaced, *(op for op in dialect.operations if op.name not in names)],
                   [*attributes, *dialect.attributes])


def accept_all(op: Operation) -> None:
    """Accepts every op: the rule of ops for which only the types of operands, properties and results are verified."""
