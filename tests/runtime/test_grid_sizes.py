"""Calls whose sizes make no grid that can be launched are refused with the sizes."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC
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


def halves(points: int, dialect: str, *, symbolic: bool, named: bool):
    n = T.symbolic("n") if symbolic else points

    @T.prim_func
    def main(X: T.Tensor((n, 16), "float32"), Y: T.Tensor((n, 16), "float32")):
        with T.Kernel(n, is_npu=True) as (cid, vid):
            x = T.alloc_shared((1, 8), "float32")
            for half in T.serial(1 if named else 2):
                T.copy(X[cid, (vid if named else half) * 8], x)
                T.copy(x, Y[cid, (vid if named else half) * 8])

    return tilelang.compile(main, out_idx=[1], target=dialect, pass_configs=SYNC if dialect == "ascendc" else None)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(("dialect", "named"), [("ascendc", True), ("ascendc", False), ("npuir", False)])
def test_a_launch_counts_the_points_of_the_grid_not_the_vector_cores(dialect: str, named: bool, symbolic: bool) -> None:
    for points in (49152, 65535):
        x = np.arange(points * 16, dtype=np.float32).reshape(points, 16)
        kernel = halves(points, dialect, symbolic=symbolic, named=named)
        np.testing.assert_array_equal(kernel(x), x)
        assert kernel.last_launch.blocks == points * (2 if dialect == "ascendc" else 1)
    with pytest.raises(TileError, match="65536 blocks, and a launch has at most 65535") as raised:
        halves(65536, dialect, symbolic=symbolic, named=named)(np.zeros((65536, 16), np.float32))
    assert raised.value.code == "T406"


def test_a_size_of_the_call_makes_the_grid() -> None:
    kernel, x = copied(), np.arange(48, dtype=np.float32).reshape(6, 8)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, x)
    assert kernel.last_launch.blocks == 3
