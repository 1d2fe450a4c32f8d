"""Move what waits into the branches that alone have use for it: where a branch is not taken, nothing is set and nothing waits.

An event that crosses iterations and has both ends at one branch goes into it, its set right behind the access, its wait right
in front: each time that the branch is taken gives and takes one token, which the loop around holds. A barrier, or an event
within an iteration, whose accesses on one side are all in one branch stands at that branch's start, or at its end, unless the
pipe that waits has other work until then, or what is waited for is over before another branch ends. What a branch had and does
not need beside that goes. What was ordered stays ordered: that is asked again for everything that may count on it, in the
blocks around a branch too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import scf

from tilelang_npu.transforms.hivm.sync.cover import Demand, EventPair, Fence, Order
from tilelang_npu.transforms.hivm.sync.inside import Inside
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Touch
from tilelang_npu.transforms.hivm.sync.solve import Dependence

_Users = Mapping["EventPair | Fence", Sequence[Demand]]


def into_branches(body: BlockItems, inside: Inside, around: Sequence[Order] = ()) -> None:
    """Move events and barriers of a solved block into the branches among its items, and on into those in them.

    Args:
        body: the block.
        inside: the blocks that are solved: those in it, and those that it is a branch in.
        around: the orders of the latter.
    """
    branches = [item for item in body.items if isinstance(item.op, scf.IfOp)]
    order = inside.order(body)
    if order is None or not branches:
        return
    users = _users(order)
    taken: dict[int, BlockItems] = {}
    for one in order.own:
        for branch, moved in _moves(body, one, _alone_met(order, one, users[one])):
            if _take(inside, order, one, branch, moved, [*((order, demand) for demand in users[one]),
                                                         *((outer, demand) for outer in around for demand in outer.asked)]):
                users = _users(order)
                taken[id(branch)] = branch
                break
    for branch in taken.values():
        _leave_out(inside, branch, [order, *around])
    for item in branches:
        for branch in item.blocks:
            into_branches(branch, inside, [*around, order])


def _users(order: Order) -> _Users:
    """The demands that count on each event and barrier."""
    found: dict[EventPair | Fence, list[Demand]] = defaultdict(list)
    for demand in order.asked:
        for step in order.path(demand) or ():
            found[step].append(demand)
    return found


def _alone_met(order: Order, one: EventPair | Fence, users: Sequence[Demand]) -> list[Demand]:
    """The demands that nothing else meets."""
    order.remove(one)
    found = [demand for demand in users if not order.covers(demand)]
    order.add(one)
    return found


def _take(inside: Inside, order: Order, one: EventPair | Fence, branch: BlockItems, moved: EventPair | Fence,
          asked: Sequence[tuple[Order, Demand]]) -> bool:
    """Let a branch have what stands around it, if that meets what is asked of each order."""
    inner = inside.order(branch)
    assert inner is not None
    order.remove(one)
    inner.add(moved)
    inside.add(branch, inner)
    if all(each.covers(demand) for each, demand in asked):
        return True
    inner.remove(moved)
    order.add(one)
    inside.add(branch, inner)
    return False


def _leave_out(inside: Inside, branch: BlockItems, around: Sequence[Order]) -> None:
    """Leave out what a branch had that what it has taken makes unnecessary."""
    inner = inside.order(branch)
    assert inner is not None
    orders = [inner, *around]
    for one in inner.own:
        inner.remove(one)
        inside.add(branch, inner)
        if not all(order.covers(demand) for order in orders for demand in order.asked):
            inner.add(one)
            inside.add(branch, inner)


def _moves(body: BlockItems, one: EventPair | Fence, users: Sequence[Demand]
           ) -> Iterator[tuple[BlockItems, EventPair | Fence]]:
    """What could stand in a branch in place of an event or a barrier, which alone meets some demands."""
    if not users:
        return
    first, then = {demand.first for demand in users}, {demand.then % len(body.items) for demand in users}
    if isinstance(one, EventPair) and one.distance:
        if one.set_after == one.wait_before:
            yield from _both_ends(body, one, users)
        return
    source, target = (one.source, one.target) if isinstance(one, EventPair) else (one.pipe, one.pipe)
    if isinstance(one, Fence) and one.pipe == "ALL":
        return
    if len(then) == 1 and (branch := _alone(body, index := then.pop(), {target})) is not None:
        for place in _places(branch, target, [demand.reason for demand in users], last=False):
            place = branch.wait_at(place, (source, target))
            if isinstance(one, Fence):
                yield branch, replace(one, before=place)
            elif (one.wait_before == index and not _works(body, source, one.set_after + 1, index)
                  and not _is_over_early(body, one, users)):
                yield branch, replace(one, set_after=-1, wait_before=place)
    if len(first) == 1 and (branch := _alone(body, index := first.pop(), {source})) is not None:
        if isinstance(one, Fence):
            yield branch, replace(one, before=len(branch.items))
        elif one.set_after == index and not _works(body, target, index + 1, one.wait_before):
            for place in _places(branch, source, [demand.reason for demand in users], last=True):
                yield branch, replace(one, set_after=branch.set_at(place, (source, target)), wait_before=len(branch.items))


def _both_ends(body: BlockItems, event: EventPair, users: Sequence[Demand]) -> Iterator[tuple[BlockItems, EventPair]]:
    """An event that crosses iterations, in the branch that it stands around."""
    pipes = event.source, event.target
    branch, holder = _alone(body, event.set_after, set(pipes)), event.holder or body
    if branch is None or holder.loop is None or not all(_works(branch, pipe, 0, len(branch.items)) for pipe in pipes):
        return  # one end may be of work that is elsewhere
    reasons = [demand.reason for demand in users]
    places = (_places(branch, pipe, reasons, last=last) for pipe, last in zip(pipes, (True, False), strict=True))
    for sets, waits in zip(*places, strict=True):
        yield branch, replace(event, set_after=branch.set_at(sets, pipes), wait_before=branch.wait_at(waits, pipes),
                              holder=holder)


def _alone(body: BlockItems, index: int, pipes: set[str]) -> BlockItems | None:
    """The block of a branch that alone has work of some pipes; None where an item is none, or two blocks have."""
    item = body.items[index]
    found = [block for block in item.blocks if any(touch.pipe in pipes for inner in block.items for touch in inner.touches)]
    return found[0] if isinstance(item.op, scf.IfOp) and len(found) == 1 else None


def _is_over_early(body: BlockItems, event: EventPair, users: Sequence[Demand]) -> bool:
    """Whether what an event waits for is over before its pipe is done with the branch: ``early_sets`` sets it there."""
    arm = _alone(body, event.set_after, {event.source}) if event.set_after >= 0 else None
    if arm is None:
        return False
    place = next(_places(arm, event.source, [demand.reason for demand in users], last=True))
    return place < holding(arm, event.source)[-1]


def _works(body: BlockItems, pipe: str, start: int, end: int) -> bool:
    """Whether a pipe has work in some items of a block."""
    return any(touch.pipe == pipe for item in body.items[start:end] for touch in item.touches)


def _places(branch: BlockItems, pipe: str, reasons: Sequence[object], *, last: bool) -> Iterator[int]:
    """Where in a branch a pipe has the accesses that are to be ordered: those asked about, then all its work."""
    def asked(touch: Touch) -> bool:
        return any(touch.key == (reason.first if last else reason.second).key for reason in reasons
                   if isinstance(reason, Dependence))

    for counts in (asked, lambda touch: True):
        found = holding(branch, pipe, counts) or holding(branch, pipe)
        yield found[-1] if last else found[0]


def holding(branch: BlockItems, pipe: str, counts: Callable[[Touch], bool] = lambda _: True) -> list[int]:
    """The items of a block in which a pipe has an access that counts."""
    return [index for index, item in enumerate(branch.items)
            if any(touch.pipe == pipe and counts(touch) for touch in item.touches)]


__all__ = ["holding", "into_branches"]
