"""A wait that a pass inserts, as a report tells it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from tilelang_npu.transforms.sync.cover import Event, Fence
from tilelang_npu.transforms.sync.items import BlockItems
from tilelang_npu.transforms.sync.solve import Hazard


@dataclass(frozen=True)
class Decision:
    """One event, flag or barrier, and the two accesses that made it necessary.

    Attributes:
        source, target: the pipes; the same for a barrier. Between the cores ``AIC.FIX`` and the like.
        numbers: the event's or flag's numbers, which iterations take in turn; none for a barrier.
        set_behind: the operation that the set stands behind; None for a barrier.
        before: the operation that the wait or barrier stands in front of.
        loop: the loop behind which the last iteration's tokens are taken back; None where there are none.
        hazard: the accesses.
        distance: iterations between them.
    """

    source: str
    target: str
    numbers: tuple[int, ...]
    set_behind: Operation | None
    before: Operation
    loop: Operation | None
    hazard: Hazard
    distance: int


def event_decision(body: BlockItems, event: Event) -> Decision:
    """What an event of a block is for."""
    assert isinstance(event.reason, Hazard)
    return Decision(event.source, event.target, tuple(range(event.id, event.id + event.slots)), body.items[event.set_after].op,
                    body.items[event.wait_before].op, body.loop if event.distance else None, event.reason, event.distance)


def fence_decision(body: BlockItems, fence: Fence) -> Decision:
    """What a barrier of a block is for."""
    assert isinstance(fence.reason, Hazard)
    return Decision(fence.pipe, fence.pipe, (), None, body.items[fence.before].op, None, fence.reason, 0)
