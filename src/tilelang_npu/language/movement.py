"""``T.copy``: tiles between memories; extents by the rules of both dialects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import MemRefType

from tilelang_npu.dialects import tile
from tilelang_npu.errors import ARRAY_OF_THE_HOST, TileError, is_array, shown
from tilelang_npu.language.dequantise import is_dequantised, scaled
from tilelang_npu.language.elements import ElementType, Extents, element_type, sizes_of
from tilelang_npu.language.operands import (
    as_memory,
    bits_of,
    check_inside,
    element_count,
    is_dense,
    overlap,
    place_of,
    right_aligned,
    same_shape,
    scalar_operand,
    sizes_argument,
    squeezed_axes,
    view,
    with_axes,
)
from tilelang_npu.ops import DType
from tilelang_npu.traced import ir_types
from tilelang_npu.traced.buffers import Addressable, Buffer, Element, Region, Sizes, Tile, same_extent, shape_text
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent

WHAT = "T.copy"


def copy(src: Tile, dst: Tile, *options: object, coalesced_width: object = None, size: Sizes | None = None,
         pad_value: object = None, enable_relu: bool = False, transpose: bool = False, disable_tma: object = None) -> None:
    """Move a tile; another element type at the destination is a cast that rounds to nearest even.

    A buffer moves whole, a slice its extents; ``A[i, j]`` is where a tile starts that has the other side's extents, along
    the last axes where ``A`` has more of them: ``X[batch, row, 0]`` beside a matrix. No start is negative. A
    third positional argument that is a list is ``size``; True or False there is ``enable_relu`` and behind it ``transpose``
    and ``pad_value`` follow. What lies beyond a global tensor arrives as ``pad_value`` (0 without it) and is not written.
    A global slice that is smaller than a whole on-chip buffer, or has fewer axes, moves to or from the buffer's first
    corner; in the ascendc dialect the rest of a buffer that is loaded so arrives as ``pad_value`` too, and so does what lies
    behind a slice at the front of a matrix in L1; in the npuir dialect it keeps what it holds, and ``T.Parallel`` may move a
    tile at each point. ``coalesced_width`` and ``disable_tma`` have no effect.

    ``dst`` is written, ``src`` is read; they have as many elements along each axis that is not 1.

    Example: ``T.copy(A[row, 0], a)``

    Raises:
        TileError: T131, the shapes do not match; T132, both sides are global.
    """
    builder = Builder.running(WHAT)
    names = ["enable_relu", "transpose", "pad_value"] if options and isinstance(options[0], bool) else ["width", "size"]
    if options and isinstance(options[0], (list, tuple)):
        names = ["size"]
    if len(options) > len(names):
        raise TileError(f"{WHAT} takes at most {2 + len(names)} positional arguments here, not {2 + len(options)}", code="T145",
                        help="name the further arguments")
    given = dict(zip(names, options, strict=False))
    region, width, pad_value = given.get("size", size), given.get("width"), given.get("pad_value", pad_value)
    flags = {"enable_relu": given.get("enable_relu", enable_relu), "transpose": given.get("transpose", transpose)}
    if width is not None and (builder.dialect == "ascendc" or isinstance(width, bool) or not isinstance(width, int)):
        raise TileError(f"{WHAT}: the third argument is {width!r}", code="T145",
                        help="it is enable_relu (True or False), a coalesced_width or a list of sizes; name the others, as in"
                             " pad_value=0.0")
    for name, flag in flags.items():
        if not isinstance(flag, (bool, int)):
            raise TileError(f"{WHAT}: {name} is {flag!r}", code="T145", help="it is True or False")
    relu, transposed = bool(flags["enable_relu"]), bool(flags["transpose"])

    source, target = operand(WHAT, "source", src), operand(WHAT, "destination", dst)
    a, b = extents(builder, WHAT, source, target, region, transpose=transposed, corner=builder.dialect == "ascendc")
    if a.buffer.space == b.buffer.space == "gm":
        raise TileError(f"{WHAT} from global {a.name} to global {b.name} has no path", code="T132",
                        help="stage the tile through a buffer: T.alloc_ub or T.alloc_shared")
    check_inside(WHAT, a)
    check_inside(WHAT, b)
    if builder.dialect == "ascendc" and a.buffer.space == "gm" and _is_front(b) and a.ndim == b.ndim:
        b = b.buffer  # the front of a tile in L1: the rest arrives as padding
    if not transposed and overlap(a, b) in ("same", "partial"):
        raise TileError(f"{WHAT}: source {a.describe()} and destination {b.describe()} share elements", code="T112",
                        help="copy to another buffer")
    if pad_value is not None and a.buffer.space != "gm":
        raise TileError(f"{WHAT} with pad_value pads what lies beyond a global tensor, and {a.describe()} is on the chip",
                        code="T231", help="leave it out, or fill the destination first")
    pad = None if pad_value is None else scalar_operand(builder, WHAT, "pad_value", pad_value, a.dtype)
    if {a.buffer.space, b.buffer.space} <= {"ub", "shared"} and is_dequantised(builder, a, b):
        scaled(builder, WHAT, a, b, "rint")
        return
    loaded = a.ssa(builder)
    if a.ndim < b.ndim:
        loaded = view(builder, loaded, [*(1,) * (b.ndim - a.ndim), *a.extents])
    builder.tile_op(tile.CopyOp(loaded, b.ssa(builder), pad, transpose=transposed, relu=relu), WHAT,
                    by_point=builder.dialect == "npuir")


def _is_front(memory: Addressable) -> bool:
    """Whether a slice is the front of a matrix in L1."""
    buffer = memory.buffer
    at_front = all(isinstance(offset, int) and offset == 0 for offset in memory.offsets)
    return buffer.space == "cbuf" and isinstance(memory, Region) and at_front and memory.ndim == len(memory.offsets) == 2


def operand(what: str, role: str, value: object) -> Addressable | Element:
    """One side of a copy: a buffer, a slice, or the element where a tile starts.

    Raises:
        TileError: T110, it is none of these.
    """
    if isinstance(value, Addressable):
        return value
    place = place_of(value)
    if place is None:
        raise TileError(f"{what}: the {role} must be a buffer, a slice or the start of a tile, not {shown(value)}", code="T110",
                        help=ARRAY_OF_THE_HOST if is_array(value) else "write a buffer, A[i:j, :] or A[i, j]")
    return place


def extents(builder: Builder, what: str, source: Addressable | Element, target: Addressable | Element, size: object, *,
            transpose: bool = False, corner: bool = False) -> tuple[Addressable, Addressable]:
    """Both sides as rectangles of one shape; with ``corner`` a global source may be smaller, or have fewer axes.

    Raises:
        TileError: T131, their shapes do not match, or nothing says how much is moved; T130, beyond a buffer.
    """
    if size is not None:
        for side in (source, target):
            if isinstance(side, Region):
                raise TileError(f"{what}: size beside the slice {side.describe()}, which has its own", code="T131",
                                help="give the start of the tile, or leave size out")
        sizes = sizes_argument(builder, what, size)
        a, b = (_sized(what, side, sizes) for side in (source, target))
        return _squeezed(what, a, b, transpose)
    if isinstance(source, Element) and isinstance(target, Element):
        raise TileError(f"{what} between {source.describe()} and {target.describe()}: neither side says how much", code="T131",
                        help="give size=[...], or a buffer or slice on one side")
    cornered = corner and not transpose
    if isinstance(source, Element):
        assert isinstance(target, Addressable)
        if cornered and _fewer_axes(source, target):
            return right_aligned(what, _origin(source), target.extents[-len(source.indices):]), target
        return _squeezed(what, _borrowed(what, source, target, transpose), target, transpose)
    if isinstance(target, Element):
        if cornered and _fewer_axes(target, source):
            source = _corner(source, source.extents[-len(target.indices):])
        return _squeezed(what, source, _borrowed(what, target, source, transpose), transpose)
    if cornered:
        found = _in_corner(source, target)
        if found is not None:
            return found
    return _paired(what, builder, source, target, transpose)


def _sized(what: str, side: Addressable | Element, sizes: list[Extent]) -> Addressable:
    """The rectangle of these sizes at a side's origin; a buffer whose unit axes stand elsewhere is all of itself."""
    constant = isinstance(side, Buffer) and all(isinstance(size, int) for size in (*sizes, *side.extents))
    if constant and isinstance(side, Buffer) and [s for s in sizes if s != 1] == [s for s in side.extents if s != 1]:
        return side
    return right_aligned(what, _origin(side), sizes)


