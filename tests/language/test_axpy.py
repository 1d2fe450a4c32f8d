"""``T.tile.axpy`` of float16 into float32: the instruction converts the input and the scalar, which is of float16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.frontend import trace


def accumulated(count: int, source: str, target: str) -> Any:
    @T.prim_func
    def main(X: T.Tensor((count,), source), Y: T.Tensor((count,), target), s: T.float32, O: T.Tensor((count,), target)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((count,), source)
            y = T.alloc_ub((count,), target)
            if vid == 0:
                T.copy(X, x)
                T.copy(Y, y)
                T.tile.axpy(y, x, 0.1)
                T.tile.axpy(y, x, s)
                T.copy(y, O)

    return main


@pytest.mark.parametrize("count", [64, 100, 1])
def test_half_into_single_precision(rng: np.random.Generator, count: int) -> None:
    x, y = rng.standard_normal(count).astype(np.float16), rng.standard_normal(count).astype(np.float32)
    kernel = tilelang.compile(accumulated(count, "float16", "float32"), out_idx=[3], target="ascendc")
    expected = y
    for scalar in (0.1, 0.3):
        expected = expected + x.astype(np.float32) * np.float32(np.float16(scalar))
    np.testing.assert_allclose(kernel(x, y, 0.3), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(kernel(x, y, 0.3), kernel.interpret(x, y, 0.3))


def test_single_into_half_precision_is_refused() -> None:
    with pytest.raises(TileError, match="the destination has elements of float16, not float32") as caught:
        trace(accumulated(64, "float32", "float16"), dialect="ascendc")
    assert caught.value.code == "T110"
