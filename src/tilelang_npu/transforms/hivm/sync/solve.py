"""Computes a small set of events and barriers that satisfies all dependences of one block.

Dependences between near accesses come first, so that an event that is inserted for a near pair also satisfies far pairs. Then
each event and each barrier is removed again if the rest still satisfies every constraint (transitive reduction).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from tilelang_npu.analysis.accessed_bytes import AccessedBytes, has_ring_and_fixed_slot
from tilelang_npu.analysis.disjoint_views import are_disjoint_views
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import hivm
from tilelang_npu.linear import NATURAL
from tilelang_npu.transforms.hivm.sync.items import BlockItems, MemoryAccess, Pipes, Queue, SyncItem, core_and_pipe, on_core
from tilelang_npu.transforms.hivm.sync.nested_blocks import SolvedBlocks
from tilelang_npu.transforms.hivm.sync.ordering import (
    PIPES,
    BlockOrder,
    Constraint,
    EventPair,
    ExitOrder,
    PipeBarrier,
    Position,
)
from tilelang_npu.transforms.hivm.sync.taken_branches import are_taken_alike

DependenceKind = Literal["RAW", "WAR", "WAW"]
_CELL = 2048
"""Bytes of a cell of on-chip memory, by which accesses are looked up; any number gives the same result."""
_LARGEST = 1 << 20
"""Bytes that no on-chip memory exceeds."""
_INDEPENDENT = "hivm.parallel_loop"
"""AscendNPU-IR's mark of a loop whose iterations do not depend on each other."""
_ORDERED_WITHIN = ("S", "M")  # pipes whose own ops see each other's results (docs/hivm.md#synchronisation)


@dataclass(frozen=True)
class Dependence:
    """A dependence between two accesses, which must be ordered.

    Attributes:
        kind: RAW, WAR or WAW.
        first: the earlier access.
        second: the later access.
        distance: the number of iterations from the first access to the second; 0 for accesses in the same iteration.
        unconditional: whether the pipes of the two accesses must be ordered even if the branches and loops that contain the
            accesses do not run, because a flag between the cores relies on the order.
    """

    kind: DependenceKind
    first: MemoryAccess
    second: MemoryAccess
    distance: int
    unconditional: bool = False


def dependence_kind(first: MemoryAccess, second: MemoryAccess) -> DependenceKind:
    """Returns whether the dependence of two accesses is RAW, WAR or WAW; at least one of the accesses must write."""
    if first.writes:
        return "WAW" if second.writes else "RAW"
    return "WAR"


def _same_for_all(_: object) -> bool:
    return True


def constraints_of(body: BlockItems, *, tag: Callable[[MemoryAccess], object] = _same_for_all,
                   group: Callable[[Dependence], object] = _same_for_all, runs_on: bool = False) -> Iterator[Constraint]:
    """Yields a constraint for each dependence between items of a block, nearest pairs first.

    In a loop's body, the accesses of an iteration are also compared with those of the next iteration that uses the same bytes.
    If several accesses of a pipe overlap one later access, only the last of them is reported, because an access that is ordered
    after the last one is ordered after all of them. Accesses in an item's nested blocks are all reported, because waits in
    these blocks may satisfy each of them differently.

    A write of a pipe after a read of the same pipe needs no wait, because a pipe executes its operations in order. Accesses to
    global memory in different iterations of a loop that the author declared independent are not ordered. On-chip accesses are
    ordered even then, because the iterations share the same bytes.

    Args:
        body: the block.
        tag: a function that returns a value for each access; accesses with different values are reported separately.
        group: a function that returns a value for each dependence; dependences with different values are reported separately.
        runs_on: for a loop, whether to include dependences that would only exist after its last iteration, because the loop is
            run again.
    """
    items, loop = body.items, body.loop if isinstance(body.loop, scf.ForOp) else None
    seen = _AccessIndex(items, tag)
    active = body.active_iterations if not runs_on else [NATURAL] * len(items)

    def before_item(j: int, *, later: bool) -> list[Constraint]:
        """The constraints whose second access is in item ``j``, of this iteration or of a ``later`` one."""
        nearest: dict[object, Constraint] = {}
        for b in items[j].accesses:
            for i, a, period in seen.overlapping(b):
                if (a.writes or b.writes) and not (a.pipe == b.pipe and (a.pipe in _ORDERED_WITHIN or not a.writes)):
                    slots = max(1, a.region.slots) if a.region.root is b.region.root else 1
                    phase, alternates, distance = _ring_distance(body, a, b), _slots_alternate_here(body, a), 0
                    if phase and not (later and alternates):
                        continue
                    if later:
                        slots = distance = phase or (period if period > 1 and alternates else 1)
                        if active[i].low + distance > active[j].high:
                            continue
                    if later and body.loop is not None and a.region.space == "gm" and _INDEPENDENT in body.loop.attributes:
                        continue
                    if (not later or loop is not None) and are_disjoint_views(a.region.view, b.region.view, loop, later=later):
                        continue
                    if _passed_by_unit_flags(a, b):
                        continue
                    dependence = Dependence(dependence_kind(a, b), a, b, distance)
                    ends = (i, a.key) if items[i].blocks else a.pipe, b.key if items[j].blocks else b.pipe
                    # each slot of a ring is reached after its own number of iterations
                    slot = (a.region, b.region) if has_ring_and_fixed_slot(a.region, b.region) else None
                    key = ends, slot, distance, group(dependence)
                    known = nearest.get(key)
                    if known is None or known.first < i:
                        nearest[key] = Constraint(a.pipe, b.pipe, i, distance * len(items) + j, slots, dependence)
        return sorted(nearest.values(), key=lambda constraint: -constraint.first)

    for j in range(len(items)):
        yield from before_item(j, later=False)
        seen.add(j)
    if body.loop is not None:
        for j in range(len(items)):
            yield from before_item(j, later=True)


