"""The tree of *items* of a function: the operations between which sets, waits and barriers can be inserted.

An item is an operation of a block that accesses memory, itself or through operations in its regions. The set and the wait of an
event are inserted between items of the same block, so that each path executes as many sets as waits. A macro operation that can
set and wait for events itself (``mmadL1``) becomes one item for each of its steps. Between two steps, only the events that the
macro itself can set or wait for are possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NewType, get_args

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.analysis.accessed_bytes import AccessedBytes, accessed_bytes_of
from tilelang_npu.analysis.buffers import body_of
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.linear import Interval
from tilelang_npu.target.chip_data import OpCore, PipeName
from tilelang_npu.transforms.hivm.sync.taken_branches import (
    active_iterations,
    common_branch,
    implied_branches,
    surely_taken_branches,
)

CorePipe = NewType("CorePipe", str)
"""The name of a pipe with its core, such as ``AIC.MTE2``."""
Queue = PipeName | CorePipe
"""A pipe: of the core that a function is for, or, in a function for both cores, with its core."""
Pipes = tuple[Queue, Queue]
"""The pipe that sets an event, and the pipe that waits for it."""
_PARTS: dict[CorePipe, tuple[OpCore, PipeName]] = {
    CorePipe(f"{core}.{pipe}"): (core, pipe) for core in get_args(OpCore) for pipe in get_args(PipeName)}
PIPE_BY_NAME: dict[str, PipeName] = {pipe: pipe for pipe in get_args(PipeName)}
"""The names of pipes as such, by which text becomes one."""
_CORE_PIPES = {parts: name for name, parts in _PARTS.items()}
_MOST_BYTES = 1 << 20
"""The number of bytes that is assumed for an access of unknown size."""


@dataclass(frozen=True)
class MemoryAccess:
    """An access to memory: the pipe that executes it, the bytes that it accesses, whether it writes, and its operation."""

    pipe: Queue
    region: AccessedBytes
    writes: bool
    op: Operation

    @property
    def key(self) -> tuple[object, ...]:
        """The pipe, the bytes and whether the access writes: accesses with equal keys need the same waits."""
        return self.pipe, self.region, self.writes


@dataclass
class SyncItem:
    """An operation before and after which waits can be inserted, or one step of a macro operation.

    Attributes:
        op: the operation.
        accesses: the accesses of the operation and of all operations nested in it.
        pipe_chain: the pipes that the operation itself uses one after another (``mmadL1``: MTE1, then M).
        barrier_pipe: if the operation is a barrier, the pipe that it stops (``ALL`` for all pipes); otherwise None.
        blocks: the items of the blocks in the operation's regions.
        continues_op: whether the item is a second or later step of the previous item's operation.
        own_waits: the events that the operation itself can wait for before the item, by (setting pipe, waiting pipe).
        own_sets: the events that the operation itself can set after the item, by (setting pipe, waiting pipe).
        first: the position of the operation in the function.
        last: the position of the last operation nested in the operation, or ``first`` if there is none.
    """

    op: Operation
    accesses: list[MemoryAccess] = field(default_factory=list)
    pipe_chain: tuple[Queue, ...] = ()
    barrier_pipe: PipeName | None = None
    blocks: list[BlockItems] = field(default_factory=list)
    continues_op: bool = False
    own_waits: dict[Pipes, hivm.SharedEvent] = field(default_factory=dict)
    own_sets: dict[Pipes, hivm.SharedEvent] = field(default_factory=dict)
    first: int = 0
    last: int = 0


@dataclass
class BlockItems:
    """The items of one block.

    Attributes:
        block: the block.
        items: the items in program order.
        loop: the loop whose body the block is; None for other blocks and for the condition of a ``while``.
        enclosing_loop: the innermost loop around the block.
        first: the position in the function of the operation whose region contains the block; 0 for a function's own block.
        last: the position in the function of the last operation nested in that operation; 0 for a function's own block.
    """

    block: Block
    items: list[SyncItem]
    loop: scf.ForOp | scf.WhileOp | None = None
    enclosing_loop: scf.ForOp | scf.WhileOp | None = None
    first: int = 0
    last: int = 0

    @cached_property
    def items_per_op(self) -> Counter[Operation]:
        """The number of items of each operation of the block."""
        return Counter(item.op for item in self.items)

    @cached_property
    def active_iterations(self) -> Sequence[Interval]:
        """For each item, the interval of iterations of ``loop`` in which the item can access memory."""
        return active_iterations(self.items, self.loop if isinstance(self.loop, scf.ForOp) else None)

    @cached_property
    def surely_taken(self) -> Sequence[tuple[int, int]]:
        """For each branch that is taken at least once whenever ``loop`` runs: the item's index and the first such iteration."""
        return (list(surely_taken_branches(self.items, self.loop, self.active_iterations))
                if isinstance(self.loop, scf.ForOp) else [])

    @cached_property
    def implied_branches(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """For each branch (by item index) on the induction variable, the pairs ``(other, d)``: the branch ``other`` is taken
        ``d`` iterations after each iteration that takes the first branch."""
        return implied_branches(self.items, self.loop) if isinstance(self.loop, scf.ForOp) else {}

    @cached_property
    def common_branch(self) -> int | None:
        """The index of a branch that ``loop`` surely takes in or before each iteration in which an item accesses memory, or
        None.
        """
        return common_branch(self.items, self.loop, self.implied_branches) if isinstance(self.loop, scf.ForOp) else None

    def nearest_item(self, index: int) -> SyncItem:
        """Returns the item at ``index``, or the first or last item if the index is out of range."""
        return self.items[max(0, min(index, len(self.items) - 1))]

    def wait_index(self, index: int, pipes: Pipes) -> int:
        """Returns the index of the last item at or before ``index`` before which a wait or a barrier can be inserted.

        Between two steps of a macro operation, a wait is possible only if the macro itself can wait for an event of ``pipes``.
        """
        while index < len(self.items) and self.items[index].continues_op and pipes not in self.items[index].own_waits:
            index -= 1
        return index

    def set_index(self, index: int, pipes: Pipes) -> int:
        """Returns the index of the first item at or after ``index`` after which an event of ``pipes`` can be set."""
        while index + 1 < len(self.items) and self.items[index + 1].continues_op and pipes not in self.items[index].own_sets:
            index += 1
        return index

    def accessed_nbytes(self, pipe: Queue, start: int, end: int) -> float:
        """Returns the number of bytes that a pipe accesses in the items ``[start, end)``."""
        return sum(min(access.region.high - access.region.low, _MOST_BYTES)
                   for item in self.items[start:end] for access in item.accesses if access.pipe == pipe)

    def has_work(self, pipe: Queue, start: int, end: int) -> bool:
        """Whether a pipe accesses memory in the items ``[start, end)``."""
        return any(access.pipe == pipe for item in self.items[start:end] for access in item.accesses)


def on_core(core: OpCore, pipe: PipeName) -> CorePipe:
    """Returns the name of a pipe with its core."""
    return _CORE_PIPES[core, pipe]


def core_and_pipe(queue: Queue) -> tuple[OpCore, PipeName]:
    """Returns the core and the pipe of a pipe that is named with its core."""
    return _PARTS[CorePipe(queue)]


def own_pipe(queue: Queue) -> PipeName:
    """Returns a pipe of the core that a function is for.

    Raises:
        KeyError: the pipe is named with its core.
    """
    return PIPE_BY_NAME[queue]


def build_items(block: Block, counter: list[int] | None = None, loop: scf.ForOp | scf.WhileOp | None = None,
                core: Callable[[Operation], OpCore] | None = None,
                enclosing_loop: scf.ForOp | scf.WhileOp | None = None) -> BlockItems:
    """Returns the items of a block and of the blocks nested in it.

    Args:
        block: the block.
        counter: a list whose only element is the position of the next operation in the function; it is advanced in place. None
            starts at 0.
        loop: the loop whose body the block is; None for other blocks.
        core: a function that returns the core of an operation. If it is given, pipes are named with their core (``AIC.MTE2``),
            and a macro operation is a single item.
        enclosing_loop: the innermost loop around the block.
    """
    count = counter if counter is not None else [0]
    regions: dict[SSAValue, AccessedBytes] = {}
    items: list[SyncItem] = []
    for op in block.ops:
        if isinstance(op, hivm.MmadL1Op) and core is None:
            items += _macro_items(op, count)
            continue
        item = SyncItem(op, first=count[0])
        count[0] += 1
        for region in op.regions:
            for inner in region.blocks:
                around = op if isinstance(op, (scf.ForOp, scf.WhileOp)) and inner is body_of(op) else None
                nested = build_items(inner, count, around, core, around or enclosing_loop)
                item.blocks.append(nested)
                for child in nested.items:
                    item.accesses.extend(child.accesses)
        if isinstance(op, hivm.PipeBarrierOp):
            item.barrier_pipe = op.pipes()[0]
        else:
            own = core(op) if core is not None else None
            found = []
            for each in accesses(op):
                if (value := each.value) not in regions:
                    regions[value] = accessed_bytes_of(value)
                found.append(MemoryAccess(each.access_pipe if own is None else on_core(own, each.access_pipe), regions[value],
                                          each.writes, op))
            item.accesses.extend(found)
            pipes = tuple(dict.fromkeys(access.pipe for access in found))
            item.pipe_chain = pipes if len(pipes) > 1 else ()
        item.last = count[0] - 1
        for nested in item.blocks:
            nested.first, nested.last = item.first, item.last
        if item.accesses or item.barrier_pipe or item.blocks:
            distinct: dict[tuple[object, ...], MemoryAccess] = {}
            for access in item.accesses:
                distinct.setdefault(access.key, access)
            item.accesses = list(distinct.values())
            items.append(item)
    return BlockItems(block, items, loop, enclosing_loop)


def _macro_items(op: hivm.MmadL1Op, count: list[int]) -> list[SyncItem]:
    """Returns an item for each step of a macro; a step's pipe starts after the previous step's pipe is done."""
    taken = {event.place for event, _ in op.shared_events()}
    found = {one.role: MemoryAccess(one.access_pipe, accessed_bytes_of(one.value), one.writes, op) for one in accesses(op)}
    items: list[SyncItem] = []
    for step in op.STEPS:
        if step.role not in found:
            continue
        access = found[step.role]
        item = SyncItem(op, [access], continues_op=bool(items), first=count[0], last=count[0])
        count[0] += 1
        for event, own in ((step.waits, item.own_waits), (step.sets, item.own_sets)):
            if event is not None and event.place not in taken:
                own[event.source, event.target] = event
        if items and (previous := items[-1].accesses[0].pipe) != access.pipe:
            items[-1].pipe_chain = previous, access.pipe
        items.append(item)
    return items
