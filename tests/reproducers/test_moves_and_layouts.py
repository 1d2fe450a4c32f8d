"""Moves between memories: scopes that the user gave, strides and narrow rows, broadcasts, tails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T
from reproducers.kernels import AUTO, BOTH, compiled, holds, refused, reported
from tilelang_npu import TileError

RNG = np.random.default_rng(0)


def values(*shape: int, dtype: str = "float32") -> Any:
    return RNG.integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("n", [0, 5])
def test_an_l1_buffer_stays_in_l1_whatever_copies_into_it(n: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            spliced = T.alloc_L1((16, 16), "float16")
            other = T.alloc_L1((16, 16), "float16")
            c = T.alloc_L0C((16, 16), "float32")
            if n > 0:
                T.copy(A, spliced)
            else:
                T.copy(B, spliced)
            T.copy(B, other)
            T.gemm_v0(spliced, other, c, init=True)
            T.copy(c, C)

    a, b = values(16, 16, dtype="float16"), values(16, 16, dtype="float16")
    kernel = compiled(main, AUTO)
    for order in (None, "late", "early"):
        c = np.zeros((16, 16), np.float32)
        kernel.program.run(kernel.machine_arguments(kernel.signature.bind([a, b, c, n])), blocks=1, schedule=order)
        np.testing.assert_array_equal(c, (a if n else b).astype(np.float32) @ b.astype(np.float32))
    assert "%spliced = hivm.hir.pointer_cast" in kernel.mlir() and "#hivm.address_space<ub>" not in kernel.mlir()


def test_vector_work_on_l1_is_refused() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_L1((16, 16), "float16")
            T.copy(A, x)
            T.tile.exp(x, x)

    assert refused(main, AUTO).code == "T201"


@pytest.mark.parametrize(("narrow", "wide"), [(4, 8), (4, 16), (3, 7), (8, 8)])
def test_compact_rows_into_wide_ones(narrow: int, wide: int) -> None:
    rows = 12

    @T.prim_func
    def main(A: T.Tensor((rows, narrow), "float32"), B: T.Tensor((rows, wide), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b = T.alloc_ub((rows, narrow), "float32"), T.alloc_ub((rows, wide), "float32")
            T.copy(A, a)
            T.tile.fill(b, 0.0)
            for i, j in T.Parallel(rows, narrow):
                b[i, j] = a[i, j]
            T.copy(b, B)

    a = values(rows, narrow)
    expected = np.zeros((rows, wide), np.float32)
    expected[:, :narrow] = a
    holds(compiled(main, AUTO), [a, np.ones_like(expected)], [expected])


def test_past_the_rows_end() -> None:
    @T.prim_func
    def main(A: T.Tensor((12, 4), "float32"), B: T.Tensor((12, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b = T.alloc_ub((12, 4), "float32"), T.alloc_ub((12, 8), "float32")
            T.copy(A, a)
            T.tile.fill(b, 0.0)
            for i, j in T.Parallel(12, 8):
                b[i, j] = a[i, j]
            T.copy(b, B)

    with pytest.raises(TileError) as caught:
        compiled(main, AUTO)(values(12, 4), np.zeros((12, 8), np.float32))
    assert caught.value.code == "T502" and "axis 1" in str(caught.value) and caught.value.location is not None


def spread(axis: int, rows: int, columns: int) -> Any:
    shape = (rows, 1) if axis else (1, columns)

    @T.prim_func
    def main(A: T.Tensor(shape, "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b = T.alloc_ub(shape, "float32"), T.alloc_ub((rows, columns), "float32")
            T.copy(A, a)
            T.tile.broadcast(b, a)
            T.copy(b, B)

    return main


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (4, 64), (5, 9)])
def test_a_broadcast_goes_along_the_axis_of_size_one(axis: int, rows: int, columns: int) -> None:
    a = values(rows, 1) if axis else values(1, columns)
    holds(compiled(spread(axis, rows, columns), AUTO), [a, np.zeros((rows, columns), np.float32)],
          [np.broadcast_to(a, (rows, columns))])


def test_a_broadcast_of_a_line_to_a_square() -> None:
    """Along which axis is open: a line is a row, as everywhere in NumPy; of another length it is an error."""
    def line(length: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((length,), "float32"), B: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a, b = T.alloc_ub((length,), "float32"), T.alloc_ub((64, 64), "float32")
                T.copy(A, a)
                T.tile.broadcast(b, a)
                T.copy(b, B)

        return main

    a = values(64)
    holds(compiled(line(64), AUTO), [a, np.zeros((64, 64), np.float32)], [np.broadcast_to(a, (64, 64))])
    assert refused(line(48), AUTO).code == "T111"


def moved(rows: int, columns: int, first: int, dtype: str) -> Any:
    """A window of a tensor through UB into a window of another."""
    @T.prim_func
    def main(A: T.Tensor((rows + 2, columns + 7), dtype), B: T.Tensor((rows + 3, columns + 5), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((rows, columns), dtype)
            T.copy(A[1:1 + rows, first:first + columns], x)
            T.copy(x, B[2:2 + rows, first:first + columns])

    return main


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
@pytest.mark.parametrize("columns", [1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 65])
def test_rows_of_any_width_both_ways(columns: int, dtype: str) -> None:
    for rows in (1, 3, 8):
        first = columns % 5
        a = values(rows + 2, columns + 7, dtype=dtype)
        b = np.full((rows + 3, columns + 5), 77, dtype)
        expected = b.copy()
        expected[2:2 + rows, first:first + columns] = a[1:1 + rows, first:first + columns]
        kernel = compiled(moved(rows, columns, first, dtype), AUTO)
        for order in (None, "late"):
            given = b.copy()
            kernel.program.run([a, given], blocks=1, schedule=order)
            np.testing.assert_array_equal(given, expected)


def test_columns_and_other_strides() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 20), "float32"), beta: T.Tensor((2, 64, 5), "float32"), K: T.Tensor((64,), "float32"),
             B: T.Tensor((64, 20), "float32"), M: T.Tensor((16, 1), "float32"), X: T.Tensor((16, 130), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            column, line = T.alloc_ub((64,), "float32"), T.alloc_ub((64,), "float32")
            x, top = T.alloc_ub((16, 130), "float32"), T.alloc_ub((16, 1), "float32")
            T.copy(A[0:64, 10], column)
            T.copy(beta[1, 0:64, 3], line)
            T.tile.mul(line, line, column)
            T.copy(line, K)
            T.copy(column, B[0:64, 7])
            T.copy(X, x)
            T.reduce_max(x, top, dim=-1)
            T.copy(top, M)

    a, beta, x = values(64, 20), values(2, 64, 5), values(16, 130)
    k, b, m = np.zeros(64, np.float32), np.zeros((64, 20), np.float32), np.zeros((16, 1), np.float32)
    kernel = compiled(main, AUTO)
    for order in (None, "late", "early"):
        for array in (k, b, m):
            array.fill(0)
        kernel.program.run([a, beta, k, b, m, x], blocks=1, schedule=order)
        np.testing.assert_array_equal(k, a[:, 10] * beta[1, :, 3])
        np.testing.assert_array_equal(b[:, 7], a[:, 10])
        assert not np.delete(b, 7, axis=1).any()
        np.testing.assert_array_equal(m[:, 0], x.max(1))


def test_an_unaligned_address_is_reported() -> None:
    @T.prim_func
    def main(A: T.Tensor((63,), "float32"), B: T.Tensor((63,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x[1:64])
            T.copy(x[1:64], B)

    assert reported(compiled(main, AUTO), values(63), np.zeros(63, np.float32)) == [("S223", "address", "x")]


def softmax(rows: int, columns: int, filled: bool) -> Any:
    """Rows and columns both end in the middle of a tile."""
    high, wide = 16, 136

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((high, wide), "float32")
            top, total = T.alloc_ub((high, 1), "float32"), T.alloc_ub((high, 1), "float32")
            for i in T.serial(T.ceildiv(rows, high)):
                left = T.min(high, rows - i * high)
                if filled:
                    T.tile.fill(x, -T.infinity("float32"))
                T.copy(X[i * high:i * high + left, 0:columns], x[0:left, 0:columns])
                T.reduce_max(x, top, dim=-1)
                T.tile.sub(x, x, top)
                T.tile.exp(x, x)
                T.reduce_sum(x, total, dim=-1)
                T.tile.div(x, x, total)
                T.copy(x[0:left, 0:columns], Y[i * high:i * high + left, 0:columns])

    return main


def test_a_tail_in_rows_and_columns_reaches_no_sum() -> None:
    x = RNG.standard_normal((34, 130)).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    holds(compiled(softmax(34, 130, True), AUTO), [x, np.zeros_like(x)], [e / e.sum(1, keepdims=True)], rtol=1e-5)
    codes = {code for code, _, _ in reported(compiled(softmax(34, 130, False), AUTO), x, np.zeros_like(x))}
    assert codes & {"S221", "S222"}, codes


@pytest.mark.parametrize("target", ["ascendc", "npuir"])
@pytest.mark.parametrize("depth", [200, 208, 250, 40])
def test_a_product_whose_depth_is_no_whole_tile(depth: int, target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, depth), "float16"), B: T.Tensor((depth, 128), "float16"), C: T.Tensor((64, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((64, 128), "float32")
            for k in T.Pipelined(T.ceildiv(depth, 64), num_stages=2):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                if target == "npuir":
                    T.gemm(a, b, c, initC=(k == 0))
                else:
                    T.gemm_v0(a, b, c, init=(k == 0))
            T.copy(c, C)

    a, b = values(64, depth, dtype="float16"), values(depth, 128, dtype="float16")
    holds(compiled(main, BOTH if target == "ascendc" else {}, target), [a, b, np.zeros((64, 128), np.float32)],
          [a.astype(np.float32) @ b.astype(np.float32)])


def test_a_slice_between_fractals_is_refused() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 80), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            T.copy(A, a[0:64, 8:72])
            T.gemm_v0(a[0:64, 8:72], a[0:64, 8:72], c, init=True)
            T.copy(c, C)

    assert refused(main, AUTO).code == "T221"
