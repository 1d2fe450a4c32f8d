"""Moves a buffer that only one loop uses into this loop, and gives the buffer multi-buffer slots if the loop is pipelined.

A buffer is moved if each iteration overwrites the buffer before reading it, or reads only elements that the same iteration
wrote. The contents then die within the iteration: memory planning can reuse the bytes outside of the loop, and with N slots the
loads of later iterations can run while earlier iterations still use their slots. A buffer that carries a value from one
iteration to the next is not moved. A buffer that is used only in a ``T.Scope`` or in a branch is moved into this scope or
branch.

A buffer with several live ranges (``analysis.live_ranges``) is split into several buffers: one for each loop that should have a
separate buffer; and, in a pipelined loop, one for each live range of an iteration that is copied from or to another memory, if
there is room. The load of the next live range then does not wait for the store of the earlier one. If there is no room, the
live ranges share the slots of the buffer.

The pass runs on the tile dialect after ``infer-scopes``. ``T.Pipelined(num_stages=N)`` asks for N slots. These buffers get
slots:

- buffers in L1 and UB that are copied from or to another memory, wherever the author allocated them;
- accumulators that each iteration overwrites and copies out of L0C, if L0C has room. While the fixpipe copies one slot, the
  next product is computed in another;
- workspaces between the cores, which have at least two slots in any loop;
- small buffers that a loop only loads and stores again, such as gathered rows. They have three slots in any loop, because the
  time of such copies is mostly latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.analysis.accesses import has_access_to
from tilelang_npu.analysis.buffer_sizes import nbytes_of, sized, spaced
from tilelang_npu.analysis.buffers import PARALLEL_LABEL, memory_of, root_of, slot_count, space_of, users_of, walk
from tilelang_npu.analysis.channels import is_hand_over
from tilelang_npu.analysis.first_writes import may_read_earlier_value, reads_only_own_writes
from tilelang_npu.analysis.live_ranges import live_ranges_of_loops, statements_using, successive_live_ranges
from tilelang_npu.analysis.locations import line_of, lines_of
from tilelang_npu.analysis.nesting import launch_of, loop_around, pipelined_loop_of_copy
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import OwnBuffer, Smaller, SwitchedOn, Unpinned
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import Held, record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import GM, Chip, filled_from, name_of
from tilelang_npu.transforms.infra.optimisations import Refusal
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial
from tilelang_npu.transforms.infra.split_allocation import split_allocation

_FEWEST_SLOTS = 2
"""The fewest slots of a buffer that shares another one's slots: one is filled while the other is used."""
_FORWARDING_SLOTS = 3
"""Slots of a small buffer that a loop fills and copies on, with or without stages."""
_SHARE_FOR_FORWARDING = 16
"""The slots of such a buffer take at most one part in this many of its memory."""
_WORKSPACE_SLOTS = 2
"""Slots of a workspace between the cores in any loop: the producer may be one iteration ahead."""


def _common_inner_block(users: list[Operation], home: Block) -> Block | None:
    """Returns the loop body, scope or branch directly in ``home`` that all users are in; None where they are in several."""
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


