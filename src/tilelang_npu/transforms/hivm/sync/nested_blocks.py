"""Answers which accesses in nested blocks are ordered by the waits in these blocks, as seen from the enclosing block.

A constraint of an outer block may start or end at an access in a nested block, and waits in the nested block may satisfy it:

- A loop-carried event of a loop's body is set once before the loop and waited for once after the loop (its *tokens*). So the
  first iteration waits for what the setting pipe did before the loop, and the wait after the loop waits for the last iteration.
- If the tokens are around a loop further out (the outer loop *holds* the tokens), the first iteration of each run of the
  inner loop waits for the last iteration of the previous run, and nothing waits directly after the inner loop.
- An access in a branch that is not taken is not executed and needs no order. So each answer only has to hold if the item with
  the access runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import scf
from xdsl.ir import Operation

from tilelang_npu.analysis.accessed_bytes import AccessedBytes, iterations_after_overlap, iterations_before_overlap
from tilelang_npu.analysis.disjoint_views import overlap_only_in_same_iteration
from tilelang_npu.transforms.hivm.sync.items import BlockItems, MemoryAccess, Queue, SyncItem
from tilelang_npu.transforms.hivm.sync.ordering import BlockOrder, EventPair, ExitOrder, State, exit_states
from tilelang_npu.transforms.hivm.sync.taken_branches import iterations_after


class SolvedBlocks:
    """The orders of the solved blocks of a function, and the queries about order into, out of and through nested blocks.

    The nested blocks of an item must be added before a query about the item.
    """

    def __init__(self) -> None:
        self._solved: dict[int, tuple[BlockItems, BlockOrder]] = {}
        self._exit_orders: dict[tuple[int, object, AccessedBytes | None], ExitOrder] = {}
        self._entered: dict[tuple[int, object, AccessedBytes | None, Queue, bool, bool], bool] = {}
        self._through: dict[tuple[int, Queue, bool, bool, bool], ExitOrder] = {}
        self._retracted: set[int] = set()
        self._occurrences: dict[tuple[int, int], tuple[MemoryAccess, list[tuple[int, int]]]] = {}

    def add(self, body: BlockItems, order: BlockOrder) -> None:
        """Stores the order of a block, and replaces an order that was stored before."""
        if id(body) in self._solved:
            self.clear_cache()
        self._solved[id(body)] = body, order
        if id(body) in self._retracted:
            self._retracted.remove(id(body))
            order.restore_in_branches()

    def retract(self, body: BlockItems) -> None:
        """Removes the events that a block's order has given to the orders of its branches.

        Must be called before the block's order is computed again; ``add`` with the new or the old order gives the events again.
        """
        known = self._solved.get(id(body))
        if known is not None and id(body) not in self._retracted:
            self._retracted.add(id(body))
            known[1].retract_from_branches()
            self.clear_cache()

    def order_of(self, body: BlockItems) -> BlockOrder | None:
        """Returns the order in which the events of a block let its operations complete; None if no events were placed in the
        block yet."""
        known = self._solved.get(id(body))
        return known[1] if known is not None else None

    def clear_cache(self) -> None:
        """Forgets cached answers. Must be called after events have changed."""
        self._exit_orders.clear()
        self._entered.clear()
        self._through.clear()

    # Tokens of loops

    def tokens_of(self, item: SyncItem) -> list[EventPair]:
        """Returns the loop-carried events that are set before a loop and waited for after it.

        These are events of the loop's body, and events of inner loops whose tokens this loop holds. For a branch, returns the
        events of the loops in it.
        """
        found: list[EventPair] = []
        for block in item.blocks:
            if block.loop is None:
                found += [event for inner in block.items for event in self.tokens_of(inner)]
            elif block.loop is item.op:
                found += [event for event in self._events_with_tokens(block)
                          if event.token_loop is None or event.token_loop is block]
        return found

    def _events_with_tokens(self, body: BlockItems) -> Iterator[EventPair]:
        known = self._solved.get(id(body))
        yield from (event for event in known[1].events if event.distance) if known is not None else ()
        for item in body.items:
            for block in item.blocks:
                yield from (event for event in self._events_with_tokens(block) if event.token_loop is not None)

    def set_token_loop(self, events: Iterable[EventPair], loop_body: BlockItems | None) -> None:
        """Sets the loop around which the tokens of events are set and waited for.

        Args:
            events: the loop-carried events.
            loop_body: the body of that loop; None for the loop whose body contains the event.
        """
        for event in events:
            event.token_loop = loop_body
        self.clear_cache()

    # Out of a nested block

    def exit_order(self, item: SyncItem, access: MemoryAccess, second: MemoryAccess | None = None) -> ExitOrder:
        """Returns which pipes' operations after an item are ordered after an access in the item's blocks.

        Args:
            item: the item.
            access: the access in the item's blocks.
            second: the later access that must be ordered after ``access``. If ``access`` is to a slot of a multi-buffer,
                iterations whose slot ``second`` does not overlap can only add to the order.
        """
        region = second.region if second is not None and access.region.ring_index is not None else None
        key = id(item), access.key, region
        if key not in self._exit_orders:
            found = [self._exit_order_at(body, order, index, access, second)
                     for body, order, index in self.occurrences(item, access)]
            # an access at several places is ordered after only what follows all of them
            self._exit_orders[key] = ExitOrder(
                frozenset.intersection(*(one.within for one in found)),
                frozenset.intersection(*(one.at_exit for one in found)),
                frozenset.intersection(*(one.at_outer_exits for one in found)),
                frozenset.intersection(*(one.outer_waits for one in found)),
                frozenset.intersection(*(one.drained for one in found))) if found else ExitOrder()
        return self._exit_orders[key]

    def _exit_order_at(self, body: BlockItems, order: BlockOrder, index: int, access: MemoryAccess,
                       second: MemoryAccess | None) -> ExitOrder:
        inner = self.exit_order(body.items[index], access, second)
        starts = exit_states(index, order.count, access.pipe, inner, body)
        free = iterations_after_overlap(access.region, second.region, body.loop) if second is not None else 0
        # the start of the last iteration that surely follows without overlapping ``second``
        last = max(free, iterations_after(body.items[index], body.loop)) * order.count
        later = order.later_work(starts, last + order.count - 1, order.taken_with(index))
        token_waits = {(id(event.token_loop or body), event.target) for event in order.events
                       if event.distance and later.includes_set_of(event, last)} | inner.at_outer_exits
        at_exit = frozenset(target for loop, target in token_waits | inner.drained if loop == id(body))
        at_outer_exits = frozenset((loop, target) for loop, target in token_waits if loop != id(body))
        at_end = order.pipes_waiting_at_end(access.pipe, later)
        outer = list(order.outer_waits_after(later))
        outer_waits = frozenset((id(event.outer_wait_block), event.distance, event.wait_before, event.target)
                                for event in outer)
        return ExitOrder(frozenset({*later.pipes, *inner.within, *inner.at_exit, *at_end}), at_exit, at_outer_exits,
                         outer_waits | frozenset(one for one in inner.outer_waits if one[0] != id(body)),
                         frozenset((id(event.outer_wait_block), event.target) for event in outer if event.drains_loop)
                         | frozenset(one for one in inner.drained if one[0] != id(body)))

    # Into a nested block

    def is_entered_after(self, item: SyncItem, access: MemoryAccess, pipe: Queue, *, queued: bool, tokens_follow: bool,
                         first: MemoryAccess | None = None) -> bool:
        """Whether an access in an item's blocks is ordered after an earlier access, given a pipe that is ordered after the
        latter.

        Args:
            item: the item.
            access: the access in the item's blocks.
            pipe: the pipe that is known to be ordered after the earlier access, or to contain it.
            queued: whether the earlier access is in the pipe's own queue before the item. Otherwise, all operations of the pipe
                in the item start after the earlier access is done.
            tokens_follow: whether events that the pipe sets directly before the item are set after the earlier access too.
            first: the earlier access, if there is a single one. If ``access`` is to a slot of a multi-buffer, iterations whose
                slot ``first`` does not overlap need no order.
        """
        if not item.blocks:
            return False
        region = first.region if first is not None and access.region.ring_index is not None else None
        key = id(item), access.key, region, pipe, queued, tokens_follow
        if key not in self._entered:
            places = list(self.occurrences(item, access))
            self._entered[key] = bool(places) and all(
                self._is_entered_at(body, order, index, access, pipe, first, queued=queued, tokens_follow=tokens_follow)
                for body, order, index in places)
        return self._entered[key]

    def _is_entered_at(self, body: BlockItems, order: BlockOrder, index: int, access: MemoryAccess, pipe: Queue,
                       first: MemoryAccess | None, *, queued: bool, tokens_follow: bool) -> bool:
        item = body.items[index]
        if queued and self.is_entered_after(item, access, pipe, queued=True, tokens_follow=True, first=first):
            return True
        if tokens_follow and body.loop is not None and self._waits_for_tokens(item, access, pipe, body):
            return True
        free = iterations_before_overlap(first.region, access.region, body.loop) if first is not None else 0
        iteration = max(free, int(body.active_iterations[index].low))  # the first one whose access matters
        place = iteration * order.count + index
        later = order.later_work(_entry_states(order, pipe, queued=queued, tokens_follow=tokens_follow), place,
                                 order.taken_with(place))
        if any(event.distance <= iteration and later.includes_set_of(event, (iteration - event.distance) * order.count)
               and self.waits_for(item, access, event) for event in order.inner_waits):
            return True
        return any(other == access.pipe or self.is_entered_after(item, access, other, queued=False,
                                                                 tokens_follow=position < place, first=first)
                   for other, position in later.work.items())

    def waits_for(self, item: SyncItem, access: MemoryAccess, event: EventPair) -> bool:
        """Whether an access in an item's blocks is always executed after the wait of ``event``, which is in these blocks too.
        """
        places = list(self.occurrences(item, access))
        return bool(places) and all(
            self._follows_wait(body, order, index, access, event) if body is event.inner_wait_block
            else self.waits_for(body.items[index], access, event) for body, order, index in places)

    def _waits_for_tokens(self, item: SyncItem, access: MemoryAccess, pipe: Queue, loop_body: BlockItems) -> bool:
        """Whether an access in an item's blocks follows what a pipe does before an enclosing loop that holds tokens.

        Whoever waits for a token of that loop waits for the set before the loop, or for a later one.
        """
        places = list(self.occurrences(item, access))
        return bool(places) and all(self._waits_for_tokens_at(body, order, index, access, pipe, loop_body)
                                    for body, order, index in places)

    def _waits_for_tokens_at(self, body: BlockItems, order: BlockOrder, index: int, access: MemoryAccess, pipe: Queue,
                             loop_body: BlockItems) -> bool:
        item = body.items[index]
        starts: list[State] = [(event.wait_before, event.target, False) for event in order.events
                               if event.distance and event.token_loop is loop_body and event.tokens_before is None
                               and event.source == pipe]
        return (self._waits_for_tokens(item, access, pipe, loop_body)
                or any(position <= index and (other == access.pipe or self.is_entered_after(
                           item, access, other, queued=False, tokens_follow=position < index))
                       for other, position in order.later_work(starts, order.count - 1).work.items()))

    # Through a nested block

    def order_through(self, item: SyncItem, pipe: Queue, *, queued: bool, tokens_follow: bool, does_work: bool = False
                      ) -> ExitOrder:
        """Returns which pipes' operations after a loop or branch are ordered after an access before it, if the item runs.

        Args:
            item: the loop or branch.
            pipe: the pipe that is known to be ordered after the access, or to contain it.
            queued: whether the access is in the pipe's own queue before the item. Otherwise, all operations of the pipe in the
                item start after the access is done.
            tokens_follow: whether events that the pipe sets directly before the item are set after the access too.
            does_work: whether the loop surely accesses memory, so that its ``common_branch`` is taken.
        """
        body = item.blocks[0]
        order = self.order_of(body)
        if order is None:
            return ExitOrder()
        key = id(item), pipe, queued, tokens_follow, does_work
        if key not in self._through:
            self._through[key] = _order_through(body, order, pipe, queued=queued, tokens_follow=tokens_follow,
                                                does_work=does_work)
        return self._through[key]

    # From one run of a nested loop to the next

    def is_carried(self, item: SyncItem, first: MemoryAccess, second: MemoryAccess, outer_body: BlockItems) -> bool:
        """Whether events whose tokens an outer loop holds order an access in one run of an inner loop before one in the next
        run.

        Args:
            item: the inner loop.
            first: the access in the previous run.
            second: the access in the next run.
            outer_body: the body of the loop that runs the inner loop again. A loop further out may hold the tokens.
        """
        ends = [(one, two) for one in self.occurrences(item, first) for two in self.occurrences(item, second)]
        return bool(ends) and all(one[0] is two[0] and self._is_carried_in(*one, two[2], first, second, outer_body)
                                  for one, two in ends)

    def _is_carried_in(self, body: BlockItems, order: BlockOrder, i: int, j: int, first: MemoryAccess, second: MemoryAccess,
                       outer_body: BlockItems) -> bool:
        if i == j and body.items[i].blocks and self.is_carried(body.items[i], first, second, outer_body):
            return True
        return any(_is_held_around(event.token_loop, outer_body)
                   and (event.slots == 1 or _ids_follow_slots(body, event, first, second, outer_body))
                   and self._precedes_set(body, order, i, first, event) and self._follows_wait(body, order, j, second, event)
                   for event in order.carried_events)

    def _precedes_set(self, body: BlockItems, order: BlockOrder, index: int, access: MemoryAccess, event: EventPair) -> bool:
        """Whether an event is set after an access, in the access's iteration."""
        inner = self.exit_order(body.items[index], access)
        starts = exit_states(index, order.count, access.pipe, inner, body)
        return order.later_work(starts, order.count - 1).includes_set_of(event)

    def _follows_wait(self, body: BlockItems, order: BlockOrder, index: int, access: MemoryAccess, event: EventPair) -> bool:
        """Whether an access comes after the wait for an event, in its iteration."""
        item = body.items[index]
        later = order.later_work([(event.wait_before, event.target, False)], order.count - 1)
        return any(position <= index and (pipe == access.pipe or self.is_entered_after(
                       item, access, pipe, queued=False, tokens_follow=position < index))
                   for pipe, position in later.work.items())

    def occurrences(self, item: SyncItem, access: MemoryAccess) -> Iterator[tuple[BlockItems, BlockOrder, int]]:
        """Yields (block, order of the block, item index) for each solved block of an item in which an access occurs."""
        key = id(item), id(access)
        if key not in self._occurrences:  # the access is stored too: while it is alive, no other object has its id
            sought = access.key
            self._occurrences[key] = access, [(id(block), index) for block in item.blocks
                                              for index, inner in enumerate(block.items)
                                              if any(one.key == sought for one in inner.accesses)]
        for block, index in self._occurrences[key][1]:
            known = self._solved.get(block)
            if known is not None:
                yield *known, index


