"""Serial loops inside ``T.Parallel``: values from before the ``T.Parallel`` are used in it unchanged."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@pytest.mark.parametrize("rows", [8, 5])
def test_an_element_that_was_read_before_is_used_after_the_inner_loop(rows: int) -> None:
    """The element's buffer is written in between; the number that was read stays, and the work is the Vector core's."""
    @T.prim_func
    def main(X: T.Tensor((rows, 16), "float32"), Y: T.Tensor((rows, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((rows, 16), "float32")
            y = T.alloc_shared((rows, 16), "float32")
            z = T.alloc_shared((rows, 16), "float32")
            T.copy(X, x)
            T.copy(Y, y)
            first = y[0, 0]
            for i, j in T.Parallel(rows, 16):
                for _k in T.serial(3):
                    y[i, j] = y[i, j] + x[i, j]
                z[i, j] = y[i, j] + first
            T.copy(z, Y)

    x = np.arange(rows * 16, dtype=np.float32).reshape(rows, 16)
    y = 2 * x + 1
    expected = y + 3 * x + y[0, 0]
    kernel = tilelang.compile(main, target="npuir")
    kernel(x, y)
    np.testing.assert_array_equal(y, expected)
    assert "memref.store" not in kernel.mlir()
    assert kernel.mlir().count("hivm.hir.vadd") == 2
