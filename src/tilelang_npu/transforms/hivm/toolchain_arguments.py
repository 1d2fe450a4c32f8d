"""Which arguments of a device function the toolchain supplies: the base address of the flags, the lock, the workspace.

A function says it of each argument, or, where another tool wrote it, by indices of its own (docs/hivm.md#arguments).
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue

from tilelang_npu.dialects import hacc
from tilelang_npu.transforms.ir.locations import refuse

FFTS, LOCK, WORKSPACE = "ffts_base_address", "sync_block_lock", "workspace"
_INDICES = {"SyncBlockLockArgIdx": LOCK, "WorkspaceArgIdx": WORKSPACE}


def kernels(module: ModuleOp) -> list[func.FuncOp]:
    """The device functions that a launch starts: those with a body that are ``hacc.entry``."""
    return [op for op in module.ops if isinstance(op, func.FuncOp) and op.body.blocks and "hacc.entry" in op.attributes]


def argument_roles(function: func.FuncOp) -> list[dict[str, Attribute]]:
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
    for argument, attributes in zip(function.body.block.args, argument_roles(function), strict=True):
        kind = attributes.get("hacc.arg_type")
        if isinstance(kind, hacc.ArgTypeAttr) and kind.data == role:
            return argument
    raise refuse(function, f"{function.sym_name.data} has no argument of type {role}", "T508",
                 help="run add-toolchain-arguments first")
