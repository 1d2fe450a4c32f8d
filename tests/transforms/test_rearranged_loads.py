"""Elements of tensors in GM that a ``T.Parallel`` reads in another order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_an_element_that_was_stored_is_loaded_again() -> None:
    """The tile with the old elements of X is not used for the read after the store."""
    @T.prim_func
    def main(X: T.Tensor((32, 16), "float32"), Y: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            b = T.alloc_ub((16, 32), "float32")
            c = T.alloc_ub((16, 32), "float32")
            for i, j in T.Parallel(16, 32):
                b[i, j] = X[j, i]
                X[j, i] = b[i, j] * 2.0
                c[i, j] = X[j, i] + b[i, j]
            T.copy(c, Y)

    kernel: Any = tilelang.compile(main, target="npuir")
    x, y = np.arange(512, dtype=np.float32).reshape(32, 16), np.zeros((16, 32), np.float32)
    before = x.copy()
    kernel(x, y)
    np.testing.assert_array_equal(x, before * 2)
    np.testing.assert_array_equal(y, before.T * 3)


@pytest.mark.parametrize("first", [0, 64, 63, 6])
def test_only_the_elements_around_an_access_are_loaded(first: int) -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 4096), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            b = T.alloc_ub((8, 64), "float32")
            for i, j in T.Parallel(8, 64):
                b[i, j] = X[i, 2 * j + first]
            T.copy(b, Y)

    kernel: Any = tilelang.compile(main, target="npuir")
    x, y = np.arange(8 * 4096, dtype=np.float32).reshape(8, 4096), np.zeros((8, 64), np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(y, x[:, first:first + 128:2])
    assert "[8, 128]" in kernel.mlir("vectorise-parallel")
