"""Creates the remarks of inserted events and barriers, which state the ordered accesses and their lines in the kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tilelang_npu.analysis.locations import location_of
from tilelang_npu.dialects.ir.remarks import Remark, Touched, WaitReason, Waits
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.transforms.hivm.sync.items import BlockItems, MemoryAccess
from tilelang_npu.transforms.hivm.sync.ordering import EventPair, PipeBarrier
from tilelang_npu.transforms.hivm.sync.solve import Dependence


def event_remark(maker: str, body: BlockItems, event: EventPair, *, after_loop: bool = False, place: int | None = None
                 ) -> Remark:
    """Returns the remark of an operation that sets, or waits for, an event or a flag.

    Args:
        maker: the name of the pass that inserted the operation.
        body: the block of the event.
        event: the event.
        after_loop: whether the operation is the wait after a loop for a loop-carried event.
        place: if a macro operation sets or waits for the event itself, the index of the macro's operand with the event id.
    """
    reasons = tuple(dict.fromkeys(_reason(reason, event.distance) for reason in (event.reason, *event.merged_reasons)))
    return Remark(maker, facts=Waits(reasons, event.source, event.target,
                                     tuple(range(event.id, event.id + event.slots)),
                                     location_of(body.nearest_item(event.wait_before).op), after_loop, place))


def barrier_remark(maker: str, body: BlockItems, barriers: Sequence[PipeBarrier], *, after_loop: bool = False) -> Remark:
    """Returns the remark of the one barrier operation that is inserted for all ``barriers`` of a pipe before one item.

    Args:
        maker: the name of the pass that inserted the operation.
        body: the block of the barriers.
        barriers: the barriers, which must have the same pipe and the same item.
        after_loop: whether the operation is inserted after the loop, and not before the item.
    """
    reasons = tuple(dict.fromkeys(_reason(barrier.reason, 0) for barrier in barriers))
    pipe = barriers[0].pipe
    before = location_of(body.nearest_item(barriers[0].before).op)
    return Remark(maker, facts=Waits(reasons, pipe, pipe, (), before, after_loop))


def _reason(dependence: object, distance: int) -> WaitReason:
    assert isinstance(dependence, Dependence)
    nbytes = min(access.region.high - access.region.low for access in (dependence.first, dependence.second))
    return WaitReason(dependence.kind, _touched(dependence.first), _touched(dependence.second), int(nbytes), distance)


def _touched(access: MemoryAccess) -> Touched:
    return Touched(author_name(access.region.root, "scratch"), location_of(access.op), access.writes)


__all__ = ["barrier_remark", "event_remark"]
