"""The load of patches to L0A on arrays (``simulator/machine/load_patches.py``), element by element."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_npu.ops.convolution import Patches
from tilelang_npu.simulator.machine.axis_bounds import AxisBoundsError
from tilelang_npu.simulator.machine.load_patches import load_patches

PATCHES = Patches(5, 6, 3, 2, 2, 1, 1, 2, 1, 2, 0, 1)
CHANNELS = 8


def loaded(row: int, column: int, rows: int = 32, cells: int = 4) -> np.ndarray:
    """A part of the matrix, [rows, cells x CHANNELS]; the destination has other numbers before."""
    source = np.arange(1, 32 * CHANNELS + 1, dtype=np.float32).reshape(1, 2, 16, CHANNELS)
    target = np.full((cells, rows // 16, 16, CHANNELS), -1, np.float32)
    load_patches(PATCHES, target, source, row, column)
    return target.reshape(cells, rows, CHANNELS).transpose(1, 0, 2).reshape(rows, -1)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (16, 0), (0, 16), (16, 24)])
def test_each_element_is_that_of_its_pixel(row: int, column: int) -> None:
    found = loaded(row, column)
    for (m, k), value in np.ndenumerate(found):
        pixel, (cell, channel) = row + m, divmod(column + k, CHANNELS)
        y = pixel // PATCHES.out_width * 2 + cell // 2
        x = pixel % PATCHES.out_width - 1 + cell % 2 * 2
        there = pixel < PATCHES.out_height * PATCHES.out_width and cell < 6 and 0 <= y < 5 and 0 <= x < 6
        assert value == ((y * 6 + x) * CHANNELS + channel + 1 if there else 0), (m, k)


@pytest.mark.parametrize(("row", "column"), [(8, 0), (0, 4), (-16, 0), (0, -8)])
def test_a_start_inside_of_a_fractal_is_refused(row: int, column: int) -> None:
    with pytest.raises(AxisBoundsError):
        loaded(row, column)
