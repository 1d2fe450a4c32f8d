"""Let both cores of a pipelined loop work on several iterations at a time, where an iteration goes to and fro between them.

An iteration of attention is a product (Cube), a softmax (Vector), a product (Cube), a sum (Vector): read as a sequence, each
core waits for the other's latest tile. The body is cut where the work changes cores. Its first two stages work on iteration
``i``, the next two on iteration ``i - ahead``, and so on; the loop runs as many times more, and each stage only where its
iteration exists. So a core always has work that it needs nothing for, and no statement of a core passes another that it shares
a value with.

What one iteration hands to a later stage gets a ring of as many slots as iterations lie between, with the slot that belongs to
the iteration in each stage. Sound because statements of different stages share nothing else: a value that goes from iteration
to iteration, or that anything outside of the loop sees, is touched in one stage alone, which runs its iterations in order.

Runs on the tile dialect after ``sink-buffers``: what lives in the body is of one iteration, what lives outside is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tilelang_npu import target as chips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.effects import is_pure
from tilelang_npu.dialects.remarks import DONE, Remark, Turns, done, refused, tell
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import name_of
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.cores import core_of, has_core, put_core
from tilelang_npu.transforms.ir.locations import line_of, stand_in
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import nbytes_of, spaced
from tilelang_npu.transforms.tile.channels import is_hand_over, uses_below

_LEFT_ALONE = (tile.OnCoreOp, tile.PrintfOp, tile.PrintOp, tile.DumpOp, scf.WhileOp)
_MOST_STAGES = 16
_SHARE_FOR_RINGS = 16
"""Rings on chip take at most one part in so many of their memory, beside those through which the cores hand over."""


@dataclass
class _Statement:
    """A statement of the body.

    Attributes:
        core: who runs it, ``AIC`` or ``AIV``.
        reads, writes: the buffers that it touches.
        stage: which of the pieces of the body it is in.
    """

    op: Operation
    core: str
    reads: set[SSAValue]
    writes: set[SSAValue]
    stage: int = 0

    @property
    def touches(self) -> set[SSAValue]:
        return self.reads | self.writes


@dataclass
class _StagedBody:
    """The body of a loop, cut into stages.

    Attributes:
        own: the buffers that are allocated in it.
        before: for each statement those further up that it must follow in its iteration.
        groups: statements that share what outlives an iteration.
    """

    loop: scf.ForOp
    statements: list[_Statement]
    own: dict[SSAValue, tile.AllocOp]
    before: list[list[int]] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)

    @property
    def stages(self) -> int:
        return 1 + max(statement.stage for statement in self.statements)

    def cut(self) -> bool:
        """Give the statements their stages, with the core that makes fewer of them in front; whether there is a way."""
        self._relate()
        found = []
        for first in ("AIC", "AIV"):
            if self._levels(first):
                found.append((self.stages, [statement.stage for statement in self.statements]))
        if not found:
            return False
        for statement, stage in zip(self.statements, min(found, key=lambda one: one[0])[1], strict=True):
            statement.stage = stage
        self._delay_loads()
        return True

    def _relate(self) -> None:
        shared: dict[SSAValue, list[int]] = {}
        for index, statement in enumerate(self.statements):
            self.before.append([other for other in range(index) if self._conflict(self.statements[other], statement)])
            for root in statement.touches:
                if root not in self.own:
                    shared.setdefault(root, []).append(index)
        self.groups = [users for root, users in shared.items() if any(root in self.statements[user].writes for user in users)]

    def _conflict(self, first: _Statement, second: _Statement) -> bool:
        common = (first.writes & second.touches) | (first.touches & second.writes)
        return any(root in self.own for root in common)

    def _levels(self, first: str) -> bool:
        """The earliest stages, where even ones are the first core's."""
        for statement in self.statements:
            statement.stage = 0 if statement.core == first else 1
        changed = True
        while changed:
            changed = False
            for index, statement in enumerate(self.statements):
                least = max((self.statements[other].stage + (self.statements[other].core != statement.core)
                             for other in self.before[index]), default=0)
                changed = _raise_to(statement, least) or changed
            for group in self.groups:
                least = max(self.statements[index].stage for index in group)
                for index in group:
                    changed = _raise_to(self.statements[index], least) or changed
            if self.stages > _MOST_STAGES:
                return False
        return True

    def _delay_loads(self) -> None:
        """Load what nobody writes in the stage that wants it first: it needs no slots in between."""
        for index in reversed(range(len(self.statements))):
            load = self.statements[index]
            if isinstance(load.op, tile.CopyOp) and not any(index in group for group in self.groups) and not self.before[index]:
                behind = [other for other, needs in zip(self.statements, self.before, strict=True) if index in needs]
                if behind and all(other.core == load.core for other in behind):
                    load.stage = max(load.stage, min(other.stage for other in behind))


