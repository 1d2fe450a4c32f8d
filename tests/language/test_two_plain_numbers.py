"""If one of two Python numbers is a float, both are converted to float, in either order."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@pytest.mark.parametrize("n", [0, 1])
def test_an_integer_and_a_float_meet_in_float32(n: int) -> None:
    @T.prim_func
    def main(X: T.Tensor((6,), "float32"), Y: T.Tensor((2,), "int32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            X[0] = T.if_then_else(n > 0, 1, 2.5)
            X[1] = T.if_then_else(n > 0, 2.5, 1)
            X[2] = T.max(1, 2.5)
            X[3] = T.max(2.5, 1)
            X[4] = T.min(1, 0.5)
            X[5] = T.min(0.5, 1)
            Y[0] = T.if_then_else(n > 0, 7, 4)
            Y[1] = T.max(7, 4)

    x, y = np.zeros(6, np.float32), np.zeros(2, np.int32)
    tilelang.compile(main, target="npuir")(x, y, n)
    np.testing.assert_array_equal(x, [1 if n else 2.5, 2.5 if n else 1, 2.5, 2.5, 0.5, 0.5])
    np.testing.assert_array_equal(y, [7 if n else 4, 7])
