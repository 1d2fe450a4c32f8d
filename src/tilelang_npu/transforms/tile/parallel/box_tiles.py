"""Tiles that the vector work of one ``T.Parallel`` makes and reads: allocated, seen with other types, broadcast, resized."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, MemRefType, Signedness, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.transforms.tile.parallel.indices import MADE
from tilelang_npu.transforms.tile.parallel.nests import I32, element_of

I16 = IntegerType(16)


class BoxTiles:
    """Makes tiles for one loop, by operations that it inserts before the loop.

    Args:
        loop: the loop.
        extents: the number of points along each axis, which is the shape of most tiles (the box).
    """

    def __init__(self, loop: tile.ParallelOp, extents: list[int]) -> None:
        self.loop = loop
        self.extents = extents

    def emit(self, op: Operation) -> Operation:
        """Insert an operation before the loop."""
        op.location = self.loop.location
        block = self.loop.parent_block()
        assert block is not None
        block.insert_op_before(op, self.loop)
        return op

    def scratch(self, element: Attribute, shape: Sequence[int] | None = None) -> SSAValue:
        """Allocate a tile in UB, of the box's shape or of another one."""
        kind = MemRefType(element, self.extents if shape is None else shape, memory_space=hivm.address_space("ub"))
        return self.emit(tile.AllocOp(MADE, kind)).results[0]

    def as_element(self, tile_value: SSAValue, element: Attribute) -> SSAValue:
        """A tile seen with another element type of the same width (``ui8`` data is computed on as ``i8``)."""
        kind = tile_value.type
        assert isinstance(kind, MemRefType)
        if kind.element_type == element:
            return tile_value
        wanted = MemRefType(element, kind.shape, kind.layout, kind.memory_space)
        owner = tile_value.owner
        if isinstance(owner, tile.ViewOp) and owner.source.type == wanted:
            return owner.source
        return self.emit(tile.ViewOp(tile_value, wanted)).results[0]

    def as_unsigned(self, value: SSAValue) -> SSAValue:
        """The same bits as an unsigned integer, or a tile of them; what is no integer of several bits stays as it is."""
        kind = value.type
        element = kind.element_type if isinstance(kind, MemRefType) else kind
        if not isinstance(element, IntegerType) or element.width.data == 1:
            return value
        wanted = IntegerType(element.width.data, Signedness.UNSIGNED)
        if isinstance(kind, MemRefType):
            return self.as_element(value, wanted)
        return self.emit(UnrealizedConversionCastOp.get([value], [wanted])).results[0]

    def broadcast(self, part: SSAValue) -> SSAValue:
        """A tile over the whole box; axes of size 1 repeat."""
        if tile.shape_of(part) == tuple(self.extents):
            return part
        wide = self.scratch(element_of(part))
        self.emit(tile.BroadcastOp(part, wide))
        return wide

    def resized(self, number: SSAValue, element: Attribute) -> SSAValue:
        """A tile of integers in another integer type, by their low bits where that is narrower; of the tile's own shape."""
        given = element_of(number)
        assert isinstance(given, IntegerType)
        assert isinstance(element, IntegerType)
        if given.width == element.width:
            return self.as_element(number, element)
        widens = element.width.data > given.width.data
        made = self.scratch(element, tile.shape_of(number))
        self.emit(tile.CopyOp(number, made, round_mode="rint" if widens else "truncwithoverflow"))
        return made

    def in_int16(self, value: SSAValue) -> SSAValue:
        """An int8 number, or a tile of them, as int16."""
        if not isinstance(value.type, MemRefType):
            return self.emit(arith.ExtSIOp(value, I16)).results[0]
        return self.resized(value, I16)

    def number(self, value: int, kind: IntegerType = I32) -> SSAValue:
        """A constant."""
        return self.emit(arith.ConstantOp(IntegerAttr(value, kind))).results[0]

    def drop(self, view: SSAValue) -> None:
        """Remove a view that nothing uses."""
        while isinstance(owner := view.owner, (tile.RegionOp, tile.ViewOp)) and not list(view.uses):
            view = owner.source
            Rewriter.erase_op(owner)


__all__ = ["I16", "BoxTiles"]
