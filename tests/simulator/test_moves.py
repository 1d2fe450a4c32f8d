"""Data movement: padding, tails, layouts, atomics, copies between memories."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from simulator import texts
from simulator.test_vector import mlir, shape
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.ops import dtype
from tilelang_npu.simulator import Launch, simulate


def run(text: str, args: list[Any], blocks: int = 1) -> Launch:
    launch = simulate(parse_module(text), args, blocks=blocks, hazards=True)
    assert launch.hazards == []
    return launch


def through_ub(source: np.ndarray, result: np.ndarray, load: str, extra: str = "") -> str:
    """Load %X into %t (the shape of ``result``) with the clauses ``load``, store it to %Y."""
    outside = {name: f"memref<{shape(array)}x{mlir(array)}, {texts.GM}>" for name, array in (("X", source), ("Y", result))}
    inside = f"memref<{shape(result)}x{mlir(result)}, {texts.UB}>"
    body = "\n".join([extra, texts.tile("t", 0, shape(result), mlir(result)),
                      f"    hivm.hir.load ins(%X : {outside['X']}) outs(%t : {inside}) {load}", texts.sync("MTE2", "MTE3"),
                      f"    hivm.hir.store ins(%t : {inside}) outs(%Y : {outside['Y']})"])
    return texts.module(texts.kernel("AIV", [f"%{name}: {kind}" for name, kind in outside.items()], body))


@pytest.mark.parametrize("element", [np.float16, np.float32, np.int8, np.int64, np.bool_, ml_dtypes.bfloat16])
def test_every_type_moves(rng: np.random.Generator, element: Any) -> None:
    x = rng.integers(0, 2, (7, 33)).astype(element)
    y = np.zeros_like(x)
    run(through_ub(x, y, ""), [x, y])
    np.testing.assert_array_equal(y.view(np.uint8), x.view(np.uint8))


def test_padding_with_a_value(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 10)).astype(np.float32)
    y = np.zeros((4, 16), np.float32)
    constants = ("    %p = arith.constant 9.0 : f32\n    %left = arith.constant 2 : index\n"
                 "    %right = arith.constant 3 : index")
    run(through_ub(x, y, "pad_mode = <PadValue> pad_value = %p : f32 left_padding_num = %left : index", constants), [x, y])
    np.testing.assert_array_equal(y, np.pad(x, ((0, 0), (2, 4)), constant_values=9))
    run(through_ub(x, y, "pad_mode = <PadValue> pad_value = %p : f32 left_padding_num = %left : index"
                         " right_padding_num = %right : index", constants), [x, y])
    np.testing.assert_array_equal(y[:, :15], np.pad(x, ((0, 0), (2, 3)), constant_values=9))
    assert np.isnan(y[:, 15]).all()  # unwritten elements stay poisoned


def test_padding_with_the_first_element(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 10)).astype(np.float16)
    y = np.zeros((4, 16), np.float16)
    run(through_ub(x, y, "pad_mode = <PadFirstElem> left_padding_num = %left : index",
                   "    %left = arith.constant 6 : index"), [x, y])
    np.testing.assert_array_equal(y, np.concatenate([np.repeat(x[:, :1], 6, axis=1), x], axis=1))


@pytest.mark.parametrize("condition", ["", "true", "false"])
def test_filling_the_destination_first(rng: np.random.Generator, condition: str) -> None:
    x = rng.standard_normal((4, 10)).astype(np.float32)
    y = np.zeros((4, 16), np.float32)
    clause = "init_out_buffer = true"
    constants = "    %p = arith.constant 7.0 : f32\n    %left = arith.constant 0 : index\n    %none = arith.constant 0 : index"
    end = ""
    if condition:
        constants += f"\n    %if = arith.constant {condition}"
        end = " init_condition = %if : i1"
    run(through_ub(x, y, f"pad_mode = <PadValue> pad_value = %p : f32 left_padding_num = %left : index {clause}"
                         f" right_padding_num = %none : index{end}", constants), [x, y])
    np.testing.assert_array_equal(y[:, :10], x)
    assert (y[:, 10:] == 7).all() if condition != "false" else np.isnan(y[:, 10:]).all()


@pytest.mark.parametrize("kind", ["add", "max", "min"])
@pytest.mark.parametrize("element", [np.float16, np.float32, np.int32])
def test_atomic_store(rng: np.random.Generator, kind: str, element: Any) -> None:
    x, y = (rng.integers(-50, 50, (4, 16)).astype(element) for _ in range(2))
    expected = {"add": x + y, "max": np.maximum(x, y), "min": np.minimum(x, y)}[kind]
    text = through_ub(x, y, "")
    store = next(line for line in text.splitlines() if "hivm.hir.store" in line)
    result = y.copy()
    run(text.replace(store, f"{store} atomic = <{kind}>"), [x, result])
    np.testing.assert_array_equal(result, expected)
    again = y.copy()
    name = mlir(x)
    run(text.replace(store, f"    hivm.hir.set_atomic kind = <{kind}>[type = {name}]\n{store}\n"
                            f"    hivm.hir.set_atomic kind = <none>[type = {name}]"), [x, again])
    np.testing.assert_array_equal(again, expected)


def test_strided_parts(rng: np.random.Generator) -> None:
    """Every other row and a window of columns, through a collapsed and an expanded view."""
    x = rng.standard_normal((16, 64)).astype(np.float32)
    y = np.zeros((8, 4, 8), np.float32)
    outside = f"memref<16x64xf32, {texts.GM}>"
    part = f"memref<8x32xf32, strided<[128, 1], offset: 72>, {texts.GM}>"
    flat, deep = f"memref<8x32xf32, {texts.UB}>", f"memref<8x4x8xf32, {texts.UB}>"
    out, line = f"memref<8x4x8xf32, {texts.GM}>", f"memref<256xf32, {texts.UB}>"
    body = "\n".join([
        f"    %s = memref.subview %X[1, 8] [8, 32] [2, 1] : {outside} to {part}", texts.tile("t", 0, "8x32", "f32"),
        f"    hivm.hir.load ins(%s : {part}) outs(%t : {flat})", texts.sync("MTE2", "V"),
        f"    %one = memref.collapse_shape %t [[0, 1]] : {flat} into {line}",
        f"    hivm.hir.vmul ins(%one, %one : {line}, {line}) outs(%one : {line})", texts.sync("V", "MTE3"),
        f"    %d = memref.expand_shape %t [[0], [1, 2]] output_shape [8, 4, 8] : {flat} into {deep}",
        f"    hivm.hir.store ins(%d : {deep}) outs(%Y : {out})"])
    launch = run(texts.module(texts.kernel("AIV", [f"%X: {outside}", f"%Y: {out}"], body)), [x, y])
    np.testing.assert_array_equal(y.reshape(8, 32), x[1::2, 8:40] ** 2)
    assert launch.writes(1).all()


def layout_round(rows: int, columns: int, element: Any, out: Any = None) -> str:
    """ND in GM -> zN in L1 -> ND in GM (L1 to GM on MTE3)."""
    kind = dtype(np.dtype(element))
    width = 32 // kind.nbytes
    nz = f"{-(-columns // width)}x{-(-rows // 16)}x16x{width}"
    outside, inside = f"memref<{rows}x{columns}x{kind.mlir}, {texts.GM}>", f"memref<{nz}x{kind.mlir}, {texts.L1}>"
    body = "\n".join([texts.tile("t", 0, nz, kind.mlir, texts.L1),
                      f"    hivm.hir.nd2nz {{dst_continuous}} ins(%X : {outside}) outs(%t : {inside})",
                      texts.sync("MTE2", "MTE3"), f"    hivm.hir.nz2nd ins(%t : {inside}) outs(%Y : {outside})"])
    return texts.module(texts.kernel("AIC", [f"%X: {outside}", f"%Y: {outside}"], body))


@pytest.mark.parametrize("element", [np.float16, np.float32, np.int8])
@pytest.mark.parametrize(("rows", "columns"), [(16, 32), (64, 64), (5, 7), (33, 70), (16, 31), (17, 64)])
def test_fractal_layout_and_back(rng: np.random.Generator, element: Any, rows: int, columns: int) -> None:
    x = rng.integers(-100, 100, (rows, columns)).astype(element)
    y = np.zeros_like(x)
    run(layout_round(rows, columns, element), [x, y])
    np.testing.assert_array_equal(y, x)


def test_fractal_layout_is_the_real_one(rng: np.random.Generator) -> None:
    """Element (r, c) at ``[c / c0, r / 16, r % 16, c % c0]`` (docs/hivm.md#fractals)."""
    x = rng.integers(-100, 100, (32, 48)).astype(np.float16)
    y = np.zeros((3, 2, 16, 16), np.float16)
    outside, kind = f"memref<32x48xf16, {texts.GM}>", f"memref<3x2x16x16xf16, {texts.L1}>"
    raw = f"memref<3x2x16x16xf16, {texts.GM}>"
    flat = f"memref<96x16xf16, {texts.GM}>"
    # the raw layout of L1: the buffer is read as rows of one block each
    body = "\n".join([texts.tile("t", 0, "3x2x16x16", "f16", texts.L1), texts.tile("r", 0, "1x6x16x16", "f16", texts.L1),
                      f"    hivm.hir.nd2nz {{dst_continuous}} ins(%X : {outside}) outs(%t : {kind})",
                      texts.sync("MTE2", "MTE3"), f"    %flat = memref.collapse_shape %Y [[0, 1, 2], [3]] : {raw} into {flat}",
                      f"    hivm.hir.nz2nd ins(%r : memref<1x6x16x16xf16, {texts.L1}>) outs(%flat : {flat})"])
    run(texts.module(texts.kernel("AIC", [f"%X: {outside}", f"%Y: {raw}"], body)), [x, y])
    for row, column in ((0, 0), (17, 5), (31, 47), (16, 16), (3, 33)):
        assert y[column // 16, row // 16, row % 16, column % 16] == x[row, column]


def test_there_is_no_path_from_ub_to_l1_on_a2() -> None:
    buffer = "16x16xf16"
    body = "\n".join([texts.tile("u", 0, buffer, "f16").replace("x16xf16xf16", "x16xf16"),
                      texts.tile("l", 0, "16x16", "f16", texts.L1),
                      f"    hivm.hir.copy ins(%u : memref<16x16xf16, {texts.UB}>) outs(%l : memref<16x16xf16, {texts.L1}>)"])
    with pytest.raises(TileError, match=r"T503.*no path from UB to L1"):
        simulate(parse_module(texts.module(texts.kernel("AIV", [], body))), [], blocks=1)
