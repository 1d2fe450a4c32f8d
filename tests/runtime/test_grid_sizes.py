"""Calls whose sizes make no grid that can be launched are refused with the sizes."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError


@tilelang.jit(target="npuir")
def copied():
    n = T.symbolic("n")

    @T.prim_func
    def copied(X: T.Tensor((n, 8), "float32"), Y: T.Tensor((n, 8), "float32")):
        with T.Kernel(n // 2, is_npu=True) as (block, _):
            x = T.alloc_shared((2, 8), "float32")
            T.copy(X[block * 2, 0], x)
            T.copy(x, Y[block * 2, 0])

    return copied


@pytest.mark.parametrize(("rows", "message"), [(1, "there is no block to run"), (2 * 65536, "65536 blocks")])
def test_a_grid_without_blocks_or_with_too_many_is_refused(rows: int, message: str) -> None:
    with pytest.raises(TileError, match=message) as raised:
        copied()(np.zeros((rows, 8), np.float32), np.zeros((rows, 8), np.float32))
    assert raised.value.code == "T406"


def test_a_size_of_the_call_makes_the_grid() -> None:
    kernel, x = copied(), np.arange(48, dtype=np.float32).reshape(6, 8)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, x)
    assert kernel.last_launch.blocks == 3
