"""arith: ops that, as in MLIR, also accept tensors and vectors where xDSL accepts only scalars; two ops that xDSL lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    IntegerType,
    ShapedType,
    TensorType,
    UnrankedTensorType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from tilelang_npu.dialects.ir.declaration import DialectOp, extend_dialect, fail, operation, replace_rules, require
from tilelang_npu.dialects.ir.mlir_dtypes import element_type
from tilelang_npu.dialects.mlir.rules import (
    BOOLS,
    FLOATS,
    INTEGERS,
    WHOLE,
    Like,
    is_float,
    is_signless,
    is_signless_or_index,
    verify_one_type,
    with_elements,
)

_EXACT = arith.FastMathFlagsAttr("none")
_INDEXED = Like(is_signless_or_index, "signless-integer", memrefs=True)
_BITS = Like(lambda type_: is_signless(type_) or is_float(type_), "signless-integer-or-float", memrefs=True)


def _verify_cast(op: Operation, fits: Callable[[Any, Any], bool]) -> None:
    """Verifies that a cast keeps the shape and that its element types fit each other."""
    source, result = op.operands[0].type, op.results[0].type
    one, other = element_type(source), element_type(result)
    require(with_elements(source, i1) == with_elements(result, i1) and fits(one, other),
            f"operand type '{source}' and result type '{result}' are cast incompatible")


def _verify_widening(op: Operation) -> None:
    _verify_cast(op, lambda source, result: result.bitwidth > source.bitwidth)


def _verify_narrowing(op: arith.TruncIOp | arith.TruncFOp) -> None:
    _verify_cast(op, lambda source, result: result.bitwidth < source.bitwidth)


def _verify_bitcast(op: arith.BitcastOp) -> None:
    _verify_cast(op, lambda source, result: source.bitwidth == result.bitwidth)


def _verify_conversion(op: Operation) -> None:
    _verify_cast(op, lambda source, result: True)


def _verify_index_cast(op: IndexCastUIOp | arith.IndexCastOp) -> None:
    _verify_cast(op, lambda source, result: isinstance(source, IndexType) is not isinstance(result, IndexType))


def _verify_comparison(op: arith.CmpiOp | arith.CmpfOp) -> None:
    require(op.lhs.type == op.rhs.type, "requires all operands to have the same type")
    require(op.result.type == with_elements(op.lhs.type, i1),
            "failed to verify that result type has i1 element type and same shape as operands")


def _verify_select(op: arith.SelectOp) -> None:
    condition, result = op.cond.type, op.result.type
    require(op.lhs.type == op.rhs.type == result,
            "failed to verify that all of {true_value, false_value, result} have same type")
    if condition == i1:
        return
    if not isinstance(result, ShapedType):
        fail(f"expected condition to be a signless i1, but got '{condition}'")
    expected = with_elements(result, i1)
    if condition != expected:
        fail("expected condition type to have the same shape as the result type, "
             f"expected '{expected}', but got '{condition}'")


def _parse_select(cls: type[arith.SelectOp], parser: Parser) -> arith.SelectOp:
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


def _print_select(op: arith.SelectOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    if op.cond.type != i1:
        printer.print_attribute(op.cond.type)
        printer.print_string(", ")
    printer.print_attribute(op.result.type)


def _comparison(kind: type[arith.CmpiOp | arith.CmpfOp], words: Sequence[str], kinds: Like) -> type[Operation]:
    """Returns a comparison of xDSL that also compares tensors and vectors, and that keeps further attributes.

    Args:
        kind: xDSL's op.
        words: the predicates, by number.
        kinds: the constraint of the operands.
    """
    flags = "fastmath" in kind.get_irdl_definition().properties

    def parse(cls: type[arith.CmpiOp | arith.CmpfOp], parser: Parser) -> arith.CmpiOp | arith.CmpfOp:
        place = parser.pos
        word = parser.parse_optional_str_literal() or parser.parse_identifier()
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
        result = with_elements(type_, i1) if isinstance(type_, (TensorType, VectorType, UnrankedTensorType)) else i1
        return cls.create(operands=parser.resolve_operands([left, right], [type_, type_], parser.pos), result_types=[result],
                          properties=properties, attributes=attributes)

    def print_(op: arith.CmpiOp | arith.CmpfOp, printer: Printer) -> None:
        printer.print_string(f" {words[op.predicate.value.data]}, ")
        printer.print_list(op.operands, printer.print_ssa_value)
        if isinstance(op, arith.CmpfOp) and op.fastmath != _EXACT:
            printer.print_string(" fastmath")
            op.fastmath.print_parameter(printer)
        printer.print_op_attributes(op.attributes)
        printer.print_string(" : ")
        printer.print_attribute(op.lhs.type)

    def check(op: arith.CmpiOp | arith.CmpfOp) -> None:
        _verify_comparison(op)
        require(op.predicate.type == i64 and 0 <= op.predicate.value.data < len(words),
                f"predicate must be an i64 from 0 to {len(words) - 1}, but got {op.predicate}")

    return replace_rules(kind, check, lhs=kinds, rhs=kinds, result=BOOLS, parse=classmethod(parse), print=print_)


@operation(rules=[_verify_index_cast])
class IndexCastUIOp(DialectOp):
    """Converts between an integer and an index with zero extension: ``arith.index_castui %i : i1 to index``."""

    name = "arith.index_castui"
    input = operand_def(_INDEXED)
    result = result_def(_INDEXED)
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, source: SSAValue | Operation, type_: Attribute) -> None:
        IRDLOperation.__init__(self, operands=[source], result_types=[type_])


@irdl_op_definition
class RemfOp(arith.FloatingPointLikeBinaryOperation):
    """Computes the remainder of a division of floats: ``arith.remf %a, %b : f32``."""

    name = "arith.remf"


DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp,
             arith.CeilDivUIOp)
"""The ops whose result is undefined where the divisor, their second operand, is 0."""


def _verify_addui_extended(op: arith.AddUIExtendedOp) -> None:
    require(op.lhs.type == op.rhs.type == op.sum.type, "failed to verify that all of {lhs, rhs, sum} have same type")
    require(op.overflow.type == with_elements(op.lhs.type, i1), "overflow must be of i1 elements and of the shape of the sum")


def _verify_constant(op: arith.ConstantOp) -> None:
    value, type_ = op.value, op.result.type
    require(getattr(value, "type", None) == type_, f"value of type '{getattr(value, 'type', value)}' does not fit the result's"
                                                   f" type '{type_}'")
    require(not isinstance(type_, IntegerType) or is_signless(type_), "integer return type must be signless")


def _binary(kind: type[IRDLOperation], kinds: Like) -> type[Operation]:
    return replace_rules(kind, verify_one_type, lhs=kinds, rhs=kinds, result=kinds)


def _extended_product(kind: type[IRDLOperation]) -> type[Operation]:
    return replace_rules(kind, verify_one_type, lhs=WHOLE, rhs=WHOLE, low=WHOLE, high=WHOLE)


Arith = extend_dialect(
    arith.Arith,
    *(_binary(kind, WHOLE) for kind in (
        arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp,
        arith.CeilDivUIOp, arith.RemUIOp, arith.RemSIOp, arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp,
        arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ShLIOp, arith.ShRUIOp, arith.ShRSIOp)),
    *(_binary(kind, FLOATS) for kind in (
        arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, RemfOp, arith.MinimumfOp, arith.MaximumfOp, arith.MinnumfOp,
        arith.MaxnumfOp)),
    replace_rules(arith.NegfOp, verify_one_type, operand=FLOATS, result=FLOATS),
    _extended_product(arith.MulUIExtendedOp), _extended_product(arith.MulSIExtendedOp),
    replace_rules(arith.AddUIExtendedOp, _verify_addui_extended, lhs=WHOLE, rhs=WHOLE, sum=WHOLE, overflow=BOOLS),
    *(replace_rules(kind, _verify_widening, input=INTEGERS, result=INTEGERS) for kind in (arith.ExtSIOp, arith.ExtUIOp)),
    replace_rules(arith.TruncIOp, _verify_narrowing, input=INTEGERS, result=INTEGERS),
    replace_rules(arith.ExtFOp, _verify_widening, input=FLOATS, result=FLOATS),
    replace_rules(arith.TruncFOp, _verify_narrowing, input=FLOATS, result=FLOATS),
    *(replace_rules(kind, _verify_conversion, input=INTEGERS, result=FLOATS) for kind in (arith.SIToFPOp, arith.UIToFPOp)),
    *(replace_rules(kind, _verify_conversion, input=FLOATS, result=INTEGERS) for kind in (arith.FPToSIOp, arith.FPToUIOp)),
    replace_rules(arith.IndexCastOp, _verify_index_cast, input=_INDEXED, result=_INDEXED), IndexCastUIOp,
    replace_rules(arith.BitcastOp, _verify_bitcast, input=_BITS, result=_BITS),
    _comparison(arith.CmpiOp, arith.CMPI_COMPARISON_OPERATIONS, WHOLE),
    _comparison(arith.CmpfOp, arith.CMPF_COMPARISON_OPERATIONS, FLOATS),
    replace_rules(arith.SelectOp, _verify_select, cond=BOOLS, parse=classmethod(_parse_select), print=_print_select),
    replace_rules(arith.ConstantOp, _verify_constant))
