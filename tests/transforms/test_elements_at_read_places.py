"""Elements of a global tensor at indices from data: zero if the index is out of range, for all types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int8", "int32", "float16", "float32"])
def test_an_element_of_any_type(dtype: str) -> None:
    @tilelang.jit(target="npuir", out_idx=[-1])
    def factory(dtype: str) -> Any:
        @T.prim_func
        def main(X: T.Tensor((40, 64), dtype), Places: T.Tensor((32,), "int32"), Y: T.Tensor((32, 64), dtype)):
            with T.Kernel(1, is_npu=True) as (_, _vid):
                places = T.alloc_shared((32,), "int32")
                y = T.alloc_shared((32, 64), dtype)
                T.copy(Places, places)
                T.clear(y)
                for j in T.serial(32):
                    y[j, 3] = X[places[j], 3]
                T.copy(y, Y)

        return main

    x = (np.arange(40 * 64) % 251).reshape(40, 64).astype(dtype)
    places = np.r_[np.arange(31)[::-1], 41].astype(np.int32)
    wanted = np.zeros((32, 64), dtype)
    wanted[:31, 3] = x[places[:31], 3]
    np.testing.assert_array_equal(factory(dtype)(x, places), wanted)
