"""Ops of MLIR's own dialects in the spelling of LLVM 19, where xDSL has none or another one.

AscendNPU-IR is built on LLVM 19.1.7. xDSL follows a newer MLIR (``bufferization.to_tensor`` names both types there,
``to_memref`` is ``to_buffer``) and lacks the custom form of some memref ops. The reader and the writer look here first.
"""

from __future__ import annotations

from functools import cache

from xdsl.dialects.bufferization import Bufferization
from xdsl.dialects.builtin import MemRefType, TensorType, UnitAttr
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, result_def
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.declaration import DialectOp, OfClass, operation

_CAST = "$source attr-dict `:` type($source) `to` type($dest)"
FORMATS = {
    "memref.copy": "$source `,` $destination attr-dict `:` type($source) `to` type($destination)",
    "memref.cast": _CAST,
    "memref.memory_space_cast": _CAST,
    "bufferization.to_tensor": "$memref (`restrict` $restrict^)? (`writable` $writable^)? attr-dict `:` type($memref)",
}
"""Assembly formats of LLVM 19 by op name."""


@cache
def format_of(op_type: type[Operation]) -> FormatProgram | None:
    """The compiled LLVM 19 format of an op class; None where xDSL's own is right."""
    text = FORMATS.get(op_type.name)
    if text is None or not issubclass(op_type, IRDLOperation):
        return None
    return FormatProgram.from_str(text, op_type.get_irdl_definition())


@operation()
class ToMemrefOp(DialectOp):
    """The buffer of a tensor, under its name in LLVM 19."""

    name = "bufferization.to_memref"
    tensor = operand_def(OfClass((TensorType,), "tensor"))
    memref = result_def(OfClass((MemRefType,), "memref"))
    read_only = opt_prop_def(UnitAttr)

    assembly_format = "$tensor (`read_only` $read_only^)? attr-dict `:` type($memref)"

    def __init__(self, tensor: SSAValue | Operation, type_: MemRefType) -> None:
        IRDLOperation.__init__(self, operands=[tensor], result_types=[type_])

    def verify_(self) -> None:
        tensor, memref = self.tensor.type, self.memref.type
        assert isinstance(tensor, TensorType)
        assert isinstance(memref, MemRefType)
        if tensor.get_shape() != memref.get_shape() or tensor.element_type != memref.element_type:
            msg = f"operand type '{tensor}' and result type '{memref}' are not of one shape and element type"
            raise VerifyException(msg)


Bufferization19 = Dialect("bufferization", [*Bufferization.operations, ToMemrefOp], [*Bufferization.attributes])
