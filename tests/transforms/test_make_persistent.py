"""Launches of more blocks than cores: one block for each core computes the values of all of them, bit by bit, in less time."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.kernel.compiled_kernel import MAX_BLOCKS

NAME = "make-persistent"
OFF = {"tl.disable": [NAME]}
CORES = 48


def blocks_of(kernel: Any) -> int:
    """The number of blocks that the compiled kernel declares."""
    (program,) = kernel.programs
    return int(program.block_dim)


def added(rows: int, columns: int, tile_rows: int, tile_columns: int, dtype: str, on: bool = True) -> Any:
    @T.prim_func
    def added(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, columns), dtype), Z: T.Tensor((rows, columns), dtype)):
        with T.Kernel(T.ceildiv(rows, tile_rows), T.ceildiv(columns, tile_columns), is_npu=True) as (i, j):
            x = T.alloc_shared((tile_rows, tile_columns), dtype)
            y = T.alloc_shared((tile_rows, tile_columns), dtype)
            T.copy(X[i * tile_rows, j * tile_columns], x)
            T.copy(Y[i * tile_rows, j * tile_columns], y)
            T.vadd(x, y, x)
            T.copy(x, Z[i * tile_rows, j * tile_columns])

    return tilelang.compile(added, target="npuir", pass_configs={} if on else OFF)


@settings(max_examples=12, deadline=None)
@given(rows=st.integers(60, 300), columns=st.integers(100, 500), tile_rows=st.sampled_from([4, 6, 16]),
       tile_columns=st.sampled_from([32, 64, 96]), dtype=st.sampled_from(["float32", "float16", "int32", "int16"]))
def test_tiles_of_any_shape_have_the_values_of_numpy(rows: int, columns: int, tile_rows: int, tile_columns: int,
                                                     dtype: str) -> None:
    rng = np.random.default_rng(rows)
    x, y = (rng.integers(-99, 99, (rows, columns)).astype(dtype) for _ in range(2))
    blocks = -(-rows // tile_rows) * -(-columns // tile_columns)
    kernel = added(rows, columns, tile_rows, tile_columns, dtype)
    assert blocks_of(kernel) == min(blocks, CORES)
    z = np.zeros_like(x)
    kernel.sanitize = True
    kernel(x, y, z)
    np.testing.assert_array_equal(z, x + y)


def test_the_number_of_ops_counts_the_tiles_of_all_blocks() -> None:
    """It decides whether a call is executed in batches, and whether a report may execute the kernel: not by the first block."""
    one, other = (added(1024, 1024, 32, 32, "float32", on=on) for on in (True, False))
    assert one._least_ops() > 0.75 * other._least_ops()


def test_a_launch_of_small_tiles_takes_less_time() -> None:
    fast, slow = (added(1024, 1024, 32, 32, "float32", on=on) for on in (True, False))
    assert (blocks_of(fast), blocks_of(slow)) == (CORES, 1024)
    assert fast.estimate().time_us < 0.4 * slow.estimate().time_us


def normalised(rows: int, columns: int) -> Any:
    @T.prim_func
    def normalised(X: T.Tensor((rows, columns), "bfloat16"), W: T.Tensor((1, columns), "bfloat16"),
                   Y: T.Tensor((rows, columns), "bfloat16")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            x, w = T.alloc_shared((1, columns), "bfloat16"), T.alloc_shared((1, columns), "bfloat16")
            f, g = T.alloc_shared((1, columns), "float32"), T.alloc_shared((1, columns), "float32")
            square, total = T.alloc_shared((1, columns), "float32"), T.alloc_shared((1, 1), "float32")
            T.copy(X[row, 0], x)
            T.copy(W, w)
            T.vcast(x, f)
            T.vcast(w, g)
            T.vmul(f, f, square)
            T.reduce_sum(square, total, dim=-1)
            for r, c in T.Parallel(1, columns):
                f[r, c] = f[r, c] * g[r, c] / T.sqrt(total[r, 0] / columns + 1e-5)
            T.vcast(f, x, round_mode="rint")
            T.copy(x, Y[row, 0])

    return normalised


def test_rows_have_the_values_of_a_launch_for_each_row() -> None:
    rows, columns = 131, 320
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((rows, columns), (1, columns)))
    found = []
    for configs in ({}, OFF):
        kernel = tilelang.compile(normalised(rows, columns), target="npuir", pass_configs=configs)
        y = np.zeros_like(x)
        kernel(x, w, y)
        found.append((y, kernel.last_launch.time_us, blocks_of(kernel)))
    (fast, fast_us, few), (slow, slow_us, many) = found
    assert (few, many) == (CORES, rows)
    assert fast.tobytes() == slow.tobytes()
    assert fast_us < 0.8 * slow_us
    f = x.astype(np.float32)
    expected = f * w.astype(np.float32) / np.sqrt((f * f).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(fast.astype(np.float32), expected, rtol=0.02, atol=0.02)


def test_a_load_that_all_blocks_share_is_done_once() -> None:
    text = tilelang.compile(normalised(131, 320), target="npuir").mlir()
    before, loop = text.split("scf.for", 1)
    assert before.count("hivm.hir.load") == 1  # of W
    assert loop.count("hivm.hir.load") == 1  # of X


def swizzled(rows: int, columns: int, panel: int) -> Any:
    @T.prim_func
    def swizzled(X: T.Tensor((rows * 8, columns * 64), "float32"), Y: T.Tensor((rows * 8, columns * 64), "float32")):
        with T.Kernel(columns, rows, is_npu=True) as (column, row):
            T.use_swizzle(panel)
            x = T.alloc_shared((8, 64), "float32")
            T.copy(X[row * 8, column * 64], x)
            T.vabs(x, x)
            T.copy(x, Y[row * 8, column * 64])

    return swizzled


@pytest.mark.parametrize("panel", [1, 2, 3, 5])
def test_the_order_of_blocks_that_the_author_chose_is_kept(panel: int) -> None:
    x = np.random.default_rng(panel).standard_normal((13 * 8, 7 * 64)).astype(np.float32)
    y = np.zeros_like(x)
    kernel = tilelang.compile(swizzled(13, 7, panel), target="npuir")
    kernel(x, y)
    assert blocks_of(kernel) == CORES
    np.testing.assert_array_equal(y, abs(x))


def divided(rows: int) -> Any:
    @T.prim_func
    def divided(X: T.Tensor((rows * 16, 128), "float32"), Y: T.Tensor((rows * 16, 128), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, half):
            x = T.alloc_shared((8, 128), "float32")
            T.copy(X[row * 16 + half * 8, 0], x)
            T.vexp(x, x)
            T.copy(x, Y[row * 16 + half * 8, 0])

    return divided


def test_both_vector_cores_of_a_block_loop() -> None:
    x = np.random.default_rng(0).standard_normal((61 * 16, 128)).astype(np.float32)
    found = []
    for configs in ({}, OFF):
        kernel, y = tilelang.compile(divided(61), target="npuir", pass_configs=configs), np.zeros_like(x)
        kernel(x, y)
        found.append((y, blocks_of(kernel)))
    assert [blocks for _, blocks in found] == [CORES, 122]
    assert found[0][0].tobytes() == found[1][0].tobytes()
    np.testing.assert_allclose(found[0][0], np.exp(x), rtol=1e-5)


def test_more_blocks_than_a_launch_can_have() -> None:
    rows = MAX_BLOCKS + 2

    @T.prim_func
    def main(X: T.Tensor((rows, 8), "float32"), Y: T.Tensor((rows, 8), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            x = T.alloc_shared((1, 8), "float32")
            T.copy(X[row, 0], x)
            T.copy(x, Y[row, 0])

    x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)
    y = np.zeros_like(x)
    tilelang.compile(main, target="npuir")(x, y)
    np.testing.assert_array_equal(y, x)


def unequal(rows: int) -> Any:
    @T.prim_func
    def unequal(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            x, total = T.alloc_shared((1, 64), "float32"), T.alloc_shared((1, 64), "float32")
            T.clear(total)
            for k in T.serial(row + 1):
                T.copy(X[k, 0], x)
                T.vadd(total, x, total)
            T.copy(total, Y[row, 0])

    return unequal


def looping(rows: int) -> Any:
    """As :func:`unequal`, but all blocks loop over the same number of tiles."""

    @T.prim_func
    def looping(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            x, total = T.alloc_shared((1, 64), "float32"), T.alloc_shared((1, 64), "float32")
            T.clear(total)
            for k in T.serial(4):
                T.copy(X[k, 0], x)
                T.vadd(total, x, total)
            T.copy(total, Y[row, 0])

    return looping


def printing(rows: int) -> Any:
    @T.prim_func
    def printing(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            x = T.alloc_shared((1, 64), "float32")
            T.copy(X[row, 0], x)
            T.printf("%d\n", row)
            T.copy(x, Y[row, 0])

    return printing


def in_place(rows: int) -> Any:
    @T.prim_func
    def in_place(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            x, y = T.alloc_shared((1, 64), "float32"), T.alloc_shared((1, 64), "float32")
            T.copy(X[row, 0], x)
            T.copy(Y[row, 0], y)
            T.vadd(x, y, y)
            T.copy(y, Y[row, 0])

    return in_place


def atomic(rows: int) -> Any:
    @T.prim_func
    def atomic(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((1, 64), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            x = T.alloc_shared((1, 64), "float32")
            T.copy(X[row, 0], x)
            T.atomic_add(Y, x)

    return atomic


def product(rows: int) -> Any:
    @T.prim_func
    def product(A: T.Tensor((rows * 16, 16), "float16"), C: T.Tensor((rows * 16, 16), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            a, c = T.alloc_shared((16, 16), "float16"), T.alloc_fragment((16, 16), "float32")
            T.copy(A[row * 16, 0], a)
            T.gemm(a, a, c, initC=True)
            T.copy(c, C[row * 16, 0])

    return product


@pytest.mark.parametrize("make", [product, unequal, looping, printing, in_place, atomic])
def test_launches_with_long_blocks_or_whose_order_matters_stay(make: Any) -> None:
    assert blocks_of(tilelang.compile(make(70), target="npuir")) == 70


def test_the_remark_names_both_numbers_of_blocks() -> None:
    kernel = tilelang.compile(normalised(131, 320), target="npuir")
    assert "48 blocks, one for each Vector core, loop over the work of 131" in str(kernel.explain())
