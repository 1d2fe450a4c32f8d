"""What is ordered inside the items of a block: how an access in a loop or branch meets what stands around it.

A demand of an outer block may end in a nested one, or start there. What was inserted there may meet it: an event in a loop's
body waits for what its pipe did in front of the loop too, and the tokens that are taken back behind a loop wait for its last
iteration. Where a loop around it holds the tokens, an iteration of the first run after waits for the last one of the run
before, and nothing waits behind the loop. Nothing here holds only if a loop runs: the accesses in question are in it, so that
where it does not run there is nothing to order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import scf
from xdsl.ir import Operation

from tilelang_npu.transforms.hivm.sync.bytes import OperandBytes
from tilelang_npu.transforms.hivm.sync.cover import EventPair, Left, Order, State, leaving
from tilelang_npu.transforms.hivm.sync.disjoint import meet_in_step
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Item, Touch
from tilelang_npu.transforms.hivm.sync.turns import after_last, turns_since, turns_until


class Inside:
    """The blocks that are solved already; those of an item are, before the block around it is asked about."""

    def __init__(self) -> None:
        self._solved: dict[int, tuple[BlockItems, Order]] = {}
        self._left: dict[tuple[int, object, OperandBytes | None], Left] = {}
        self._entered: dict[tuple[int, object, OperandBytes | None, str, bool, bool], bool] = {}
        self._passed: dict[tuple[int, str, bool, bool, bool], Left] = {}
        self._withdrawn: set[int] = set()
        self._places: dict[tuple[int, int], tuple[Touch, list[tuple[int, int]]]] = {}

    def add(self, body: BlockItems, order: Order) -> None:
        """A block's order, which may stand for one that was asked about already."""
        if id(body) in self._solved:
            self.forget()
        self._solved[id(body)] = body, order
        if id(body) in self._withdrawn:
            self._withdrawn.remove(id(body))
            order.stand()

    def withdraw(self, body: BlockItems) -> None:
        """Forget a block's order for one that is to be found, or for itself."""
        known = self._solved.get(id(body))
        if known is not None and id(body) not in self._withdrawn:
            self._withdrawn.add(id(body))
            known[1].withdraw()
            self.forget()

    def order(self, body: BlockItems) -> Order | None:
        """The order of a block; None of one that was not solved."""
        known = self._solved.get(id(body))
        return known[1] if known is not None else None

    def tokens(self, item: Item) -> list[EventPair]:
        """The events that are set in front of a loop and taken back behind it: its own, and those held for loops in it.

        Of a branch, those of the loops in it.
        """
        found: list[EventPair] = []
        for block in item.blocks:
            if block.loop is None:
                found += [event for inner in block.items for event in self.tokens(inner)]
            elif block.loop is item.op:
                found += [event for event in self._crossing(block) if event.holder is None or event.holder is block]
        return found

    def _crossing(self, body: BlockItems) -> Iterator[EventPair]:
        known = self._solved.get(id(body))
        yield from (event for event in known[1].events if event.distance) if known is not None else ()
        for item in body.items:
            for block in item.blocks:
                yield from (event for event in self._crossing(block) if event.holder is not None)

    def hold(self, events: Iterable[EventPair], holder: BlockItems | None) -> None:
        """Let a loop hold the tokens of events."""
        for event in events:
            event.holder = holder
        self.forget()

    def forget(self) -> None:
        """Ask again: events have changed."""
        self._left.clear()
        self._entered.clear()
        self._passed.clear()

    def left(self, item: Item, touch: Touch, second: Touch | None = None) -> Left:
        """What comes behind an access of an item's blocks, of those that meet ``second`` behind the item, if that is told."""
        place = second.place if second is not None and touch.place.turn is not None else None
        key = id(item), touch.key, place
        if key not in self._left:
            found = [self._left_at(body, order, index, touch, second) for body, order, index in self.where(item, touch)]
            self._left[key] = Left(frozenset.intersection(*(one.within for one in found)),
                                   frozenset.intersection(*(one.behind for one in found)),
                                   frozenset.intersection(*(one.later for one in found)),
                                   frozenset.intersection(*(one.out for one in found)),
                                   frozenset.intersection(*(one.drained for one in found))) if found else Left()
        return self._left[key]

    def _left_at(self, body: BlockItems, order: Order, index: int, touch: Touch, second: Touch | None) -> Left:
        inner = self.left(body.items[index], touch, second)
        starts = leaving(index, order.count, touch.pipe, inner, body)
        turns = turns_since(touch.place, second.place, body.loop) if second is not None else 0
        last = max(turns, after_last(body.items[index], body.loop)) * order.count
        reached = order.reach(starts, last + order.count - 1, order.beside(index))
        tokens = {(id(event.holder or body), event.target) for event in order.events
                  if event.distance and reached.set_of(event, last)} | inner.later
        waited = tokens | inner.drained
        behind = frozenset(target for holder, target in waited if holder == id(body))
        later = frozenset((holder, target) for holder, target in tokens if holder != id(body))
        at_end = order.at_end(touch.pipe, reached)
        outside = list(order.outside(reached))
        return Left(frozenset({*reached.pipes, *inner.within, *inner.behind, *at_end}), behind, later,
                    _around(outside) | frozenset(one for one in inner.out if one[0] != id(body)),
                    frozenset((id(event.out), event.target) for event in outside if event.drained)
                    | frozenset(one for one in inner.drained if one[0] != id(body)))

    def enters(self, item: Item, touch: Touch, pipe: str, *, started: bool, primed: bool, first: Touch | None = None) -> bool:
        """Whether an access in an item's blocks comes behind something, because a pipe's work there does.

        Args:
            item: the item.
            touch: the access.
            pipe: the pipe.
            started: the pipe itself did that something, in front of the item; otherwise its work in the item comes later.
            primed: so does what it does right in front of the item, where tokens are first set.
            first: what is in front of the item, if it is one access: iterations that do not meet it may come first.
        """
        if not item.blocks:
            return False
        place = first.place if first is not None and touch.place.turn is not None else None
        key = id(item), touch.key, place, pipe, started, primed
        if key not in self._entered:
            places = list(self.where(item, touch))
            self._entered[key] = bool(places) and all(
                self._enters_at(body, order, index, touch, pipe, first, started=started, primed=primed)
                for body, order, index in places)
        return self._entered[key]

    def _enters_at(self, body: BlockItems, order: Order, index: int, touch: Touch, pipe: str, first: Touch | None,
                   *, started: bool, primed: bool) -> bool:
        item = body.items[index]
        if started and self.enters(item, touch, pipe, started=True, primed=True, first=first):
            return True
        if primed and body.loop is not None and self._held(item, touch, pipe, body):
            return True
        turns = turns_until(first.place, touch.place, body.loop) if first is not None else 0
        turns = max(turns, int(body.windows[index].low))
        here = turns * order.count + index
        reached = order.reach(_entering(order, pipe, started, primed), here, order.beside(here))
        if any(event.distance <= turns and reached.set_of(event, (turns - event.distance) * order.count)
               and self.waits(item, touch, event) for event in order.into):
            return True
        return any(other == touch.pipe or self.enters(item, touch, other, started=False, primed=position < here, first=first)
                   for other, position in reached.work.items())

    def waits(self, item: Item, touch: Touch, event: EventPair) -> bool:
        """Whether an access in an item's blocks comes behind the wait for an event there."""
        places = list(self.where(item, touch))
        return bool(places) and all(self._is_reached(body, order, index, touch, event) if body is event.into
                                    else self.waits(body.items[index], touch, event) for body, order, index in places)

    def _held(self, item: Item, touch: Touch, pipe: str, holder: BlockItems) -> bool:
        """Whether an access in an item's blocks comes behind what a pipe does in front of a loop around it, by tokens that the
        loop holds: whoever waits for one waits for that, or for what came later."""
        places = list(self.where(item, touch))
        return bool(places) and all(self._held_at(body, order, index, touch, pipe, holder) for body, order, index in places)

    def _held_at(self, body: BlockItems, order: Order, index: int, touch: Touch, pipe: str, holder: BlockItems) -> bool:
        item = body.items[index]
        starts: list[State] = [(event.wait_before, event.target, False) for event in order.events if event.distance
                               and event.holder is holder and event.primed is None and event.source == pipe]
        return (self._held(item, touch, pipe, holder)
                or any(position <= index and (other == touch.pipe or self.enters(
                           item, touch, other, started=False, primed=position < index))
                       for other, position in order.reach(starts, order.count - 1).work.items()))

    def through(self, item: Item, pipe: str, *, started: bool, primed: bool, busy: bool = False) -> Left:
        """What comes behind something on the far side of a loop that runs, because a pipe's work in it does.

        The arguments are those of ``enters``; ``busy``: the loop does something, so that it takes its common branch.
        """
        body = item.blocks[0]
        order = self.order(body)
        if order is None:
            return Left()
        key = id(item), pipe, started, primed, busy
        if key not in self._passed:
            self._passed[key] = _through(body, order, pipe, started=started, primed=primed, busy=busy)
        return self._passed[key]

    def carried(self, item: Item, first: Touch, second: Touch, holder: BlockItems) -> bool:
        """Whether an access of a loop comes behind one of its run before, by tokens that a loop around it holds.

        Args:
            item: the loop.
            first, second: the accesses.
            holder: the body of the loop around it, in which it runs again; one further out may hold the tokens.
        """
        ends = [(one, two) for one in self.where(item, first) for two in self.where(item, second)]
        return bool(ends) and all(one[0] is two[0] and self._carries(*one, two[2], first, second, holder) for one, two in ends)

    def _carries(self, body: BlockItems, order: Order, i: int, j: int, first: Touch, second: Touch, holder: BlockItems) -> bool:
        if i == j and body.items[i].blocks and self.carried(body.items[i], first, second, holder):
            return True
        return any(_holds(event.holder, holder) and (event.slots == 1 or _in_turn(body, event, first, second, holder))
                   and self._reaches(body, order, i, first, event) and self._is_reached(body, order, j, second, event)
                   for event in order.carrying)

    def _reaches(self, body: BlockItems, order: Order, index: int, touch: Touch, event: EventPair) -> bool:
        """Whether the set of an event comes behind an access in its iteration."""
        inner = self.left(body.items[index], touch)
        return order.reach(leaving(index, order.count, touch.pipe, inner, body), order.count - 1).set_of(event)

    def _is_reached(self, body: BlockItems, order: Order, index: int, touch: Touch, event: EventPair) -> bool:
        """Whether an access comes behind the wait for an event in its iteration."""
        item = body.items[index]
        reached = order.reach([(event.wait_before, event.target, False)], order.count - 1)
        return any(position <= index and (pipe == touch.pipe or self.enters(item, touch, pipe, started=False,
                                                                            primed=position < index))
                   for pipe, position in reached.work.items())

    def where(self, item: Item, touch: Touch) -> Iterator[tuple[BlockItems, Order, int]]:
        """Where an access stands in the blocks of an item."""
        key = id(item), id(touch)
        if key not in self._places:  # with the access: as long as it is held, its identity is no other's
            sought = touch.key
            self._places[key] = touch, [(id(block), index) for block in item.blocks for index, inner in enumerate(block.items)
                                        if any(one.key == sought for one in inner.touches)]
        for block, index in self._places[key][1]:
            known = self._solved.get(block)
            if known is not None:
                yield *known, index


