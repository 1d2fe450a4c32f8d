"""Names outside of ASCII: kernels run, texts are ASCII and are read back, and reports and errors have the author's names."""

# ruff: noqa: RUF001

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.dialects.text.names import author_name, escape_name

AUTO = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}


@tilelang.jit(target="ascendc", out_idx=[1], pass_configs=AUTO)
def fabrik(größe):
    @T.macro
    def verdopple(ü):
        T.tile.mul(ü, ü, 2.0)

    @T.prim_func
    def größer(Ä: T.Tensor((größe,), "float32"), Б: T.Tensor((größe,), "float32"), μ: T.float32, 数: T.int32):
        with T.Kernel(1, is_npu=True) as (блок, _):
            α = T.alloc_ub((größe,), "float32")
            β = T.alloc_var("int32", init=0)
            γ = 数 + 1
            T.copy(Ä, α)
            verdopple(α)
            for ι in T.serial(γ):
                β = β + ι
                α[ι] = μ
            δ = T.cast(β, "float32")
            α[3] = δ
            for λ in T.Parallel(größe):
                α[λ] = α[λ] + 1.0
            T.copy(α, Б)

    return größer


def test_a_kernel_with_names_outside_of_ascii_runs() -> None:
    a = np.arange(64, dtype=np.float32)
    expected = a * 2
    expected[:2], expected[3] = 7, 1
    np.testing.assert_array_equal(fabrik(64)(a, 7.0, 1), expected + 1)


def test_its_texts_are_ascii_and_are_read_back() -> None:
    kernel = fabrik(64)
    for stage in kernel.stages():
        text = kernel.mlir(stage)
        assert text.isascii(), stage
        parse_module(text, "text").verify()


def test_reports_say_the_authors_names() -> None:
    kernel = fabrik(64)
    kernel(np.zeros(64, np.float32), 7.0, 1)
    assert "α, 256 B" in str(kernel.sync_report())
    assert "α" in str(kernel.memory_report())
    for report in (kernel.sync_report(), kernel.memory_report(), kernel.explain()):
        assert "größer" in str(report)
        assert "$" not in str(report)


def test_errors_say_the_authors_names() -> None:
    with pytest.raises(TileError, match="Ä must be an array"):
        fabrik(64)(3, 7.0, 1)

    @tilelang.jit(target="ascendc", pass_configs=AUTO)
    def zu_groß(größe):
        @T.prim_func
        def main(Ä: T.Tensor((größe,), "float32")):
            with T.Kernel(1, is_npu=True) as (блок, _):
                α = T.alloc_ub((größe,), "float32")
                T.copy(Ä, α)
                T.tile.add(α, α, 1.0)
                T.copy(α, Ä)

        return main

    with pytest.raises(TileError, match=r"T104(.|\n)*α") as caught:
        zu_groß(1 << 20)(np.zeros(1 << 20, np.float32))
    assert "$" not in str(caught.value)


@pytest.mark.parametrize("name", ["x", "Ä", "α_1", "数", "ﬁ", "a_b9", "_"])
def test_a_name_comes_back(name: str) -> None:
    there = escape_name(name)
    assert there is not None
    assert there.isascii()
    assert author_name(there) == name
    assert author_name(None, "a buffer") == "a buffer"
    assert escape_name(f"{name} ") is None
