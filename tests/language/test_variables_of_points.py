"""``T.alloc_var`` in the body of ``T.Parallel``: a variable of each point, compiled as interpreted and as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


def compare(kernel: Any, *arrays: Any) -> Any:
    compiled, interpreted = ([array.copy() for array in arrays] for _ in range(2))
    kernel(*compiled)
    assert kernel.last_launch.hazards == []
    kernel.interpret(*interpreted)
    np.testing.assert_array_equal(compiled[-1], interpreted[-1])
    return compiled[-1]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("size", [64, 37])
@pytest.mark.parametrize("given", [True, False])
def test_a_sum_over_a_serial_loop(dtype: str, size: int, given: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, size), dtype), B: T.Tensor((size,), dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(size):
                if given:
                    total = T.alloc_var(dtype, init=1)
                else:
                    total = T.alloc_var(dtype)
                    total = 1
                for k in T.serial(4):
                    total += A[k, i]
                B[i] = total

    a = (np.arange(4 * size) % 9 - 4).reshape(4, size).astype(dtype)
    found = compare(tilelang.compile(main, target="npu"), a, np.zeros(size, dtype))
    np.testing.assert_array_equal(found, a.sum(0) + np.array(1, dtype))


@pytest.mark.parametrize(("height", "width"), [(8, 16), (5, 7)])
def test_a_window_with_conditions_and_several_variables(height: int, width: int) -> None:
    """The largest element of a window of 3 that is clipped at the end of the row, its index, and whether an element is
    positive."""
    @T.prim_func
    def main(A: T.Tensor((height, width), "float32"), P: T.Tensor((height, width), "int32"),
             B: T.Tensor((height, width), "float32")):
        with T.Kernel(1, threads=64):
            for i, j in T.Parallel(height, width):
                best = T.alloc_var("float32", init=-T.infinity("float32"))
                place = T.alloc_var("int32")
                positive = T.alloc_var("bool")
                place = -1
                positive = False
                for k in T.serial(3):
                    at = j + k
                    if at < width:
                        value = A[i, at]
                        if value > best:
                            best = value
                            place = at
                        if value > 0:
                            positive = True
                P[i, j] = place
                B[i, j] = T.if_then_else(positive, best, 0.0)

    a = np.random.default_rng(0).integers(-9, 9, (height, width)).astype(np.float32)
    padded = np.pad(a, ((0, 0), (0, 2)), constant_values=-np.inf)
    windows = np.stack([padded[:, k:k + width] for k in range(3)], -1)
    places = np.zeros((height, width), np.int32)
    kernel = tilelang.compile(main, target="npu")
    found = compare(kernel, a, places, np.zeros_like(a))
    np.testing.assert_array_equal(found, np.maximum(windows.max(-1), 0))
    kernel(a, places, np.zeros_like(a))
    np.testing.assert_array_equal(places, np.arange(width) + windows.argmax(-1))


def test_read_before_it_is_set(kernel: Any) -> None:
    with pytest.raises(TileError, match=r"total is read before the point of T.Parallel has set it") as caught:
        kernel("for i in T.Parallel(8):\n    total = T.alloc_var('float32')\n    V[i] = total\n    total = 1.0", "npuir")
    assert caught.value.code == "T160"
    assert caught.value.location is not None
    assert caught.value.location.source().strip() == "V[i] = total"


def test_a_buffer_is_allocated_above(kernel: Any, refused: Any) -> None:
    with refused("T160", at="T.alloc_fragment((8,), 'float32')", message="T.alloc_fragment inside T.Parallel",
                 help="allocate above"):
        kernel("for i in T.Parallel(8):\n    more = T.alloc_fragment((8,), 'float32')", "npuir")
