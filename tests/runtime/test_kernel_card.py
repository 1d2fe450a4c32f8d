"""The card of a kernel in a notebook."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", html))


@tilelang.jit(out_idx=[-1], target="npuir")
def scaled(rows: Any, rounds: int = 1) -> Any:
    @T.prim_func
    def main(X: T.Tensor((rows, 64), "float16"), Y: T.Tensor((rows, 64), "float16")):
        with T.Kernel(T.ceildiv(rows, 16), is_npu=True) as (block, _):
            x = T.alloc_shared((16, 64), "float16")
            T.copy(X[block * 16, 0], x)
            for _ in T.serial(rounds):
                T.vmul(x, 2.0, x)
            T.copy(x, Y[block * 16, 0])

    return main


def test_a_card_has_signature_time_memories_and_text() -> None:
    kernel = scaled(64)
    html = kernel._repr_html_()
    text = text_of(html)
    assert "(X: float16[64, 64]) -> Y: float16[64, 64]" in text
    assert "main  for Ascend910B2" in text
    assert f"{kernel.trace().time_us:.1f} us" in text
    assert "4 blocks; bound by" in text
    used = kernel.memory_report().memories[0]
    assert f"{used.used // 1024} of {used.room // 1024} KB" in text
    assert f"{100 * used.used / used.room:.1f}%" in html
    assert "hivm.hir.vmul" in text
    for method in (".profile()", ".explain()", ".sync_report()", ".memory_report()"):
        assert method in text
        assert callable(getattr(kernel, method[1:-2]))


def test_the_time_is_that_of_the_last_call() -> None:
    kernel = scaled(T.dynamic("rows"))
    assert "not called yet" in text_of(kernel._repr_html_())
    kernel(np.ones((128, 64), np.float16))
    assert f"{kernel.last_launch.time_us:.1f} us" in text_of(kernel._repr_html_())


def test_a_long_kernel_is_not_timed_for_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = scaled(64, rounds=100_000)
    monkeypatch.setattr(type(kernel), "trace", lambda *_: pytest.fail("the card models a long kernel"))
    assert "takes long to model" in text_of(kernel._repr_html_())


def test_numbers_are_in_the_signature() -> None:
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), count: T.int32, Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_shared((64,), "float32")
            T.copy(X, x)
            for _ in T.serial(count):
                T.vadd(x, 1.0, x)
            T.copy(x, Y)

    kernel = tilelang.compile(main, out_idx=[-1], target="npuir")
    assert "(X: float32[64], count: int32) -> Y: float32[64]" in text_of(kernel._repr_html_())


def test_text_is_escaped() -> None:
    kernel = scaled(64)
    html = kernel._repr_html_()
    assert "<float16" not in html
    assert html.count("<div") == html.count("</div>") > 5
