"""Marks the arguments of another tool's kernel that the toolchain supplies, and adds those that are missing.

Modules of other tools mark these arguments by attributes of the function instead of the argument, or lack the arguments
(docs/hivm.md#arguments). A kernel that uses both cores needs the base address of the flags. A kernel with workspaces needs the
pointer to the workspaces. Missing arguments are inserted before the others, in the toolchain's order. Runs after
``assign-cores``, only on modules that were not lowered from a tile kernel, since lowered kernels have the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, FunctionType, MemRefType, ModuleOp, i8, i64
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from tilelang_npu.analysis.cores import is_mixed
from tilelang_npu.analysis.toolchain_arguments import FFTS, LOCK, WORKSPACE, argument_roles, kernels
from tilelang_npu.dialects import hacc, hivm, memref_ext


def _add_missing_arguments(function: func.FuncOp) -> None:
    mixed = is_mixed(function)
    roles = argument_roles(function)
    present = {role.data for each in roles if isinstance(role := each.get("hacc.arg_type"), hacc.ArgTypeAttr)}
    wanted = [FFTS] if mixed else []
    if any(isinstance(op, memref_ext.AllocWorkspaceOp) for op in function.walk()):
        wanted.append(WORKSPACE)
    missing = [role for role in (FFTS, WORKSPACE) if role in wanted and role not in present]
    block = function.body.block
    for name in missing:
        type_: Attribute = i64 if name == FFTS else MemRefType(i8, [DYNAMIC_INDEX], memory_space=hivm.address_space("gm"))
        place = 0 if name == FFTS else sum(role in (*present, *missing) for role in (FFTS, LOCK))
        block.insert_arg(type_, place).name_hint = "ffts" if name == FFTS else "workspace"
        roles.insert(place, {"hacc.arg_type": hacc.ArgTypeAttr(name)})
    function.properties["function_type"] = FunctionType.from_lists(
        [argument.type for argument in block.args], list(function.function_type.outputs.data))
    if any(roles):
        function.properties["arg_attrs"] = ArrayAttr([DictionaryAttr(each) for each in roles])


@dataclass(frozen=True)
class AddToolchainArguments(ModulePass):
    """Marks the kernel arguments that the toolchain supplies (flags, workspace), and adds those that are missing."""

    name = "add-toolchain-arguments"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in kernels(op):
            _add_missing_arguments(function)
