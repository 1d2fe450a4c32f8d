"""``T.annotate_safe_value``: elements outside of a tensor have the value that a kernel states, compiled and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

ROWS, COLUMNS = 45, 50


def padded(a: np.ndarray[Any, Any], before: int, shape: tuple[int, int], value: float) -> np.ndarray[Any, Any]:
    """The rows of ``a`` from ``before`` rows before the first one, with ``value`` outside."""
    found = np.full(shape, value, a.dtype)
    rows = min(shape[0] - before, a.shape[0])
    columns = min(shape[1], a.shape[1])
    found[before : before + rows, :columns] = a[:rows, :columns]
    return found


def by_elements(kind: str, before: int, value: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((ROWS, COLUMNS), kind), B: T.Tensor((64, 64), kind)):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            tile = T.alloc_shared((32, 32), kind)
            T.annotate_safe_value({A: value})
            for i, j in T.Parallel(32, 32):
                tile[i, j] = A[by * 32 + i - before, bx * 32 + j]
            for i, j in T.Parallel(32, 32):
                B[by * 32 + i, bx * 32 + j] = tile[i, j]

    return main


def by_copies(kind: str, target: str, value: Any, through: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((ROWS, COLUMNS), kind), B: T.Tensor((64, 64), target)):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            tile = T.alloc_shared((32, 32), kind)
            if value is not None:
                T.annotate_safe_value({A: value})
            if through:
                T.copy(A[by * 32 : by * 32 + 32, bx * 32 : bx * 32 + 32], tile)
                T.copy(tile, B[by * 32, bx * 32])
            else:
                T.copy(A[by * 32 : by * 32 + 32, bx * 32 : bx * 32 + 32], B[by * 32 : by * 32 + 32, bx * 32 : bx * 32 + 32])

    return main


def check(main: Any, a: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], *more: Any) -> None:
    kernel = tilelang.compile(main, out_idx=[1], target="npuir")
    np.testing.assert_array_equal(kernel(a, *more), expected)
    np.testing.assert_array_equal(kernel.interpret(a, *more), expected)


@pytest.mark.parametrize(("kind", "value"), [("float16", 10), ("float32", -99.5), ("int32", -7), ("float32", float("inf"))])
@pytest.mark.parametrize("before", [0, 10])
def test_of_elements(rng: np.random.Generator, kind: str, value: float, before: int) -> None:
    a = rng.integers(-50, 50, (ROWS, COLUMNS)).astype(kind)
    check(by_elements(kind, before, value), a, padded(a, before, (64, 64), value))


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("value", [None, -99])
@pytest.mark.parametrize(("kind", "target"), [("float32", "float32"), ("float32", "float16"), ("int32", "int32")])
def test_of_copies(rng: np.random.Generator, kind: str, target: str, value: int | None, through: bool) -> None:
    a = rng.integers(-50, 50, (ROWS, COLUMNS)).astype(kind)
    check(by_copies(kind, target, value, through), a, padded(a, 0, (64, 64), value or 0).astype(target))


def test_a_single_element_and_a_scalar_of_the_kernel(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((16,), "float32"), v: T.float32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            b = T.alloc_ub((16,), "float32")
            T.annotate_safe_value({A: v})
            for i in T.serial(16):
                b[i] = A[i - 4]
            T.copy(b, B)

    a = rng.standard_normal(8).astype(np.float32)
    check(main, a, np.concatenate([np.full(4, 2.5), a, np.full(4, 2.5)]).astype(np.float32), 2.5)


def test_elements_that_are_inside_need_no_branch(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            T.annotate_safe_value({A: 1.0})
            for i in T.serial(15):
                B[i] = A[i + 1]

    assert "scf.if" not in traced(main).text


@pytest.mark.parametrize(("statement", "problem"), [
    ("T.annotate_safe_value({a: 1.0})", r"a \[8\] float16 is not a global tensor"),
    ("T.annotate_safe_value({A: 1e39})", "which float32 does not have"),
    ("T.annotate_safe_value({3: 1.0})", "3 is not a global tensor")])
def test_mistakes(kernel: Any, statement: str, problem: str) -> None:
    lines = f"a = T.alloc_ub((8,), 'float16')\n{statement}"
    with pytest.raises(TileError, match=problem) as caught:
        kernel(lines, "npuir")
    assert caught.value.code == "T110"
