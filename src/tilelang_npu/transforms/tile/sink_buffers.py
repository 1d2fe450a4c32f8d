"""Move a buffer into the loop that alone uses it, and give it several slots where the loop is pipelined.

Each iteration of such a loop defines the buffer anew before it reads it, or reads of it only places that it wrote itself, so
its life is one iteration: the planner can reuse its bytes elsewhere, and with N slots the loads of later iterations run while
earlier ones are still being used. A buffer that carries anything from one iteration to the next stays where it is; one that
a ``T.Scope`` or a branch alone uses moves into it.

A buffer that several statements use for things that have nothing to do with each other is a buffer for each (``live_ranges``);
in one iteration of a pipelined loop, where there is room: the next load then need not wait for the store of what came behind.
Where there is no room for that, they share the buffer's slots.

Runs on the tile dialect after scope inference. ``T.Pipelined(num_stages=N)`` asks for N slots; buffers in L1 and UB
that a copy fills from, or drains to, another memory get them, wherever the author allocated them. So do accumulators that each
iteration starts anew and drains, as far as L0C has room beside the others: while the fixpipe takes one, the next is multiplied.
The workspace of a hand-over between the cores gets two in any loop, and a few bytes that a loop loads and stores again, as rows
that it gathers, get three: such a copy is mostly latency.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import OwnBuffer, Smaller, SwitchedOn, Unpinned
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import Held, record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import GM, Chip, filled_from, name_of
from tilelang_npu.transforms.ir.buffers import root_of, space_of, touches, users_of, walk
from tilelang_npu.transforms.ir.locations import line_of, lines_of
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import nbytes_of, sized, spaced
from tilelang_npu.transforms.tile.channels import is_hand_over
from tilelang_npu.transforms.tile.first_writes import reads_earlier, reads_what_it_wrote
from tilelang_npu.transforms.tile.live_ranges import give_own, lives_in_turn, split, users_in_order
from tilelang_npu.transforms.tile.parallel.indices import MADE

_FEWEST = 2
"""Slots of a buffer of which another one has a share: one is filled while the other is used."""
_PASSED_ON = 3
"""Slots of a small buffer that a loop fills and passes on, whoever asks for stages: a copy of few bytes is mostly latency."""
_SMALL = 16
"""What part of its memory they may take together."""
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


def _alternates(buffer: SSAValue, loop: scf.ForOp) -> bool:
    """Whether iterations of a pipelined loop take slots of the buffer in turn: some copy moves it to or from another memory."""
    space = space_of(buffer)
    ends = (use.value for user in users_of(buffer) if isinstance(user, tile.CopyOp) for use in effects_of(user))
    return tile.stages_of(loop) > 1 and space in filled_from(GM) and any(space_of(end) != space for end in ends)


def _moved(statements: Sequence[Operation], buffer: SSAValue) -> bool:
    """Whether statements move a buffer to or from another memory."""
    return any(isinstance(op, tile.CopyOp) and touches(op, buffer) and space_of(op.source) != space_of(op.target)
               for statement in statements for op in statement.walk())


def _drained_in_turn(allocation: tile.AllocOp, loop: scf.ForOp) -> bool:
    """Whether an accumulator is copied out of in a pipelined loop, which then starts it anew in each iteration."""
    buffer, users = allocation.result, list(users_of(allocation.result))
    accumulates = any(use.role == "accumulator" and root_of(use.value) is buffer for user in users for use in effects_of(user))
    return tile.stages_of(loop) > 1 and accumulates and any(
        isinstance(user, tile.CopyOp) and root_of(user.source) is buffer and loop.is_ancestor(user) for user in users)


def _loop_around(op: Operation) -> scf.ForOp | None:
    """The innermost loop that an operation is in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.ForOp):
        parent = parent.parent_op()
    return parent


def _of_one_iteration(block: Block, buffer: SSAValue, ranges: Ranges) -> bool:
    """Whether nothing of what a buffer holds goes from one time that a block runs to the next."""
    return not reads_earlier(block.ops, buffer, ranges) or reads_what_it_wrote(block, buffer)


