"""The load of a convolution's patches from L1 to L0A."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.ops.convolution import START, Patches
from tilelang_npu.simulator.machine.axis_bounds import AxisBoundsError
from tilelang_npu.simulator.machine.memory import Array


def load_patches(patches: Patches, target: Array, source: Array, row: int, column: int) -> None:
    """Writes a part of the matrix of patches to L0A.

    Args:
        patches: the image, the kernel, and how the kernel moves over the image.
        target: the destination, in fractals: [cells, rows / 16, 16, channels].
        source: the image, in fractals: [1, pixels / 16, 16, channels].
        row, column: the first row and the first column of the part.

    Raises:
        AxisBoundsError: ``row`` or ``column`` is negative or not the first of a fractal.
    """
    cells, channels = target.shape[0], target.shape[-1]
    for name, start, unit in (("row", row, START), ("column", column, channels)):
        if start < 0 or start % unit:
            raise AxisBoundsError(f"starts at {name} {start}", f"start at a multiple of {unit}, the size of a fractal")
    places, inside = _pixels(patches, row, target.size // (cells * channels), column // channels, cells)
    image = source.reshape(-1, channels)
    target[...] = np.where(inside[..., None], image[places], image.dtype.type(0)).reshape(target.shape)


def _pixels(patches: Patches, row: int, rows: int, cell: int, cells: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Returns where the elements of a part of the matrix are in the image.

    Args:
        patches: the image, the kernel, and how the kernel moves over the image.
        row, rows: the first row and the number of rows of the part.
        cell, cells: the first element of the kernel and the number of elements.

    Returns:
        The number of a pixel, 0 where there is none, and whether there is one, both [cells, rows].
    """
    pixel, element = np.arange(row, row + rows), np.arange(cell, cell + cells)[:, None]
    (down, right), (below, across) = divmod(pixel, patches.out_width), divmod(element, patches.kernel_width)
    y = down * patches.stride_height - patches.top + below * patches.dilation_height
    x = right * patches.stride_width - patches.left + across * patches.dilation_width
    inside = ((pixel < patches.out_height * patches.out_width) & (element < patches.cells)
              & (y >= 0) & (y < patches.height) & (x >= 0) & (x < patches.width))
    return np.where(inside, y * patches.width + x, 0), inside


__all__ = ["load_patches"]
