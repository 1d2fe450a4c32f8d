"""When each on-chip allocation holds a value that somebody still needs, in positions of the program.

A life goes from the first access to the last. An access inside a loop that the allocation stands outside of stands
for the whole loop, because the value may be carried around it. Copies for multi-buffering live as long as their loop,
because the iterations run into each other. That a life ends here says nothing about pipes: what still reads when the
bytes are written again is the synchronisation pass's to order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, NoneAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilelang_npu.dialects import annotation, hivm
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.ir.destination_style import flatten
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.ops import dtype

MULTI_BUFFER = "hivm.multi_buffer"
COUPLED = "hivm.tightly_coupled_buffer"
_VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp,
          memref.ViewOp, hivm.BitcastOp, arith.SelectOp)
_ALL_OF_IT = (memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp, hivm.BitcastOp)
"""Views that show every byte of what they are views of, in its order."""
Loop = scf.ForOp | scf.WhileOp


@dataclass(frozen=True, eq=False)
class Life:
    """One allocation. Two lives are the same one if they are one object.

    Attributes:
        op: the allocation.
        space: its memory, as HIVM spells it.
        nbytes: size of one copy in bytes, not rounded.
        slots: number of copies.
        start, end: first and last position at which it is alive, both included.
        heirs: allocations whose life begins in the operation that this one's ends in, and that may take its bytes, or the
            first of them: an elementwise operation reads each element before it writes it.
        pipes: who touches it.
        coupled: its number, where it is a buffer of both cores: the other one may fill it at any time that the flags allow.
        remote: whether the core whose memory it is never accesses it, and the other one does, at any time.
        used: first and last position of its accesses; with several slots, of those of one iteration.
        takers: allocations first written, element by element, by the operation that reads this one's elements for the last
            time, and no larger: they may be the same bytes, in as many slots.
        members: the allocations of which this is the life; several where these are the same bytes.
        value: the allocation's result, which is looked up once: a planner compares thousands of lives.
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
    used: tuple[int, int] = (0, 0)
    takers: frozenset[SSAValue] = frozenset()
    members: tuple[SSAValue, ...] = ()
    remote: bool = False
    value: SSAValue = field(init=False, repr=False)

    def __post_init__(self) -> None:
        vars(self)["value"] = self.op.memref

    @property
    def label(self) -> str:
        return author_name(self.op.memref, "scratch")

    def as_remote(self, end: int) -> Life:
        """The same among those of the other core's function, whose positions end at ``end``."""
        return replace(self, start=0, end=end, used=(0, end), heirs=frozenset(), takers=frozenset(), remote=True)

    def overlaps(self, other: Life) -> bool:
        """Whether both are alive at some position."""
        return self.start <= other.end and other.start <= self.end


def together(lives: Sequence[Life], at: int) -> list[Life]:
    """The lives at a position that need bytes of their own there: those whose bytes another of their size takes over do not."""
    alive = [life for life in lives if life.start <= at <= life.end]
    taken: set[SSAValue] = set()
    for heir in alive:
        giver = next((life for life in alive if heir.value in life.heirs and life.nbytes == heir.nbytes
                      and life.value not in taken), None)
        if giver is not None:
            taken.add(giver.value)
    return [life for life in alive if life.value not in taken]


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


@cache
def _shown(kind: type[Operation | Block]) -> int | None:
    """Which operand an op of this class is a view of; None where it is no view. A class is asked once: MLIR's own ops have
    classes below xDSL's for what they are written like, and isinstance asks abstract classes one by one."""
    return (1 if issubclass(kind, arith.SelectOp) else 0) if issubclass(kind, _VIEWS) else None


def root_of(value: SSAValue) -> SSAValue:
    """The allocation, address or argument that a chain of views starts from."""
    while (place := _shown(type(owner := value.owner))) is not None:
        value = cast(Operation, owner).operands[place]
    return value


