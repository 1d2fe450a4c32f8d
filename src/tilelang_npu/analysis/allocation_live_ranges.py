"""Live ranges of on-chip allocations, measured in positions: the index of an op in ``function.walk()``.

A live range goes from the first access to the last access. An access inside a loop that does not contain the allocation extends
the live range to the whole loop, because the next iteration may read the value. The live range of an allocation with several
slots is the whole loop that contains the allocation, because iterations of that loop overlap.

Positions do not describe when pipes execute an op: a pipe may still read a buffer after the position at which another buffer at
the same address is written first. Only waits, which a later pass inserts, order the two accesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Operation, SSAValue

from tilelang_npu.analysis.view_chains import coupling_of, possible_roots_of, root_of, slots_of
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.ir.destination_style import flatten
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.ops import dtype
from tilelang_npu.target.chip_data import PipeName, Space

_ORDER_PRESERVING_VIEWS = (memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp, hivm.BitcastOp)
"""Views that show all bytes of their source, in the order of the source."""


@dataclass(frozen=True, eq=False)
class LiveRange:
    """The live range of one allocation. Live ranges are compared by identity.

    Attributes:
        op: the allocation.
        space: the memory of the allocation, as HIVM spells it.
        nbytes: the bytes of one slot, not rounded up.
        slots: the number of multi-buffer slots of the allocation.
        start: the first position at which the allocation is live.
        end: the last position at which the allocation is live.
        heirs: the allocations that may use the bytes of this one from its last position on. The live range of an heir starts
            at that position: an elementwise op there reads this allocation and writes the heir in place. A smaller heir
            uses the first bytes. This allocation and its heirs have one slot.
        pipes: the pipes that access the allocation.
        coupled: if both cores access the allocation, the number that its allocations in the functions of the two cores have
            in common; otherwise None. The other core may write such an allocation at any position.
        remote: whether only the other core's function accesses the allocation, at unknown positions.
        used: the positions of the first and of the last access; with several slots, those of one iteration.
        takers: the allocations, not larger than this one, that some elementwise op can write in place over this one: the op
            writes them for the first time and reads this one for the last time. Unlike ``heirs``, ``takers`` also has
            allocations with several slots and allocations whose live ranges are extended to loops.
        members: the results of all allocations that share this live range and its bytes; usually ``value`` alone.
        value: the result of ``op``. It is stored because memory planning compares thousands of live ranges.
    """

    op: memref.AllocOp
    space: Space
    nbytes: int
    slots: int
    start: int
    end: int
    heirs: frozenset[SSAValue] = frozenset()
    pipes: frozenset[PipeName] = frozenset()
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
        """The author's name of the buffer; ``scratch`` for a buffer that the compiler made."""
        return author_name(self.op.memref, "scratch")

    def as_remote(self, end: int) -> LiveRange:
        """Returns a copy that is live in the whole function of the other core, for planning the memories of that function.

        Args:
            end: the last position of the other core's function.
        """
        return replace(self, start=0, end=end, used=(0, end), heirs=frozenset(), takers=frozenset(), remote=True)

    def overlaps(self, other: LiveRange) -> bool:
        """Whether this and another allocation are both live at some position."""
        return self.start <= other.end and other.start <= self.end


def needing_bytes_at(ranges: Sequence[LiveRange], position: int) -> list[LiveRange]:
    """Returns the live ranges that need separate bytes at a position.

    A live range whose heir of the same size is also live at the position is left out, because both use the same bytes.
    """
    live = [one for one in ranges if one.start <= position <= one.end]
    inherited: set[SSAValue] = set()
    for heir in live:
        giver = next((one for one in live if heir.value in one.heirs and one.nbytes == heir.nbytes
                      and one.value not in inherited), None)
        if giver is not None:
            inherited.add(giver.value)
    return [one for one in live if one.value not in inherited]


def allocation_live_ranges(function: func.FuncOp) -> tuple[list[LiveRange], list[Operation]]:
    """Computes the live ranges of the on-chip allocations of a function.

    Returns:
        The live ranges, and the list of the function's ops: the op at index ``p`` has the position ``p``.
    """
    order: list[Operation] = list(function.walk())
    position = {op: index for index, op in enumerate(order)}
    last_inside = _last_positions(order, position)
    spans: dict[SSAValue, tuple[int, int]] = {}
    pipes: dict[SSAValue, set[PipeName]] = {}
    for op in order:
        for access in accesses(op):
            roots, carriers = possible_roots_of(access.value)
            for root in roots:
                if not isinstance(root.owner, memref.AllocOp):
                    continue
                ends = [(position[loop], last_inside[loop]) for loop in carriers]
                ends += [_extent_of_access(op, root.owner, position, last_inside), *([spans[root]] if root in spans else [])]
                spans[root] = min(start for start, _ in ends), max(end for _, end in ends)
                pipes.setdefault(root, set()).add(access.access_pipe)
    found = []
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
            found.append(LiveRange(op, space, _nbytes_of(op), slots, start, end, pipes=frozenset(pipes.get(op.memref, ())),
                                   coupled=coupled, used=used, members=(op.memref,)))
    return _with_heirs(found, order), order


