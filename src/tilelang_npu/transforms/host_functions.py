"""The functions that the host asks about a kernel (hivm.md 1.4): bytes of workspace per block, kind of task."""

from __future__ import annotations

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i8
from xdsl.ir import Block, Region

from tilelang_npu.dialects import hacc

TASK_TYPES = {"AIV": 10, "AIC": 20}  # MIX with one Vector core per Cube core is 31, with two 32


def _host_function(name: str, kind: str, result: IndexType | IntegerType, value: int) -> func.FuncOp:
    block = Block()
    constant = arith.ConstantOp(IntegerAttr(value, result))
    block.add_ops([constant, func.ReturnOp(constant.result)])
    made = func.FuncOp(name, ([], [result]), Region(block))
    made.attributes["hacc.function_kind"] = hacc.FunctionKindAttr("HOST")
    made.attributes["hacc.host_func_type"] = hacc.HostFuncTypeAttr(kind)
    return made


def workspace_function(kernel: str, nbytes: int) -> func.FuncOp:
    """``<kernel>_infer_workspace_shape_function() -> index``: bytes of workspace that one block needs."""
    kind = "infer_workspace_shape_function"
    return _host_function(f"{kernel}_{kind}", kind, IndexType(), nbytes)


def task_type_function(kernel: str, task: int) -> func.FuncOp:
    """``<kernel>_infer_task_type_function() -> i8``: which cores a block takes."""
    kind = "infer_task_type_function"
    return _host_function(f"{kernel}_{kind}", kind, i8, task)
