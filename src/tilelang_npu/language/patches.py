"""``T.im2col``: the patches of an image that a convolution multiplies, as rows of a tile."""

from __future__ import annotations

import math

from tilelang_npu.errors import TileError
from tilelang_npu.language import movement, vector
from tilelang_npu.language.allocate import allocate_buffer
from tilelang_npu.language.emitted_control import counted_loop, guarded
from tilelang_npu.language.operands import as_memory
from tilelang_npu.language.scalar import And
from tilelang_npu.target import BLOCK
from tilelang_npu.traced.arithmetic import binary as compute
from tilelang_npu.traced.arithmetic import compare
from tilelang_npu.traced.buffers import Element, Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.symbols import Number

__all__ = ["im2col"]


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
    image, tile = as_memory(what, "the image", img), as_memory(what, "the tile", col)
    if image.buffer.space != "gm" or image.dtype != tile.dtype:
        raise TileError(f"{what}: the image {image.describe()} is no global tensor with elements of {tile.dtype}", code="T110",
                        help="pass a parameter of the kernel, with the element type of the tile")
    if image.ndim != 4 or tile.ndim != 2:
        raise TileError(f"{what}: {image.describe()} has {image.ndim} axes and {tile.describe()} {tile.ndim}", code="T131",
                        help="the image has the axes n, height, width and channels, the tile rows and columns")
    images, height, width, channels, rows, columns = (_constant(what, size) for size in (*image.extents, *tile.extents))
    for name, value, least in (("kernel", kernel, 1), ("stride", stride, 1), ("dilation", dilation, 1), ("pad", pad, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise TileError(f"{what}: {name} is {value!r}", code="T150", help=f"{name} must be an integer of at least {least}")
    out_height, out_width = ((size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size in (height, width))
    if out_height <= 0 or out_width <= 0:
        raise TileError(f"{what}: a kernel of {kernel} with dilation {dilation} is larger than the image of {height} x {width}"
                        f" with {pad} zeros on each side", code="T150", help="make the kernel smaller, or pad more")
    pixels, depth, run = images * out_height * out_width, kernel * kernel * channels, math.gcd(columns, channels)
    staged = allocate_buffer(what, (rows, columns), str(tile.dtype), "shared")
    staged.rename("patches", builder.location)
    by_element = run * tile.dtype.nbytes % BLOCK != 0  # a copy's first byte in UB is a multiple of a block
    line = allocate_buffer(what, (1, run), str(tile.dtype), "shared") if by_element else staged
    if pad or pixels % rows or depth % columns:
        vector.clear(staged)

    def calculate(operation: str, left: object, right: object) -> object:
        return compute(builder, operation, left, right)

    with counted_loop(builder, rows) as row:
        pixel = calculate("add", calculate("mul", nhw_step, rows), row)
        top, left = (calculate("sub", calculate("mul", place, stride), pad) for place in (
            calculate("mod", calculate("floordiv", pixel, out_width), out_height), calculate("mod", pixel, out_width)))
        number = calculate("floordiv", pixel, out_height * out_width)
        with counted_loop(builder, columns // run) as part:
            column = calculate("mul", part, run)
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
    movement.copy(staged, tile)


def _constant(what: str, size: object) -> int:
    if not isinstance(size, int):
        raise TileError(f"{what}: the size {size} is not a constant", code="T111",
                        help="give the image and the tile constant sizes")
    return size
