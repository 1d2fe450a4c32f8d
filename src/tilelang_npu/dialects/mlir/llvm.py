"""llvm: verification rules of LLVM 19 for ops of xDSL, and parsers of custom forms that xDSL parses only in part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from typing_extensions import TypeVar
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrConstraint,
    IntConstraint,
    IRDLOperation,
    OptPropertyDef,
    PropertyDef,
    VerificationContext,
    irdl_to_attr_constraint,
)
from xdsl.parser import Parser

from tilelang_npu.dialects.ir.declaration import Rule, accept_all, extend_dialect, fail, replace_rules, require
from tilelang_npu.dialects.mlir.cf import verify_branch, verify_conditional_branch
from tilelang_npu.dialects.mlir.rules import is_float, is_signless, with_elements

_AGGREGATES = (llvm.LLVMStructType, llvm.LLVMArrayType)
_WITHOUT_VALUES = (llvm.LLVMVoidType, llvm.LLVMFunctionType)
_ORDERED = {"llvm.load": (0, 1, 2, 4, 7), "llvm.store": (0, 1, 2, 5, 7)}
"""The orderings of an atomic access, by number: a load has no release ordering, a store no acquire ordering."""
_ATOMIC_BITS = (8, 16, 32, 64, 128)


def _is_llvm(type_: Attribute) -> bool:
    return llvm.is_compatible_type(type_) or isinstance(type_, llvm.LLVMVoidType)


def _element(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, VectorType) else type_


@dataclass(frozen=True)
class _Kind(AttrConstraint[Attribute]):
    """A kind of LLVM types; ``text`` names it in the message."""

    text: str
    holds: Callable[[Attribute], bool]
    vectors: bool = False
    """Whether vectors of such types are accepted too."""

    def accepts(self, type_: Attribute) -> bool:
        """Whether a type is of this kind."""
        return _is_llvm(type_) and self.holds(_element(type_) if self.vectors else type_)

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        require(self.accepts(attr), f"must be {self.text}, but got '{attr}'")

    def mapping_type_vars(self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]) -> _Kind:
        return self


def _is_pointer(type_: Attribute) -> bool:
    return isinstance(type_, llvm.LLVMPointerType)


_ANY = _Kind("LLVM dialect-compatible type", _is_llvm)
_INTEGER = _Kind("signless integer", is_signless)
_INTEGERS = _Kind("signless integer or LLVM dialect-compatible vector of signless integer", is_signless, vectors=True)
_BOOLS = _Kind("1-bit signless integer or LLVM dialect-compatible vector of 1-bit signless integer",
               lambda type_: type_ == i1, vectors=True)
_FLOAT = _Kind("floating point LLVM type", is_float)
_FLOATS = _Kind("floating point LLVM type or LLVM dialect-compatible vector of floating point LLVM type", is_float,
                vectors=True)
_VECTOR = _Kind("LLVM dialect-compatible vector", lambda type_: isinstance(type_, VectorType))
_POINTER = _Kind("LLVM pointer type", _is_pointer)
_POINTERS = _Kind("LLVM pointer type or LLVM dialect-compatible vector of LLVM pointer type", _is_pointer, vectors=True)
_COMPARED = _Kind("signless integer, pointer or LLVM dialect-compatible vector of such",
                  lambda type_: is_signless(type_) or _is_pointer(type_), vectors=True)
_PRIMITIVE = _Kind("primitive LLVM type", lambda type_: not isinstance(type_, _WITHOUT_VALUES))
_SIZED = _Kind("LLVM type with size", lambda type_: not isinstance(type_, _WITHOUT_VALUES))
_AGGREGATE = _Kind("LLVM aggregate type", lambda type_: isinstance(type_, _AGGREGATES))
_PLAIN = _Kind("LLVM-compatible non-aggregate type", lambda type_: not isinstance(type_, (*_AGGREGATES, *_WITHOUT_VALUES)))

_Kinds: TypeAlias = Sequence[_Kind]


def _of_kinds(what: str, kinds: _Kinds, types: Sequence[Attribute]) -> None:
    """Verifies that each type is of its kind; the last kind applies to all further types."""
    for number, type_ in enumerate(types):
        kind = kinds[min(number, len(kinds) - 1)]
        require(kind.accepts(type_), f"{what} #{number} must be {kind.text}, but got '{type_}'")


def _shape(type_: Attribute) -> tuple[int, ...] | None:
    return type_.get_shape() if isinstance(type_, VectorType) else None


# -- rules -------------------------------------------------------------------------------------------------------------

def _comparison(predicates: int) -> Rule:
    """Returns the rule of a comparison with so many predicates."""

    def check(op: llvm.ICmpOp | llvm.FCmpOp) -> None:
        require(op.lhs.type == op.rhs.type, f"requires the same type for all operands: '{op.lhs.type}' vs. '{op.rhs.type}'")
        require(op.res.type == with_elements(op.lhs.type, i1), "result type has i1 element type and same shape as operands")
        require(0 <= op.predicate.value.data < predicates, f"invalid predicate {op.predicate.value.data}")

    return check


def _width(type_: Attribute) -> int:
    element = _element(type_)
    assert isinstance(element, IntegerType)
    width: int = element.width.data
    return width


def _verify_extension(op: llvm.ZExtOp | llvm.SExtOp) -> None:
    source, result = op.arg.type, op.res.type
    require(_shape(source) == _shape(result), f"input '{source}' and output '{result}' are of incompatible shape")
    bits, wider = _width(source), _width(result)
    require(bits < wider, f"integer width of the output type is smaller or equal to the integer width of the input type:"
                          f" {wider} and {bits}")


def _verify_bitcast(op: Operation) -> None:
    source, result = op.operands[0].type, op.results[0].type
    pointers = [_is_pointer(_element(type_)) for type_ in (source, result)]
    require(pointers[0] == pointers[1], "can only cast pointers from and to pointers")
    if pointers[0]:
        require(_shape(source) == _shape(result), f"cannot cast '{source}' to '{result}'")
        require(_element(source) == _element(result),
                "cannot cast pointers of different address spaces, use 'llvm.addrspacecast' instead")


def _verify_alignment(op: Operation) -> None:
    alignment = op.properties.get("alignment")
    require(alignment is None or (isinstance(alignment, IntegerAttr) and alignment.type == IntegerType(64)),
            "alignment is a 64-bit signless integer attribute")


def _verify_access(op: Operation) -> None:
    """Verifies that an atomic access states its alignment and has a type that can be accessed atomically."""
    _verify_alignment(op)
    ordering = op.properties.get("ordering")
    if ordering is None:
        return
    assert isinstance(ordering, IntegerAttr)
    number = ordering.value.data
    require(ordering.type == IntegerType(64) and number in _ORDERED[op.name], f"unsupported ordering '{ordering}'")
    if number == 0:
        require(op.properties.get("syncscope") is None, "expected syncscope to be null for non-atomic access")
        return
    type_ = op.results[0].type if op.results else op.operands[0].type
    bits = getattr(type_, "bitwidth", None)
    require(_is_pointer(type_) or bits in _ATOMIC_BITS, f"unsupported type '{type_}' for atomic access")
    require("alignment" in op.properties, "expected alignment for atomic access")


def _nested_type(op: llvm.ExtractValueOp | llvm.InsertValueOp, whole: Attribute) -> Attribute:
    """The type at a position in nested structs and arrays."""
    for place in op.position.get_values():
        if isinstance(whole, llvm.LLVMArrayType):
            require(0 <= place < whole.size.data, f"position out of bounds: {place}")
            whole = whole.type
            continue
        if not isinstance(whole, llvm.LLVMStructType):
            fail(f"expected LLVM IR structure/array type, got: '{whole}'")
        require(0 <= place < len(whole.types), f"position out of bounds: {place}")
        whole = whole.types.data[place]
    return whole


def _verify_extractvalue(op: llvm.ExtractValueOp) -> None:
    whole, result = op.operands[0].type, op.results[0].type
    part = _nested_type(op, whole)
    require(part == result, f"Type mismatch: extracting from '{whole}' should produce '{part}' but this op returns '{result}'")


def _verify_insertvalue(op: llvm.InsertValueOp) -> None:
    whole, part = (operand.type for operand in op.operands)
    require(_nested_type(op, whole) == part, f"Type mismatch: cannot insert '{part}' into '{whole}'")
    require(op.results[0].type == whole, f"result type '{op.results[0].type}' is not that of the container, '{whole}'")


def _elements(type_: Attribute) -> int:
    if isinstance(type_, llvm.LLVMArrayType):
        return type_.size.data * _elements(type_.type)
    return prod(_shape(type_) or ())


def _innermost(type_: Attribute) -> Attribute:
    return _innermost(type_.type) if isinstance(type_, llvm.LLVMArrayType) else _element(type_)


def _verify_constant_type(number: Attribute, type_: Attribute) -> None:
    """Verifies that a number fits a type.

    An integer fits its own type, and an index any integer type. A float fits its own type and the integer type of its width, by
    which LLVM represents some floats.
    """
    if isinstance(number, AnyFloat):
        fits = type_ in (number, IntegerType(number.bitwidth))
        require(fits, f"attribute and type have different float semantics: '{number}' vs. '{type_}'")
        return
    require(isinstance(type_, IntegerType), f"expected integer type, got '{type_}'")
    require(isinstance(number, IndexType) or number == type_,
            f"attribute and type have different integer types: '{number}' vs. '{type_}'")


def _verify_constant(op: llvm.ConstantOp) -> None:
    value, type_ = op.value, op.results[0].type
    if isinstance(value, StringAttr):
        length = len(value.data.encode())
        require(type_ == llvm.LLVMArrayType(IntAttr(length), IntegerType(8)),
                f"expected array type of {length} i8 elements for the string constant, got '{type_}'")
        return
    if not isinstance(value, DenseIntOrFPElementsAttr):
        _verify_constant_type(value.type, type_)
        return
    require(isinstance(type_, (VectorType, llvm.LLVMArrayType)), f"expected vector or array type, got '{type_}'")
    count = prod(value.get_shape())
    require(count == _elements(type_),
            f"type and attribute have a different number of elements: {_elements(type_)} vs. {count}")
    _verify_constant_type(value.get_element_type(), _innermost(type_))


def _verify_getelementptr(op: llvm.GEPOp) -> None:
    """Verifies that each dynamic index has an operand, and that the flags are valid (``inbounds`` implies ``nusw``)."""
    marks = list(op.rawConstantIndices.get_values()).count(llvm.GEP_USE_SSA_VAL)
    given = len(op.operands) - 1
    require(marks == given, f"expected as many dynamic indices as specified in 'rawConstantIndices': {marks}, got {given}")
    flags = op.noWrapFlags.value.data
    require(op.noWrapFlags.type == IntegerType(32) and flags in (0, 2, 3, 4, 6, 7), f"invalid noWrapFlags '{op.noWrapFlags}'")


def _verify_one_type(op: Operation) -> None:
    types = [*op.operand_types, *op.result_types]
    require(len(set(types)) == 1, f"requires the same type for all operands and results, got {', '.join(map(str, types))}")


# -- custom forms that xDSL parses only in part -------------------------------------------------------------------------

_ORDERINGS = {word: number for number, word in llvm.ATOMIC_ORDERING_KEYWORDS.items()}
_INBOUNDS = 3
"""The ``noWrapFlags`` of ``inbounds``: the flag itself and ``nusw``, which it implies."""
_DIALECTS = {"att": 0, "intel": 1}


def _parse_atomic(parser: Parser) -> dict[str, Attribute]:
    """Parses ``atomic syncscope("name") acquire``, or nothing."""
    if parser.parse_optional_keyword("atomic") is None:
        return {"ordering": IntegerAttr(0, i64)}
    made: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("syncscope") is not None:
        with parser.in_parens():
            made["syncscope"] = StringAttr(parser.parse_str_literal())
    place = parser.pos
    word = parser.parse_identifier()
    if word not in _ORDERINGS:
        parser.raise_error(f"expected one of {', '.join(_ORDERINGS)}", place, parser.pos)
    return {**made, "ordering": IntegerAttr(_ORDERINGS[word], i64)}


def _flag(parser: Parser, word: str, name: str) -> dict[str, Attribute]:
    return {name: UnitAttr()} if parser.parse_optional_keyword(word) is not None else {}


OpT = TypeVar("OpT", bound=IRDLOperation)


def _create(cls: type[OpT], operands: Sequence[SSAValue], results: Sequence[Attribute], properties: dict[str, Attribute],
            stated: dict[str, Attribute]) -> OpT:
    """Returns the op. Entries of its attribute dictionary with the names of properties become properties."""
    names = cls.get_irdl_definition().properties
    return cls.create(
        operands=operands, result_types=results,
        properties={**properties, **{name: value for name, value in stated.items() if name in names}},
        attributes={name: value for name, value in stated.items() if name not in names})


def _parse_load(cls: type[OpT], parser: Parser) -> OpT:
    """Parses ``llvm.load volatile %p atomic syncscope("x") acquire {alignment = 4 : i64} : !llvm.ptr -> i32``."""
    properties = _flag(parser, "volatile", "volatile_")
    pointer = parser.parse_unresolved_operand()
    properties |= _parse_atomic(parser)
    properties |= _flag(parser, "invariant", "invariant") | _flag(parser, "invariant_group", "invariantGroup")
    stated = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    parser.parse_punctuation("->")
    return _create(cls, [parser.resolve_operand(pointer, type_)], [parser.parse_type()], properties, stated)


def _parse_store(cls: type[OpT], parser: Parser) -> OpT:
    """Parses ``llvm.store volatile %v, %p atomic release {alignment = 4 : i64} : i32, !llvm.ptr``."""
    properties = _flag(parser, "volatile", "volatile_")
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    pointer = parser.parse_unresolved_operand()
    properties |= _parse_atomic(parser) | _flag(parser, "invariant_group", "invariantGroup")
    stated = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    parser.parse_punctuation(",")
    operands = [parser.resolve_operand(value, kind), parser.resolve_operand(pointer, parser.parse_type())]
    return _create(cls, operands, [], properties, stated)


def _parse_getelementptr(cls: type[OpT], parser: Parser) -> OpT:
    """Parses ``llvm.getelementptr inbounds %p[%i, 1] : (!llvm.ptr, i64) -> !llvm.ptr, f32``.

    In LLVM 19 ``inbounds`` is a property, in newer versions one of the flags; both are set.
    """
    read = llvm.GEPOp.parse(parser)
    if read.inbounds is not None:
        read.properties["noWrapFlags"] = IntegerAttr(_INBOUNDS, 32)
    made = cls.create(operands=list(read.operands), result_types=list(read.result_types), properties=read.properties,
                      attributes=read.attributes)
    read.erase()
    return made


def _parse_inline_asm(cls: type[OpT], parser: Parser) -> OpT:
    """Parses ``llvm.inline_asm has_side_effects asm_dialect = att operand_attrs = [] "nop", "=r" : () -> i32``."""
    properties = _flag(parser, "has_side_effects", "has_side_effects") | _flag(parser, "is_align_stack", "is_align_stack")
    if parser.parse_optional_keyword("tail_call_kind") is not None:
        parser.parse_punctuation("=")
        with parser.in_angle_brackets():
            properties["tail_call_kind"] = llvm.TailCallKindAttr(llvm.TailCallKind(parser.parse_identifier()))
    if parser.parse_optional_keyword("asm_dialect") is not None:
        parser.parse_punctuation("=")
        place = parser.pos
        word = parser.parse_identifier()
        if word not in _DIALECTS:
            parser.raise_error(f"expected one of {', '.join(_DIALECTS)}", place, parser.pos)
        properties["asm_dialect"] = IntegerAttr(_DIALECTS[word], i64)
    if parser.parse_optional_keyword("operand_attrs") is not None:
        parser.parse_punctuation("=")
        properties["operand_attrs"] = parser.parse_attribute()
    stated = dict(parser.parse_optional_attr_dict())
    properties["asm_string"] = StringAttr(parser.parse_str_literal())
    parser.parse_punctuation(",")
    properties["constraints"] = StringAttr(parser.parse_str_literal())
    values = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand) or []
    stated |= parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_function_type()
    operands = parser.resolve_operands(values, type_.inputs.data, parser.pos)
    properties.setdefault("tail_call_kind", llvm.TailCallKindAttr(llvm.TailCallKind.NONE))
    return _create(cls, operands, list(type_.outputs.data), properties, stated)


def _optional(**kinds: type[Attribute]) -> dict[str, PropertyDef]:
    return {name: OptPropertyDef(irdl_to_attr_constraint(kind)) for name, kind in kinds.items()}


_FORMS: dict[str, dict[str, Any]] = {
    "llvm.load": {"parse": classmethod(_parse_load), "properties": _optional(
        volatile_=UnitAttr, nontemporal=UnitAttr, invariant=UnitAttr, invariantGroup=UnitAttr, syncscope=StringAttr)},
    "llvm.store": {"parse": classmethod(_parse_store), "properties": _optional(invariantGroup=UnitAttr, syncscope=StringAttr)},
    "llvm.getelementptr": {"parse": classmethod(_parse_getelementptr)},
    "llvm.inline_asm": {"parse": classmethod(_parse_inline_asm), "properties": _optional(operand_attrs=ArrayAttr)},
    "llvm.mlir.constant": {"properties": {"value": PropertyDef(
        irdl_to_attr_constraint(IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr | StringAttr))}},
}
"""By op name: the parser of its custom form, and the properties that xDSL does not define."""


# -- the ops: their kinds of operands and of results, and the rule ---------------------------------------------------------

_OPS: list[tuple[Sequence[type[IRDLOperation]], _Kinds, _Kinds, Rule]] = [
    ([llvm.AddOp, llvm.SubOp, llvm.MulOp, llvm.UDivOp, llvm.SDivOp, llvm.URemOp, llvm.SRemOp, llvm.AndOp, llvm.OrOp, llvm.XOrOp,
      llvm.ShlOp, llvm.LShrOp, llvm.AShrOp], [_INTEGERS], [_INTEGERS], _verify_one_type),
    ([llvm.FAddOp, llvm.FSubOp, llvm.FMulOp, llvm.FDivOp, llvm.FRemOp, llvm.FNegOp, llvm.FAbsOp, llvm.FCeilOp, llvm.FSqrtOp,
      llvm.FFloorOp, llvm.FExp2Op, llvm.FLogOp, llvm.FExpOp, llvm.FSinOp, llvm.FCosOp, llvm.FLog2Op, llvm.VectorFMaxOp,
      llvm.VectorFMinOp, llvm.FCopySignOp, llvm.FMAOp, llvm.FPowOp], [_FLOATS], [_FLOATS], _verify_one_type),
    ([llvm.ICmpOp], [_COMPARED], [_BOOLS], _comparison(10)),
    ([llvm.FCmpOp], [_FLOATS], [_BOOLS], _comparison(16)),
    ([llvm.ZExtOp, llvm.SExtOp], [_INTEGERS], [_INTEGERS], _verify_extension),
    ([llvm.TruncOp], [_INTEGERS], [_INTEGERS], accept_all),
    ([llvm.SIToFPOp], [_INTEGERS], [_FLOATS], accept_all),
    ([llvm.FPExtOp, llvm.FPTruncOp], [_FLOATS], [_FLOATS], accept_all),
    ([llvm.BitcastOp], [_PLAIN], [_PLAIN], _verify_bitcast),
    ([llvm.IntToPtrOp], [_INTEGERS], [_POINTERS], accept_all),
    ([llvm.PtrToIntOp], [_POINTERS], [_INTEGERS], accept_all),
    ([llvm.VectorReduceFAddOp, llvm.VectorReduceFMulOp], [_FLOAT, _VECTOR], [_FLOAT], accept_all),
    ([llvm.LoadOp], [_POINTER], [_SIZED], _verify_access),
    ([llvm.StoreOp], [_SIZED, _POINTER], [], _verify_access),
    ([llvm.AllocaOp], [_INTEGER], [_POINTER], _verify_alignment),
    ([llvm.GEPOp], [_POINTERS, _INTEGERS], [_POINTERS], _verify_getelementptr),
    ([llvm.ExtractValueOp], [_AGGREGATE], [_ANY], _verify_extractvalue),
    ([llvm.InsertValueOp], [_AGGREGATE, _PRIMITIVE], [_AGGREGATE], _verify_insertvalue),
    ([llvm.InsertElementOp], [_VECTOR, _PRIMITIVE, _INTEGER], [_VECTOR], accept_all),
    ([llvm.ShuffleVectorOp], [_VECTOR], [_VECTOR], accept_all),
    ([llvm.SelectOp], [_BOOLS, _ANY], [_ANY], accept_all),
    ([llvm.UndefOp, llvm.ZeroOp], [], [_ANY], accept_all),
    ([llvm.ConstantOp], [], [_ANY], _verify_constant),
    ([llvm.BrOp], [_ANY], [], verify_branch),
    ([llvm.CondBrOp], [_ANY], [], verify_conditional_branch),
    ([llvm.StackSaveOp], [], [_POINTER], accept_all),
    ([llvm.StackRestoreOp], [_POINTER], [], accept_all),
    ([llvm.InlineAsmOp, llvm.CallIntrinsicOp], [_ANY], [_ANY], accept_all),
]
_WIDER: dict[str, dict[str, _Kind]] = {
    "llvm.icmp": {"lhs": _COMPARED, "rhs": _COMPARED},
    "llvm.ptrtoint": {"input": _POINTERS, "output": _INTEGERS},
    "llvm.inttoptr": {"input": _INTEGERS, "output": _POINTERS},
    "llvm.select": {"cond": _BOOLS},
    "llvm.mlir.zero": {"res": _ANY},
}
"""Operands and results of which xDSL accepts too few types."""


def _with_rules(kind: type[IRDLOperation], operands: _Kinds, results: _Kinds, rule: Rule) -> type[IRDLOperation]:
    wider = {**_WIDER.get(kind.name, {}), **_FORMS.get(kind.name, {})}

    def check(op: Operation) -> None:
        if not wider:
            kind.verify_(op)
        _of_kinds("operand", operands, op.operand_types)
        _of_kinds("result", results, op.result_types)
        rule(op)

    return replace_rules(kind, check, **wider)


LLVM = extend_dialect(
    llvm.LLVM, *(_with_rules(kind, operands, results, rule) for kinds, operands, results, rule in _OPS for kind in kinds))
