"""Take a load whose source and place do not change out of the loop it stands in, and a mask that depends on places alone.

Every iteration of such a loop would bring the same tile again. The load goes in front of the loop, from there in front of the
loop around it, as long as nothing in a loop writes the tensor or the buffer, and nothing touches the buffer before the load
does: it may hold something else in the first iteration. A loop that may not run loses its load only if the buffer is the
loop's alone, and the place surely in a tensor that holds something: else the load would touch what nobody asks for.

Only what the compiler manages is touched: no buffer at an address of the author's, and no loop in which the author has put work
on a core or synchronises. The buffer is alive for the whole loop then; where not all buffers have room side by side, with
the slots that loops may give them, all stays as it is, so that nothing ceases to fit.

What is computed of the numbers of rows and columns alone, such as the mask of a tile on the diagonal, is computed once, with a
branch around it or none: what it is made from is dead then while the loop runs. What stays takes a small part of the memory.

Runs once memories are known, before ``sink-buffers``: a load that is gone from a loop needs no second slot.
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
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import InFront, OwnBuffer
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import Chip
from tilelang_npu.transforms.ir.buffers import root_of, space_of, users_of
from tilelang_npu.transforms.ir.locations import line_of
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import nbytes_of, sized, spaced
from tilelang_npu.transforms.tile.channels import is_scratch
from tilelang_npu.transforms.tile.managed import is_on_a_core

_PURE = (tile.RegionOp, tile.ViewOp, tile.TensorOp, arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp,
         arith.IndexCastOp, arith.MinSIOp, arith.MaxSIOp, arith.CmpiOp, arith.SelectOp)
"""Operations that may run where they did not: quotients are none."""
_SHARE_FOR_MASKS = 16
"""A mask that is alive for a whole loop takes at most one part in so many of its memory."""


def _needed(load: tile.CopyOp, loop: scf.ForOp) -> list[Operation] | None:
    """What of a loop's body a load is computed from, in order; None where it changes from iteration to iteration."""
    found: set[Operation] = set()
    pending: list[SSAValue] = list(load.operands)
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Block):
            if _is_below(owner, loop):
                return None
        elif _is_inside(owner, loop) and owner not in found:
            if isinstance(owner, tile.AllocOp) and owner.parent_block() is loop.body.block:
                found.add(owner)
            elif isinstance(owner, _PURE) and owner.parent_block() is loop.body.block:
                found.add(owner)
                pending += owner.operands
            else:
                return None
    return [op for op in loop.body.block.ops if op in found]


def _is_inside(op: Operation, loop: scf.ForOp) -> bool:
    return loop.is_ancestor(op)


def _is_below(block: Block, loop: scf.ForOp) -> bool:
    parent = block.parent_op()
    return parent is not None and (parent is loop or loop.is_ancestor(parent))


def _kept(load: tile.CopyOp, loop: scf.ForOp, ranges: Ranges) -> Refusal | None:
    """Why one load in front of a loop is not as good as one in each iteration; None where it is."""
    tensor, buffer = root_of(load.source), root_of(load.target)
    assert isinstance(buffer.owner, tile.AllocOp)
    label, behind = buffer.owner.label.data, False
    for op in loop.body.block.ops:
        for inner in op.walk():
            if inner is load:
                behind = True
                continue
            if inner.name.startswith("hivm.") or isinstance(inner, tile.OnCoreOp):
                return Refusal(f"{line_of(inner)} has work that its author orders or puts on a core",
                               "leave that to the compiler, or load in front of the loop")
            for use in effects_of(inner):
                root = root_of(use.value)
                if root is buffer and use.writes:
                    return Refusal(f"{line_of(inner)} writes {label}", f"write to a buffer of its own in place of {label}",
                                   OwnBuffer(label, location_of(buffer.owner), location_of(inner)))
                if root is buffer and not behind:
                    return Refusal(f"{line_of(inner)} reads {label} before it is loaded", "load at the head of the loop")
                if root is tensor and use.writes:
                    return Refusal(f"{line_of(inner)} writes to {tensor.name_hint or 'the tensor'}, from which it is loaded",
                                   "store to a tensor of its own, and load in front of the loop")
    if ranges.trip_count(loop).low >= 1:
        return None
    if not all(_is_inside(user, loop) for user in users_of(buffer)):
        return Refusal(f"the loop may not run, and {label} is used outside of it", "load in front of the loop")
    return None if _is_harmless(load, ranges) else Refusal("the loop may not run, and the tile may lie outside of the tensor",
                                                           "load in front of the loop")


def _is_handed_over(load: tile.CopyOp, loop: scf.ForOp) -> bool:
    """Whether a load brings what an iteration has put into a workspace of the compiler's: something else each time."""
    workspace = root_of(load.source)
    return isinstance(workspace.owner, tile.AllocOp) and any(
        use.writes and root_of(use.value) is workspace for inner in loop.walk() for use in effects_of(inner))


def _is_harmless(load: tile.CopyOp, ranges: Ranges) -> bool:
    """Whether a load surely reads elements of its tensor, and of one that does not start empty."""
    value = load.source
    while isinstance(value.owner, tile.RegionOp):
        bounds = tile.shape_of(value.owner.source)
        for start, size, bound in zip(value.owner.mixed_offsets(), value.owner.mixed_sizes(), bounds, strict=True):
            at, extent = ranges.of(start), ranges.of(size)
            if not (at.low >= 0 and at.high + extent.high <= bound):  # a bound that is not known is negative
                return False
        value = value.owner.source
    return not isinstance(value.owner, Operation) and not is_scratch(value)


