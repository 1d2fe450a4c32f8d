"""Which bytes an access touches, and whether two accesses can meet.

On-chip memory is compared by planned address, so that two buffers that share bytes conflict and two views of one
buffer that do not, do not. Before planning, and in global memory, it is compared by buffer: accesses of one may meet,
accesses of two may not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import hivm, memref_ext
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.errors import TileError
from tilelang_npu.linear import Linear
from tilelang_npu.transforms.hivm.sync.boxes import Box, apart, box_of
from tilelang_npu.transforms.ir.lifetimes import slots_of
from tilelang_npu.transforms.ir.locations import location_of

_THROUGH = (memref.SubviewOp, memref.ReinterpretCastOp, memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp,
            hivm.BitcastOp)
_ANY = 1 << 40
"""More bytes than any buffer has."""


@dataclass(frozen=True)
class OperandBytes:
    """The bytes of one operand.

    Attributes:
        space: memory, as HIVM spells it.
        root: the address or argument that the operand is a view of.
        addresses: start of each slot in bytes; before planning, and of a workspace, relative to the first; none for a tensor.
        low, high: the touched bytes relative to a slot, ``high`` not included; the whole slot where offsets vary.
        planned: whether the addresses are those in the memory, so that different buffers can be compared.
        view: the view that is read or written, if it is cut out of something: of a tensor, or on chip where its place varies.
        turn: of a ring that a loop's index goes round, the index and what is added to it modulo the slots.
        box: the part of the root that is touched, axis by axis; None where it is all of it, or not known so.
    """

    space: str
    root: SSAValue
    addresses: tuple[int, ...]
    low: int
    high: int
    planned: bool
    turn: tuple[SSAValue, int] | None = None
    view: SSAValue | None = None
    box: Box | None = None

    @property
    def slots(self) -> int:
        """Number of copies that loop iterations take in turn."""
        return max(1, len(self.addresses))

    def meets(self, other: OperandBytes) -> int | None:
        """After how many iterations of the loop around them accesses of both can touch a common byte.

        None: never. 0: in the same iteration, and in every later one. N > 1: in the same iteration and in every N-th
        later one, because both take the same slot of N.
        """
        if self.space != other.space:
            return None
        if self.root is other.root or self._same_slots(other):
            if self.root.type == other.root.type and apart(self.box, other.box):
                return None
            if (self.turn is None) != (other.turn is None) or (self.turn is not None and self.addresses != other.addresses):
                return 0
            if not self._inner(other):
                return None
            return self.slots if self.slots > 1 else 0
        if not (self.planned and other.planned):
            return None
        for a in self.addresses:
            for b in other.addresses:
                if a + self.low < b + other.high and b + other.low < a + self.high:
                    return 0
        return None

    def phase(self, other: OperandBytes) -> int:
        """Of two places that meet in a ring: after how many iterations the other one reaches this one's slot."""
        if self.turn is None or other.turn is None:
            return 0
        return (self.turn[1] - other.turn[1]) % self.slots

    def _same_slots(self, other: OperandBytes) -> bool:
        """Whether two buffers are the same bytes, of which the iterations of one loop take a slot in turn."""
        one, two = self.root.owner, other.root.owner
        return (self.slots > 1 and self.addresses == other.addresses and self.space == other.space
                and isinstance(one, hivm.PointerCastOp) and isinstance(two, hivm.PointerCastOp)
                and len(one.addrs) == len(two.addrs) == self.slots and one.parent_block() is two.parent_block())

    def _inner(self, other: OperandBytes) -> bool:
        return self.low < other.high and other.low < self.high

    @cached_property
    def text(self) -> str:
        """For reports: ``x_ub, bytes 0..8191``."""
        return f"{author_name(self.root, self.space)}, bytes {self.low}..{self.high - 1}"


