"""The arguments of a device function that the toolchain supplies at a launch (docs/hivm.md#arguments).

They are the base address of the flags between the cores, the lock and the workspace. A function marks each such argument by the
argument attribute ``hacc.arg_type``. A function that another tool wrote may instead state the indices of the arguments in
attributes of the function.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue

from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import hacc

FFTS, LOCK, WORKSPACE = "ffts_base_address", "sync_block_lock", "workspace"
_INDICES = {"SyncBlockLockArgIdx": LOCK, "WorkspaceArgIdx": WORKSPACE}


def kernels(module: ModuleOp) -> list[func.FuncOp]:
    """Returns the kernels of a module: the functions with a body and the attribute ``hacc.entry``, which a launch starts."""
    return [op for op in module.ops if isinstance(op, func.FuncOp) and op.body.blocks and "hacc.entry" in op.attributes]


def argument_roles(function: func.FuncOp) -> list[dict[str, Attribute]]:
    """Returns the attributes of each argument of a function, ``hacc.arg_type`` completed from the attributes of the function.

    A function of another tool may state the indices of the lock and of the workspace only in its own attributes.
    """
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
    """Returns the argument with a given role among those that the toolchain supplies.

    Args:
        function: the device function.
        role: the value of ``hacc.arg_type``: ``ffts_base_address``, ``sync_block_lock`` or ``workspace``.

    Raises:
        TileError: T508, the function has no such argument.
    """
    for argument, attributes in zip(function.body.block.args, argument_roles(function), strict=True):
        kind = attributes.get("hacc.arg_type")
        if isinstance(kind, hacc.ArgTypeAttr) and kind.data == role:
            return argument
    raise refuse(function, f"{function.sym_name.data} has no argument of type {role}", "T508",
                 help="run add-toolchain-arguments first")
