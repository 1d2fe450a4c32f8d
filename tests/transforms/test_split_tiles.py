"""Tiles that do not fit, in strips: the values of NumPy and of small tiles, bit by bit, without hazards; tiles that are not
split."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

NAME = "split-tiles"


def compiled(func: Any, **configs: Any) -> Any:
    return tilelang.compile(func, sanitize=True, pass_configs=configs)


def strips_of(kernel: Any) -> list[str]:
    """How often, and for how many rows, each strip loop executes its statements."""
    return [one.text.rpartition("are executed for ")[2] for one in kernel.explain().remarks if one.about == NAME]


def numpy_type(dtype: str) -> Any:
    return getattr(ml_dtypes, dtype, None) or np.dtype(dtype)


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    """Small integers, with which no operation of the tests rounds."""
    return np.random.default_rng(seed).integers(0, 9, shape).astype(numpy_type(dtype))


def sums(M: int, N: int, m: int, n: int, dtype: str) -> Any:
    """C = A + B, through buffers for each."""
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, n), T.ceildiv(M, m), threads=128) as (column, row):
            a = T.alloc_shared((m, n), dtype)
            b = T.alloc_shared((m, n), dtype)
            c = T.alloc_fragment((m, n), dtype)
            d = T.alloc_shared((m, n), dtype)
            T.copy(A[row * m, column * n], a)
            T.copy(B[row * m, column * n], b)
            for i, j in T.Parallel(m, n):
                c[i, j] = a[i, j] + b[i, j]
            T.copy(c, d)
            T.copy(d, C[row * m, column * n])

    return main


@pytest.mark.parametrize(("dtype", "shape", "tile"), [
    ("float32", (75, 1000), (64, 1024)), ("float16", (131, 1030), (131, 1030)), ("bfloat16", (61, 2048), (61, 2048)),
    ("int32", (67, 777), (67, 777)), ("uint8", (90, 4096), (90, 4000)), ("int64", (37, 1024), (37, 1024)),
    ("float32", (2, 70000), (1, 70000)), ("float32", (3, 65536), (3, 65536))])
def test_sums(dtype: str, shape: tuple[int, int], tile: tuple[int, int]) -> None:
    kernel = compiled(sums(*shape, *tile, dtype))
    a, b = drawn(shape, dtype), drawn(shape, dtype, 1)
    c = np.zeros_like(a)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a + b)
    assert strips_of(kernel)


def softmax(M: int, N: int, m: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), S: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, m), threads=128) as row:
            x = T.alloc_fragment((m, N), "float32")
            largest = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((m,), "float32")
            T.copy(A[row * m, 0], x)
            T.reduce_max(x, largest, dim=1)
            for i, j in T.Parallel(m, N):
                x[i, j] = T.exp(x[i, j] - largest[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(m, N):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, B[row * m, 0])
            T.copy(total, S[row * m])

    return main


def rms_norm(M: int, N: int, m: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), W: T.Tensor((N,), "float16"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, m), threads=128) as row:
            landing = T.alloc_shared((m, N), "float32")
            weights = T.alloc_shared((N,), "float16")
            x = T.alloc_fragment((m, N), "float32")
            squares = T.alloc_fragment((m, N), "float32")
            s = T.alloc_fragment((m,), "float32")
            T.copy(A[row * m:(row + 1) * m, :], landing)
            T.copy(W, weights)
            T.copy(landing, x)
            for i, j in T.Parallel(m, N):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, s, dim=1)
            for i in T.Parallel(m):
                s[i] = T.rsqrt(s[i] / N + 1e-5)
            for i, j in T.Parallel(m, N):
                landing[i, j] = x[i, j] * s[i] * weights[j]
            T.copy(landing, B[row * m:(row + 1) * m, :])

    return main


def long_rows(M: int, N: int, m: int) -> Any:
    """The weighted sum of each row in a loop over chunks: all of the loop is executed for one strip after another."""
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), W: T.Tensor((N,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, m), threads=128) as row:
            x = T.alloc_fragment((m, 512), "float32")
            w = T.alloc_shared((512,), "float32")
            part = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((m,), "float32")
            T.clear(total)
            for k in T.serial(T.ceildiv(N, 512)):
                T.copy(A[row * m, k * 512], x)
                T.copy(W[k * 512], w)
                for i, j in T.Parallel(m, 512):
                    x[i, j] = x[i, j] * w[j]
                T.reduce_sum(x, part, dim=1)
                for i in T.Parallel(m):
                    total[i] += part[i]
            T.copy(total, B[row * m])

    return main


@pytest.mark.parametrize(("make", "shape", "large", "small"), [
    (softmax, (70, 2048), 64, 8), (softmax, (13, 4096), 13, 1), (rms_norm, (20, 8192), 16, 1),
    (long_rows, (250, 1500), 250, 32)])
def test_as_small_tiles(make: Callable[[int, int, int], Any], shape: tuple[int, int], large: int, small: int) -> None:
    first = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    left = []
    for rows in (large, small):
        kernel = compiled(make(*shape, rows))
        assert bool(strips_of(kernel)) == (rows == large)
        arrays = arguments_of(make, shape)
        kernel(first.copy(), *arrays)
        left.append(arrays)
    for mine, other in zip(*left, strict=True):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_allclose(left[0][0 if make is softmax else -1], expected_of(make, first, left[0]), rtol=2e-5, atol=1e-5)


def arguments_of(make: Callable[[int, int, int], Any], shape: tuple[int, int]) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(8)
    if make is softmax:
        return [np.zeros(shape, np.float32), np.zeros(shape[0], np.float32)]
    if make is rms_norm:
        return [rng.standard_normal(shape[1]).astype(np.float16), np.zeros(shape, np.float32)]
    return [rng.integers(0, 3, shape[1]).astype(np.float32), np.zeros(shape[0], np.float32)]


def expected_of(make: Callable[[int, int, int], Any], x: np.ndarray[Any, Any], arrays: list[np.ndarray[Any, Any]]) -> Any:
    if make is softmax:
        raised = np.exp(x - x.max(1, keepdims=True))
        return raised / raised.sum(1, keepdims=True)
    if make is rms_norm:
        return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * arrays[0].astype(np.float32)
    return (x * arrays[0]).astype(np.float64).sum(1)


def swapped(D: int, m: int, *, in_ub: bool = False) -> Any:
    """Every second element for its neighbour: de-interleaving needs temporaries for which UB has no room."""
    @T.prim_func
    def main(X: T.Tensor((2 * m, D), "float32"), Y: T.Tensor((2 * m, D), "float32")):
        with T.Kernel(2, is_npu=True) as (block, _):
            x = T.alloc_ub((m, D), "float32") if in_ub else T.alloc_shared((m, D), "float32")
            y = T.alloc_ub((m, D), "float32") if in_ub else T.alloc_shared((m, D), "float32")
            T.copy(X[block * m, 0], x)
            for i, j in T.Parallel(m, D // 2):
                y[i, 2 * j] = x[i, 2 * j + 1]
                y[i, 2 * j + 1] = -x[i, 2 * j]
            T.copy(y, Y[block * m, 0])

    return main


def test_temporaries_that_do_not_fit() -> None:
    """No cliff: vector operations in strips, not scalar code."""
    x = drawn((384, 128), "float32")
    times = []
    for off in ([], [NAME]):
        kernel = tilelang.compile(swapped(128, 192), target="npuir", sanitize=True, pass_configs={"tl.disable": off})
        y = np.zeros_like(x)
        kernel(x, y)
        np.testing.assert_array_equal(y[:, ::2], x[:, 1::2])
        np.testing.assert_array_equal(y[:, 1::2], -x[:, ::2])
        times.append(kernel.estimate().time_us)
    assert times[0] * 20 < times[1]


def test_transposed() -> None:
    """The rows of one tile are the columns of the other."""
    @T.prim_func
    def main(X: T.Tensor((256, 250), "float32"), Y: T.Tensor((250, 256), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_shared((256, 250), "float32")
            y = T.alloc_shared((250, 256), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(256, 250):
                y[j, i] = x[i, j]
            T.copy(y, Y)

    kernel = compiled(main)
    x = drawn((256, 250), "float32")
    y = np.zeros((250, 256), np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(y, x.T)
    assert strips_of(kernel)


def test_points_in_gm() -> None:
    """A T.Parallel of no tile at all, whose temporaries are the compiler's."""
    @T.prim_func
    def main(A: T.Tensor((150, 700), "float32"), B: T.Tensor((150, 700), "float32")):
        with T.Kernel(1, threads=128):
            for i, j in T.Parallel(150, 700):
                B[i, j] = A[i, j] * 2.0 + A[i, j]

    kernel = compiled(main)
    a = drawn((150, 700), "float32")
    b = np.zeros_like(a)
    kernel(a, b)
    np.testing.assert_array_equal(b, a * 3)
    assert strips_of(kernel)


