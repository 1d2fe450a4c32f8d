"""Statements of ``T.Parallel`` that combine the values of several points in one element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, COLUMNS = 24, 40
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32")
Combine = Callable[[Any, Any], Any]
COMBINES: dict[str, Combine] = {
    "add": lambda old, value: old + value,
    "added": lambda old, value: value + old,
    "sub": lambda old, value: old - value,
    "max": T.max,
    "min": lambda old, value: T.min(value, old),
    "and": lambda old, value: old & value,
    "or": lambda old, value: value | old,
    "xor": lambda old, value: old ^ value,
}
NUMPY: dict[str, Any] = {"add": np.add, "added": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum,
                         "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
AXES = {"rows": (0,), "columns": (1,), "all": ()}
"""The axes of the loop that are in the element's index."""


def kernel_of(combine: Combine, axes: tuple[int, ...], dtype: str, value: Callable[[Any], Any] = lambda x: x) -> Any:
    """A kernel that loads X and S to x and s, and combines the elements of x with those of s."""
    shape = (ROWS, COLUMNS)
    sums = tuple(shape[axis] for axis in axes) or (8,)

    @T.macro
    def statement(x: Any, s: Any, i: Any, j: Any):
        if axes == (0,):
            s[i] = combine(s[i], value(x[i, j]))
        elif axes == (1,):
            s[j] = combine(s[j], value(x[i, j]))
        else:
            s[3] = combine(s[3], value(x[i, j]))

    @T.prim_func
    def main(X: T.Tensor(shape, dtype), S: T.Tensor(sums, dtype)):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared(shape, dtype)
            s = T.alloc_shared(sums, dtype)
            T.copy(X, x)
            T.copy(S, s)
            for i, j in T.Parallel(ROWS, COLUMNS):
                statement(x, s, i, j)
            T.copy(s, S)

    return tilelang.compile(main, target="npuir")


def drawn(dtype: str, *shape: int) -> Any:
    rng = np.random.default_rng(5)
    if dtype in FLOATS:
        return rng.integers(-8, 9, shape).astype(dtype)  # sums are exact in every order
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in COMBINES for dtype in (*FLOATS, *INTEGERS)
                                             if name not in ("and", "or", "xor") or dtype in INTEGERS])
def test_values(name: str, dtype: str, axes: tuple[int, ...]) -> None:
    kernel = kernel_of(COMBINES[name], axes, dtype)
    x, s = drawn(dtype, ROWS, COLUMNS), drawn(dtype, *((ROWS, COLUMNS)[axis] for axis in axes) if axes else (8,))
    wanted, flat = s.copy(), tuple(axis for axis in (0, 1) if axis not in axes)
    whole = NUMPY["add" if name == "sub" else name].reduce(x, axis=flat, dtype=dtype)
    place = slice(None) if axes else 3
    wanted[place] = NUMPY[name](wanted[place], whole)
    kernel(x, s)
    np.testing.assert_array_equal(s, wanted)


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_no_point_is_computed_alone(dtype: str, axes: tuple[int, ...]) -> None:
    text = kernel_of(COMBINES["max"], axes, dtype).mlir("vectorise-parallel")
    assert text.count("tile.reduce ") == 2 - len(axes)
    assert "scf.for" not in text


def test_random_floats_are_equal_within_rounding() -> None:
    rng = np.random.default_rng(1)
    x, s = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32), np.zeros(ROWS, np.float32)
    kernel = kernel_of(COMBINES["add"], (0,), "float32", lambda value: T.exp(value) * 0.5)
    assert kernel.check(x, s)


def test_a_value_that_is_the_same_at_all_points() -> None:
    kernel = kernel_of(COMBINES["add"], (1,), "float32", lambda value: 0.5)
    s = np.ones(COLUMNS, np.float32)
    kernel(np.zeros((ROWS, COLUMNS), np.float32), s)
    np.testing.assert_array_equal(s, np.full(COLUMNS, 1 + ROWS / 2, np.float32))


