"""The functions that the host asks about a kernel (docs/hivm.md#arguments): bytes of workspace per block, kind of task."""

from __future__ import annotations

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp, i8
from xdsl.ir import Block, Region

from tilelang_npu.dialects import hacc

TASK_TYPES = {"AIV": 10, "AIC": 20}  # MIX with one Vector core per Cube core is 31, with two 32


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
    """``<kernel>_infer_workspace_shape_function() -> index``: bytes of workspace that one block needs."""
    return _host_function(kernel, _WORKSPACE, IndexType(), nbytes)


def task_type_function(kernel: str, task: int) -> func.FuncOp:
    """``<kernel>_infer_task_type_function() -> i8``: which cores a block takes."""
    return _host_function(kernel, _TASK_TYPE, i8, task)


def _present(module: ModuleOp, kernel: str, kind: str) -> func.FuncOp | None:
    return next((op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == f"{kernel}_{kind}"), None)


def own_workspace_function(module: ModuleOp, kernel: str) -> func.FuncOp | None:
    """The function by which a module says already how many bytes of workspace a block of a kernel needs."""
    return _present(module, kernel, _WORKSPACE)


def own_task_type_function(module: ModuleOp, kernel: str) -> func.FuncOp | None:
    """The function by which a module says already which cores a block of a kernel takes."""
    return _present(module, kernel, _TASK_TYPE)