def _entry_states(order: BlockOrder, pipe: Queue, *, queued: bool, tokens_follow: bool) -> list[State]:
    """Returns the states at the start of a block, given what is known of a pipe before it."""
    return [(-1, pipe, True) if queued else (0, pipe, False), *order.states_after_start(pipe),
            *((event.wait_before, event.target, False) for event in order.events
              if tokens_follow and event.distance and event.token_loop is None and event.tokens_before is None
              and event.source == pipe)]


def _order_through(body: BlockItems, order: BlockOrder, pipe: Queue, *, queued: bool, tokens_follow: bool, does_work: bool
                   ) -> ExitOrder:
    taken = [iteration * order.count + index for index, iteration in body.surely_taken]
    if does_work and body.common_branch is not None and not taken:
        taken = [body.common_branch]  # of some iteration: the entry states come before any of them
    last = max((iteration for _, iteration in body.surely_taken), default=0) * order.count
    runs = [*taken, *(place for one in taken for place in order.taken_with(one))]
    entry = _entry_states(order, pipe, queued=queued, tokens_follow=tokens_follow)
    later = order.later_work(entry, last + order.count - 1, runs)
    at_exit = {event.target for event in order.events if event.distance and event.token_loop is None
               and (later.includes_set_of(event, last) or event.source == pipe)}
    known = frozenset() if queued else frozenset({pipe})  # its work follows anyway
    return ExitOrder(later.pipes - known, frozenset(at_exit))


