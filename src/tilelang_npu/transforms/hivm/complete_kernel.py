"""Say what the toolchain wants to know of a finished module: target, core type, mask state, last barrier, host
functions.

Runs last. The attributes and helpers are those of docs/hivm.md#arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import hacc, hivm
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.transforms.hivm.host_functions import TASK_TYPES, own_task_type_function, task_type_function
from tilelang_npu.transforms.ir.treated import begins, is_finished, release


def _core_type(function: func.FuncOp) -> str:
    kind = function.attributes.get("hivm.func_core_type")
    return kind.data if isinstance(kind, hivm.FuncCoreTypeAttr) else "AIV"


@dataclass(frozen=True)
class CompleteKernel(ModulePass):
    """The pass; ``chip`` names the chip that the module is for."""

    name = "complete-kernel"
    chip: str = chips.DEFAULT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = chips.chip(self.chip)
        kernels = [f for f in op.ops if isinstance(f, func.FuncOp) and "hacc.entry" in f.attributes]
        cores = {_core_type(kernel) for kernel in kernels}
        op.attributes["hacc.target"] = hacc.TargetAttr(chip.hivm_target or chip.name)
        if cores:
            kind = cores.pop() if len(cores) == 1 else "MIX"
            op.attributes["hivm.module_core_type"] = hivm.ModuleCoreTypeAttr(kind)
        for kernel in kernels:
            first = kernel.body.block.first_op
            assert first is not None
            release(kernel)
            finished, begun = is_finished(kernel), begins(kernel)
            if not begun:
                mask = hivm.SetMaskNormOp()
                mask.location = kernel.location
                Rewriter().insert_op(mask, InsertPoint.before(first))
            if not finished:
                last, end = kernel.body.block.last_op, hivm.PipeBarrierOp("ALL")
                assert last is not None
                end.location = kernel.location
                set_remark(end, Remark(self.name, text="the kernel ends when all is done",
                                       facts=Waits(source="ALL", target="ALL")))
                Rewriter().insert_op(end, InsertPoint.before(last))
            name, core = kernel.sym_name.data, _core_type(kernel)
            told = own_task_type_function(op, name) is not None  # by whoever wrote the module
            if core in TASK_TYPES and "hivm.part_of_mix" not in kernel.attributes and not told:
                Rewriter().insert_op(task_type_function(name, TASK_TYPES[core]), InsertPoint.before(kernel))
