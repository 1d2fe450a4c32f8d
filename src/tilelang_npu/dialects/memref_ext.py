"""memref_ext: buffers in the workspace, a part of GM that the launch allocates for the kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, opt_operand_def, result_def, traits_def, var_operand_def

from tilelang_npu.dialects.ir.declaration import DialectOp, OfClass, fail, operation
from tilelang_npu.dialects.ir.effects import Allocates

MEMREF = OfClass((MemRefType,), "memref of any type values")


@operation(untouched=("workspaceArg",))
class AllocWorkspaceOp(DialectOp):
    """Allocates a buffer in the kernel's workspace; several offsets are the slots of a multi-buffer."""

    name = "memref_ext.alloc_workspace"
    workspaceArg = opt_operand_def(MEMREF)
    dynamicSize = var_operand_def(IndexType())
    offset = var_operand_def(IndexType())
    memref = result_def(MEMREF)
    traits = traits_def(Allocates())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "`(` $dynamicSize `)` (`from` $workspaceArg^)? (`offset` `=` `[` $offset^ `]`)? attr-dict"
        " `:` (`from` type($workspaceArg)^ `to`)? type($memref)"
    )

    def __init__(self, type_: MemRefType, *, workspace: SSAValue | Operation | None = None,
                 dynamic_sizes: Sequence[SSAValue | Operation] = (), offsets: Sequence[SSAValue | Operation] = ()) -> None:
        """Builds the op.

        Args:
            type_: the type of the buffer.
            workspace: the kernel argument that is the workspace.
            dynamic_sizes: one index value per dynamic axis of the buffer.
            offsets: the byte offsets of the buffer in the workspace, as index values; empty until a pass has assigned offsets.
        """
        IRDLOperation.__init__(self, operands=[workspace, list(dynamic_sizes), list(offsets)], result_types=[type_])

    def verify_(self) -> None:
        type_ = self.memref.type
        assert isinstance(type_, MemRefType)
        if len(self.dynamicSize) != type_.get_shape().count(DYNAMIC_INDEX):
            fail("dimension operand count does not equal memref dynamic dimension count")


MemrefExt = Dialect("memref_ext", [AllocWorkspaceOp], [])