def elements_of(value: SSAValue) -> SSAValue:
    """The buffer that a chain of views is cut from: as ``root_of``, or the bytes of that as elements of a type."""
    while (place := _shown(type(owner := value.owner))) is not None and not isinstance(owner, memref.ViewOp):
        value = cast(Operation, owner).operands[place]
    return value


def _sources(value: SSAValue) -> tuple[Sequence[SSAValue], Loop | None]:
    """The buffers of which a value may be one, or show a part, and the loop that hands it on; none for one that begins here."""
    owner = value.owner
    if isinstance(owner, arith.SelectOp):
        return owner.operands[1:], None
    if _shown(type(owner)) is not None:
        return cast(Operation, owner).operands[:1], None
    if isinstance(value, OpResult) and isinstance(owner, scf.IfOp):
        return [_end(region.block).operands[value.index] for region in owner.regions if region.blocks], None
    loop = owner.parent_op() if isinstance(owner, Block) else owner
    index = value.index if isinstance(value, (OpResult, BlockArgument)) else 0
    if isinstance(loop, scf.ForOp):
        index -= isinstance(value, BlockArgument)
        return [loop.iter_args[index], _end(loop.body.block).operands[index]] if index >= 0 else [], loop
    if isinstance(loop, scf.WhileOp):
        if owner is loop.before_region.block:
            return (loop.operands[index], _end(loop.after_region.block).operands[index]), loop
        return (_end(loop.before_region.block).operands[1 + index],), loop
    return (), None


def _end(block: Block) -> Operation:
    last = block.last_op
    assert last is not None, "a terminator"
    return last


def _roots_of(value: SSAValue) -> tuple[set[SSAValue], set[Loop]]:
    """The allocations, addresses and arguments that a value may be a view of, and the loops that may have carried it."""
    roots, loops, seen, pending = set[SSAValue](), set[Loop](), {value}, [value]
    while pending:
        current = pending.pop()
        found, loop = _sources(current)
        if not found:
            roots.add(current)
        elif loop is not None:
            loops.add(loop)
        pending += (source for source in found if source not in seen)
        seen.update(found)
    return roots, loops


def lifetimes(function: func.FuncOp) -> tuple[list[Life], list[Operation]]:
    """The lives of a function's allocations, and its operations in the order of positions."""
    order: list[Operation] = list(function.walk())
    position = {op: index for index, op in enumerate(order)}
    last_inside = _last_positions(order, position)
    spans: dict[SSAValue, tuple[int, int]] = {}
    pipes: dict[SSAValue, set[str]] = {}
    for op in order:
        for access in accesses(op):
            roots, carriers = _roots_of(access.value)
            for root in roots:
                if not isinstance(root.owner, memref.AllocOp):
                    continue
                ends = [(position[loop], last_inside[loop]) for loop in carriers]
                ends += [_span(op, root.owner, position, last_inside), *([spans[root]] if root in spans else [])]
                spans[root] = min(start for start, _ in ends), max(end for _, end in ends)
                pipes.setdefault(root, set()).add(access.pipe)
    lives = []
    for op in order:
        if isinstance(op, memref.AllocOp):
            space = hivm.space_of(op.memref.type)
            if space is None or space == "gm":
                continue
            here = position[op]
            start, end = used = spans.get(op.memref, (here, here))
            slots = slots_of(op.memref)
            if slots > 1:
                loop = op.parent_op()
                if isinstance(loop, (scf.ForOp, scf.WhileOp)):
                    start, end = position[loop], last_inside[loop]
            coupled = coupling_of(op.memref)
            if coupled is not None:
                start, end = 0, len(order) - 1
            lives.append(Life(op, space, _nbytes(op), slots, start, end, pipes=frozenset(pipes.get(op.memref, ())),
                              coupled=coupled, used=used, members=(op.memref,)))
    return _with_heirs(lives, order), order


