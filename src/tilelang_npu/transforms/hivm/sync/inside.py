"""What is ordered inside the items of a block: how an access in a loop or branch meets what stands around it.

A demand of an outer block may end in a nested one, or start there. What was inserted there may meet it: an event in a loop's
body waits for what its pipe did in front of the loop too, and the tokens that are taken back behind a loop wait for its last
iteration. Nothing here holds only if a loop runs: the accesses in question are in it, so that where it does not run there is
nothing to order.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang_npu.transforms.hivm.sync.cover import Left, Order, State, leaving
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Item, Touch


class Inside:
    """The blocks that are solved already; those of an item are, before the block around it is asked about."""

    def __init__(self) -> None:
        self._solved: dict[int, tuple[BlockItems, Order]] = {}
        self._left: dict[tuple[int, object], Left] = {}
        self._entered: dict[tuple[int, object, str, bool, bool], bool] = {}

    def add(self, body: BlockItems, order: Order) -> None:
        """A block whose order is final."""
        self._solved[id(body)] = body, order

    def left(self, item: Item, touch: Touch) -> Left:
        """What comes behind an access of an item's blocks."""
        key = id(item), touch.key
        if key not in self._left:
            found = [self._left_at(body, order, index, touch) for body, order, index in self._where(item, touch)]
            self._left[key] = Left(frozenset.intersection(*(one.within for one in found)),
                                   frozenset.intersection(*(one.behind for one in found))) if found else Left()
        return self._left[key]

    def _left_at(self, body: BlockItems, order: Order, index: int, touch: Touch) -> Left:
        inner = self.left(body.items[index], touch)
        starts = leaving(index, touch.pipe, inner)
        reached = order.reach(starts, order.count - 1)
        at_once = {touch.pipe, *inner.within}
        behind = {event.target for event in order.events
                  if event.distance and (reached.get(event.source, order.count) <= event.set_after
                                         or (event.source in at_once and event.set_after >= index))}
        return Left(frozenset({*reached, *inner.within, *inner.behind}), frozenset(behind))

    def enters(self, item: Item, touch: Touch, pipe: str, *, started: bool, primed: bool) -> bool:
        """Whether an access in an item's blocks comes behind something, because a pipe's work there does.

        Args:
            item: the item.
            touch: the access.
            pipe: the pipe.
            started: the pipe itself did that something, in front of the item; otherwise its work in the item comes later.
            primed: so does what it does right in front of the item, where tokens are first set.
        """
        if not item.blocks:
            return False
        key = id(item), touch.key, pipe, started, primed
        if key not in self._entered:
            places = list(self._where(item, touch))
            self._entered[key] = bool(places) and all(
                self._enters_at(body, order, index, touch, pipe, started=started, primed=primed)
                for body, order, index in places)
        return self._entered[key]

    def _enters_at(self, body: BlockItems, order: Order, index: int, touch: Touch, pipe: str,
                   *, started: bool, primed: bool) -> bool:
        item = body.items[index]
        if started and self.enters(item, touch, pipe, started=True, primed=True):
            return True
        return any(position <= index and (other == touch.pipe or self.enters(
                       item, touch, other, started=False, primed=position < index))
                   for other, position in order.reach(_entering(order, pipe, started, primed), order.count - 1).items())

    def through(self, item: Item, pipe: str, *, started: bool, primed: bool) -> Left:
        """What comes behind something on the far side of a loop that runs, because a pipe's work in it does.

        The arguments are those of ``enters``.
        """
        known = self._solved.get(id(item.blocks[0]))
        if known is None:
            return Left()
        order = known[1]
        reached = order.reach(_entering(order, pipe, started, primed), order.count - 1)
        if not started:
            reached.pop(pipe, None)  # is known of already
        behind = {event.target for event in order.events
                  if event.distance and (reached.get(event.source, order.count) <= event.set_after or event.source == pipe)}
        return Left(frozenset(reached), frozenset(behind))

    def _where(self, item: Item, touch: Touch) -> Iterator[tuple[BlockItems, Order, int]]:
        """Where an access stands in the blocks of an item."""
        for block in item.blocks:
            known = self._solved.get(id(block))
            if known is not None:
                for index, inner in enumerate(block.items):
                    if any(one.key == touch.key for one in inner.touches):
                        yield *known, index


def _entering(order: Order, pipe: str, started: bool, primed: bool) -> list[State]:
    """Where the search in a block starts that work of a pipe enters."""
    return [(-1, pipe, True) if started else (0, pipe, False),
            *((event.wait_before, event.target, False) for event in order.events
              if primed and event.distance and event.source == pipe)]
