"""Hoists loop-invariant loads, and the computation of masks from row and column indices, out of loops.

A load is loop-invariant if every iteration would load the same tile. Such a load moves before the loop, from there before the
next outer loop, and so on. No operation in the loop may write the tensor or the buffer, and none may access the buffer before
the load, because in the first iteration the buffer may hold another value. A load moves out of a loop that possibly has no
iteration only if the buffer is used in this loop only and the region is surely inside of a tensor that holds data. Otherwise
the hoisted load could access memory that the program does not access.

A load to a buffer at an address that the author chose is not hoisted. Neither is a load out of a loop in which the author
synchronises or uses ``T.Scope``. A hoisted buffer is live in the whole loop. If the buffers of a memory would not all fit at
disjoint addresses, with the slots that loops may give them, no load to this memory is hoisted, so that the kernel still fits.

A tile that is computed from row and column indices only, such as the mask of a tile on the diagonal, is computed once before
the loop. The tiles from which it is computed are then dead in the loop. A mask is hoisted only if it takes a small part of the
memory.

The pass runs once memories are known, and before ``sink-buffers``, because a buffer whose load leaves a loop needs no second
slot in this loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.analysis.buffer_sizes import nbytes_of, sized, spaced
from tilelang_npu.analysis.buffers import memory_of, root_of, space_of, users_of
from tilelang_npu.analysis.channels import is_scratch
from tilelang_npu.analysis.locations import line_of
from tilelang_npu.analysis.nesting import is_in_core_scope
from tilelang_npu.analysis.ranges import Ranges, is_surely_inside
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import InFront, OwnBuffer
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import Space
from tilelang_npu.transforms.infra.optimisations import Refusal

_SPECULATABLE_OPS = (tile.RegionOp, tile.ViewOp, tile.TensorOp, tile.StridedTensorOp, arith.ConstantOp, arith.AddiOp,
                     arith.SubiOp, arith.MuliOp, arith.IndexCastOp, arith.MinSIOp, arith.MaxSIOp, arith.CmpiOp, arith.SelectOp)
"""Operations that may be executed where the program does not execute them: divisions are not among them."""
_SHARE_FOR_MASKS = 16
"""A mask that is live for a whole loop takes at most one part in this many of its memory."""


def _is_block_in(block: Block, loop: scf.ForOp) -> bool:
    parent = block.parent_op()
    return parent is not None and (parent is loop or loop.is_ancestor(parent))


def _invariant_ops_of(load: tile.CopyOp, loop: scf.ForOp) -> list[Operation] | None:
    """Returns the operations of a loop's body that a load depends on, in order; None where it changes from iteration to
    iteration.
    """
    found: set[Operation] = set()
    pending: list[SSAValue] = list(load.operands)
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Block):
            if _is_block_in(owner, loop):
                return None
        elif loop.is_ancestor(owner) and owner not in found:
            if isinstance(owner, tile.AllocOp) and owner.parent_block() is loop.body.block:
                found.add(owner)
            elif isinstance(owner, _SPECULATABLE_OPS) and owner.parent_block() is loop.body.block:
                found.add(owner)
                pending += owner.operands
            else:
                return None
    return [op for op in loop.body.block.ops if op in found]


def _why_not_hoisted(load: tile.CopyOp, loop: scf.ForOp, ranges: Ranges) -> Refusal | None:
    """Returns why one load before a loop cannot replace the load in each iteration; None where it can."""
    tensor, buffer = root_of(load.source), root_of(load.target)
    assert isinstance(buffer.owner, tile.AllocOp)
    label, after_load = buffer.owner.label.data, False
    for op in loop.body.block.ops:
        for inner in op.walk():
            if inner is load:
                after_load = True
                continue
            if inner.name.startswith("hivm.") or isinstance(inner, tile.OnCoreOp):
                return Refusal(f"{line_of(inner)} synchronises, or is in a T.Scope",
                               f"leave waits and cores to the compiler, or load {label} before the loop")
            for use in effects_of(inner):
                root = root_of(use.value)
                if root is buffer and use.writes:
                    return Refusal(f"{line_of(inner)} writes {label}", f"write to another buffer in place of {label}",
                                   OwnBuffer(label, location_of(buffer.owner), location_of(inner)))
                if root is buffer and not after_load:
                    return Refusal(f"{line_of(inner)} reads {label} before the load",
                                   f"load {label} at the start of the iteration")
                if root is tensor and use.writes:
                    return Refusal(f"{line_of(inner)} writes to {tensor.name_hint or 'the tensor'}, from which "
                                   f"{label} is loaded", f"store to another tensor, and load {label} before the loop")
    if ranges.trip_count(loop).low >= 1:
        return None
    if not all(loop.is_ancestor(user) for user in users_of(buffer)):
        return Refusal(f"the loop possibly has no iteration, and {label} is used outside of the loop",
                       f"load {label} before the loop")
    if _is_speculatable_load(load, ranges):
        return None
    return Refusal("the loop possibly has no iteration, and the loaded tile is possibly outside of the tensor, or the tensor "
                   "is a workspace", f"load {label} before the loop")


def _is_from_workspace_of_loop(load: tile.CopyOp, loop: scf.ForOp) -> bool:
    """Whether a load reads a workspace that the loop writes: another value each time."""
    workspace = root_of(load.source)
    return isinstance(workspace.owner, tile.AllocOp) and any(
        use.writes and root_of(use.value) is workspace for inner in loop.walk() for use in effects_of(inner))


def _is_speculatable_load(load: tile.CopyOp, ranges: Ranges) -> bool:
    """Whether a load surely reads elements of its tensor, and the tensor holds data."""
    tensor = root_of(load.source)
    return is_surely_inside(load.source, ranges) and not isinstance(tensor.owner, Operation) and not is_scratch(tensor)


def _is_load(op: Operation) -> bool:
    if not isinstance(op, tile.CopyOp) or op.atomic is not None:
        return False
    buffer = root_of(op.target).owner
    return (space_of(root_of(op.source)) == "gm" and isinstance(buffer, tile.AllocOp) and buffer.address is None
            and space_of(buffer.result) in chips.filled_from(chips.GM))


def _full_memories(launch: Operation, chip: Chip) -> dict[Space, Refusal]:
    """Returns, for each memory whose buffers would not fit at disjoint addresses, with the slots that loops may give them, the
    refusal to hoist loads to this memory.
    """
    taken: dict[Space, int] = {}
    slots = max([tile.stages_of(op) for op in launch.walk() if isinstance(op, scf.ForOp)], default=1)
    for op in launch.walk():
        if isinstance(op, tile.AllocOp) and (space := space_of(op.result)) in chips.filled_from(chips.GM):
            taken[space] = taken.get(space, 0) + nbytes_of(op.result) * slots
    found = {}
    for memory, nbytes in taken.items():
        if nbytes > (room := chip.memory[memory].size):
            found[memory] = Refusal(f"all buffers in {chips.name_of(memory)} together take {spaced(nbytes)} bytes"
                                    f"{f' with {slots} slots each' if slots > 1 else ''}, and {chips.name_of(memory)} has "
                                    f"{spaced(room)}",
                                    f"shrink the tiles to {room * 100 // nbytes} % or less; or write the load before the "
                                    "loop, and memory planning gives the buffers fewer slots where there is too little room")
    return found


def _invariant_masks(loop: scf.ForOp, chip: Chip) -> tuple[list[Operation], list[Operation]]:
    """Returns the operations by which a loop computes the same tiles from row and column numbers in each iteration, and the
    masks.

    The first list has the operations with all that they depend on, in order; the second the operations whose results the rest
    of the loop reads.
    """
    moved: dict[Operation, None] = {}
    buffers: dict[SSAValue, Operation] = {}
    for op in loop.walk():
        if not isinstance(op, (tile.CallOp, tile.ElementwiseOp)) or is_in_core_scope(op):
            continue
        uses = effects_of(op)
        read, written = [use.value for use in uses if use.reads], [use.value for use in uses if use.writes]
        is_arange = isinstance(op, tile.CallOp) and op.entry().name == "arange"
        if len(written) != 1 or not (is_arange or read) or not all(value in buffers for value in read):
            continue
        made, owner = written[0], written[0].owner
        alone = isinstance(owner, tile.AllocOp) and owner.address is None and loop.is_ancestor(owner) and not any(
            use.writes for user in users_of(made) if user is not op for use in effects_of(user) if root_of(use.value) is made)
        needed = _invariant_scalars([value for value in op.operands if value is not made and value not in buffers], loop)
        if alone and needed is not None:
            assert isinstance(owner, tile.AllocOp)
            buffers[made] = op
            moved.update(dict.fromkeys([*needed, owner, op]))
    kept = [value for value in buffers if any(user not in moved for user in users_of(value))]
    room = all(nbytes_of(value) * _SHARE_FOR_MASKS <= chip.memory[memory_of(value)].size for value in kept)
    return (list(moved), [op for value, op in buffers.items() if value in kept]) if room else ([], [])


def _invariant_scalars(values: Sequence[SSAValue], loop: scf.ForOp) -> list[Operation] | None:
    """Returns the operations of a loop's body that scalars depend on, in order; None where they change from iteration to
    iteration.
    """
    found: dict[Operation, None] = {}
    for value in values:
        owner = value.owner
        if isinstance(owner, Block):
            if _is_block_in(owner, loop):
                return None
        elif loop.is_ancestor(owner):
            is_speculatable = isinstance(owner, (*_SPECULATABLE_OPS, arith.SIToFPOp))
            needed = _invariant_scalars(owner.operands, loop) if is_speculatable else None
            if needed is None:
                return None
            found.update(dict.fromkeys([*needed, owner]))
    return list(found)


@dataclass(frozen=True)
class HoistLoads(ModulePass):
    """Hoists loop-invariant loads, and the computation of masks from row and column indices, out of loops.

    Attributes:
        chip: the name of the chip whose memories the buffers must fit.
        enabled: whether the pass does anything.
    """

    name = "hoist-loads"
    chip: str = chips.DEFAULT
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for launch in [inner for inner in op.walk() if isinstance(inner, tile.LaunchOp)] if self.enabled else ():
            full_memories = _full_memories(launch, chips.chip(self.chip))
            for load in [inner for inner in launch.walk() if _is_load(inner) and not is_in_core_scope(inner)]:
                assert isinstance(load, tile.CopyOp)
                self._hoist_load(op, load, full_memories, ranges)
            for loop in reversed([inner for inner in launch.walk() if isinstance(inner, scf.ForOp)]):
                moved, masks = _invariant_masks(loop, chips.chip(self.chip))
                for one in moved:
                    one.detach()
                    Rewriter().insert_op(one, InsertPoint.before(loop))
                for mask in masks:
                    text = ("a tile that depends only on row and column indices is computed once, before the loop at "
                            f"{line_of(loop)}")
                    record_done(op, self.name, location_of(mask), text)

    def _hoist_load(self, module: ModuleOp, load: tile.CopyOp, full_memories: Mapping[Space, Refusal], ranges: Ranges) -> None:
        """Hoists a load out of as many loops as possible."""
        buffer = root_of(load.target)
        assert isinstance(buffer.owner, tile.AllocOp)
        while isinstance(loop := load.parent_op(), scf.ForOp):
            needed = _invariant_ops_of(load, loop)
            if needed is None or _is_from_workspace_of_loop(load, loop):
                return
            kept = _why_not_hoisted(load, loop, ranges) or full_memories.get(memory_of(buffer))
            if kept is not None:
                text = f"{sized(buffer)} is loaded unchanged in each iteration of the loop at {line_of(loop)}: {kept.why}"
                record_refusal(module, self.name, location_of(load), text, kept.edit,
                               change=kept.change or InFront(location_of(load), location_of(loop)))
                return
            record_done(module, self.name, location_of(load), f"{buffer.owner.label.data} is loaded once, before the loop at "
                        f"{line_of(loop)}")
            for one in (*needed, load):
                one.detach()
                Rewriter().insert_op(one, InsertPoint.before(loop))


__all__ = ["HoistLoads"]
