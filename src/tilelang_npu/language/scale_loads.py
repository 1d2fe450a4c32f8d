"""Loads of the scales of MX matrices into L1: ``T.copy(..., src_layout=...)``."""

from __future__ import annotations

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.operands import check_inside, right_aligned, scalar_operand, with_axes
from tilelang_npu.ops import DType
from tilelang_npu.ops.scale_layouts import SCALE_LAYOUTS
from tilelang_npu.traced.buffers import Addressable, Element, Region, shape_text
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, extent


def load_scales(builder: Builder, what: str, source: Addressable | Element, target: Addressable | Element, layout: object,
                pad_value: object) -> None:
    """Emits the load of scales from a global tensor.

    Args:
        builder: the trace.
        what: the name of the call, for messages.
        source: a tile of a global tensor with two or three axes, or its first element.
        target: scales in L1, (m, k / 32) or (k / 32, n).
        layout: the name of the tensor's layout.
        pad_value: the byte for scales past the end of the tensor; None for 0.

    Raises:
        TileError: T145, there is no such layout; T231, the tiles are in other memories; T110, they have no scales; T131, the
            shapes do not fit; T130, the destination is not inside its buffer.
    """
    known = SCALE_LAYOUTS.get(layout) if isinstance(layout, str) else None
    if known is None:
        raise TileError(f"{what}: there is no src_layout {layout!r}", code="T145",
                        help="the layouts are " + ", ".join(SCALE_LAYOUTS))
    if not isinstance(target, Addressable) or source.buffer.space != "gm" or target.buffer.space not in ("cbuf", "shared"):
        raise TileError(f"{what}: src_layout is given, and the copy from {source.describe()} to {target.describe()} is no load"
                        " of scales into L1", code="T231",
                        help="load a tile of a global tensor into a buffer of T.alloc_L1_scale_a or T.alloc_L1_scale_b")
    for side in (source, target):
        if side.dtype.stored != "uint8":
            raise TileError(f"{what}: src_layout is given, and {side.describe()} has no scales", code="T110",
                            help="scales have the element type uint8 or float8_e8m0fnu")
    kept = list(target.kept)
    while len(kept) > 2 and target.sizes[kept[0]] == 1:
        kept.pop(0)
    target = with_axes(target, kept)
    if isinstance(source, Element):
        if target.ndim != 2 or len(source.indices) < 2:
            raise TileError(f"{what}: {target.describe()} is no matrix of scales", code="T131", help="slice it to two axes")
        lines, groups = target.extents if known.side == "a" else target.extents[::-1]
        sizes: list[Extent] = [lines, groups]
        pairs = len(source.indices) > 2 and source.buffer.dimensions[-1] == 2
        if pairs:
            sizes[1] = extent(builder, groups // 2)
        sizes = [*(sizes if known.rows_first else sizes[::-1]), *([2] if pairs else [])]
        rank = len(source.indices)
        source = right_aligned(what, Region(source.buffer, source.indices, (1,) * rank, range(rank)), sizes)
    else:
        kept = list(source.kept)
        while len(kept) > 3 and source.sizes[kept[0]] == 1:
            kept.pop(0)
        source = with_axes(source, kept)
    have = known.logical_shape([size if isinstance(size, int) else -1 for size in source.extents])
    room = [size if isinstance(size, int) else -1 for size in target.extents]
    if len(have) != 2 or len(room) != 2 or any(size > most for size, most in zip(have, room, strict=True) if most >= 0):
        raise TileError(f"{what}: {source.describe()} has the scales {shape_text(have)} in layout {layout}, and the destination"
                        f" is {target.describe()}", code="T131", help="slice the tensor to the scales of the tile")
    check_inside(what, source)
    check_inside(what, target)
    pad = None if pad_value is None else scalar_operand(builder, what, "pad_value", pad_value, DType("uint8"))
    builder.tile_op(tile.CopyOp(source.ssa(builder), target.ssa(builder), pad, scales=str(layout)), what)


__all__ = ["load_scales"]