def _origin(side: Addressable | Element) -> Addressable:
    if isinstance(side, Addressable):
        return side
    rank = len(side.indices)
    return Region(side.buffer, side.indices, (1,) * rank, range(rank))


def _borrowed(what: str, start: Element, peer: Addressable, transpose: bool) -> Addressable:
    """The tile at ``start`` with the peer's extents, right-aligned.

    An axis of the peer that an index fixes has extent 1 and keeps its place: ``copy(tile[:, 0], A[i, j])`` fills a column.
    """
    rank = len(start.indices)
    sizes = list(peer.sizes if len(peer.sizes) <= rank and not transpose else peer.extents)
    if transpose:
        sizes[-2:] = sizes[:-3:-1]
    while len(sizes) > rank and isinstance(sizes[0], int) and sizes[0] == 1:
        sizes.pop(0)
    if len(sizes) > rank:
        raise TileError(f"{what}: {start.name} {shape_text(start.buffer.extents)} has {rank} axes; the tile of "
                        f"{peer.describe()} has {len(sizes)}", code="T131",
                        help="drop an axis of the tile, or slice it: buffer[0, :, :]")
    return right_aligned(what, _origin(start), sizes)


def _paired(what: str, builder: Builder, a: Addressable, b: Addressable, transpose: bool) -> tuple[Addressable, Addressable]:
    """Two sides with extents of their own; a whole buffer shrinks to a slice of its rank."""
    if not transpose and isinstance(a, Buffer) is not isinstance(b, Buffer) and a.ndim == b.ndim:
        whole, part = (a, b) if isinstance(a, Buffer) else (b, a)
        shrunk = _shrunk(builder, whole, part)
        if shrunk is not None:
            return (shrunk, part) if whole is a else (part, shrunk)
    return _squeezed(what, a, b, transpose)


