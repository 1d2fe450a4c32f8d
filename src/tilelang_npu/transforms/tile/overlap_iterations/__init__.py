"""Skews a pipelined loop, so that the Cube core and the Vector cores work on several of its iterations at the same time.

An iteration of attention is a product (Cube), a softmax (Vector), a product (Cube), a sum (Vector). Executed one after the
other, each core waits for the latest tile of the other core. The pass divides the body into stages, with a new stage wherever
the work changes cores (:mod:`.stages`). In iteration ``i`` of the new loop, the first two stages work on iteration ``i`` of the
old loop, the next two on iteration ``i - ahead``, the next two on iteration ``i - 2 * ahead``, and so on. The new loop has more
iterations, and each stage is executed only where its iteration of the old loop exists (``skew_loop``). So a core always has
work that does not depend on unfinished work of the other core.

A value that is passed between stages of different iterations gets a ring buffer: a buffer with a slot for each iteration
between them. The rewrite is sound because stages share no other values: a value that survives an iteration, or is used outside
of the loop, is accessed in one stage only, which executes its iterations in order. A buffer may hold several independent values
one after another in an iteration. Values that only one stage accesses stay in the buffer, because one core executes its stages
one after another.

The pass runs on the tile dialect after ``sink-buffers``, when a buffer that is allocated in the body does not survive an
iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import SSAValue

from tilelang_npu import target as chips
from tilelang_npu.analysis.buffer_sizes import nbytes_of, spaced
from tilelang_npu.analysis.buffers import root_of, slot_count, space_of
from tilelang_npu.analysis.channels import is_hand_over
from tilelang_npu.analysis.cores import core_of
from tilelang_npu.analysis.locations import line_of
from tilelang_npu.analysis.loop_body import Statement, StoredValue
from tilelang_npu.analysis.nesting import launch_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import Rounds, Smaller
from tilelang_npu.dialects.ir.remarks import DONE, Remark, Turns, add_remark, record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import BufferSpace
from tilelang_npu.transforms.infra.optimisations import Refusal
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial
from tilelang_npu.transforms.infra.skew_loop import Piece, SkewedLoop, rings_of
from tilelang_npu.transforms.tile.overlap_iterations.l2_capacity import L2Capacity, l2_capacity, slots_with_depth, workspaces_in
from tilelang_npu.transforms.tile.overlap_iterations.stages import StagedBody, cut_into_stages

_SHARE_FOR_RINGS = 16
"""Ring buffers on chip, except for those that transfer tiles between cores, take at most one part in this many of a memory."""


class _OverlappedLoop:
    """A loop, rewritten by the stages of its body.

    Args:
        body: the body, divided into stages.
        ahead: the number of iterations between one pair of stages and the next.

    Attributes:
        rings: the values that get ring buffers, with their numbers of slots.
    """

    def __init__(self, body: StagedBody, ahead: int) -> None:
        self.body, self.ahead = body, ahead
        self.loop = body.loop
        self._statements_by_stage = [self._loads_first([s for s in body.statements if s.stage == stage])
                                     for stage in range(body.stages)]
        self._pieces = [Piece(self.lag(number), part) for number, statements in enumerate(self._statements_by_stage)
                        for part in self._split_leading_loads(statements)]
        self.rings, self._lags = rings_of(self._pieces, body.own)

    def lag(self, stage: int) -> int:
        """Returns the lag of a stage in iterations: while the first stage executes iteration ``i``, this one executes iteration
        ``i - lag``.
        """
        return stage // 2 * self.ahead

    def why_rings_too_large(self, chip: chips.Chip) -> Refusal | None:
        """Returns why the ring buffers take too large a part of a memory; None where they do not."""
        for space in chip.memory:
            own = sum(nbytes_of(value.root) * count for value, count in self.rings.items()
                      if space_of(value.root) == space and not is_hand_over(value.root))
            if own * _SHARE_FOR_RINGS > (capacity := chip.memory[space].size):
                return Refusal(f"the buffers that pass values between stages of the loop would take {spaced(own)} bytes of "
                               f"{name_of(space)} ({self.rings_in(space)}), and at most "
                               f"{spaced(capacity // _SHARE_FOR_RINGS)} bytes of it are used for that",
                               "shrink the tiles in these buffers",
                               self.shrink_edit(space, 100 * capacity // (_SHARE_FOR_RINGS * own)))
        return None

    def why_never_fits(self, chip: chips.Chip) -> Refusal | None:
        """Returns why no depth has a memory plan: one buffer of the loop alone exceeds its memory; None where none does."""
        for value in dict.fromkeys(value for statement in self.body.statements for value in statement.accessed):
            maker, space = value.root.owner, space_of(value.root)
            if isinstance(maker, tile.AllocOp) and (memory := chip.memory_of(space)) is not None:
                size, capacity = nbytes_of(value.root), memory.size
                if size > capacity:
                    return Refusal(f"{maker.label.data} alone takes {spaced(size)} bytes of {name_of(space)}, which has "
                                   f"{spaced(capacity)}", f"shrink {maker.label.data}",
                                   Smaller((location_of(maker),), 100 * capacity // size))
        return None

    def fits_side_by_side(self, chip: chips.Chip) -> bool:
        """Whether the ring buffers and all allocations of the kernel fit in their memories without sharing bytes.

        If not, memory planning has to be tried.
        """
        launch = launch_of(self.loop)
        assert launch is not None
        for space in chip.memory:
            sizes = [nbytes_of(op.result) for op in launch.walk()
                     if isinstance(op, tile.AllocOp) and space_of(op.result) == space]
            more = sum(nbytes_of(value.root) * count for value, count in self.rings.items() if space_of(value.root) == space)
            if more and sum(sizes) + max(sizes) + more > chip.memory[space].size:
                return False
        return True

    def shrink_edit(self, space: BufferSpace, percent: int) -> Smaller:
        """Returns the edit that shrinks the buffers of a memory that get ring buffers to ``percent`` of their bytes."""
        owners = [value.root.owner for value in self.rings if space_of(value.root) == space]
        return Smaller(tuple(location_of(owner) for owner in owners if isinstance(owner, tile.AllocOp)), percent)

    def rings_in(self, space: BufferSpace) -> str:
        """Returns a text for a message that lists the ring buffers of a memory."""
        return ", ".join(f"{count} slots of {self.body.own[value].label.data}" for value, count in self.rings.items()
                         if space_of(value.root) == space)

    def limit_slots_to_depth(self) -> None:
        """Gives the buffers of an iteration no more slots than a loop with ``num_stages=ahead`` gives them.

        More slots would let loads run earlier than the cores need them, which gains nothing and takes L2 from the workspaces.
        """
        _set_slots({allocation: slots_with_depth(allocation, self.ahead) for allocation in self.body.own.values()
                    if space_of(allocation.result) != chips.GM})

    def rewrite(self) -> list[tile.AllocOp]:
        """Rewrites the loop; returns the buffers that now have one slot."""
        spared = self._drop_needless_slots(self._statements_by_stage)
        _set_slots(self._slots_without_rings())
        SkewedLoop(self.loop, self.body.own, self._pieces, self.rings, self._lags).rewrite_with_conditions()
        return spared

    def workspace_slots(self) -> dict[tile.AllocOp, int]:
        """Returns the slots of the workspaces of an iteration, with those of their ring buffers."""
        found = self._slots_without_rings()
        for value, count in self.rings.items():
            if space_of(value.root) == chips.GM:
                allocation = self.body.own[value]
                found[allocation] = found.get(allocation, 0) + count
        return found

    def _slots_without_rings(self) -> dict[tile.AllocOp, int]:
        """Returns the slots of the workspaces that get no ring buffer: one for each iteration in flight.

        A workspace between two stages that another pair of stages follows gets one more. When its slot is used again, the
        transfer of the later pair has already shown that the slot was read, so no core waits for the slot.
        """
        last, found = self.lag(self.body.stages - 1), dict[tile.AllocOp, int]()
        for value, allocation in self.body.own.items():
            if space_of(allocation.result) == chips.GM and value not in self.rings:
                followed = allocation.slots is not None and max(self._lags.get(value, [last])) < last
                found[allocation] = max(slots_with_depth(allocation, self.ahead), (self.ahead + 1) * followed)
        return found

    def _drop_needless_slots(self, stages: Sequence[Sequence[Statement]]) -> list[tile.AllocOp]:
        """Removes the further slots of buffers in UB that only one stage uses, if the stage has at most half of the Vector
        core's work; returns these buffers.

        The load of such a buffer for the next iteration runs while the Vector core executes the other stages.
        """
        touched = [{value.root for statement in statements for value in statement.accessed} for statements in stages]
        work = [sum(nbytes_of(value.root) for statement in statements for value in statement.accessed
                    if space_of(value.root) == "ub") for statements in stages]
        spared = []
        for allocation in dict.fromkeys(self.body.own.values()):
            users = [number for number, roots in enumerate(touched) if allocation.result in roots]
            taken = space_of(allocation.result) == "ub" and "slots" in allocation.properties
            if taken and len(users) == 1 and 2 * work[users[0]] <= sum(work):
                del allocation.properties["slots"]
                spared.append(allocation)
        return spared

    def _loads_first(self, statements: Sequence[Statement]) -> Sequence[Statement]:
        """Returns the statements of a stage with the loads that do not depend on the other core before the first statement that
        does.

        Such loads run while the stage waits.
        """
        first = next((at for at, statement in enumerate(statements) if self._shares_value_across_cores(statement)),
                     len(statements))
        early: list[Statement] = []
        rest: list[Statement] = []
        for at, statement in enumerate(statements):
            moves = at > first and self._is_load(statement) and not any(
                _have_buffer_conflict(other, statement) for other in rest)
            (early if moves else rest).append(statement)
        return [*rest[:first], *early, *rest[first:]]

    def _split_leading_loads(self, statements: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
        """Yields the statements of a stage, in two parts if leading loads need not wait for the other core.

        A wait is placed before the branch around a part, and delays everything in it.
        """
        loads = 0
        while loads < len(statements) and self._is_load(statements[loads]):
            loads += 1
        met = loads < len(statements) and self._shares_value_across_cores(statements[loads])
        yield from (part for part in (statements[:loads * met], statements[loads * met:]) if part)

    def _is_load(self, statement: Statement) -> bool:
        op = statement.op
        return (isinstance(op, tile.CopyOp) and space_of(root_of(op.source)) == chips.GM
                and not self._shares_value_across_cores(statement))

    def _shares_value_across_cores(self, statement: Statement) -> bool:
        """Whether a statement accesses a value that a statement of the other core accesses too."""
        return any(statement.accessed & other.accessed for other in self.body.statements if other.core != statement.core)


def _have_buffer_conflict(one: Statement, other: Statement) -> bool:
    """Whether two statements must keep their order: both access a buffer, if only for different values, and one writes it."""
    def buffers(values: Iterable[StoredValue]) -> set[SSAValue]:
        return {value.root for value in values}

    return bool(buffers(one.writes) & buffers(other.accessed) or buffers(one.accessed) & buffers(other.writes))


@dataclass(frozen=True)
class OverlapIterations(PassWithPlanTrial):
    """Skews a pipelined loop, so that the Cube core and the Vector cores work on several of its iterations at the same time.

    The number of iterations between two pairs of stages is at most the loop's ``num_stages``, and as large as memory allows. If
    the ring buffers possibly do not fit, memory planning is tried on a copy of the module. If the pass is not enabled, it only
    removes the attributes of pipelined loops.
    """

    name = "overlap-iterations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        loops = [inner for inner in op.walk() if isinstance(inner, scf.ForOp) and tile.stages_of(inner) > 1]
        for loop, turns in [(loop, _multi_buffers_of(loop)) for loop in loops]:
            where, stages = location_of(loop), tile.stages_of(loop)
            by_hand = tile.SCHEDULE in loop.attributes
            found = self._choose_depth(op, loop, ranges) if self.enabled and not by_hand else None
            if isinstance(found, Refusal):
                record_refusal(op, self.name, where, f"iterations do not overlap: {found.why}", found.edit,
                               change=found.change)
            if isinstance(found, _OverlappedLoop):
                text = (f"the loop's body is divided into {found.body.stages} stages, alternately of the Cube core and the "
                        "Vector cores, which work on different iterations at the same time")
                record_done(op, self.name, where, text)
                for value, count in found.rings.items():
                    ring = found.body.own[value]
                    record_done(op, self.name, location_of(ring),
                                f"{ring.label.data} has {count} slots, because stages of different iterations use it")
                for spared in found.rewrite():
                    record_done(op, self.name, location_of(spared),
                                f"{spared.label.data} has only one slot: only one stage uses {spared.label.data}, and its "
                                "next load runs while the Vector cores execute the loop's other stages, which take at least as "
                                "long")
                    turns.remove(spared)
            elif not by_hand:
                self._limit_workspaces(op, loop, ranges)
            add_remark(op, Remark(self.name, DONE, place=where, facts=Turns(
                stages, tuple(each.label.data for each in turns), tuple(space_of(each.result) for each in turns),
                tuple(map(location_of, turns)))))
        for inner in op.walk():
            asked = inner.attributes.pop(tile.CROSS_INTERVAL, None)
            if isinstance(asked, IntegerAttr) and {"AIC", "AIV"} <= {core_of(each) for each in inner.walk()}:
                record_refusal(op, self.name, location_of(inner),
                               f"the Cube core and the Vector cores synchronise in every iteration of the loop, not one in "
                               f"{asked.value.data} iterations as cross_interval asks",
                               f"let one iteration do the work of {asked.value.data}, or remove cross_interval")
            for name in (tile.NUM_STAGES, tile.SCHEDULE):
                inner.attributes.pop(name, None)
            if isinstance(inner, scf.ForOp):
                for workspace in [each for each in _multi_buffers_of(inner) if space_of(each.result) == chips.GM]:
                    text = f"{workspace.label.data} has {slot_count(workspace)} slots in the loop at {line_of(inner)}"
                    record_done(op, "multi-buffer", location_of(workspace), text, maker=self.name)

    def _choose_depth(self, module: ModuleOp, loop: scf.ForOp, ranges: Ranges) -> _OverlappedLoop | Refusal | None:
        """Returns the loop with the best depth, or why its iterations do not overlap; None where overlapping gains nothing."""
        body = cut_into_stages(loop, ranges)
        if not isinstance(body, StagedBody):
            return body
        refusal: Refusal | None = None
        chip, stages = chips.chip(self.chip), tile.stages_of(loop)
        candidates = [_OverlappedLoop(body, ahead) for ahead in range(stages, 0, -1)]
        deepest, l2 = candidates[0], l2_capacity(loop, ranges, chip)
        if l2 is not None and l2.bytes_needed(deepest.workspace_slots()) > l2.capacity:
            candidates.sort(key=lambda one: l2.relative_time(one.ahead, one.workspace_slots()))
        for overlapped in candidates:
            if (never := overlapped.why_never_fits(chip)) is not None:
                return never
            lack = overlapped.why_rings_too_large(chip)
            if lack is None and not overlapped.fits_side_by_side(chip):
                lack = self._try_depth(module, loop, overlapped.ahead)
            if lack is None:
                if l2 is not None and overlapped is candidates[0] is not deepest:
                    _report_smaller_depth(module, loop, overlapped.ahead, chip.aic, l2, deepest.workspace_slots())
                    overlapped.limit_slots_to_depth()
                return overlapped
            refusal = lack if overlapped.ahead == 1 else refusal
        return refusal  # of depth 1, which needs the least memory

    def _limit_workspaces(self, module: ModuleOp, loop: scf.ForOp, ranges: Ranges) -> None:
        """Reduces the workspace slots of a loop that is not overlapped to those that L2 can hold."""
        stages, workspaces = tile.stages_of(loop), workspaces_in(loop)
        choices = {ahead: {each: slots_with_depth(each, ahead) for each in workspaces} for ahead in range(stages, 1, -1)}
        chip = chips.chip(self.chip)
        l2 = l2_capacity(loop, ranges, chip) if workspaces else None
        if l2 is None or l2.bytes_needed(choices[stages]) <= l2.capacity:
            return
        taken = min(choices, key=lambda ahead: l2.relative_time(ahead, choices[ahead]))
        if taken < stages:
            _report_smaller_depth(module, loop, taken, chip.aic, l2, choices[stages])
            _set_slots(choices[taken])

    def _try_depth(self, module: ModuleOp, loop: scf.ForOp, ahead: int) -> Refusal | None:
        """Returns why the memories have no plan with a depth; None where they have one."""
        copied = module.clone()
        at = next(number for number, op in enumerate(module.walk()) if op is loop)
        twin = next(op for number, op in enumerate(copied.walk()) if number == at)
        assert isinstance(twin, scf.ForOp)
        body = cut_into_stages(twin, Ranges())
        assert isinstance(body, StagedBody), "a copy is cut as the loop is"
        overlapped = _OverlappedLoop(body, ahead)
        rings = overlapped.rings_in("ub") or overlapped.rings_in("cbuf")
        change = overlapped.shrink_edit("ub" if overlapped.rings_in("ub") else "cbuf", 99)
        overlapped.rewrite()
        for op in copied.walk():
            op.attributes.pop(tile.NUM_STAGES, None)
        lack = self.missing_room(copied)
        return None if lack is None else Refusal(f"with {rings}, memory planning fails: {lack}", "shrink the tiles", change)


def _set_slots(slots: Mapping[tile.AllocOp, int]) -> None:
    """Sets the number of slots of allocations that have several."""
    for allocation, count in slots.items():
        if allocation.slots is not None:
            allocation.properties["slots"] = IntegerAttr(count, i64)


def _report_smaller_depth(module: ModuleOp, loop: scf.ForOp, ahead: int, cores: int, l2: L2Capacity,
                          asked: Mapping[tile.AllocOp, int]) -> None:
    """Records that fewer iterations are in flight than the author asked for, because L2 cannot hold the slots of more."""
    stages, place = tile.stages_of(loop), location_of(loop)
    near = "one iteration apart" if ahead == 1 else f"as far apart as with num_stages={ahead}"
    text = (f"the Cube core and the Vector cores work {near}, because num_stages={stages} would be slower: "
            f"{l2.describe_lack(asked)}")
    if l2.blocks > cores:
        record_refusal(module, OverlapIterations.name, place, text,
                f"launch at most {cores} blocks, one for each core, and let each block loop over several tiles, which then "
                "use the same workspaces", change=Rounds(place, cores))
    else:
        record_refusal(module, OverlapIterations.name, place, text,
                       "shrink the tiles that the Cube core and the Vector cores pass to each other",
                       change=Smaller(tuple(map(location_of, asked))))


def _multi_buffers_of(loop: scf.ForOp) -> list[tile.AllocOp]:
    """Returns the buffers with several slots that are allocated in a loop's body."""
    return [op for op in loop.body.block.ops
            if isinstance(op, tile.AllocOp) and slot_count(op) > 1]


__all__ = ["OverlapIterations"]