def _takes_slots_as_copy(buffer: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a loop is pipelined and a copy moves a buffer from or to another memory, so that the buffer should have slots."""
    space = space_of(buffer)
    ends = (use.value for user in users_of(buffer) if isinstance(user, tile.CopyOp) for use in effects_of(user))
    return tile.stages_of(loop) > 1 and space in filled_from(GM) and any(space_of(end) != space for end in ends)


def _are_copied(statements: Sequence[Operation], buffer: SSAValue) -> bool:
    """Whether statements copy a buffer from or to another memory."""
    return any(isinstance(op, tile.CopyOp) and has_access_to(op, buffer) and space_of(op.source) != space_of(op.target)
               for statement in statements for op in statement.walk())


def _takes_slots_as_accumulator(allocation: tile.AllocOp, loop: scf.ForOp) -> bool:
    """Whether a loop is pipelined and copies an accumulator to another memory, so that the accumulator can have slots."""
    buffer, users = allocation.result, list(users_of(allocation.result))
    accumulates = any(use.role == "accumulator" and root_of(use.value) is buffer for user in users for use in effects_of(user))
    return tile.stages_of(loop) > 1 and accumulates and any(
        isinstance(user, tile.CopyOp) and root_of(user.source) is buffer and loop.is_ancestor(user) for user in users)


def _dies_in_block(block: Block, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether the buffer's contents die within one execution of a block."""
    return not may_read_earlier_value(block.ops, buffer, ranges) or reads_only_own_writes(block, buffer)


def _fits_with_slots(allocation: tile.AllocOp, slots: int, chip: Chip) -> bool:
    """Whether all buffers of the memory fit side by side with ``slots`` of one: no plan can take back a slot that the cores
    rely on.
    """
    space = space_of(allocation.result)
    return space == GM or sum(nbytes_of(op.result) for op in _allocations_in_same_memory(allocation)) + (
        slots - 1) * nbytes_of(allocation.result) <= chip.memory[memory_of(allocation.result)].size


def _fits_during_loop(allocation: tile.AllocOp, slots: int, loop: scf.ForOp, ranges: Ranges, chip: Chip) -> bool:
    """Whether ``slots`` of an accumulator fit with the buffers of its memory that are live during a loop."""
    others = sum(nbytes_of(op.result) * slot_count(op)
                 for op in _allocations_in_same_memory(allocation)
                 if op is not allocation and not _is_dead_during(op, loop, ranges))
    return others + slots * nbytes_of(allocation.result) <= chip.memory[memory_of(allocation.result)].size


def _is_dead_during(allocation: tile.AllocOp, loop: scf.ForOp, ranges: Ranges) -> bool:
    """Whether a buffer's contents die within one iteration of another loop, so that the given loop can use its bytes."""
    users, home, around = list(users_of(allocation.result)), allocation.parent_block(), loop_around(allocation)
    if around is not None and not around.is_ancestor(loop):
        return not loop.is_ancestor(around)
    while home is not None and (inner := _common_inner_block(users, home)) is not None:
        owner, home = inner.parent_op(), inner
        if isinstance(owner, scf.ForOp) and not owner.is_ancestor(loop):
            return not loop.is_ancestor(owner) and _dies_in_block(inner, allocation.result, ranges)
    return False


def _allocations_in_same_memory(allocation: tile.AllocOp) -> list[tile.AllocOp]:
    """Returns all allocations of the launch in the memory of one."""
    space, launch = space_of(allocation.result), launch_of(allocation)
    return [op for op in launch.walk() if isinstance(op, tile.AllocOp) and space_of(op.result) == space] if launch else []


def _bytes_with_copies(allocation: tile.AllocOp, further: int) -> int:
    """Returns the bytes of a buffer's memory with ``further`` more copies of it; in UB with the scratch that operations may
    need.
    """
    space = space_of(allocation.result)
    sizes = [nbytes_of(op.result) * slot_count(op) for op in _allocations_in_same_memory(allocation)]
    return sum(sizes) + further * slot_count(allocation) * nbytes_of(allocation.result) + max(sizes,
                                                                                              default=0) * (space == "ub")


def _move_to_head(allocation: tile.AllocOp, block: Block) -> None:
    """Moves an allocation to the start of a block."""
    home = allocation.parent_block()
    assert home is not None
    home.detach_op(allocation)
    Rewriter().insert_op(allocation, InsertPoint.at_start(block))


def _next_inner_block(allocation: tile.AllocOp, ranges: Ranges) -> Block | None:
    """Returns the loop body, scope or branch in the allocation's block into which it can move; None where there is none."""
    buffer, home = allocation.result, allocation.parent_block()
    users = list(users_of(buffer))
    if home is None or all(isinstance(user, (tile.RegionOp, tile.ViewOp)) for user in users):
        return None
    inner = _common_inner_block(users, home)
    if inner is None or not isinstance(inner.parent_op(), scf.ForOp):
        return inner
    return inner if _dies_in_block(inner, buffer, ranges) else None


@dataclass(frozen=True)
class SinkBuffers(PassWithPlanTrial):
    """Moves a buffer that only one loop uses into this loop, and gives the buffer multi-buffer slots if the loop is pipelined.

    Buffers that transfer tiles between cores on chip must have all their slots. If these may be too large for their memory,
    memory planning is first tried on a copy of the module.

    Attributes:
        enabled: whether to move buffers into loops.
        multi_buffer: whether to give buffers several slots; if false, every buffer has one.
        reuse: whether to split a buffer that is overwritten into one buffer for each live range, so that memory planning can
            place them independently; false if memory planning must not let buffers share bytes.
        synchronise: whether the compiler inserts the waits between operations of one core. If false, a buffer that is loaded
            and stored again keeps one slot, because the author's waits are written for one slot.
    """

    name = "sink-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for allocation in [inner for inner in op.walk() if isinstance(inner, tile.AllocOp)]:
            home, slots = allocation.parent_block(), allocation.slots
            own_buffers = self._sink_allocation(allocation, ranges) if allocation.address is None else []
            for each in (allocation, *own_buffers):
                if each in own_buffers:
                    _report_split(op, each)
                if each.parent_block() is not home or each.slots is not slots:
                    _report_home(op, each)
                if each.slots is slots and (self.multi_buffer or self.enabled):
                    _report_refusal(op, each, ranges, self)
        if self.reuse or (self.enabled and self.synchronise):
            for allocation in [inner for inner in op.walk() if isinstance(inner, tile.AllocOp) and inner.slots is not None]:
                self._separate_live_ranges(op, allocation, ranges)
        self._fit_hand_overs(op)

    def _fit_hand_overs(self, module: ModuleOp) -> None:
        """Removes slots of the on-chip buffers that transfer tiles between the cores, until memory planning succeeds.

        Memory planning itself does not reduce the slots of these buffers.
        """
        capacities = {space: memory.size for space, memory in chips.chip(self.chip).memory.items()}

        def is_crowded(allocation: tile.AllocOp) -> bool:
            space = space_of(allocation.result)
            return (slot_count(allocation) > 1 and space in capacities and _bytes_with_copies(allocation, 0) > capacities[space]
                    and is_hand_over(allocation.result))

        while crowded := [op for op in module.walk() if isinstance(op, tile.AllocOp) and is_crowded(op)]:
            if self.missing_room(module.clone()) is None:
                return
            largest = max(crowded, key=lambda op: slot_count(op) * nbytes_of(op.result))
            largest.properties["slots"] = IntegerAttr(slot_count(largest) - 1, i64)

    def _separate_live_ranges(self, module: ModuleOp, allocation: tile.AllocOp, ranges: Ranges) -> None:
        """Gives each copied live range of a multi-buffer in an iteration a buffer of its own, or, without room, a share of its
        slots.
        """
        buffer, loop = allocation.result, loop_around(allocation)
        block, slots = allocation.parent_block(), slot_count(allocation)
        if loop is None or block is not loop.body.block or slots == 1 or not _takes_slots_as_copy(buffer, loop):
            return
        lives = successive_live_ranges(allocation, lambda statements: _are_copied(statements, buffer), ranges)
        parts, room = min(len(lives) + 1, slots // _FEWEST_SLOTS), chips.chip(self.chip).memory[memory_of(buffer)].size
        if lives and parts > 1 and _bytes_with_copies(allocation, 0) <= room < _bytes_with_copies(allocation, len(lives)):
            self._share_slots(module, allocation, lives, parts)
            return
        for life in lives:
            needed, label, place = _bytes_with_copies(allocation, 1), allocation.label.data, line_of(life[0])
            if needed <= room:
                made = split_allocation(allocation, life)
                record_done(module, self.name, location_of(made), f"{label} is split: its uses from {place} on get a separate "
                            "buffer, because no value passes between them and the earlier uses")
            else:
                record_refusal(module, self.name, location_of(allocation),
                        f"the load of {sized(buffer)} at {place} waits until the earlier uses of {label} are done: with a "
                        "second buffer, "
                        f"all buffers would take {spaced(needed)} of the {spaced(room)} bytes of {name_of(space_of(buffer))}",
                        f"shrink the tiles, so that there is room for a second buffer of {slots} slots",
                        Held((label,), space_of(buffer)),
                        change=Smaller((location_of(allocation),), 100 * room // needed))

    def _share_slots(self, module: ModuleOp, allocation: tile.AllocOp, lives: Sequence[list[Operation]], parts: int) -> None:
        """Distributes the live ranges of a buffer over ``parts`` buffers that share its slots.

        Args:
            module: the module, for remarks.
            allocation: the buffer.
            lives: the live ranges of the buffer, without the first.
            parts: the number of buffers.
        """
        left = slot_count(allocation) // parts
        allocation.properties["slots"] = IntegerAttr(left, i64)
        for part in range(1, parts):
            taken = lives[part - 1::parts]
            made = split_allocation(allocation, [statement for life in taken for statement in life])
            firsts = lines_of([life[0] for life in taken])
            record_done(module, self.name, location_of(made),
                        f"{allocation.label.data} is split: its uses from {firsts} on get a separate buffer, because no value "
                        f"passes between them and the other uses; each of the {parts} buffers has {left} slots")

    def _sink_allocation(self, allocation: tile.AllocOp, ranges: Ranges) -> list[tile.AllocOp]:
        """Moves an allocation inwards and gives it slots; returns the allocations that live ranges of its buffer got."""
        buffer, own_buffers = allocation.result, list[tile.AllocOp]()
        around, block = loop_around(allocation), allocation.parent_block()
        if around is not None and block is not None and self._takes_slots(allocation, around, ranges) and _dies_in_block(
                block, buffer, ranges):
            allocation.properties["slots"] = IntegerAttr(tile.stages_of(around), i64)
            return own_buffers
        taken: tuple[Block, int] | None = None
        while self.enabled:
            if (inner := _next_inner_block(allocation, ranges)) is None:
                def wants_own_buffer(loop: scf.ForOp) -> bool:
                    return space_of(buffer) == GM or (self.multi_buffer and tile.stages_of(loop) > 1)

                lives = live_ranges_of_loops(allocation, wants_own_buffer, ranges) if self.reuse else []
                further = [split_allocation(allocation, life) for life in lives]
                if not further:
                    break
                for each in further:
                    own_buffers += [each, *self._sink_allocation(each, ranges)]
                continue
            _move_to_head(allocation, inner)
            loop = inner.parent_op()
            if isinstance(loop, scf.ForOp):
                depth = tile.stages_of(loop) if self.multi_buffer else 1
                if is_hand_over(buffer):
                    slots = max(depth, _WORKSPACE_SLOTS)
                    taken = inner, slots if _fits_with_slots(allocation, slots, chips.chip(self.chip)) else 1
                elif self._takes_slots(allocation, loop, ranges):
                    taken = inner, depth
                elif self.multi_buffer and self.synchronise and self._only_forwards(allocation, loop):
                    taken = inner, _FORWARDING_SLOTS
        if taken is not None:  # the buffer stays in the innermost loop that uses its slots
            _move_to_head(allocation, taken[0])
            allocation.properties["slots"] = IntegerAttr(taken[1], i64)
        return own_buffers

    def _takes_slots(self, allocation: tile.AllocOp, loop: scf.ForOp, ranges: Ranges) -> bool:
        """Whether a buffer should have a slot for each stage of a pipelined loop."""
        return self.multi_buffer and (_takes_slots_as_copy(allocation.result, loop) or (
            _takes_slots_as_accumulator(allocation, loop)
            and _fits_during_loop(allocation, tile.stages_of(loop), loop, ranges, chips.chip(self.chip))))

    def _only_forwards(self, allocation: tile.AllocOp, loop: scf.ForOp) -> bool:
        """Whether a loop only copies a small buffer: from one memory to it, and on to another."""
        buffer = allocation.result
        users = [user for user in users_of(buffer) if not isinstance(user, (tile.RegionOp, tile.ViewOp))]
        if space_of(buffer) not in filled_from(GM):
            return False
        room = chips.chip(self.chip).memory[memory_of(buffer)].size // _SHARE_FOR_FORWARDING
        return (len(users) > 1 and _FORWARDING_SLOTS * nbytes_of(buffer) <= room
                and all(isinstance(user, tile.CopyOp) and user.parent_block() is loop.body.block
                        and space_of(user.source) != space_of(user.target) for user in users))


def _loop_text(loop: scf.ForOp) -> str:
    """Returns a text for a loop in a message; a loop over blocks, which the compiler made, has the line of its launch."""
    launch = launch_of(loop)
    if launch is not None and location_of(launch) == location_of(loop):
        return f"the compiler's loop over the blocks of {line_of(loop)}"
    return f"the loop at {line_of(loop)}"


def _report_split(module: ModuleOp, allocation: tile.AllocOp) -> None:
    """Records that a live range got a buffer of its own, with its loop."""
    loop = next((loop for user in users_of(allocation.result) if (loop := loop_around(user)) is not None), None)
    around = f"in the loop at {line_of(loop)}" if loop is not None else f"at {line_of(statements_using(allocation)[0])}"
    record_done(module, SinkBuffers.name, location_of(allocation), f"{allocation.label.data} is split: its uses {around} "
                "get a separate buffer, because no value passes between them and the other uses")


def _report_home(module: ModuleOp, allocation: tile.AllocOp) -> None:
    """Records where a buffer is allocated now. Slots are reported by the passes that fix them: ``overlap-iterations``,
    ``plan-memory``.
    """
    loop = loop_around(allocation)
    if loop is None or allocation.slots is None:
        around = _loop_text(loop) if loop is not None else "a branch"
        record_done(module, SinkBuffers.name, location_of(allocation), f"{allocation.label.data} is now allocated in {around}")


def _report_refusal(module: ModuleOp, allocation: tile.AllocOp, ranges: Ranges, sink: SinkBuffers) -> None:
    """Records why a buffer that a pipelined loop copies has one slot, or why a buffer that one loop alone uses stays outside.
    """
    buffer, label = allocation.result, allocation.label.data
    if label == PARALLEL_LABEL or space_of(buffer) == GM:  # no author knows it
        return
    loop = next((found for user in users_of(buffer) if (found := pipelined_loop_of_copy(user, buffer)) is not None), None)
    drained = loop_around(allocation)
    if drained is not None and sink.multi_buffer and _takes_slots_as_accumulator(allocation, drained):
        what = f"{sized(buffer)} has one slot for the {tile.stages_of(drained)} stages of {_loop_text(drained)}"
        about, kept = "multi-buffer", _why_accumulator_one_slot(allocation, chips.chip(sink.chip))
    elif loop is not None and sink.multi_buffer:
        what = f"{sized(buffer)} has one slot for the {tile.stages_of(loop)} stages of {_loop_text(loop)}"
        about, kept = "multi-buffer", _why_one_slot(allocation, loop, ranges, sink)
    else:
        around, home = loop_around(allocation), allocation.parent_block()
        inner = _common_inner_block(list(users_of(buffer)), home) if home is not None else None
        user = inner.parent_op() if inner is not None else None
        if not sink.enabled or not isinstance(user, scf.ForOp) or user is around or allocation.address is not None:
            return
        what = f"{sized(buffer)} is live in all iterations of the loop at {line_of(user)}"
        carried = _why_carried(label, buffer, user)
        about = SinkBuffers.name
        kept = Refusal(carried.why, f"{carried.edit}: then other buffers can use the bytes of {label} outside of the loop, "
                       "which saves no time if there is enough memory")
    record_refusal(module, about, location_of(allocation), f"{what}: {kept.why}", kept.edit,
                   Held((label,), space_of(buffer), bytes_alone=about == SinkBuffers.name), SinkBuffers.name, kept.change)


def _why_one_slot(allocation: tile.AllocOp, loop: scf.ForOp, ranges: Ranges, sink: SinkBuffers) -> Refusal:
    """Returns why a buffer that a pipelined loop copies has one slot."""
    buffer, label = allocation.result, allocation.label.data
    if allocation.address is not None:
        return Refusal(f"the author chose the address of {label}", "leave the address to the compiler",
                       Unpinned(location_of(allocation)))
    if not sink.enabled:
        return Refusal("sink-buffers is switched off",
                       f"take sink-buffers out of tl.disable, or allocate {label} in the loop", SwitchedOn("sink-buffers"))
    beyond = next((user for user in users_of(buffer)
                   if not isinstance(user, (tile.RegionOp, tile.ViewOp)) and not loop.is_ancestor(user)), None)
    if beyond is not None and not sink.reuse:
        return Refusal(f"{line_of(beyond)}, outside of the loop, uses {label} too, and memory planning is off",
                       f"use another buffer there in place of {label}, or switch memory planning on",
                       OwnBuffer(label, location_of(allocation), location_of(beyond)))
    statements = statements_using(allocation)
    at = next((index for index, op in enumerate(statements) if op.is_ancestor(loop)), 0)
    if may_read_earlier_value(later := statements[at + 1:], buffer, ranges):
        reader = next(op for index, op in enumerate(later) if may_read_earlier_value(later[:index + 1], buffer, ranges))
        return Refusal(f"{line_of(reader)} possibly reads the value that the loop left in {label}",
                       f"let the last iteration copy the value to another buffer, and read that buffer in place of {label}")
    if at:
        return Refusal(f"the loop possibly reads the value that {line_of(statements[at - 1])} wrote to {label}",
                       f"write all of {label} at the start of each iteration, or use another buffer at "
                       f"{line_of(statements[at - 1])}", OwnBuffer(label, location_of(allocation), location_of(loop)))
    inner = _common_inner_block(list(users_of(buffer)), home) if (home := allocation.parent_block()) is not None else None
    outer = inner.parent_op() if inner is not None else loop
    return _why_carried(label, buffer, outer if isinstance(outer, scf.ForOp) else loop)


def _why_accumulator_one_slot(allocation: tile.AllocOp, chip: Chip) -> Refusal:
    """Returns that L0C has no room for slots of an accumulator."""
    space = memory_of(allocation.result)
    return Refusal(f"the product of the next iteration waits until the current one is copied out of {name_of(space)}, which "
                   "has "
                   f"{spaced(chip.memory[space].size)} bytes, too few for a second slot besides the other buffers of the loop",
                   "shrink the tiles, if more and smaller tiles take less time than the wait",
                   Smaller((location_of(allocation),)))


def _why_carried(label: str, buffer: SSAValue, loop: scf.ForOp) -> Refusal:
    """Returns that an iteration may read what an earlier one left in a buffer."""
    first = next((op for op in walk(loop.body.block) if not op.regions and has_access_to(op, buffer)), loop)
    return Refusal(f"an iteration possibly reads a value of {label} that an earlier iteration wrote: the first access to "
                   f"{label}, at {line_of(first)}, possibly does not write all elements",
                   f"write all of {label} at the start of each iteration, if no value is to be passed to the next iteration")
