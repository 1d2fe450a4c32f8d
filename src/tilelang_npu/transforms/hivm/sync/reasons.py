"""The remarks of what orders accesses: which two, and where."""

from __future__ import annotations

from collections.abc import Sequence

from tilelang_npu.dialects.ir.remarks import Remark, Touched, WaitReason, Waits
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.transforms.hivm.sync.cover import EventPair, Fence
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Touch
from tilelang_npu.transforms.hivm.sync.solve import Dependence
from tilelang_npu.transforms.ir.locations import location_of


def event_remark(maker: str, body: BlockItems, event: EventPair, *, behind: bool = False, place: int | None = None) -> Remark:
    """What the sets and waits of an event or flag of a block are for."""
    reasons = tuple(dict.fromkeys(_reason(reason, event.distance) for reason in (event.reason, *event.also)))
    return Remark(maker, facts=Waits(reasons, event.source, event.target,
                                     tuple(range(event.id, event.id + event.slots)),
                                     location_of(body.at(event.wait_before).op), behind, place))


def fence_remark(maker: str, body: BlockItems, fences: Sequence[Fence], *, behind: bool = False) -> Remark:
    """What a barrier is for, which stands for fences of a block in front of one item."""
    reasons = tuple(dict.fromkeys(_reason(fence.reason, 0) for fence in fences))
    pipe = fences[0].pipe
    return Remark(maker, facts=Waits(reasons, pipe, pipe, (), location_of(body.at(fences[0].before).op), behind))


def _reason(hazard: object, distance: int) -> WaitReason:
    assert isinstance(hazard, Dependence)
    size = min(touch.place.high - touch.place.low for touch in (hazard.first, hazard.second))
    return WaitReason(hazard.kind, _touched(hazard.first), _touched(hazard.second), int(size), distance)


def _touched(touch: Touch) -> Touched:
    return Touched(author_name(touch.place.root, "scratch"), location_of(touch.op), touch.writes)


__all__ = ["event_remark", "fence_remark"]
