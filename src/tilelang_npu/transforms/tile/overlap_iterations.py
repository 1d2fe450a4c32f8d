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

from collections.abc import Iterator, Sequence
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
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.ops import dtype
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.locations import stand_in
from tilelang_npu.transforms.ir.optimisations import Deed
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.channels import PURE, uses_below

_LEFT_ALONE = (tile.OnCoreOp, tile.PrintfOp, tile.PrintOp, tile.DumpOp, scf.WhileOp)
_MOST_STAGES = 16
_SHARE_FOR_RINGS = 16
"""Rings on chip take at most one part in so many of their memory."""


@dataclass
class _Statement:
    """A statement of the body.

    Attributes:
        core: who runs it.
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
class _Body:
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
        for first in ("cube", "vector"):
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


def _body_of(loop: scf.ForOp) -> _Body | None:
    """The statements of a loop that can be cut; None where something in it is neither core's alone."""
    block = loop.body.block
    own: dict[SSAValue, tile.AllocOp] = {op.result: op for op in block.ops if isinstance(op, tile.AllocOp)}
    statements = []
    for op in block.ops:
        if isinstance(op, (*PURE, tile.AllocOp, tile.RegionOp, tile.ViewOp)) or op.has_trait(IsTerminator):
            continue
        core = _core_of(op)
        if core is None or op.results:
            return None
        uses = uses_below(op)
        statements.append(_Statement(op, core, {root_of(use.value) for use in uses if use.reads},
                                     {root_of(use.value) for use in uses if use.writes}))
    cores = {statement.core for statement in statements}
    return _Body(loop, statements, own) if len(cores) == 2 else None


def _core_of(op: Operation) -> str | None:
    """The core that runs an operation and all inside it; None where it is not one."""
    found = set()
    for inner in op.walk():
        if isinstance(inner, _LEFT_ALONE) or inner.name.startswith("hivm."):
            return None
        spaces = {space_of(root_of(use.value)) for use in uses_below(inner)} if not inner.regions else set()
        if not spaces.isdisjoint(chips.memories("AIC")):
            found.add("cube")
        elif "ub" in spaces:
            found.add("vector")
        elif spaces:
            return None
    return found.pop() if len(found) == 1 else None


class _Skew:
    """Rewrites a loop by the stages of its body.

    Args:
        body: the body, cut.
        ahead: iterations between a pair of stages and the next.
    """

    def __init__(self, body: _Body, ahead: int) -> None:
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

    def fits(self, chip: chips.Chip) -> bool:
        """Whether what the rings take on chip is little, and there beside everything that the kernel allocates."""
        launch = self.loop.parent_op()
        while launch is not None and not isinstance(launch, tile.LaunchOp):
            launch = launch.parent_op()
        if launch is None:
            return False
        for space in chip.memory:
            sizes = [_bytes(op.result) for op in launch.walk() if isinstance(op, tile.AllocOp) and space_of(op.result) == space]
            more = sum(_bytes(root) * count for root, count in self.rings.items() if space_of(root) == space)
            room = chip.memory[space].size
            if more and (more * _SHARE_FOR_RINGS > room or sum(sizes) + max(sizes) + more > room):
                return False
        return not any(isinstance(use.operation, tile.ViewOp) for root in self.rings for use in root.uses)

    def run(self) -> None:
        """Replace the body."""
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
        self._spare_slots(stages)
        for number, statements in enumerate(stages):
            if statements:
                self._stage(number, statements, kept, rings, end, last, terminator)
        for op in reversed(old):
            if op.parent_block() is None:
                op.erase(safe_erase=False)
        for root in rings:
            Rewriter.erase_op(self.body.own[root])

    def _spare_slots(self, stages: Sequence[Sequence[_Statement]]) -> None:
        """One slot for what a short piece of the Vector core's work takes: it is loaded during the longer ones."""
        work = [sum(_bytes(root) for statement in statements for root in statement.touches if space_of(root) == "ub")
                for statements in stages]
        for root, allocation in self.body.own.items():
            users = [number for number, statements in enumerate(stages) if any(root in each.touches for each in statements)]
            taken = space_of(root) == "ub" and "slots" in allocation.properties
            if taken and len(users) == 1 and 2 * work[users[0]] <= sum(work):
                del allocation.properties["slots"]

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
        self._put(scf.IfOp(condition, [], Region(inner)), first, before)

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


def _bytes(buffer: SSAValue) -> int:
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    total: int = dtype(str(kind.element_type)).nbytes
    for size in kind.get_shape():
        total *= size
    return total


def _loops(module: ModuleOp) -> Iterator[scf.ForOp]:
    for op in list(module.walk()):
        if isinstance(op, scf.ForOp) and tile.stages_of(op) > 1 and not op.iter_args:
            yield op


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
        for _ in self._overlapped(op):
            pass

    def deeds(self, module: ModuleOp) -> Iterator[Deed]:
        """See ``Telling``."""
        for where, stages in self._overlapped(module.clone()):
            yield Deed(self.name, where, f"the body is {stages} stages, which work on several iterations at a time")

    def _overlapped(self, op: ModuleOp) -> Iterator[tuple[Location | None, int]]:
        """Run; where each loop is that was cut, and into how many stages."""
        ranges = Ranges()
        for loop in _loops(op) if self.overlap else ():
            body = _body_of(loop)
            if body is not None and ranges.constant(loop.step) == 1 and body.cut() and body.stages > 2:
                skew = _Skew(body, tile.stages_of(loop))
                if skew.fits(chips.chip(self.chip)):
                    yield location_of(loop), body.stages
                    skew.run()
        for inner in op.walk():
            inner.attributes.pop(tile.NUM_STAGES, None)


__all__ = ["OverlapIterations"]
