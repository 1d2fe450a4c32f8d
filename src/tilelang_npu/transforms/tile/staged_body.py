"""The body of a pipelined loop, cut into stages where the work changes cores.

A statement is in the stage of its core behind all that it needs. Statements that share what outlives an iteration are in one
stage, with what stands between them. Of what is left open, little is handed on: a load and what spreads a few numbers over a
tile are in the stage that wants them first, what makes few numbers of a tile in the stage of the tile.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref, scf
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tilelang_npu import target as chips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of, is_pure
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.cores import core_of, has_core
from tilelang_npu.transforms.ir.locations import line_of
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import nbytes_of
from tilelang_npu.transforms.tile.channels import uses_below
from tilelang_npu.transforms.tile.first_writes import is_dead_after, reads_earlier

LEFT_ALONE = (tile.OnCoreOp, *tile.DEBUG_OUTPUT_OPS, scf.WhileOp)
_MOST_STAGES = 16


@dataclass(frozen=True)
class StoredValue:
    """One of the values that a buffer holds one after the other in an iteration: the buffer and which of them."""

    root: SSAValue
    number: int = 0


@dataclass
class Statement:
    """A statement of the body.

    Attributes:
        core: who runs it, ``AIC`` or ``AIV``; ``either`` where it is no matter.
        reads, writes: the values that it touches, of each buffer one, in the order of its effects: the order of a set is
            another one in each run.
        stage: which of the pieces of the body it is in.
    """

    op: Operation
    core: str
    reads: dict[StoredValue, None]
    writes: dict[StoredValue, None]
    stage: int = 0

    @property
    def touches(self) -> KeysView[StoredValue]:
        return (self.reads | self.writes).keys()


@dataclass
class StagedBody:
    """The body of a loop, cut into stages.

    Attributes:
        own: the values that are of one iteration, with the allocations that hold them.
        before: for each statement those further up that it must follow in its iteration.
        groups: statements that share what outlives an iteration.
    """

    loop: scf.ForOp
    statements: list[Statement]
    own: dict[StoredValue, tile.AllocOp]
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
        _, earliest = min(found, key=lambda one: one[0])
        self._put(earliest)
        self._settle()
        settled, taken = [statement.stage for statement in self.statements], self._handed_on(self.own)
        self._put(earliest)
        self._put_off()
        self._settle()
        if self._handed_on(self.own) >= taken:
            self._put(settled)
        return True

    def _put(self, stages: Sequence[int]) -> None:
        for statement, stage in zip(self.statements, stages, strict=True):
            statement.stage = stage

    def _relate(self) -> None:
        shared: dict[StoredValue, list[int]] = {}
        for index, statement in enumerate(self.statements):
            self.before.append([other for other in range(index) if self._conflict(self.statements[other], statement)])
            for value in statement.touches:
                if value not in self.own:
                    shared.setdefault(value, []).append(index)
        self.groups = [users for value, users in shared.items() if any(value in self.statements[user].writes for user in users)]

    def _conflict(self, first: Statement, second: Statement) -> bool:
        common = (first.writes.keys() & second.touches) | (first.touches & second.writes.keys())
        return any(value in self.own for value in common)

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

    def _units(self) -> list[list[int]]:
        """The statements that are in one stage whatever it is: those that share what outlives an iteration, and what stands
        between them."""
        above: list[set[int]] = []
        for needs in self.before:
            above.append(set(needs).union(*(above[other] for other in needs)))
        units: list[set[int]] = []
        for members in [*map(set, self.groups), *({index} for index in range(len(self.statements)))]:
            found, size = set(members), 0
            while len(found) > size:
                size = len(found)
                found.update(*(unit for unit in units if unit & found))
                needed = set[int]().union(*(above[index] for index in found))
                found |= {index for index in needed if above[index] & found}
            units = [unit for unit in units if not unit & found] + [found]
        return sorted(map(sorted, units))

    def _room(self, unit: Sequence[int]) -> tuple[int, int]:
        """The earliest and the latest stage that leave a unit behind what it needs and in front of what needs it."""
        core, now = self.statements[unit[0]].core, self.statements[unit[0]].stage
        low, high = now % 2, (self.stages - 1) - (self.stages - 1 - now) % 2
        for index, (other, needs) in enumerate(zip(self.statements, self.before, strict=True)):
            for member in unit:
                if index not in unit and member in needs:
                    high = min(high, other.stage - (other.core != core))
                if index in self.before[member] and index not in unit:
                    low = max(low, other.stage + (other.core != core))
        return low, high

    def _put_off(self) -> None:
        """Everything as late as can be."""
        units, moved = self._units(), True
        while moved:
            moved = False
            for unit in reversed(units):
                _, high = self._room(unit)
                moved = moved or high > self.statements[unit[0]].stage
                for index in unit:
                    self.statements[index].stage = high

    def _settle(self) -> None:
        """Move what can be in several stages to where the least is handed on, a load to the stage that wants it first: it needs
        no slots in between."""
        units, rounds, moved = self._units(), 0, True
        while moved and rounds < _MOST_STAGES:
            rounds, moved = rounds + 1, False
            for unit in reversed(units):
                first = self.statements[unit[0]]
                now, (low, high) = first.stage, self._room(unit)
                values = dict.fromkeys(value for index in unit for value in self.statements[index].touches)
                load = len(unit) == 1 and isinstance(first.op, tile.CopyOp) and not self.before[unit[0]]
                best = now, self._handed_on(values)
                for stage in range(low, high + 1, 2):
                    for index in unit:
                        self.statements[index].stage = stage
                    taken = self._handed_on(values)
                    if taken < best[1] or (load and taken == best[1] and stage > best[0]):
                        best = stage, taken
                for index in unit:
                    self.statements[index].stage = best[0]
                moved = moved or best[0] != now

    def _handed_on(self, values: Iterable[StoredValue]) -> int:
        """Bytes on chip of what goes from stage to stage, by the pairs of stages in between."""
        total = 0
        for value in values:
            if value in self.own and space_of(value.root) != chips.GM:
                stages = [each.stage // 2 for each in self.statements if value in each.reads or value in each.writes]
                total += (max(stages) - min(stages)) * nbytes_of(value.root)
        return total


def _raise_to(statement: Statement, stage: int) -> bool:
    """To a stage of the statement's core that is no earlier; whether that changes it."""
    if stage <= statement.stage:
        return False
    statement.stage = stage + (stage - statement.stage) % 2
    return True


