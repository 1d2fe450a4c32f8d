"""Insert every wait inside a core: events between pipes, barriers within one, from hazards on planned bytes.

For each block, each pair of accesses that can touch a common byte (one of them writing) is a demand: the earlier one must be
done before the later one starts. In loop bodies this includes the next iterations; buffers with N slots meet themselves only
every N iterations. Demands are met by events set right behind the producer, be it in a branch, and waited for right in front
of the consumer, reduced to those that nothing else implies. Where a consumer needs what an earlier iteration made, and the
producer stands in front of it, the set moves behind the wait, or the wait in front of the producer: no number more is
outstanding than there are iterations between. mmadL1 takes its events itself, where it can: its load of A waits for A alone,
that of B for B, and each lets the next copy go when it is done. Events that cross iterations are set once in front of their
loop and waited for once behind it, so that a loop may run any number of times, none included; of a loop in a loop, branches
between them or not, around the outer one, where that is enough: nothing waits between its runs for what nobody needs. Flags
that the author wrote keep their numbers to themselves, and what they order is not ordered twice. What flags between the cores
count on (``sync.counted_on``) is waited for around branches and loops.

Where the author synchronises by hand (``within``), only the operations that one statement became are ordered among
themselves: nobody can write a flag there.

Runs after planning.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import add_remark, set_remark
from tilelang_npu.errors import InternalError
from tilelang_npu.transforms.hivm.sync.branches import into_branches
from tilelang_npu.transforms.hivm.sync.counted_on import counted_on, forget_counted_on
from tilelang_npu.transforms.hivm.sync.cover import Demand, Early, EventPair, Fence, Order
from tilelang_npu.transforms.hivm.sync.early_sets import set_early
from tilelang_npu.transforms.hivm.sync.event_ids import PairPlace, allocate, free_numbers
from tilelang_npu.transforms.hivm.sync.inside import Inside
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Item, Pipes, Touch, build
from tilelang_npu.transforms.hivm.sync.own_flags import flags_by_name, own_events
from tilelang_npu.transforms.hivm.sync.reasons import event_remark, fence_remark
from tilelang_npu.transforms.hivm.sync.round_trips import round_trips
from tilelang_npu.transforms.hivm.sync.solve import Dependence, solve
from tilelang_npu.transforms.ir.cores import core_of_function, kernel_of
from tilelang_npu.transforms.ir.emit import OpBuilder, Value
from tilelang_npu.transforms.ir.locations import location_of
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.treated import claim, is_finished, is_treated, refused

NAME = "insert-sync"
_State = tuple[list[tuple[BlockItems, Order]], dict[EventPair, "BlockItems | None"]]
"""Blocks with their orders, and what holds the tokens in them."""


@dataclass
class _Gap:
    """What stands in front of one item: sets, then waits, then barriers."""

    sets: list[tuple[EventPair, int | SSAValue]]
    waits: list[tuple[EventPair, int | SSAValue]]
    fences: list[Fence]


class _EventWriter:
    """Writes the solution of each block into the function."""

    def __init__(self, function: func.FuncOp, trips: Mapping[int, Sequence[EventPair]], *, within: bool):
        self.function = function
        self.trips = trips
        self.within = within
        self.emit = OpBuilder(function.body.block)
        self.flags = flags_by_name(function)
        self.inside = Inside()
        self.given: dict[int, Sequence[EventPair]] = {}
        self.around: dict[int, Sequence[Demand]] = {}
        self.solved: dict[int, tuple[BlockItems, Order]] = {}

    def collect(self, body: BlockItems) -> None:
        """Solve a block and those nested in it."""
        for item in body.items:
            for nested in item.blocks:
                self.collect(nested)
        self.given[id(body)] = [*own_events(body, self.flags), *self.trips.get(id(body), ())]
        self.around[id(body)] = list(counted_on(body, core_of_function(self.function) or "")) if not self.within else ()
        self._solve(body)
        if self.within:
            return
        if body.loop is not None:
            self._hold(body)
        if body.loop is not None or body.block.parent_op() is self.function:
            into_branches(body, self.inside)
            set_early(body, self.inside)

    def _solve(self, body: BlockItems, *, again: bool = False) -> Order:
        given = self.given[id(body)]
        self.inside.withdraw(body)
        if self.within:
            order = solve(body, self.inside, given, functools.partial(_within_a_statement, body.loop), _line)
        else:
            order = solve(body, self.inside, given, again=again, around=self.around[id(body)])
        self.solved[id(body)] = body, order
        return order

    def _hold(self, body: BlockItems) -> None:
        """Let a loop hold the tokens of the loops in it, where it needs no more for that: nothing waits between their runs.

        What stands around an inner loop, in the branches that it is in, may have relied on its tokens being taken back. An
        inner loop that never comes round to a slot again may get tokens all the same, as the next run does, where that saves
        waiting for all of the run before, and there are numbers for them.
        """
        held: list[EventPair] = []
        for item in body.items:
            loops, branches = _loops_and_branches(item)
            if not loops:
                continue
            taken: Sequence[EventPair] = ()
            around = [*branches, body]
            fewest, kept = self._needed(around), self._state(item, [*loops, *around])
            short = [loop for loop in loops if _never_comes_round(loop)]
            for again in ([], short) if short else ([],):
                for loop in again:
                    self._solve(loop, again=True)
                tokens = self.inside.tokens(item)
                self.inside.hold(tokens, body)
                for block in around if tokens else ():
                    self._solve(block)
                needed = self._needed(around)
                wins = needed < fewest and self._have_numbers([*held, *tokens]) if again else needed <= fewest
                if tokens and wins:
                    fewest, kept, taken = needed, self._state(item, [*loops, *around]), tokens
                else:
                    self._restore(*kept)
            held += taken

    def _have_numbers(self, tokens: Sequence[EventPair]) -> bool:
        """Whether all tokens that a loop would hold find numbers side by side."""
        slots: Counter[Pipes] = Counter()
        for event in tokens:
            slots[event.source, event.target] += event.slots
        return all(count <= len(free_numbers(self.flags, *pipes)) for pipes, count in slots.items())

    def _needed(self, blocks: Sequence[BlockItems]) -> int:
        """How many events and barriers stand in some blocks."""
        return sum(len(self.solved[id(block)][1].own) for block in blocks)

    def _state(self, item: Item, blocks: Sequence[BlockItems]) -> _State:
        """The orders of some blocks, and who holds the tokens in an item."""
        return ([self.solved[id(block)] for block in blocks], {event: event.holder for event in self.inside.tokens(item)})

    def _restore(self, orders: Sequence[tuple[BlockItems, Order]], holders: Mapping[EventPair, BlockItems | None]) -> None:
        for block, order in orders:
            self.inside.withdraw(block)
            self.inside.add(block, order)
            self.solved[id(block)] = block, order
        for event, holder in holders.items():
            self.inside.hold([event], holder)

    def prime(self) -> None:
        """Set the tokens of loops in front of what their pipe has to do before, unless something counts on the loop's first
        iteration to come behind that."""
        orders = [order for _, order in self.solved.values()]
        for body, _ in self.solved.values() if not self.within else ():
            for index, item in enumerate(body.items):
                tokens = self.inside.tokens(item) if isinstance(item.op, (scf.ForOp, scf.WhileOp)) else []
                for event in tokens:
                    before = next((one for one in body.items[:index] if any(t.pipe == event.source for t in one.touches)), None)
                    if before is None:
                        continue
                    event.primed = before
                    self.inside.forget()
                    if not all(order.covers(demand) for order in orders for demand in order.asked):
                        event.primed = None
                        self.inside.forget()

    def number(self) -> None:
        """Give the events their numbers; those that find none become barriers."""
        places = [(PairPlace(event, body), order) for body, order in self.solved.values() for event in order.events]
        for placed, order in places:  # numbering may move them
            order.remove(placed.event)
            if placed.event.slots > 1 and isinstance(placed.body.turns, scf.ForOp):  # each run begins with the first number
                trips = Ranges().trip_count(placed.body.turns).high
                placed.event.slots = max(1, int(min(placed.event.slots, trips)))
        numbered = allocate([placed for placed, _ in places], self.flags)
        for placed, order in places:
            if placed in numbered.left:
                before = placed.body.wait_at(placed.event.wait_before, ("ALL", "ALL"))
                order.add(Fence("ALL", before, placed.event.reason, around=placed.event.distance > 0))
            elif placed not in numbered.idle:
                order.add(placed.event)

    def write(self) -> None:
        for body, order in self.solved.values():
            self._block(body, order)

    def _block(self, body: BlockItems, order: Order) -> None:
        gaps: dict[int, _Gap] = {}

        def gap(index: int) -> _Gap:
            return gaps.setdefault(index, _Gap([], [], []))

        for event in sorted(order.events, key=lambda e: (e.source, e.target, e.id)):
            number = self._id(body, event)
            if event.early is None:
                gap(event.set_after + 1).sets.append((event, number))
            else:
                self._set_in_branch(body, event, event.early, number)
            gap(event.wait_before).waits.append((event, number))
            if event.distance:
                self._around(body, event)
        for fence in order.fences:
            if not fence.user:
                gap(fence.before).fences.append(fence)
            if fence.around:  # of a branch, which has no tokens of its own to take back, at its end
                with self.emit.after(body.loop or body.items[-1].op):
                    barrier = self.emit.insert(hivm.PipeBarrierOp(fence.pipe))
                    set_remark(barrier, fence_remark(NAME, body, [fence], behind=True))
        for index, content in sorted(gaps.items()):
            self._gap(body, index, content)

    def _gap(self, body: BlockItems, index: int, content: _Gap) -> None:
        emit = self.emit
        producer = body.items[index - 1] if index > 0 else None
        consumer = body.items[index] if index < len(body.items) else None
        if content.sets:
            with emit.after(producer.op) if producer else emit.before(body.items[0].op):
                for event, number in content.sets:
                    self._flag(body, event, hivm.SetFlagOp, number, producer)
        if content.waits or content.fences:
            with emit.before(consumer.op) if consumer else emit.before(_end(body)):
                for event, number in content.waits:
                    self._flag(body, event, hivm.WaitFlagOp, number, consumer)
                for pipe in sorted({fence.pipe for fence in content.fences}):
                    fences = [fence for fence in content.fences if fence.pipe == pipe]
                    set_remark(emit.insert(hivm.PipeBarrierOp(pipe)), fence_remark(NAME, body, fences))

    def _set_in_branch(self, body: BlockItems, event: EventPair, early: Early, number: int | SSAValue) -> None:
        """Set an event in both arms of a branch: behind an item of one, at once in the other."""
        branch, producer = body.items[event.set_after].op, early.arm.items[early.set_after]
        with self.emit.after(producer.op):
            set_remark(self.emit.insert(hivm.SetFlagOp(event.source, event.target, number)), event_remark(NAME, body, event))
        (other,) = (region for region in branch.regions if not region.blocks or region.block is not early.arm.block)
        if not other.blocks:
            other.add_block(Block([scf.YieldOp()]))
        first = other.block.first_op
        assert first is not None
        with self.emit.before(first):
            set_remark(self.emit.insert(hivm.SetFlagOp(event.source, event.target, number)), event_remark(NAME, body, event))

    def _flag(self, body: BlockItems, event: EventPair, kind: type[hivm.SetFlagOp | hivm.WaitFlagOp], number: int | SSAValue,
              item: Item | None) -> None:
        """Set an event or wait for it; beside an op that can do it itself, let it do so."""
        takes = (item.sets if kind is hivm.SetFlagOp else item.waits) if item is not None else {}
        passed = takes.get((event.source, event.target))
        if item is None or passed is None:
            set_remark(self.emit.insert(kind(event.source, event.target, number)), event_remark(NAME, body, event))
            return
        op = item.op
        assert isinstance(op, hivm.MmadL1Op)
        assert passed.place not in {taken.place for taken, _ in op.shared_events()}, "of two events there one is idle"
        value = self.emit.constant(number, i64) if isinstance(number, int) else number
        op.set_sync_arguments({passed.place: value}, self.emit.constant(hivm.NO_EVENT, i64))
        add_remark(op, event_remark(NAME, body, event, place=passed.place))

    def _around(self, body: BlockItems, event: EventPair) -> None:
        """The tokens of an event that crosses iterations: one per id in front of the loop, and back behind it."""
        loop = (event.holder or body).loop
        if loop is None:
            msg = "an event crosses iterations outside of a loop"
            raise InternalError(msg)
        for number in range(event.id, event.id + event.slots):
            with self.emit.before(event.primed.op if event.primed is not None else loop):
                set_remark(self.emit.insert(hivm.SetFlagOp(event.source, event.target, number)),
                           event_remark(NAME, body, event))
        for number in reversed(range(event.id, event.id + event.slots)):
            with self.emit.after(loop):
                taken_back = self.emit.insert(hivm.WaitFlagOp(event.source, event.target, number))
                set_remark(taken_back, event_remark(NAME, body, event, behind=True))

    def _id(self, body: BlockItems, event: EventPair) -> int | SSAValue:
        """The event's number: a constant, or the first plus the iteration modulo the slots."""
        if event.slots == 1:
            return event.id
        loop = body.turns
        assert isinstance(loop, scf.ForOp), "the iterations of a loop take numbers in turn"
        turn = iteration_modulo(self.emit, loop, event.slots)
        with self.emit.after(turn):
            value: SSAValue = turn.results[0]
            if event.id:
                value = self.emit.insert(arith.AddiOp(value, self.emit.constant(event.id, i64))).result
        return value


