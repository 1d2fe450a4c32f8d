"""The grid arguments of a kernel: the blocks of a launch along the first axis, one along the others."""

from __future__ import annotations

import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import simulate


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_kernel_reads_how_many_blocks_there_are(blocks: int) -> None:
    outside = f"memref<64xi32, {texts.GM}>"
    stores = "\n".join(f"    %at{place} = arith.constant {place} : index\n    memref.store %{name}, %A[%at{place}] : {outside}"
                       for place, name in enumerate(("x", "y", "z")))
    text = texts.module(texts.kernel("AIV", [f"%A: {outside}", "%x: i32", "%y: i32", "%z: i32"], stores))
    found = np.zeros(64, np.int32)
    simulate(parse_module(text), [found], blocks=blocks)
    assert found[:4].tolist() == [blocks, 1, 1, 0]
