"""The ops of memref whose rules in xDSL are narrower, or fewer, than those of LLVM 19, and tables of constants."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I64,
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
)
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.ir.declaration import DialectOp, OfClass, extend_dialect, operation, replace_rules
from tilelang_npu.dialects.mlir.memref_views import VIEWS
from tilelang_npu.dialects.mlir.rules import fitting_shapes, require


def is_identity(kind: MemRefType[Attribute]) -> bool:
    """Whether the elements lie row by row from the start, with or without a layout that says so."""
    if isinstance(kind.layout, NoneAttr):
        return True
    strides = kind.get_strides()
    return (isinstance(kind.layout, StridedLayoutAttr) and strides is not None and None not in strides
            and kind.get_offset() == 0 and strides == MemRefType(kind.element_type, kind.shape).get_strides())


def _reinterpretable(op: Any) -> None:
    for static, dynamic, word in ((op.static_offsets, op.offsets, "offset"), (op.static_sizes, op.sizes, "size"),
                                  (op.static_strides, op.strides, "stride")):
        markers = list(static.get_values()).count(DYNAMIC_INDEX)
        if markers != len(dynamic):
            msg = f"expected {markers} dynamic {word} values but got {len(dynamic)}"
            raise VerifyException(msg)
    source, result = op.source.type, op.result.type
    for word, one, other in (("memory spaces", source.memory_space, result.memory_space),
                             ("element types", source.element_type, result.element_type)):
        if one != other:
            msg = f"different {word} specified for source type '{source}' and result memref type '{result}'"
            raise VerifyException(msg)
    shape = result.get_shape()
    for word, static, rank in (("offset", op.static_offsets, 1), ("size", op.static_sizes, len(shape)),
                               ("stride", op.static_strides, len(shape))):
        if len(static) != rank:
            msg = f"expected {rank} {word} values but got {len(static)}"
            raise VerifyException(msg)
    _agree("size", shape, op.static_sizes)
    strides, offset = result.get_strides(), result.get_offset()
    if strides is None:
        msg = f"expected result type to have strided layout but found '{result}'"
        raise VerifyException(msg)
    _agree("offset", (offset,), op.static_offsets)
    _agree("stride", strides, op.static_strides)


def _agree(word: str, found: Any, stated: Any) -> None:
    """What the type says must be what the op says, where both are numbers."""
    for axis, (actual, expected) in enumerate(zip(found, stated.get_values(), strict=True)):
        if actual is not None and DYNAMIC_INDEX not in (actual, expected) and actual != expected:
            where = "" if word == "offset" else f" in dim = {axis}"
            msg = f"expected result type with {word} = {expected} instead of {actual}{where}"
            raise VerifyException(msg)


def _viewable(op: Any) -> None:
    source, result = op.source.type, op.result.type
    if len(source.get_shape()) != 1:
        msg = f"operand #0 must be 1D memref of 8-bit signless integer values, but got '{source}'"
        raise VerifyException(msg)
    for word, kind in (("base", source), ("result", result)):
        if not is_identity(kind):
            msg = f"unsupported map for {word} memref type '{kind}'"
            raise VerifyException(msg)
    if source.memory_space != result.memory_space:
        msg = f"different memory spaces specified for base memref type '{source}' and view memref type '{result}'"
        raise VerifyException(msg)
    if result.get_shape().count(DYNAMIC_INDEX) != len(op.sizes):
        msg = f"incorrect number of size operands for type '{result}'"
        raise VerifyException(msg)


@operation(side_effects=True)
class GlobalOp(DialectOp):
    """A buffer of the module that has a name: ``memref.global "private" constant @table : memref<2xi64> = dense<[1, 2]>``.

    Without a value it is declared here and defined elsewhere.
    """

    name = "memref.global"
    sym_name = prop_def(SymbolNameConstraint())
    sym_visibility = opt_prop_def(StringAttr)
    type = prop_def(MemRefType)
    initial_value = opt_prop_def()
    constant = opt_prop_def(UnitAttr)
    alignment = opt_prop_def(IntegerAttr[I64])
    traits = traits_def(SymbolOpInterface())

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Read the custom form."""
        visibility = parser.parse_optional_str_literal()
        constant = parser.parse_optional_keyword("constant") is not None
        name = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        initial: Attribute | None = None
        if parser.parse_optional_punctuation("=") is not None:
            if parser.parse_optional_keyword("uninitialized") is not None:
                initial = UnitAttr()
            elif isinstance(type_, MemRefType):
                parser.parse_keyword("dense")
                initial = parser.parse_dense_int_or_fp_elements_attr(TensorType(type_.element_type, type_.get_shape()))
            else:
                parser.raise_error("expected a memref type")
        attributes = parser.parse_optional_attr_dict()
        alignment = attributes.pop("alignment", None)
        return cls.build(attributes=attributes, properties={
            "sym_name": name, "type": type_, "initial_value": initial, "alignment": alignment,
            "sym_visibility": None if visibility is None else StringAttr(visibility),
            "constant": UnitAttr() if constant else None})

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        if self.sym_visibility is not None:
            printer.print_string(" ")
            printer.print_attribute(self.sym_visibility)
        printer.print_string(" " if self.constant is None else " constant ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        if isinstance(self.initial_value, UnitAttr):
            printer.print_string(" = uninitialized")
        elif isinstance(self.initial_value, DenseIntOrFPElementsAttr):
            printer.print_string(" = ")
            self.initial_value.print_without_type(printer)
        alignment = {} if self.alignment is None else {"alignment": self.alignment}
        printer.print_op_attributes({**self.attributes, **alignment})

    def verify_(self) -> None:
        kind = self.type
        if DYNAMIC_INDEX in kind.get_shape():
            msg = f"type should be static shaped memref, but got '{kind}'"
            raise VerifyException(msg)
        value = self.initial_value
        if isinstance(value, DenseIntOrFPElementsAttr):
            wanted = TensorType(kind.element_type, kind.get_shape())
            if value.type != wanted:
                msg = f"initial value expected to be of type '{wanted}', but was of type '{value.type}'"
                raise VerifyException(msg)
        elif value is not None and not isinstance(value, UnitAttr):
            msg = f"initial value should be a unit or elements attribute, but got {value}"
            raise VerifyException(msg)
        if self.alignment is not None and self.alignment.value.data.bit_count() != 1:
            msg = f"alignment attribute value {self.alignment.value.data} is not a power of 2"
            raise VerifyException(msg)


def _free(op: Any) -> None:
    """No rule but the types."""


def _names_a_global(op: Any) -> None:
    named = SymbolTable.lookup_symbol(op, op.name_)
    if not isinstance(named, GlobalOp):
        msg = f"'{op.name_.string_value()}' does not reference a valid global memref"
        raise VerifyException(msg)
    if named.type != op.memref.type:
        msg = (f"result type '{op.memref.type}' does not match type '{named.type}' of the global memref"
               f" @{named.sym_name.data}")
        raise VerifyException(msg)


ANY = OfClass((MemRefType, UnrankedMemRefType), "ranked or unranked memref of any type values")


def _reshapes(op: Any) -> None:
    source, shape, result = op.source.type, op.shape.type, op.result.type
    msg = ""
    if source.element_type != result.element_type:
        msg = "element types of source and destination memref types should be the same"
    elif not all(is_identity(kind) for kind in (source, result) if isinstance(kind, MemRefType)):
        msg = "source and destination memref types should have identity layout"
    elif len(shape.get_shape()) != 1 or not isinstance(shape.element_type, (IntegerType, IndexType)):
        msg = f"operand #1 must be 1D memref of signless integer or index values, but got '{shape}'"
    elif isinstance(result, MemRefType):
        length = shape.get_shape()[0]
        if length == DYNAMIC_INDEX:
            msg = "cannot use shape operand with dynamic length to reshape to statically-ranked memref type"
        elif length != len(result.get_shape()):
            msg = "length of shape operand differs from the result's memref rank"
    if msg:
        raise VerifyException(msg)


@operation(rules=[_reshapes])
class ReshapeOp(DialectOp):
    """A buffer seen in a shape that another one lists."""

    name = "memref.reshape"
    source = operand_def(ANY)
    shape = operand_def(MemRefType)
    result = result_def(ANY)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$source `(` $shape `)` attr-dict `:` functional-type(operands, results)"


def _indexed(op: Any) -> None:
    kind = op.memref.type
    require(len(op.indices) == kind.get_num_dims(), "invalid number of indices for accessed memref, expected "
                                                    f"{kind.get_num_dims()} but got {len(op.indices)}")
    value = op.value if isinstance(op, memref.StoreOp) else op.res
    require(value.type == kind.element_type, f"failed to verify that type of value matches element type of '{kind}'")


def _allocates(op: Any) -> None:
    kind = op.memref.type
    sizes, symbols = kind.get_shape().count(DYNAMIC_INDEX), 0
    require(len(op.dynamic_sizes) == sizes, "dimension operand count does not equal memref dynamic dimension count")
    if isinstance(kind.layout, StridedLayoutAttr):
        symbols = [*kind.layout.strides, kind.layout.offset].count(NoneAttr())
    elif isinstance(kind.layout, AffineMapAttr):
        symbols = kind.layout.data.num_symbols
    require(len(op.symbol_operands) == symbols, f"symbol operand count does not equal memref symbol count: expected {symbols},"
                                                f" got {len(op.symbol_operands)}")


def _has_axes(op: Any) -> None:
    kind = op.source.type
    require(not isinstance(kind, MemRefType) or kind.get_shape(),
            f"operand #0 must be unranked or non-0-ranked memref of any type values, but got '{kind}'")


def _copies(op: Any) -> None:
    source, target = op.source.type, op.destination.type
    require(source.element_type == target.element_type, "requires the same element type for all operands")
    require(fitting_shapes(source, target), "requires the same shape for all operands")


ReinterpretCastOp = replace_rules(memref.ReinterpretCastOp, _reinterpretable, source=ANY)
ViewOp = replace_rules(memref.ViewOp, _viewable)
GetGlobalOp = replace_rules(memref.GetGlobalOp, _names_a_global)
RankOp = replace_rules(memref.RankOp, _free, source=ANY)
LoadOp = replace_rules(memref.LoadOp, _indexed)
StoreOp = replace_rules(memref.StoreOp, _indexed)
CopyOp = replace_rules(memref.CopyOp, _copies, source=ANY, destination=ANY)
MemRef = extend_dialect(memref.MemRef, ReinterpretCastOp, ViewOp, GlobalOp, GetGlobalOp, ReshapeOp, RankOp, LoadOp, StoreOp, CopyOp,
                   replace_rules(memref.AllocOp, _allocates), replace_rules(memref.AllocaOp, _allocates), replace_rules(memref.DimOp, _has_axes),
                   *VIEWS)
