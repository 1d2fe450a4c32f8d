"""``T.Parallel`` that reads and writes in another order than its own: by vector operations, or with the edit for it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

TYPES = ["float16", "float32", "bfloat16", "int8", "int16", "int32"]


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(kind)


def compiled(func: Any, *without: str) -> Any:
    return tilelang.compile(func, target="npuir", sanitize=True, pass_configs={"tl.disable": list(without)})


def loops(kernel: Any) -> str:
    return "\n".join(kernel.explain().sections["loops"])


def both(func: Any, *arguments: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], float, str]:
    """What a kernel leaves in its last argument, the same with its points one by one; how many times as long these take."""
    results, cycles = [], []
    for without in ((), ("vectorise-parallel",)):
        kernel, own = compiled(func, *without), [argument.copy() for argument in arguments]
        kernel(*own)
        results.append(own[-1])
        cycles.append(kernel.profile(*(argument.copy() for argument in arguments)).cycles)
    np.testing.assert_array_equal(*results)
    return results[0], cycles[1] / cycles[0], loops(compiled(func))


def rope(rows: int, half: int, dtype: str) -> Any:
    @T.prim_func
    def main(X: T.Tensor((rows, 2 * half), dtype), C: T.Tensor((rows, half), dtype), S: T.Tensor((rows, half), dtype),
             Y: T.Tensor((rows, 2 * half), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((rows, 2 * half), dtype)
            c = T.alloc_shared((rows, half), dtype)
            s = T.alloc_shared((rows, half), dtype)
            y = T.alloc_shared((rows, 2 * half), dtype)
            T.copy(X, x)
            T.copy(C, c)
            T.copy(S, s)
            for i, j in T.Parallel(rows, half):
                y[i, 2 * j] = x[i, 2 * j] * c[i, j] - x[i, 2 * j + 1] * s[i, j]
                y[i, 2 * j + 1] = x[i, 2 * j + 1] * c[i, j] + x[i, 2 * j] * s[i, j]
            T.copy(y, Y)
    return main


@pytest.mark.parametrize(("rows", "half", "dtype"), [(16, 64, "float32"), (5, 24, "float16"), (3, 7, "bfloat16")])
def test_interleaved_rope_is_vector_work(rows: int, half: int, dtype: str) -> None:
    x, c, s = drawn((rows, 2 * half), dtype), drawn((rows, half), dtype, 1), drawn((rows, half), dtype, 2)
    expected = np.empty_like(x)
    expected[:, ::2] = x[:, ::2] * c - x[:, 1::2] * s
    expected[:, 1::2] = x[:, 1::2] * c + x[:, ::2] * s
    left, faster, told = both(rope(rows, half, dtype), x, c, s, np.zeros_like(x))
    np.testing.assert_array_equal(left, expected)
    if rows == 16:
        assert faster > 5
        assert "x with deinterleave" in told and "y with interleave" in told


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("rows", "columns"), [(20, 30), (64, 48)])
def test_rows_for_columns_are_vector_work(rows: int, columns: int, dtype: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), O: T.Tensor((columns, rows), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((rows, columns), dtype)
            b = T.alloc_shared((columns, rows), dtype)
            T.copy(A, a)
            for j, i in T.Parallel(columns, rows):
                b[j, i] = a[i, j]
            T.copy(b, O)

    a = drawn((rows, columns), dtype)
    left, faster, told = both(main, a, np.zeros((columns, rows), a.dtype))
    np.testing.assert_array_equal(left, a.T)
    assert faster > 1.5 and "a with transpose" in told


def test_an_operand_whose_rows_are_columns() -> None:
    @T.prim_func
    def main(A: T.Tensor((33, 20), "float32"), B: T.Tensor((20, 33), "float32"), O: T.Tensor((20, 33), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((33, 20), "float32")
            b = T.alloc_shared((20, 33), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(20, 33):
                b[i, j] = b[i, j] + a[j, i] * a[j, i]
            T.copy(b, O)

    a, b = drawn((33, 20), "float32"), drawn((20, 33), "float32", 1)
    left, faster, _ = both(main, a, b, np.zeros_like(b))
    np.testing.assert_array_equal(left, b + a.T * a.T)
    assert faster > 2


@pytest.mark.parametrize("dtype", TYPES)
def test_every_other_place_stays_what_it_was(dtype: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((5, 40), dtype), Y: T.Tensor((10, 80), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((5, 40), dtype)
            y = T.alloc_shared((10, 80), dtype)
            T.copy(X, x)
            T.copy(Y, y)
            for i, j in T.Parallel(5, 40):
                y[2 * i + 1, 2 * j] = x[4 - i, 39 - j]
            T.copy(y, Y)

    x, y = drawn((5, 40), dtype), drawn((10, 80), dtype, 1)
    expected = y.copy()
    expected[1::2, ::2] = x[::-1, ::-1]
    np.testing.assert_array_equal(both(main, x, y)[0], expected)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_tensor_in_gm_in_any_order(dtype: str) -> None:
    """Every second element, and rows for columns, of and to tensors."""
    @T.prim_func
    def main(X: T.Tensor((24, 34), dtype), Y: T.Tensor((17, 24), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            for i, j in T.Parallel(24, 17):
                Y[j, i] = X[i, 2 * j] + X[i, 2 * j + 1]

    x = drawn((24, 34), dtype)
    left, faster, _ = both(main, x, np.zeros((17, 24), x.dtype))
    np.testing.assert_array_equal(left, (x[:, ::2] + x[:, 1::2]).T)
    assert faster > 2


def test_what_is_read_at_places_of_a_tile() -> None:
    """An index out of a tile, and the nearest of twice as many places."""
    @T.prim_func
    def main(X: T.Tensor((16, 16), "float16"), I: T.Tensor((32,), "int32"), Y: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((16, 16), "float16")
            at = T.alloc_shared((32,), "int32")
            y = T.alloc_shared((32, 32), "float16")
            T.copy(X, x)
            T.copy(I, at)
            for i, j in T.Parallel(32, 32):
                y[i, j] = x[i // 2, at[j]]
            T.copy(y, Y)

    x, at = drawn((16, 16), "float16"), np.random.default_rng(3).integers(0, 16, 32).astype(np.int32)
    left, faster, told = both(main, x, at, np.zeros((32, 32), np.float16))
    np.testing.assert_array_equal(left, x[np.arange(32) // 2][:, at])
    assert faster > 3 and "x with gather" in told


@pytest.mark.parametrize(("points", "gathered"), [(16, False), (32, True)])
def test_a_tile_with_padded_rows_is_gathered_where_the_copy_of_its_rows_pays(points: int, gathered: bool) -> None:
    """A gather needs a copy of the tile, whose 512 rows of 12 bytes take an instruction's step each: that is as long as 18
    points take one by one."""
    @T.prim_func
    def main(X: T.Tensor((512, 3), "float32"), I: T.Tensor((points,), "int32"), Y: T.Tensor((points,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((512, 3), "float32")
            at = T.alloc_shared((points,), "int32")
            y = T.alloc_shared((points,), "float32")
            T.copy(X, x)
            T.copy(I, at)
            for i in T.Parallel(points):
                y[i] = x[at[i], 1]
            T.copy(y, Y)

    x, at = drawn((512, 3), "float32"), np.random.default_rng(4).integers(0, 512, points).astype(np.int32)
    left, faster, told = both(main, x, at, np.zeros(points, np.float32))
    np.testing.assert_array_equal(left, x[at, 1])
    assert ("point by point" in told) is not gathered, told
    assert (faster > 1) is gathered


def test_an_index_beyond_the_tile_is_still_found() -> None:
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), I: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((64,), "float32")
            at = T.alloc_shared((64,), "int32")
            y = T.alloc_shared((64,), "float32")
            T.copy(X, x)
            T.copy(I, at)
            for i in T.Parallel(64):
                y[i] = x[at[i]]
            T.copy(y, Y)

    at = np.arange(64, dtype=np.int32)
    at[7] = 64
    with pytest.raises(tilelang.TileError, match="64"):
        compiled(main)(drawn((64,), "float32"), at, np.zeros(64, np.float32))


def test_old_values_are_read_before_they_are_written_over() -> None:
    """In place, and with a statement in between that reads what the first one wrote."""
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 64), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(8, 32):  # the second statement reads what the first one wrote
                x[i, 2 * j] = x[i, 2 * j] + x[i, 2 * j]
                x[i, 2 * j + 1] = x[i, 2 * j] + x[i, 2 * j + 1]
            T.copy(x, Y)

    x = drawn((8, 64), "float32")
    expected = x.copy()
    expected[:, ::2] *= 2
    expected[:, 1::2] += expected[:, ::2]
    np.testing.assert_array_equal(both(main, x, np.zeros_like(x))[0], expected)


def test_some_rows_at_a_time_where_all_have_no_room() -> None:
    @T.prim_func
    def main(A: T.Tensor((200, 300), "int8"), O: T.Tensor((300, 200), "int8")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((200, 300), "int8")
            t = T.alloc_shared((300, 200), "int8")
            T.copy(A, a)
            for j, i in T.Parallel(300, 200):
                t[j, i] = a[i, j]
            T.copy(t, O)

    a, left = drawn((200, 300), "int8"), np.zeros((300, 200), np.int8)
    kernel = compiled(main)
    kernel(a, left)
    np.testing.assert_array_equal(left, a.T)
    assert "rows at a time: copies and fills; rearranged first: a with transpose" in loops(kernel)
    assert kernel.profile(a, left).time_us < 20  # points one by one take 741


def test_what_all_points_share_goes_to_gm() -> None:
    """A row, and an element: both were copied as they are, to a target of another shape."""
    @T.prim_func
    def main(X: T.Tensor((16,), "float32"), Y: T.Tensor((4, 8), "float32"), Z: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((16,), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(4, 8):
                Y[i, j] = x[j + 8]
            for j in T.Parallel(8):
                Z[j] = x[3]

    x = drawn((16,), "float32")
    y, z = np.zeros((4, 8), np.float32), np.zeros(8, np.float32)
    compiled(main)(x, y, z)
    np.testing.assert_array_equal(y, np.tile(x[8:], (4, 1)))
    np.testing.assert_array_equal(z, np.full(8, x[3]))


def test_rows_that_are_taken_apart_are_divided_between_the_vector_cores() -> None:
    @T.prim_func
    def main(X: T.Tensor((64, 128), "float32"), Y: T.Tensor((64, 128), "float32")):
        with T.Kernel(2, threads=2, is_npu=True) as cid:
            x = T.alloc_shared((32, 128), "float32")
            y = T.alloc_shared((32, 128), "float32")
            T.copy(X[cid * 32, 0], x)
            for i, j in T.Parallel(32, 64):
                y[i, 2 * j] = x[i, 2 * j] - x[i, 2 * j + 1]
                y[i, 2 * j + 1] = x[i, 2 * j] + x[i, 2 * j + 1]
            T.copy(y, Y[cid * 32, 0])

    switches = dict.fromkeys(("tl.ascend_auto_sync", "tl.ascend_auto_cv_combine", "tl.ascend_memory_planning",
                              "tl.ascend_auto_cross_core_sync"), True)
    kernel = tilelang.compile(main, target="ascendc", pass_configs=switches, sanitize=True)
    x, y = drawn((64, 128), "float32"), np.zeros((64, 128), np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(y[:, ::2], x[:, ::2] - x[:, 1::2])
    np.testing.assert_array_equal(y[:, 1::2], x[:, ::2] + x[:, 1::2])
    text = kernel.mlir("bind-sub-blocks")
    assert 'tile.alloc "x" : memref<16x128xf32' in text and "outs(%" in text
    assert "half of the rows of T.Parallel, x, y" in "\n".join(kernel.explain().sections["optimisations"])


TEXT = """
import tilelang_npu.language as T

