"""Inserts all synchronisation inside a core: events between pipes and barriers within a pipe, for dependences on planned bytes.

In each block, each pair of accesses that can overlap in a byte, at least one of them a write, is a constraint: the earlier
access must be done before the later one starts. In a loop's body this includes accesses of later iterations; an access of a
buffer with N slots conflicts with itself only every N-th iteration. A constraint is satisfied by an event that is set directly
after the producer (also inside a branch) and waited for directly before the consumer. Redundant events, which other events
imply, are removed.

- If a loop-carried dependence has its producer before its consumer in the body, the set moves down to after the wait, or the
  wait moves up to before the set. So no more event ids are outstanding than the dependence's distance in iterations.
- ``mmadL1`` sets and waits for its events itself where possible: its load of A waits for A only, its load of B for B only, and
  each of the two loads lets the next copy into that buffer start as soon as the load is done.
- A loop-carried event is set once before its loop and waited for once after it (these are the event's *tokens*), so that the
  loop may run any number of iterations, including none. For a loop inside a loop, the tokens are set and waited for around the
  outer loop if that satisfies all constraints. Then no wait separates two runs of the inner loop unnecessarily.
- Event ids that the author's code uses are not allocated, and dependences that the author's events satisfy get no further
  events.
- Dependences that flags between the cores rely on (``sync.waits_relied_on``) are waited for outside of branches and loops.

If the author synchronises by hand (``by_hand``), only operations that come from the same statement are ordered: an author
cannot write an event between these.

Runs after memory planning.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.analysis.cores import core_of_function, kernel_of
from tilelang_npu.analysis.locations import location_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import add_remark, set_remark
from tilelang_npu.errors import InternalError
from tilelang_npu.target.chip_data import PipeName
from tilelang_npu.transforms.hivm.sync.branch_placement import move_into_branches, set_inside_branches
from tilelang_npu.transforms.hivm.sync.event_ids import (
    PlacedEvent,
    allocate_event_ids,
    author_event_pairs,
    event_uses,
    free_event_ids,
)
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Pipes, SyncItem, build_items, own_pipe
from tilelang_npu.transforms.hivm.sync.nested_blocks import SolvedBlocks
from tilelang_npu.transforms.hivm.sync.ordering import BlockOrder, BranchSet, Constraint, EventPair, PipeBarrier
from tilelang_npu.transforms.hivm.sync.round_trips import round_trips
from tilelang_npu.transforms.hivm.sync.solve import Dependence, solve_block
from tilelang_npu.transforms.hivm.sync.wait_remarks import barrier_remark, event_remark
from tilelang_npu.transforms.hivm.sync.waits_relied_on import constraints_relied_on, remove_marks
from tilelang_npu.transforms.infra.iteration_numbers import emit_iteration_modulo
from tilelang_npu.transforms.infra.op_builder import OpBuilder
from tilelang_npu.transforms.infra.pass_marks import already_completed, has_run, is_finished, mark_as_run

NAME = "insert-sync"
_Snapshot = tuple[list[tuple[BlockItems, BlockOrder]], dict[EventPair, "BlockItems | None"]]
"""A saved state: the orders of some blocks, and for each event the body of the loop around which its tokens are set."""


@dataclass
class _Gap:
    """What is inserted between two items, in this order."""

    sets: list[tuple[EventPair, int | SSAValue]] = field(default_factory=list)
    waits: list[tuple[EventPair, int | SSAValue]] = field(default_factory=list)
    barriers: list[PipeBarrier] = field(default_factory=list)


class _EventWriter:
    """Solves the blocks of one function and writes their events and barriers into it.

    Args:
        function: the function.
        trips: by the ``id`` of a block, the orders that flags to the other core and back imply.
        by_hand: whether only the ops that one statement is lowered to are ordered; the author orders the statements.
    """

    def __init__(self, function: func.FuncOp, trips: Mapping[int, Sequence[EventPair]], *, by_hand: bool):
        self.function = function
        self.trips = trips
        self.by_hand = by_hand
        self.emit = OpBuilder(function.body.block)
        self.used_ids = event_uses(function)
        self.solved_blocks = SolvedBlocks()
        self.given: dict[int, Sequence[EventPair]] = {}
        self.relied_on: dict[int, Sequence[Constraint]] = {}
        self.orders: dict[int, tuple[BlockItems, BlockOrder]] = {}

    def solve(self, body: BlockItems) -> None:
        """Solve a block, after those nested in it."""
        for item in body.items:
            for nested in item.blocks:
                self.solve(nested)
        self.given[id(body)] = [*author_event_pairs(body, self.used_ids), *self.trips.get(id(body), ())]
        self.relied_on[id(body)] = (list(constraints_relied_on(body, core_of_function(self.function)))
                                    if not self.by_hand else ())
        self._solve_block(body)
        if self.by_hand:
            return
        if body.loop is not None:
            self._hold_inner_tokens(body)
        if body.loop is not None or body.block.parent_op() is self.function:
            move_into_branches(body, self.solved_blocks)
            set_inside_branches(body, self.solved_blocks)

    def _solve_block(self, body: BlockItems, *, runs_on: bool = False) -> BlockOrder:
        given = self.given[id(body)]
        self.solved_blocks.retract(body)
        if self.by_hand:
            order = solve_block(body, self.solved_blocks, given, functools.partial(_is_within_statement, body.loop),
                                lambda access: _line_of(access.op))
        else:
            order = solve_block(body, self.solved_blocks, given, runs_on=runs_on, relied_on=self.relied_on[id(body)])
        self.orders[id(body)] = body, order
        return order

    def _hold_inner_tokens(self, body: BlockItems) -> None:
        """Moves the tokens of inner loops to the loop of ``body``, if that needs no more events: then no wait separates two
        runs of an inner loop.

        Events in the branches around an inner loop may rely on the waits for the tokens after the inner loop, so the blocks of
        these branches are solved again. An inner loop that ends before it uses a slot twice needs no tokens of its own. Such a
        loop gets tokens around the outer loop if they replace a wait for the whole previous run and there are event ids for
        them, because the next run uses the same slots again.
        """
        held: list[EventPair] = []
        for item in body.items:
            loops, branches = _loops_and_branches(item)
            if not loops:
                continue
            taken: Sequence[EventPair] = ()
            around = [*branches, body]
            fewest, kept = self._count_inserted(around), self._snapshot(item, [*loops, *around])
            short = [loop for loop in loops if _uses_each_slot_once(loop)]
            for runs_on in ([], short) if short else ([],):
                for loop in runs_on:
                    self._solve_block(loop, runs_on=True)
                tokens = self.solved_blocks.tokens_of(item)
                self.solved_blocks.set_token_loop(tokens, body)
                for block in around if tokens else ():
                    self._solve_block(block)
                needed = self._count_inserted(around)
                wins = needed < fewest and self._have_ids([*held, *tokens]) if runs_on else needed <= fewest
                if tokens and wins:
                    fewest, kept, taken = needed, self._snapshot(item, [*loops, *around]), tokens
                else:
                    self._restore(*kept)
            held += taken

    def _have_ids(self, tokens: Sequence[EventPair]) -> bool:
        """Whether there are ids for all tokens that a loop would hold."""
        slots: Counter[Pipes] = Counter()
        for event in tokens:
            slots[event.source, event.target] += event.slots
        return all(count <= len(free_event_ids(self.used_ids, *pipes)) for pipes, count in slots.items())

    def _count_inserted(self, blocks: Sequence[BlockItems]) -> int:
        """Returns how many events and barriers are inserted in some blocks."""
        return sum(len(self.orders[id(block)][1].inserted) for block in blocks)

    def _snapshot(self, item: SyncItem, blocks: Sequence[BlockItems]) -> _Snapshot:
        return ([self.orders[id(block)] for block in blocks],
                {event: event.token_loop for event in self.solved_blocks.tokens_of(item)})

    def _restore(self, orders: Sequence[tuple[BlockItems, BlockOrder]],
                 token_loops: Mapping[EventPair, BlockItems | None]) -> None:
        for block, order in orders:
            self.solved_blocks.retract(block)
            self.solved_blocks.add(block, order)
            self.orders[id(block)] = block, order
        for event, token_loop in token_loops.items():
            self.solved_blocks.set_token_loop([event], token_loop)

    def set_tokens_early(self) -> None:
        """Set the tokens of loops before earlier work of their pipe, unless a constraint relies on them coming after it.

        A loop's first iteration then need not wait for what the pipe does between there and the loop.
        """
        orders = [order for _, order in self.orders.values()]
        for body, _ in self.orders.values() if not self.by_hand else ():
            for index, item in enumerate(body.items):
                tokens = self.solved_blocks.tokens_of(item) if isinstance(item.op, (scf.ForOp, scf.WhileOp)) else []
                for event in tokens:
                    before = next((one for one in body.items[:index]
                                   if any(access.pipe == event.source for access in one.accesses)), None)
                    if before is None:
                        continue
                    event.tokens_before = before
                    self.solved_blocks.clear_cache()
                    if not all(order.implies(constraint) for order in orders for constraint in order.constraints):
                        event.tokens_before = None
                        self.solved_blocks.clear_cache()

    def allocate_ids(self) -> None:
        """Give the events their ids; those that find none become barriers of all pipes."""
        events = [(PlacedEvent(event, body), order) for body, order in self.orders.values() for event in order.events]
        for placed, order in events:  # taken out, since allocation may move them
            order.remove(placed.event)
            loop = placed.body.enclosing_loop
            if placed.event.slots > 1 and isinstance(loop, scf.ForOp):  # each run begins with the first id
                placed.event.slots = max(1, int(min(placed.event.slots, Ranges().trip_count(loop).high)))
        result = allocate_event_ids([placed for placed, _ in events], self.used_ids)
        for placed, order in events:
            if placed in result.failed:
                before = placed.body.wait_index(placed.event.wait_before, ("ALL", "ALL"))
                order.add(PipeBarrier("ALL", before, placed.event.reason, after_loop=placed.event.distance > 0))
            elif placed not in result.merged:
                order.add(placed.event)

    def write(self) -> None:
        """Write the events and barriers of all blocks into the function."""
        for body, order in self.orders.values():
            self._write_block(body, order)

    def _write_block(self, body: BlockItems, order: BlockOrder) -> None:
        gaps: dict[int, _Gap] = defaultdict(_Gap)
        for event in sorted(order.events, key=lambda e: (e.source, e.target, e.id)):
            number = self._id_of(body, event)
            if event.branch_set is None:
                gaps[event.set_after + 1].sets.append((event, number))
            else:
                self._write_set_in_branch(body, event, event.branch_set, number)
            gaps[event.wait_before].waits.append((event, number))
            if event.distance:
                self._write_tokens(body, event)
        for barrier in order.barriers:
            if not barrier.by_author:
                gaps[barrier.before].barriers.append(barrier)
            if barrier.after_loop:  # a branch has no tokens to take back: at its end
                with self.emit.after(body.loop or body.items[-1].op):
                    made = self.emit.insert(hivm.PipeBarrierOp(own_pipe(barrier.pipe)))
                    set_remark(made, barrier_remark(NAME, body, [barrier], after_loop=True))
        for index, content in sorted(gaps.items()):
            self._write_gap(body, index, content)

    def _write_gap(self, body: BlockItems, index: int, content: _Gap) -> None:
        emit = self.emit
        producer = body.items[index - 1] if index > 0 else None
        consumer = body.items[index] if index < len(body.items) else None
        if content.sets:
            with emit.after(producer.op) if producer else emit.before(body.items[0].op):
                for event, number in content.sets:
                    self._write_event(body, event, hivm.SetFlagOp, number, producer)
        if content.waits or content.barriers:
            last = body.block.last_op
            assert last is not None
            with emit.before(consumer.op if consumer else last):
                for event, number in content.waits:
                    self._write_event(body, event, hivm.WaitFlagOp, number, consumer)
                for pipe in sorted({barrier.pipe for barrier in content.barriers}):
                    barriers = [barrier for barrier in content.barriers if barrier.pipe == pipe]
                    set_remark(emit.insert(hivm.PipeBarrierOp(own_pipe(pipe))), barrier_remark(NAME, body, barriers))

    def _write_set_in_branch(self, body: BlockItems, event: EventPair, branch_set: BranchSet, number: int | SSAValue) -> None:
        """Write a set in both arms of a branch: after an item of one, at the start of the other."""
        branch, producer = body.items[event.set_after].op, branch_set.arm.items[branch_set.set_after]
        with self.emit.after(producer.op):
            set_remark(self.emit.insert(hivm.SetFlagOp(*_pipes_of(event), number)), event_remark(NAME, body, event))
        (other,) = (region for region in branch.regions if not region.blocks or region.block is not branch_set.arm.block)
        if not other.blocks:
            other.add_block(Block([scf.YieldOp()]))
        first = other.block.first_op
        assert first is not None
        with self.emit.before(first):
            set_remark(self.emit.insert(hivm.SetFlagOp(*_pipes_of(event), number)), event_remark(NAME, body, event))

    def _write_event(self, body: BlockItems, event: EventPair, kind: type[hivm.SetFlagOp | hivm.WaitFlagOp],
                     number: int | SSAValue, item: SyncItem | None) -> None:
        """Write a set or a wait next to an item; if the item's op can do it itself, let it."""
        own = (item.own_sets if kind is hivm.SetFlagOp else item.own_waits) if item is not None else {}
        shared = own.get((event.source, event.target))
        if item is None or shared is None:
            set_remark(self.emit.insert(kind(*_pipes_of(event), number)), event_remark(NAME, body, event))
            return
        op = item.op
        assert isinstance(op, hivm.MmadL1Op)
        assert shared.place not in {taken.place for taken, _ in op.shared_events()}, "of two events here one is redundant"
        value = self.emit.constant(number, i64) if isinstance(number, int) else number
        op.set_sync_arguments({shared.place: value}, self.emit.constant(hivm.NO_EVENT, i64))
        add_remark(op, event_remark(NAME, body, event, place=shared.place))

    def _write_tokens(self, body: BlockItems, event: EventPair) -> None:
        """Write the tokens of an event that crosses iterations: for each id a set before the loop and a wait after it."""
        loop = (event.token_loop or body).loop
        if loop is None:
            msg = "an event crosses iterations outside of a loop"
            raise InternalError(msg)
        for number in range(event.id, event.id + event.slots):
            with self.emit.before(event.tokens_before.op if event.tokens_before is not None else loop):
                set_remark(self.emit.insert(hivm.SetFlagOp(*_pipes_of(event), number)),
                           event_remark(NAME, body, event))
        for number in reversed(range(event.id, event.id + event.slots)):
            with self.emit.after(loop):
                taken_back = self.emit.insert(hivm.WaitFlagOp(*_pipes_of(event), number))
                set_remark(taken_back, event_remark(NAME, body, event, after_loop=True))

    def _id_of(self, body: BlockItems, event: EventPair) -> int | SSAValue:
        """Returns the event's id: a constant, or the first id plus the iteration modulo the slots."""
        if event.slots == 1:
            return event.id
        loop = body.enclosing_loop
        assert isinstance(loop, scf.ForOp), "the iterations of a loop use ids in turn"
        turn = emit_iteration_modulo(self.emit, loop, event.slots)
        with self.emit.after(turn):
            value: SSAValue = turn.results[0]
            if event.id:
                value = self.emit.insert(arith.AddiOp(value, self.emit.constant(event.id, i64))).result
        return value