def iteration(emit: OpBuilder, loop: scf.ForOp) -> Value:
    """The number of the iteration, from 0, as an index."""
    low, step = emit.ranges.constant(loop.lb), emit.ranges.constant(loop.step)
    number: Value = _as_index(emit, loop.body.block.args[0])
    if low != 0:
        number = emit.sub(number, _as_index(emit, loop.lb) if low is None else low)
    if step is None:
        return emit.insert(arith.DivUIOp(emit.value(number), _as_index(emit, loop.step))).result
    return emit.floordiv(number, step)


def _as_index(emit: OpBuilder, value: SSAValue) -> SSAValue:
    return value if isinstance(value.type, IndexType) else emit.insert(arith.IndexCastOp(value, IndexType())).result


def iteration_modulo(emit: OpBuilder, loop: scf.ForOp, slots: int) -> Operation:
    """At the head of a loop's body: the iteration modulo ``slots`` as i64, made once."""
    head = loop.body.block.first_op
    assert head is not None
    name = f"turn{slots}"
    for op in loop.body.block.ops:
        if isinstance(op, arith.IndexCastOp) and op.result.name_hint == name:
            return op
    with emit.before(head):
        emit.location = loop.location
        turn = emit.as_i64(emit.modulo(iteration(emit, loop), slots))
    turn.name_hint = name
    assert isinstance(turn.owner, Operation)
    return turn.owner


