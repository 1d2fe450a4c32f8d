"""Atomic additions to global tensors."""

from __future__ import annotations

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language import movement
from tilelang_npu.language.operands import check_inside, place_of
from tilelang_npu.ops import DType
from tilelang_npu.traced.buffers import Addressable, Sizes, Tile
from tilelang_npu.traced.builder import Builder

_ADDABLE = ("float32", "float16", "bfloat16", "int8", "int16", "int32")


def add_to_global(what: str, dst: Tile, src: Tile, size: Sizes | None = None) -> None:
    """Add a tile in UB or L0C to a tile of a global tensor, indivisibly per element; extents as of ``T.copy``. Between an
    element and a number, as at each point of a ``T.Parallel``, one element is added to.

    Raises:
        TileError: T110 element types, T131 shapes, T132 not exactly one side is global.
    """
    builder = Builder.running(what)
    place = place_of(dst)
    if place is not None and place.buffer.space == "gm" and size is None and not isinstance(src, Addressable):
        _check_type(what, place.buffer.element)
        place.store(src, adds=True)
        return
    source, target = movement.operand(what, "source", src), movement.operand(what, "destination", dst)
    if source.buffer.space == "gm" and target.buffer.space != "gm":  # the older order of the arguments: (src, dst)
        source, target = target, source
    if target.buffer.space != "gm" or source.buffer.space == "gm":
        raise TileError(f"{what} adds a local tile to a global tensor", code="T132",
                        help="the destination is a tensor of the kernel's signature, the source a buffer on the chip")
    a, b = movement.extents(builder, what, source, target, size)
    _check_type(what, b.dtype)
    check_inside(what, a)
    builder.tile_op(tile.CopyOp(a.ssa(builder), b.ssa(builder), atomic=True), what, by_point=True)


def _check_type(what: str, element: DType) -> None:
    if element not in _ADDABLE:
        raise TileError(f"{what}: no atomic addition of {element}", code="T110", help="it works on " + ", ".join(_ADDABLE))