@T.prim_func
def main(X: T.Tensor((16, 16), "float32"), Y: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, _):
        x = T.alloc_shared((16, 16), "float32")
        y = T.alloc_shared((64, 64), "float32")
        T.copy(X, x)
        T.copy(Y, y)
        for i, j in T.Parallel(16, 16):
            {statement}
        T.copy(y, Y)
"""


@pytest.mark.parametrize(("statement", "says", "edit"), [
    ("y[i * j, j] = x[i, j]", "y (64x64) is written at computed indices", "T.vgather"),
    ("y[i, j // 3 + j] = x[i, j]", "y (64x64) is written at computed indices", "T.vgather"),
    ("y[i + j, j] = x[i, j]", "y (float32 64x64) is written in another order", "T.vinterleave"),
    ("Y[i, 4 * j] = x[i, j]", "Y (float32 64x64) is written in another order", "T.vtranspose"),
    ("y[i, j] = x[i, (i * j) // 17]", "x is read at computed indices, and // and % of a value", "power of two"),
])
def test_a_loop_that_stays_says_what_would_vectorise_it(statement: str, says: str, edit: str, tmp_path: Path) -> None:
    file = tmp_path / "stays.py"
    file.write_text(TEXT.format(statement=statement))
    spec = importlib.util.spec_from_file_location("stays", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = compiled(module.main)
    assert "T.Parallel 16x16  point by point" in loops(kernel)
    refused = "\n".join(kernel.explain().sections.get("refused", []))
    assert "line 11" in refused and says in refused and edit in refused, refused
