"""Marks for orders of two pipes inside a core that flags between the cores rely on although an access is in a branch or a loop.

The wait for an access in a branch is usually inserted inside the branch, so that nothing waits if the branch is not taken. A
flag between the cores may rely on such a wait: it then needs the wait even if the branch is not taken. ``cross-sync`` marks the
two operations of each order that a flag relies on, and ``insert-sync`` inserts a wait for the order outside of the branch::

    scf.if %a { store } {tile.counted_on = ["0"]}
    scf.if %b { load } {tile.counts_on = [["0", "AIV", "MTE3", "MTE2", 1]]}

Here, pipe MTE3 of core AIV must be done with the first operation in each iteration before pipe MTE2 begins the second operation
in the next iteration (iteration distance 1).
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from tilelang_npu.errors import InternalError
from tilelang_npu.target.chip_data import FunctionCore
from tilelang_npu.transforms.hivm.sync.items import PIPE_BY_NAME, BlockItems, Queue, SyncItem, core_and_pipe
from tilelang_npu.transforms.hivm.sync.ordering import Constraint, EventPair
from tilelang_npu.transforms.hivm.sync.solve import Dependence, dependence_kind

FIRST, SECOND = "tile.counted_on", "tile.counts_on"
"""The attributes of the first operation (a list of numbers) and of the second operation (a list of entries of number, core,
source pipe, target pipe and iteration distance)."""


def mark_relied_on(body: BlockItems, event: EventPair, number: int) -> None:
    """Marks the two operations of an order that a flag relies on.

    Args:
        body: the block that contains the two operations.
        event: the order, whose pipes are named with their core (``AIV.MTE3``).
        number: the number of the order, which must be unique in the function.
    """
    (core, source), (_, target) = core_and_pipe(event.source), core_and_pipe(event.target)
    name = StringAttr(str(number))
    _append(body.items[event.set_after].op, FIRST, name)
    _append(body.items[event.wait_before].op, SECOND, ArrayAttr([
        name, StringAttr(core), StringAttr(source), StringAttr(target), IntegerAttr(event.distance, i64)]))


def constraints_relied_on(body: BlockItems, core: FunctionCore | None) -> Iterator[Constraint]:
    """Yields a constraint for each marked pair of operations in a block of the function of ``core``.

    Raises:
        InternalError: a marked operation no longer has an access of the marked pipe.
    """
    firsts = [(name, index) for index, item in enumerate(body.items) for name in _marks(item.op, FIRST)]
    seconds = [(each, index) for index, item in enumerate(body.items) for each in _marks(item.op, SECOND)]
    for each in dict.fromkeys(each for each, _ in seconds):
        assert isinstance(each, ArrayAttr)
        name, of, source, target, distance = each
        assert isinstance(of, StringAttr) and isinstance(source, StringAttr) and isinstance(target, StringAttr)
        assert isinstance(distance, IntegerAttr)
        if of.data != core:
            continue
        setter, waiter = PIPE_BY_NAME[source.data], PIPE_BY_NAME[target.data]
        begins = [index for number, index in firsts if number == name and body.has_work(setter, index, index + 1)]
        ends = [index for other, index in seconds if other == each and body.has_work(waiter, index, index + 1)]
        if not begins or not ends:
            msg = f"a flag relies on {target.data} waiting for {source.data}, but one of the two pipes accesses no memory here"
            raise InternalError(msg)
        first, then, after = begins[-1], ends[0], distance.value.data
        yield Constraint(setter, waiter, first, after * len(body.items) + then, 1,
                         _dependence(body.items[first], body.items[then], setter, waiter, after))


def remove_marks(function: func.FuncOp) -> None:
    """Removes the marks of all operations of a function."""
    for op in function.walk():
        op.attributes.pop(FIRST, None)
        op.attributes.pop(SECOND, None)


def _dependence(first: SyncItem, second: SyncItem, source: Queue, target: Queue, distance: int) -> Dependence:
    """Returns a dependence between accesses of two pipes: of two that overlap, if there are any."""
    pairs = [(one, two) for one in first.accesses if one.pipe == source for two in second.accesses if two.pipe == target]
    one, two = next((pair for pair in pairs if (pair[0].writes or pair[1].writes)
                     and pair[0].region.overlap_period(pair[1].region) is not None), pairs[0])
    return Dependence(dependence_kind(one, two), one, two, distance, unconditional=True)


def _marks(op: Operation, name: str) -> list[Attribute]:
    found = op.attributes.get(name)
    return list(found) if isinstance(found, ArrayAttr) else []


def _append(op: Operation, name: str, attribute: Attribute) -> None:
    op.attributes[name] = ArrayAttr([*_marks(op, name), attribute])


__all__ = ["constraints_relied_on", "mark_relied_on", "remove_marks"]
