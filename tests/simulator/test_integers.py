"""Integers of generated code: shifts, and what is known of numbers at compile time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.simulator.codegen.integers import check_shift


def test_amounts_of_shifts() -> None:
    assert [check_shift(count, 8) for count in (0, 1, 7)] == [0, 1, 7]
    for count in (-1, 8):
        with pytest.raises(TileError, match="T509"):
            check_shift(count, 8)


@pytest.mark.parametrize("amount", [0, 1, 3])
def test_a_shifted_zero_is_zero(amount: int) -> None:
    """A number shifted by an amount that only run time knows may be 0: the branch is not decided at compile time."""
    @T.prim_func
    def main(n: T.int32, Y: T.Tensor((4, 16), "int32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_ub((4, 16), "int32")
            T.clear(a)
            for i in T.serial(4):
                if (i << n) > 0:
                    T.fill(a[i:i + 1, 0:16], i << n)
            T.copy(a, Y)

    kernel, y = tilelang.compile(main, target="npuir"), np.full((4, 16), -1, np.int32)
    kernel(amount, y)
    np.testing.assert_array_equal(y[:, 0], np.arange(4) << amount)


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_the_number_of_blocks(blocks: int) -> None:
    @T.prim_func
    def main(Y: T.Tensor((8, 16), "int32"), n: T.int32):
        with T.Kernel(n, is_npu=True) as (b, _):
            a = T.alloc_ub((1, 16), "int32")
            T.fill(a, 7)
            if n > 1:
                T.fill(a, 9)
            T.copy(a, Y[b, 0])

    kernel, y = tilelang.compile(main, target="npuir"), np.zeros((8, 16), np.int32)
    kernel(y, blocks)
    wanted: Any = np.zeros(8, np.int32)
    wanted[:blocks] = 7 if blocks == 1 else 9
    np.testing.assert_array_equal(y[:, 0], wanted)