def _raise_to(statement: _Statement, stage: int) -> bool:
    """To a stage of the statement's core that is no earlier; whether that changes it."""
    if stage <= statement.stage:
        return False
    statement.stage = stage + (stage - statement.stage) % 2
    return True


def _body_of(loop: scf.ForOp) -> _StagedBody | Refusal | None:
    """The statements of a loop that can be cut, or why they cannot; None where the work is one core's alone."""
    block = loop.body.block
    own: dict[SSAValue, tile.AllocOp] = {op.result: op for op in block.ops if isinstance(op, tile.AllocOp)}
    statements = []
    for op in block.ops:
        if is_pure(op) or isinstance(op, tile.AllocOp) or op.has_trait(IsTerminator):
            continue
        core = _core_of(op)
        if core is None or op.results:
            return _neither(op) if _has_both(loop) else None
        uses = uses_below(op)
        statements.append(_Statement(op, core, {root_of(use.value) for use in uses if use.reads},
                                     {root_of(use.value) for use in uses if use.writes}))
    cores = {statement.core for statement in statements}
    return _StagedBody(loop, statements, own) if len(cores) == 2 else None


def _has_both(loop: scf.ForOp) -> bool:
    """Whether both cores have work in a loop."""
    return {"AIC", "AIV"} <= {core_of(inner) for inner in loop.walk()}


def _neither(op: Operation) -> Refusal:
    """Why a statement belongs to no stage."""
    if op.results:
        return Refusal(f"{line_of(op)} hands a scalar to what comes behind", "keep in a tile what changes")
    for inner in op.walk():
        if isinstance(inner, _LEFT_ALONE) or inner.name.startswith("hivm."):
            return Refusal(f"{line_of(inner)} prints, or its author orders it or puts it on a core",
                           "leave order and cores to the compiler, and print outside of the loop")
    return Refusal(f"{line_of(op)} is work of both cores, or of neither", "split it into a statement for each core")


def _core_of(op: Operation) -> str | None:
    """The core that runs an operation and all inside it; None where it is not one."""
    found = set()
    for inner in op.walk():
        if isinstance(inner, _LEFT_ALONE) or inner.name.startswith("hivm."):
            return None
        if not inner.regions and has_core(inner):
            found.add(core_of(inner))
    return found.pop() if len(found) == 1 and "either" not in found else None


