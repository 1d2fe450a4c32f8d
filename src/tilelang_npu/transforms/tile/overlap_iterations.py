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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tilelang_npu import target as chips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.remarks import DONE, Remark, Turns, done, refused, tell
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import name_of
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.cores import core_of, put_core
from tilelang_npu.transforms.ir.locations import line_of, stand_in
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import nbytes_of, spaced
from tilelang_npu.transforms.tile.channels import is_hand_over
from tilelang_npu.transforms.tile.staged_body import StagedBody, Statement, StoredValue, cut_body, launch_of

Trial = Callable[[ModuleOp], str | None]
"""What there is no room for in the memories of a module."""
_SHARE_FOR_RINGS = 16
"""Rings on chip take at most one part in so many of their memory, beside those through which the cores hand over."""


class _Skew:
    """Rewrites a loop by the stages of its body.

    Args:
        body: the body, cut.
        ahead: iterations between a pair of stages and the next.
    """

    def __init__(self, body: StagedBody, ahead: int) -> None:
        self.body, self.ahead = body, ahead
        self.loop = body.loop
        self.index = self.loop.body.block.args[0]
        self.lags: dict[StoredValue, list[int]] = {}
        for statement in body.statements:
            for value in [value for value in statement.touches if value in body.own]:
                self.lags.setdefault(value, []).append(self.lag(statement.stage))
        self.rings = {value: max(lags) - min(lags) + 1 for value, lags in self.lags.items() if len(set(lags)) > 1}

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
                               f"and {spaced(room // _SHARE_FOR_RINGS)} are given for that",
                               "ask for fewer stages (num_stages), or shrink the tiles")
        return None

    def hopeless(self, chip: chips.Chip) -> Refusal | None:
        """Why no depth has a plan: a buffer that the loop works on is alone more than its memory; None where none is."""
        for value in dict.fromkeys(value for statement in self.body.statements for value in statement.touches):
            maker, space = value.root.owner, space_of(value.root)
            if isinstance(maker, tile.AllocOp) and space in chip.memory:
                size, room = nbytes_of(value.root), chip.memory[space].size
                if size > room:
                    return Refusal(f"{maker.label.data} alone takes {spaced(size)} bytes of {name_of(space)}, and "
                                   f"{spaced(room)} are there", "shrink the tiles")
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
                               f"for {self.rings_in(space)}, and {spaced(room)} are there", "shrink the tiles")
        return None

    def rings_in(self, space: str) -> str:
        """The buffers of a memory that get rings, in words."""
        return ", ".join(f"{count} slots of {self.body.own[value].label.data}" for value, count in self.rings.items()
                         if space_of(value.root) == space)

    def run(self) -> list[tile.AllocOp]:
        """Replace the body; the buffers that have one slot after all."""
        block, loop = self.loop.body.block, self.loop
        stages = [[s for s in self.body.statements if s.stage == stage] for stage in range(self.body.stages)]
        last = self.lag(self.body.stages - 1)
        old = [op for op in block.ops if not isinstance(op, tile.AllocOp)]
        rings = {value: self._ring(self.body.own[value], count) for value, count in self.rings.items()}
        end = loop.ub
        more = self._insert(arith.ConstantOp(IntegerAttr(last, IndexType())), loop).results[0]
        step = self._insert(arith.MuliOp(more, loop.step), loop).results[0]
        loop.operands[1] = self._insert(arith.AddiOp(end, step), loop).results[0]
        for op in old:
            if not op.has_trait(IsTerminator):
                block.detach_op(op)
        terminator = block.last_op
        assert terminator is not None
        kept = set(old)
        spared = self._spare_slots(stages)
        self._widen_workspaces()
        for number, statements in enumerate(stages):
            for part in self._parts(statements):
                self._stage(number, part, kept, rings, end, last, terminator)
        for op in reversed(old):
            if op.parent_block() is None:
                op.erase(safe_erase=False)
        for allocation in dict.fromkeys(self.body.own[value] for value in rings):
            if not list(allocation.result.uses):
                Rewriter.erase_op(allocation)
        return spared

    def _widen_workspaces(self) -> None:
        """One slot more than iterations are under way for what a pair of stages passes through GM, where another pair follows:
        when the slot is taken again, what came back from that says that it was read, and nobody waits for it."""
        last = self.lag(self.body.stages - 1)
        for value, allocation in self.body.own.items():
            followed = max(self.lags.get(value, [last])) < last
            if followed and space_of(allocation.result) == chips.GM and (slots := allocation.slots) is not None:
                allocation.properties["slots"] = IntegerAttr(max(slots.value.data, self.ahead + 1), i64)

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

    def _ring(self, allocation: tile.AllocOp, count: int) -> SSAValue:
        kind = allocation.result.type
        assert isinstance(kind, MemRefType)
        wide = MemRefType(kind.element_type, [count, *kind.get_shape()], memory_space=kind.memory_space)
        made = tile.AllocOp(allocation.label.data, wide)
        made.result.name_hint = allocation.result.name_hint
        stand_in(allocation, made)
        Rewriter().insert_op(made, InsertPoint.before(self.loop))
        return made.result

    def _parts(self, statements: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
        """The statements of a stage, apart the loads in front with which it need not wait for the other core: a wait stands in
        front of a branch, and holds all that is in it."""
        loads = 0
        while loads < len(statements) and self._is_load(statements[loads]):
            loads += 1
        met = loads < len(statements) and self._meets(statements[loads])
        yield from (part for part in (statements[:loads * met], statements[loads * met:]) if part)

    def _is_load(self, statement: Statement) -> bool:
        return isinstance(statement.op, tile.CopyOp) and not self._meets(statement)

    def _meets(self, statement: Statement) -> bool:
        """Whether a statement touches what the other core does too."""
        return any(statement.touches & other.touches for other in self.body.statements if other.core != statement.core)

    def _stage(self, number: int, statements: Sequence[Statement], kept: set[Operation], rings: dict[StoredValue, SSAValue],
               end: SSAValue, last: int, before: Operation) -> None:
        """Statements of a stage in front of the terminator, where its iteration exists."""
        lag = self.lag(number)
        first = statements[0].op
        inner = Block()
        mapped: dict[SSAValue, SSAValue] = {}
        index: SSAValue = self.index
        if lag:
            back = self._put(arith.ConstantOp(IntegerAttr(lag, IndexType())), first, before).results[0]
            back = self._put(arith.MuliOp(back, self.loop.step), first, before).results[0]
            start = self._put(arith.AddiOp(self.loop.lb, back), first, before).results[0]
            index = arith_of(inner, arith.SubiOp(self.index, back), first)
        if lag < last:  # what the condition says, for those who ask which numbers an index can be
            final = arith_of(inner, arith.SubiOp(end, self.loop.step), first)
            index = arith_of(inner, arith.MinSIOp(index, final), first)
        mapped[self.index] = arith_of(inner, arith.MaxSIOp(index, self.loop.lb), first)
        conditions: list[SSAValue] = []
        if lag:
            conditions.append(self._put(arith.CmpiOp(self.index, start, "sge"), first, before).results[0])
        if lag < last:
            bound = self._put(arith.AddiOp(end, back), first, before).results[0] if lag else end
            conditions.append(self._put(arith.CmpiOp(self.index, bound, "slt"), first, before).results[0])
        condition = conditions[0]
        if len(conditions) == 2:
            condition = self._put(arith.AndIOp(conditions[0], conditions[1]), first, before).results[0]
        slots = {value: self._slot(rings[value], count, (lag - min(self.lags[value])) % count, inner, first)
                 for value, count in self.rings.items() if any(value in statement.touches for statement in statements)}
        ringed = {value.root for value in slots}
        for statement in statements:
            seen = mapped | {value.root: slots[value] for value in statement.touches & slots.keys()}
            for op in self._with_scalars(statement.op, kept, seen):
                _clone_into(op, inner, seen)
            mapped = {old: new for old, new in seen.items() if root_of(old) not in ringed}  # views are of the statement's value
        inner.add_op(scf.YieldOp())
        put_core(self._put(scf.IfOp(condition, [], Region(inner)), first, before), "either")

    def _slot(self, ring: SSAValue, count: int, lag: int, inner: Block, like: Operation) -> SSAValue:
        """The slot of the stage's iteration: those of the ring are taken in turn."""
        shape = tile.shape_of(ring)
        slots = arith_of(inner, arith.ConstantOp(IntegerAttr(count, IndexType())), like)
        turn = arith_of(inner, arith.SubiOp(self.index, self.loop.lb), like)
        if lag:
            shift = arith_of(inner, arith.ConstantOp(IntegerAttr(count - lag, IndexType())), like)
            turn = arith_of(inner, arith.AddiOp(turn, shift), like)
        turn = arith_of(inner, arith.RemUIOp(turn, slots), like)
        sizes = [1, *shape[1:]]
        return arith_of(inner, tile.RegionOp(ring, [turn] + [0] * (len(shape) - 1), sizes, range(1, len(shape))), like)

    @staticmethod
    def _with_scalars(op: Operation, kept: set[Operation], mapped: dict[SSAValue, SSAValue]) -> list[Operation]:
        """A statement behind the scalars, regions and views of the body that it needs and that are not there yet."""
        needed: list[Operation] = []

        def visit(value: SSAValue) -> None:
            owner = value.owner
            if isinstance(owner, Operation) and owner in kept and value not in mapped and owner not in needed:
                for operand in owner.operands:
                    visit(operand)
                needed.append(owner)

        for inner in op.walk():
            for operand in inner.operands:
                if isinstance(operand, BlockArgument) or not _is_inside(operand.owner, op):
                    visit(operand)
        return [*needed, op]

    def _insert(self, made: Operation, before: Operation) -> Operation:
        stand_in(self.loop, made)
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made

    @staticmethod
    def _put(made: Operation, like: Operation, before: Operation) -> Operation:
        stand_in(like, made)
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made


def arith_of(block: Block, made: Operation, like: Operation) -> SSAValue:
    """Add an operation at the end of a block, in the place of another one; its result."""
    stand_in(like, made)
    block.add_op(made)
    return made.results[0]


def _is_inside(owner: Operation | Block, op: Operation) -> bool:
    return isinstance(owner, Operation) and op.is_ancestor(owner)


def _clone_into(op: Operation, block: Block, mapped: dict[SSAValue, SSAValue]) -> None:
    """A copy at the end of a block; the types of regions follow their sources."""
    if isinstance(op, tile.RegionOp):
        source = mapped.get(op.source, op.source)
        offsets = [mapped.get(each, each) if isinstance(each, SSAValue) else each for each in op.mixed_offsets()]
        sizes = [mapped.get(each, each) if isinstance(each, SSAValue) else each for each in op.mixed_sizes()]
        made: Operation = tile.RegionOp(source, offsets, sizes, op.kept.get_values())
        mapped[op.result] = made.results[0]
        made.results[0].name_hint = op.result.name_hint
    else:
        made = op.clone(value_mapper=mapped)
    made.location = op.location
    block.add_op(made)


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
            found = self._skew(op, loop, ranges) if self.overlap else None
            if isinstance(found, Refusal):
                refused(op, self.name, where, f"iterations follow each other: {found.why}", found.edit)
            elif found is not None:
                text = f"the body is {found.body.stages} stages, which work on several iterations at a time"
                done(op, self.name, where, text)
                for value, count in found.rings.items():
                    ring = found.body.own[value]
                    done(op, self.name, location_of(ring), f"{ring.label.data} is a ring of {count}, from stage to stage")
                for spared in found.run():
                    done(op, self.name, location_of(spared),
                         f"{spared.label.data} needs one slot: it is loaded during the longer stages")
                    turns.remove(spared)
            tell(op, Remark(self.name, DONE, place=where, facts=Turns(
                stages, tuple(each.label.data for each in turns), tuple(space_of(each.result) for each in turns),
                tuple(map(location_of, turns)))))
        for inner in op.walk():
            asked = inner.attributes.pop(tile.CROSS_INTERVAL, None)
            if isinstance(asked, IntegerAttr) and {"AIC", "AIV"} <= {core_of(each) for each in inner.walk()}:
                refused(op, self.name, location_of(inner), f"each iteration has flags of its own between the cores, not one in "
                        f"{asked.value.data} (cross_interval)", "do the work of several iterations in one, or leave it out")
            inner.attributes.pop(tile.NUM_STAGES, None)
            if isinstance(inner, scf.ForOp):
                for workspace in [each for each in _turns(inner) if space_of(each.result) == chips.GM]:
                    assert workspace.slots is not None
                    text = f"{workspace.label.data} has {workspace.slots.value.data} slots in the loop at {line_of(inner)}"
                    done(op, "multi-buffer", location_of(workspace), text, maker=self.name)

    def _skew(self, module: ModuleOp, loop: scf.ForOp, ranges: Ranges) -> _Skew | Refusal | None:
        """How the iterations of a loop overlap, the more of them the better, or why they do not; None where there is nothing to
        gain."""
        body = cut_body(loop, ranges)
        if not isinstance(body, StagedBody):
            return body
        first: Refusal | None = None
        for ahead in range(tile.stages_of(loop), 0, -1):
            skew = _Skew(body, ahead)
            chip = chips.chip(self.chip)
            if (never := skew.hopeless(chip)) is not None:
                return never
            kept = skew.too_large(chip)
            if kept is None and (kept := skew.crowded(chip)) is not None and self.trial is not None:
                kept = self._tried(module, loop, ahead)
            if kept is None:
                return skew
            first = first or kept
        return first

    def _tried(self, module: ModuleOp, loop: scf.ForOp, ahead: int) -> Refusal | None:
        """Why there is no plan of the memories with so many iterations under way; None where there is one."""
        assert self.trial is not None
        copied = module.clone()
        at = next(number for number, op in enumerate(module.walk()) if op is loop)
        twin = next(op for number, op in enumerate(copied.walk()) if number == at)
        assert isinstance(twin, scf.ForOp)
        body = cut_body(twin, Ranges())
        assert isinstance(body, StagedBody), "a copy is cut as the loop is"
        skew = _Skew(body, ahead)
        rings = skew.rings_in("ub") or skew.rings_in("cbuf")
        skew.run()
        for op in copied.walk():
            op.attributes.pop(tile.NUM_STAGES, None)
        lack = self.trial(copied)
        edit = "ask for fewer stages (num_stages), or shrink the tiles"
        return None if lack is None else Refusal(f"with {rings}, {lack}", edit)


def _turns(loop: scf.ForOp) -> list[tile.AllocOp]:
    """The buffers of several slots that a loop's iterations take in turn."""
    return [op for op in loop.body.block.ops
            if isinstance(op, tile.AllocOp) and op.slots is not None and op.slots.value.data > 1]


__all__ = ["OverlapIterations"]
