"""Orders of two pipes of one core that flags between the cores count on, where an access is in a branch or a loop.

What is in a branch is as a rule waited for in it, and where that is not taken nothing waits. What the other core waits for may
come by way of such a wait. ``cross-sync`` writes what it counts on upon the two operations, of one block both, and
``insert-sync`` lets a wait for it stand around them::

    scf.if %a { store } {tile.counted_on = ["0"]}
    scf.if %b { load } {tile.counts_on = [["0", "AIV", "MTE3", "MTE2", 1]]}

The store pipe is done with the first in each iteration before the load pipe begins with the second in the next one.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from tilelang_npu.errors import InternalError
from tilelang_npu.transforms.hivm.sync.cover import Demand, EventPair
from tilelang_npu.transforms.hivm.sync.items import BlockItems, Item, Touch
from tilelang_npu.transforms.hivm.sync.solve import Dependence, kind_of

FIRST, SECOND = "tile.counted_on", "tile.counts_on"


def count_on(body: BlockItems, event: EventPair, number: int) -> None:
    """Write upon its two operations what is counted on.

    Args:
        body: the block.
        event: the order, of pipes such as ``AIV.MTE3``.
        number: another one for each in a function.
    """
    core, _, source = event.source.partition(".")
    name, target = StringAttr(str(number)), event.target.partition(".")[2]
    _append(body.items[event.set_after].op, FIRST, name)
    _append(body.items[event.wait_before].op, SECOND, ArrayAttr([
        name, StringAttr(core), StringAttr(source), StringAttr(target), IntegerAttr(event.distance, i64)]))


def counted_on(body: BlockItems, core: str) -> Iterator[Demand]:
    """What is counted on in a block of a core's function."""
    firsts = [(name, index) for index, item in enumerate(body.items) for name in _attributes(item.op, FIRST)]
    seconds = [(each, index) for index, item in enumerate(body.items) for each in _attributes(item.op, SECOND)]
    for each in dict.fromkeys(each for each, _ in seconds):
        assert isinstance(each, ArrayAttr)
        name, of, source, target, distance = each
        assert isinstance(of, StringAttr) and isinstance(source, StringAttr) and isinstance(target, StringAttr)
        assert isinstance(distance, IntegerAttr)
        if of.data != core:
            continue
        begins = [index for number, index in firsts if number == name and _does(body.items[index], source.data)]
        ends = [index for other, index in seconds if other == each and _does(body.items[index], target.data)]
        if not begins or not ends:
            msg = f"a flag counts on {target.data} waiting for {source.data}, of which one is not there"
            raise InternalError(msg)
        first, then, after = begins[-1], ends[0], distance.value.data
        yield Demand(source.data, target.data, first, after * len(body.items) + then, 1,
                     _reason(body.items[first], body.items[then], source.data, target.data, after))


def forget_counted_on(function: func.FuncOp) -> None:
    """Take what was written away."""
    for op in function.walk():
        op.attributes.pop(FIRST, None)
        op.attributes.pop(SECOND, None)


def _does(item: Item, pipe: str) -> bool:
    return any(touch.pipe == pipe for touch in item.touches)


def _reason(first: Item, second: Item, source: str, target: str, distance: int) -> Dependence:
    """Two accesses of the pipes, those that meet if there are any."""
    pairs = [(one, two) for one in first.touches if one.pipe == source for two in second.touches if two.pipe == target]
    one, two = next((pair for pair in pairs if _meet(*pair)), pairs[0])
    return Dependence(kind_of(one, two), one, two, distance, around=True)


def _meet(one: Touch, two: Touch) -> bool:
    return (one.writes or two.writes) and one.place.meets(two.place) is not None


def _attributes(op: Operation, name: str) -> list[Attribute]:
    found = op.attributes.get(name)
    return list(found) if isinstance(found, ArrayAttr) else []


def _append(op: Operation, name: str, attribute: Attribute) -> None:
    op.attributes[name] = ArrayAttr([*_attributes(op, name), attribute])


__all__ = ["count_on", "counted_on", "forget_counted_on"]
