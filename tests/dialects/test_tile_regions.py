"""Valid regions of a buffer: an offset and a size for each axis, and only axes of size 1 are dropped."""

from __future__ import annotations

import pytest

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError


def _region(offsets: str, sizes: str, kept: str, result: str) -> str:
    return (f"func.func @f(%m: memref<16x4x8xf32>, %n: index) {{\n %0 = tile.region %m {offsets} {sizes} keep [{kept}] "
            f": memref<16x4x8xf32> to {result}\n func.return\n}}\n")


@pytest.mark.parametrize(("offsets", "sizes", "kept", "result", "message"), [
    ("[2, 0, 0]", "[4, 1, 8]", "2", "memref<8xf32, strided<[1], offset: 64>>",
     "axis 0 has size 4 and is not kept; only axes of size 1 can be dropped"),
    ("[2, 0, 0]", "[1, %n, 8]", "0, 2", "memref<1x8xf32, strided<[32, 1], offset: 64>>",
     "axis 1 has a dynamic size and is not kept"),
    ("[2, 0]", "[1, 8]", "1", "memref<8xf32, strided<[1], offset: 64>>", "2 offsets and 2 sizes for a buffer of rank 3"),
    ("[2, 0, 0]", "[1, 1, 8]", "0, 2", "memref<8xf32, strided<[1], offset: 64>>",
     "is not the type that the source, the offsets and the sizes imply"),
])
def test_what_is_no_region_is_refused(offsets: str, sizes: str, kept: str, result: str, message: str) -> None:
    with pytest.raises(TileError, match=message):
        parse_module(_region(offsets, sizes, kept, result))


def test_axes_of_size_one_can_be_left_out() -> None:
    module = parse_module(_region("[2, 0, 0]", "[1, 4, 8]", "1, 2", "memref<4x8xf32, strided<[8, 1], offset: 64>>"))
    region, = (op for op in module.walk() if isinstance(op, tile.RegionOp))
    assert tile.shape_of(region.result) == (4, 8)
