"""HFusion's ops that are functions of tensors: no ``outs``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, SymbolNameConstraint, TensorType, f16, f32, i1, i8, i64
from xdsl.irdl import (
    OptPropertyDef,
    base,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.hfusion.enums import CacheModifierAttr, EvictionPolicyAttr
from tilelang_npu.dialects.hfusion.rules import (
    FLOATS,
    SMALL_FLOATS,
    deinterleaves,
    fills_its_bins,
    halves,
    hypotenuse,
    interleaves,
    of_types,
    one_rank,
    one_tensor_shape,
    one_tensor_type,
    reads,
    scans,
    sorts,
)
from tilelang_npu.dialects.hfusion.rules import NUMBERS as ALL_NUMBERS
from tilelang_npu.dialects.hfusion.structured import BOOL, NUMBER, NUMBERS
from tilelang_npu.dialects.hivm.structured import fail
from tilelang_npu.dialects.ir.declaration import Count, DialectOp, Rule, operation

_SOURCES = "$src attr-dict `:` type($src)"


def _function(name: str, doc: str, *, text: str | None = f"{_SOURCES} `->` type($result)",
              rules: Sequence[Rule] = (), **attributes: Any) -> type[DialectOp]:
    """The class of a function of tensors with one result or several; without ``text`` it has the generic form alone."""
    fields: dict[str, Any] = {
        "name": f"hfusion.{name}", "__doc__": doc, "__module__": __name__, "src": var_operand_def(), "result": var_result_def(),
        **attributes, "assembly_format": text}
    return operation(rules=rules, reads=("src",))(type(name.title().replace("_", "") + "Op", (DialectOp,), fields))


_ALONG = f"{_SOURCES} `cum_dims` `=` $cum_dims `reverse` `=` $reverse `->` type($result)"
_SCAN: dict[str, Any] = {"cum_dims": prop_def(NUMBERS), "reverse": prop_def(BOOL)}
_EXTREME = {**_SCAN, "propagate_nan": opt_prop_def(BOOL)}
FlipOp = _function("flip", "An axis reversed.", rules=[reads(1)],
                   text=f"{_SOURCES} `flip_axis` `=` $flip_axis `->` type($result)",
                   flip_axis=prop_def(NUMBER))
InterleaveOp = _function("interleave", "The elements of two tensors in turn.", rules=[interleaves])
SCANS = tuple(_function(f"cum{name}", doc, text=_ALONG, rules=[reads(1), of_types(types, types), scans], **attributes)
              for name, types, doc, attributes in (
    ("sum", (*ALL_NUMBERS, *SMALL_FLOATS), "Sums so far.", _SCAN), ("prod", ALL_NUMBERS, "Products so far.", _SCAN),
    ("max", ALL_NUMBERS, "Largest so far.", _EXTREME), ("min", ALL_NUMBERS, "Smallest so far.", _EXTREME)))
SortOp = _function(
    "sort", "An axis sorted.", rules=[reads(1), sorts], descending=prop_def(BOOL), sort_axis=prop_def(NUMBER),
    text="attr-dict `ins` `(` $src `:` type($src) `)` `descending` `=` $descending `sort_axis` `=` $sort_axis"
         " (`->` type($result)^)?")
_HALF_OR_SINGLE = (f16, f32)
_ROUNDED = of_types(_HALF_OR_SINGLE, _HALF_OR_SINGLE)
_PLAIN = tuple(_function(name, doc, rules=rules) for name, doc, rules in (
    ("isinf", "Whether each element is infinite.", (reads(1), of_types(FLOATS, (i1,)), one_rank)),
    ("isnan", "Whether each element is a NaN.", (reads(1), of_types(FLOATS, (i1,)), one_rank)),
    ("isfinite", "Whether each element is finite.", (reads(1), of_types(FLOATS, (i1,)), one_rank)),
    ("erfinv", "The inverse of erf.", (reads(1), _ROUNDED, one_tensor_type)),
    ("hypot", "The hypotenuse.", (of_types(FLOATS, FLOATS), hypotenuse)),
    ("nextafter", "The next float towards another.", (reads(2), _ROUNDED, one_tensor_type)),
    ("cyl_bessel_i0", "The modified Bessel function of order 0.", (reads(1), _ROUNDED, one_tensor_type))))
SignBitOp = _function("signbit", "Whether each element has its sign set.", text=None,
                      rules=[reads(1), of_types(_HALF_OR_SINGLE, (i1, i8)), one_tensor_shape])


@operation(rules=[deinterleaves], reads=("src",))
class DeinterleaveOp(DialectOp):
    """The elements at even places (channel 0), at odd ones (channel 1), or both."""

    name = "hfusion.deinterleave"
    src = operand_def(TensorType)
    channelIndex = prop_def(NUMBER)
    result = var_result_def(TensorType)

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Read ``%a channel<0> : T -> T``."""
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
        """Write the same."""
        index = self.channelIndex.value.data
        printer.print_string(" ")
        printer.print_ssa_value(self.src)
        printer.print_string(f" channel<{'all' if index < 0 else index}>")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)
        printer.print_string(" -> ")
        printer.print_list(self.result, lambda value: printer.print_attribute(value.type))


