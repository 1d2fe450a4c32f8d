"""Buffers at addresses that the user fixed: they have the bytes of their shapes and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def beside(rows: int, columns: int, dtype: str) -> Any:
    """Two buffers one right behind the other; the first is loaded and doubled, the second must not notice."""
    nbytes = -(-rows * columns * tilelang.DataType(dtype).bits // 8 // 32) * 32

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype), C: T.Tensor((64,), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((rows, columns), dtype)
            c = T.alloc_ub((64,), dtype)
            T.annotate_address({a: 0, c: nbytes})
            T.copy(C, c)
            T.copy(A, a)
            T.tile.add(a, a, a)
            if vid == 0:
                T.copy(a, B)
                T.copy(c, C)

    return tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 1), (4, 6), (16, 3), (5, 7), (4, 16)])
def test_the_next_address_is_free(rows: int, columns: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, c = rng.random((rows, columns)).astype(dtype), rng.random(64).astype(dtype)
    b, before = np.zeros_like(a), c.copy()
    beside(rows, columns, dtype)(a, b, c)
    np.testing.assert_array_equal(b, a + a)
    np.testing.assert_array_equal(c, before)
