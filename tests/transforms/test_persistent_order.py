"""``T.Persistent`` in the kernel: each tile is computed once, in bands of ``group_size`` columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@pytest.mark.parametrize(("rows", "columns", "group"), [(4, 9, None), (3, 8, None), (5, 7, None), (2, 3, None), (3, 20, None),
                                                        (4, 9, 3), (3, 8, 2), (3, 8, 8), (5, 7, 7), (2, 6, 20)])
def test_each_tile_is_computed_once(rows: int, columns: int, group: int | None) -> None:
    cores, bands = 4, {} if group is None else {"group_size": group}

    @T.prim_func
    def main(Y: T.Tensor((rows, columns * 8), "int32")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            one = T.alloc_ub((1, 8), "int32")
            for i, j in T.Persistent([rows, columns], cores, core, **bands):
                T.copy(Y[i, j * 8], one)
                for k in T.Parallel(8):
                    one[0, k] = one[0, k] + 1
                T.copy(one, Y[i, j * 8])

    kernel: Any = tilelang.compile(main, target="npuir")
    y = np.zeros((rows, columns * 8), np.int32)
    kernel(y)
    np.testing.assert_array_equal(y, np.ones_like(y))
    assert kernel.check(np.zeros_like(y))