def _loops_and_branches(item: SyncItem) -> tuple[list[BlockItems], list[BlockItems]]:
    """Returns the outermost loops in an item, and the branches with loops in them, innermost first."""
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


def _uses_each_slot_once(body: BlockItems) -> bool:
    """Whether a loop ends before it uses a slot for the second time."""
    slots = max((access.region.slots for item in body.items for access in item.accesses), default=1)
    return isinstance(body.loop, scf.ForOp) and Ranges().trip_count(body.loop).high <= slots


def _pipes_of(event: EventPair) -> tuple[PipeName, PipeName]:
    """Returns the pipe that sets an event and the pipe that waits for it, in a function of one core."""
    return own_pipe(event.source), own_pipe(event.target)


def _line_of(op: Operation) -> tuple[str, int] | None:
    """Returns the file and the line of the kernel that an op comes from."""
    place = location_of(op)
    return None if place is None else (place.file, place.line)


def _is_within_statement(loop: scf.ForOp | scf.WhileOp | None, dependence: Dependence) -> bool:
    """Whether both accesses come from one line of the kernel; for two iterations, whether the loop does too."""
    ops = (dependence.first.op, dependence.second.op, *([loop] if loop and dependence.distance else []))
    lines = {_line_of(op) for op in ops}
    return None not in lines and len(lines) == 1


