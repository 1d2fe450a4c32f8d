"""Elements past the end of a tensor in a ``T.Parallel``: they read as 0 and are not written, however the loop is computed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

TILE, TAKEN = 8, 16
SERIAL = {"tl.disable": ["vectorise-parallel"]}


def _kernel(dtype: str, rows: int | None, form: str) -> Any:
    """Two tiles of ``TILE`` rows over a tensor of fewer; ``form`` is how a point computes its value."""
    n = T.dynamic("n") if rows is None else rows

    @T.prim_func
    def main(X: T.Tensor((n, 4), dtype), Y: T.Tensor((n, 4), dtype), S: T.Tensor((TAKEN, 4), dtype)):
        with T.Kernel(2, threads=128) as b:
            s = T.alloc_fragment((TILE, 4), dtype)
            for i, j in T.Parallel(TILE, 4):
                if form == "variable":
                    read = T.alloc_var(dtype)
                    read = X[b * TILE + i, j]
                    s[i, j] = read
                else:
                    s[i, j] = X[b * TILE + i, j]
            T.copy(s, S[b * TILE, 0])
            for i, j in T.Parallel(TILE, 4):
                if form == "variable":
                    written = T.alloc_var(dtype)
                    written = s[i, j]
                    Y[b * TILE + i, j] = written
                elif form == "branch":
                    if j < 3:
                        Y[b * TILE + i, j] = s[i, j]
                else:
                    Y[b * TILE + i, j] = s[i, j]

    return tilelang.compile(main, target="npuir", pass_configs=SERIAL if form == "serial" else None)


@pytest.mark.parametrize("rows", [13, 16, 8, 1, None])
@pytest.mark.parametrize("form", ["plain", "serial", "variable", "branch"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                                   "int64", "uint64"])
def test_rows_past_the_end_read_as_zero_and_are_not_written(dtype: str, form: str, rows: int | None) -> None:
    kernel = _kernel(dtype, rows, form)
    count = rows or 11
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = np.random.default_rng(0).integers(1, 100, (count, 4)).astype(kind)
    expected = np.zeros((TAKEN, 4), kind)
    expected[:count] = x
    for run in (kernel, kernel.interpret):
        memory = np.full((count + 3, 4), 7, kind)  # what follows the tensor must stay
        y, s = memory[:count], np.full((TAKEN, 4), 9, kind)
        run(x, y, s)
        np.testing.assert_array_equal(s.astype(np.float64), expected.astype(np.float64))
        columns = 3 if form == "branch" else 4
        np.testing.assert_array_equal(y[:, :columns].astype(np.float64), x[:, :columns].astype(np.float64))
        assert (y[:, columns:].astype(np.float64) == 7).all()
        assert (memory[count:].astype(np.float64) == 7).all()
    assert kernel.check(x, np.zeros_like(x), np.zeros((TAKEN, 4), kind))


@pytest.mark.parametrize("form", ["vector", "serial"])
def test_an_index_from_data_past_the_end_reads_zero_and_a_negative_one_is_an_error(form: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((13,), "float32"), N: T.Tensor((8,), "int32"), Y: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=128):
            n = T.alloc_shared((8,), "int32")
            y = T.alloc_shared((8,), "float32")
            T.copy(N, n)
            for i in T.Parallel(8):
                y[i] = X[n[i]]
            T.copy(y, Y)

    kernel = tilelang.compile(main, target="npuir", pass_configs=SERIAL if form == "serial" else None)
    x = np.arange(1, 14, dtype=np.float32)
    for run in (kernel, kernel.interpret):
        n, y = np.array([0, 12, 13, 5, 4000, 16, 2, 14], np.int32), np.zeros(8, np.float32)
        run(x, n, y)
        np.testing.assert_array_equal(y, [1, 13, 0, 6, 0, 0, 3, 0])
        n[3] = -1
        with pytest.raises(TileError, match="index -1 is outside") as caught:
            run(x, n, y)
        assert caught.value.location is not None


@pytest.mark.parametrize("form", ["vector", "serial"])
def test_a_negative_index_is_an_error(form: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((13, 16), "float32"), Y: T.Tensor((8, 16), "float32")):
        with T.Kernel(1, threads=128) as b:
            y = T.alloc_shared((8, 16), "float32")
            for i, j in T.Parallel(8, 16):
                y[i, j] = X[b + i - 1, j]
            T.copy(y, Y)

    kernel = tilelang.compile(main, target="npuir", pass_configs=SERIAL if form == "serial" else None)
    for run in (kernel, kernel.interpret):
        with pytest.raises(TileError, match=r"T502|T130"):
            run(np.ones((13, 16), np.float32), np.zeros((8, 16), np.float32))
