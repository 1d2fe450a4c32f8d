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


C_NAMES = {"float32": "float", "float16": "half", "bfloat16": "bfloat16_t"}
KINDS = ("float32", "float16", "int8", "uint8", "int16", "int32", "int64")


def reinterpreted(given: tuple[int, ...], kind: str, seen: tuple[int, ...], other: str, *, viewed: bool) -> PrimFunc:
    @T.prim_func
    def main(X: T.Tensor(given, kind), Y: T.Tensor(seen, other), Z: T.Tensor(given, kind)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub(given, kind)
            if viewed:
                T.copy(X, x)
                y = T.view(x, seen, other)
            else:
                y = T.alloc_ub(seen, other)
                T.copy(X, x)
                T.reinterpretcast(y, x, C_NAMES.get(other, f"{other}_t"))
            T.copy(y, Y)
            T.tile.fill(y[0, :], 1)
            T.copy(x, Z)

    return main


@pytest.mark.parametrize("dialect", ["ascendc", "npuir"])
@pytest.mark.parametrize(("kind", "other"), [(kind, other) for kind in KINDS for other in KINDS
                                             if np.dtype(kind).itemsize != np.dtype(other).itemsize])
def test_bits_as_elements_of_another_width(dialect: str, kind: str, other: str, rng: np.random.Generator) -> None:
    wide, narrow = np.dtype(kind).itemsize, np.dtype(other).itemsize
    for rows, columns in ((16, 64), (5, 24)) if dialect == "ascendc" else ((1, 40), (3, 8)):
        nbytes = rows * columns * wide
        shapes = [(1, nbytes // narrow), (rows, columns * wide // narrow)]
        for seen in shapes + [(1, nbytes // narrow - 3)] * (nbytes // narrow > 3):
            viewed = seen == shapes[0] and rows % 2 == 1  # T.view; else T.reinterpretcast, which may see fewer bytes
            kernel = tilelang.compile(reinterpreted((rows, columns), kind, seen, other, viewed=viewed), out_idx=[1, 2],
                                      target=dialect, pass_configs=SYNC if dialect == "ascendc" else None)
            x = rng.integers(0, 256, nbytes).astype(np.uint8).view(kind).reshape(rows, columns)
            y, z = kernel(x)
            used = seen[0] * seen[1] * narrow
            expected = x.reshape(-1).view(np.uint8)[:used].view(other).reshape(seen)
            np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))
            written = x.copy()
            written.reshape(-1).view(np.uint8)[:used].view(other).reshape(seen)[0] = 1
            np.testing.assert_array_equal(z.view(np.uint8), written.view(np.uint8))
            assert kernel.last_launch.hazards == []


@pytest.mark.parametrize("alloc", ["alloc_ub", "alloc_shared", "alloc_fragment"])
@pytest.mark.parametrize("dialect", ["ascendc", "npuir"])
def test_the_other_width_in_a_pipelined_loop(alloc: str, dialect: str, rng: np.random.Generator) -> None:
    make = getattr(T, alloc)

    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((64, 64), "int32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = make((8, 128), "float16")
            b = make((8, 64), "int32")
            c = make((8, 256), "uint8")
            o = make((8, 64), "int32")
            T.reinterpretcast(b, a, "int32_t")
            T.reinterpretcast(c, b, "uint8_t")  # of bits that are seen as others already
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[cid * 32 + k * 8, 0], a)
                T.fill(c[:, 0:4], 0)
                for i, j in T.Parallel(8, 64):
                    o[i, j] = b[i, j] + 1
                T.copy(o, B[cid * 32 + k * 8, 0])

    kernel = tilelang.compile(main, out_idx=[1], target=dialect, pass_configs=SYNC if dialect == "ascendc" else None)
    a = rng.integers(0, 1 << 16, (64, 128)).astype(np.uint16).view(np.float16)
    expected = a.view(np.int32) + np.int32(1)
    expected[:, 0] = 1
    np.testing.assert_array_equal(kernel(a), expected)
    assert kernel.last_launch.hazards == []


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_a_view_of_a_view_begins_where_that_one_does(kind: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 64), kind), B: T.Tensor((2, 16), kind), C: T.Tensor((1, 32), kind)):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_ub((8, 64), kind)
            T.copy(A, a)
            rows = T.reshape(a[2, :], (2, 32))
            line = T.reshape(rows[1:2, :], (32,))
            T.copy(T.reshape(line, (2, 16)), B)
            T.copy(line[0:32], C[0, :])

    a = np.arange(512).reshape(8, 64).astype(kind)
    for dialect in ("ascendc", "npuir"):
        kernel = tilelang.compile(main, out_idx=[1, 2], target=dialect, pass_configs=SYNC if dialect == "ascendc" else None)
        b, c = kernel(a)
        np.testing.assert_array_equal(b.reshape(-1), a[2, 32:])
        np.testing.assert_array_equal(c.reshape(-1), a[2, 32:])


@pytest.mark.parametrize(("statement", "message"), [
    ("T.view(h, (8, 128), 'float32')", r"has 2048 bytes; \[8, 128\] of float32 has 4096"),
    ("T.view(a, (n, 128), 'float16')", "has 4096 bytes"),
])
def test_mistakes_of_view(kernel: Any, refused: Any, statement: str, message: str) -> None:
    with refused("T111", at=statement, message=message):
        kernel(statement, "ascendc")


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.reinterpretcast(a, h, 'float')", "T110", "h .* has 2048 bytes, and a .* has 4096"),
    ("T.reinterpretcast(i, a, 'uint32_t')", "T110", "i .* has no elements of uint32_t"),
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
    (lambda A, a, c: {a: "zN"}, "'zN' is not a layout of a"),
    (lambda A, a, c: {a: make_zn_layout(c)}, "is not a layout of a"),
])
def test_a_layout_that_is_none(choose: Callable[[Any, Any, Any], dict[Any, Any]], message: str) -> None:
    with pytest.raises(tilelang.TileError, match=message) as caught:
        tilelang.compile(with_layout(choose), target="ascendc")
    assert caught.value.code == "T163"