def test_points_in_gm_in_a_loop() -> None:
    @T.prim_func
    def main(A: T.Tensor((300, 700), "float32"), B: T.Tensor((300, 700), "float32")):
        with T.Kernel(1, threads=128):
            for step in T.serial(2):
                for i, j in T.Parallel(150, 700):
                    B[step * 150 + i, j] = A[step * 150 + i, j] * 2.0 + A[step * 150 + i, j]

    kernel = compiled(main)
    a = drawn((300, 700), "float32")
    b = np.zeros_like(a)
    kernel(a, b)
    np.testing.assert_array_equal(b, a * 3)
    assert strips_of(kernel)


def test_in_place_and_atomic() -> None:
    """The rows that a strip loads are those that it stores; another tensor is added to."""
    @T.prim_func
    def main(A: T.Tensor((70, 1024), "float32"), S: T.Tensor((70, 1024), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((70, 1024), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(70, 1024):
                x[i, j] = x[i, j] * 2.0 + 1.0
            T.copy(x, A)
            T.atomic_add(S, x)

    kernel = compiled(main)
    a, s = drawn((70, 1024), "float32"), drawn((70, 1024), "float32", 1)
    left = a.copy(), s.copy()
    kernel(*left)
    np.testing.assert_array_equal(left[0], a * 2 + 1)
    np.testing.assert_array_equal(left[1], s + a * 2 + 1)
    assert strips_of(kernel)


def loaded_and_stored_by_points(shift: int) -> Any:
    """Loads a tile by a copy, and stores it ``shift`` rows and columns later in the same tensor, point by point."""
    @T.prim_func
    def main(A: T.Tensor((520, 520), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((512, 512), "float32")
            T.copy(A[4:516, 4:516], x)
            for i, j in T.Parallel(512, 512):
                A[4 + shift + i, 4 + shift + j] = x[i, j] * 2.0

    return main


def test_rows_that_are_loaded_by_a_copy_and_stored_by_points() -> None:
    kernel = compiled(loaded_and_stored_by_points(0))
    a = drawn((520, 520), "float32")
    left = a.copy()
    kernel(left)
    a[4:516, 4:516] *= 2
    np.testing.assert_array_equal(left, a)
    assert strips_of(kernel)


def columns_added() -> Any:
    """The rows are added up, and the total is subtracted from each: neither rows nor columns can be divided."""
    @T.prim_func
    def main(A: T.Tensor((512, 512), "float32"), B: T.Tensor((512, 512), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((512, 512), "float32")
            rows = T.alloc_fragment((512,), "float32")
            columns = T.alloc_fragment((512,), "float32")
            T.copy(A, x)
            T.reduce_sum(x, rows, dim=1)
            T.reduce_sum(x, columns, dim=0)
            for i, j in T.Parallel(512, 512):
                x[i, j] = x[i, j] - rows[i] - columns[j]
            T.copy(x, B)

    return main


def shifted() -> Any:
    """Each row is stored over the next one, which a later strip would load."""
    @T.prim_func
    def main(A: T.Tensor((513, 513), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((512, 512), "float32")
            T.copy(A[0:512, 0:512], x)
            T.copy(x, A[1:513, 1:513])

    return main


def row_before() -> Any:
    """Each row depends on another one, and is reduced."""
    @T.prim_func
    def main(A: T.Tensor((512, 512), "float32"), B: T.Tensor((511,), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((512, 512), "float32")
            y = T.alloc_fragment((511, 512), "float32")
            s = T.alloc_fragment((511,), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(511, 512):
                y[i, j] = x[i + 1, j] - x[i, j]
            T.reduce_sum(y, s, dim=1)
            T.copy(s, B)

    return main


@pytest.mark.parametrize("make", [
    columns_added, shifted, row_before, partial(loaded_and_stored_by_points, 1), partial(loaded_and_stored_by_points, -1)])
def test_left_whole(make: Callable[[], Any]) -> None:
    with pytest.raises(tilelang.TileError, match="T104"):
        compiled(make())


def test_columns_where_rows_are_added() -> None:
    @T.prim_func
    def main(A: T.Tensor((512, 512), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((512, 512), "float32")
            s = T.alloc_fragment((512,), "float32")
            T.copy(A, x)
            T.reduce_sum(x, s, dim=0)
            T.copy(s, B)

    kernel = compiled(main)
    a = drawn((512, 512), "float32")
    b = np.zeros(512, np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(b, a.sum(0))
    assert all(text.endswith("of the 512 columns") for text in strips_of(kernel)) and strips_of(kernel)


def test_explain_names_lines_and_bytes() -> None:
    kernel = compiled(sums(64, 1024, 64, 1024, "float32"))
    (remark,) = (one for one in kernel.explain().remarks if one.about == NAME)
    assert "a (262 144 bytes)" in remark.text and "UB needs" in remark.text and "of the 64 rows" in remark.text
    off = tilelang.compile(sums(4, 64, 4, 64, "float32"))
    assert not strips_of(off)


def test_what_the_author_chose_stays() -> None:
    with pytest.warns(tilelang.TileWarning, match="T192"):
        kernel = tilelang.compile(swapped(128, 192, in_ub=True), target="npuir")
    assert not strips_of(kernel)


def product(M: int, N: int, K: int, m: int, n: int, *, transposed: bool = False) -> Any:
    """relu(A @ B + V), whose accumulator L0C has no room for."""
    shape = (N, K) if transposed else (K, N)

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor(shape, "float16"), V: T.Tensor((N,), "float32"),
             C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, n), T.ceildiv(M, m), threads=128) as (column, row):
            a = T.alloc_shared((m, 64), "float16")
            b = T.alloc_shared((n, 64) if transposed else (64, n), "float16")
            c = T.alloc_fragment((m, n), "float32")
            v = T.alloc_shared((n,), "float32")
            T.copy(V[column * n], v)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[row * m, k * 64], a)
                if transposed:
                    T.copy(B[column * n, k * 64], b)
                else:
                    T.copy(B[k * 64, column * n], b)
                T.gemm(a, b, c, transpose_B=transposed)
            for i, j in T.Parallel(m, n):
                c[i, j] = T.max(c[i, j] + v[j], 0.0)
            T.copy(c, C[row * m, column * n])

    return main


@pytest.mark.parametrize(("shape", "tile", "transposed"), [
    ((300, 250, 130), (256, 256), False), ((300, 250, 130), (256, 256), True), ((64, 1024, 128), (64, 1024), False)])
def test_products(shape: tuple[int, int, int], tile: tuple[int, int], transposed: bool) -> None:
    M, N, K = shape
    kernel = compiled(product(M, N, K, *tile, transposed=transposed))
    a, b, v = drawn((M, K), "float16") - 4, drawn((K, N), "float16", 1) - 4, drawn((N,), "float32", 2)
    c = np.zeros((M, N), np.float32)
    kernel(a, b.T.copy() if transposed else b, v, c)
    np.testing.assert_array_equal(c, np.maximum(a.astype(np.float32) @ b.astype(np.float32) + v, 0))
    assert strips_of(kernel)


def attention(S: int, D: int, m: int, n: int) -> Any:
    @T.prim_func
    def main(Q: T.Tensor((S, D), "float16"), K: T.Tensor((S, D), "float16"), V: T.Tensor((S, D), "float16"),
             O: T.Tensor((S, D), "float32")):
        with T.Kernel(T.ceildiv(S, m), threads=128) as row:
            q = T.alloc_shared((m, D), "float16")
            k = T.alloc_shared((n, D), "float16")
            v = T.alloc_shared((n, D), "float16")
            scores = T.alloc_fragment((m, n), "float32")
            weights = T.alloc_fragment((m, n), "float16")
            out = T.alloc_fragment((m, D), "float32")
            largest = T.alloc_fragment((m,), "float32")
            before = T.alloc_fragment((m,), "float32")
            scale = T.alloc_fragment((m,), "float32")
            part = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((m,), "float32")
            T.copy(Q[row * m, 0], q)
            T.fill(out, 0)
            T.fill(total, 0)
            T.fill(largest, -T.infinity("float32"))
            for step in T.Pipelined(S // n, num_stages=2):
                T.copy(K[step * n, 0], k)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i in T.Parallel(m):
                    scale[i] = T.exp(before[i] - largest[i])
                for i, j in T.Parallel(m, n):
                    scores[i, j] = T.exp(scores[i, j] - largest[i])
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(m):
                    total[i] = total[i] * scale[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(m, D):
                    out[i, j] *= scale[i]
                T.copy(V[step * n, 0], v)
                T.gemm(weights, v, out)
            for i, j in T.Parallel(m, D):
                out[i, j] /= total[i]
            T.copy(out, O[row * m, 0])

    return main


def test_attention() -> None:
    """Both products, the softmax between them and the loop around them, for one half of the queries after the other."""
    arrays = [(drawn((512, 128), "float16", seed) - 4) / 8 for seed in range(3)]
    left = []
    for rows in (512, 64):
        kernel = compiled(attention(512, 128, rows, 128))
        assert bool(strips_of(kernel)) == (rows == 512)
        left.append(np.zeros((512, 128), np.float32))
        kernel(*arrays, left[-1])
    q, k, v = (array.astype(np.float32) for array in arrays)
    weights = np.exp(q @ k.T - (q @ k.T).max(1, keepdims=True))
    np.testing.assert_allclose(left[0], weights @ v / weights.sum(1, keepdims=True), rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(left[0], left[1], rtol=1e-5, atol=1e-6)


def test_two_launches_that_do_not_fit() -> None:
    """The first is divided into rows, the second, which adds up its rows, into columns."""
    @T.prim_func
    def main(A: T.Tensor((64, 2048), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((2048,), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((64, 2048), "float32")
            s = T.alloc_fragment((64,), "float32")
            T.copy(A, x)
            T.reduce_max(x, s, dim=1)
            T.copy(s, B)
        with T.Kernel(1, threads=128):
            y = T.alloc_fragment((64, 2048), "float32")
            t = T.alloc_fragment((2048,), "float32")
            T.copy(A, y)
            T.reduce_sum(y, t, dim=0)
            T.copy(t, C)

    kernel = compiled(main)
    a = drawn((64, 2048), "float32")
    b, c = np.zeros(64, np.float32), np.zeros(2048, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(b, a.max(1))
    np.testing.assert_array_equal(c, a.sum(0))
    assert [text.rpartition(" ")[2] for text in strips_of(kernel)] == ["rows", "columns"]


def weighted_scores(S: int, N: int, heads: int, rows: int, queries: int) -> Any:
    """Products of keys and queries, in a loop whose length is data, weighted and added up over the heads."""
    @T.prim_func
    def main(Q: T.Tensor((S * heads, 64), "float16"), K: T.Tensor((N, 64), "float16"), F: T.Tensor((N,), "float32"),
             W: T.Tensor((S, heads), "float32"), E: T.Tensor((S,), "int32"), O: T.Tensor((S, N), "float32")):
        with T.Kernel(T.ceildiv(S, queries), threads=128) as block:
            q = T.alloc_shared((queries * heads, 64), "float16")
            k = T.alloc_shared((rows, 64), "float16")
            f = T.alloc_fragment((rows,), "float32")
            s = T.alloc_fragment((rows, queries * heads), "float32")
            by_query = T.reshape(s, (rows, queries, heads))
            o = T.alloc_fragment((rows, queries), "float32")
            w = T.alloc_fragment((queries, heads), "float32")
            end = T.alloc_var("int32", init=0)
            for i in T.serial(queries):
                end = T.max(end, T.min(E[block * queries + i], N))
            T.copy(Q[block * queries * heads, 0], q)
            T.copy(W[block * queries, 0], w)
            for n in T.Pipelined(T.ceildiv(end, rows), num_stages=3):
                T.copy(K[n * rows, 0], k)
                T.copy(F[n * rows], f)
                T.gemm(k, q, s, transpose_B=True, clear_accum=True)
                for a, b, c in T.Parallel(rows, queries, heads):
                    by_query[a, b, c] = T.max(by_query[a, b, c] * f[a], 0) * w[b, c]
                T.reduce_sum(by_query, o, dim=-1, clear=True)
                for b, a in T.Parallel(queries, rows):
                    O[block * queries + b, n * rows + a] = o[a, b]

    return main


@pytest.mark.parametrize(("S", "N"), [(2, 300), (4, 512)])
def test_tiles_of_products_that_fit_only_without_their_temporaries(S: int, N: int) -> None:
    """The tiles take 130 of 192 KB of UB, and an intermediate result of T.Parallel as many again."""
    kernel = compiled(weighted_scores(S, N, 64, 256, 2))
    rng = np.random.default_rng(S)
    q, k = (rng.integers(-3, 4, (length, 64)).astype(np.float16) for length in (S * 64, N))
    f, w = rng.integers(1, 4, N).astype(np.float32), rng.integers(0, 4, (S, 64)).astype(np.float32)
    ends, out = np.array([N - 7, 40] * (S // 2), np.int32), np.zeros((S, N), np.float32)
    kernel(q, k, f, w, ends, out)
    products = (k.astype(np.float32) @ q.astype(np.float32).T).reshape(N, S, 64)
    expected = (np.maximum(products * f[:, None, None], 0) * w).sum(-1).T
    np.testing.assert_array_equal(out, expected)
    assert strips_of(kernel)


def scaled_sums(tiles: int, steps: int, rows: int, columns: int) -> Any:
    """Sums of products that are halved before each product, in blocks that loop over tiles behind a guard."""
    @T.prim_func
    def main(A: T.Tensor((tiles * rows, steps * 64), "float16"), B: T.Tensor((steps * 64, columns), "float16"),
             C: T.Tensor((tiles * rows, columns), "float16")):
        with T.Kernel(2, threads=256) as block:
            a = T.alloc_shared((rows, 64), "float16")
            b = T.alloc_shared((64, columns), "float16")
            sums = T.alloc_fragment((rows, columns), "float32")
            for turn in T.serial(T.ceildiv(tiles, 2)):
                number = turn * 2 + block
                if number < tiles:
                    T.fill(sums, 0)
                    for k in T.Pipelined(steps, num_stages=2):
                        T.copy(A[number * rows, k * 64], a)
                        T.copy(B[k * 64, 0], b)
                        for i, j in T.Parallel(rows, columns):
                            sums[i, j] *= 0.5
                        T.gemm(a, b, sums)
                    T.copy(sums, C[number * rows, 0])
            T.sync_grid()  # one Vector core then does all work

    return main


def test_sums_that_fit_only_without_the_next_product() -> None:
    """The sums take 128 of 192 KB of UB, and the next product as many again."""
    tiles, steps, rows, columns = 3, 3, 64, 512
    kernel = compiled(scaled_sums(tiles, steps, rows, columns))
    a, b = (np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float16) for seed, shape in enumerate(
        ((tiles * rows, steps * 64), (steps * 64, columns))))
    c, expected = np.zeros((tiles * rows, columns), np.float16), np.zeros((tiles * rows, columns), np.float32)
    for k in range(steps):
        part = slice(k * 64, k * 64 + 64)
        expected = expected / 2 + a[:, part].astype(np.float32) @ b[part].astype(np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, expected.astype(np.float16))
    assert strips_of(kernel)