def _fewer_axes(start: Element, peer: Addressable) -> bool:
    """Whether a place in a global tensor has fewer axes than the on-chip tile beside it, and unit axes do not tell why."""
    needed = [size for size in peer.extents if not (isinstance(size, int) and size == 1)]
    return start.buffer.space == "gm" != peer.buffer.space and len(needed) > len(start.indices)


def _in_corner(source: Addressable, target: Addressable) -> tuple[Addressable, Addressable] | None:
    """A constant slice of a global tensor beside a whole on-chip buffer that has room for more: both sides of the copy.

    A load names the whole buffer, whose rest is padding; a store only the corner that is written.
    """
    part, whole = (source, target) if source.buffer.space == "gm" else (target, source)
    if isinstance(part, Buffer) or not isinstance(whole, Buffer) or whole.space == "gm" or part.buffer.space != "gm":
        return None
    small, room = with_axes(part, squeezed_axes(part)), with_axes(whole, squeezed_axes(whole))
    if small.ndim > room.ndim or same_shape(small.extents, room.extents):
        return None
    have = room.extents[room.ndim - small.ndim:]
    if not all(isinstance(a, int) and isinstance(b, int) and a <= b for a, b in zip(small.extents, have, strict=True)):
        return None
    return (small, room) if part is source else (_corner(room, small.extents), small)


def _corner(memory: Addressable, extents: Sequence[Extent]) -> Addressable:
    """The first elements of a tile: its last axes with these extents, the first place of the others."""
    dropped = memory.ndim - len(extents)
    sizes = list(memory.sizes)
    for axis, size in zip(memory.kept, [*(1,) * dropped, *extents], strict=True):
        sizes[axis] = size
    return Region(memory.buffer, memory.offsets, sizes, memory.kept[dropped:])