def _has_room(allocation: tile.AllocOp, slots: int, chip: Chip) -> bool:
    """Whether all buffers fit side by side with so many of one: no plan can take a slot back that the cores count on."""
    space = space_of(allocation.result)
    return space == GM or sum(nbytes_of(op.result) for op in _in_memory(allocation)) + (
        slots - 1) * nbytes_of(allocation.result) <= chip.memory[space].size


def _beside_others(allocation: tile.AllocOp, slots: int, loop: scf.ForOp, ranges: Ranges, chip: Chip) -> bool:
    """Whether so many slots of an accumulator fit beside what else is in its memory during a loop."""
    others = sum(nbytes_of(op.result) * _slots(op)
                 for op in _in_memory(allocation) if op is not allocation and not _lives_elsewhere(op, loop, ranges))
    return others + slots * nbytes_of(allocation.result) <= chip.memory[space_of(allocation.result)].size


def _lives_elsewhere(allocation: tile.AllocOp, loop: scf.ForOp, ranges: Ranges) -> bool:
    """Whether what a buffer holds is of one iteration of a loop beside another: the same bytes serve both."""
    users, home, around = list(users_of(allocation.result)), allocation.parent_block(), _loop_around(allocation)
    if around is not None and not around.is_ancestor(loop):
        return not loop.is_ancestor(around)
    while home is not None and (inner := _home_of_all(users, home)) is not None:
        beside, home = inner.parent_op(), inner
        if isinstance(beside, scf.ForOp) and not beside.is_ancestor(loop):
            return not loop.is_ancestor(beside) and _of_one_iteration(inner, allocation.result, ranges)
    return False


def _slots(allocation: tile.AllocOp) -> int:
    return allocation.slots.value.data if allocation.slots is not None else 1


def _in_memory(allocation: tile.AllocOp) -> list[tile.AllocOp]:
    """All allocations of a launch in the memory of one."""
    space, launch = space_of(allocation.result), allocation.parent_op()
    while launch is not None and not isinstance(launch, tile.LaunchOp):
        launch = launch.parent_op()
    return [op for op in launch.walk() if isinstance(op, tile.AllocOp) and space_of(op.result) == space] if launch else []


def _with_more(allocation: tile.AllocOp, further: int) -> int:
    """Bytes of a buffer's memory with so many more like it, and what operations want in UB themselves."""
    space = space_of(allocation.result)
    sizes = [nbytes_of(op.result) * _slots(op) for op in _in_memory(allocation)]
    return sum(sizes) + further * _slots(allocation) * nbytes_of(allocation.result) + max(sizes, default=0) * (space == "ub")


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
    return inner if _of_one_iteration(inner, buffer, ranges) else None