class _AccessIndex:
    """The last accesses of the items so far, by the bytes that they access.

    Args:
        items: all items that will be added.
        tag: accesses with different tags are kept separately.
    """

    def __init__(self, items: Sequence[SyncItem], tag: Callable[[MemoryAccess], object]) -> None:
        self._items, self._tag = items, tag
        self._numbers: dict[AccessedBytes, int] = {}
        self._regions: list[AccessedBytes] = []
        self._by_cell: dict[object, list[int]] = defaultdict(list)
        self._overlapping: dict[int, list[tuple[int, int]]] = {}
        self._last: dict[int, dict[object, tuple[int, MemoryAccess]]] = defaultdict(dict)
        for item in items:
            for access in item.accesses:
                self._number(access.region)

    def _number(self, region: AccessedBytes) -> int:
        number = self._numbers.get(region)
        if number is None:
            number = self._numbers[region] = len(self._regions)
            self._regions.append(region)
            for cell in set(_cells_of(region)):
                self._by_cell[cell].append(number)
        return number

    def add(self, index: int) -> None:
        """Add the accesses of an item, which come after those of the items before it."""
        nested = bool(self._items[index].blocks)
        for access in self._items[index].accesses:
            key = (access.pipe, access.writes, self._tag(access), index if nested else -1)
            self._last[self._number(access.region)][key] = index, access

    def overlapping(self, access: MemoryAccess) -> Iterator[tuple[int, MemoryAccess, int]]:
        """Yields the last accesses that can overlap an access: item, access, ``overlap_period``."""
        number = self._number(access.region)
        if number not in self._overlapping:
            near = dict.fromkeys(other for cell in _cells_of(access.region) for other in self._by_cell[cell])
            periods = [(other, self._regions[other].overlap_period(access.region)) for other in near]
            self._overlapping[number] = [(other, period) for other, period in periods if period is not None]
        for other, period in self._overlapping[number]:
            for index, earlier in self._last[other].values():
                yield index, earlier, period


def _passed_by_unit_flags(first: MemoryAccess, second: MemoryAccess) -> bool:
    """Whether a product and a fixpipe order their accesses to L0C themselves, by unit flags."""
    return (first.region.space == "cc" and first.pipe != second.pipe
            and all(hivm.unit_flag_use(access.op) in ("keep", "pass", "either") for access in (first, second)))


