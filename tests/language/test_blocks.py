"""Which tiles a block takes: T.Persistent and T.use_swizzle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


def visits(rows: int, columns: int, blocks: int, group: int) -> Any:
    """Each tile of 8 elements counts its visits and notes its number."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns * 8), "float32"), B: T.Tensor((rows, columns * 8), "float32")):
        with T.Kernel(blocks, is_npu=True) as (cid, _):
            tile = T.alloc_ub((1, 8), "float32")
            with T.Scope("V"):
                for x, y in T.Persistent([rows, columns], blocks, cid, group):
                    T.copy(A[x, y * 8], tile)
                    T.tile.add(tile, tile, 1.0)
                    T.copy(tile, B[x, y * 8])

    return main


@pytest.mark.parametrize(("rows", "columns", "blocks", "group"), [(4, 4, 3, 8), (3, 10, 4, 5), (5, 7, 8, 4), (1, 1, 2, 8)])
def test_every_tile_once(rows: int, columns: int, blocks: int, group: int, rng: np.random.Generator) -> None:
    a = rng.standard_normal((rows, columns * 8)).astype(np.float32)
    kernel = tilelang.compile(visits(rows, columns, blocks, group), out_idx=[1], target="ascendc",
                              pass_configs={"tl.ascend_auto_sync": True})
    np.testing.assert_array_equal(kernel(a), a + 1)


def swizzled(rows: int, columns: int, off: int, direction: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((rows * columns + 2, 8), "float32"), B: T.Tensor((rows * columns + 2, 8), "float32")):
        with T.Kernel(rows * columns + 2, is_npu=True) as (cid, _):
            tile = T.alloc_ub((1, 8), "float32")
            with T.Scope("V"):
                place = T.use_swizzle(cid, rows * 16, columns * 16, 64, 16, 16, off, direction)
                T.copy(A[cid, 0], tile)
                T.copy(tile, B[place, 0])

    return main


def order(rows: int, columns: int, off: int) -> list[int]:
    """The tiles in the order of bands, as Catlass's GemmIdentityBlockSwizzle takes them with direction 0."""
    found = []
    for band in range(-(-rows // off)):
        members = range(band * off, min(rows, band * off + off))
        across = range(columns) if band % 2 == 0 else reversed(range(columns))
        found += [row * columns + column for column in across for row in members]
    return found


@pytest.mark.parametrize(("rows", "columns", "off", "direction"), [(4, 3, 3, 0), (5, 4, 2, 0), (3, 5, 2, 1), (2, 2, 1, 0)])
def test_swizzle(rows: int, columns: int, off: int, direction: int) -> None:
    count = rows * columns
    a = np.repeat(np.arange(count + 2, dtype=np.float32)[:, None], 8, axis=1)
    kernel = tilelang.compile(swizzled(rows, columns, off, direction), out_idx=[1], target="ascendc",
                              pass_configs={"tl.ascend_auto_sync": True})
    if direction == 0:
        expected = order(rows, columns, off)
    else:
        expected = [place % rows * columns + place // rows for place in order(columns, rows, off)]
    places = np.argsort(kernel(a)[:, 0])
    np.testing.assert_array_equal(places, [*expected, count, count + 1])


@pytest.mark.parametrize(("statement", "message"), [
    ("for x in T.Persistent([4, 4], 2, cid):\n                T.barrier_all()", "has 2 loop variables, not 1"),
    ("for x, y in T.Persistent([4, 0], 2, cid):\n                T.barrier_all()", "0 is not a positive constant"),
    ("place = T.use_swizzle(cid, 100, 64, 64, 16, 16)", "not a whole number of blocks"),
])
def test_mistakes(kernel: Any, statement: str, message: str) -> None:
    with pytest.raises(TileError, match=message):
        kernel(statement)