def _loops_and_branches(item: Item) -> tuple[list[BlockItems], list[BlockItems]]:
    """The outermost loops of an item, and its branches with loops in them, innermost first."""
    loops: list[BlockItems] = []
    branches: list[BlockItems] = []
    for block in item.blocks:
        if block.loop is not None:
            loops.append(block)
            continue
        nested = [_loops_and_branches(inner) for inner in block.items]
        loops += [loop for found, _ in nested for loop in found]
        branches += [branch for _, found in nested for branch in found]
        if any(found for found, _ in nested):
            branches.append(block)
    return loops, branches


def _never_comes_round(body: BlockItems) -> bool:
    """Whether a loop ends before it takes all its slots twice: its next run is the first to do so."""
    slots = max((touch.place.slots for item in body.items for touch in item.touches), default=1)
    return isinstance(body.loop, scf.ForOp) and Ranges().trip_count(body.loop).high <= slots


def _end(body: BlockItems) -> Operation:
    """The terminator of a block."""
    last = body.block.last_op
    assert last is not None
    return last


def _line(touch: Touch) -> object:
    """The line of the kernel that an access belongs to."""
    place = location_of(touch.op)
    return None if place is None else (place.file, place.line)


def _within_a_statement(loop: scf.ForOp | scf.WhileOp | None, hazard: Dependence) -> bool:
    """Whether both accesses belong to one line of the kernel; of two iterations, if the loop does too."""
    lines = [location_of(op) for op in (hazard.first.op, hazard.second.op, *([loop] if loop and hazard.distance else []))]
    return None not in lines and len({(line.file, line.line) for line in lines if line is not None}) == 1