def _shrunk(builder: Builder, whole: Addressable, part: Addressable) -> Addressable | None:
    """The corner of a buffer that a slice of as many axes covers. Constant extents shrink in the npuir dialect only."""
    sizes: list[Extent] = []
    changed = False
    for mine, other in zip(whole.extents, part.extents, strict=True):
        constant = isinstance(mine, int) and isinstance(other, int)
        if constant and (other > mine or (other < mine and builder.dialect == "ascendc")):
            return None
        changed = changed or same_extent(whole.sizes[len(sizes)], other) is not True
        sizes.append(other)
    return Region(whole.buffer, whole.offsets, sizes, whole.kept) if changed else whole


def _squeezed(what: str, a: Addressable, b: Addressable, transpose: bool) -> tuple[Addressable, Addressable]:
    """Both sides with equal shapes; axes of constant size 1 do not count."""
    left = list(a.extents)
    if transpose:
        left[-2:] = left[:-3:-1]
    if same_shape(left, b.extents):
        return a, b
    x, y = with_axes(a, squeezed_axes(a)), with_axes(b, squeezed_axes(b))
    if not transpose and same_shape(x.extents, y.extents):
        return x, y
    raise TileError(f"{what}: source {a.describe()} and destination {b.describe()} have different shapes", code="T131",
                    help="slice the larger side, or give the start of the tile, as in A[i, j]")


def reshape(src: Tile, shape: Extents | Tile | None = None, dst: Tile | None = None
            ) -> Any:  # a buffer, or with a destination none
    """``T.reshape(buffer, shape)`` is the buffer under another shape; ``T.reshape(src, dst)`` copies into a buffer of one.

    It has as many elements as ``src``; ``dst`` is written.

    Example: ``T.reshape(a, (64, 32))``

    Raises:
        TileError: T111, the numbers of elements differ or the source has gaps.
    """
    builder = Builder.running("T.reshape")
    if (shape is None) is (dst is None):
        raise TileError("T.reshape takes a shape or a destination beside the buffer", code="T145",
                        help="write T.reshape(buffer, shape) or T.reshape(src, dst)")
    other = shape if dst is None else dst
    if not isinstance(other, Addressable):
        return _reshaped(builder, "T.reshape", src, sizes_of(other), None)
    if not isinstance(src, Addressable):
        raise TileError(f"T.reshape: the source must be a buffer, not {shown(src)}", code="T110",
                        help="write T.reshape(buffer, shape) or T.reshape(src, dst)")
    if src.dtype != other.dtype:
        raise TileError(f"T.reshape: source {src.describe()} and destination {other.describe()} differ in type", code="T110",
                        help="convert first (T.tile.cast or T.vcast)")
    if overlap(src, other) == "same":  # each element is in its place already
        return None
    seen = _reshaped(builder, "T.reshape", src, other.extents, other.name)
    builder.tile_op(tile.CopyOp(seen.ssa(builder), other.ssa(builder)), "T.reshape")
    return None


def view_of(src: object, shape: Extents | None = None, dtype: ElementType | None = None) -> Buffer:
    """``T.view``: the buffer under another shape, its bits read as another element type.

    With an element type of another width, the buffer is a whole one in UB, and the shape has as many bytes.

    Example: ``T.view(a, (64, 32), "int16")``

    Raises:
        TileError: T110, the width differs, and the source is not a whole buffer on chip; T111, the shape has another number of
            elements or bytes, or the source has gaps.
    """
    builder = Builder.running("T.view")
    if isinstance(src, Addressable) and shape is not None and dtype is not None and _is_whole(src):
        element = element_type(dtype, "T.view")
        if element.nbytes != src.dtype.nbytes:
            return _other_width(builder, src, element, sizes_of(shape))
    sizes = src.extents if shape is None and isinstance(src, Addressable) else sizes_of(shape)
    seen = _reshaped(builder, "T.view", src, sizes, None)
    return seen if dtype is None else bits_as("T.view", seen, dtype)


def _is_whole(memory: Addressable) -> bool:
    """Whether it is all of a buffer in UB, or of one that may come there."""
    whole = not isinstance(memory, Region) or memory.covers()
    return memory.buffer.space in ("ub", "shared", "fragment") and whole and isinstance(memory, (Buffer, Region))


