"""A function as a tree of items: what synchronisation is inserted between.

An item is an operation of a block that touches memory, itself or through the operations in its regions. Waits and
sets go between items of one block, so that they balance on every path. A macro that takes events from outside is an item for
each of its steps: between these stand the events that it can set or wait for there, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.hivm.sync.bytes import OperandBytes, place_of
from tilelang_npu.transforms.hivm.sync.turns import common, iterations, stages, surely_taken
from tilelang_npu.transforms.ir.buffers import body_of

Pipes = tuple[str, str]
"""From which pipe to which."""
_MUCH = 1 << 20
"""More bytes than an access of open size is taken to touch."""


@dataclass(frozen=True)
class Touch:
    """One access: the pipe, the bytes, whether it writes, and the operation that does it."""

    pipe: str
    place: OperandBytes
    writes: bool
    op: Operation

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for accesses that need the same."""
        return self.pipe, self.place, self.writes


@dataclass
class Item:
    """One operation between which synchronisation can stand.

    Attributes:
        op: the operation.
        touches: its accesses, those of nested operations included.
        inner: the pipes that the operation itself runs through in order (a macro such as mmadL1: MTE1, then M).
        fence: the pipe that it is a barrier of (``ALL`` for all), if it is one.
        blocks: nested blocks.
        goes_on: it is a later step of the operation of the item before.
        waits, sets: the events that the operation itself can wait for in front of the item, and set behind it, by their pipes.
        first, last: position of the operation, and of the last one inside it, in the function.
    """

    op: Operation
    touches: list[Touch] = field(default_factory=list)
    inner: tuple[str, ...] = ()
    fence: str | None = None
    blocks: list[BlockItems] = field(default_factory=list)
    goes_on: bool = False
    waits: dict[Pipes, hivm.SharedEvent] = field(default_factory=dict)
    sets: dict[Pipes, hivm.SharedEvent] = field(default_factory=dict)
    first: int = 0
    last: int = 0


@dataclass
class BlockItems:
    """The items of one block; ``loop`` is the loop whose body it is (of a ``while`` without its condition, which touches
    nothing), ``turns`` the innermost loop that it is in, ``first`` and ``last`` the positions that it spans.
    """

    block: Block
    items: list[Item]
    loop: scf.ForOp | scf.WhileOp | None = None
    turns: scf.ForOp | scf.WhileOp | None = None
    first: int = 0
    last: int = 0

    @cached_property
    def counts(self) -> Counter[Operation]:
        """How many items each operation of the block is."""
        return Counter(item.op for item in self.items)

    @cached_property
    def windows(self) -> Sequence[Interval]:
        """The iterations of the loop in which each item can do something."""
        return iterations(self.items, self.loop if isinstance(self.loop, scf.ForOp) else None)

    @cached_property
    def sure(self) -> Sequence[tuple[int, int]]:
        """The branches that are taken whenever the loop runs, each with the first iteration that takes it."""
        return list(surely_taken(self.items, self.loop, self.windows)) if isinstance(self.loop, scf.ForOp) else []

    @cached_property
    def stages(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """By place of a branch which others are taken so many iterations behind each one that takes it."""
        return stages(self.items, self.loop) if isinstance(self.loop, scf.ForOp) else {}

    @cached_property
    def common(self) -> int | None:
        """The place of a branch that the loop takes if it does anything at all."""
        return common(self.items, self.loop, self.stages) if isinstance(self.loop, scf.ForOp) else None

    def at(self, index: int) -> Item:
        """The item at a place; the first and the last where it is in front of and behind them."""
        return self.items[max(0, min(index, len(self.items) - 1))]

    def wait_at(self, index: int, pipes: Pipes) -> int:
        """The item in front of which a wait, or a barrier, can stand that is to stand in front of one: it, or one before."""
        while index < len(self.items) and self.items[index].goes_on and pipes not in self.items[index].waits:
            index -= 1
        return index

    def work(self, pipe: str, start: int, end: int) -> float:
        """Bytes that a pipe touches in some of the items."""
        return sum(min(touch.place.high - touch.place.low, _MUCH)
                   for item in self.items[start:end] for touch in item.touches if touch.pipe == pipe)

    def set_at(self, index: int, pipes: Pipes) -> int:
        """The item behind which a set can stand that is to stand behind one: it, or one that follows."""
        while index + 1 < len(self.items) and self.items[index + 1].goes_on and pipes not in self.items[index].sets:
            index += 1
        return index


def build(block: Block, counter: list[int] | None = None, loop: scf.ForOp | scf.WhileOp | None = None,
          core: Callable[[Operation], str] | None = None, turns: scf.ForOp | scf.WhileOp | None = None) -> BlockItems:
    """The item tree below a block; with ``core`` the pipes are those of both cores, as ``AIC.MTE2``."""
    count = counter if counter is not None else [0]
    places: dict[SSAValue, OperandBytes] = {}
    items: list[Item] = []
    for op in block.ops:
        if isinstance(op, hivm.MmadL1Op) and core is None:
            items += _steps(op, count)
            continue
        item = Item(op, first=count[0])
        count[0] += 1
        for region in op.regions:
            for inner in region.blocks:
                around = op if isinstance(op, (scf.ForOp, scf.WhileOp)) and inner is body_of(op) else None
                nested = build(inner, count, around, core, around or turns)
                item.blocks.append(nested)
                for child in nested.items:
                    item.touches.extend(child.touches)
        if isinstance(op, hivm.PipeBarrierOp):
            item.fence = op.pipes()[0]
        else:
            prefix = f"{core(op)}." if core is not None else ""
            found = []
            for each in accesses(op):
                if (value := each.value) not in places:
                    places[value] = place_of(value)
                found.append(Touch(prefix + each.pipe, places[value], each.writes, op))
            item.touches.extend(found)
            pipes = tuple(dict.fromkeys(touch.pipe for touch in found))
            item.inner = pipes if len(pipes) > 1 else ()
        item.last = count[0] - 1
        for nested in item.blocks:
            nested.first, nested.last = item.first, item.last
        if item.touches or item.fence or item.blocks:
            item.touches = _distinct(item.touches)
            items.append(item)
    return BlockItems(block, items, loop, turns)


def _steps(op: hivm.MmadL1Op, count: list[int]) -> list[Item]:
    """A macro as an item for each of its steps; what a pipe does in one comes behind what the pipe of the step before did."""
    taken = {event.place for event, _ in op.shared_events()}
    found = {one.role: Touch(one.pipe, place_of(one.value), one.writes, op) for one in accesses(op)}
    steps: list[Item] = []
    for step in op.STEPS:
        if step.role not in found:
            continue
        touch = found[step.role]
        item = Item(op, [touch], goes_on=bool(steps), first=count[0], last=count[0])
        count[0] += 1
        item.waits, item.sets = ({(event.source, event.target): event} if event is not None and event.place not in taken else {}
                                 for event in (step.waits, step.sets))
        if steps and (before := steps[-1].touches[0].pipe) != touch.pipe:
            steps[-1].inner = before, touch.pipe
        steps.append(item)
    return steps


def _distinct(touches: list[Touch]) -> list[Touch]:
    seen: dict[tuple[object, ...], Touch] = {}
    for touch in touches:
        seen.setdefault(touch.key, touch)
    return list(seen.values())
