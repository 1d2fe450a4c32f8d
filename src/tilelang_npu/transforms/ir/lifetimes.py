"""When each on-chip allocation holds a value that somebody still needs, in positions of the program.

A life goes from the first access to the last. An access inside a loop that the allocation stands outside of stands
for the whole loop, because the value may be carried around it. Copies for multi-buffering live as long as their loop,
because the iterations run into each other. That a life ends here says nothing about pipes: what still reads when the
bytes are written again is the synchronisation pass's to order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import annotation, hivm
from tilelang_npu.dialects.declaration import dtype_of
from tilelang_npu.dialects.effects import accesses
from tilelang_npu.dialects.names import spoken

MULTI_BUFFER = "hivm.multi_buffer"
COUPLED = "hivm.tightly_coupled_buffer"
_VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp,
          memref.ViewOp, hivm.BitcastOp, arith.SelectOp)


@dataclass(frozen=True)
class Life:
    """One allocation.

    Attributes:
        op: the allocation.
        space: its memory, as HIVM spells it.
        nbytes: size of one copy in bytes, not rounded.
        slots: number of copies.
        start, end: first and last position at which it is alive, both included.
        heirs: allocations whose life begins in the operation that this one's ends in, and that may take its bytes whole:
            an elementwise operation reads each element before it writes it.
        pipes: who touches it.
        coupled: its number, where it is a buffer of both cores: the other one may fill it at any time that the flags allow.
    """

    op: memref.AllocOp
    space: str
    nbytes: int
    slots: int
    start: int
    end: int
    heirs: frozenset[SSAValue] = frozenset()
    pipes: frozenset[str] = frozenset()
    coupled: int | None = None

    @property
    def label(self) -> str:
        return spoken(self.op.memref, "scratch")

    def overlaps(self, other: Life) -> bool:
        """Whether both are alive at some position."""
        return self.start <= other.end and other.start <= self.end


def together(lives: Sequence[Life], at: int) -> list[Life]:
    """The lives at a position that need bytes of their own there: those whose bytes another of their size takes over do not."""
    alive = [life for life in lives if life.start <= at <= life.end]
    taken: set[SSAValue] = set()
    for heir in alive:
        giver = next((life for life in alive if heir.op.memref in life.heirs and life.nbytes == heir.nbytes
                      and life.op.memref not in taken), None)
        if giver is not None:
            taken.add(giver.op.memref)
    return [life for life in alive if life.op.memref not in taken]


def slots_of(value: SSAValue) -> int:
    """The number of copies that ``annotation.mark`` asks for; 1 without it."""
    for use in value.uses:
        if isinstance(use.operation, annotation.MarkOp):
            mark = use.operation.attributes.get(MULTI_BUFFER)
            if isinstance(mark, IntegerAttr):
                return int(mark.value.data)
    return 1


def coupling_of(value: SSAValue) -> int | None:
    """The number of a buffer that both cores reach; None of one that is a core's own."""
    for use in value.uses:
        mark = use.operation.attributes.get(COUPLED) if isinstance(use.operation, annotation.MarkOp) else None
        if isinstance(mark, hivm.TightlyCoupledBufferAttr):
            return int(mark.data)
    return None


def root_of(value: SSAValue) -> SSAValue:
    """The allocation, address or argument that a chain of views starts from."""
    while isinstance(value.owner, _VIEWS):
        value = value.owner.operands[1 if isinstance(value.owner, arith.SelectOp) else 0]
    return value