def _cells_of(region: AccessedBytes) -> Iterator[object]:
    """Yields the cells that a region is in: two regions that can overlap have a cell in common."""
    if not region.planned:
        yield region.root
        return
    for address in region.addresses:
        for cell in range((address + region.low) // _CELL, -(-(address + min(region.high, _LARGEST)) // _CELL)):
            yield region.space, cell


def _ring_distance(body: BlockItems, first: MemoryAccess, second: MemoryAccess) -> int:
    """Returns the number of iterations after which two accesses to a multi-buffer use the same slot.

    Returns 0 if the loop that selects the slot does not contain the block, or if two loops select the slots.
    """
    index = first.region.ring_index
    if index is None or second.region.ring_index is None or index[0] is not second.region.ring_index[0]:
        return 0
    return first.region.ring_distance(second.region) if index[0] in _enclosing_arguments(body.block) else 0


def _enclosing_arguments(block: Block | None) -> Iterator[SSAValue]:
    """Yields the arguments of a block and of those around it, induction variables among them."""
    while block is not None:
        yield from block.args
        parent = block.parent_op()
        block = parent.parent_block() if parent is not None else None


def _slots_alternate_here(body: BlockItems, access: MemoryAccess) -> bool:
    """Whether the slots of an access alternate with this block's loop: its address, or the ring's index, is defined in its
    body."""
    if access.region.ring_index is not None:
        return access.region.ring_index[0] in body.block.args
    owner = access.region.root.owner
    parent = getattr(owner, "parent_block", None)
    return parent is not None and parent() is body.block


@dataclass(frozen=True)
class _SolvedNestedItems:
    """``NestedItems`` of a block whose nested blocks are solved; see there for the methods."""

    body: BlockItems
    solved: SolvedBlocks

    @cached_property
    def running_loops(self) -> Sequence[int]:
        ranges = Ranges()
        return [index for index, item in enumerate(self.body.items)
                if isinstance(item.op, scf.ForOp) and ranges.trip_count(item.op).low > 0]

    @cached_property
    def _alike(self) -> Mapping[object, Sequence[int]]:
        """The branches by their condition, without those that have an else arm, and the loops by their bounds."""
        found: dict[object, list[int]] = defaultdict(list)
        ranges = Ranges()
        for index, item in enumerate(self.body.items):
            if isinstance(item.op, scf.IfOp) and len(item.blocks) == 1:
                found[item.op.cond].append(index)
            elif isinstance(item.op, scf.ForOp):
                bounds = item.op.lb, item.op.ub, item.op.step
                found[tuple(end if (known := ranges.constant(end)) is None else known for end in bounds)].append(index)
        return found

    @cached_property
    def _working_alike(self) -> Container[int]:
        """The loops that access something whenever another loop of the same bounds does."""
        found = set[int]()
        for indices in self._alike.values():
            loops = [self.body.items[index].blocks[0] for index in indices]
            branches = [loop.items[loop.common_branch].op if loop.common_branch is not None else None for loop in loops]
            if all(are_taken_alike(branches[0], one) for one in branches):
                found.update(indices)
        return found

    def taken_with_accesses(self, constraint: Constraint) -> Sequence[Position]:
        if _nested_dependence(constraint) is None:
            return ()
        return [place for end in (constraint.first, constraint.then) for place in self.taken_with(end)]

    def taken_with(self, position: Position) -> Sequence[Position]:
        count = len(self.body.items)
        index = position % count
        places = [other for alike in self._alike.values() if index in alike for other in alike if other != index]
        places += [other + distance * count for other, distance in self.body.implied_branches.get(index, ())]
        return [position - index + place for place in places]

    def exit_order(self, constraint: Constraint) -> ExitOrder:
        item, dependence = self.body.items[constraint.first], _nested_dependence(constraint)
        if not item.blocks or dependence is None:
            return ExitOrder()
        return self.solved.exit_order(item, dependence.first, dependence.second)

    def is_entered_after(self, constraint: Constraint, pipe: Queue, *, queued: bool, tokens_follow: bool) -> bool:
        item, dependence = self.body.items[constraint.then % len(self.body.items)], _nested_dependence(constraint)
        return dependence is not None and self.solved.is_entered_after(
            item, dependence.second, pipe, queued=queued, tokens_follow=tokens_follow, first=dependence.first)

    def waits_for(self, constraint: Constraint, event: EventPair) -> bool:
        item, dependence = self.body.items[constraint.then % len(self.body.items)], _nested_dependence(constraint)
        return dependence is not None and self.solved.waits_for(item, dependence.second, event)

    def order_through(self, index: int, pipe: Queue, *, queued: bool, tokens_follow: bool, taken: bool = False) -> ExitOrder:
        return self.solved.order_through(self.body.items[index], pipe, queued=queued, tokens_follow=tokens_follow,
                                         does_work=taken and index in self._working_alike)

    def is_carried(self, constraint: Constraint) -> bool:
        later, then = divmod(constraint.then, len(self.body.items))
        item, dependence = self.body.items[then], _nested_dependence(constraint)
        return (later > 0 and then == constraint.first and bool(item.blocks) and dependence is not None
                and self.solved.is_carried(item, dependence.first, dependence.second, self.body))


def _nested_dependence(constraint: Constraint) -> Dependence | None:
    """Returns the dependence of a constraint, if waits in nested blocks may satisfy it; None if waits must be in this block.
    """
    reason = constraint.reason
    return reason if isinstance(reason, Dependence) and not reason.unconditional else None


def solve_block(body: BlockItems, solved: SolvedBlocks, given: Sequence[EventPair] = (),
                counts: Callable[[Dependence], bool] | None = None, tag: Callable[[MemoryAccess], object] = _same_for_all, *,
                runs_on: bool = False, relied_on: Sequence[Constraint] = ()) -> BlockOrder:
    """Computes the events and barriers of one block and returns them as the block's order.

    Args:
        body: the block.
        solved: the orders of the nested blocks, which must be solved before; the order of ``body`` is added.
        given: events that exist without this solver: the author's events, and orders that flags to the other core and back
            imply.
        counts: returns whether a dependence must be ordered; None orders all dependences.
        tag: returns the part of an access on which the result of ``counts`` depends.
        runs_on: for a loop, whether to order dependences of its iterations with the next run of the loop too.
        relied_on: further constraints, which flags between the cores rely on.
    """
    count = len(body.items)
    pipe_chains = {index: item.pipe_chain for index, item in enumerate(body.items) if item.pipe_chain}
    author_barriers = [PipeBarrier(item.barrier_pipe, index, None, by_author=True)
                       for index, item in enumerate(body.items) if item.barrier_pipe]
    order = BlockOrder(count, pipe_chains, author_barriers, _SolvedNestedItems(body, solved))
    for event in given:
        order.give(event)
    constraints: list[Constraint] = []
    for constraint in (*relied_on, *constraints_of(body, tag=tag, group=counts or _same_for_all, runs_on=runs_on)):
        if counts is not None and (not isinstance(constraint.reason, Dependence) or not counts(constraint.reason)):
            continue
        constraints.append(constraint)
        if order.implies(constraint):
            continue
        distance, index = divmod(constraint.then, count)
        pipes = constraint.source, constraint.target
        first, index = body.set_index(constraint.first, pipes), body.wait_index(index, pipes)
        if constraint.source == constraint.target:
            order.add(PipeBarrier(constraint.source, index, constraint.reason))
        else:
            slots = constraint.slots if isinstance(body.enclosing_loop, scf.ForOp) else 1
            if distance and first < index:
                first, index = _set_after_wait(body, first, index, pipes)
            order.add(EventPair(*pipes, first, index, distance, slots, constraint.reason))
    order.constraints = _strongest(body, constraints)
    _remove_redundant(order, order.constraints)
    solved.add(body, order)
    return order


def _set_after_wait(body: BlockItems, first: int, index: int, pipes: Pipes) -> tuple[int, int]:
    """Returns the set and wait indices of an event from an earlier iteration, so that the set comes after the wait.

    If an iteration set its event before it waits for an earlier one, one more would be outstanding than there are iterations in
    between, and one more id would be needed. So either the set moves down to after the wait, or the wait moves up to before the
    set, whichever delays fewer bytes: pipes are queues, so only what the pipe itself does in between is delayed.
    """
    source, target = pipes
    down, up = body.set_index(index, pipes), body.wait_index(first, pipes)
    delayed_set, delayed_wait = body.accessed_nbytes(source, first + 1, down + 1), body.accessed_nbytes(target, up, index)
    return (down, index) if delayed_set <= delayed_wait else (first, up)


def solve_between_cores(body: BlockItems, solved: SolvedBlocks, counts: Callable[[Queue, Queue, object], bool], *,
                        can_rely: bool) -> tuple[BlockOrder, list[EventPair]]:
    """Returns the order of one block with the flags between the cores, and the orders inside a core that these may rely on.

    Dependences inside a core are assumed to be satisfied. A wait for a flag stops the scalar unit, and so all pipes of its
    core. If an access is in a branch or a loop, the wait inside a core may be inserted inside it, and then nothing waits if the
    branch or loop does not run. The second result lists the orders of such accesses, on which flags may only rely if
    ``insert-sync`` waits outside.

    Args:
        body: the block.
        solved: the orders of the nested blocks, which must be solved before; the order of ``body`` is added.
        counts: returns, for two pipes and a buffer, whether their accesses to the buffer must be ordered between the cores.
        can_rely: whether ``insert-sync`` can wait outside of branches and loops; otherwise the second result is empty.
    """
    pipe_chains = {index: item.pipe_chain for index, item in enumerate(body.items) if item.pipe_chain}
    order = BlockOrder(len(body.items), pipe_chains, [], _SolvedNestedItems(body, solved))
    constraints: list[Constraint] = []
    relied_on: list[EventPair] = []

    def is_between_cores(dependence: Dependence) -> bool:
        return counts(dependence.first.pipe, dependence.second.pipe, dependence.first.region.root)

    for constraint in constraints_of(body, group=is_between_cores):
        assert isinstance(constraint.reason, Dependence)
        if is_between_cores(constraint.reason):
            constraints.append(constraint)
        elif constraint.source != constraint.target:
            distance, index = divmod(constraint.then, order.count)
            inside = EventPair(constraint.source, constraint.target, constraint.first, index, distance,
                               reason=constraint.reason)
            if not any(body.items[end].blocks for end in (constraint.first, index)):
                order.give(inside)
                continue
            _give_to_branches(body, solved, inside, constraint.reason)
            if can_rely:
                relied_on.append(inside)
                order.give(inside)
    for constraint in constraints:
        if not order.implies(constraint):
            distance, index = divmod(constraint.then, order.count)
            core = core_and_pipe(constraint.target)[0]
            order.add(EventPair(constraint.source, constraint.target, constraint.first, index, distance,
                                reason=constraint.reason, blocked_pipes=tuple(on_core(core, pipe) for pipe in PIPES)))
    order.constraints = _strongest(body, constraints)
    _remove_redundant(order, order.constraints)
    solved.add(body, order)
    return order, relied_on


def _give_to_branches(body: BlockItems, solved: SolvedBlocks, inside: EventPair, dependence: Dependence) -> None:
    """Give an order inside a core to the branch that one of its accesses is in: it holds where the branch is taken.

    Either the first access is in a branch and the second comes after it, or the second is in a branch and the first comes
    before it.
    """
    first, second = body.items[inside.set_after], body.items[inside.wait_before]
    given: list[tuple[BlockOrder, EventPair]] = []
    if isinstance(first.op, scf.IfOp) and not second.blocks:
        given = [(order, replace(inside, set_after=index, outer_wait_block=body))
                 for branch, order, index in solved.occurrences(first, dependence.first) if not branch.items[index].blocks]
    elif isinstance(second.op, scf.IfOp) and not first.blocks and not inside.distance and not body.has_work(
            inside.source, inside.set_after + 1, inside.wait_before):
        given = [(order, replace(inside, set_after=-1, wait_before=index))
                 for branch, order, index in solved.occurrences(second, dependence.second) if not branch.items[index].blocks]
    for order, event in given:
        order.give(event)
    if given:
        solved.clear_cache()


def _strongest(body: BlockItems, constraints: list[Constraint]) -> list[Constraint]:
    """Returns the constraints that no other one implies by itself: one of the same pipes with a later first and an earlier
    second access.

    A constraint with an end in an item's blocks may be satisfied in there, and implies none.
    """
    groups: dict[tuple[Queue, Queue], list[Constraint]] = defaultdict(list)
    kept: list[Constraint] = []
    for constraint in constraints:
        if body.items[constraint.first].blocks or body.items[constraint.then % len(body.items)].blocks:
            kept.append(constraint)
        else:
            groups[constraint.source, constraint.target].append(constraint)
    for group in groups.values():
        best: dict[int, Constraint] = {}
        for constraint in group:
            known = best.get(constraint.first)
            if known is None or constraint.then < known.then:
                best[constraint.first] = constraint
        earliest: int | None = None
        for first in sorted(best, reverse=True):
            if earliest is None or best[first].then < earliest:
                kept.append(best[first])
                earliest = best[first].then
    return kept


def _remove_redundant(order: BlockOrder, constraints: Sequence[Constraint]) -> None:
    """Remove the events and barriers that the rest makes redundant, barriers first."""
    users: dict[EventPair | PipeBarrier, set[int]] = defaultdict(set)  # the constraints whose proof uses one
    paths: list[list[EventPair | PipeBarrier]] = []
    for index, constraint in enumerate(constraints):
        path = order.path(constraint)
        assert path is not None
        paths.append(path)
        for step in path:
            users[step].add(index)
    candidates: list[EventPair | PipeBarrier] = [*order.barriers, *order.events]
    for candidate in candidates:
        if isinstance(candidate, PipeBarrier) and candidate.by_author:
            continue
        order.remove(candidate)
        changed: dict[int, list[EventPair | PipeBarrier]] = {}
        for index in sorted(users[candidate]):
            path = order.path(constraints[index])
            if path is None:
                order.add(candidate)
                break
            changed[index] = path
        else:
            for index, path in changed.items():
                for step in paths[index]:
                    users[step].discard(index)
                paths[index] = path
                for step in path:
                    users[step].add(index)
