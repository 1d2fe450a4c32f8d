"""Which tiles a block takes: T.Persistent and T.use_swizzle."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path
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


@pytest.mark.parametrize(("rows", "columns", "blocks", "group"), [(4, 4, 3, 8), (3, 10, 4, 5), (5, 7, 8, 8), (1, 1, 2, 8)])
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
    ("for x in T.Persistent([4, 4], 2, cid):\n                T.barrier_all()", "needs 2 loop variables, not 1"),
    ("for x, y in T.Persistent([4, 0], 2, cid):\n                T.barrier_all()", "domain extents must be positive, not 0"),
    ("for x, y in T.Persistent([4, 4], 0, cid):\n                T.barrier_all()", "wave_size must be positive, not 0"),
    ("for x, y in T.Persistent([4, 4], 2, cid, -1):\n                T.barrier_all()", "group_size must be positive, not -1"),
    ("for x, y in T.Persistent([4, 4], 2, 2):\n                T.barrier_all()", "0 <= index < wave_size: it is 2"),
    ("for x, y in T.Persistent([5, 7], 2, cid, 4):\n                T.barrier_all()", "divisible by group_size: 7 tiles"),
    ("place = T.use_swizzle(cid, 100, 64, 64, 16, 16)", "not a whole number of blocks"),
])
def test_mistakes(kernel: Any, statement: str, message: str) -> None:
    with pytest.raises(TileError, match=message):
        kernel(statement)


@pytest.mark.parametrize("deep", [0, 2])
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(("columns", "rows", "width", "direction"), [
    (3, 4, 3, "row"), (4, 5, 2, "row"), (5, 3, 2, "column"), (4, 4, 10, "row"), (2, 2, 1, "column"), (7, 1, 4, "row")])
def test_panels_order_the_blocks_themselves(columns: int, rows: int, width: int, direction: str, *, symbolic: bool, deep: int,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    high, wide = (T.symbolic("high"), T.symbolic("wide")) if symbolic else (rows * 8, columns * 8)

    @T.prim_func
    def main(o: T.Tensor((max(deep, 1), high, wide), "float32")):  # type: ignore[no-untyped-def, valid-type]
        with T.Kernel(T.ceildiv(wide, 8), T.ceildiv(high, 8), max(deep, 1), threads=128) as (bx, by, bz):
            T.use_swizzle(width, order=direction, enable=deep > 0)
            T.use_swizzle(panel_size=width, order=direction, enable=deep == 0)
            tile = T.alloc_fragment((8, 8), "float32")
            place = by * T.ceildiv(wide, 8) + bx
            T.fill(tile, place)
            T.copy(tile, o[bz, by * 8, bx * 8])
            T.print(place)

    found = np.full((max(deep, 1), rows * 8, columns * 8), -1, np.float32)
    tilelang.compile(main)(found)
    places = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    np.testing.assert_array_equal(found, np.broadcast_to(places.repeat(8, 0).repeat(8, 1), found.shape))
    if direction == "row":
        expected = order(rows, columns, width)
    else:
        expected = [place % rows * columns + place // rows for place in order(columns, rows, width)]
    printed = [int(line.split("]")[1]) for line in capsys.readouterr().out.splitlines()]
    assert printed == expected * max(deep, 1)


@pytest.mark.parametrize("grid", ["4", "2, 2"])
def test_panels_need_two_axes(grid: str, tmp_path: Path) -> None:
    """On a grid of one axis the form for GPUs changes nothing, and says so."""
    names = "block" if grid == "4" else "column, row"
    (tmp_path / "panels.py").write_text(f"""
import tilelang_npu as tilelang
import tilelang_npu.language as T

@T.prim_func
def main(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
    with T.Kernel({grid}, is_npu=True) as ({names}, _):
        T.use_swizzle(2)
        a = T.alloc_shared((1, 8), "float32")
        T.copy(A[{"block" if grid == "4" else "row * 2 + column"}, 0], a)
        T.copy(a, B[{"block" if grid == "4" else "row * 2 + column"}, 0])

kernel = tilelang.compile(main, out_idx=[1], target="npuir")
""")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel = runpy.run_path(str(tmp_path / "panels.py"))["kernel"]
    report = [str(one.message) for one in caught if "use_swizzle" in str(one.message)]
    assert len(report) == (grid == "4")
    assert all(text.startswith("T720: T.use_swizzle(2) has no effect: it orders blocks along the first two") for text in report)
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_array_equal(kernel(a), a)