@dataclass(frozen=True)
class SinkBuffers(ModulePass):
    """The pass.

    Attributes:
        chip: which has the room.
        multi_buffer: give slots; off, every buffer keeps one.
        sink: move buffers; off, every one keeps its place.
        split: give loops buffers of their own; off where the planner may let no two share bytes.
        waits: the waits inside of the cores are the compiler's; off, a buffer that is loaded and stored again is one, as the
            author's flags take it.
    """

    name = "sink-buffers"
    chip: str = chips.DEFAULT
    multi_buffer: bool = True
    sink: bool = True
    split: bool = True
    waits: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for allocation in [inner for inner in op.walk() if isinstance(inner, tile.AllocOp)]:
            home, slots = allocation.parent_block(), allocation.slots
            made = self._sink(allocation, ranges) if allocation.address is None else []
            for each in (allocation, *made):
                if each in made:
                    _tell_split(op, each)
                if each.parent_block() is not home or each.slots is not slots:
                    _tell_done(op, each)
                if each.slots is slots and (self.multi_buffer or self.sink):
                    _tell_refused(op, each, ranges, self)
        if self.split or (self.sink and self.waits):
            for allocation in [inner for inner in op.walk() if isinstance(inner, tile.AllocOp) and inner.slots is not None]:
                self._part(op, allocation, ranges)

    def _part(self, module: ModuleOp, allocation: tile.AllocOp, ranges: Ranges) -> None:
        """Give each life that a buffer of several slots has in an iteration, and that is moved, its own; where there is no room
        for that, let the lives take turns with buffers that share the slots."""
        buffer, loop = allocation.result, _loop_around(allocation)
        block, slots = allocation.parent_block(), _slots(allocation)
        if loop is None or block is not loop.body.block or slots == 1 or not _alternates(buffer, loop):
            return
        lives = lives_in_turn(allocation, lambda statements: _moved(statements, buffer), ranges)
        parts, room = min(len(lives) + 1, slots // _FEWEST), chips.chip(self.chip).memory[space_of(buffer)].size
        if lives and parts > 1 and _with_more(allocation, 0) <= room < _with_more(allocation, len(lives)):
            self._share(module, allocation, lives, parts)
            return
        for life in lives:
            needed, label, place = _with_more(allocation, 1), allocation.label.data, line_of(life[0])
            if needed <= room:
                made = give_own(allocation, life)
                record_done(module, self.name, location_of(made), f"{label} from {place} on is a buffer of its own")
            else:
                record_refusal(module, self.name, location_of(allocation),
                        f"{sized(buffer)} is loaded anew when {place} is done with it: a buffer of its own there would need "
                        f"{spaced(needed)} of the {spaced(room)} bytes of {name_of(space_of(buffer))}",
                        f"shrink the tiles, so that {label} from {place} on has room for {slots} slots of its own",
                        Held((label,), space_of(buffer)),
                        change=Smaller((location_of(allocation),), 100 * room // needed))

    def _share(self, module: ModuleOp, allocation: tile.AllocOp, lives: Sequence[list[Operation]], parts: int) -> None:
        """Let the lives of a buffer, of which these are all but the first, take turns with so many that share its slots."""
        left = _slots(allocation) // parts
        allocation.properties["slots"] = IntegerAttr(left, i64)
        for part in range(1, parts):
            taken = lives[part - 1::parts]
            made = give_own(allocation, [statement for life in taken for statement in life])
            firsts = lines_of([life[0] for life in taken])
            record_done(module, self.name, location_of(made),
                               f"{allocation.label.data} from {firsts} on is a buffer of its own: "
                        f"each has {left} of the {left * parts} slots")

    def _sink(self, allocation: tile.AllocOp, ranges: Ranges) -> list[tile.AllocOp]:
        """Move an allocation inwards, and give it slots; the further ones that lives of its buffer got."""
        buffer, made = allocation.result, list[tile.AllocOp]()
        around, block = _loop_around(allocation), allocation.parent_block()
        if around is not None and block is not None and self._takes_turns(allocation, around, ranges) and _of_one_iteration(
                block, buffer, ranges):
            allocation.properties["slots"] = IntegerAttr(tile.stages_of(around), i64)
            return made
        taken: tuple[Block, int] | None = None
        while self.sink:
            if (inner := _next_inwards(allocation, ranges)) is None:
                further = split(allocation, self._wants(buffer), ranges) if self.split else []
                if not further:
                    break
                for each in further:
                    made += [each, *self._sink(each, ranges)]
                continue
            _move(allocation, inner)
            loop = inner.parent_op()
            if isinstance(loop, scf.ForOp):
                depth = tile.stages_of(loop) if self.multi_buffer else 1
                if is_hand_over(buffer):
                    slots = max(depth, WORKSPACE_SLOTS)
                    taken = inner, slots if _has_room(allocation, slots, chips.chip(self.chip)) else 1
                elif self._takes_turns(allocation, loop, ranges):
                    taken = inner, depth
                elif self.multi_buffer and self.waits and self._passes_on(allocation, loop):
                    taken = inner, _PASSED_ON
        if taken is not None:  # the innermost loop whose iterations take slots in turn
            _move(allocation, taken[0])
            allocation.properties["slots"] = IntegerAttr(taken[1], i64)
        return made

    def _takes_turns(self, allocation: tile.AllocOp, loop: scf.ForOp, ranges: Ranges) -> bool:
        """Whether the iterations of a pipelined loop take slots of a buffer in turn."""
        return self.multi_buffer and (_alternates(allocation.result, loop) or (
            _drained_in_turn(allocation, loop)
            and _beside_others(allocation, tile.stages_of(loop), loop, ranges, chips.chip(self.chip))))

    def _passes_on(self, allocation: tile.AllocOp, loop: scf.ForOp) -> bool:
        """Whether a loop, of one stage, only moves a small buffer: from one memory to it, and on to another."""
        buffer = allocation.result
        users = [user for user in users_of(buffer) if not isinstance(user, (tile.RegionOp, tile.ViewOp))]
        room = chips.chip(self.chip).memory[space_of(buffer)].size // _SMALL if space_of(buffer) in filled_from(GM) else 0
        return (len(users) > 1 and _PASSED_ON * nbytes_of(buffer) <= room
                and all(isinstance(user, tile.CopyOp) and user.parent_block() is loop.body.block
                        and space_of(user.source) != space_of(user.target) for user in users))

    def _wants(self, buffer: SSAValue) -> Callable[[scf.ForOp], bool]:
        """Which loops have use for a buffer of their own."""
        return lambda loop: space_of(buffer) == GM or (self.multi_buffer and tile.stages_of(loop) > 1)


def _tell_split(module: ModuleOp, allocation: tile.AllocOp) -> None:
    """Say which loop has a buffer of its own, or what is around it, whose loops have further ones."""
    loop = next((loop for user in users_of(allocation.result) if (loop := _loop_around(user)) is not None), None)
    around = f"in the loop at {line_of(loop)}" if loop is not None else f"at {line_of(users_in_order(allocation)[0])}"
    record_done(module, SinkBuffers.name, location_of(allocation), f"{allocation.label.data} {around} is a buffer of its own")


def _tell_done(module: ModuleOp, allocation: tile.AllocOp) -> None:
    """Say where a buffer lives now. Slots are told where they are final: by ``overlap-iterations`` and ``plan-memory``."""
    loop = _loop_around(allocation)
    if loop is None or allocation.slots is None:
        around = f"the loop at {line_of(loop)}" if loop is not None else "a branch"
        record_done(module, SinkBuffers.name, location_of(allocation), f"{allocation.label.data} lives in {around}")


def _tell_refused(module: ModuleOp, allocation: tile.AllocOp, ranges: Ranges, made: SinkBuffers) -> None:
    """Say why a buffer that a pipelined loop moves has one slot, or one that one loop alone uses outlives an iteration."""
    buffer, label = allocation.result, allocation.label.data
    if label == MADE or space_of(buffer) == GM:  # of no author
        return
    loop = next((found for user in users_of(buffer) if (found := _pipeline_that_moves(user, buffer)) is not None), None)
    drained = _loop_around(allocation)
    if drained is not None and made.multi_buffer and _drained_in_turn(allocation, drained):
        what = f"{sized(buffer)} has one slot for the {tile.stages_of(drained)} stages of the loop at {line_of(drained)}"
        about, kept = "multi-buffer", _no_room(allocation, chips.chip(made.chip))
    elif loop is not None and made.multi_buffer:
        what = f"{sized(buffer)} has one slot for the {tile.stages_of(loop)} stages of the loop at {line_of(loop)}"
        about, kept = "multi-buffer", _why_one_slot(allocation, loop, ranges, made)
    else:
        around, home = _loop_around(allocation), allocation.parent_block()
        inner = _home_of_all(list(users_of(buffer)), home) if home is not None else None
        user = inner.parent_op() if inner is not None else None
        if not made.sink or not isinstance(user, scf.ForOp) or user is around or allocation.address is not None:
            return
        what = f"{sized(buffer)} lives for all iterations of the loop at {line_of(user)}"
        carried = _carried(label, buffer, user)
        about = SinkBuffers.name
        kept = Refusal(carried.why, f"{carried.edit}: that frees its bytes meanwhile, and wins no time where there is room")
    record_refusal(module, about, location_of(allocation), f"{what}: {kept.why}", kept.edit,
                   Held((label,), space_of(buffer), bytes_alone=about == SinkBuffers.name), SinkBuffers.name, kept.change)


def _pipeline_that_moves(op: Operation, buffer: SSAValue) -> scf.ForOp | None:
    """The pipelined loop that a copy between a buffer and another memory is directly in."""
    loop = _loop_around(op)
    moves = isinstance(op, tile.CopyOp) and {space_of(op.source), space_of(op.target)} != {space_of(buffer)}
    return loop if moves and loop is not None and tile.stages_of(loop) > 1 and space_of(buffer) in filled_from(GM) else None


def _why_one_slot(allocation: tile.AllocOp, loop: scf.ForOp, ranges: Ranges, made: SinkBuffers) -> Refusal:
    buffer, label = allocation.result, allocation.label.data
    if allocation.address is not None:
        return Refusal("its address is its author's", "leave the address to the compiler", Unpinned(location_of(allocation)))
    if not made.sink:
        return Refusal("sink-buffers is switched off", "take sink-buffers out of tl.disable, or allocate it in the loop",
                       SwitchedOn("sink-buffers"))
    beyond = next((user for user in users_of(buffer)
                   if not isinstance(user, (tile.RegionOp, tile.ViewOp)) and not loop.is_ancestor(user)), None)
    if beyond is not None and not made.split:
        return Refusal(f"{line_of(beyond)}, outside of the loop, uses it too, and memory planning is off",
                       f"use a buffer of its own there in place of {label}, or switch memory planning on",
                       OwnBuffer(label, location_of(allocation), location_of(beyond)))
    statements = users_in_order(allocation)
    at = next((index for index, op in enumerate(statements) if op.is_ancestor(loop)), 0)
    if reads_earlier(behind := statements[at + 1:], buffer, ranges):
        reader = next(op for index, op in enumerate(behind) if reads_earlier(behind[:index + 1], buffer, ranges))
        return Refusal(f"{line_of(reader)} may read what the loop left in it",
                       f"let the last iteration put it into a buffer of its own, and read that in place of {label}")
    if at:
        return Refusal(f"the loop may read what {line_of(statements[at - 1])} put into it",
                       f"write all of {label} at the head of the iteration, or use another buffer at "
                       f"{line_of(statements[at - 1])}", OwnBuffer(label, location_of(allocation), location_of(loop)))
    inner = _home_of_all(list(users_of(buffer)), home) if (home := allocation.parent_block()) is not None else None
    outer = inner.parent_op() if inner is not None else loop
    return _carried(label, buffer, outer if isinstance(outer, scf.ForOp) else loop)


def _no_room(allocation: tile.AllocOp, chip: Chip) -> Refusal:
    space = space_of(allocation.result)
    return Refusal(f"the next product waits until it is drained, as of the {spaced(chip.memory[space].size)} bytes of "
                   f"{name_of(space)} too few are left beside what else the loop needs",
                   "shrink the tiles, if more of them cost less than the wait", Smaller((location_of(allocation),)))


def _carried(label: str, buffer: SSAValue, loop: scf.ForOp) -> Refusal:
    """What an iteration finds in a buffer from the one before."""
    first = next((op for op in walk(loop.body.block) if not op.regions and touches(op, buffer)), loop)
    return Refusal(f"an iteration may read what an earlier one left: {line_of(first)}, which comes first, may not write all",
                   f"write all of {label} at the head of the iteration, where nothing is to be carried")