def lifetimes(function: func.FuncOp) -> tuple[list[Life], list[Operation]]:
    """The lives of a function's allocations, and its operations in the order of positions."""
    order: list[Operation] = list(function.walk())
    position = {op: index for index, op in enumerate(order)}
    last_inside = _last_positions(order, position)
    spans: dict[SSAValue, tuple[int, int]] = {}
    pipes: dict[SSAValue, set[str]] = {}
    for op in order:
        for access in accesses(op):
            root = root_of(access.value)
            if not isinstance(root.owner, memref.AllocOp):
                continue
            first, last = _span(op, root.owner, position, last_inside)
            start, end = spans.get(root, (first, last))
            spans[root] = (min(start, first), max(end, last))
            pipes.setdefault(root, set()).add(access.pipe)
    lives = []
    for op in order:
        if isinstance(op, memref.AllocOp):
            space = hivm.space_of(op.memref.type)
            if space is None or space == "gm":
                continue
            here = position[op]
            start, end = spans.get(op.memref, (here, here))
            slots = slots_of(op.memref)
            if slots > 1:
                loop = op.parent_op()
                if isinstance(loop, (scf.ForOp, scf.WhileOp)):
                    start, end = position[loop], last_inside[loop]
            coupled = coupling_of(op.memref)
            if coupled is not None:
                start, end = 0, len(order) - 1
            lives.append(Life(op, space, _nbytes(op), slots, start, end, pipes=frozenset(pipes.get(op.memref, ())),
                              coupled=coupled))
    return _with_heirs(lives, order), order


def _with_heirs(lives: list[Life], order: list[Operation]) -> list[Life]:
    """The lives, each with those that may take its bytes."""
    heirs: dict[SSAValue, set[SSAValue]] = {}
    by_value: dict[SSAValue, Life] = {life.op.memref: life for life in lives if life.slots == 1}
    for position, op in enumerate(order):
        if not isinstance(op, hivm.ElementwiseOp) or not op.ENTRY.in_place:
            continue
        (target,) = op.outs() if len(op.outs()) == 1 else (None,)
        heir = None if target is None else by_value.get(root_of(target))
        if target is None or heir is None or heir.start != position:
            continue
        sources = [source for source in op.ins() if isinstance(source.type, MemRefType)]
        for giver in {by_value.get(root_of(source)) for source in sources} - {None, heir}:
            if giver is not None and giver.end == position and all(
                    _same_places(source, target) for source in sources if root_of(source) is giver.op.memref):
                heirs.setdefault(giver.op.memref, set()).add(heir.op.memref)
    return [replace(life, heirs=frozenset(heirs.get(life.op.memref, ()))) for life in lives]


def _same_places(a: SSAValue, b: SSAValue) -> bool:
    """Whether two views of two allocations show the same elements of them."""
    if isinstance(a.owner, memref.AllocOp) and isinstance(b.owner, memref.AllocOp):
        return a.type == b.type
    if not isinstance(a.owner, memref.SubviewOp) or not isinstance(b.owner, memref.SubviewOp):
        return False
    return a.type == b.type and list(a.owner.operands[1:]) == list(b.owner.operands[1:]) and all(
        a.owner.properties[name] == b.owner.properties[name]
        for name in ("static_offsets", "static_sizes", "static_strides")) and _same_places(a.owner.source, b.owner.source)


def _last_positions(order: list[Operation], position: dict[Operation, int]) -> dict[Operation, int]:
    last = dict(position)
    for op in reversed(order):
        parent = op.parent_op()
        if parent is not None and parent in last:
            last[parent] = max(last[parent], last[op])
    return last


def _span(op: Operation, allocation: memref.AllocOp, position: dict[Operation, int],
          last_inside: dict[Operation, int]) -> tuple[int, int]:
    """The positions for which an access stands: its own, or those of the outermost loop between it and the
    allocation.
    """
    home = allocation.parent_block()
    first = last = position[op]
    current: Operation | None = op
    while current is not None and current.parent_block() is not home:
        current = current.parent_op()
        if isinstance(current, (scf.ForOp, scf.WhileOp)):
            first, last = position[current], last_inside[current]
    return first, last


def _nbytes(op: memref.AllocOp) -> int:

    kind = op.memref.type
    total = dtype_of(kind.element_type).nbytes
    for size in kind.get_shape():
        total *= size
    return total
