"""A function as a tree of items: what synchronisation is inserted between.

An item is an operation of a block that touches memory, itself or through the operations in its regions. Waits and
sets go between items of one block, so that they balance on every path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Block, Operation

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.effects import accesses
from tilelang_npu.transforms.hivm.sync.bytes import OperandBytes, place_of
from tilelang_npu.transforms.ir.buffers import body_of


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
        first, last: position of the operation, and of the last one inside it, in the function.
    """

    op: Operation
    touches: list[Touch] = field(default_factory=list)
    inner: tuple[str, ...] = ()
    fence: str | None = None
    blocks: list[BlockItems] = field(default_factory=list)
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


def build(block: Block, counter: list[int] | None = None, loop: scf.ForOp | scf.WhileOp | None = None,
          core: Callable[[Operation], str] | None = None, turns: scf.ForOp | scf.WhileOp | None = None) -> BlockItems:
    """The item tree below a block; with ``core`` the pipes are those of both cores, as ``AIC.MTE2``."""
    count = counter if counter is not None else [0]
    items: list[Item] = []
    for op in block.ops:
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
            found = [Touch(prefix + a.pipe, place_of(a.value), a.writes, op) for a in accesses(op)]
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


def _distinct(touches: list[Touch]) -> list[Touch]:
    seen: dict[tuple[object, ...], Touch] = {}
    for touch in touches:
        seen.setdefault(touch.key, touch)
    return list(seen.values())