def _is_held_around(token_loop: BlockItems | None, body: BlockItems) -> bool:
    """Whether tokens are held by the loop of a body, or by one around it."""
    return token_loop is body or (token_loop is not None and token_loop.first <= body.first and body.last <= token_loop.last)


def _ids_follow_slots(body: BlockItems, event: EventPair, first: MemoryAccess, second: MemoryAccess,
                      outer_body: BlockItems) -> bool:
    """Whether two accesses of two runs of a loop can only overlap in iterations that use the same id of an event.

    When a loop runs again, its iterations begin with slot 0 and with the first id, whatever the last run ended with: an
    iteration waits for the last one that used its id, and for no other. So the ids must go round with the slots of both
    accesses, or the accesses overlap only in equal iterations. For 2 slots and ids, iteration 0 of the next run waits for the
    last iteration of slot 0.
    """
    if event.slots != event.distance or not isinstance(body.enclosing_loop, scf.ForOp) or outer_body.loop is None:
        return False
    if overlap_only_in_same_iteration(first.region.view, second.region.view, body.enclosing_loop, outer_body.loop):
        return True
    owner = first.region.root.owner
    return (first.region.root is second.region.root and first.region.ring_index is None and second.region.ring_index is None
            and isinstance(owner, Operation) and owner.parent_block() is body.enclosing_loop.body.block
            and event.slots == first.region.slots == second.region.slots)
