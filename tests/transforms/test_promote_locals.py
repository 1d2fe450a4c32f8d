"""Scalar storage of the points of a ``T.Parallel``: ``T.alloc_local`` and ``T.alloc_var``, which become SSA values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, COLUMNS = 16, 32


@T.macro
def pack(x: Any, out: Any):
    h = T.alloc_local((4,), "int32")
    for i in T.unroll(4):
        h[i] = T.cast(x[i], "int32") * 2
    out[0] = h[0] + h[1]
    out[1] = h[2] - h[3]


def packed(*, inside: bool = True, groups: int = 8) -> Any:
    """A kernel that packs groups of four elements into two, with storage of the points."""
    @T.prim_func
    def main(X: T.Tensor((ROWS, 4 * groups), "float32"), Y: T.Tensor((ROWS, 2 * groups), "int32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_shared((ROWS, 4 * groups), "float32")
            o = T.alloc_shared((ROWS, 2 * groups), "int32")
            T.copy(X, a)
            xi = T.alloc_local((4,), "float32")
            xo = T.alloc_local((2,), "int32")
            for i, j in T.Parallel(ROWS, groups):
                for k in T.serial(4):
                    xi[k] = a[i, j * 4 + k]
                pack(xi, xo)
                for k in T.serial(2):
                    o[i, j * 2 + k] = xo[k]
            if not inside:
                o[0, 0] = xo[1]
            T.copy(o, Y)

    return tilelang.compile(main, target="npuir")


def wanted(x: Any) -> Any:
    groups = (x.astype(np.int32) * 2).reshape(ROWS, -1, 4)
    return np.stack([groups[..., 0] + groups[..., 1], groups[..., 2] - groups[..., 3]], -1).reshape(ROWS, -1)


def drawn(groups: int = 8) -> Any:
    return np.random.default_rng(0).integers(-20, 20, (ROWS, 4 * groups)).astype(np.float32)


def test_storage_becomes_values() -> None:
    kernel, x, y = packed(), drawn(), np.zeros((ROWS, 16), np.int32)
    kernel(x, y)
    np.testing.assert_array_equal(y, wanted(x))
    text = kernel.mlir("vectorise-parallel")
    assert "local" not in text
    assert 'tile.elementwise "sub"' in text


def test_interpreted_values_are_equal() -> None:
    assert packed().check(drawn(), np.zeros((ROWS, 16), np.int32))


def test_storage_that_is_read_after_the_loop_holds_the_last_value() -> None:
    with pytest.warns(tilelang.TileWarning, match="T192"):
        kernel = packed(inside=False)
    x, y = drawn(), np.zeros((ROWS, 16), np.int32)
    kernel(x, y)
    expected = wanted(x)
    expected[0, 0] = expected[-1, -1]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("form", ["condition", "index", "many", "carried"])
def test_storage_that_stays(form: str) -> None:
    """An assignment under a condition, an index of a tile, a loop of too many iterations, and a value of the point before."""
    @T.prim_func
    def main(X: T.Tensor((ROWS, COLUMNS), "float32"), Y: T.Tensor((ROWS, COLUMNS), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_ub((ROWS, COLUMNS), "float32")
            b = T.alloc_ub((ROWS, COLUMNS), "float32")
            T.copy(X, a)
            v = T.alloc_local((20,), "float32")
            v[3] = 5.0
            for i, j in T.Parallel(ROWS, COLUMNS):
                if form == "condition":
                    v[0] = 1.0
                    if a[i, j] > 0:
                        v[0] = a[i, j]
                    b[i, j] = v[0]
                elif form == "index":
                    v[j % 4] = a[i, j]
                    b[i, j] = v[j % 4]
                elif form == "many":
                    for k in T.serial(20):
                        v[k] = a[i, j] + k
                    b[i, j] = v[0] + v[19]
                else:
                    b[i, j] = v[3]
                    v[3] = a[i, j]
            T.copy(b, Y)

    with pytest.warns(tilelang.TileWarning):
        kernel = tilelang.compile(main, target="npuir")
    x, y = drawn(), np.zeros((ROWS, COLUMNS), np.float32)
    kernel(x, y)
    before = np.concatenate([[5.0], x.reshape(-1)[:-1]]).reshape(x.shape)
    expected = {"condition": np.where(x > 0, x, 1), "index": x, "many": 2 * x + 19, "carried": before}
    np.testing.assert_array_equal(y, expected[form])


def test_a_variable_of_each_point() -> None:
    @T.prim_func
    def main(X: T.Tensor((ROWS, COLUMNS), "uint16"), Y: T.Tensor((ROWS, COLUMNS), "uint16")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_ub((ROWS, COLUMNS), "uint16")
            T.copy(X, a)
            for i, j in T.Parallel(ROWS, COLUMNS):
                v = T.alloc_var("uint16", init=1)
                v = v + a[i, j]
                v = v | 0x8000
                a[i, j] = v
            T.copy(a, Y)

    kernel = tilelang.compile(main, target="npuir")
    x = np.random.default_rng(0).integers(0, 1 << 16, (ROWS, COLUMNS)).astype(np.uint16)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, (x + np.uint16(1)) | np.uint16(0x8000))
    assert "scf.for" not in kernel.mlir("vectorise-parallel")


def test_other_memories_cannot_be_allocated_in_a_loop() -> None:
    @T.prim_func
    def main(X: T.Tensor((ROWS, COLUMNS), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_ub((ROWS, COLUMNS), "float32")
            T.copy(X, a)
            for i, j in T.Parallel(ROWS, COLUMNS):
                b = T.alloc_ub((4,), "float32")
                a[i, j] = b[0]
            T.copy(a, X)

    with pytest.raises(tilelang.TileError, match=r"T\.alloc_ub inside T\.Parallel is not supported"):
        tilelang.compile(main, target="npuir")


def test_storage_that_is_read_before_it_is_assigned_is_refused() -> None:
    @T.prim_func
    def main(X: T.Tensor((ROWS, COLUMNS), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_ub((ROWS, COLUMNS), "float32")
            T.copy(X, a)
            for i, j in T.Parallel(ROWS, COLUMNS):
                v = T.alloc_local((2,), "float32")
                a[i, j] = v[0]
            T.copy(a, X)

    with pytest.raises(tilelang.TileError, match="v is read before the point") as caught:
        tilelang.compile(main, target="npuir")
    assert "assign v before it is read" in str(caught.value)
