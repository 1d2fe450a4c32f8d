"""``T.tile.exp_experiment``: one instruction with a repeat per row, with the limits of an instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.frontend import trace


def exponentials(rows: int, pitch: int, first: int, width: int, dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((rows, pitch), dtype), B: T.Tensor((rows, pitch), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((rows, pitch), dtype)
            b = T.alloc_ub((rows, pitch), dtype)
            if vid == 0:
                T.copy(A, a)
                T.copy(A, b)
                T.tile.exp_experiment(b[:, first : first + width], a[:, first : first + width])
                T.copy(b, B)

    return main


@pytest.mark.parametrize(("rows", "pitch", "first", "width", "dtype"), [
    (8, 128, 0, 64, "float32"), (13, 96, 32, 40, "float32"), (64, 64, 0, 64, "float32"), (9, 256, 128, 128, "float16"),
    (5, 48, 16, 17, "float16")])
def test_the_columns_of_each_row(rng: np.random.Generator, rows: int, pitch: int, first: int, width: int, dtype: str) -> None:
    a = rng.standard_normal((rows, pitch)).astype(dtype)
    expected = a.copy()
    expected[:, first : first + width] = np.exp(a[:, first : first + width].astype(np.float32)).astype(dtype)
    kernel = tilelang.compile(exponentials(rows, pitch, first, width, dtype), out_idx=[1], target="ascendc")
    np.testing.assert_allclose(kernel(a), expected, rtol=2e-3 if dtype == "float16" else 1e-6)
    np.testing.assert_array_equal(kernel(a), kernel.interpret(a))


@pytest.mark.parametrize(("rows", "pitch", "width", "code", "problem"), [
    (256, 64, 64, "T145", "repeat_time=256 must fit uint8_t"), (1, 2048, 64, "T145", "repeat stride=256 must fit uint8_t"),
    (8, 128, 65, "T111", "has rows of 260 bytes, 512 bytes apart"),
    (8, 100, 60, "T111", "has rows of 240 bytes, 400 bytes apart")])
def test_limits_of_an_instruction(rows: int, pitch: int, width: int, code: str, problem: str) -> None:
    with pytest.raises(TileError, match=problem) as caught:
        trace(exponentials(rows, pitch, 0, width, "float32"), dialect="ascendc")
    assert caught.value.code == code
