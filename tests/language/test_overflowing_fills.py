"""``T.tile.fill`` with a number that is too large for a float type makes infinity, with a warning; ``T.fill`` refuses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError

TOO_LARGE = [("float16", -1e9), ("float16", 1e6), ("float16", 100000), ("bfloat16", -3.4e38 * 2), ("float32", 1e39)]


def filled(dtype: str, value: float, call: str) -> Any:
    @T.prim_func
    def main(B: T.Tensor((20,), dtype)) -> None:
        with T.Kernel(1) as _:
            b = T.alloc_shared((20,), dtype)
            if call == "fill":
                T.fill(b, value)
            elif call == "tile.fill":
                T.tile.fill(b, value)
            else:
                T.vbrc(value, b)
            T.copy(b, B)

    return tilelang.compile(main, out_idx=[0])


@pytest.mark.parametrize(("dtype", "value"), TOO_LARGE)
def test_elements_become_infinity(dtype: str, value: float) -> None:
    with pytest.warns(tilelang.TileWarning, match=f"T117: T.tile.fill: the value is .* which {dtype} does not have: its "
                                                  f"largest number is .*; the elements become {np.copysign(np.inf, value)}"):
        kernel = filled(dtype, value, "tile.fill")
    np.testing.assert_array_equal(kernel().astype(np.float64), np.copysign(np.inf, value))


@pytest.mark.parametrize(("dtype", "value"), TOO_LARGE)
def test_the_interpreter_agrees(dtype: str, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    np.testing.assert_array_equal(filled(dtype, value, "tile.fill")().astype(np.float64), np.copysign(np.inf, value))


@pytest.mark.parametrize(("dtype", "value", "call"), [
    ("float8_e4m3fn", 1e6, "tile.fill"), ("int8", 300, "tile.fill"), ("uint16", -1, "tile.fill"), ("float16", -1e9, "fill"),
    ("float16", -1e9, "vbrc")])
def test_others_refuse_the_number(dtype: str, value: float, call: str) -> None:
    with pytest.raises(TileError) as caught:
        filled(dtype, value, call)
    assert caught.value.code == "T110" and f"which {dtype} does not have" in caught.value.message


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [65504, -65504.0, float("inf"), 65519.0])
def test_numbers_that_round_into_the_type_are_as_they_are(value: float) -> None:
    assert filled("float16", value, "tile.fill")()[0] == np.float16(value)
