"""The lowering of products of MX matrices: the buffers of their scales, and the format that the product states."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@pytest.fixture(autouse=True)
def _a5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_CHIP", "a5")


def product(m: int, n: int, k: int, *, element: str = "uint8", held: str | None = "e5m2", loads: str = "MX_A_ND") -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, k), element), B: T.Tensor((k, n), element), SA: T.Tensor((m, k // 64, 2), "uint8"),
             SB: T.Tensor((k // 64, n, 2), "uint8"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a, b = T.alloc_L1((m, k), element), T.alloc_L1((k, n), element)
            sa, sb = T.alloc_L1_scale_a((m, k // 32)), T.alloc_L1_scale_b((k // 32, n))
            c = T.alloc_L0C((m, n), "float32")
            T.copy(A, a)
            T.copy(B, b)
            if loads == "MX_A_ND":
                T.copy(SA, sa, src_layout=loads)
            else:
                T.copy(SB, sa, src_layout=loads)
            T.copy(SB, sb, src_layout="MX_B_ND")
            T.gemm_mx(a, b, c, sa, sb, init=True, format=held)
            T.copy(c, C)

    return main


@pytest.mark.parametrize(("element", "held", "number"), [
    ("uint8", "e5m2", 1), ("uint8", "e4m3", 2), ("float4_e2m1fn", None, 3), ("float8_e4m3fn", None, None)])
def test_scales_are_row_by_row_with_the_groups_last(element: str, held: str | None, number: int | None) -> None:
    text = tilelang.compile(product(32, 64, 128, element=element, held=held), target="ascendc").mlir()
    assert re.search(r"memref<32x4xui8, #hivm.address_space<cbuf>>", text)
    assert re.search(r"memref<64x4xui8, #hivm.address_space<cbuf>>", text)
    assert re.findall(r"(?:lhs|rhs)Format = (\d) : i32", text) == [str(number)] * (2 if number else 0)


def test_a_buffer_has_the_scales_of_one_side() -> None:
    with pytest.raises(tilelang.TileError, match="scales of a left and of a right matrix") as error:
        tilelang.compile(product(128, 64, 128, loads="MX_B_DN"), target="ascendc")
    assert error.value.code == "T190"