def _kernels(module: ModuleOp) -> list[func.FuncOp]:
    return [op for op in module.walk() if isinstance(op, func.FuncOp) and op.body.blocks and "hacc.entry" in op.attributes]


def _solved_functions(module: ModuleOp, *, by_hand: bool) -> Iterator[_EventWriter]:
    """Yields a writer for each of the kernel's functions, solved and with ids."""
    functions = _kernels(module)
    bodies = [build_items(function.body.block) for function in functions]
    trips: dict[int, list[EventPair]] = {}
    kernels: dict[str, list[BlockItems]] = defaultdict(list)
    for function, body in zip(functions, bodies, strict=True):
        kernels[kernel_of(function)].append(body)
    for cores in kernels.values():
        if len(cores) == 2:  # a kernel of both cores is two functions
            trips.update(round_trips(*cores))
    for function, body in zip(functions, bodies, strict=True):
        writer = _EventWriter(function, trips, by_hand=by_hand)
        writer.solve(body)
        writer.set_tokens_early()
        writer.allocate_ids()
        yield writer


@dataclass(frozen=True)
class InsertSync(ModulePass):
    """Inserts events between pipes and barriers within pipes for all dependences inside a core.

    Attributes:
        by_hand: whether the author synchronises the statements of each core. Then only operations that come from the same
            statement are ordered.
    """

    name = NAME
    by_hand: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in _kernels(op):
            if is_finished(function) and not self.by_hand:  # an author who ends in a barrier synchronises by hand
                raise already_completed(function, self.name)
        for writer in list(_solved_functions(op, by_hand=self.by_hand)):
            if not has_run(writer.function, self.name):
                writer.write()
                remove_marks(writer.function)
                mark_as_run(writer.function, self.name)


__all__ = ["InsertSync"]
