"""Let both cores of a pipelined loop work on several iterations at a time, where an iteration goes to and fro between them.

An iteration of attention is a product (Cube), a softmax (Vector), a product (Cube), a sum (Vector): read as a sequence, each
core waits for the other's latest tile. The body is cut where the work changes cores. Its first two stages work on iteration
``i``, the next two on iteration ``i - ahead``, and so on; the loop runs as many times more, and each stage only where its
iteration exists. So a core always has work that it needs nothing for, and no statement of a core passes another that it shares
a value with.

What one iteration hands to a later stage gets a ring of as many slots as iterations lie between, with the slot that belongs to
the iteration in each stage. Sound because statements of different stages share nothing else: a value that goes from iteration
to iteration, or that anything outside of the loop sees, is touched in one stage alone, which runs its iterations in order. A
buffer may hold several values one after the other, of which none is needed for the next: those that one stage alone has to do
with stay in the buffer, as the stages of a core follow each other, and need no ring.

Runs on the tile dialect after ``sink-buffers``: what lives in the body is of one iteration, what lives outside is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from tilelang_npu import target as chips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import Rounds, Smaller
from tilelang_npu.dialects.ir.remarks import DONE, Remark, Turns, add_remark, record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import name_of
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.cores import core_of
from tilelang_npu.transforms.ir.locations import line_of
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import nbytes_of, spaced
from tilelang_npu.transforms.tile.channels import is_hand_over
from tilelang_npu.transforms.tile.l2_room import L2Room, fewer_slots, l2_room, workspaces_in
from tilelang_npu.transforms.tile.skew import Piece, Skew, rings_of
from tilelang_npu.transforms.tile.staged_body import StagedBody, Statement, StoredValue, cut_body, launch_of

Trial = Callable[[ModuleOp], str | None]
"""What there is no room for in the memories of a module."""
_SHARE_FOR_RINGS = 16
"""Rings on chip take at most one part in so many of their memory, beside those through which the cores hand over."""


class _Overlap:
    """Rewrites a loop by the stages of its body.

    Args:
        body: the body, cut.
        ahead: iterations between a pair of stages and the next.
    """

    def __init__(self, body: StagedBody, ahead: int) -> None:
        self.body, self.ahead = body, ahead
        self.loop = body.loop
        self._stages = [self._in_order([s for s in body.statements if s.stage == stage]) for stage in range(body.stages)]
        self._pieces = [Piece(self.lag(number), part) for number, statements in enumerate(self._stages)
                        for part in self._parts(statements)]
        self.rings, self._lags = rings_of(self._pieces, body.own)

    def lag(self, stage: int) -> int:
        """Iterations that a stage is behind the first."""
        return stage // 2 * self.ahead

    def too_large(self, chip: chips.Chip) -> Refusal | None:
        """Why what goes from stage to stage is too much to keep of several iterations; None where it is little."""
        for space in chip.memory:
            own = sum(nbytes_of(value.root) * count for value, count in self.rings.items()
                      if space_of(value.root) == space and not is_hand_over(value.root))
            if own * _SHARE_FOR_RINGS > (room := chip.memory[space].size):
                return Refusal(f"what they hand on takes {spaced(own)} bytes of {name_of(space)} in {self.rings_in(space)}, "
                               f"and {spaced(room // _SHARE_FOR_RINGS)} are given for that", "shrink the tiles",
                               self.smaller(space, 100 * room // (_SHARE_FOR_RINGS * own)))
        return None

    def hopeless(self, chip: chips.Chip) -> Refusal | None:
        """Why no depth has a plan: a buffer that the loop works on is alone more than its memory; None where none is."""
        for value in dict.fromkeys(value for statement in self.body.statements for value in statement.touches):
            maker, space = value.root.owner, space_of(value.root)
            if isinstance(maker, tile.AllocOp) and space in chip.memory:
                size, room = nbytes_of(value.root), chip.memory[space].size
                if size > room:
                    return Refusal(f"{maker.label.data} alone takes {spaced(size)} bytes of {name_of(space)}, and "
                                   f"{spaced(room)} are there", "shrink the tiles",
                                   Smaller((location_of(maker),), 100 * room // size))
        return None

    def crowded(self, chip: chips.Chip) -> Refusal | None:
        """Why it is not plain that there is room for the rings beside all that the kernel allocates; None where it is."""
        launch = launch_of(self.loop)
        assert launch is not None
        for space in chip.memory:
            sizes = [nbytes_of(op.result) for op in launch.walk()
                     if isinstance(op, tile.AllocOp) and space_of(op.result) == space]
            more = sum(nbytes_of(value.root) * count for value, count in self.rings.items() if space_of(value.root) == space)
            room = chip.memory[space].size
            if more and (beside := sum(sizes) + max(sizes)) + more > room:
                return Refusal(f"beside {spaced(beside)} bytes of buffers in {name_of(space)}, {spaced(more)} more are needed "
                               f"for {self.rings_in(space)}, and {spaced(room)} are there", "shrink the tiles",
                               self.smaller(space, 100 * room // (beside + more)))
        return None

    def smaller(self, space: str, percent: int) -> Smaller:
        """Smaller tiles in place of those that the rings of a memory are of."""
        owners = [value.root.owner for value in self.rings if space_of(value.root) == space]
        return Smaller(tuple(location_of(owner) for owner in owners if isinstance(owner, tile.AllocOp)), percent)

    def rings_in(self, space: str) -> str:
        """The buffers of a memory that get rings, in words."""
        return ", ".join(f"{count} slots of {self.body.own[value].label.data}" for value, count in self.rings.items()
                         if space_of(value.root) == space)

    def as_if_asked(self) -> None:
        """Give the buffers of an iteration no more slots than with ``num_stages`` as large as what is taken: loads that run
        further ahead than the cores are apart win nothing, and take L2 from what the cores wait for."""
        _give_slots({allocation: fewer_slots(allocation, self.ahead) for allocation in self.body.own.values()
                     if space_of(allocation.result) != chips.GM})

    def run(self) -> list[tile.AllocOp]:
        """Replace the body; the buffers that have one slot after all."""
        spared = self._spare_slots(self._stages)
        _give_slots(self._slots())
        Skew(self.loop, self.body.own, self._pieces, self.rings, self._lags).run()
        return spared

    def workspaces(self) -> dict[tile.AllocOp, int]:
        """The slots of the workspaces of an iteration, those of their rings among them."""
        found = self._slots()
        for value, count in self.rings.items():
            if space_of(value.root) == chips.GM:
                allocation = self.body.own[value]
                found[allocation] = found.get(allocation, 0) + count
        return found

    def _slots(self) -> dict[tile.AllocOp, int]:
        """The slots of the workspaces that get no ring: as many as iterations are under way, and one more for what a pair of
        stages passes where another pair follows. When the slot is taken again, what came back from that says that it was read,
        and nobody waits for it."""
        last, found = self.lag(self.body.stages - 1), dict[tile.AllocOp, int]()
        for value, allocation in self.body.own.items():
            if space_of(allocation.result) == chips.GM and value not in self.rings:
                followed = allocation.slots is not None and max(self._lags.get(value, [last])) < last
                found[allocation] = max(fewer_slots(allocation, self.ahead), (self.ahead + 1) * followed)
        return found

    def _spare_slots(self, stages: Sequence[Sequence[Statement]]) -> list[tile.AllocOp]:
        """One slot for what a short piece of the Vector core's work takes: it is loaded during the longer ones."""
        touched = [{value.root for statement in statements for value in statement.touches} for statements in stages]
        work = [sum(nbytes_of(value.root) for statement in statements for value in statement.touches
                    if space_of(value.root) == "ub") for statements in stages]
        spared = []
        for allocation in dict.fromkeys(self.body.own.values()):
            users = [number for number, roots in enumerate(touched) if allocation.result in roots]
            taken = space_of(allocation.result) == "ub" and "slots" in allocation.properties
            if taken and len(users) == 1 and 2 * work[users[0]] <= sum(work):
                del allocation.properties["slots"]
                spared.append(allocation)
        return spared

    def _in_order(self, statements: Sequence[Statement]) -> Sequence[Statement]:
        """The statements of a stage, the loads that need nothing of the other core in front of the first that does: they are
        under way while the stage waits."""
        first = next((at for at, statement in enumerate(statements) if self._meets(statement)), len(statements))
        early: list[Statement] = []
        rest: list[Statement] = []
        for at, statement in enumerate(statements):
            moves = at > first and self._is_load(statement) and not any(_conflict(other, statement) for other in rest)
            (early if moves else rest).append(statement)
        return [*rest[:first], *early, *rest[first:]]

    def _parts(self, statements: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
        """The statements of a stage, apart the loads in front with which it need not wait for the other core: a wait stands in
        front of a branch, and holds all that is in it."""
        loads = 0
        while loads < len(statements) and self._is_load(statements[loads]):
            loads += 1
        met = loads < len(statements) and self._meets(statements[loads])
        yield from (part for part in (statements[:loads * met], statements[loads * met:]) if part)

    def _is_load(self, statement: Statement) -> bool:
        op = statement.op
        return isinstance(op, tile.CopyOp) and space_of(root_of(op.source)) == chips.GM and not self._meets(statement)

    def _meets(self, statement: Statement) -> bool:
        """Whether a statement touches what the other core does too."""
        return any(statement.touches & other.touches for other in self.body.statements if other.core != statement.core)


def _conflict(one: Statement, other: Statement) -> bool:
    """Whether two statements must stay in their order: a buffer that both touch may hold another value for each."""
    def buffers(values: Iterable[StoredValue]) -> set[SSAValue]:
        return {value.root for value in values}

    return bool(buffers(one.writes) & buffers(other.touches) or buffers(one.touches) & buffers(other.writes))


@dataclass(frozen=True)
class OverlapIterations(ModulePass):
    """The pass, which takes as many iterations ahead as there is room for.

    Attributes:
        chip: whose memories the rings must fit.
        overlap: do it at all; off, the loops only lose their depth.
        trial: plans the memories of a module, which is lost, and says what there is no room for; without it all buffers must
            fit beside each other.
    """

    name = "overlap-iterations"
    chip: str = chips.DEFAULT
    overlap: bool = True
    trial: Trial | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        loops = [inner for inner in op.walk() if isinstance(inner, scf.ForOp) and tile.stages_of(inner) > 1]
        for loop, turns in [(loop, _turns(loop)) for loop in loops]:
            where, stages = location_of(loop), tile.stages_of(loop)
            by_hand = tile.SCHEDULE in loop.attributes
            found = self._skew(op, loop, ranges) if self.overlap and not by_hand else None
            if isinstance(found, Refusal):
                record_refusal(op, self.name, where, f"iterations follow each other: {found.why}", found.edit,
                               change=found.change)
            if isinstance(found, _Overlap):
                text = f"the body is {found.body.stages} stages, which work on several iterations at a time"
                record_done(op, self.name, where, text)
                for value, count in found.rings.items():
                    ring = found.body.own[value]
                    record_done(op, self.name, location_of(ring),
                                f"{ring.label.data} is a ring of {count}, from stage to stage")
                for spared in found.run():
                    record_done(op, self.name, location_of(spared),
                                f"{spared.label.data} needs one slot: it is loaded during the longer stages")
                    turns.remove(spared)
            elif not by_hand:
                self._limit(op, loop, ranges)
            add_remark(op, Remark(self.name, DONE, place=where, facts=Turns(
                stages, tuple(each.label.data for each in turns), tuple(space_of(each.result) for each in turns),
                tuple(map(location_of, turns)))))
        for inner in op.walk():
            asked = inner.attributes.pop(tile.CROSS_INTERVAL, None)
            if isinstance(asked, IntegerAttr) and {"AIC", "AIV"} <= {core_of(each) for each in inner.walk()}:
                record_refusal(op, self.name, location_of(inner),
                               f"each iteration has flags of its own between the cores, not one in "
                        f"{asked.value.data} (cross_interval)", "do the work of several iterations in one, or leave it out")
            for name in (tile.NUM_STAGES, tile.SCHEDULE):
                inner.attributes.pop(name, None)
            if isinstance(inner, scf.ForOp):
                for workspace in [each for each in _turns(inner) if space_of(each.result) == chips.GM]:
                    assert workspace.slots is not None
                    text = f"{workspace.label.data} has {workspace.slots.value.data} slots in the loop at {line_of(inner)}"
                    record_done(op, "multi-buffer", location_of(workspace), text, maker=self.name)

    def _skew(self, module: ModuleOp, loop: scf.ForOp, ranges: Ranges) -> _Overlap | Refusal | None:
        """How the iterations of a loop overlap, as many at a time as wins, or why they do not; None where there is nothing to
        gain."""
        body = cut_body(loop, ranges)
        if not isinstance(body, StagedBody):
            return body
        kept: Refusal | None = None
        chip, stages = chips.chip(self.chip), tile.stages_of(loop)
        skews = [_Overlap(body, ahead) for ahead in range(stages, 0, -1)]
        deepest, room = skews[0], l2_room(loop, ranges, chip)
        if room is not None and room.needed(deepest.workspaces()) > room.room:
            skews.sort(key=lambda one: room.time(one.ahead, one.workspaces()))
        for skew in skews:
            if (never := skew.hopeless(chip)) is not None:
                return never
            lack = skew.too_large(chip)
            if lack is None and (lack := skew.crowded(chip)) is not None and self.trial is not None:
                lack = self._tried(module, loop, skew.ahead)
            if lack is None:
                if room is not None and skew is skews[0] is not deepest:
                    _tell_fewer(module, loop, skew.ahead, chip.aic, room, deepest.workspaces())
                    skew.as_if_asked()
                return skew
            kept = lack if skew.ahead == 1 else kept
        return kept  # of the fewest iterations ahead: no fewer stages would do

    def _limit(self, module: ModuleOp, loop: scf.ForOp, ranges: Ranges) -> None:
        """Leave the workspaces of a loop whose iterations stand as they are no more slots than L2 has room for."""
        stages, workspaces = tile.stages_of(loop), workspaces_in(loop)
        choices = {ahead: {each: fewer_slots(each, ahead) for each in workspaces} for ahead in range(stages, 1, -1)}
        chip = chips.chip(self.chip)
        room = l2_room(loop, ranges, chip) if workspaces else None
        if room is None or room.needed(choices[stages]) <= room.room:
            return
        taken = min(choices, key=lambda ahead: room.time(ahead, choices[ahead]))
        if taken < stages:
            _tell_fewer(module, loop, taken, chip.aic, room, choices[stages])
            _give_slots(choices[taken])

    def _tried(self, module: ModuleOp, loop: scf.ForOp, ahead: int) -> Refusal | None:
        """Why there is no plan of the memories with so many iterations under way; None where there is one."""
        assert self.trial is not None
        copied = module.clone()
        at = next(number for number, op in enumerate(module.walk()) if op is loop)
        twin = next(op for number, op in enumerate(copied.walk()) if number == at)
        assert isinstance(twin, scf.ForOp)
        body = cut_body(twin, Ranges())
        assert isinstance(body, StagedBody), "a copy is cut as the loop is"
        skew = _Overlap(body, ahead)
        rings = skew.rings_in("ub") or skew.rings_in("cbuf")
        change = skew.smaller("ub" if skew.rings_in("ub") else "cbuf", 99)
        skew.run()
        for op in copied.walk():
            op.attributes.pop(tile.NUM_STAGES, None)
        lack = self.trial(copied)
        return None if lack is None else Refusal(f"with {rings}, {lack}", "shrink the tiles", change)


def _give_slots(slots: Mapping[tile.AllocOp, int]) -> None:
    for allocation, count in slots.items():
        if allocation.slots is not None:
            allocation.properties["slots"] = IntegerAttr(count, i64)


def _tell_fewer(module: ModuleOp, loop: scf.ForOp, ahead: int, cores: int, room: L2Room,
                asked: Mapping[tile.AllocOp, int]) -> None:
    """Say that fewer iterations are under way than were asked for, as L2 has no room for the slots of more."""
    stages, place = tile.stages_of(loop), location_of(loop)
    near = "one iteration apart" if ahead == 1 else f"as far apart as with num_stages={ahead}"
    text = f"the cores are {near}, as {stages} would be slower: {room.said(asked)}"
    if room.blocks > cores:
        record_refusal(module, OverlapIterations.name, place, text,
                f"launch no more blocks than there are cores, {cores}, each with a loop over its tiles, which use the same "
                "workspaces", change=Rounds(place, cores))
    else:
        record_refusal(module, OverlapIterations.name, place, text, "shrink the tiles that the cores hand over",
                       change=Smaller(tuple(map(location_of, asked))))


def _turns(loop: scf.ForOp) -> list[tile.AllocOp]:
    """The buffers of several slots that a loop's iterations take in turn."""
    return [op for op in loop.body.block.ops
            if isinstance(op, tile.AllocOp) and op.slots is not None and op.slots.value.data > 1]


__all__ = ["OverlapIterations"]
