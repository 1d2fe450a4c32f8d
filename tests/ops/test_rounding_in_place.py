"""``T.vcast`` of a buffer to itself rounds it to whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@pytest.mark.parametrize(("mode", "expected"), [
    ("rint", np.rint), ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc),
    ("round", lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x))])
@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_vcast_in_place(kind: str, mode: str, expected: object, rng: np.random.Generator) -> None:
    @T.prim_func
    def main(X: T.Tensor((5, 37), kind), Y: T.Tensor((5, 37), kind)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((5, 37), kind)
            T.copy(X, x)
            T.vcast(x, x, round_mode=mode)
            T.copy(x, Y)

    x = (rng.integers(-64, 64, (5, 37)) / 4).astype(kind)
    y = tilelang.compile(main, out_idx=[-1], target="npuir")(x)
    assert callable(expected)
    np.testing.assert_array_equal(y, expected(x.astype(np.float32)).astype(kind))
