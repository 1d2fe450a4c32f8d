"""Assembly formats for ops of MLIR's own dialects whose custom form xDSL lacks or prints incompletely."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import FormatProgram

_CAST = "$source attr-dict `:` type($source) `to` type($dest)"
FORMATS = {
    "memref.copy": "$source `,` $destination attr-dict `:` type($source) `to` type($destination)",
    "memref.cast": _CAST,
    "memref.memory_space_cast": _CAST,
    "memref.rank": "$source attr-dict `:` type($source)",
    "memref.extract_aligned_pointer_as_index": "$source attr-dict `:` type($source) `->` type($aligned_pointer)",
    "vector.print": "$source attr-dict `:` type($source)",
    "tensor.empty": "`(` $dynamic_sizes `)` attr-dict `:` type($tensor)",
}
"""Assembly formats of ops that xDSL prints in generic form, by op name."""

GENERIC = frozenset({"llvm.func", "llvm.mlir.global"} | {f"llvm.{name}" for name in (
    "add", "alloca", "and", "ashr", "call", "extractvalue", "fcmp", "getelementptr", "icmp", "inline_asm", "insertvalue",
    "load", "lshr", "mlir.constant", "mul", "sdiv", "sext", "shl", "srem", "store", "sub", "trunc", "udiv", "urem", "xor")})
"""Ops that are printed in generic form, because xDSL's hand-written printers omit some of their properties."""


@cache
def format_of(op_type: type[Operation]) -> FormatProgram | None:
    """Returns the compiled format that ``FORMATS`` has for an op class; None if ``FORMATS`` has no format for the class."""
    text = FORMATS.get(op_type.name)
    if text is None or not issubclass(op_type, IRDLOperation):
        return None
    return FormatProgram.from_str(text, op_type.get_irdl_definition())


@cache
def has_custom_form(op_type: type[Operation]) -> bool:
    """Whether the printer can print ops of this class in a custom form; otherwise it prints the generic form."""
    return format_of(op_type) is not None or (op_type.print is not Operation.print and op_type.name not in GENERIC)