def _around(events: Iterable[EventPair]) -> frozenset[tuple[int, int, int, str]]:
    return frozenset((id(event.out), event.distance, event.wait_before, event.target) for event in events)


def _entering(order: Order, pipe: str, started: bool, primed: bool) -> list[State]:
    """Where the search in a block starts that work of a pipe enters."""
    return [(-1, pipe, True) if started else (0, pipe, False), *order.at_start(pipe),
            *((event.wait_before, event.target, False) for event in order.events
              if primed and event.distance and event.holder is None and event.primed is None and event.source == pipe)]


def _through(body: BlockItems, order: Order, pipe: str, *, started: bool, primed: bool, busy: bool) -> Left:
    """What comes behind something on the far side of a loop that runs, by the order of its body."""
    taken = [turn * order.count + index for index, turn in body.sure]
    if busy and body.common is not None and not taken:
        taken = [body.common]  # of some iteration: what enters the loop comes before it
    last = max((turn for _, turn in body.sure), default=0) * order.count
    runs = [*taken, *(place for one in taken for place in order.beside(one))]
    reached = order.reach(_entering(order, pipe, started, primed), last + order.count - 1, runs)
    behind = {event.target for event in order.events if event.distance and event.holder is None
              and (reached.set_of(event, last) or event.source == pipe)}
    known = frozenset() if started else frozenset({pipe})  # comes later anyway
    return Left(reached.pipes - known, frozenset(behind))


def _holds(holder: BlockItems | None, body: BlockItems) -> bool:
    """Whether what holds tokens is a loop's body or one around it."""
    return holder is body or (holder is not None and holder.first <= body.first and body.last <= holder.last)


def _in_turn(body: BlockItems, event: EventPair, first: Touch, second: Touch, holder: BlockItems) -> bool:
    """Whether two accesses of two runs of a loop meet only in iterations that take one number of an event.

    When a loop runs again its iterations begin at slot 0 and at the first number, whatever it left: an iteration waits for the
    last one that had its number, and says nothing of the others. So the numbers go round with the slots that both accesses
    take, or these meet only where the iteration is the same.
    """
    if event.slots != event.distance or not isinstance(body.turns, scf.ForOp) or holder.loop is None:
        return False
    if meet_in_step(first.place.view, second.place.view, body.turns, holder.loop):
        return True
    owner = first.place.root.owner
    return (first.place.root is second.place.root and first.place.turn is None and second.place.turn is None
            and isinstance(owner, Operation) and owner.parent_block() is body.turns.body.block
            and event.slots == first.place.slots == second.place.slots)