class _Skew:
    """Rewrites a loop by the stages of its body.

    Args:
        body: the body, cut.
        ahead: iterations between a pair of stages and the next.
    """

    def __init__(self, body: _StagedBody, ahead: int) -> None:
        self.body, self.ahead = body, ahead
        self.loop = body.loop
        self.index = self.loop.body.block.args[0]
        self.lags: dict[SSAValue, list[int]] = {}
        for statement in body.statements:
            for root in statement.touches & body.own.keys():
                self.lags.setdefault(root, []).append(self.lag(statement.stage))
        self.rings = {root: max(lags) - min(lags) + 1 for root, lags in self.lags.items() if len(set(lags)) > 1}

    def lag(self, stage: int) -> int:
        """Iterations that a stage is behind the first."""
        return stage // 2 * self.ahead

    def crowded(self, chip: chips.Chip) -> Refusal | None:
        """Why there are no rings; None where what they take on chip is little, and there beside everything that the kernel
        allocates."""
        launch = _launch_of(self.loop)
        assert launch is not None
        for space in chip.memory:
            sizes = [nbytes_of(op.result) for op in launch.walk()
                     if isinstance(op, tile.AllocOp) and space_of(op.result) == space]
            more = sum(nbytes_of(root) * count for root, count in self.rings.items() if space_of(root) == space)
            room, rings = chip.memory[space].size, self._rings_in(space)
            own = sum(nbytes_of(root) * count for root, count in self.rings.items()
                      if space_of(root) == space and not is_hand_over(root))
            if own * _SHARE_FOR_RINGS > room:
                return Refusal(f"what they hand on takes {spaced(own)} bytes of {name_of(space)} in {rings}, and "
                               f"{spaced(room // _SHARE_FOR_RINGS)} are given for that",
                               "ask for fewer stages (num_stages), or shrink the tiles")
            if more and (beside := sum(sizes) + max(sizes)) + more > room:
                return Refusal(f"beside {spaced(beside)} bytes of buffers in {name_of(space)}, {spaced(more)} more are needed "
                               f"for {rings}, and {spaced(room)} are there", "shrink the tiles")
        return None

    def _rings_in(self, space: str) -> str:
        """The buffers of a memory that get rings, in words."""
        return ", ".join(f"{count} slots of {self.body.own[root].label.data}" for root, count in self.rings.items()
                         if space_of(root) == space)

    def run(self) -> list[tile.AllocOp]:
        """Replace the body; the buffers that have one slot after all."""
        block, loop = self.loop.body.block, self.loop
        stages = [[s for s in self.body.statements if s.stage == stage] for stage in range(self.body.stages)]
        last = self.lag(self.body.stages - 1)
        old = [op for op in block.ops if not isinstance(op, tile.AllocOp)]
        rings = {root: self._ring(self.body.own[root], count) for root, count in self.rings.items()}
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
        for number, statements in enumerate(stages):
            if statements:
                self._stage(number, statements, kept, rings, end, last, terminator)
        for op in reversed(old):
            if op.parent_block() is None:
                op.erase(safe_erase=False)
        for root in rings:
            Rewriter.erase_op(self.body.own[root])
        return spared

    def _spare_slots(self, stages: Sequence[Sequence[_Statement]]) -> list[tile.AllocOp]:
        """One slot for what a short piece of the Vector core's work takes: it is loaded during the longer ones."""
        work = [sum(nbytes_of(root) for statement in statements for root in statement.touches if space_of(root) == "ub")
                for statements in stages]
        spared = []
        for root, allocation in self.body.own.items():
            users = [number for number, statements in enumerate(stages) if any(root in each.touches for each in statements)]
            taken = space_of(root) == "ub" and "slots" in allocation.properties
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

    def _stage(self, number: int, statements: Sequence[_Statement], kept: set[Operation], rings: dict[SSAValue, SSAValue],
               end: SSAValue, last: int, before: Operation) -> None:
        """One stage in front of the terminator: its statements where its iteration exists."""
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
        for root, count in self.rings.items():
            if any(root in statement.touches for statement in statements):
                mapped[root] = self._slot(rings[root], count, (lag - min(self.lags[root])) % count, inner, first)
        for statement in statements:
            for op in self._with_scalars(statement.op, kept, mapped):
                _clone_into(op, inner, mapped)
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
    """The pass.

    Attributes:
        chip: whose memories the rings must fit.
        overlap: do it at all; off, the loops only lose their depth.
    """

    name = "overlap-iterations"
    chip: str = chips.DEFAULT
    overlap: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        loops = [inner for inner in op.walk() if isinstance(inner, scf.ForOp) and tile.stages_of(inner) > 1]
        for loop, turns in [(loop, _turns(loop)) for loop in loops]:
            where, stages = location_of(loop), tile.stages_of(loop)
            found = _skew(loop, ranges, chips.chip(self.chip)) if self.overlap else None
            if isinstance(found, Refusal):
                refused(op, self.name, where, f"iterations follow each other: {found.why}", found.edit)
            elif found is not None:
                text = f"the body is {found.body.stages} stages, which work on several iterations at a time"
                done(op, self.name, where, text)
                for root, count in found.rings.items():
                    ring = found.body.own[root]
                    done(op, self.name, location_of(ring), f"{ring.label.data} is a ring of {count}, from stage to stage")
                for spared in found.run():
                    done(op, self.name, location_of(spared),
                         f"{spared.label.data} needs one slot: it is loaded during the longer stages")
                    turns.remove(spared)
            tell(op, Remark(self.name, DONE, place=where, facts=Turns(
                stages, tuple(each.label.data for each in turns), tuple(space_of(each.result) for each in turns),
                tuple(map(location_of, turns)))))
        for inner in op.walk():
            inner.attributes.pop(tile.NUM_STAGES, None)
            if isinstance(inner, scf.ForOp):
                for workspace in [each for each in _turns(inner) if space_of(each.result) == chips.GM]:
                    assert workspace.slots is not None
                    text = f"{workspace.label.data} has {workspace.slots.value.data} slots in the loop at {line_of(inner)}"
                    done(op, "multi-buffer", location_of(workspace), text, maker=self.name)


def _turns(loop: scf.ForOp) -> list[tile.AllocOp]:
    """The buffers of several slots that a loop's iterations take in turn."""
    return [op for op in loop.body.block.ops
            if isinstance(op, tile.AllocOp) and op.slots is not None and op.slots.value.data > 1]


def _launch_of(op: Operation) -> Operation | None:
    """The launch that an operation is in; None where it is in none any more."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, tile.LaunchOp):
        parent = parent.parent_op()
    return parent


def _skew(loop: scf.ForOp, ranges: Ranges, chip: chips.Chip) -> _Skew | Refusal | None:
    """How the iterations of a loop overlap, or why they do not; None where there is nothing to gain."""
    if _launch_of(loop) is None:  # it was in the body of one that overlaps
        return None
    body = _body_of(loop)
    if not isinstance(body, _StagedBody):
        return body
    if loop.iter_args:
        return Refusal("they hand scalars on to each other", "keep in a tile what changes from iteration to iteration")
    if not body.cut():
        return Refusal(f"cut where the work changes cores, the body has more than {_MOST_STAGES} stages: what one hands to the "
                       "next goes through both cores", "keep on one core what goes from iteration to iteration")
    if body.stages <= 2:
        return None
    if ranges.constant(loop.step) != 1:
        return Refusal("they are more than 1 apart", "count by 1, and multiply where the index is used")
    skew = _Skew(body, tile.stages_of(loop))
    return skew.crowded(chip) or skew


__all__ = ["OverlapIterations"]