def test_an_element_at_an_index_of_a_loop() -> None:
    @T.prim_func
    def main(X: T.Tensor((4, 100), "float32"), S: T.Tensor((4, 4), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((4, 100), "float32")
            s = T.alloc_fragment((4, 4), "float32")
            T.copy(X, x)
            T.clear(s)
            for a in T.serial(4):
                for b in T.serial(4):
                    for i in T.Parallel(100):
                        s[a, b] += x[a, i] * x[b, i]
            T.copy(s, S)

    kernel = tilelang.compile(main, target="npuir")
    x, s = drawn("float32", 4, 100), np.zeros((4, 4), np.float32)
    kernel(x, s)
    np.testing.assert_array_equal(s, x @ x.T)
    assert "tile.reduce " in kernel.mlir("vectorise-parallel")


def test_several_statements_with_elements_of_their_own() -> None:
    """The second statement writes an element at every point, and the third reads what the second has written."""
    @T.prim_func
    def main(X: T.Tensor((ROWS, COLUMNS), "float32"), S: T.Tensor((ROWS,), "float32"), M: T.Tensor((COLUMNS,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((ROWS, COLUMNS), "float32")
            s = T.alloc_shared((ROWS,), "float32")
            m = T.alloc_shared((COLUMNS,), "float32")
            T.copy(X, x)
            T.clear(s)
            T.clear(m)
            for i, j in T.Parallel(ROWS, COLUMNS):
                s[i] += x[i, j]
                x[i, j] = x[i, j] * 2.0 + 1.0
                m[j] = T.max(m[j], x[i, j])
            T.copy(s, S)
            T.copy(m, M)
            T.copy(x, X)

    kernel = tilelang.compile(main, target="npuir")
    x, s, m = drawn("float32", ROWS, COLUMNS), np.zeros(ROWS, np.float32), np.zeros(COLUMNS, np.float32)
    before = x.copy()
    kernel(x, s, m)
    np.testing.assert_array_equal(x, before * 2 + 1)
    np.testing.assert_array_equal(s, before.sum(1))
    np.testing.assert_array_equal(m, np.maximum(0, x.max(0)))
    assert "scf.for" not in kernel.mlir("vectorise-parallel")


@pytest.mark.parametrize("form", ["read_again", "value_of_old", "two_statements", "other_order"])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
def test_running_values_are_computed_point_by_point(form: str, dtype: str) -> None:
    """The statement, or another one, uses the element after some of the points."""
    @T.macro
    def statement(x: Any, s: Any, i: Any, j: Any):
        if form == "read_again":
            s[i] = s[i] + x[i, j]
            x[i, j] = s[i]
        elif form == "value_of_old":
            s[i] = s[i] + T.max(s[i], x[i, j])
        elif form == "two_statements":
            s[i] = s[i] + x[i, j]
            s[i] = T.max(s[i], x[i, j])
        else:
            s[i] = x[i, j] - s[i]

    @T.prim_func
    def main(X: T.Tensor((ROWS, COLUMNS), dtype), S: T.Tensor((ROWS,), dtype)):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((ROWS, COLUMNS), dtype)
            s = T.alloc_shared((ROWS,), dtype)
            T.copy(X, x)
            T.copy(S, s)
            for i, j in T.Parallel(ROWS, COLUMNS):
                statement(x, s, i, j)
            T.copy(x, X)
            T.copy(s, S)

    with pytest.warns(tilelang.TileWarning, match="T192"):
        kernel = tilelang.compile(main, target="npuir")
    x, s = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS).astype(dtype) % 5, np.ones(ROWS, dtype)
    wanted_x, wanted_s = x.copy(), s.copy()
    for j in range(COLUMNS):
        column = wanted_x[:, j].copy()
        if form == "read_again":
            wanted_s += column
            wanted_x[:, j] = wanted_s
        elif form == "value_of_old":
            wanted_s += np.maximum(wanted_s, column)
        elif form == "two_statements":
            wanted_s = np.maximum(wanted_s + column, column)
        else:
            wanted_s = column - wanted_s
    kernel(x, s)
    np.testing.assert_array_equal(s, wanted_s)
    np.testing.assert_array_equal(x, wanted_x)


def test_rows_that_do_not_fit_at_once() -> None:
    """The values of all points do not fit in UB, and the rows are added up some at a time."""
    rows, columns = 64, 512

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), S: T.Tensor((rows,), "float32"), M: T.Tensor((columns,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_ub((rows, columns), "float32")
            s = T.alloc_ub((rows,), "float32")
            m = T.alloc_ub((columns,), "float32")
            T.copy(X, x)
            T.clear(s)
            T.clear(m)
            for i, j in T.Parallel(rows, columns):
                s[i] += T.abs(x[i, j])
                m[j] += x[i, j] * x[i, j]
            T.copy(s, S)
            T.copy(m, M)

    kernel = tilelang.compile(main, target="npuir")
    x, s, m = drawn("float32", rows, columns), np.zeros(rows, np.float32), np.zeros(columns, np.float32)
    kernel(x, s, m)
    np.testing.assert_array_equal(s, np.abs(x).sum(1))
    np.testing.assert_array_equal(m, (x * x).sum(0))
    assert "tile.reduce " in kernel.mlir("vectorise-parallel")


def test_few_points_stay_serial() -> None:
    @T.prim_func
    def main(X: T.Tensor((8,), "float32"), S: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_ub((8,), "float32")
            s = T.alloc_ub((8,), "float32")
            T.copy(X, x)
            T.clear(s)
            for i in T.Parallel(2):
                s[3] += x[i]
            T.copy(s, S)

    kernel = tilelang.compile(main, target="npuir")
    x, s = drawn("float32", 8), np.zeros(8, np.float32)
    kernel(x, s)
    assert s[3] == x[0] + x[1]
    assert "tile.reduce " not in kernel.mlir("vectorise-parallel")