def _is_load(op: Operation) -> bool:
    if not isinstance(op, tile.CopyOp) or op.atomic is not None:
        return False
    buffer = root_of(op.target).owner
    return (space_of(root_of(op.source)) == "gm" and isinstance(buffer, tile.AllocOp) and buffer.address is None
            and space_of(buffer.result) in chips.filled_from(chips.GM))


def _crowded(launch: Operation, chip: Chip) -> dict[str, Refusal]:
    """Why nothing of a memory can live longer: with as many slots as a loop may give them, its buffers do not fit side by side;
    nothing where they do."""
    taken: dict[str, int] = {}
    slots = max([tile.stages_of(op) for op in launch.walk() if isinstance(op, scf.ForOp)], default=1)
    for op in launch.walk():
        if isinstance(op, tile.AllocOp) and (space := space_of(op.result)) in chips.filled_from(chips.GM):
            taken[space] = taken.get(space, 0) + nbytes_of(op.result) * slots
    found = {}
    for memory, nbytes in taken.items():
        if nbytes > (room := chip.memory[memory].size):
            found[memory] = Refusal(f"side by side the buffers in {chips.name_of(memory)} take {spaced(nbytes)} bytes"
                                    f"{f' with {slots} slots each' if slots > 1 else ''}, and {spaced(room)} are there",
                                    f"load in front of the loop, or shrink the tiles to {room * 100 // nbytes} % or less")
    return found


def _masks(loop: scf.ForOp, chip: Chip) -> tuple[list[Operation], list[Operation]]:
    """What a loop computes alike in each iteration of the numbers of rows and columns alone, with what that needs, in order;
    and those of it whose result the rest of the loop reads."""
    moved: dict[Operation, None] = {}
    buffers: dict[SSAValue, Operation] = {}
    for op in loop.walk():
        if not isinstance(op, (tile.CallOp, tile.ElementwiseOp)) or is_on_a_core(op):
            continue
        uses = effects_of(op)
        read, written = [use.value for use in uses if use.reads], [use.value for use in uses if use.writes]
        places = isinstance(op, tile.CallOp) and op.entry().name == "arange"
        if len(written) != 1 or not (places or read) or not all(value in buffers for value in read):
            continue
        made, owner = written[0], written[0].owner
        alone = isinstance(owner, tile.AllocOp) and owner.address is None and _is_inside(owner, loop) and not any(
            use.writes for user in users_of(made) if user is not op for use in effects_of(user) if root_of(use.value) is made)
        needed = _numbers([value for value in op.operands if value is not made and value not in buffers], loop)
        if alone and needed is not None:
            assert isinstance(owner, tile.AllocOp)
            buffers[made] = op
            moved.update(dict.fromkeys([*needed, owner, op]))
    kept = [value for value in buffers if any(user not in moved for user in users_of(value))]
    room = all(nbytes_of(value) * _SHARE_FOR_MASKS <= chip.memory[space_of(value)].size for value in kept)
    return (list(moved), [op for value, op in buffers.items() if value in kept]) if room else ([], [])


def _numbers(values: Sequence[SSAValue], loop: scf.ForOp) -> list[Operation] | None:
    """What of a loop's body numbers are computed from, in order; None where they change from iteration to iteration."""
    found: dict[Operation, None] = {}
    for value in values:
        owner = value.owner
        if isinstance(owner, Block):
            if _is_below(owner, loop):
                return None
        elif _is_inside(owner, loop):
            needed = _numbers(owner.operands, loop) if isinstance(owner, (*_PURE, arith.SIToFPOp)) else None
            if needed is None:
                return None
            found.update(dict.fromkeys([*needed, owner]))
    return list(found)


@dataclass(frozen=True)
class HoistLoads(ModulePass):
    """The pass; ``chip`` names the chip whose memories hold, ``hoist`` is whether it does anything."""

    name = "hoist-loads"
    chip: str = chips.DEFAULT
    hoist: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for launch in [inner for inner in op.walk() if isinstance(inner, tile.LaunchOp)] if self.hoist else ():
            crowded = _crowded(launch, chips.chip(self.chip))
            for load in [inner for inner in launch.walk() if _is_load(inner) and not is_on_a_core(inner)]:
                assert isinstance(load, tile.CopyOp)
                self._hoist(op, load, crowded, ranges)
            for loop in reversed([inner for inner in launch.walk() if isinstance(inner, scf.ForOp)]):
                moved, masks = _masks(loop, chips.chip(self.chip))
                for one in moved:
                    one.detach()
                    Rewriter().insert_op(one, InsertPoint.before(loop))
                for mask in masks:
                    text = f"a tile of the numbers of rows and columns is computed once, before the loop at {line_of(loop)}"
                    record_done(op, self.name, location_of(mask), text)

    def _hoist(self, module: ModuleOp, load: tile.CopyOp, crowded: Mapping[str, Refusal], ranges: Ranges) -> None:
        """Take a load out of as many loops as can be."""
        buffer = root_of(load.target)
        assert isinstance(buffer.owner, tile.AllocOp)
        while isinstance(loop := load.parent_op(), scf.ForOp):
            needed = _needed(load, loop)
            if needed is None or _is_handed_over(load, loop):
                return
            kept = _kept(load, loop, ranges) or crowded.get(space_of(buffer))
            if kept is not None:
                text = f"{sized(buffer)} is loaded alike in each iteration of the loop at {line_of(loop)}: {kept.why}"
                record_refusal(module, self.name, location_of(load), text, kept.edit,
                               change=kept.change or InFront(location_of(load), location_of(loop)))
                return
            record_done(module, self.name, location_of(load), f"{buffer.owner.label.data} is loaded once, before the loop at "
                        f"{line_of(loop)}")
            for one in (*needed, load):
                one.detach()
                Rewriter().insert_op(one, InsertPoint.before(loop))


__all__ = ["HoistLoads"]
