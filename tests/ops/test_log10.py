"""The test that belongs to one entry of the op table; CONTRIBUTING shows both."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import language as T


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_log10(kind: str, rng: np.random.Generator) -> None:
    @T.prim_func
    def main(X: T.Tensor((5, 37), kind), Y: T.Tensor((5, 37), kind)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((5, 37), kind)
            T.copy(X, x)
            T.tile.log10(x, x)
            T.copy(x, Y)

    x = rng.uniform(0.1, 100, (5, 37)).astype(kind)
    y = tilelang.compile(main, out_idx=[-1], target="npuir")(x)
    np.testing.assert_array_equal(y, np.log10(x.astype(np.float32)).astype(kind))
