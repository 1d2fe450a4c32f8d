"""Builds and finds the functions that the host calls to learn about a kernel (docs/hivm.md#arguments).

One returns the bytes of workspace per block, the other the task type: the kinds of cores that execute a block.
"""

from __future__ import annotations

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp, i8
from xdsl.ir import Block, Region

from tilelang_npu.dialects import hacc

TASK_TYPES = {"AIV": 10, "AIC": 20}
"""The task types of kernels that run on one kind of core."""
MIXED_TASK = 30
"""The task type of a kernel of both kinds of cores is this number plus the number of Vector cores of a block.

AscendNPU-IR accepts 31 and 32.
"""

_WORKSPACE, _TASK_TYPE = "infer_workspace_shape_function", "infer_task_type_function"


def _host_function(kernel: str, kind: str, result: IndexType | IntegerType, value: int) -> func.FuncOp:
    block = Block()
    constant = arith.ConstantOp(IntegerAttr(value, result))
    block.add_ops([constant, func.ReturnOp(constant.result)])
    made = func.FuncOp(f"{kernel}_{kind}", ([], [result]), Region(block))
    made.attributes["hacc.function_kind"] = hacc.FunctionKindAttr("HOST")
    made.attributes["hacc.host_func_type"] = hacc.HostFuncTypeAttr(kind)
    return made


def workspace_function(kernel: str, nbytes: int) -> func.FuncOp:
    """Builds ``<kernel>_infer_workspace_shape_function() -> index``, which returns the bytes of workspace that one block needs.

    Args:
        kernel: the name of the kernel.
        nbytes: the bytes of workspace of one block.
    """
    return _host_function(kernel, _WORKSPACE, IndexType(), nbytes)


def task_type_function(kernel: str, task: int) -> func.FuncOp:
    """Builds ``<kernel>_infer_task_type_function() -> i8``, which returns the task type of a kernel.

    Args:
        kernel: the name of the kernel.
        task: the task type: one of ``TASK_TYPES``, or ``MIXED_TASK`` plus the number of Vector cores of a block.
    """
    return _host_function(kernel, _TASK_TYPE, i8, task)


def _find_function(module: ModuleOp, kernel: str, kind: str) -> func.FuncOp | None:
    return next((op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == f"{kernel}_{kind}"), None)


def own_workspace_function(module: ModuleOp, kernel: str) -> func.FuncOp | None:
    """Returns the function of ``workspace_function`` that a module already has for a kernel; None if the module has none."""
    return _find_function(module, kernel, _WORKSPACE)


def own_task_type_function(module: ModuleOp, kernel: str) -> func.FuncOp | None:
    """Returns the function of ``task_type_function`` that a module already has for a kernel; None if the module has none."""
    return _find_function(module, kernel, _TASK_TYPE)
