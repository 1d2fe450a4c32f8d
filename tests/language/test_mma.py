"""Products from L0A and L0B: loads by hand, slots, transposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


def by_hand(transposed: bool, slots: int, k: int = 64, depth: int = 32) -> Any:
    shape = (64, k) if transposed else (k, 64)

    @T.prim_func
    def main(A: T.Tensor((32, k), "float16"), B: T.Tensor(shape, "float16"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1((32, k), "float16")
            b = T.alloc_L1(shape, "float16")
            left = T.alloc_L0A((slots, 32, depth), "float16")
            right = T.alloc_L0B((slots, depth, 64), "float16")
            acc = T.alloc_L0C((32, 64), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.copy(B, b)
                for i in T.serial(k // depth):
                    T.copy(a[0, i * depth], left[i % slots, :, :])
                    if transposed:
                        T.copy(b[:, i * depth:(i + 1) * depth], right[i % slots, :, :], transpose=True)
                    else:
                        T.copy(b[i * depth, 0], right[i % slots, :, :])
                    T.mma(left[i % slots, :, :], right[i % slots, :, :], acc, init=(i == 0))
                T.copy(acc, C)

    return main


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
def test_values(transposed: bool, slots: int, rng: np.random.Generator) -> None:
    a = rng.standard_normal((32, 64)).astype(np.float16)
    b = rng.standard_normal((64, 64)).astype(np.float16)
    kernel = tilelang.compile(by_hand(transposed, slots), out_idx=[2], target="ascendc",
                              pass_configs={"tl.ascend_auto_sync": True})
    expected = a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32)
    np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-5, atol=1e-4)
    text = kernel.mlir()
    assert text.count('symbol = "mma"') == 1
    assert ('symbol = "load_l0b_transposed"' in text) == transposed


def test_operands_in_l1_are_refused(kernel: Any) -> None:
    with pytest.raises(TileError, match=r"A l1a .* is not in L0A") as caught:
        kernel("T.mma(l1a, l1b, l0c)")
    assert caught.value.code == "T122"
