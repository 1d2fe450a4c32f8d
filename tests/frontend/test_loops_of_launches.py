"""Loops with constant bounds around ``T.Kernel``: each iteration is a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def stage(Y: Any, add: Any, last: Any):
    with T.Kernel(4, is_npu=True) as (bx, _):
        a = T.alloc_shared((16, 32), "float32")
        T.copy(Y[bx * 16, 0], a)
        for i, j in T.Parallel(16, 32):
            a[i, j] = a[i, j] * 2.0 + add
        if last:
            for i, j in T.Parallel(16, 32):
                a[i, j] = a[i, j] + 100.0
        T.copy(a, Y[bx * 16, 0])


def stages(first: int, end: int, step: int) -> Any:
    @T.prim_func
    def main(Y: T.Tensor((64, 32), "float32")):
        for s in range(first, end, step):
            stage(Y, s + 1, s + step == end)

    return tilelang.compile(main, target="npuir")


@pytest.mark.parametrize(("first", "end", "step"), [(0, 6, 3), (0, 4, 1), (2, 3, 1)])
def test_values(first: int, end: int, step: int) -> None:
    kernel, wanted = stages(first, end, step), 1.0
    for number in range(first, end, step):
        wanted = wanted * 2 + number + 1 + (100 if number + step == end else 0)
    y = np.ones((64, 32), np.float32)
    kernel(y)
    np.testing.assert_array_equal(y, np.full((64, 32), wanted, np.float32))
    assert kernel.check(np.ones((64, 32), np.float32))


@pytest.mark.parametrize(("loop", "code", "message"), [
    ("for s in T.serial(n):", "T160", "T.serial is outside T.Kernel"),
    ("for s in range(300):", "T160", "a loop over 300 launches; 256 are the most"),
    ("for s, t in T.grid(2, 2):", "T160", "T.grid is outside T.Kernel"),
])
def test_other_loops_are_refused(source: Any, refused: Any, loop: str, code: str, message: str) -> None:
    module = source(f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((8,), "int32"), n: T.int32):
            {loop}
                with T.Kernel(2, is_npu=True):
                    pass
    """)
    with refused(code, at=loop, message=message):
        tilelang.compile(module.main, target="npuir")


def test_a_break_is_refused(source: Any, refused: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((8,), "int32")):
            for s in range(3):
                with T.Kernel(2, is_npu=True):
                    pass
                if s == 1:
                    break
    """)
    with refused("T141", at="break", message=".*leaves a loop of launches"):
        tilelang.compile(module.main, target="npuir")
