"""The bytes that an operand accesses, and whether two accesses can overlap.

After memory planning, accesses to on-chip memory are compared by address: two buffers overlap where they share bytes, and two
views of different parts of one buffer are disjoint. Before memory planning, and in global memory, accesses are compared by
buffer: two accesses to one buffer may overlap, and accesses to different buffers are disjoint.

An access is described in three ways, from the cheapest to the most exact:

- the interval ``[low, high)`` from the first to the last byte of the view;
- the ``Box``: per axis of the buffer, the interval of elements. Two views of half the columns each have overlapping intervals
  of bytes and disjoint boxes;
- the view itself, whose offsets may depend on loops (``disjoint_views``).

A **ring** is a buffer whose first axis is indexed by a loop's induction variable, plus a constant, modulo the size of that
axis: ``x[(t + 1) % 2]``. Each index of the first axis is a slot, and successive iterations of the loop use successive slots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.analysis.locations import location_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.analysis.view_chains import slots_of
from tilelang_npu.dialects import hivm, memref_ext
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.errors import TileError
from tilelang_npu.linear import Linear
from tilelang_npu.target.chip_data import Space

Box = tuple[tuple[int, int], ...]
"""For each axis of a buffer: the index of the first accessed element, and the index of the last accessed element plus 1."""
_VIEWS_OF_ELEMENTS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp,
                      hivm.BitcastOp)
_UNBOUNDED = 1 << 40
"""More bytes than any buffer has: the size of a buffer or access of unknown size."""


@dataclass(frozen=True)
class AccessedBytes:
    """The bytes that one memref operand accesses.

    Attributes:
        space: the name of the memory, as HIVM spells it (``ub``, ``gm``).
        root: the operand's root: the address (``hivm.pointer_cast``), allocation or argument that the operand is a view of.
        addresses: the start of each slot of the root, in bytes. Before memory planning, and for a workspace, the starts are
            relative to the first slot. Empty for a tensor in GM.
        low: the first accessed byte, relative to the start of a slot; 0 if the view's offset is no constant.
        high: the byte after the last accessed one, relative to the start of a slot; the size of the whole slot if the view's
            offset is no constant.
        planned: whether ``addresses`` are the addresses of memory planning, so that accesses to different buffers can be
            compared by address.
        ring_index: if the operand is a slot of a ring, the pair ``(t, c)`` of its index ``(t + c) % slots``: the induction
            variable and the constant; otherwise None.
        view: the subview that is the operand, if the root is in GM or an offset of the subview is no constant; otherwise None.
        box: the accessed part of the root, as one interval of elements per axis; None if it is the whole root or is unknown.
    """

    space: Space
    root: SSAValue
    addresses: tuple[int, ...]
    low: int
    high: int
    planned: bool
    ring_index: tuple[SSAValue, int] | None = None
    view: SSAValue | None = None
    box: Box | None = None

    @property
    def slots(self) -> int:
        """The number of slots of the buffer, which successive iterations use one after another; 1 without multi-buffering."""
        return max(1, len(self.addresses))

    def overlap_period(self, other: AccessedBytes) -> int | None:
        """Returns for which iterations of the enclosing loop this access and another access can have a byte in common.

        Returns:
            None: the two accesses never have a byte in common. 0: they can have a byte in common in any two iterations.
            N > 1: they can have a byte in common only in two iterations whose distance is a multiple of N (0 included),
            because both buffers have N slots and successive iterations use successive slots. If both accesses are to slots
            of a ring, the distance is instead a multiple of N plus :meth:`ring_distance`.
        """
        if self.space != other.space:
            return None
        if self.root is other.root or self._has_same_slots(other):
            if self.root.type == other.root.type and are_disjoint_boxes(self.box, other.box):
                return None
            one_ring = self.ring_index is not None
            if one_ring != (other.ring_index is not None) or (one_ring and self.addresses != other.addresses):
                return 0
            if not (self.low < other.high and other.low < self.high):
                return None
            return self.slots if self.slots > 1 else 0
        if not (self.planned and other.planned):
            return None
        for a in self.addresses:
            for b in other.addresses:
                if a + self.low < b + other.high and b + other.low < a + self.high:
                    return 0
        return None

    def ring_distance(self, other: AccessedBytes) -> int:
        """Returns how many iterations later ``other`` accesses the slot that this access uses in the current iteration.

        The slot ``x[(t + 1) % 3]`` is accessed by ``x[t % 3]`` one iteration later, so the result is 1. The result is 0 if one
        of the two accesses is not to a slot of a ring. Two accesses to slots of rings must be to the same ring.
        """
        if self.ring_index is None or other.ring_index is None:
            return 0
        return (self.ring_index[1] - other.ring_index[1]) % self.slots

    def _has_same_slots(self, other: AccessedBytes) -> bool:
        """Whether memory planning gave two buffers with several slots the same addresses, in the same block."""
        one, two = self.root.owner, other.root.owner
        return (self.slots > 1 and self.addresses == other.addresses and self.space == other.space
                and isinstance(one, hivm.PointerCastOp) and isinstance(two, hivm.PointerCastOp)
                and len(one.addrs) == len(two.addrs) == self.slots and one.parent_block() is two.parent_block())


def accessed_bytes_of(value: SSAValue) -> AccessedBytes:
    """Returns a description of the bytes that an access to a memref operand can touch.

    Raises:
        TileError: T602, the address of the buffer is computed at run time.
    """
    kind = value.type
    assert isinstance(kind, MemRefType)
    space = hivm.space_of(kind) or "gm"
    root = _root_of(value, space)
    addresses: tuple[int, ...] = ()
    planned = isinstance(root.owner, hivm.PointerCastOp)
    if isinstance(root.owner, hivm.PointerCastOp):
        addresses = tuple(_constant_address(address) for address in root.owner.addrs)
    elif isinstance(root.owner, (memref.AllocOp, memref_ext.AllocWorkspaceOp)):
        assert isinstance(root.type, MemRefType)
        addresses = tuple(slot * _nbytes_of(root.type) for slot in range(slots_of(root)))
    if space != "gm" and not _is_single_buffer(root):
        return AccessedBytes(space, root, (0,), 0, _UNBOUNDED, planned=True)
    ring, box = _ring_slot(value, root), static_box_of(value, root)
    owner = value.owner
    view = value if isinstance(owner, memref.SubviewOp) and (space == "gm" or owner.offsets) else None
    if ring is not None:
        count, nbytes, index = ring
        starts = tuple((addresses[0] if planned else 0) + nbytes * number for number in range(count))
        return AccessedBytes(space, root, starts, 0, nbytes, planned, index, view if space == "gm" else None, box)
    low, high = _byte_interval(value, root)
    return AccessedBytes(space, root, addresses, low, high, planned, view=view, box=box)


def _root_of(value: SSAValue, space: Space) -> SSAValue:
    """Returns the value that a chain of views starts from; in GM, a ``memref.view`` of the workspace is such a start."""
    views = _VIEWS_OF_ELEMENTS if space == "gm" else (*_VIEWS_OF_ELEMENTS, memref.ViewOp)
    while isinstance(value.owner, views):
        value = value.owner.operands[0]
    return value


def _is_single_buffer(root: SSAValue) -> bool:
    """Whether a value is one known buffer. A result of a branch or a loop may be any of several, anywhere in its memory."""
    owner = root.owner
    if isinstance(owner, Block):
        return isinstance(owner.parent_op(), func.FuncOp)
    return isinstance(owner, (hivm.PointerCastOp, memref.AllocOp, memref_ext.AllocWorkspaceOp))


def _constant_address(value: SSAValue) -> int:
    known, owner = constant_value(value), value.owner
    if known is None:
        raise TileError("waits are inserted only for buffers at constant addresses; this address is computed at run time",
                        code="T602", location=location_of(owner) if isinstance(owner, Operation) else None,
                        help="run plan-memory first")
    return known


def _nbytes_of(kind: MemRefType) -> int:
    total: int = dtype_of(kind.element_type).nbytes
    for size in kind.get_shape():
        total *= size if size != DYNAMIC_INDEX else _UNBOUNDED
    return total


def _byte_interval(value: SSAValue, root: SSAValue) -> tuple[int, int]:
    """Returns the offsets of a view's first byte and of the byte after its last one, in bytes from the start of its root.

    If they are not constant, the result covers the whole root.
    """
    kind, whole = value.type, root.type
    assert isinstance(kind, MemRefType) and isinstance(whole, MemRefType)
    if value is root:
        return 0, _nbytes_of(whole)
    strides = kind.get_strides()
    offset = kind.layout.get_offset() if isinstance(kind.layout, StridedLayoutAttr) else 0
    shape, base = kind.get_shape(), _base_offset(value, root)
    if strides is None or offset is None or base is None or None in strides or DYNAMIC_INDEX in shape:
        return 0, _nbytes_of(whole)
    element = dtype_of(kind.element_type).nbytes
    last = offset + sum((size - 1) * (stride or 0) for size, stride in zip(shape, strides, strict=True))
    return base + offset * element, base + (last + 1) * element


def _base_offset(value: SSAValue, root: SSAValue) -> int | None:
    """Returns the number of bytes from the start of a root to the base pointer of a view.

    Returns None if the view goes through a ``memref.view`` whose byte shift is not constant.
    """
    found = 0
    while value is not root:
        owner = value.owner
        assert isinstance(owner, Operation)
        if isinstance(owner, memref.ViewOp):
            start = constant_value(owner.byte_shift)
            if start is None:
                return None
            found += start
        value = owner.operands[0]
    return found


# Boxes


def static_box_of(value: SSAValue, root: SSAValue) -> Box | None:
    """Returns the box of a view: for each axis of its buffer, the interval of elements that the view can contain.

    An offset that is no constant makes the interval of its axis that of the whole source; a size that is no constant extends
    the interval to the end of the source.

    Args:
        value: the view.
        root: the buffer that ``value`` is a view of, through any number of views.

    Returns:
        The box; None if it is the whole buffer, if the buffer has a dynamic size, or if a view changes the shape.
    """
    views: list[memref.SubviewOp] = []
    while value is not root:
        owner = value.owner
        if not isinstance(owner, (memref.SubviewOp, memref.CastOp)):
            return None
        if isinstance(owner, memref.SubviewOp):
            views.append(owner)
        value = owner.operands[0]
    kind = root.type
    assert isinstance(kind, MemRefType)
    shape = kind.get_shape()
    if not views or DYNAMIC_INDEX in shape:
        return None
    # is_static[axis]: all offsets along the axis so far are constants, so that the next one can be added
    box, is_static, axes = [(0, size) for size in shape], [True] * len(shape), list(range(len(shape)))
    for view in reversed(views):
        parts = zip(axes, view.static_offsets.get_values(), view.static_sizes.get_values(), view.static_strides.get_values(),
                    strict=True)
        for axis, offset, size, step in parts:
            low, high = box[axis]
            is_static[axis] = is_static[axis] and offset != DYNAMIC_INDEX and step == 1
            if is_static[axis]:
                box[axis] = low + offset, high if size == DYNAMIC_INDEX else low + offset + size
        axes = _kept_axes(view, axes)
    return None if box == [(0, size) for size in shape] else tuple(box)


def _kept_axes(view: memref.SubviewOp, axes: list[int]) -> list[int]:
    """Returns the axes of the buffer that a subview keeps: a rank-reducing one drops axes of size 1."""
    kind = view.result.type
    assert isinstance(kind, MemRefType)
    dropped = len(axes) - len(kind.get_shape())
    kept = []
    for axis, size in zip(axes, view.static_sizes.get_values(), strict=True):
        if dropped and size == 1:
            dropped -= 1
        else:
            kept.append(axis)
    return kept


def are_disjoint_boxes(one: Box | None, two: Box | None) -> bool:
    """Whether two boxes of one buffer have no element in common; False if either box is None, which means unknown."""
    return one is not None and two is not None and any(a >= d or c >= b for (a, b), (c, d) in zip(one, two, strict=True))


# Rings of slots


def _ring_slot(value: SSAValue, root: SSAValue) -> tuple[int, int, tuple[SSAValue, int]] | None:
    """Returns the number of slots, the bytes of one slot and the index ``(t, c)``, if a view is one slot of a ring.

    The index is that of ``AccessedBytes.ring_index``. The ring may be the whole root, or the first elements of the root in
    another shape. Returns None for any other view.
    """
    views: list[SSAValue] = []
    while value is not root and isinstance(value.owner, Operation):
        views.append(value)
        value = value.owner.operands[0]
    if isinstance(root, BlockArgument) or (isinstance(root.owner, hivm.PointerCastOp) and len(root.owner.addrs) > 1):
        return None
    whole = root
    for view in reversed(views):
        kind, owner = whole.type, view.owner
        assert isinstance(kind, MemRefType)
        elements = _slot_stride(kind)
        slot = _slot_of_view(owner, elements) if elements else None
        index = None if slot is None else _ring_index(slot, kind.get_shape()[0])
        if index is not None:
            return kind.get_shape()[0], elements * dtype_of(kind.element_type).nbytes, index
        if not _is_packed_prefix(owner) and not _keeps_every_slot(owner):
            return None
        whole = view
    return None


def _slot_stride(kind: MemRefType) -> int:
    """Returns the distance, in elements, between neighbours along the first axis of a memref, which are its slots.

    Returns 0 if the distance is unknown, or if neighbouring slots overlap.
    """
    shape, strides = kind.get_shape(), kind.get_strides()
    if not strides or None in strides or DYNAMIC_INDEX in shape:
        return 0
    first, *inner = (stride or 0 for stride in strides)
    return first if sum((size - 1) * stride for size, stride in zip(shape[1:], inner, strict=True)) < first else 0


def _is_packed_prefix(owner: Operation | Block) -> bool:
    """Whether a view shows the first elements of its source without gaps."""
    if not isinstance(owner, memref.ReinterpretCastOp):
        return False
    sizes, strides = owner.static_sizes.get_values(), owner.static_strides.get_values()
    packed = [math.prod(sizes[axis + 1:]) for axis in range(len(sizes))]
    return set(owner.static_offsets.get_values()) == {0} and DYNAMIC_INDEX not in sizes and list(strides) == packed


def _keeps_every_slot(owner: Operation | Block) -> bool:
    """Whether a view shows a part of each slot of its source (all of the first axis)."""
    if not isinstance(owner, memref.SubviewOp):
        return False
    source = owner.source.type
    assert isinstance(source, MemRefType)
    offsets, sizes = owner.static_offsets.get_values(), owner.static_sizes.get_values()
    return bool(sizes) and offsets[0] == 0 and sizes[0] == source.get_shape()[0]


def _slot_of_view(owner: Operation | Block, elements: int) -> SSAValue | None:
    """Returns the index of the slot that a view shows, a value computed at run time; None if the view is not a single slot.

    Args:
        owner: the op that makes the view.
        elements: the distance between neighbouring slots, in elements.
    """
    if isinstance(owner, memref.SubviewOp):
        one = owner.static_sizes.get_values()[0] == 1 and owner.static_offsets.get_values()[0] == DYNAMIC_INDEX
        return owner.offsets[0] if one else None
    if isinstance(owner, memref.ReinterpretCastOp) and len(owner.offsets) == 1:
        sizes, strides = owner.static_sizes.get_values(), owner.static_strides.get_values()
        last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        form = affine(owner.offsets[0])
        if DYNAMIC_INDEX not in (*sizes, *strides) and last < elements and form.single is not None:
            return index if form == elements * Linear.of(index := form.single[0]) else None
    return None


def _ring_index(value: SSAValue, count: int) -> tuple[SSAValue, int] | None:
    """Returns ``(t, c)`` if a value is ``(t + c) % count`` for the induction variable ``t`` of a loop of step 1."""
    owner = value.owner
    if not isinstance(owner, arith.RemUIOp) or constant_value(owner.rhs) != count:
        return None
    form = affine(owner.lhs)
    index, times = form.single or (None, 0)
    loop = index.owner.parent_op() if isinstance(index, BlockArgument) else None
    if not isinstance(loop, scf.ForOp) or index is not loop.body.block.args[0] or times != 1 or constant_value(loop.step) != 1:
        return None
    return loop.body.block.args[0], form.constant % count


def has_ring_and_fixed_slot(one: AccessedBytes, other: AccessedBytes) -> bool:
    """Whether one of two accesses uses the slots of a ring one after another, and the other one always the same slot."""
    return _fixed_slot(one, other) is not None or _fixed_slot(other, one) is not None


def iterations_before_overlap(first: AccessedBytes, ring: AccessedBytes, loop: scf.ForOp | scf.WhileOp | None) -> int:
    """Returns how many iterations run at the start of a loop before the loop can access ``first`` again.

    For ``x[0]`` before the loop and ``x[(t + 1) % 2]`` in the loop the result is 1, because iteration 0 uses slot 1.

    Args:
        first: an access before the loop, to one slot of the ring.
        ring: an access in the loop, to a slot of the ring that changes with the induction variable.
        loop: the loop.

    Returns:
        The number of iterations; 0 if the accesses are not as described, or if the first slot is not known.
    """
    slot, start = _fixed_slot(first, ring), _first_slot(ring, loop)
    return 0 if slot is None or start is None else (slot - start) % ring.slots


def iterations_after_overlap(ring: AccessedBytes, second: AccessedBytes, loop: scf.ForOp | scf.WhileOp | None) -> int:
    """Returns how many iterations run at the end of a loop after its last access to ``second``.

    Args:
        ring: an access in the loop, to a slot of a ring that changes with the induction variable.
        second: an access after the loop, to one slot of the ring.
        loop: the loop.

    Returns:
        The number of iterations; 0 if the accesses are not as described, or if the first slot or the trip count is unknown.
    """
    slot, start = _fixed_slot(second, ring), _first_slot(ring, loop)
    if slot is None or start is None or not isinstance(loop, scf.ForOp):
        return 0
    trips = Ranges().trip_count(loop).constant
    return 0 if trips is None else (start + trips - 1 - slot) % ring.slots


def _first_slot(ring: AccessedBytes, loop: scf.ForOp | scf.WhileOp | None) -> int | None:
    """Returns the slot that the first iteration of a loop accesses, not reduced modulo the number of slots.

    Returns None if it is not constant, or if the slot does not depend on the induction variable of ``loop``.
    """
    if ring.ring_index is None or not isinstance(loop, scf.ForOp) or ring.ring_index[0] is not loop.body.block.args[0]:
        return None
    low = Ranges().constant(loop.lb)
    return None if low is None else low + ring.ring_index[1]


def _fixed_slot(access: AccessedBytes, ring: AccessedBytes) -> int | None:
    """Returns the index of the slot of a ring that contains all bytes of an access; None if no single slot contains them."""
    if access.ring_index is not None or ring.ring_index is None or access.root is not ring.root:
        return None
    slot = access.low // ring.high
    return slot if (access.high - 1) // ring.high == slot < ring.slots else None


__all__ = ["AccessedBytes", "Box", "accessed_bytes_of", "are_disjoint_boxes", "has_ring_and_fixed_slot",
           "iterations_after_overlap", "iterations_before_overlap", "static_box_of"]
