"""Set an event in the branch whose work it waits for, right behind that, and not behind the branch, where more has been done.

The other arm sets it at once: whichever is taken, the event has one set for its wait. What was ordered stays ordered: that is
asked again for everything in the block.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import scf

from tilelang_npu.transforms.hivm.sync.branches import holding
from tilelang_npu.transforms.hivm.sync.cover import Early, EventPair
from tilelang_npu.transforms.hivm.sync.inside import Inside
from tilelang_npu.transforms.hivm.sync.items import BlockItems


def set_early(body: BlockItems, inside: Inside) -> None:
    """Move sets of a solved block, of events within an iteration, into the branches that they stand behind.

    Args:
        body: the block.
        inside: the blocks that are solved: those in it, and itself.
    """
    order = inside.order(body)
    for event in order.events if order is not None else ():
        if event.distance or event.early is not None or not 0 <= event.set_after < event.wait_before < len(body.items):
            continue
        assert order is not None
        for early in _places(body, event, inside):
            moved = replace(event, early=early)
            order.remove(event)
            order.add(moved)
            inside.forget()
            if all(order.covers(demand) for demand in order.asked):
                break
            order.remove(moved)
            order.add(event)
            inside.forget()


def _places(body: BlockItems, event: EventPair, inside: Inside) -> list[Early]:
    """Where in a branch an event can be set with work of its pipe left to do, the first place first."""
    item, pipes = body.items[event.set_after], (event.source, event.target)
    arms = [arm for arm in item.blocks if holding(arm, event.source)]
    order = inside.order(arms[0]) if isinstance(item.op, scf.IfOp) and len(arms) == 1 else None
    if order is None:
        return []
    arm, places = arms[0], holding(arms[0], event.source)
    return [Early(arm, order, place, body) for place in dict.fromkeys(arm.set_at(place, pipes) for place in places[:-1])
            if place < places[-1]]


__all__ = ["set_early"]
