"""Copies of the Cube core between named memories, and from pages: whole kernels compared with NumPy, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@pytest.mark.parametrize(("element", "result"), [("float16", "float16"), ("float16", "float32"), ("bfloat16", "bfloat16")])
@pytest.mark.parametrize("relu", [False, True])
def test_a_product_with_tails(element: str, result: str, relu: bool, rng: np.random.Generator) -> None:
    import ml_dtypes

    M, N, K, tile_m, tile_n, tile_k = 75, 100, 90, 32, 48, 40

    @T.prim_func
    def main(A: T.Tensor((M, K), element), B: T.Tensor((K, N), element), C: T.Tensor((M, N), result)):
        with T.Kernel(T.ceildiv(M, tile_m) * T.ceildiv(N, tile_n), is_npu=True) as (cid, _):
            row = cid // T.ceildiv(N, tile_n) * tile_m
            column = cid % T.ceildiv(N, tile_n) * tile_n
            a = T.alloc_L1((tile_m, tile_k), element)
            b = T.alloc_L1((tile_k, tile_n), element)
            c = T.alloc_L0C((tile_m, tile_n), "float32")
            with T.Scope("Cube"):
                rows = T.min(tile_m, M - row)
                columns = T.min(tile_n, N - column)
                for k in T.serial(T.ceildiv(K, tile_k)):
                    depth = T.min(tile_k, K - k * tile_k)
                    T.load_nd2nz(A[row, k * tile_k], a, [rows, depth])
                    T.npuir_load_nd2nz(B[k * tile_k, column], b, [depth, columns])
                    T.gemm(a, b, c, [rows, depth, columns], initC=(k == 0))
                T.store_fixpipe(c, C[row, column], [rows, columns], enable_nz2nd=True, pre_relu_mode="relu" if relu else "")

    kind: Any = ml_dtypes.bfloat16 if element == "bfloat16" else element
    a, b = rng.standard_normal((M, K)).astype(kind), rng.standard_normal((K, N)).astype(kind)
    c = tilelang.compile(main, out_idx=[-1], target="npuir")(a, b)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    expected = np.maximum(expected, 0) if relu else expected
    np.testing.assert_allclose(c.astype(np.float32), expected.astype(c.dtype).astype(np.float32), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("element", ["float16", "float32", "int8"])
def test_a_matrix_through_l1_and_back(element: str, rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((50, 70), element), B: T.Tensor((50, 70), element)):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_L1((64, 96), element)
            T.load_nd2nz(A[0, 0], a, [50, 70])
            T.store_nz2nd(a, B[0, 0], [50, 70])

    a = rng.integers(-100, 100, (50, 70)).astype(element)
    np.testing.assert_array_equal(tilelang.compile(main, out_idx=[-1], target="npuir")(a), a)


@pytest.mark.parametrize(("statement", "code"), [
    ("T.load_nd2nz(A[0, 0], a)", "T122"),
    ("T.load_nd2nz(l1a, l1b)", "T122"),
    ("T.store_fixpipe(a, A[0, 0], enable_nz2nd=True)", "T122"),
    ("T.store_nz2nd(a, A[0, 0])", "T122"),
    ("T.load_nd2nz(H[0, 0], l1a, [65, 32])", "T130"),
    ("T.gemm(l1a[0, 16], l1b, l0c, [64, 32, 128])", "T130"), ("T.gemm(l1a, l1b, l0c, [65, 32, 128])", "T120"),
    ("T.store_fixpipe(l0c, A[0, 0])", "T190"),
    ("T.store_fixpipe(l0c, A[0, 0], enable_nz2nd=True, channel_split=True)", "T190"),
    ("T.store_fixpipe(l0c, A[0, 0], enable_nz2nd=True, pre_relu_mode='prelu')", "T190"),
    ("T.store_fixpipe(l0c, A[0, 0], enable_nz2nd=True, pre_relu_mode='gelu')", "T145"),
])
def test_refused(kernel: Any, statement: str, code: str) -> None:
    with pytest.raises(tilelang.TileError) as caught:
        kernel(statement, "npuir")
    assert caught.value.code == code


def test_relu_and_atomic_are_of_l0c(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_ub((16, 16), "float32")
            T.copy(A, a)
            T.copy(a, B, enable_relu=True)

    with pytest.raises(tilelang.TileError) as caught:
        tilelang.compile(main, out_idx=[-1], target="npuir").mlir()
    assert caught.value.code == "T231"


def test_lines_of_fractals_are_rows_or_columns(rng: np.random.Generator) -> None:
    M = T.symbolic("M")

    @T.prim_func
    def main(A: T.Tensor((40,), "float16"), B: T.Tensor((24, 40), "float16"), S: T.Tensor((M, 40), "float16"),
             C: T.Tensor((24,), "float32"), D: T.Tensor((24, 2), "float32"), E: T.Tensor((M, 24), "float32"),
             F: T.Tensor((2, 24), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_L1((40, 1), "float16")
            s = T.alloc_L1((40, 1), "float16")
            r = T.alloc_L1((16, 40), "float16")
            b = T.alloc_L1((24, 40), "float16")
            c = T.alloc_L0C((24, 1), "float32")
            d = T.alloc_L0C((24, 1), "float32")
            e = T.alloc_L0C((16, 24), "float32")
            T.copy(A, a[:, 0])
            T.copy(S[2, 0:40], s[:, 0])
            T.copy(A, r[0, :])
            T.copy(B, b)
            T.gemm(b, a, c, initC=True)
            T.gemm(b, s, d, initC=True)
            T.gemm(r, b, e, [1, 40, 24], initC=True, b_transpose=True)
            T.copy(c[:, 0], C)
            T.copy(d[:, 0], D[:, 1])
            T.copy(d[:, 0], E[1, :])
            T.copy(e[0, :], F[1, :])

    a, b, s = (rng.standard_normal(shape).astype(np.float16) for shape in ((40,), (24, 40), (5, 40)))
    c, d, e, f = (np.zeros(shape, np.float32) for shape in ((24,), (24, 2), (5, 24), (2, 24)))
    tilelang.compile(main, target="npuir")(a, b, s, c, d, e, f)
    first, second = b.astype(np.float32) @ a.astype(np.float32), b.astype(np.float32) @ s[2].astype(np.float32)
    for found, expected in ((c, first), (d[:, 1], second), (e[1], second), (f[1], first)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert not d[:, 0].any() and not f[0].any() and np.count_nonzero(e) == np.count_nonzero(e[1])


def test_a_gemm_of_matrices_that_start_at_an_element(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 96), "float16"), B: T.Tensor((96, 40), "float16"), C: T.Tensor((16, 40), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((16, 96), "float16")
            b = T.alloc_shared((32, 40), "float16")
            c = T.alloc_fragment((16, 40), "float32")
            T.copy(A, a)
            for k in T.serial(3):
                T.copy(B[k * 32, 0], b)
                T.gemm(a[0, k * 32], b, c, size=[16, 32, 40], initC=(k == 0))
            T.copy(c, C)

    a, b = rng.standard_normal((16, 96)).astype(np.float16), rng.standard_normal((96, 40)).astype(np.float16)
    c = tilelang.compile(main, out_idx=[-1], target="npuir")(a, b)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)


SEQUENCES, PAGES, PER_SEQUENCE, ROWS_OF_PAGE, HEADS, WIDTH = 2, 7, 3, 24, 2, 40
TABLE = np.array([[4, 0, 6], [3, 1, 2]], np.int32)


def paged(element: str, columns: int, cache: tuple[int, ...], table: tuple[int, ...], rows: int) -> Any:
    """A kernel that loads ``count`` rows of a sequence, from row ``first`` on, of one head and some of its columns."""
    @T.prim_func
    def main(KV: T.Tensor(cache, element), BT: T.Tensor(table, "int32"), Y: T.Tensor((rows, columns), element), batch: T.int32,
             head: T.int32, first: T.int32, column: T.int32, count: T.int32):
        with T.Kernel(1, is_npu=True) as (_, _):
            ring = T.alloc_L1((2, 64, columns), element)
            with T.Scope("Cube"):
                T.copy_pa(ring[1, :, :], KV, BT, ROWS_OF_PAGE, HEADS, WIDTH, ROWS_OF_PAGE * HEADS * WIDTH, PER_SEQUENCE,
                          columns, count, 64, batch, head, first, column)
                T.store_nz2nd(ring[1, 0:rows, :], Y)

    return main


@pytest.mark.parametrize("element", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize(("batch", "head", "first", "column", "count"), [
    (0, 0, 0, 0, 24), (1, 0, 5, 0, 7), (1, 1, 20, 16, 33), (0, 1, 48, 8, 24), (1, 0, 1, 3, 64)])
@pytest.mark.parametrize("flat", [False, True])
def test_rows_of_pages(element: str, batch: int, head: int, first: int, column: int, count: int, flat: bool,
                       rng: np.random.Generator) -> None:
    import ml_dtypes

    kind: Any = ml_dtypes.bfloat16 if element == "bfloat16" else element
    pages = rng.integers(-100, 100, (PAGES, HEADS, ROWS_OF_PAGE, WIDTH)).astype(kind)
    cache = pages.reshape(-1, WIDTH) if flat else pages
    table = TABLE.reshape(-1) if flat else TABLE
    kernel = tilelang.compile(paged(element, 24, cache.shape, table.shape, count), target="ascendc",
                              pass_configs={"tl.ascend_auto_sync": True})
    wanted = pages[TABLE[batch], head].reshape(-1, WIDTH)[first:first + count, column:column + 24]
    compiled, interpreted = (np.zeros((count, 24), kind) for _ in range(2))
    kernel(cache, table, compiled, batch, head, first, column, count)
    assert kernel.last_launch.hazards == []
    np.testing.assert_array_equal(compiled, wanted)
    kernel.interpret(cache, table, interpreted, batch, head, first, column, count)
    np.testing.assert_array_equal(interpreted, wanted)


@pytest.mark.parametrize("page", [PAGES, -1])
def test_a_page_that_does_not_exist(page: int) -> None:
    """Beyond the end of the cache there are zeros, as for ``T.copy``; before its start there is nothing."""
    cache, table = np.ones((PAGES, HEADS, ROWS_OF_PAGE, WIDTH), np.float16), TABLE.copy()
    table[1, 1] = page
    kernel = tilelang.compile(paged("float16", 40, cache.shape, table.shape, 40), target="ascendc",
                              pass_configs={"tl.ascend_auto_sync": True})
    for run in (kernel, kernel.interpret):
        y = np.zeros((40, 40), np.float16)
        if page < 0:
            with pytest.raises(tilelang.TileError) as caught:
                run(cache, table, y, 1, 0, 10, 0, 40)
            assert caught.value.code == "T502"
        else:
            run(cache, table, y, 1, 0, 10, 0, 40)
            np.testing.assert_array_equal(y, np.repeat([1, 0, 1], [14, 24, 2])[:, None] * np.ones(40))


@pytest.mark.parametrize(("arguments", "code", "words"), [
    ("h, H, BT, 8, 1, 128, 1024, 8, 128, 8, 8, 0, 0, 0, 0", "T122", "is not in L1"),
    ("l1, h, BT, 8, 1, 128, 1024, 8, 128, 8, 64, 0, 0, 0, 0", "T122", "is not in a global tensor"),
    ("l1, H, V, 8, 1, 128, 1024, 8, 128, 8, 64, 0, 0, 0, 0", "T110", "has elements of float32"),
    ("l1, H, BT, 8, 1, n, 1024, 8, 128, 8, 64, 0, 0, 0, 0", "T145", "head_dim is"),
    ("l1, H, BT, 8, 1, 128, 1000, 8, 128, 8, 64, 0, 0, 0, 0", "T145", "1000 is not a multiple of head_dim, 128"),
    ("l1, H, BT, 8, 1, 128, 1024, 8, 64, 8, 64, 0, 0, 0, 0", "T111", "act_head_dim = 64 columns"),
    ("l1, H, BT, 8, 1, 128, 1024, 8, 128, 8, 32, 0, 0, 0, 0", "T111", "copy_row_num_align = 32 rows"),
    ("l1, H, BT, 8, 1, 96, 96 * 8, 8, 128, 8, 64, 0, 0, 0, 0", "T111", "whole number of rows of 96"),
])
def test_pages_refused(source: Any, arguments: str, code: str, words: str) -> None:
    text = f"""
        import tilelang_npu.language as T

        @T.prim_func
        def main(H: T.Tensor((64, 128), "float16"), BT: T.Tensor((8,), "int32"), V: T.Tensor((8,), "float32"), n: T.int32):
            with T.Kernel(1, is_npu=True) as (_, _):
                h = T.alloc_ub((8, 128), "float16")
                l1 = T.alloc_L1((64, 128), "float16")
                T.copy_pa({arguments})
    """
    with pytest.raises(tilelang.TileError, match=words) as caught:
        tilelang.compile(source(text).main, target="ascendc")
    assert caught.value.code == code
