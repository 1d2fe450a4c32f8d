"""Reasons of edits: the part of the time that shrank most, and the figures that changed."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.improve.reasons import reason


def tiles(rows: int, height: int, blocks: int, stages: int = 1) -> Any:
    """The launch of a kernel that doubles rows in tiles of some height; blocks divide the tiles among them."""
    @T.prim_func
    def main(X: T.Tensor((rows, 128), "float32")):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            x = T.alloc_shared((height, 128), "float32")
            for t in T.Pipelined(rows // height // blocks, num_stages=stages):
                T.copy(X[(block * (rows // height // blocks) + t) * height, 0], x)
                T.vadd(x, x, x)
                T.copy(x, X[(block * (rows // height // blocks) + t) * height, 0])

    return tilelang.compile(main, target="npuir").trace()


def test_fewer_blocks_shrink_the_launch() -> None:
    before, after = tiles(48, 1, 48), tiles(48, 8, 6)
    text = reason(before, after)
    assert text.startswith(f"The launch overhead shrinks most: {before.split.launch:.1f} us become {after.split.launch:.1f}. ")
    assert "6 blocks in place of 48, on 6 cores in place of 48" in text
    assert "as many blocks as" not in text


def test_larger_tiles_shrink_the_steady_state() -> None:
    text = reason(tiles(1536, 1, 48), tiles(1536, 16, 48))
    assert re.match(r"The steady state shrinks most: \d+\.\d us become \d+\.\d\. ", text)
    operations = re.search(r"All blocks together execute (\d+) operations and waits in place of (\d+)", text)
    assert operations is not None and int(operations[1]) < int(operations[2]) / 4
    assert "blocks in place" not in text and "KB" not in text, "both launch as many blocks and move the same bytes"


@pytest.mark.parametrize("blocks", [6, 48])
def test_a_version_that_is_not_faster_has_no_reason(blocks: int) -> None:
    launch = tiles(96, 1, blocks)
    assert reason(launch, launch) == ""