def _with_heirs(ranges: list[LiveRange], order: list[Operation]) -> list[LiveRange]:
    """Returns the live ranges with ``takers`` and ``heirs`` filled in."""
    takers: dict[LiveRange, set[LiveRange]] = {}
    by_value: dict[SSAValue, LiveRange] = {one.value: one for one in ranges if one.coupled is None}
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
                    _may_overwrite(op, source, target) for source in sources if root_of(source) is giver.value):
                takers.setdefault(giver, set()).add(heir)
    return [replace(one, takers=frozenset(heir.value for heir in takers.get(one, ())),
                    heirs=frozenset(heir.value for heir in takers.get(one, ())
                                    if one.slots == heir.slots == 1 and one.end == heir.start)) for one in ranges]


def _may_overwrite(op: hivm.ElementwiseOp, source: SSAValue, target: SSAValue) -> bool:
    """Whether an op may write ``target`` over the bytes of ``source`` while it reads ``source``."""
    if op.ENTRY.axes_clauses and op.transpose_axes:
        return False
    if op.ENTRY.in_place:
        return _is_same_part(source, target)
    kinds = _element_name(source), _element_name(target)
    if op.ENTRY.hivm != "vcast" or flatten(getattr(op, "temp_buffer", None)) or "i1" in kinds:
        return False  # with scratch, the library converts in several steps; an i1 is a bit of a mask
    narrower = (dtype(kinds[1]).nbytes < dtype(kinds[0]).nbytes
                and _shows_first_bytes(source) and _shows_first_bytes(target))
    line = all(isinstance(value.type, MemRefType) and len(value.type.get_shape()) == 1 for value in (source, target))
    # of one row, element i of a narrower type ends before element i + 1 of the wider one begins
    return _is_same_part(source, target) or (narrower and line)


def _is_same_part(a: SSAValue, b: SSAValue) -> bool:
    """Whether views of two allocations show the same elements of them, with elements of one size."""
    assert isinstance(a.type, MemRefType) and isinstance(b.type, MemRefType)
    if a.type.get_shape() != b.type.get_shape() or a.type.layout != b.type.layout or (
            _element_name(a) != _element_name(b) and ("i1" in (_element_name(a), _element_name(b))
                                            or dtype_of(a.type.element_type).nbytes != dtype_of(b.type.element_type).nbytes)):
        return False
    x, y = a.owner, b.owner
    if (_shows_first_bytes(a) and _shows_first_bytes(b)) or (isinstance(x, memref.AllocOp) and isinstance(y, memref.AllocOp)):
        return True
    if isinstance(x, memref.SubviewOp) and isinstance(y, memref.SubviewOp):
        same = list(x.operands[1:]) == list(y.operands[1:]) and all(
            x.properties[name] == y.properties[name] for name in ("static_offsets", "static_sizes", "static_strides"))
        return same and _is_same_part(x.source, y.source)
    return (isinstance(x, memref.CollapseShapeOp) and isinstance(y, memref.CollapseShapeOp) and x.properties == y.properties
            and _is_same_part(x.operands[0], y.operands[0]))


def _shows_first_bytes(value: SSAValue) -> bool:
    """Whether a view shows an allocation's bytes in their order, from the first one on."""
    while isinstance(value.type, MemRefType) and isinstance(value.type.layout, NoneAttr):
        owner = value.owner
        if isinstance(owner, memref.AllocOp):
            return True
        at_start = isinstance(owner, memref.ViewOp) and constant_value(owner.byte_shift) == 0
        if not isinstance(owner, Operation) or not (at_start or isinstance(owner, _ORDER_PRESERVING_VIEWS)):
            return False
        value = owner.operands[0]
    return False


def _element_name(value: SSAValue) -> str:
    assert isinstance(value.type, MemRefType)
    return str(value.type.element_type)


def _last_positions(order: list[Operation], position: dict[Operation, int]) -> dict[Operation, int]:
    """Returns, for each op, the position of the last op that is nested in it; its own position if none is."""
    last = dict(position)
    for op in reversed(order):
        parent = op.parent_op()
        if parent is not None and parent in last:
            last[parent] = max(last[parent], last[op])
    return last


def _extent_of_access(op: Operation, allocation: memref.AllocOp, position: dict[Operation, int],
          last_inside: dict[Operation, int]) -> tuple[int, int]:
    """Returns the first and the last position that an access adds to the live range of an allocation.

    They are the position of the accessing op; if the op is in a loop that does not contain the allocation, they are the first
    and the last position of the outermost such loop.
    """
    home = allocation.parent_block()
    first = last = position[op]
    current: Operation | None = op
    while current is not None and current.parent_block() is not home:
        current = current.parent_op()
        if isinstance(current, (scf.ForOp, scf.WhileOp)):
            first, last = position[current], last_inside[current]
    return first, last


def _nbytes_of(op: memref.AllocOp) -> int:
    kind = op.memref.type
    total = dtype_of(kind.element_type).nbytes
    for size in kind.get_shape():
        total *= size
    return total


__all__ = ["LiveRange", "allocation_live_ranges", "needing_bytes_at"]
