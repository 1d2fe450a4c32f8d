"""Move a buffer into the loop that alone uses it, and give it several slots where the loop is pipelined.

Each iteration of such a loop defines the buffer anew before it reads it, or reads of it only places that it wrote itself, so
its life is one iteration: the planner can reuse its bytes elsewhere, and with N slots the loads of later iterations run while
earlier ones are still being used. A buffer that carries anything from one iteration to the next stays where it is; one that
a ``T.Scope`` or a branch alone uses moves into it.

Runs on the tile dialect after scope inference. ``T.Pipelined(num_stages=N)`` asks for N slots; buffers in L1 and UB
that a copy fills from, or drains to, another memory get them, wherever the author allocated them (L0C has no room for two,
and needs none: its accumulator is carried). The workspace of a hand-over between the cores gets two in any loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.effects import effects_of, is_pure
from tilelang_npu.dialects.remarks import done, refused
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import GM, Chip, filled_from
from tilelang_npu.transforms.ir.buffers import root_of, space_of, users_of, walk
from tilelang_npu.transforms.ir.locations import line_of
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import nbytes_of, sized
from tilelang_npu.transforms.tile.accumulators import holds_first
from tilelang_npu.transforms.tile.channels import is_hand_over
from tilelang_npu.transforms.tile.parallel.indices import MADE
from tilelang_npu.transforms.tile.strips import Strips

WORKSPACE_SLOTS = 2  # a hand-over between the cores in any loop: the producer may be one iteration ahead


def _home_of_all(users: list[Operation], home: Block) -> Block | None:
    """The body of the loop or scope, or the branch, directly below ``home`` that all users are in."""
    found: Block | None = None
    for user in users:
        inner: Block | None = None
        ancestor: Operation | None = user
        while ancestor is not None and ancestor.parent_block() is not home:
            inner, ancestor = ancestor.parent_block(), ancestor.parent_op()
        if inner is None or (found is not None and inner is not found):
            return None
        found = inner
    return found if found is not None and isinstance(found.parent_op(), (scf.ForOp, scf.IfOp, tile.OnCoreOp)) else None


def _defines_first(block: Block, buffer: SSAValue, ranges: Ranges, inside: tuple[scf.ForOp, ...] = ()) -> bool:
    """Whether the first thing that a block does with a buffer is to write all of it, at once or strip by strip.

    Args:
        block: the block.
        buffer: the buffer.
        ranges: bounds of the scalars.
        inside: loops around the block that are in their first iteration.
    """
    written = Strips(buffer, ranges)
    for op in block.ops:
        if isinstance(op, scf.ForOp) and any(_touches(inner, buffer) for inner in op.walk()):
            if _fills_by_slices(op, buffer, ranges):
                return True
            return ranges.trip_count(op).low >= 1 and _defines_first(op.body.block, buffer, ranges, (*inside, op))
        if op.regions and any(_touches(inner, buffer) for inner in op.walk()):
            branches = _branches(op)
            if isinstance(op, scf.IfOp) and holds_first(op.cond, inside, ranges):
                branches = [op.true_region.block]
            return bool(branches) and all(_defines_first(branch, buffer, ranges, inside) for branch in branches)
        uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
        if uses:
            anew = isinstance(op, tile.GemmOp) and holds_first(op.init, inside, ranges)  # the accumulator is not read then
            if not all(use.writes and (not use.reads or (anew and use.role == "accumulator")) and use.role != "scalar"
                       for use in uses):
                return False
            for use in uses:
                written.add(use.value)
            if written.complete:
                return True
    return False


def _branches(op: Operation) -> list[Block]:
    """The two ways through a branch, one of which is taken; nothing for other operations."""
    found = [region.block for region in op.regions if region.blocks] if isinstance(op, scf.IfOp) else []
    return found if len(found) == 2 else []


def _fills_by_slices(loop: scf.ForOp, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether a loop writes every slice of a buffer, one in each iteration, before anything in it reads the buffer."""
    if ranges.constant(loop.lb) != 0 or ranges.constant(loop.step) != 1:
        return False
    return _writes_its_slice(loop.body.block, loop, buffer, ranges)