def _body_of(loop: scf.ForOp, ranges: Ranges) -> StagedBody | Refusal | None:
    """The statements of a loop that can be cut, or why they cannot; None where the work is one core's alone."""
    statements = []
    for op in loop.body.block.ops:
        if not is_statement(op):
            continue
        core = core_below(op)
        if core is None or op.results:
            return _neither(op) if _has_both(loop) else None
        if (read := next((load for load in loads_for(op) if space_of(root_of(load.memref)) != chips.GM), None)) is not None:
            return Refusal(f"{line_of(op)} needs a scalar that {line_of(read)} reads of a tile", "keep in a tile what changes"
                           ) if _has_both(loop) else None
        if (read := changed_before(op)) is not None:
            return Refusal(f"{line_of(op)} needs a scalar that was read at {line_of(read)}, from memory that is written in "
                           "between", "keep in a tile what changes") if _has_both(loop) else None
        statements.append(statement(op, core))
    if len({statement.core for statement in statements}) != 2:
        return None
    return numbered(loop, statements, ranges)


def is_statement(op: Operation) -> bool:
    """Whether an operation of a body does something: no scalar, which goes to whoever needs it, and no allocation."""
    return not (is_pure(op) or isinstance(op, (tile.AllocOp, memref.LoadOp)) or op.has_trait(IsTerminator))


def statement(op: Operation, core: str) -> Statement:
    """An operation of a body, with what it reads by the scalars that it needs."""
    uses = [*(use for load in loads_for(op) for use in effects_of(load)), *uses_below(op)]
    return Statement(op, core, dict.fromkeys(StoredValue(root_of(use.value)) for use in uses if use.reads),
                     dict.fromkeys(StoredValue(root_of(use.value)) for use in uses if use.writes))


