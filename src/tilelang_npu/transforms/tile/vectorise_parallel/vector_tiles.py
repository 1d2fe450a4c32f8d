"""Emits tiles for the vector operations of one ``T.Parallel``: allocations, views, broadcasts and integer conversions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, MemRefType, Signedness, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.buffers import PARALLEL_LABEL, element_type_of
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.transforms.tile.vectorise_parallel.detours import I32

I16 = IntegerType(16)


class VectorTiles:
    """Emits, before a loop, operations that make tiles.

    Args:
        loop: the loop.
        extents: the sizes of the iteration space; most tiles have this shape.

    Attributes:
        shape: the shape of the tiles of the value that is being computed: ``extents``, or 1 for the axes on which the value
            does not depend.
    """

    def __init__(self, loop: tile.ParallelOp, extents: list[int]) -> None:
        self.loop = loop
        self.extents = extents
        self.shape = tuple(extents)

    def emit(self, op: Operation) -> Operation:
        """Inserts an operation before the loop, with the loop's source location; returns the operation."""
        op.location = self.loop.location
        block = self.loop.parent_block()
        assert block is not None
        block.insert_op_before(op, self.loop)
        return op

    def allocate(self, element: Attribute, shape: Sequence[int] | None = None) -> SSAValue:
        """Allocates a tile in UB; returns the tile.

        Args:
            element: the element type.
            shape: the shape of the tile; by default :attr:`shape`.
        """
        kind = MemRefType(element, self.shape if shape is None else shape, memory_space=hivm.address_space("ub"))
        return self.emit(tile.AllocOp(PARALLEL_LABEL, kind)).results[0]

    def view_as(self, tile_value: SSAValue, element: Attribute) -> SSAValue:
        """Returns a view of a tile with another element type of the same width, such as ``i8`` for ``ui8``."""
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
        """Returns an integer, or a view of a tile of integers, with the unsigned type of the same width.

        Values of other types, and i1, are returned unchanged.
        """
        kind = value.type
        element = kind.element_type if isinstance(kind, MemRefType) else kind
        if not isinstance(element, IntegerType) or element.width.data == 1:
            return value
        wanted = IntegerType(element.width.data, Signedness.UNSIGNED)
        if isinstance(kind, MemRefType):
            return self.view_as(value, wanted)
        return self.emit(UnrealizedConversionCastOp.get([value], [wanted])).results[0]

    def broadcast(self, part: SSAValue) -> SSAValue:
        """Returns ``part`` broadcast to :attr:`shape`; ``part`` itself if it has this shape."""
        if tile.shape_of(part) == self.shape:
            return part
        wide = self.allocate(element_type_of(part))
        self.emit(tile.BroadcastOp(part, wide))
        return wide

    def convert_integers(self, number: SSAValue, element: Attribute) -> SSAValue:
        """Returns a tile of integers converted to another integer type. A narrower type gets the low bits."""
        given = element_type_of(number)
        assert isinstance(given, IntegerType)
        assert isinstance(element, IntegerType)
        if given.width == element.width:
            return self.view_as(number, element)
        widens = element.width.data > given.width.data
        made = self.allocate(element, tile.shape_of(number))
        self.emit(tile.CopyOp(number, made, round_mode="rint" if widens else "truncwithoverflow"))
        return made

    def in_int16(self, value: SSAValue) -> SSAValue:
        """Returns an int8 scalar, or a tile of int8, converted to int16."""
        if not isinstance(value.type, MemRefType):
            return self.emit(arith.ExtSIOp(value, I16)).results[0]
        return self.convert_integers(value, I16)

    def constant(self, value: int, kind: IntegerType = I32) -> SSAValue:
        """Emits an integer constant; returns its value."""
        return self.emit(arith.ConstantOp(IntegerAttr(value, kind))).results[0]

    def erase_unused_view(self, view: SSAValue) -> None:
        """Erases a view if it has no uses, and then the views that it is a view of if they have none either."""
        while isinstance(owner := view.owner, (tile.RegionOp, tile.ViewOp)) and not list(view.uses):
            view = owner.source
            Rewriter.erase_op(owner)


__all__ = ["I16", "VectorTiles"]
