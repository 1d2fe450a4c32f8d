"""Remarks of ``bind-sub-blocks`` on launches whose Vector work one core does."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def product(*, prints: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            d = T.alloc_shared((64, 64), "float16")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            for i, j in T.Parallel(64, 64):
                d[i, j] = T.exp(c[i, j])
            if prints:
                T.print(d)
            T.copy(d, C)

    return tilelang.compile(main, target="npuir")


@pytest.mark.parametrize("prints", [True, False])
def test_a_print_keeps_the_work_on_one_core(prints: bool) -> None:
    texts = [str(one) for one in product(prints=prints).explain(edits=False).refused]
    assert any("one Vector core does all work" in text for text in texts) == prints
