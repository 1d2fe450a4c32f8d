"""Tiles that vector work makes for a ``T.Parallel``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from xdsl.dialects.builtin import IntegerType, MemRefType, ModuleOp, Signedness
from xdsl.ir import Block, Region

from tilelang_npu.analysis.buffers import element_type_of
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.transforms.tile.vectorise_parallel.vector_tiles import VectorTiles

I8, I16, I32 = (IntegerType(bits) for bits in (8, 16, 32))
UI8 = IntegerType(8, Signedness.UNSIGNED)


@pytest.fixture
def tiles() -> Iterator[VectorTiles]:
    loop = tile.ParallelOp([4, 6], Region(Block()))
    module = ModuleOp([loop])
    yield VectorTiles(loop, [4, 6])
    assert module.body.block.last_op is loop


def tile_of(tiles: VectorTiles, element: Any, *shape: int) -> Any:
    return tiles.emit(tile.AllocOp("x", MemRefType(element, shape, memory_space=hivm.address_space("ub")))).results[0]


def made_before(tiles: VectorTiles) -> list[str]:
    """The operations before the loop."""
    block = tiles.loop.parent_block()
    assert block is not None
    return [op.name for op in block.ops if op is not tiles.loop]


@pytest.mark.parametrize(("given", "wanted", "mode"), [(I8, I32, "rint"), (I32, I8, "truncwithoverflow"), (UI8, I16, "rint")])
def test_a_row_is_resized_as_a_row(tiles: VectorTiles, given: Any, wanted: Any, mode: str) -> None:
    made = tiles.convert_integers(tile_of(tiles, given, 1, 6), wanted)
    assert tile.shape_of(made) == (1, 6)
    assert element_type_of(made) == wanted
    copy = tiles.loop.prev_op
    assert isinstance(copy, tile.CopyOp)
    assert copy.round_mode is not None
    assert copy.round_mode.data == mode


def test_one_width_is_another_view(tiles: VectorTiles) -> None:
    given = tile_of(tiles, UI8, 4, 6)
    made = tiles.convert_integers(given, I8)
    assert element_type_of(made) == I8
    assert made_before(tiles) == ["tile.alloc", "tile.view"]
    assert tiles.as_unsigned(made) is given
    assert tiles.convert_integers(given, UI8) is given


def test_only_what_is_smaller_than_the_box_is_broadcast(tiles: VectorTiles) -> None:
    whole, row = tile_of(tiles, I32, 4, 6), tile_of(tiles, I32, 1, 6)
    assert tiles.broadcast(whole) is whole
    assert tile.shape_of(tiles.broadcast(row)) == (4, 6)
    assert made_before(tiles)[-1] == "tile.broadcast"


def test_truth_values_have_no_sign(tiles: VectorTiles) -> None:
    mask = tile_of(tiles, IntegerType(1), 4, 6)
    assert tiles.as_unsigned(mask) is mask


def test_a_view_that_is_used_is_not_dropped(tiles: VectorTiles) -> None:
    given = tile_of(tiles, UI8, 4, 6)
    seen = tiles.view_as(given, I8)
    copied = tiles.emit(tile.CopyOp(seen, tile_of(tiles, I8, 4, 6)))
    tiles.erase_unused_view(seen)
    assert seen.owner in list(tiles.loop.parent_block().ops)  # type: ignore[union-attr]
    copied.detach()
    copied.erase()
    tiles.erase_unused_view(seen)
    assert "tile.view" not in made_before(tiles)