def numbered(loop: scf.ForOp, statements: list[Statement], ranges: Ranges) -> StagedBody:
    """A body in which the values that a buffer holds one after the other are told apart."""
    body = StagedBody(loop, statements, {})
    for value in dict.fromkeys(value for statement in statements for value in statement.touches):
        _number(body, value, ranges)
    return body


def loads_for(op: Operation) -> list[memref.LoadOp]:
    """The scalars of its block, read from memory, that an operation needs."""
    block, found = op.parent_block(), list[memref.LoadOp]()
    seen, pending = set[Operation](), [operand.owner for inner in op.walk() for operand in inner.operands]
    while pending:
        owner = pending.pop()
        if isinstance(owner, Operation) and owner.parent_block() is block and owner not in seen and owner is not op:
            seen.add(owner)
            if isinstance(owner, memref.LoadOp):
                found.append(owner)
            pending += [operand.owner for operand in owner.operands]
    return found


def changed_before(op: Operation) -> memref.LoadOp | None:
    """A scalar that an operation needs, and that it would not find in memory any more."""
    for load in loads_for(op):
        between = load.next_op
        while between is not None and between is not op:
            if any(use.writes and root_of(use.value) is root_of(load.memref) for use in uses_below(between)):
                return load
            between = between.next_op
    return None


def _number(body: StagedBody, whole: StoredValue, ranges: Ranges) -> None:
    """Tell apart the values that a buffer holds one after the other, where all are of one iteration."""
    allocation = whole.root.owner
    if not isinstance(allocation, tile.AllocOp):
        return
    users = [statement for statement in body.statements if whole in statement.touches]
    ops = [statement.op for statement in users]
    by_scalars = any(isinstance(op, memref.LoadOp) and root_of(op.memref) is whole.root for op in body.loop.body.block.ops)
    fresh = not by_scalars and not reads_earlier(ops, whole.root, ranges)
    if allocation.parent_block() is not body.loop.body.block and not (
            fresh and allocation.address is None and is_dead_after(body.loop, whole.root, ranges)):
        return
    value = whole
    for at, statement in enumerate(users):
        if at and fresh and not reads_earlier(ops[at:], whole.root, ranges):
            value = StoredValue(whole.root, value.number + 1)
        body.own[value] = allocation
        for side in (statement.reads, statement.writes):
            if whole in side:
                del side[whole]
                side[value] = None


def _has_both(loop: scf.ForOp) -> bool:
    """Whether both cores have work in a loop."""
    return {"AIC", "AIV"} <= {core_of(inner) for inner in loop.walk()}


def _neither(op: Operation) -> Refusal:
    """Why a statement belongs to no stage."""
    if op.results:
        return Refusal(f"{line_of(op)} hands a scalar to what comes behind", "keep in a tile what changes")
    for inner in op.walk():
        if isinstance(inner, LEFT_ALONE) or inner.name.startswith("hivm."):
            return Refusal(f"{line_of(inner)} prints, or its author orders it or puts it on a core",
                           "leave order and cores to the compiler, and print outside of the loop")
    return Refusal(f"{line_of(op)} is work of both cores, or of neither", "split it into a statement for each core")


def core_below(op: Operation) -> str | None:
    """The core that runs an operation and all inside it; None where it is not one."""
    found = set()
    for inner in op.walk():
        if isinstance(inner, LEFT_ALONE) or inner.name.startswith("hivm."):
            return None
        if not inner.regions and has_core(inner):
            found.add(core_of(inner))
    return found.pop() if len(found) == 1 and "either" not in found else None


def launch_of(op: Operation) -> Operation | None:
    """The launch that an operation is in; None where it is in none any more."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, tile.LaunchOp):
        parent = parent.parent_op()
    return parent


def cut_body(loop: scf.ForOp, ranges: Ranges) -> StagedBody | Refusal | None:
    """The body of a loop in stages, or why it has none; None where there is nothing to gain."""
    if launch_of(loop) is None:  # it was in the body of one that overlaps
        return None
    body = _body_of(loop, ranges)
    if not isinstance(body, StagedBody):
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
    return body


__all__ = ["LEFT_ALONE", "StagedBody", "Statement", "StoredValue", "changed_before", "core_below", "cut_body",
           "is_statement", "launch_of", "numbered", "statement"]
