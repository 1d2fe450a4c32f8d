"""``drop-dead-stores`` on kernels: an erased write changes no value, and hides no access outside of a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def overwritten() -> Any:
    @T.prim_func
    def main(X: T.Tensor((16, 32), "float32"), n: T.int32, Y: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((32, 32), "float32")
            T.copy(X, x[n * 8:n * 8 + 16, 0:32])
            T.fill(x, 2.0)
            T.copy(x, Y)

    return main


def test_an_overwritten_load_changes_nothing() -> None:
    x, y = np.ones((16, 32), np.float32), np.zeros((32, 32), np.float32)
    overwritten()(x, 1, y)
    np.testing.assert_array_equal(y, np.full((32, 32), 2, np.float32))


@pytest.mark.parametrize("start", [3, -1])
def test_an_overwritten_load_outside_of_its_buffer_is_reported(start: int) -> None:
    """The interpreter reports it too."""
    x, y = np.ones((16, 32), np.float32), np.zeros((32, 32), np.float32)
    with pytest.raises(tilelang.TileError, match="axis 0 of x") as reported:
        overwritten()(x, start, y)
    assert reported.value.code == "T502"
    assert "T.copy(X, x[n * 8:n * 8 + 16, 0:32])" in str(reported.value)
    with pytest.raises(tilelang.TileError, match="axis 0 of x") as reported:
        overwritten().interpret(x, start, y)
    assert reported.value.code == "T130"
