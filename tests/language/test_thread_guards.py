"""Branches for some of the threads of a GPU's block: each is executed once for each block, compiled as interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


def compare(main: Any, *arrays: Any) -> Any:
    kernel = tilelang.compile(main, target="npu")
    compiled, interpreted = ([array.copy() for array in arrays] for _ in range(2))
    kernel(*compiled)
    assert kernel.last_launch.hazards == []
    kernel.interpret(*interpreted)
    np.testing.assert_array_equal(compiled[-1], interpreted[-1])
    return compiled[-1]


@pytest.mark.parametrize(("threads", "taken"), [
    (128, [1, 1, 1, 1, 0, 0, 1, 1]), (32, [1, 1, 1, 0, 0, 0, 1, 1]), (None, [1, 1, 1, 1, 0, 0, 1, 1]),
    (1, [1, 0, 1, 0, 0, 1, 0, 0])])
def test_a_branch_is_taken_once_if_a_thread_takes_it(threads: int | None, taken: list[int]) -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=threads) as bx:
            tx = T.get_thread_binding()
            if tx == 0:
                T.atomic_add(A[0], 1)
            if tx == 31:
                T.atomic_add(A[1], 1)
            if tx < 32:
                A[2] = 1
            if tx >= 32:
                A[3] = 1
            if tx > 200:
                A[4] = 1
            if tx <= 0:
                A[5] = 1
            else:
                A[5] = 0
            if T.get_thread_binding(0) > 0:
                A[6] = 1
            if T.get_thread_bindings()[0] != 0 and A[2] == 1:
                A[7] = 1

    np.testing.assert_array_equal(compare(main, np.zeros(8, np.int32)), taken)


@pytest.mark.parametrize(("m", "n"), [(8, 64), (5, 37)])
def test_both_branches_of_warps(m: int, n: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((2, m), "float32")):
        with T.Kernel(1, threads=96) as bx:
            a = T.alloc_shared((m, n), "float32")
            T.copy(A, a)
            if T.get_thread_binding() < 32:
                largest = T.alloc_fragment((m,), "float32")
                T.reduce_max(a, largest, dim=1)
                T.copy(largest, B[0, :])
            else:
                total = T.alloc_fragment((m,), "float32")
                T.reduce_sum(a, total, dim=1)
                T.copy(total, B[1, :])

    a = np.random.default_rng(0).integers(-9, 9, (m, n)).astype(np.float32)
    np.testing.assert_array_equal(compare(main, a, np.zeros((2, m), np.float32)), np.stack([a.max(1), a.sum(1)]))


def test_axes_of_threads_and_branches_of_a_known_side() -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(2, threads=(32, 4)) as bx:
            if T.get_thread_binding(1) == 3:
                A[0] = 7
            if T.get_thread_binding(1) >= 4:
                A[1] = 7
            else:
                A[2] = 7
            for i in T.serial(3):
                if T.get_thread_binding(0) < 32 and i == 1:
                    A[3] = i + bx * 0

    np.testing.assert_array_equal(compare(main, np.zeros(4, np.int32)), [7, 0, 7, 1])


@pytest.mark.parametrize(("statement", "message"), [
    ("V[T.get_thread_binding()] = 1.0", "used as a number"),
    ("x = T.get_thread_binding() + 1", "used in arithmetic"),
    ("x = T.get_thread_binding() // 32", "used in arithmetic"),
    ("x = V[0] * T.get_thread_binding()", "used in arithmetic"),
    ("if T.get_thread_binding() == cid:\n    V[0] = 1.0", "not a constant integer"),
    ("if T.get_thread_binding():\n    V[0] = 1.0", "a condition by itself"),
    ("if not T.get_thread_binding() == 0:\n    V[0] = 1.0", "in a part of a condition"),
    ("if V[0] > 0 or T.get_thread_binding() == 0:\n    V[0] = 1.0", "in a part of a condition"),
    ("x = 1.0 if T.get_thread_binding() == 0 else 2.0", "in a part of a condition"),
    ("if T.get_thread_binding() == 0 and V[0] > 0:\n    V[0] = 1.0\nelse:\n    V[1] = 1.0", "has an `else` part"),
    ("if T.get_thread_binding() < 32:\n    T.atomic_add(V[0], 1.0)", "32 threads of a GPU would each add"),
    ("x = T.get_thread_binding(1)", "no threads along axis 1"),
])
def test_other_uses(source: Any, traced: Any, statement: str, message: str) -> None:
    lines = "\n                ".join(statement.splitlines())
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(V: T.Tensor((256,), "float32")):
            with T.Kernel(4, threads=128) as cid:
                {lines}
    """)
    with pytest.raises(TileError, match=message) as caught:
        traced(module.main, "npuir")
    assert caught.value.code == "T190"


def test_a_launch_for_an_npu_has_no_threads(kernel: Any) -> None:
    with pytest.raises(TileError, match="no threads along axis 0"):
        kernel("x = T.get_thread_binding()", "npuir")
