"""HFusion's ops that compute results from tensors, without destination operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from typing_extensions import Self
from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, SymbolNameConstraint, TensorType, f16, f32, i1, i8, i64
from xdsl.irdl import (
    OptPropertyDef,
    base,
    operand_def,
    prop_def,
    result_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.hfusion.enums import CacheModifierAttr, EvictionPolicyAttr
from tilelang_npu.dialects.hfusion.rules import (
    FLOATS,
    SMALL_FLOATS,
    of_types,
    one_rank,
    one_tensor_shape,
    one_tensor_type,
    operand_count,
    verify_deinterleave,
    verify_histogram,
    verify_hypot,
    verify_interleave,
    verify_scan,
    verify_sort,
    verify_wide_product,
)
from tilelang_npu.dialects.hfusion.rules import NUMBERS as ALL_NUMBERS
from tilelang_npu.dialects.hivm.traits import BOOL, NUMBER
from tilelang_npu.dialects.ir.declaration import CountSegments, DialectOp, Rule, TableOp, define_op, fail, group, operation
from tilelang_npu.dialects.mlir.named_ops import NUMBERS

_SOURCES = "$src attr-dict `:` type($src)"


def _define_function(name: str, doc: str, rules: Sequence[Rule], *, text: str | None = f"{_SOURCES} `->` type($result)",
                     properties: Mapping[str, object] | None = None) -> type[TableOp]:
    """Returns the class of a function of tensors; without ``text`` it has the generic form alone."""
    return define_op(TableOp, f"hfusion.{name}", doc, operands={"src*": None}, results={"result*": None}, properties=properties,
                     text=text, rules=rules, reads=("src",))


_SCAN = {"cum_dims": NUMBERS, "reverse": BOOL}
_EXTREME = {**_SCAN, "propagate_nan?": BOOL}
_HALF_OR_SINGLE = (f16, f32)
_ROUNDED = of_types(_HALF_OR_SINGLE, _HALF_OR_SINGLE)
_CLASSIFIES = (operand_count(1), of_types(FLOATS, (i1,)), one_rank)

_PLAIN: tuple[type[DialectOp], ...] = (
    _define_function("flip", "Reverses the order of the elements along an axis.", [operand_count(1)],
                     text=f"{_SOURCES} `flip_axis` `=` $flip_axis `->` type($result)",
                     properties={"flip_axis": NUMBER}),
    _define_function("interleave", "Alternates the elements of two tensors.", [verify_interleave]),
    *(_define_function(f"cum{name}", doc, [operand_count(1), of_types(types, types), verify_scan], properties=properties,
                       text=f"{_SOURCES} `cum_dims` `=` $cum_dims `reverse` `=` $reverse `->` type($result)")
      for name, types, doc, properties in (
          ("sum", (*ALL_NUMBERS, *SMALL_FLOATS), "Computes cumulative sums along an axis.", _SCAN),
          ("prod", ALL_NUMBERS, "Computes cumulative products along an axis.", _SCAN),
          ("max", ALL_NUMBERS, "Computes cumulative maxima along an axis.", _EXTREME),
          ("min", ALL_NUMBERS, "Computes cumulative minima along an axis.", _EXTREME))),
    _define_function("sort", "Sorts the elements along an axis.", [operand_count(1), verify_sort],
                     properties={"descending": BOOL, "sort_axis": NUMBER},
                     text=f"attr-dict {group('ins', 'src')} `descending` `=` $descending `sort_axis` `=` $sort_axis"
                          " (`->` type($result)^)?"),
    _define_function("isinf", "Tests whether each element is infinite.", _CLASSIFIES),
    _define_function("isnan", "Tests whether each element is a NaN.", _CLASSIFIES),
    _define_function("isfinite", "Tests whether each element is finite.", _CLASSIFIES),
    _define_function("erfinv", "Computes the inverse of the error function of each element.",
                     (operand_count(1), _ROUNDED, one_tensor_type)),
    _define_function("hypot", "Computes the square root of the sum of the squares of two or three inputs.",
                     (of_types(FLOATS, FLOATS), verify_hypot)),
    _define_function("nextafter", "Computes the next float after each first element in the direction of the second.",
                     (operand_count(2), _ROUNDED, one_tensor_type)),
    _define_function("cyl_bessel_i0", "Computes the modified Bessel function of the first kind of order 0.",
                     (operand_count(1), _ROUNDED, one_tensor_type)),
    _define_function("signbit", "Tests whether the sign bit of each element is set.",
                     [operand_count(1), of_types(_HALF_OR_SINGLE, (i1, i8)), one_tensor_shape], text=None),
    define_op(TableOp, "hfusion.histogram",
              "Counts how often each integer below ``num_bins`` occurs among the elements whose mask is set.",
              operands={"input": None, "mask?": None}, results={"output": None}, properties={"num_bins": IntegerAttr[I64]},
              text="$input `,` $num_bins (`,` $mask^)? attr-dict `:` type($input) (`,` type($mask)^)? `->` type($output)",
              rules=[verify_histogram], reads=("input", "mask")),
    define_op(TableOp, "hfusion.print", "Prints a text and a value.", operands={"args_*": None},
              properties={"prefix": StringAttr, "hex": BOOL}, text="$prefix attr-dict $args_ `:` type($args_)",
              reads=("args_",), side_effects=True),
    define_op(TableOp, "hfusion.assert", "Stops the program with a message if a value is false.", operands={"args_*": None},
              properties={"msg": StringAttr}, text="$msg attr-dict $args_ `:` type($args_)", reads=("args_",),
              side_effects=True),
    define_op(TableOp, "hfusion.barrier", "Waits until all earlier ops are complete.", text="attr-dict", side_effects=True),
    define_op(TableOp, "hfusion.symbolic_dim", "Yields a size that is known only by its name.", results={"result": None},
              properties={"symbolName": SymbolNameConstraint()}, text="$symbolName attr-dict `:` type($result)",
              side_effects=True),
)


@operation(rules=[verify_deinterleave], reads=("src",))
class DeinterleaveOp(DialectOp):
    """Yields the elements at even positions of the last axis (channel 0), those at odd positions (channel 1), or both."""

    name = "hfusion.deinterleave"
    src = operand_def(TensorType)
    channelIndex = prop_def(NUMBER)
    result = var_result_def(TensorType)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses ``%a channel<0> : T -> T``."""
        src = parser.parse_unresolved_operand()
        parser.parse_keyword("channel")
        with parser.in_angle_brackets():
            index = -1 if parser.parse_optional_keyword("all") is not None else parser.parse_integer()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        results = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.build(operands=[parser.resolve_operand(src, type_)], result_types=[results],
                         properties={"channelIndex": IntegerAttr(index, i64)}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        index = self.channelIndex.value.data
        printer.print_string(" ")
        printer.print_ssa_value(self.src)
        printer.print_string(f" channel<{'all' if index < 0 else index}>")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)
        printer.print_string(" -> ")
        printer.print_list(self.result, lambda value: printer.print_attribute(value.type))