class _Product(DialectOp):
    """Base of the products with twice the bits; text has one type for all."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Read ``%a, %b : T``."""
        sources = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.build(operands=[parser.resolve_operand(source, type_) for source in sources], result_types=[type_, type_],
                         attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Write the same."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)


@operation(rules=[halves], reads=("lhs", "rhs"))
class MulExtOp(_Product):
    """Low and high half of signed products."""

    name = "hfusion.mulext"
    lhs = operand_def()
    rhs = operand_def()
    low = result_def()
    high = result_def()


@operation(rules=[halves], reads=("lhs", "rhs"))
class MulExtUIOp(_Product):
    """Low and high half of unsigned products."""

    name = "hfusion.mulextui"
    lhs = operand_def()
    rhs = operand_def()
    low = result_def()
    high = result_def()


@operation(rules=[fills_its_bins], reads=("input", "mask"))
class HistogramOp(DialectOp):
    """How often each number below a bound occurs, where a mask is set."""

    name = "hfusion.histogram"
    input = operand_def()
    num_bins = prop_def(IntegerAttr[I64])
    mask = opt_operand_def()
    output = result_def()
    assembly_format = ("$input `,` $num_bins (`,` $mask^)? attr-dict `:` type($input) (`,` type($mask)^)? `->` type($output)")


@operation(reads=("args_",), seen=True)
class PrintOp(DialectOp):
    """Print a value behind a text."""

    name = "hfusion.print"
    prefix = prop_def(StringAttr)
    hex = prop_def(BOOL)
    args_ = var_operand_def()
    assembly_format = "$prefix attr-dict $args_ `:` type($args_)"


@operation(reads=("args_",), seen=True)
class AssertOp(DialectOp):
    """Stop with a text where a value does not hold."""

    name = "hfusion.assert"
    msg = prop_def(StringAttr)
    args_ = var_operand_def()
    assembly_format = "$msg attr-dict $args_ `:` type($args_)"


@operation(seen=True)
class BarrierOp(DialectOp):
    """Wait for everything before."""

    name = "hfusion.barrier"
    assembly_format = "attr-dict"


@operation(seen=True)
class SymbolicDimOp(DialectOp):
    """A size that has a name."""

    name = "hfusion.symbolic_dim"
    symbolName = prop_def(SymbolNameConstraint())
    result = result_def()
    assembly_format = "$symbolName attr-dict `:` type($result)"


_ENUMS = {"cache": OptPropertyDef(base(CacheModifierAttr)), "evict": OptPropertyDef(base(EvictionPolicyAttr))}
"""The properties whose words are this dialect's own."""


def _as_in_hivm(name: str, cls: type[DialectOp], *rules: Rule,
                counted: Count | None = None) -> type[DialectOp]:
    """An op that has the operands, rules and text of the one of HIVM, and rules of its own, and no pipe."""
    theirs = cls.get_irdl_definition()
    definition = replace(theirs, name=f"hfusion.{name}",
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


def _masked(op: Any) -> None:
    if op.mask is None or op.other is None:
        fail("needs a mask and what stands where it is not set")


_MIRRORED = (_as_in_hivm("indirect_load", hivm.IndirectLoadOp, _masked, counted=lambda operands: (1,) * operands), *(
    _as_in_hivm(name, cls) for name, cls in (
        ("gather_load", hivm.GatherLoadOp), ("scatter_store", hivm.ScatterStoreOp), ("indirect_store", hivm.IndirectStoreOp),
        ("stride_load", hivm.StrideLoadOp), ("stride_store", hivm.StrideStoreOp),
        ("embedding_gather", hivm.EmbeddingGatherOp), ("gatherT", hivm.GatherTOp), ("index_put", hivm.IndexPutOp),
        ("scatterT", hivm.ScatterTOp))))
FUNCTIONS: tuple[type[DialectOp], ...] = (
    FlipOp, InterleaveOp, *SCANS, SortOp, *_PLAIN, SignBitOp, DeinterleaveOp, MulExtOp, MulExtUIOp, HistogramOp, PrintOp,
    AssertOp, BarrierOp, SymbolicDimOp, *_MIRRORED)
