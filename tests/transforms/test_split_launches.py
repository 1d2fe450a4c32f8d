"""Statements before and between the launches of a kernel belong to the launches after them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError


def test_an_element_between_the_launches_is_read_there() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        first = A[0]
        with T.Kernel(1, threads=128):
            row = T.alloc_shared((64,), "int32")
            T.copy(A, row)
            for i in T.Parallel(64):
                row[i] = row[i] + first
            T.copy(row, B)
        second = B[1]
        with T.Kernel(1, threads=128):
            row = T.alloc_shared((64,), "int32")
            T.copy(B, row)
            for i in T.Parallel(64):
                row[i] = row[i] * second
            T.copy(row, B)

    a, b = np.arange(5, 69, dtype=np.int32), np.zeros(64, np.int32)
    tilelang.compile(main, target="npuir", sanitize=True)(a, b)
    np.testing.assert_array_equal(b, (a + 5) * (a[1] + 5))


def test_an_element_that_a_launch_overwrites_is_not_read_late() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        first = A[0]
        with T.Kernel(1, threads=128):
            row = T.alloc_shared((64,), "int32")
            T.fill(row, 7)
            T.copy(row, A)
        with T.Kernel(1, threads=128):
            row = T.alloc_shared((64,), "int32")
            T.fill(row, first)
            T.copy(row, A)

    with pytest.raises(TileError, match=r"this element of A is read outside T\.Kernel") as caught:
        tilelang.compile(main, target="npuir")
    assert caught.value.code == "T160"
    assert caught.value.location is not None
    assert "first = A[0]" in Path(caught.value.location.file).read_text().splitlines()[caught.value.location.line - 1]