class _WideProduct(DialectOp):
    """Base of the products with twice the bits, whose text has one type for all operands and results."""

    lhs = operand_def()
    rhs = operand_def()
    low = result_def()
    high = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses ``%a, %b : T``."""
        sources = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.build(operands=[parser.resolve_operand(source, type_) for source in sources], result_types=[type_, type_],
                         attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)


@operation(rules=[verify_wide_product], reads=("lhs", "rhs"))
class MulExtOp(_WideProduct):
    """Yields the low and the high halves of the products of signed integers."""

    name = "hfusion.mulext"


@operation(rules=[verify_wide_product], reads=("lhs", "rhs"))
class MulExtUIOp(_WideProduct):
    """Yields the low and the high halves of the products of unsigned integers."""

    name = "hfusion.mulextui"


_ENUMS = {"cache": OptPropertyDef(base(CacheModifierAttr)), "evict": OptPropertyDef(base(EvictionPolicyAttr))}
"""The properties whose enums belong to this dialect."""


def _mirror(mnemonic: str, cls: type[DialectOp], *rules: Rule, counted: CountSegments | None = None) -> type[DialectOp]:
    """Returns an op with the operands, rules and text of an op of HIVM, with further rules, and without a pipe."""
    theirs = cls.get_irdl_definition()
    definition = replace(theirs, name=f"hfusion.{mnemonic}",
                         properties={key: _ENUMS.get(key, value) for key, value in theirs.properties.items()})

    def verify_(self: DialectOp) -> None:
        for check in (definition.verify, *cls.RULES, *rules):
            check(self)

    made = type(cls.__name__, (cls,), {
        "name": definition.name, "__doc__": cls.__doc__, "__module__": __name__, "PIPES": (), "verify_": verify_,
        "COUNTED": staticmethod(counted) if counted is not None else None,
        "get_irdl_definition": classmethod(lambda cls: definition)})
    assert issubclass(made, DialectOp)
    return made


def _verify_mask(op: TableOp) -> None:
    if op.mask is None or op.other is None:
        fail("must have a mask, and the operand 'other' with the values of the elements whose mask is not set")


_MIRRORED = (_mirror("indirect_load", hivm.IndirectLoadOp, _verify_mask, counted=lambda operands: (1,) * operands), *(
    _mirror(cls.name.rpartition(".")[2], cls) for cls in (
        hivm.GatherLoadOp, hivm.ScatterStoreOp, hivm.IndirectStoreOp, hivm.StrideLoadOp, hivm.StrideStoreOp,
        hivm.EmbeddingGatherOp, hivm.GatherTOp, hivm.IndexPutOp, hivm.ScatterTOp)))
FUNCTIONS: tuple[type[DialectOp], ...] = (*_PLAIN, DeinterleaveOp, MulExtOp, MulExtUIOp, *_MIRRORED)
"""The ops of the dialect without destination operands."""
