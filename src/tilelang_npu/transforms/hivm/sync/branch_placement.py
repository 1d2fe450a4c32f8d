"""Moves sets, waits and barriers into branches, so that nothing waits if a branch is not taken.

There are three kinds of moves:

- A loop-carried event whose set and wait are directly after and before the same branch moves into the branch, its set
  directly after the access and its wait directly before it. Each time that the branch is taken, the event is waited for once
  and set once. The tokens, which are the sets before and the waits after the loop, stay around the enclosing loop.
- A barrier, or an event within an iteration, whose accesses on one side are all in one branch moves to that branch's start or
  end. It does not move if the waiting pipe has other work in between, or if the awaited operation is not the last in its
  branch.
- An event within an iteration that is set after a branch is set inside the branch, directly after the awaited operation and at
  the start of the other arm: whichever arm is taken, there is one set for the wait.

After each move, all constraints that may rely on the moved event are checked again, in the enclosing blocks too; a move that
violates one is undone. Events and barriers inside the branch that became redundant are removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import scf

from tilelang_npu.transforms.hivm.sync.items import BlockItems, MemoryAccess, Queue
from tilelang_npu.transforms.hivm.sync.nested_blocks import SolvedBlocks
from tilelang_npu.transforms.hivm.sync.ordering import BlockOrder, BranchSet, Constraint, EventPair, PipeBarrier
from tilelang_npu.transforms.hivm.sync.solve import Dependence


def move_into_branches(body: BlockItems, solved: SolvedBlocks, outer_orders: Sequence[BlockOrder] = ()) -> None:
    """Moves events and barriers of a block that only operations in a branch (a region of an ``scf.if``) need into this branch.

    The branches of the block's ``scf.if`` operations are then treated in the same way.

    Args:
        body: the block, for which ``solve_block`` has computed the events and barriers.
        solved: the orders of the blocks of the function; must contain those of ``body``, its nested and its enclosing blocks.
        outer_orders: the orders of the blocks around ``body``, from which ``body`` is reached through branches only.
    """
    branches = [item for item in body.items if isinstance(item.op, scf.IfOp)]
    order = solved.order_of(body)
    if order is None or not branches:
        return
    relying = _relying_constraints(order)
    changed: dict[int, BlockItems] = {}
    for one in order.inserted:
        for branch, moved in _candidate_moves(body, one, _satisfied_only_by(order, one, relying[one])):
            constraints = [*((order, constraint) for constraint in relying[one]),
                           *((outer, constraint) for outer in outer_orders for constraint in outer.constraints)]
            if _try_move(solved, order, one, branch, moved, constraints):
                relying = _relying_constraints(order)
                changed[id(branch)] = branch
                break
    for branch in changed.values():
        _remove_redundant(solved, branch, [order, *outer_orders])
    for item in branches:
        for branch in item.blocks:
            move_into_branches(branch, solved, [*outer_orders, order])


def _relying_constraints(order: BlockOrder) -> Mapping[EventPair | PipeBarrier, Sequence[Constraint]]:
    """Returns, for each event and barrier, the constraints whose proof uses it."""
    found: dict[EventPair | PipeBarrier, list[Constraint]] = defaultdict(list)
    for constraint in order.constraints:
        for step in order.path(constraint) or ():
            found[step].append(constraint)
    return found


def _satisfied_only_by(order: BlockOrder, one: EventPair | PipeBarrier, relying: Sequence[Constraint]) -> list[Constraint]:
    """Returns the constraints that do not hold without an event or barrier."""
    order.remove(one)
    found = [constraint for constraint in relying if not order.implies(constraint)]
    order.add(one)
    return found


def _try_move(solved: SolvedBlocks, order: BlockOrder, one: EventPair | PipeBarrier, branch: BlockItems,
              moved: EventPair | PipeBarrier, constraints: Sequence[tuple[BlockOrder, Constraint]]) -> bool:
    """Replace ``one`` of the outer block by ``moved`` in a branch, unless that breaks a constraint; returns whether it did."""
    inner = solved.order_of(branch)
    assert inner is not None
    order.remove(one)
    inner.add(moved)
    solved.add(branch, inner)
    if all(each.implies(constraint) for each, constraint in constraints):
        return True
    inner.remove(moved)
    order.add(one)
    solved.add(branch, inner)
    return False


def _remove_redundant(solved: SolvedBlocks, branch: BlockItems, outer_orders: Sequence[BlockOrder]) -> None:
    """Remove events and barriers of a branch that became redundant."""
    inner = solved.order_of(branch)
    assert inner is not None
    orders = [inner, *outer_orders]
    for one in inner.inserted:
        inner.remove(one)
        solved.add(branch, inner)
        if not all(order.implies(constraint) for order in orders for constraint in order.constraints):
            inner.add(one)
            solved.add(branch, inner)


def _candidate_moves(body: BlockItems, one: EventPair | PipeBarrier, constraints: Sequence[Constraint]
                     ) -> Iterator[tuple[BlockItems, EventPair | PipeBarrier]]:
    """Yields what could replace, in a branch, an event or barrier, which alone satisfies some constraints."""
    if not constraints:
        return
    first, then = ({constraint.first for constraint in constraints},
                   {constraint.then % len(body.items) for constraint in constraints})
    if isinstance(one, EventPair) and one.distance:
        if one.set_after == one.wait_before:
            yield from _crossing_moves(body, one, constraints)
        return
    source, target = (one.source, one.target) if isinstance(one, EventPair) else (one.pipe, one.pipe)
    if isinstance(one, PipeBarrier) and one.pipe == "ALL":
        return
    if len(then) == 1 and (branch := _only_branch_with_work(body, index := then.pop(), {target})) is not None:
        for place in _access_places(branch, target, constraints, last=False):
            place = branch.wait_index(place, (source, target))
            if isinstance(one, PipeBarrier):
                yield branch, replace(one, before=place)
            elif (one.wait_before == index and not body.has_work(source, one.set_after + 1, index)
                  and not _is_set_inside_branch(body, one, constraints)):
                yield branch, replace(one, set_after=-1, wait_before=place)
    if len(first) == 1 and (branch := _only_branch_with_work(body, index := first.pop(), {source})) is not None:
        if isinstance(one, PipeBarrier):
            yield branch, replace(one, before=len(branch.items))
        elif one.set_after == index and not body.has_work(target, index + 1, one.wait_before):
            for place in _access_places(branch, source, constraints, last=True):
                yield branch, replace(one, set_after=branch.set_index(place, (source, target)), wait_before=len(branch.items))


def _crossing_moves(body: BlockItems, event: EventPair, constraints: Sequence[Constraint]
                    ) -> Iterator[tuple[BlockItems, EventPair]]:
    """Yields an event that crosses iterations, moved into the branch that both of its ends are at."""
    pipes = event.source, event.target
    branch, token_loop = _only_branch_with_work(body, event.set_after, set(pipes)), event.token_loop or body
    if branch is None or token_loop.loop is None or not all(branch.has_work(pipe, 0, len(branch.items)) for pipe in pipes):
        return  # one end may be for work elsewhere
    places = (_access_places(branch, pipe, constraints, last=last) for pipe, last in zip(pipes, (True, False), strict=True))
    for sets, waits in zip(*places, strict=True):
        yield branch, replace(event, set_after=branch.set_index(sets, pipes), wait_before=branch.wait_index(waits, pipes),
                              token_loop=token_loop)


def _only_branch_with_work(body: BlockItems, index: int, pipes: set[Queue]) -> BlockItems | None:
    """Returns the only arm of a branch with work of some pipes; None if the item is no branch, or two arms have."""
    item = body.items[index]
    found = [block for block in item.blocks if any(block.has_work(pipe, 0, len(block.items)) for pipe in pipes)]
    return found[0] if isinstance(item.op, scf.IfOp) and len(found) == 1 else None


def _is_set_inside_branch(body: BlockItems, event: EventPair, constraints: Sequence[Constraint]) -> bool:
    """Whether the awaited work ends before its pipe is done with a branch, so that ``set_inside_branches`` moves the set there.
    """
    arm = _only_branch_with_work(body, event.set_after, {event.source}) if event.set_after >= 0 else None
    if arm is None:
        return False
    return next(_access_places(arm, event.source, constraints, last=True)) < _items_with_work(arm, event.source)[-1]


def _access_places(branch: BlockItems, pipe: Queue, constraints: Sequence[Constraint], *, last: bool) -> Iterator[int]:
    """Yields where a pipe has the accesses of some constraints in a branch; then, as a fallback, where it has any work.

    Args:
        branch: the block.
        pipe: the pipe.
        constraints: the constraints.
        last: whether the last place of their first accesses is wanted; otherwise the first place of their second ones.
    """
    reasons = [constraint.reason for constraint in constraints]
    keys = {(reason.first if last else reason.second).key for reason in reasons if isinstance(reason, Dependence)}
    for counts in (lambda access: access.key in keys, lambda access: True):
        found = _items_with_work(branch, pipe, counts) or _items_with_work(branch, pipe)
        yield found[-1] if last else found[0]


def _items_with_work(block: BlockItems, pipe: Queue, counts: Callable[[MemoryAccess], bool] = lambda _: True) -> list[int]:
    """Returns the items of a block in which a pipe has an access that counts."""
    return [index for index, item in enumerate(block.items)
            if any(access.pipe == pipe and counts(access) for access in item.accesses)]


# Sets inside branches


def set_inside_branches(body: BlockItems, solved: SolvedBlocks) -> None:
    """Moves sets directly after a branch into the branch, so that later work of the pipe in the branch does not
    delay them.

    Only events whose set and wait are in the same iteration are moved. The event is then set directly after the awaited
    operation in one arm, and at the start of the other arm, so that each path executes one set.

    Args:
        body: the block, for which ``solve_block`` has computed the events and barriers.
        solved: the orders of the blocks of the function; must contain those of ``body`` and its nested blocks.
    """
    order = solved.order_of(body)
    for event in order.events if order is not None else ():
        if (event.distance or event.branch_set is not None
                or not 0 <= event.set_after < event.wait_before < len(body.items)):
            continue
        assert order is not None
        for branch_set in _places_inside_branch(body, event, solved):
            moved = replace(event, branch_set=branch_set)
            order.remove(event)
            order.add(moved)
            solved.clear_cache()
            if all(order.implies(constraint) for constraint in order.constraints):
                break
            order.remove(moved)
            order.add(event)
            solved.clear_cache()


def _places_inside_branch(body: BlockItems, event: EventPair, solved: SolvedBlocks) -> list[BranchSet]:
    """Returns where in a branch an event can be set with work of its pipe still to come, earliest first."""
    item, pipes = body.items[event.set_after], (event.source, event.target)
    arms = [arm for arm in item.blocks if _items_with_work(arm, event.source)]
    order = solved.order_of(arms[0]) if isinstance(item.op, scf.IfOp) and len(arms) == 1 else None
    if order is None:
        return []
    arm, places = arms[0], _items_with_work(arms[0], event.source)
    return [BranchSet(arm, order, place, body) for place in dict.fromkeys(arm.set_index(place, pipes) for place in places[:-1])
            if place < places[-1]]


__all__ = ["move_into_branches", "set_inside_branches"]
