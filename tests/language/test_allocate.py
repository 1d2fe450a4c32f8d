"""Layouts of buffers, and buffers under another element type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.language.layouts import (
    Layout,
    make_col_major_layout,
    make_nz_layout,
    make_swizzled_layout,
    make_zn_layout,
)

SYNC = {"tl.ascend_auto_sync": True}


@pytest.mark.parametrize(("wide", "narrow", "spelled"), [
    ("float32", "int32", "int32_t"), ("int32", "uint32", "uint32_t"), ("float16", "int16", "int16"),
    ("int8", "uint8", "uint8_t"),
])
def test_reinterpretcast_is_the_same_memory(wide: str, narrow: str, spelled: str, rng: np.random.Generator) -> None:
    @T.prim_func
    def main(X: T.Tensor((5, 8), wide), Y: T.Tensor((5, 8), narrow), Z: T.Tensor((5, 8), wide)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((5, 8), wide)
            y = T.alloc_ub((5, 8), narrow)
            T.copy(X, x)
            T.reinterpretcast(y, x, spelled)
            T.copy(y, Y)
            T.tile.fill(y[0, :], 1)
            T.copy(x, Z)

    x = rng.integers(-100, 100, (5, 8)).astype(wide)
    y, z = np.zeros((5, 8), narrow), np.zeros_like(x)
    tilelang.compile(main, target="ascendc", pass_configs=SYNC)(x, y, z)
    np.testing.assert_array_equal(y, x.view(narrow))
    np.testing.assert_array_equal(z[1:], x[1:])
    np.testing.assert_array_equal(z[0].view(narrow), np.ones(8, narrow))


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.reinterpretcast(h, a, 'float16')", "T110", "a .* is no h"),
    ("T.reinterpretcast(i, a, 'uint32_t')", "T110", "of type uint32_t"),
    ("T.reinterpretcast(A, a, 'float')", "T164", "A .* is not a buffer that the kernel allocates"),
    ("T.tile.fill(b, 1)\nT.reinterpretcast(b, a, 'float')", "T164", "b is in use already"),
])
def test_mistakes_of_reinterpretcast(kernel: Any, refused: Any, statement: str, code: str, message: str) -> None:
    with refused(code, at=statement.splitlines()[-1], message=message):
        kernel(statement, "ascendc")


def with_layout(choose: Callable[[Any, Any, Any], dict[Any, Any]]) -> PrimFunc:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_L1((32, 32), "float16")
            c = T.alloc_L0C((32, 32), "float32")
            T.annotate_layout(choose(A, a, c))
            T.copy(A, a)
            T.gemm_v0(a, a, c, init=True)
            T.copy(c, B)

    return main


@pytest.mark.parametrize("layout", [make_zn_layout, make_nz_layout, make_col_major_layout, make_swizzled_layout])
def test_a_layout_changes_no_value(layout: Callable[[Any], Layout], rng: np.random.Generator) -> None:
    a = rng.integers(-3, 3, (32, 32)).astype(np.float16)
    b = tilelang.compile(with_layout(lambda A, a, c: {a: layout(a)}), target="ascendc", pass_configs=SYNC, out_idx=[1])(a)
    np.testing.assert_array_equal(b, a @ a)


@pytest.mark.parametrize(("choose", "message"), [
    (lambda A, a, c: {A: make_zn_layout(A)}, r"A \[32, 32\] float16 is not a buffer"),
    (lambda A, a, c: {a: "zN"}, "'zN' is no layout of a"),
    (lambda A, a, c: {a: make_zn_layout(c)}, "is no layout of a"),
])
def test_a_layout_that_is_none(choose: Callable[[Any, Any, Any], dict[Any, Any]], message: str) -> None:
    with pytest.raises(tilelang.TileError, match=message) as caught:
        tilelang.compile(with_layout(choose), target="ascendc")
    assert caught.value.code == "T163"
