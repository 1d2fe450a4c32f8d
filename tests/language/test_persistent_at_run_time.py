"""``T.Persistent`` over numbers of tiles that are known only at run time, compiled as interpreted and as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

M = T.symbolic("M")


def compare(main: Any, *arrays: Any) -> Any:
    kernel = tilelang.compile(main, target="npu")
    compiled, interpreted = ([array.copy() if isinstance(array, np.ndarray) else array for array in arrays] for _ in range(2))
    kernel(*compiled)
    assert kernel.last_launch.hazards == []
    kernel.interpret(*interpreted)
    np.testing.assert_array_equal(compiled[-1], interpreted[-1])
    return compiled[-1]


@pytest.mark.parametrize("m", [1, 7, 24, 65])
@pytest.mark.parametrize("group", [1, 8])
def test_one_axis(m: int, group: int) -> None:
    """Each block adds up its tiles: their assignment to blocks is seen in the result."""
    @T.prim_func
    def main(A: T.Tensor((M, 16), "float32"), B: T.Tensor((5, 16), "float32")):
        with T.Kernel(5, threads=128) as i:
            total = T.alloc_fragment((16,), "float32")
            row = T.alloc_shared((16,), "float32")
            T.clear(total)
            for t in T.Persistent([M], 5, i, group):
                T.copy(A[t, :], row)
                for k in T.Parallel(16):
                    total[k] += row[k]
            T.copy(total, B[i, :])

    a = np.random.default_rng(m).integers(-9, 9, (m, 16)).astype(np.float32)
    found = compare(main, a, np.zeros((5, 16), np.float32))
    np.testing.assert_array_equal(found, np.stack([a[block::5].sum(0) for block in range(5)]))


@pytest.mark.parametrize("m", [3, 20])
def test_two_axes_the_last_one_constant(m: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), n: T.int32, B: T.Tensor((M, 64), "float32")):
        with T.Kernel(3, threads=128) as i:
            a = T.alloc_shared((16,), "float32")
            for r, c in T.Persistent([n, 4], 3, i, 2):
                T.copy(A[r, c * 16], a)
                T.copy(a, B[r, c * 16])

    a = np.arange(m * 64, dtype=np.float32).reshape(m, 64)
    expected = np.where(np.arange(m)[:, None] < m - 1, a, 0)
    np.testing.assert_array_equal(compare(main, a, m - 1, np.zeros_like(a)), expected)


def test_the_last_of_two_axes_is_a_constant(kernel: Any, refused: Any) -> None:
    with refused("T150", at="T.Persistent([4, n], 4, cid)", message="domain extents must be constant", help="exchange the"):
        kernel("for r, c in T.Persistent([4, n], 4, cid):\n    pass", "npuir")
