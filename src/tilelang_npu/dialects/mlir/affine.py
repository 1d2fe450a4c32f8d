"""affine: ``affine.apply`` and ``affine.min`` in the syntax of LLVM 19, ``affine.max``, which xDSL lacks, and MLIR's rules."""

from __future__ import annotations

from typing import Any, TypeVar

from typing_extensions import Self
from xdsl.dialects import affine
from xdsl.dialects.builtin import AffineMapAttr, IndexType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import IRDLOperation, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from tilelang_npu.dialects.ir.declaration import DialectOp, extend_dialect, fail, operation, replace_rules
from tilelang_npu.dialects.mlir.rules import memref_type

_INDEX = IndexType()


OpT = TypeVar("OpT", bound=IRDLOperation)


def _parse(cls: type[OpT], parser: Parser) -> OpT:
    place = parser.pos
    stated = parser.parse_attribute()
    if not isinstance(stated, AffineMapAttr):
        parser.raise_error("expected an affine map", place)
    operands = [*(_indices(parser, parser.Delimiter.PAREN) or ()), *(_indices(parser, parser.Delimiter.SQUARE) or ())]
    return cls.build(operands=[operands], result_types=[_INDEX], properties={"map": stated},
                     attributes=parser.parse_optional_attr_dict())


def _indices(parser: Parser, delimiter: Parser.Delimiter) -> list[SSAValue] | None:
    return parser.parse_optional_comma_separated_list(delimiter, lambda: parser.parse_operand(_INDEX))


def _print(op: MaxOp | affine.MinOp | affine.ApplyOp, printer: Printer) -> None:
    dims = op.map.data.num_dims
    printer.print_string(" ")
    printer.print_attribute(op.map)
    printer.print_string("(")
    printer.print_list(op.operands[:dims], printer.print_ssa_value)
    printer.print_string(")")
    if len(op.operands) > dims:
        printer.print_string("[")
        printer.print_list(op.operands[dims:], printer.print_ssa_value)
        printer.print_string("]")
    printer.print_op_attributes(op.attributes)


def _verify_operand_count(op: MaxOp | affine.MinOp | affine.ApplyOp) -> None:
    map_: AffineMap = op.map.data
    if len(op.operands) != map_.num_dims + map_.num_symbols:
        fail("operand count and affine map dimension and symbol count must match")
    if not map_.results:
        fail("affine map expect at least one result")


def _verify_apply(op: affine.ApplyOp) -> None:
    _verify_operand_count(op)
    if len(op.map.data.results) != 1:
        fail("mapping must produce one value")


def _verify_for(op: affine.ForOp) -> None:
    affine.ForOp.verify_(op)
    if not op.lowerBoundMap.data.results or not op.upperBoundMap.data.results:
        fail("expected affine map to have at least one result")
    if op.step.value.data < 1:
        fail("expected step to be representable as a positive signed integer")
    last = op.body.block.last_op
    given = [value.type for value in last.operands] if isinstance(last, affine.YieldOp) else None
    if given != list(op.result_types):
        fail("parent of yield must have same number of results as the yield operands, of their types")


def _verify_access(op: affine.LoadOp | affine.StoreOp) -> None:
    map_: AffineMap = op.map.data
    if len(map_.results) != len(memref_type(op.memref).get_shape()):
        fail("affine map num results must equal memref rank")
    if len(op.indices) != map_.num_dims + map_.num_symbols:
        fail("expects as many subscripts as affine map inputs")


@operation(rules=[_verify_operand_count])
class MaxOp(DialectOp):
    """Yields the largest result of an affine map: ``affine.max affine_map<()[s0] -> (8, s0)>()[%n]``."""

    name = "affine.max"
    arguments = var_operand_def(IndexType)
    result = result_def(IndexType)
    map = prop_def(AffineMapAttr)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the op in its custom assembly form."""
        return _parse(cls, parser)

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        _print(self, printer)


_FORM: dict[str, Any] = {"parse": classmethod(_parse), "print": _print}
Affine = extend_dialect(
    affine.Affine, MaxOp, replace_rules(affine.ApplyOp, _verify_apply, **_FORM),
    replace_rules(affine.MinOp, _verify_operand_count, **_FORM),
    rules={affine.ForOp: _verify_for, affine.LoadOp: _verify_access, affine.StoreOp: _verify_access})
