"""Parsers of the custom forms of LLVM ops that xDSL reads only in part: load, store, getelementptr and inline assembly."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import OptPropertyDef, PropertyDef, irdl_to_attr_constraint
from xdsl.parser import Parser

__all__ = ["MORE"]

_ORDERINGS = {word: number for number, word in llvm.ATOMIC_ORDERING_KEYWORDS.items()}
_INBOUNDS = 3
"""``noWrapFlags`` of ``inbounds``: the flag itself, and ``nusw``, which it implies."""
_DIALECTS = {"att": 0, "intel": 1}


def _parse_atomic(parser: Parser) -> dict[str, Attribute]:
    """Reads ``atomic syncscope("name") acquire``, or nothing."""
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


def _made(cls: Any, operands: Any, results: Any, properties: dict[str, Attribute], stated: dict[str, Attribute]) -> Any:
    """Returns the op. Entries of its attribute dictionary that name properties become properties."""
    names = cls.get_irdl_definition().properties
    return cls.create(
        operands=operands, result_types=results,
        properties={**properties, **{name: value for name, value in stated.items() if name in names}},
        attributes={name: value for name, value in stated.items() if name not in names})


def _parse_load(cls: Any, parser: Parser) -> Any:
    """Reads ``llvm.load volatile %p atomic syncscope("x") acquire {alignment = 4 : i64} : !llvm.ptr -> i32``."""
    properties = _flag(parser, "volatile", "volatile_")
    pointer = parser.parse_unresolved_operand()
    properties |= _parse_atomic(parser)
    properties |= _flag(parser, "invariant", "invariant") | _flag(parser, "invariant_group", "invariantGroup")
    stated = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    parser.parse_punctuation("->")
    return _made(cls, [parser.resolve_operand(pointer, type_)], [parser.parse_type()], properties, stated)


def _parse_store(cls: Any, parser: Parser) -> Any:
    """Reads ``llvm.store volatile %v, %p atomic release {alignment = 4 : i64} : i32, !llvm.ptr``."""
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
    return _made(cls, operands, [], properties, stated)


def _parse_getelementptr(cls: Any, parser: Parser) -> Any:
    """Reads ``llvm.getelementptr inbounds %p[%i, 1] : (!llvm.ptr, i64) -> !llvm.ptr, f32``.

    LLVM 19 has ``inbounds`` as a property of its own, newer versions have it among the flags: both say it.
    """
    read = llvm.GEPOp.parse.__func__(llvm.GEPOp, parser)  # type: ignore[attr-defined]  # a method
    if read.inbounds is not None:
        read.properties["noWrapFlags"] = IntegerAttr(_INBOUNDS, 32)
    made = cls.create(operands=list(read.operands), result_types=list(read.result_types), properties=read.properties,
                      attributes=read.attributes)
    read.erase()
    return made


def _parse_inline_asm(cls: Any, parser: Parser) -> Any:
    """Reads ``llvm.inline_asm has_side_effects asm_dialect = att operand_attrs = [] "nop", "=r" : () -> i32``."""
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
    return _made(cls, operands, list(type_.outputs.data), properties, stated)


def _optional(**kinds: type[Attribute]) -> dict[str, PropertyDef]:
    return {name: OptPropertyDef(irdl_to_attr_constraint(kind)) for name, kind in kinds.items()}


MORE: dict[str, dict[str, Any]] = {
    "llvm.load": {"parse": classmethod(_parse_load), "properties": _optional(
        volatile_=UnitAttr, nontemporal=UnitAttr, invariant=UnitAttr, invariantGroup=UnitAttr, syncscope=StringAttr)},
    "llvm.store": {"parse": classmethod(_parse_store), "properties": _optional(invariantGroup=UnitAttr, syncscope=StringAttr)},
    "llvm.getelementptr": {"parse": classmethod(_parse_getelementptr)},
    "llvm.inline_asm": {"parse": classmethod(_parse_inline_asm), "properties": _optional(operand_attrs=ArrayAttr)},
    "llvm.mlir.constant": {"properties": {"value": PropertyDef(
        irdl_to_attr_constraint(IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr | StringAttr))}},
}
"""By op name: the parser of its custom form, and the properties that xDSL does not define."""