def _writes_its_slice(block: Block, loop: scf.ForOp, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether the first thing that a block does with a buffer is to write the slice of the loop's iteration."""
    for op in block.ops:
        uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
        if op.regions and any(_touches(inner, buffer) for inner in op.walk()):
            branches = _branches(op)
            return bool(branches) and all(_writes_its_slice(branch, loop, buffer, ranges) for branch in branches)
        if uses:
            return all(use.writes and not use.reads and _is_slice(use.value, loop, ranges) for use in uses)
    return False


def _reads_what_it_wrote(block: Block, buffer: SSAValue) -> bool:
    """Whether everything that is read of a buffer was written, at the same place, further up in the innermost block around."""
    for op in walk(block):
        for use in effects_of(op):
            if use.reads and root_of(use.value) is buffer:
                inner = op.parent_block()
                if inner is None or use.writes or not _written_above(op, inner, use.value, buffer):
                    return False
    return True


def _written_above(reader: Operation, block: Block, value: SSAValue, buffer: SSAValue) -> bool:
    """Whether a block surely writes the place of a view before an operation of it."""
    for op in block.ops:
        if op is reader:
            return False
        branches = _branches(op)
        if branches and all(_writes_place(branch, value, buffer) for branch in branches):
            return True
        if _writes_at(op, value, buffer):
            return True
    return False


def _writes_place(block: Block, value: SSAValue, buffer: SSAValue) -> bool:
    return any(_writes_at(op, value, buffer) for op in block.ops)


def _writes_at(op: Operation, value: SSAValue, buffer: SSAValue) -> bool:
    """Whether an operation writes all of the place that a view of the buffer shows."""
    return any(use.writes and not use.reads and use.role != "scalar" and root_of(use.value) is buffer
               and _same(use.value, value) for use in effects_of(op))


def _same(a: SSAValue, b: SSAValue) -> bool:
    """Whether two values are the same one, or computed alike from the same ones."""
    if a is b:
        return True
    x, y = a.owner, b.owner
    return (isinstance(x, Operation) and isinstance(y, Operation) and x.name == y.name
            and is_pure(x)
            and x.properties == y.properties and x.attributes == y.attributes and len(x.operands) == len(y.operands)
            and all(_same(one, other) for one, other in zip(x.operands, y.operands, strict=True)))


def _is_slice(value: SSAValue, loop: scf.ForOp, ranges: Ranges) -> bool:
    region = value.owner
    while isinstance(region, tile.ViewOp):
        region = region.source.owner
    if not isinstance(region, tile.RegionOp) or isinstance(region.source.owner, (tile.RegionOp, tile.ViewOp)):
        return False
    along = False
    whole = tile.shape_of(region.source)
    for offset, size, extent in zip(region.mixed_offsets(), region.mixed_sizes(), whole, strict=True):
        if offset is loop.body.block.args[0]:
            if along or size != 1 or ranges.constant(loop.ub) != extent:
                return False
            along = True
        elif offset != 0 or size != extent:
            return False
    return along


def _touches(op: Operation, buffer: SSAValue) -> bool:
    return any(root_of(use.value) is buffer for use in effects_of(op))


def _alternates(buffer: SSAValue, loop: scf.ForOp) -> bool:
    """Whether iterations of a pipelined loop take slots of the buffer in turn: some copy moves it to or from another memory."""
    space = space_of(buffer)
    ends = (use.value for user in users_of(buffer) if isinstance(user, tile.CopyOp) for use in effects_of(user))
    return tile.stages_of(loop) > 1 and space in filled_from(GM) and any(space_of(end) != space for end in ends)


def _loop_around(op: Operation) -> scf.ForOp | None:
    """The innermost loop that an operation is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.ForOp):
        parent = parent.parent_op()
    return parent


def _sink(allocation: tile.AllocOp, ranges: Ranges, chip: Chip, *, multi_buffer: bool, sink: bool) -> None:
    buffer = allocation.result
    around, block = _loop_around(allocation), allocation.parent_block()
    if around is not None and multi_buffer and _alternates(buffer, around) and block is not None and (
            _defines_first(block, buffer, ranges) or _reads_what_it_wrote(block, buffer)):
        allocation.properties["slots"] = IntegerAttr(tile.stages_of(around), i64)
        return
    taken: tuple[Block, int] | None = None
    while sink and (inner := _next_inwards(allocation, ranges)) is not None:
        _move(allocation, inner)
        loop = inner.parent_op()
        if isinstance(loop, scf.ForOp):
            depth = tile.stages_of(loop) if multi_buffer else 1
            if is_hand_over(buffer):
                slots = max(depth, WORKSPACE_SLOTS)
                taken = inner, slots if _has_room(allocation, slots, chip) else 1
            elif multi_buffer and _alternates(buffer, loop):
                taken = inner, depth
    if taken is not None:  # the innermost loop whose iterations take slots in turn
        _move(allocation, taken[0])
        allocation.properties["slots"] = IntegerAttr(taken[1], i64)


def _has_room(allocation: tile.AllocOp, slots: int, chip: Chip) -> bool:
    """Whether all buffers fit side by side with so many of one: no plan can take a slot back that the cores count on."""
    space, launch = space_of(allocation.result), allocation.parent_op()
    if space == GM:
        return True
    while launch is not None and not isinstance(launch, tile.LaunchOp):
        launch = launch.parent_op()
    others = [op for op in launch.walk() if isinstance(op, tile.AllocOp) and space_of(op.result) == space] if launch else []
    return sum(nbytes_of(op.result) for op in others) + (slots - 1) * nbytes_of(allocation.result) <= chip.memory[space].size


def _move(allocation: tile.AllocOp, block: Block) -> None:
    """To the head of a block."""
    home = allocation.parent_block()
    assert home is not None
    home.detach_op(allocation)
    Rewriter().insert_op(allocation, InsertPoint.at_start(block))


def _next_inwards(allocation: tile.AllocOp, ranges: Ranges) -> Block | None:
    """The body of a loop or scope, or the branch, directly below that alone uses a buffer and owes it nothing."""
    buffer, home = allocation.result, allocation.parent_block()
    users = list(users_of(buffer))
    if home is None or all(isinstance(user, (tile.RegionOp, tile.ViewOp)) for user in users):
        return None
    inner = _home_of_all(users, home)
    if inner is None or not isinstance(inner.parent_op(), scf.ForOp):
        return inner
    return inner if _defines_first(inner, buffer, ranges) or _reads_what_it_wrote(inner, buffer) else None


@dataclass(frozen=True)
class SinkBuffers(ModulePass):
    """The pass; without ``multi_buffer`` every buffer keeps one slot, without ``sink`` its place; ``chip`` has the room."""

    name = "sink-buffers"
    chip: str = chips.DEFAULT
    multi_buffer: bool = True
    sink: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for allocation in [inner for inner in op.walk() if isinstance(inner, tile.AllocOp)]:
            home, slots = allocation.parent_block(), allocation.slots
            if allocation.address is None:
                _sink(allocation, ranges, chips.chip(self.chip), multi_buffer=self.multi_buffer, sink=self.sink)
            if allocation.parent_block() is not home or allocation.slots is not slots:
                _tell_done(op, allocation)
            if allocation.slots is slots and (self.multi_buffer or self.sink):
                _tell_refused(op, allocation, multi_buffer=self.multi_buffer, sink=self.sink)


def _tell_done(module: ModuleOp, allocation: tile.AllocOp) -> None:
    """Say where a buffer lives now. Slots are told where they are final: by ``overlap-iterations`` and ``plan-memory``."""
    loop = _loop_around(allocation)
    if loop is None or allocation.slots is None:
        around = f"the loop at {line_of(loop)}" if loop is not None else "a branch"
        done(module, SinkBuffers.name, location_of(allocation), f"{allocation.label.data} lives in {around}")


def _tell_refused(module: ModuleOp, allocation: tile.AllocOp, *, multi_buffer: bool, sink: bool) -> None:
    """Say why a buffer that a pipelined loop moves has one slot, or one that one loop alone uses outlives an iteration."""
    buffer, label = allocation.result, allocation.label.data
    if label == MADE or space_of(buffer) == GM:  # of no author
        return
    loop = next((found for user in users_of(buffer) if (found := _pipeline_that_moves(user, buffer)) is not None), None)
    if loop is not None and multi_buffer:
        what = f"{sized(buffer)} has one slot for the {tile.stages_of(loop)} stages of the loop at {line_of(loop)}"
        about, kept = "multi-buffer", _why_one_slot(allocation, loop, sink=sink)
    else:
        around, home = _loop_around(allocation), allocation.parent_block()
        inner = _home_of_all(list(users_of(buffer)), home) if home is not None else None
        user = inner.parent_op() if inner is not None else None
        if not sink or not isinstance(user, scf.ForOp) or user is around or allocation.address is not None:
            return
        what = f"{sized(buffer)} lives for all iterations of the loop at {line_of(user)}"
        about, kept = SinkBuffers.name, _carried(label, buffer, user)
    refused(module, about, location_of(allocation), f"{what}: {kept.why}", kept.edit, maker=SinkBuffers.name)


def _pipeline_that_moves(op: Operation, buffer: SSAValue) -> scf.ForOp | None:
    """The pipelined loop that a copy between a buffer and another memory is directly in."""
    loop = _loop_around(op)
    moves = isinstance(op, tile.CopyOp) and {space_of(op.source), space_of(op.target)} != {space_of(buffer)}
    return loop if moves and loop is not None and tile.stages_of(loop) > 1 and space_of(buffer) in filled_from(GM) else None


def _why_one_slot(allocation: tile.AllocOp, loop: scf.ForOp, *, sink: bool) -> Refusal:
    buffer, label = allocation.result, allocation.label.data
    if allocation.address is not None:
        return Refusal("its address is its author's", "leave the address to the compiler")
    beyond = next((user for user in users_of(buffer)
                   if not isinstance(user, (tile.RegionOp, tile.ViewOp)) and not loop.is_ancestor(user)), None)
    if beyond is not None:
        return Refusal(f"{line_of(beyond)}, outside of the loop, uses it too",
                       f"use a buffer of its own there in place of {label}")
    inner = _home_of_all(list(users_of(buffer)), home) if (home := allocation.parent_block()) is not None else None
    outer = inner.parent_op() if inner is not None else loop
    if not sink and inner is not None:
        return Refusal("sink-buffers is switched off", "take sink-buffers out of tl.disable, or allocate it in the loop")
    return _carried(label, buffer, outer if isinstance(outer, scf.ForOp) else loop)


def _carried(label: str, buffer: SSAValue, loop: scf.ForOp) -> Refusal:
    """What an iteration finds in a buffer from the one before."""
    first = next((op for op in walk(loop.body.block) if not op.regions and _touches(op, buffer)), loop)
    return Refusal(f"an iteration may read what an earlier one left: {line_of(first)}, which comes first, may not write all",
                   f"write all of {label} at the head of the iteration, where nothing is to be carried")
