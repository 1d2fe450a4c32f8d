"""Places the workspaces of a kernel in its workspace argument: ``memref_ext.alloc_workspace`` becomes a view of the argument.

Each block of the launch has its own part of the argument. The part holds the workspaces one after another, each slot aligned to
an L2 line; no two workspaces share bytes. The pass also adds the host function that returns the size of a part to the runtime.
If the module already has this host function, its workspaces must already be placed, and nothing changes. Runs after the flags
between the cores are inserted and before the kernel is split.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, StridedLayoutAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.cores import is_mixed
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.analysis.toolchain_arguments import WORKSPACE, toolchain_argument
from tilelang_npu.analysis.view_chains import slots_of
from tilelang_npu.dialects import annotation, hivm, memref_ext
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.mlir.rules import offset_of_slice, unless_dynamic
from tilelang_npu.transforms.infra.host_functions import own_workspace_function, workspace_function
from tilelang_npu.transforms.infra.iteration_numbers import emit_iteration
from tilelang_npu.transforms.infra.op_builder import OpBuilder, Value

LINE_BYTES = 512  # of the L2 (docs/hardware.md#alignment)


def _slot_bytes(kind: MemRefType[Attribute]) -> int:
    total = dtype_of(kind.element_type).nbytes
    for size in kind.get_shape():
        total *= size
    return -(-total // LINE_BYTES) * LINE_BYTES


def _place_workspaces(function: func.FuncOp) -> int:
    """Place the workspaces of a kernel; returns the bytes of a block's part."""
    entry = function.body.block
    emit = OpBuilder(entry)
    workspaces = [op for op in function.walk() if isinstance(op, memref_ext.AllocWorkspaceOp)]
    kinds: list[MemRefType[Attribute]] = []
    for op in workspaces:
        kind = op.results[0].type
        assert isinstance(kind, MemRefType)
        kinds.append(kind)
    slots = [slots_of(op.results[0]) for op in workspaces]
    total = sum(_slot_bytes(kind) * count for kind, count in zip(kinds, slots, strict=True))
    first = entry.first_op
    assert first is not None
    rings: list[SSAValue] = []
    with emit.before(first):
        block = emit.insert(arith.IndexCastOp(emit.insert(hivm.GetBlockIdxOp()).results[0], IndexType())).result
        base, offset = emit.mul(block, total), 0
        for op, kind, count in zip(workspaces, kinds, slots, strict=True):
            pool = toolchain_argument(function, WORKSPACE)
            elements = _slot_bytes(kind) // dtype_of(kind.element_type).nbytes
            whole: MemRefType[Attribute] = MemRefType(kind.element_type, [count, elements], memory_space=kind.memory_space)
            ring: SSAValue = emit.insert(memref.ViewOp(pool, emit.value(emit.add(base, offset)), [], whole)).results[0]
            ring.name_hint = op.results[0].name_hint
            rings.append(ring)
            offset += _slot_bytes(kind) * count
    for op, ring in zip(workspaces, rings, strict=True):
        _use_slot(emit, op, ring)
    return total


def _use_slot(emit: OpBuilder, workspace: memref_ext.AllocWorkspaceOp, ring: SSAValue) -> None:
    """Replace a workspace by the slot of the iteration."""
    kind, loop = workspace.results[0].type, workspace.parent_op()
    assert isinstance(kind, MemRefType) and isinstance(ring.type, MemRefType)
    count, elements = ring.type.get_shape()
    with emit.before(workspace):
        offset: Value = 0
        if count > 1:
            if not isinstance(loop, scf.ForOp):
                raise refuse(workspace, "this workspace has several slots, one per iteration of a loop, but it is in no loop",
                             "T508", help="remove its hivm.multi_buffer, or allocate it in the loop")
            offset = emit.mul(emit.modulo(emit_iteration(emit, loop), count), elements)
        strides = [stride or 1 for stride in kind.get_strides() or ()]
        layout = StridedLayoutAttr(strides, offset if isinstance(offset, int) else None)
        slot_type = MemRefType(kind.element_type, kind.get_shape(), layout, kind.memory_space)
        made = memref.ReinterpretCastOp.from_dynamic(ring, [offset], list(kind.get_shape()), strides, slot_type)
        slot = emit.insert(made).result
        slot.name_hint = ring.name_hint
    _move_users(workspace.results[0], slot)
    Rewriter.erase_op(workspace)


def _move_users(old: SSAValue, new: SSAValue) -> None:
    """Move the users of a workspace to its slot; views of it are made again, since their layout follows the slot's."""
    for use in list(old.uses):
        user = use.operation
        if isinstance(user, annotation.MarkOp):
            Rewriter.erase_op(user)
        elif isinstance(user, memref.SubviewOp):
            assert isinstance(user.result.type, MemRefType) and isinstance(new.type, MemRefType)
            kind = user.result.type
            offset = offset_of_slice(new.type, [unless_dynamic(start) for start in user.static_offsets.get_values()])
            layout = StridedLayoutAttr(list(kind.get_strides() or []), offset)
            made = memref.SubviewOp(
                new, list(user.offsets), list(user.sizes), list(user.strides), user.static_offsets, user.static_sizes,
                user.static_strides, MemRefType(kind.element_type, kind.shape, layout, kind.memory_space))
            made.location = user.location
            Rewriter().insert_op(made, InsertPoint.before(user))
            user.result.replace_all_uses_with(made.result)
            Rewriter.erase_op(user)
        else:
            user.operands[use.index] = new


@dataclass(frozen=True)
class PlanWorkspace(ModulePass):
    """Rewrites each ``memref_ext.alloc_workspace`` into a view of the kernel's workspace argument."""

    name = "plan-workspace"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            name = function.sym_name.data
            unplaced = next((inner for inner in function.walk() if isinstance(inner, memref_ext.AllocWorkspaceOp)), None)
            own = own_workspace_function(op, name)
            if own is not None and unplaced is not None:
                raise refuse(unplaced, "this workspace has no offset, but the module already states the size of all workspaces",
                             "T508", help=f"make it a view of the workspace argument, or remove @{own.sym_name.data}")
            if own is None and (unplaced is not None or is_mixed(function)):
                Rewriter().insert_op(workspace_function(name, _place_workspaces(function)), InsertPoint.before(function))