def _kernels(module: ModuleOp) -> list[func.FuncOp]:
    return [op for op in module.walk() if isinstance(op, func.FuncOp) and op.body.blocks and "hacc.entry" in op.attributes]


def _solved(module: ModuleOp, *, within: bool) -> Iterator[_EventWriter]:
    """The kernel's functions, each with what it needs."""
    functions = _kernels(module)
    bodies = [build(function.body.block) for function in functions]
    trips: dict[int, list[EventPair]] = {}
    kernels: dict[str, list[BlockItems]] = defaultdict(list)
    for function, body in zip(functions, bodies, strict=True):
        kernels[kernel_of(function)].append(body)
    for cores in kernels.values():
        if len(cores) == 2:  # a kernel of both cores is two functions
            trips.update(round_trips(*cores))
    for function, body in zip(functions, bodies, strict=True):
        writer = _EventWriter(function, trips, within=within)
        writer.collect(body)
        writer.prime()
        writer.number()
        yield writer


@dataclass(frozen=True)
class InsertSync(ModulePass):
    """The pass; see the module's text."""

    name = NAME
    within: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in _kernels(op):
            if is_finished(function) and not self.within:  # an author who ends in a barrier synchronises by hand
                raise refused(function, self.name)
        for writer in list(_solved(op, within=self.within)):
            if not is_treated(writer.function, self.name):
                writer.write()
                forget_counted_on(writer.function)
                claim(writer.function, self.name)


__all__ = ["InsertSync", "iteration", "iteration_modulo"]