def place_of(value: SSAValue) -> OperandBytes:
    """The bytes of a memref operand."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    space = hivm.space_of(kind) or "gm"
    root = _root_of(value, space)
    addresses: tuple[int, ...] = ()
    planned = isinstance(root.owner, hivm.PointerCastOp)
    if isinstance(root.owner, hivm.PointerCastOp):
        addresses = tuple(_constant(address) for address in root.owner.addrs)
    elif isinstance(root.owner, (memref.AllocOp, memref_ext.AllocWorkspaceOp)):
        assert isinstance(root.type, MemRefType)
        addresses = tuple(turn * _size(root.type) for turn in range(slots_of(root)))
    if space != "gm" and not _known(root):
        return OperandBytes(space, root, (0,), 0, _ANY, planned=True)
    ring, box = _ring(value, root), box_of(value, root)
    cut = value.owner
    view = value if isinstance(cut, memref.SubviewOp) and (space == "gm" or cut.offsets) else None
    if ring is not None:
        count, slot, turn = ring
        starts = tuple((addresses[0] if planned else 0) + slot * number for number in range(count))
        return OperandBytes(space, root, starts, 0, slot, planned, turn, view if space == "gm" else None, box)
    low, high = _extent(value, root)
    return OperandBytes(space, root, addresses, low, high, planned, view=view, box=box)


def _root_of(value: SSAValue, space: str) -> SSAValue:
    """The address or argument that a chain of views starts from; in GM a view of bytes, which is one of the buffers there."""
    through = _THROUGH if space == "gm" else (*_THROUGH, memref.ViewOp)
    while isinstance(value.owner, through):
        value = value.owner.operands[0]
    return value


def _known(root: SSAValue) -> bool:
    """Whether a value is one buffer: one of several, as a branch chooses or a loop hands on, may be anywhere in its memory."""
    owner = root.owner
    if isinstance(owner, Block):
        return isinstance(owner.parent_op(), func.FuncOp)
    return isinstance(owner, (hivm.PointerCastOp, memref.AllocOp, memref_ext.AllocWorkspaceOp))


def _ring(value: SSAValue, root: SSAValue) -> tuple[int, int, tuple[SSAValue, int]] | None:
    """Slots, bytes of one, and the turn of a view that shows the slot of an iteration: its first axis is a loop's index, plus a
    constant, modulo the extent. The ring may be all of the root, or its beginning under another shape."""
    views: list[SSAValue] = []
    while value is not root and isinstance(value.owner, Operation):
        views.append(value)
        value = value.owner.operands[0]
    if isinstance(root, BlockArgument) or (isinstance(root.owner, hivm.PointerCastOp) and len(root.owner.addrs) > 1):
        return None
    whole = root
    for view in reversed(views):
        kind, cut = whole.type, view.owner
        assert isinstance(kind, MemRefType)
        elements = _apart(kind)
        index = _slot(cut, elements) if elements else None
        turn = None if index is None else _turn(index, kind.get_shape()[0])
        if turn is not None:
            return kind.get_shape()[0], elements * dtype_of(kind.element_type).nbytes, turn
        if not _reshapes(cut) and not _cuts_each_slot(cut):
            return None
        whole = view
    return None


def _apart(kind: MemRefType) -> int:
    """How many elements the parts along the first axis are apart; 0 where that is open, or they overlap."""
    shape, strides = kind.get_shape(), kind.get_strides()
    if not strides or None in strides or DYNAMIC_INDEX in shape:
        return 0
    first, *inner = (stride or 0 for stride in strides)
    return first if sum((size - 1) * stride for size, stride in zip(shape[1:], inner, strict=True)) < first else 0


def _reshapes(cut: Operation | Block) -> bool:
    """Whether a view has the first elements of its source, one behind the other."""
    if not isinstance(cut, memref.ReinterpretCastOp):
        return False
    sizes, strides = cut.static_sizes.get_values(), cut.static_strides.get_values()
    packed = [math.prod(sizes[axis + 1:]) for axis in range(len(sizes))]
    return set(cut.static_offsets.get_values()) == {0} and DYNAMIC_INDEX not in sizes and list(strides) == packed


def _cuts_each_slot(cut: Operation | Block) -> bool:
    """Whether a view has a part of each of its source's slots, the first axis."""
    if not isinstance(cut, memref.SubviewOp):
        return False
    source = cut.source.type
    assert isinstance(source, MemRefType)
    offsets, sizes = cut.static_offsets.get_values(), cut.static_sizes.get_values()
    return bool(sizes) and offsets[0] == 0 and sizes[0] == source.get_shape()[0]


def _slot(cut: Operation | Block, elements: int) -> SSAValue | None:
    """The index of the slot that a view of slots so many elements apart shows, if it shows one."""
    if isinstance(cut, memref.SubviewOp):
        one = cut.static_sizes.get_values()[0] == 1 and cut.static_offsets.get_values()[0] == DYNAMIC_INDEX
        return cut.offsets[0] if one else None
    if isinstance(cut, memref.ReinterpretCastOp) and len(cut.offsets) == 1:
        sizes, strides = cut.static_sizes.get_values(), cut.static_strides.get_values()
        last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        form = affine(cut.offsets[0])
        if DYNAMIC_INDEX not in (*sizes, *strides) and last < elements and form.single is not None:
            return index if form == elements * Linear.of(index := form.single[0]) else None
    return None


def _turn(value: SSAValue, count: int) -> tuple[SSAValue, int] | None:
    """A loop's index and what is added to it, where a value is their sum modulo ``count``."""
    owner = value.owner
    if not isinstance(owner, arith.RemUIOp) or constant_value(owner.rhs) != count:
        return None
    form = affine(owner.lhs)
    index, times = form.single or (None, 0)
    loop = index.owner.parent_op() if isinstance(index, BlockArgument) else None
    if not isinstance(loop, scf.ForOp) or index is not loop.body.block.args[0] or times != 1 or constant_value(loop.step) != 1:
        return None
    return loop.body.block.args[0], form.constant % count


def _constant(value: SSAValue) -> int:
    known, owner = constant_value(value), value.owner
    if known is None:
        raise TileError("synchronisation is inserted for addresses that are constants, and this one is computed", code="T602",
                        location=location_of(owner) if isinstance(owner, Operation) else None, help="run plan-memory first")
    return known


def _size(kind: MemRefType) -> int:
    total: int = dtype_of(kind.element_type).nbytes
    for size in kind.get_shape():
        total *= size if size != DYNAMIC_INDEX else _ANY
    return total


def _extent(value: SSAValue, root: SSAValue) -> tuple[int, int]:
    """Bytes from the first to the last element of a view, relative to its root; all of the root where that is not
    constant.
    """
    kind, whole = value.type, root.type
    assert isinstance(kind, MemRefType) and isinstance(whole, MemRefType)
    if value is root:
        return 0, _size(whole)
    strides = kind.get_strides()
    offset = kind.layout.get_offset() if isinstance(kind.layout, StridedLayoutAttr) else 0
    shape, shift = kind.get_shape(), _shift(value, root)
    if strides is None or offset is None or shift is None or None in strides or DYNAMIC_INDEX in shape:
        return 0, _size(whole)
    element = dtype_of(kind.element_type).nbytes
    last = offset + sum((size - 1) * (stride or 0) for size, stride in zip(shape, strides, strict=True))
    return shift + offset * element, shift + (last + 1) * element


def _shift(value: SSAValue, root: SSAValue) -> int | None:
    """Bytes from the start of a root to the base pointer of a view; None where a view of its bytes begins at a computed one."""
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