def _other_width(builder: Builder, src: Addressable, element: DType, shape: Sequence[object]) -> Buffer:
    """A whole buffer's bytes as elements of another width."""
    sizes = [size for size in shape if isinstance(size, int) and size > 0]
    count = element_count(src)
    have, wanted = None if count is None else count * src.dtype.nbytes, math.prod(sizes) * element.nbytes
    if len(sizes) != len(shape) or have != wanted:
        raise TileError(f"T.view: {src.describe()} has {have} bytes; {shape_text(shape)} of {element} has {wanted}",
                        code="T111", help="give a shape of as many bytes, as in T.view(a, (rows, columns), dtype)")
    builder.require_kernel("T.view")
    value = bits_of(builder.discardable, src.buffer.value, element, sizes)
    seen = Buffer(src.name, element, sizes, src.buffer.space, value, src.buffer.location)
    seen.unnamed = True
    return seen


def vbitcast(src: Tile, dtype: ElementType, size: Sizes | None = None) -> Buffer:
    """The same bits as another element type of the same width: a buffer that shares its memory with ``src``.

    Example: ``T.vbitcast(a, "int32")``

    Raises:
        TileError: T110, the width differs; T111, a size that only run time knows.
    """
    return _bitcast("T.vbitcast", src, dtype, size)


def npuir_bitcast(src: Tile, dtype: ElementType, size: Sizes | None = None) -> Buffer:
    """``T.vbitcast`` under its npuir name.

    Example: ``T.npuir_bitcast(a, "int32")``
    """
    return _bitcast("T.npuir_bitcast", src, dtype, size)


def _bitcast(what: str, src: Tile, dtype: object, size: object) -> Buffer:
    builder = Builder.running(what)
    builder.require_kernel(what)
    memory = as_memory(what, "the source", src)
    if size is not None:
        memory = right_aligned(what, memory, sizes_argument(builder, what, size))
    return bits_as(what, memory, dtype)


def bits_as(what: str, memory: Addressable, dtype: object) -> Buffer:
    """A buffer that has the bits of a rectangle as another element type.

    Raises:
        TileError: T110, the width differs; T111, a size that only run time knows.
    """
    builder, element = Builder.running(what), element_type(dtype, what)
    shape = [size for size in memory.extents if isinstance(size, int)]
    if len(shape) != memory.ndim:
        raise TileError(f"{what}: {memory.describe()} has a size that only run time knows", code="T111",
                        help="take a slice of constant size")
    if element.nbytes != memory.dtype.nbytes or memory.dtype.bits != element.bits:
        raise TileError(f"{what}: {memory.describe()} has elements of {memory.dtype.bits} bits, {element} has {element.bits}",
                        code="T110", help="convert with T.tile.cast or T.vcast")
    value = memory.ssa(builder)
    assert isinstance(value.type, MemRefType)
    kind = MemRefType(ir_types.element_type(element), value.type.shape, value.type.layout, value.type.memory_space)
    made = builder.discardable(tile.ViewOp(value, kind)).results[0]
    seen = Buffer(memory.name, element, tuple(shape), memory.buffer.space, made, memory.buffer.location)
    seen.unnamed = True
    return seen


def _reshaped(builder: Builder, what: str, src: object, shape: Sequence[object], label: str | None) -> Buffer:
    if not isinstance(src, Addressable):
        raise TileError(f"{what}: the source must be a buffer, not {shown(src)}", code="T110",
                        help="give a buffer or a slice of one")
    builder.require_kernel(what)
    sizes: list[int] = []
    for size in shape:
        if not isinstance(size, int) or size <= 0:
            raise TileError(f"{what}: size {size} is not a positive constant", code="T111",
                            help="on-chip shapes are constants")
        sizes.append(size)
    count = math.prod(sizes)
    have = element_count(src)
    if have != count or not is_dense(src):
        why = "has gaps between its rows" if have == count else f"has {have if have is not None else '?'} elements"
        raise TileError(f"{what}: {src.describe()} {why}; {shape_text(shape)} has {count}", code="T111",
                        help="copy it into a buffer of that shape")
    value = view(builder, src.ssa(builder), sizes)
    made = Buffer(label or src.name, src.dtype, sizes, src.buffer.space, value, src.buffer.location)
    made.unnamed = label is None
    return made