def _with_heirs(lives: list[Life], order: list[Operation]) -> list[Life]:
    """The lives, each with those that may take its bytes."""
    takers: dict[Life, set[Life]] = {}
    by_value: dict[SSAValue, Life] = {life.value: life for life in lives if life.coupled is None}
    for position, op in enumerate(order):
        if not isinstance(op, hivm.ElementwiseOp) or len(op.outs()) != 1:
            continue
        (target,) = op.outs()
        heir = by_value.get(root_of(target))
        if heir is None or heir.used[0] != position:
            continue
        sources = [source for source in op.ins() if isinstance(source.type, MemRefType)]
        for giver in {by_value.get(root_of(source)) for source in sources} - {None, heir}:
            if giver is not None and giver.used[1] == position and giver.nbytes >= heir.nbytes and all(
                    _over(op, source, target) for source in sources if root_of(source) is giver.value):
                takers.setdefault(giver, set()).add(heir)
    return [replace(life, takers=frozenset(heir.value for heir in takers.get(life, ())),
                    heirs=frozenset(heir.value for heir in takers.get(life, ())
                                    if life.slots == heir.slots == 1 and life.end == heir.start)) for life in lives]


def _over(op: hivm.ElementwiseOp, source: SSAValue, target: SSAValue) -> bool:
    """Whether an operation may write elements of a view over those of another one that it reads them from."""
    if op.ENTRY.axes_clauses and op.transpose_axes:
        return False
    if op.ENTRY.in_place:
        return _same_places(source, target)
    if op.ENTRY.hivm != "vcast" or flatten(getattr(op, "temp_buffer", None)) or "i1" in (_element(source), _element(target)):
        return False  # with scratch, the library converts in several steps; a mask is bits
    narrower = dtype(_element(target)).nbytes < dtype(_element(source)).nbytes and _is_whole(source) and _is_whole(target)
    line = all(isinstance(value.type, MemRefType) and len(value.type.get_shape()) == 1 for value in (source, target))
    return _same_places(source, target) or (narrower and line)  # of a line, what is written is never ahead of what is read


def _same_places(a: SSAValue, b: SSAValue) -> bool:
    """Whether two views of two allocations show the same elements of them, in elements of one size."""
    assert isinstance(a.type, MemRefType) and isinstance(b.type, MemRefType)
    if a.type.get_shape() != b.type.get_shape() or a.type.layout != b.type.layout or (
            _element(a) != _element(b) and ("i1" in (_element(a), _element(b))
                                            or dtype_of(a.type.element_type).nbytes != dtype_of(b.type.element_type).nbytes)):
        return False
    x, y = a.owner, b.owner
    if (_is_whole(a) and _is_whole(b)) or (isinstance(x, memref.AllocOp) and isinstance(y, memref.AllocOp)):
        return True
    if isinstance(x, memref.SubviewOp) and isinstance(y, memref.SubviewOp):
        same = list(x.operands[1:]) == list(y.operands[1:]) and all(
            x.properties[name] == y.properties[name] for name in ("static_offsets", "static_sizes", "static_strides"))
        return same and _same_places(x.source, y.source)
    return (isinstance(x, memref.CollapseShapeOp) and isinstance(y, memref.CollapseShapeOp) and x.properties == y.properties
            and _same_places(x.operands[0], y.operands[0]))


def _is_whole(value: SSAValue) -> bool:
    """Whether a view shows all of an allocation in the order of its bytes, or the first of them."""
    while isinstance(value.type, MemRefType) and isinstance(value.type.layout, NoneAttr):
        owner = value.owner
        if isinstance(owner, memref.AllocOp):
            return True
        at_start = isinstance(owner, memref.ViewOp) and constant_value(owner.byte_shift) == 0
        if not isinstance(owner, Operation) or not (at_start or isinstance(owner, _ALL_OF_IT)):
            return False
        value = owner.operands[0]
    return False


def _element(value: SSAValue) -> str:
    assert isinstance(value.type, MemRefType)
    return str(value.type.element_type)


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
