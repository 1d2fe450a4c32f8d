"""``T.copy`` between two elements in a kernel for a GPU is an assignment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError
from tilelang_npu.target.dtypes import DType

N, BLOCK = 20, 8


@tilelang.jit(out_idx=[1])
def _reversed(source: str, target: str, enable_relu: bool = False, transpose: bool = False) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), source), B: T.Tensor((N,), target)) -> None:
        with T.Kernel(T.ceildiv(N, BLOCK), threads=128) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N:
                    T.copy(A[N - 1 - (block * BLOCK + i)], B[block * BLOCK + i], enable_relu=enable_relu, transpose=transpose)

    return main


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize(("source", "target"), [("float16", "float32"), ("float32", "float16"), ("int8", "int32"),
                                                ("uint16", "uint16"), ("int64", "int64"), ("bfloat16", "float32")])
def test_each_element_is_copied_and_converted(source: str, target: str, interpret: bool,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    a = (np.random.default_rng(1).standard_normal(N) * 40).astype(np.int64 if "int" in source else np.float32)
    a = np.abs(a) if source.startswith("u") else a
    a = a.astype(DType(source).numpy)
    np.testing.assert_array_equal(_reversed(source, target)(a), a[::-1].astype(DType(target).numpy))


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("option", ["enable_relu", "transpose"])
def test_an_option_that_changes_the_element_is_refused(option: str, interpret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    with pytest.raises(TileError) as caught:
        _reversed("float32", "float32", **{option: True})(np.zeros(N, np.float32))
    assert caught.value.code == "T145"
    assert option in caught.value.message
