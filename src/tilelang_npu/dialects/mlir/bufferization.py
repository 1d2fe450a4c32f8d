"""bufferization in the syntax of LLVM 19.

AscendNPU-IR is built on LLVM 19.1.7. xDSL follows a newer MLIR, in which ``bufferization.to_tensor`` states both types and
``to_memref`` is called ``to_buffer``.
"""

from __future__ import annotations

from typing_extensions import Self
from xdsl.dialects import bufferization
from xdsl.dialects.builtin import (
    MemRefType,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, opt_result_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilelang_npu.dialects.ir.declaration import (
    DialectOp,
    OfClass,
    accept_all,
    extend_dialect,
    fail,
    operation,
    replace_rules,
    require,
)
from tilelang_npu.dialects.ir.mlir_dtypes import element_type
from tilelang_npu.dialects.mlir.rules import may_have_same_shape, verify_dynamic_sizes

MEMREF = OfClass((MemRefType, UnrankedMemRefType), "ranked or unranked memref of any type values")
TENSOR = OfClass((TensorType, UnrankedTensorType), "tensor of any type values")


def _tensor_of(memref: Attribute) -> Attribute:
    if isinstance(memref, MemRefType):
        return TensorType(memref.element_type, memref.shape)
    assert isinstance(memref, UnrankedMemRefType)
    return UnrankedTensorType(memref.element_type)


def _parse_units(parser: Parser, *words: str) -> dict[str, Attribute]:
    return {word: UnitAttr() for word in words if parser.parse_optional_keyword(word) is not None}


@operation(reads=("memref",))
class ToTensorOp(DialectOp):
    """Yields the contents of a buffer as a tensor: ``bufferization.to_tensor %m restrict writable : memref<4xf32>``."""

    name = "bufferization.to_tensor"
    memref = operand_def(MEMREF)
    tensor = result_def(TENSOR)
    restrict = opt_prop_def(UnitAttr)
    writable = opt_prop_def(UnitAttr)

    def __init__(self, memref: SSAValue | Operation, *, restrict: bool = False, writable: bool = False) -> None:
        source = SSAValue.get(memref)
        IRDLOperation.__init__(
            self, operands=[source], result_types=[_tensor_of(source.type)],
            properties={"restrict": UnitAttr() if restrict else None, "writable": UnitAttr() if writable else None})

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the op in its custom form; accepts and ignores the tensor's type, which newer versions of MLIR print."""
        memref = parser.parse_unresolved_operand()
        properties = _parse_units(parser, "restrict", "writable")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if parser.parse_optional_keyword("to") is not None:
            parser.parse_type()
        if not isinstance(type_, (MemRefType, UnrankedMemRefType)):
            parser.raise_error("expected a memref type")
        return cls.build(operands=[parser.resolve_operand(memref, type_)], result_types=[_tensor_of(type_)],
                         properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        _print(printer, self, self.memref, [word for word in ("restrict", "writable") if word in self.properties],
               self.memref.type)

    def verify_(self) -> None:
        if self.tensor.type != _tensor_of(self.memref.type):
            fail(f"result type '{self.tensor.type}' is not the tensor of '{self.memref.type}'")


@operation(side_effects=True)
class ToMemrefOp(DialectOp):
    """Yields the buffer that holds a tensor: ``bufferization.to_memref %t : memref<4xf32>``."""

    name = "bufferization.to_memref"
    tensor = operand_def(TENSOR)
    memref = result_def(MEMREF)
    read_only = opt_prop_def(UnitAttr)

    def __init__(self, tensor: SSAValue | Operation, type_: Attribute, *, read_only: bool = False) -> None:
        IRDLOperation.__init__(self, operands=[tensor], result_types=[type_],
                               properties={"read_only": UnitAttr() if read_only else None})

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the op in its custom assembly form."""
        tensor = parser.parse_unresolved_operand()
        properties = _parse_units(parser, "read_only")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, (MemRefType, UnrankedMemRefType)):
            parser.raise_error("expected a memref type")
        return cls.build(operands=[parser.resolve_operand(tensor, _tensor_of(type_))], result_types=[type_],
                         properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        _print(printer, self, self.tensor, ["read_only"] if self.read_only is not None else [], self.memref.type)

    def verify_(self) -> None:
        if self.tensor.type != _tensor_of(self.memref.type):
            fail(f"operand type '{self.tensor.type}' is not the tensor of '{self.memref.type}'")


@operation(reads=("source",), writes=("dest",))
class MaterializeInDestinationOp(DialectOp):
    """Writes a tensor into a destination, which is a tensor or a buffer of any layout."""

    name = "bufferization.materialize_in_destination"
    source = operand_def(TENSOR)
    dest = operand_def(OfClass((*TENSOR.classes, *MEMREF.classes), "tensor or memref"))
    result = opt_result_def(TENSOR)
    restrict = opt_prop_def(UnitAttr)
    writable = opt_prop_def(UnitAttr)
    assembly_format = (
        "$source `in` (`restrict` $restrict^)? (`writable` $writable^)? $dest attr-dict `:` functional-type(operands, results)"
    )

    def __init__(self, source: SSAValue | Operation, dest: SSAValue | Operation, *, restrict: bool = False,
                 writable: bool = False) -> None:
        type_ = SSAValue.get(dest).type
        IRDLOperation.__init__(
            self, operands=[source, dest], result_types=[type_ if isinstance(type_, TensorType) else None],
            properties={"restrict": UnitAttr() if restrict else None, "writable": UnitAttr() if writable else None})


    def verify_(self) -> None:
        source, dest = self.source.type, self.dest.type
        on_tensor = isinstance(dest, TENSOR.classes)
        require(not on_tensor or self.result is not None, "tensor 'dest' implies exactly one tensor result")
        require(on_tensor or self.result is None, "memref 'dest' implies zero results")
        require(self.result is None or self.result.type == dest, "result and 'dest' types must match")
        require(not on_tensor or self.restrict is None, "'restrict' must be specified if and only if the destination is of"
                                                        " memref type")
        require(on_tensor != (self.writable is not None), "'writable' must be specified if and only if the destination is of"
                                                          " memref type")
        require(element_type(source) == element_type(dest),
                "failed to verify that all of {source, dest} have same element type")
        require(may_have_same_shape(source, dest), f"source '{source}' and destination '{dest}' have incompatible shapes")


def _verify_alloc_tensor(op: bufferization.AllocTensorOp) -> None:
    type_ = op.tensor.type
    shape = type_.get_shape() if isinstance(type_, TensorType) else ()
    if op.copy is None:
        verify_dynamic_sizes(op.dynamic_sizes, shape)
        return
    require(not op.dynamic_sizes, "dynamic sizes not needed when copying a tensor")
    require(op.copy.type == type_, "expected that `copy` and return type match")


def _print(printer: Printer, op: Operation, operand: SSAValue, words: list[str], type_: Attribute) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(operand)
    for word in words:
        printer.print_string(f" {word}")
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(type_)


Bufferization = extend_dialect(
    bufferization.Bufferization, ToTensorOp, ToMemrefOp, MaterializeInDestinationOp,
    replace_rules(bufferization.CloneOp, accept_all, input=MEMREF, output=MEMREF),
    rules={bufferization.AllocTensorOp: _verify_alloc_tensor})
