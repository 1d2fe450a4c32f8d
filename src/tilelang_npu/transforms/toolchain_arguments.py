"""Say of a foreign kernel what the passes ask: its core type, and which arguments the toolchain supplies.

Modules that other tools write leave the core type to be inferred, name the arguments of the toolchain by attributes of the
function instead of the argument, or have none (hivm.md 1.4). A kernel of both cores needs the base address of the flags, a
kernel with workspaces the pointer to them: what is missing is put in front, in the toolchain's order. Runs first on a module
that was not lowered from a kernel of ours, whose functions say all this.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i8,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.dialects import hacc, hivm, memref_ext
from tilelang_npu.transforms.cores import core_of
from tilelang_npu.transforms.locations import refuse

FFTS, LOCK, WORKSPACE = "ffts_base_address", "sync_block_lock", "workspace"
_INDICES = {"SyncBlockLockArgIdx": LOCK, "WorkspaceArgIdx": WORKSPACE}


def kernels(module: ModuleOp) -> list[func.FuncOp]:
    """The device functions that a launch starts: those with a body that are ``hacc.entry``."""
    return [op for op in module.ops if isinstance(op, func.FuncOp) and op.body.blocks and "hacc.entry" in op.attributes]


def _roles(function: func.FuncOp) -> list[dict[str, Attribute]]:
    """The attributes of the arguments, with the roles that the function's own attributes give."""
    count = len(function.body.block.args)
    given = function.arg_attrs.data if function.arg_attrs is not None else ()
    found: list[dict[str, Attribute]] = [dict(attributes.data) for attributes in given]
    found += [{} for _ in range(count - len(found))]
    known = {kind.data for each in found if isinstance(kind := each.get("hacc.arg_type"), hacc.ArgTypeAttr)}
    shift = 1 if FFTS in known else 0  # the indices are counted without the base address of the flags
    for name, role in _INDICES.items():
        index = function.attributes.get(name)
        if isinstance(index, IntegerAttr) and role not in known and 0 <= index.value.data + shift < count:
            found[index.value.data + shift]["hacc.arg_type"] = hacc.ArgTypeAttr(role)
    return found


def toolchain_argument(function: func.FuncOp, role: str) -> SSAValue:
    """The argument that the toolchain supplies in a role, such as ``workspace``.

    Raises:
        TileError: T508 the function has none.
    """
    for argument, attributes in zip(function.body.block.args, _roles(function), strict=True):
        kind = attributes.get("hacc.arg_type")
        if isinstance(kind, hacc.ArgTypeAttr) and kind.data == role:
            return argument
    raise refuse(function, f"{function.sym_name.data} has no argument of type {role}", "T508",
                 help="run add-toolchain-arguments first")


def _core_type(function: func.FuncOp) -> str:
    cores = {core_of(op) for op in function.walk()} - {"either"}
    return "MIX" if len(cores) > 1 else cores.pop() if cores else "AIV"


def _complete(function: func.FuncOp) -> None:
    kind = function.attributes.setdefault("hivm.func_core_type", hivm.FuncCoreTypeAttr(_core_type(function)))
    mixed = kind == hivm.FuncCoreTypeAttr("MIX")
    roles = _roles(function)
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
    """The pass; see the module's text."""

    name = "add-toolchain-arguments"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in kernels(op):
            _complete(function)
