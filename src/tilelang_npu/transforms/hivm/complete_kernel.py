"""Adds the attributes, operations and functions that the toolchain expects in a finished module.

The module receives its target and its core type. Each kernel receives an operation that resets the mask state at its start, a
barrier of all pipes at its end, and a host function that returns the kernel's task type. Runs after all passes that insert
operations. The attributes and host functions are described in docs/hivm.md#arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.analysis.cores import core_of_function
from tilelang_npu.dialects import hacc, hivm
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.transforms.infra.host_functions import TASK_TYPES, own_task_type_function, task_type_function
from tilelang_npu.transforms.infra.pass_marks import is_finished, remove_marks_of_passes, sets_mask


@dataclass(frozen=True)
class CompleteKernel(ModulePass):
    """Adds what the toolchain expects: target, core type, mask reset, final barrier, and the task type's host function.

    Attributes:
        chip: the name of the chip that the module is compiled for.
    """

    name = "complete-kernel"
    chip: str = chips.DEFAULT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = chips.chip(self.chip)
        kernels = [f for f in op.ops if isinstance(f, func.FuncOp) and "hacc.entry" in f.attributes]
        cores = {core_of_function(kernel) or "AIV" for kernel in kernels}
        op.attributes["hacc.target"] = hacc.TargetAttr(chip.target_name)
        if cores:
            kind = cores.pop() if len(cores) == 1 else "MIX"
            op.attributes["hivm.module_core_type"] = hivm.ModuleCoreTypeAttr(kind)
        for kernel in kernels:
            first = kernel.body.block.first_op
            assert first is not None
            remove_marks_of_passes(kernel)
            finished, begun = is_finished(kernel), sets_mask(kernel)
            if not begun:
                mask = hivm.SetMaskNormOp()
                mask.location = kernel.location
                Rewriter().insert_op(mask, InsertPoint.before(first))
            if not finished:
                last, end = kernel.body.block.last_op, hivm.PipeBarrierOp("ALL")
                assert last is not None
                end.location = kernel.location
                set_remark(end, Remark(self.name, text="the kernel ends after all pipes are done",
                                       facts=Waits(source="ALL", target="ALL")))
                Rewriter().insert_op(end, InsertPoint.before(last))
            name, core = kernel.sym_name.data, core_of_function(kernel) or "AIV"
            if (core in TASK_TYPES and "hivm.part_of_mix" not in kernel.attributes
                    and own_task_type_function(op, name) is None):
                Rewriter().insert_op(task_type_function(name, TASK_TYPES[core]), InsertPoint.before(kernel))
