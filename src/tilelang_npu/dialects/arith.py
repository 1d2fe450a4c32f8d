"""The ops of arith that take tensors and vectors in MLIR, where xDSL's take numbers alone, and one that xDSL has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ShapedType,
    TensorType,
    UnrankedTensorType,
    VectorType,
    container_of,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, base, irdl_op_definition, operand_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.declaration import DialectOp, OfClass, element_type, operation, replacing, widened

_EXACT = arith.FastMathFlagsAttr("none")
_INTEGERS = container_of(base(IntegerType))
_FLOATS = container_of(AnyFloat)
_WHOLE = container_of(base(IntegerType) | base(IndexType))


def _with_elements(kind: Attribute, element: Attribute) -> Attribute:
    """A type of the shape of another, with other elements."""
    if isinstance(kind, TensorType):
        return TensorType(element, kind.shape, kind.encoding)
    if isinstance(kind, VectorType):
        return VectorType(element, kind.shape, kind.scalable_dims)
    return UnrankedTensorType(element) if isinstance(kind, UnrankedTensorType) else element


def _cast(op: Any, fits: Callable[[Any, Any], bool]) -> None:
    source, result = op.input.type, op.result.type
    one, other = element_type(source), element_type(result)
    if _with_elements(source, i1) != _with_elements(result, i1) or not fits(one, other):
        msg = f"operand type '{source}' and result type '{result}' are cast incompatible"
        raise VerifyException(msg)


def _widens(op: Any) -> None:
    _cast(op, lambda source, result: result.width.data > source.width.data)


def _narrows(op: Any) -> None:
    _cast(op, lambda source, result: result.width.data < source.width.data)


def _converts(op: Any) -> None:
    _cast(op, lambda source, result: True)


def _casts_index(op: Any) -> None:
    _cast(op, lambda source, result: isinstance(source, IndexType) is not isinstance(result, IndexType))


def _compares(op: Any) -> None:
    if op.lhs.type != op.rhs.type:
        msg = "requires all operands to have the same type"
        raise VerifyException(msg)
    if op.result.type != _with_elements(op.lhs.type, i1):
        msg = "failed to verify that result type has i1 element type and same shape as operands"
        raise VerifyException(msg)


def _selects(op: Any) -> None:
    condition, result = op.cond.type, op.result.type
    if condition == i1:
        return
    if not isinstance(result, ShapedType):
        msg = f"expected condition to be a signless i1, but got '{condition}'"
        raise VerifyException(msg)
    expected = _with_elements(result, i1)
    if condition != expected:
        msg = ("expected condition type to have the same shape as the result type, "
               f"expected '{expected}', but got '{condition}'")
        raise VerifyException(msg)


def _parse_select(cls: Any, parser: Parser) -> Any:
    values = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    place = parser.pos
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    condition: Attribute = i1
    kind = parser.parse_type()
    if parser.parse_optional_punctuation(",") is not None:
        condition, kind = kind, parser.parse_type()
    return cls.build(operands=parser.resolve_operands(values, [condition, kind, kind], place), result_types=[kind],
                     attributes=attributes)


def _print_select(op: Any, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    if op.cond.type != i1:
        printer.print_attribute(op.cond.type)
        printer.print_string(", ")
    printer.print_attribute(op.result.type)


def _comparison(kind: Any, words: Sequence[str]) -> Any:
    """A comparison of xDSL that has as many results in its result as it compares, and keeps other attributes."""
    flags = "fastmath" in kind.get_irdl_definition().properties

    def parse(cls: Any, parser: Parser) -> Any:
        place = parser.pos
        word = parser.parse_identifier()
        if word not in words:
            parser.raise_error(f"expected one of {', '.join(words)}", place)
        properties: dict[str, Attribute] = {"predicate": IntegerAttr(words.index(word), i64)}
        parser.parse_punctuation(",")
        left = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        right = parser.parse_unresolved_operand()
        if flags:
            stated = parser.parse_optional_keyword("fastmath") is not None
            properties["fastmath"] = (arith.FastMathFlagsAttr(arith.FastMathFlagsAttr.parse_parameter(parser)) if stated
                                      else _EXACT)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        result = _with_elements(type_, i1) if isinstance(type_, (TensorType, VectorType, UnrankedTensorType)) else i1
        return cls.create(operands=parser.resolve_operands([left, right], [type_, type_], parser.pos), result_types=[result],
                          properties=properties, attributes=attributes)

    def print_(op: Any, printer: Printer) -> None:
        printer.print_string(f" {words[op.predicate.value.data]}, ")
        printer.print_list(op.operands, printer.print_ssa_value)
        if flags and op.fastmath != _EXACT:
            printer.print_string(" fastmath")
            op.fastmath.print_parameter(printer)
        printer.print_op_attributes(op.attributes)
        printer.print_string(" : ")
        printer.print_attribute(op.lhs.type)

    def check(op: Any) -> None:
        _compares(op)
        if op.predicate.type != i64 or not 0 <= op.predicate.value.data < len(words):
            msg = f"predicate = {op.predicate} is none of the {len(words)} comparisons, 0 to {len(words) - 1} of i64"
            raise VerifyException(msg)

    return widened(kind, check, result=container_of(i1), parse=classmethod(parse), print=print_)


@operation()
class IndexCastUIOp(DialectOp):
    """An integer as an index or the other way round, widened with zeros: ``arith.index_castui %i : i1 to index``."""

    name = "arith.index_castui"
    input = operand_def(OfClass((IntegerType, IndexType, TensorType, MemRefType), "signless-integer-like"))
    result = result_def()
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, source: SSAValue | Operation, type_: Attribute) -> None:
        IRDLOperation.__init__(self, operands=[source], result_types=[type_])


@irdl_op_definition
class RemfOp(arith.FloatingPointLikeBinaryOperation):
    """What is left of a division of floats: ``arith.remf %a, %b : f32``."""

    name = "arith.remf"


DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp,
             arith.CeilDivUIOp)
"""The ops that have no value where the divisor, their second operand, is 0."""


Arith = replacing(
    arith.Arith,
    *(widened(op, _widens, input=_INTEGERS, result=_INTEGERS) for op in (arith.ExtSIOp, arith.ExtUIOp)),
    widened(arith.TruncIOp, _narrows, input=_INTEGERS, result=_INTEGERS),
    *(widened(op, _converts, input=_INTEGERS, result=_FLOATS) for op in (arith.SIToFPOp, arith.UIToFPOp)),
    *(widened(op, _converts, input=_FLOATS, result=_INTEGERS) for op in (arith.FPToSIOp, arith.FPToUIOp)),
    widened(arith.IndexCastOp, _casts_index, input=_WHOLE, result=_WHOLE),
    _comparison(arith.CmpiOp, arith.CMPI_COMPARISON_OPERATIONS), _comparison(arith.CmpfOp, arith.CMPF_COMPARISON_OPERATIONS),
    widened(arith.SelectOp, _selects, cond=container_of(i1), parse=classmethod(_parse_select), print=_print_select),
    IndexCastUIOp, RemfOp)
