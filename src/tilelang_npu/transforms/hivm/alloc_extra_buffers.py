"""Allocates the scratch buffers that the library code of vector operations needs, so that ``plan-memory`` places them.

Runs before planning: hidden scratch takes bytes and can overflow UB like any other buffer. The sizes are those of
AscendNPU-IR's pass of the same name (docs/hivm.md#scratch).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import SCRATCH
from tilelang_npu.analysis.scratch_sizes import scratch_elements, scratch_type
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.destination_style import StructuredOp, flatten


def _with_scratch(op: StructuredOp, scratch: SSAValue) -> Operation:
    """Returns the same operation with a ``temp_buffer`` operand."""
    operands = [[scratch] if name == "temp_buffer" else list(flatten(getattr(op, name)))
                for name, _ in type(op).get_irdl_definition().operands]
    properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
    made = type(op).build(operands=operands, result_types=[[]], properties=properties, attributes=dict(op.attributes))
    made.location = op.location
    return made


@dataclass(frozen=True)
class AllocExtraBuffers(ModulePass):
    """Adds a scratch buffer in UB as ``temp_buffer`` operand to each vector operation whose library code needs one."""

    name = "alloc-extra-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            count = scratch_elements(inner)
            if count and not flatten(getattr(inner, "temp_buffer", None)):
                assert isinstance(inner, StructuredOp)
                kind = MemRefType(scratch_type(inner), [count], memory_space=hivm.address_space("ub"))
                scratch = memref.AllocOp([], [], kind)
                scratch.location = inner.location
                scratch.attributes[SCRATCH] = UnitAttr()
                scratch.memref.name_hint = f"scratch_{inner.name.rsplit('.', 1)[-1]}"
                Rewriter().insert_op(scratch, InsertPoint.before(inner))
                Rewriter().replace_op(inner, _with_scratch(inner, scratch.memref), [])
