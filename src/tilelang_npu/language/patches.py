"""``T.im2col`` and ``T.tile.im2col``: the patches of an image that a convolution multiplies, as rows of a tile."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language import movement, scalar, vector
from tilelang_npu.language.allocate import allocate_buffer
from tilelang_npu.language.cube_moves import require_memory
from tilelang_npu.language.emitted_control import counted_loop, guarded
from tilelang_npu.language.operands import as_memory, resized
from tilelang_npu.language.scalar import And
from tilelang_npu.ops.convolution import START, Patches
from tilelang_npu.target import BLOCK
from tilelang_npu.traced.arithmetic import binary as compute
from tilelang_npu.traced.arithmetic import compare
from tilelang_npu.traced.buffers import Element, Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import extent
from tilelang_npu.traced.symbols import Number

__all__ = ["im2col", "load_patches"]

Pair = tuple[int, int]


def im2col(img: Tile, col: Tile, nhw_step: Number, c_step: Number, kernel: int, stride: int, dilation: int, pad: int,
           eviction_policy: object = None, annotations: object = None) -> None:
    """Write to ``col`` the elements of ``img`` that a convolution with a square kernel multiplies.

    ``img`` is a global tensor of the shape (n, height, width, channels), ``col`` a tile of rows x columns elements. The
    convolution as a product of matrices has a row for each output pixel, in the order (n, out height, out width), and a column
    for each of the kernel's elements, in the order (kernel height, kernel width, channels). ``col`` becomes the tile with the
    number ``nhw_step`` along the rows and ``c_step`` along the columns of that matrix. Elements outside of the image, and those
    past the last row or column of the matrix, are 0.

    Runs of elements with neighbouring channels are loaded to UB, and the tile is copied from there. The length of a run is the
    greatest common divisor of the number of channels and the tile's columns; runs that are not a multiple of 32 bytes are
    slower, since their elements are moved one by one.

    Example: ``T.im2col(data, data_shared, by, k, 3, 1, 1, 1)``

    Args:
        img: the image, whose sizes are constants.
        col: the tile, with elements of the same type; it is written.
        nhw_step, c_step: the number of the tile.
        kernel: the height and width of the kernel.
        stride: the distance of neighbouring outputs, in pixels.
        dilation: the distance of neighbouring elements of the kernel, in pixels.
        pad: the number of zeros on each side of the image.
        eviction_policy, annotations: have no effect.

    Raises:
        TileError: T110, ``img`` is no global tensor, or the element types differ; T131, ``img`` does not have four axes, or
            ``col`` does not have two; T111, a size is not a constant; T150, ``kernel``, ``stride`` or ``dilation`` is not
            positive, ``pad`` is negative, or the kernel is larger than the padded image.
    """
    what = "T.im2col"
    builder = Builder.running(what)
    builder.require_kernel(what)
    image, part = as_memory(what, "the image", img), as_memory(what, "the tile", col)
    if image.buffer.space != "gm" or image.dtype != part.dtype:
        raise TileError(f"{what}: the image {image.describe()} is no global tensor with elements of {part.dtype}", code="T110",
                        help="pass a parameter of the kernel, with the element type of the tile")
    if image.ndim != 4 or part.ndim != 2:
        raise TileError(f"{what}: {image.describe()} has {image.ndim} axes and {part.describe()} {part.ndim}", code="T131",
                        help="the image has the axes n, height, width and channels, the tile rows and columns")
    images, height, width, channels, rows, columns = (_constant(what, size) for size in (*image.extents, *part.extents))
    for name, value, least in (("kernel", kernel, 1), ("stride", stride, 1), ("dilation", dilation, 1), ("pad", pad, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise TileError(f"{what}: {name} is {value!r}", code="T150", help=f"{name} must be an integer of at least {least}")
    out_height, out_width = ((size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size in (height, width))
    if out_height <= 0 or out_width <= 0:
        raise TileError(f"{what}: a kernel of {kernel} with dilation {dilation} is larger than the image of {height} x {width}"
                        f" with {pad} zeros on each side", code="T150", help="make the kernel smaller, or pad more")
    pixels, depth, run = images * out_height * out_width, kernel * kernel * channels, math.gcd(columns, channels)
    staged = allocate_buffer(what, (rows, columns), str(part.dtype), "shared")
    staged.rename("patches", builder.location)
    by_element = run * part.dtype.nbytes % BLOCK != 0  # a copy's first byte in UB is a multiple of a block
    line = allocate_buffer(what, (1, run), str(part.dtype), "shared") if by_element else staged
    if pad or pixels % rows or depth % columns:
        vector.clear(staged)

    def calculate(operation: str, left: object, right: object) -> object:
        return compute(builder, operation, left, right)

    with counted_loop(builder, rows) as row:
        pixel = calculate("add", calculate("mul", nhw_step, rows), row)
        top, left = (calculate("sub", calculate("mul", place, stride), pad) for place in (
            calculate("mod", calculate("floordiv", pixel, out_width), out_height), calculate("mod", pixel, out_width)))
        number = calculate("floordiv", pixel, out_height * out_width)
        with counted_loop(builder, columns // run) as step:
            column = calculate("mul", step, run)
            element = calculate("add", calculate("mul", c_step, columns), column)
            cell, channel = calculate("floordiv", element, channels), calculate("mod", element, channels)
            y = calculate("add", top, calculate("mul", calculate("floordiv", cell, kernel), dilation))
            x = calculate("add", left, calculate("mul", calculate("mod", cell, kernel), dilation))
            inside = [compare(builder, "lt", pixel, pixels), compare(builder, "lt", element, depth)]
            for place, size in ((y, height), (x, width)):
                inside += [compare(builder, "ge", place, 0), compare(builder, "lt", place, size)]
            with guarded(builder, And(*inside)):
                if by_element:
                    movement.copy(image[number, y, x, channel], line)
                    with counted_loop(builder, run) as place:
                        target = staged[row, calculate("add", column, place)]
                        assert isinstance(target, Element)
                        target.store(line[0, place])
                else:
                    movement.copy(image[number, y, x, channel], staged[row, column], size=[1, run])
    movement.copy(staged, part)


def load_patches(dst: Tile, src: Tile, image: Pair, kernel: Pair, stride: Pair, dilation: Pair,
                 pad: tuple[int, int, int, int], m_start: Number, k_start: Number, m_extent: Number, k_extent: Number) -> None:
    """Load the elements of an image in L1 that a convolution multiplies, and write them to ``dst`` in L0A.

    ``src`` has the shape (height * width, channels), and its rows have 32 bytes: 16 channels of two bytes, 8 of four. The
    convolution as a product of matrices has a row for each output pixel, in the order (out height, out width), and a column for
    each of the kernel's elements, in the order (kernel height, kernel width, channels). ``dst`` becomes the part of that matrix
    that begins at row ``m_start`` and column ``k_start``. Elements outside of the image, and those past the last row or column
    of the matrix, are 0. Rows are loaded in whole fractals of 16. An image with more channels is loaded in groups, each by a
    call.

    Runs on pipe MTE1 (AscendC: ``LoadData`` with ``LoadData3DParamsV2``).

    Example: ``T.tile.im2col(left, image, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 0, 0, 64, 144)``

    Args:
        dst: the matrix in L0A, at least ``m_extent`` x ``k_extent``; the part that is loaded begins at its first element.
        src: the image in L1, with elements of the same type.
        image: the height and width of the image in pixels.
        kernel: the height and width of the kernel.
        stride: the distance of neighbouring outputs in pixels, along height and width.
        dilation: the distance of neighbouring elements of the kernel in pixels, along height and width.
        pad: the number of zeros on the left, right, top and bottom side of the image.
        m_start: the first row, a multiple of 16.
        k_start: the first column, a multiple of the number of channels.
        m_extent: the number of rows.
        k_extent: the number of columns, a multiple of the number of channels.

    Raises:
        TileError: T110, the element types differ; T111, a row of the image does not have 32 bytes, or the image has too few
            rows; T122, ``dst`` is not in L0A or ``src`` not in L1; T131, ``dst`` is not a matrix, or smaller than the part;
            T145, a start or an extent is not a multiple as stated; T150, the other numbers are not constants, or do not
            describe a convolution; T502, while the kernel runs, a start is negative or not a multiple as stated.
    """
    what = "T.tile.im2col"
    builder = Builder.running(what)
    builder.require_kernel(what)
    target, source = as_memory(what, "the destination", dst), as_memory(what, "the image", src)
    require_memory(what, "source", source, ("cbuf",))
    if target.buffer.space != "ca":
        raise TileError(f"{what}: the destination {target.describe()} is not in L0A", code="T122",
                        help="allocate it with T.alloc_L0A")
    if source.dtype != target.dtype:
        raise TileError(f"{what}: the image has elements of {source.dtype}, the destination of {target.dtype}", code="T110",
                        help="give both one element type: loads to L0A do not convert")
    patches = _patches(what, (image, kernel, stride, dilation), pad)
    channels, pixels = BLOCK // source.dtype.nbytes, patches.height * patches.width
    if source.ndim != 2 or source.extents[1] != channels or (isinstance(have := source.extents[0], int) and have < pixels):
        raise TileError(f"{what}: the image {source.describe()} is not a matrix of {pixels} pixels x {channels} channels",
                        code="T111", help=f"load {channels} channels at a time, which have 32 bytes, into a buffer of "
                                          f"{pixels} x {channels} elements")
    if target.ndim != 2:
        raise TileError(f"{what}: the destination {target.describe()} has {target.ndim} axes", code="T131",
                        help="pass a matrix in L0A")
    row, column, rows, columns = (extent(builder, value) for value in (m_start, k_start, m_extent, k_extent))
    for name, value, unit, least in (("m_start", row, START, 0), ("k_start", column, channels, 0),
                                     ("m_extent", rows, 1, 1), ("k_extent", columns, channels, 1)):
        if isinstance(value, int) and (value % unit or value < least):
            raise TileError(f"{what}: {name} is {value}", code="T145", help=f"{name} must be " + (
                f"a {'positive ' if least else ''}multiple of {unit}" if unit > 1 else "positive"))
    part = [extent(builder, scalar.ceildiv(rows, START) * START), columns]
    for axis, size, whole, unit in zip(("rows", "columns"), part, target.extents, (START, channels), strict=True):
        if isinstance(size, int) and isinstance(whole, int) and size > -(-whole // unit) * unit:
            raise TileError(f"{what}: the part has {size} {axis}, and the destination {target.describe()} has {whole}",
                            code="T131", help="allocate a larger matrix, or load a smaller part")
    loaded, stored = source.ssa(builder), resized(target, part).ssa(builder)
    builder.tile_op(tile.PatchLoadOp(loaded, stored, builder.index(row), builder.index(column), patches), what)


def _patches(what: str, pairs: Sequence[Sequence[int]], pad: Sequence[int]) -> Patches:
    """Returns the geometry of a convolution from its image, kernel, stride and dilation, and its padding.

    Raises:
        TileError: T150, a number is not an integer, or they do not describe a convolution.
    """
    for given, count in (*((pair, 2) for pair in pairs), (pad, 4)):
        if not isinstance(given, (list, tuple)) or len(given) != count or not all(type(each) is int for each in given):
            raise TileError(f"{what}: {given!r} is not {count} integers", code="T150",
                            help="give (height, width) of the image, the kernel, the strides and the dilations, and "
                                 "(left, right, top, bottom) for the padding, as constants")
    patches = Patches(*(each for pair in pairs for each in pair), *pad)
    if (problem := patches.problem()) is not None:
        raise TileError(f"{what}: {problem}", code="T150", help="correct the number, or pad more")
    return patches


def _constant(what: str, size: object) -> int:
    if not isinstance(size, int):
        raise TileError(f"{what}: the size {size} is not a constant", code="T111",
                        help="give the image and the tile constant sizes")
    return size
