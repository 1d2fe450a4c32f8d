"""Flags that the kernel's author wrote: their numbers are taken, and what they order need not be ordered again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.hivm.sync.cover import EventPair
from tilelang_npu.transforms.hivm.sync.event_ids import Name
from tilelang_npu.transforms.hivm.sync.items import BlockItems
from tilelang_npu.transforms.ir.ranges import Ranges

Flag = hivm.SetFlagOp | hivm.WaitFlagOp | hivm.MmadL1Op | hivm.BatchMmadL1Op


def flags_by_name(function: func.FuncOp) -> dict[Name, list[Flag]]:
    """What sets flags in a function or waits for them, in its order, by each name that they may have: a computed number may be
    several."""
    found: dict[Name, list[Flag]] = defaultdict(list)
    ranges = Ranges()
    for op in function.walk():
        if isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp)):
            number = op.event_id()
            if isinstance(number, SSAValue):
                known = ranges.of(number).meet(Interval(0, hivm.EVENT_IDS - 1))
            else:
                known = Interval.at(int(number))
            source, target = op.pipes()
            for each in known.numbers:
                found[(source, target), each].append(op)
        elif isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
            for event, value in op.shared_events():
                for each in ranges.of(value).meet(Interval(0, hivm.EVENT_IDS - 1)).numbers:
                    found[(event.source, event.target), each].append(op)
    return found


def own_events(body: BlockItems, flags: Mapping[Name, list[Flag]]) -> list[EventPair]:
    """What pairs of the author order in a block: a name whose every use is in it, set and wait in turn."""
    events: list[EventPair] = []
    before = _items_before(body)
    for ((source, target), number), uses in flags.items():
        sets, waits = uses[::2], uses[1::2]
        if len(sets) == len(waits) and all(
                isinstance(one, hivm.SetFlagOp) and isinstance(two, hivm.WaitFlagOp) and one in before and two in before
                and not isinstance(one.event_id(), SSAValue) and not isinstance(two.event_id(), SSAValue)
                for one, two in zip(sets, waits, strict=True)):
            events += [EventPair(source, target, before[one] - 1, before[two], 0, 1, None, number)
                       for one, two in zip(sets, waits, strict=True) if before[one] and before[two] < len(body.items)]
    return events


def _items_before(body: BlockItems) -> dict[Operation, int]:
    """How many items stand in front of each flag of the block itself."""
    count = 0
    found: dict[Operation, int] = {}
    for op in body.block.ops:
        if isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp)):
            found[op] = count
        count += body.counts[op]
    return found
