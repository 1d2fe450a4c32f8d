"""mmadL1 and fixpipe on the real layouts against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.ops import dtype
from tilelang_npu.simulator import Launch, simulate


def blocks(rows: int, columns: int, width: int) -> str:
    return f"{-(-columns // width)}x{-(-rows // 16)}x16x{width}"


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray, *, a_turned: bool = False, b_turned: bool = False, extra: str = "",
            out: str = "", times: int = 1, bias: int = 0, flat: bool = False) -> str:
    """One (or ``times``) mmadL1 over whole matrices, then fixpipe with the attributes ``out``."""
    kind = dtype(a.dtype)
    width = 32 // kind.nbytes
    k, m = a.shape if a_turned else a.shape[::-1]
    n = b.shape[0] if b_turned else b.shape[1]
    acc_kind = "i32" if kind.is_integer else "f32"
    shapes = {"a": blocks(*a.shape, width), "b": blocks(*b.shape, width), "c": blocks(m, n, 16)}
    if flat:
        shapes = {"a": "x".join(map(str, a.shape)), "b": "x".join(map(str, b.shape)), "c": f"{m}x{n}"}
    types = {"a": f"memref<{shapes['a']}x{kind.mlir}, {texts.L1}>", "b": f"memref<{shapes['b']}x{kind.mlir}, {texts.L1}>",
             "c": f"memref<{shapes['c']}x{acc_kind}, {texts.L0C}>"}
    outside = {name: f"memref<{array.shape[0]}x{array.shape[1]}x{dtype(array.dtype).mlir}, {texts.GM}>"
               for name, array in (("A", a), ("B", b), ("C", c))}
    attributes = ", ".join(["a_transpose"] * a_turned + ["b_transpose"] * b_turned + [extra] * bool(extra))
    bias_type, bias_name = f"memref<{bias}x{acc_kind}, {texts.L1}>", f"memref<{bias}x{acc_kind}, {texts.GM}>"
    more, more_type = (", %bias", f", {bias_type}") if bias else ("", "")
    lines = [f"    %{name} = arith.constant {value} : index" for name, value in (("m", m), ("k", k), ("n", n))]
    lines += ["    %yes = arith.constant true", "    %no = arith.constant false",
              texts.tile("a", 0, shapes["a"], kind.mlir, texts.L1),
              texts.tile("b", 131072, shapes["b"], kind.mlir, texts.L1), texts.tile("c", 0, shapes["c"], acc_kind, texts.L0C),
              f"    hivm.hir.nd2nz {{dst_continuous}} ins(%A : {outside['A']}) outs(%a : {types['a']})",
              f"    hivm.hir.nd2nz {{dst_continuous}} ins(%B : {outside['B']}) outs(%b : {types['b']})"]
    if bias:
        lines += [texts.tile("bias", 262144, str(bias), acc_kind, texts.L1),
                  f"    hivm.hir.load ins(%bias_in : {bias_name}) outs(%bias : {bias_type})"]
    lines.append(texts.sync("MTE2", "MTE1"))
    for number in range(times):
        init = "%no" if number else "%yes"
        lines.append(f"    hivm.hir.mmadL1 {{{attributes}}} ins(%a, %b, {init}, %m, %k, %n{more} : {types['a']}, {types['b']}, "
                     f"{texts.SIZES}{more_type}) outs(%c : {types['c']})")
    lines += [texts.sync("M", "FIX"), f"    hivm.hir.fixpipe {{dma_mode = #hivm.dma_mode<nz2nd>{out}}} ins(%c : {types['c']}) "
              f"outs(%C : {outside['C']})"]
    args = [f"%{name}: {value}" for name, value in outside.items()] + ([f"%bias_in: {bias_name}"] if bias else [])
    return texts.module(texts.kernel("AIC", args, "\n".join(lines)))


def run(text: str, args: list[Any], chip: str | None = None) -> Launch:
    launch = simulate(parse_module(text), args, blocks=1, hazards=True, chip=chip)
    assert launch.hazards == []
    return launch


def operand(rng: np.random.Generator, size: tuple[int, int], element: Any) -> np.ndarray:
    if np.dtype(element).kind == "i":
        return rng.integers(-128, 128, size).astype(element)
    return rng.standard_normal(size).astype(element)


@pytest.mark.parametrize("element", [np.float16, ml_dtypes.bfloat16, np.float32, np.int8])
@pytest.mark.parametrize(("a_turned", "b_turned"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (32, 96, 160), (17, 40, 33), (1, 8, 5)])
def test_product(rng: np.random.Generator, element: Any, a_turned: bool, b_turned: bool, m: int, k: int, n: int) -> None:
    a = operand(rng, (k, m) if a_turned else (m, k), element)
    b = operand(rng, (n, k) if b_turned else (k, n), element)
    integer = np.dtype(element).kind == "i"
    c = np.zeros((m, n), np.int32 if integer else np.float32)
    run(product(a, b, c, a_turned=a_turned, b_turned=b_turned), [a, b, c])
    wide = np.int64 if integer else np.float64
    expected = (a.T if a_turned else a).astype(wide) @ (b.T if b_turned else b).astype(wide)
    if integer:
        np.testing.assert_array_equal(c, expected)
    else:
        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("chunks", [1, 2, 3, 4])
def test_a_product_whose_operands_exceed_l0(rng: np.random.Generator, chunks: int) -> None:
    """Half of L0A holds 256 columns of A. Without events of the kernel, the macro orders its loads and products by its own."""
    a, b = operand(rng, (64, 256 * chunks), np.float16), operand(rng, (256 * chunks, 64), np.float16)
    c = np.zeros((64, 64), np.float32)
    run(product(a, b, c), [a, b, c])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("element", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize(("a_turned", "b_turned"), [(False, False), (True, True)])
@pytest.mark.parametrize(("m", "k", "n"), [(32, 96, 160), (17, 40, 33), (1, 8, 5)])
def test_float8_adds_up_32_terms_at_a_time(rng: np.random.Generator, element: Any, a_turned: bool, b_turned: bool, m: int,
                                           k: int, n: int) -> None:
    a = operand(rng, (k, m) if a_turned else (m, k), element)
    b = operand(rng, (n, k) if b_turned else (k, n), element)
    c = np.zeros((m, n), np.float32)
    run(product(a, b, c, a_turned=a_turned, b_turned=b_turned), [a, b, c], chip="a5")
    left, right = (a.T if a_turned else a).astype(np.float64), (b.T if b_turned else b).astype(np.float64)
    expected = np.zeros((m, n), np.float32)
    for start in range(0, k, 32):
        expected += (left[:, start:start + 32] @ right[start:start + 32]).astype(np.float32)
    np.testing.assert_allclose(c, expected, rtol=1e-6, atol=1e-6)


def test_a_cube_that_has_no_float8(rng: np.random.Generator) -> None:
    a, b = operand(rng, (16, 32), ml_dtypes.float8_e5m2), operand(rng, (32, 16), ml_dtypes.float8_e5m2)
    c = np.zeros((16, 16), np.float32)
    with pytest.raises(TileError, match="the Cube core of Ascend910B2 does not multiply f8E5M2"):
        run(product(a, b, c), [a, b, c], chip="Ascend910B2")


def test_int8_is_exact_beyond_f32(rng: np.random.Generator) -> None:
    a, b = np.full((16, 2080), -128, np.int8), np.full((2080, 16), -128, np.int8)
    c = np.zeros((16, 16), np.int32)
    run(product(a, b, c), [a, b, c])
    assert (c == 2080 * 128 * 128).all()


def test_accumulation_and_bias(rng: np.random.Generator) -> None:
    a, b = operand(rng, (32, 48), np.float16), operand(rng, (48, 40), np.float16)
    bias, c = rng.standard_normal(40).astype(np.float32), np.zeros((32, 40), np.float32)
    run(product(a, b, c, times=3, bias=40), [a, b, c, bias])
    expected = 3 * (a.astype(np.float64) @ b.astype(np.float64)) + bias
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-4)


def test_rows_in_l1_and_l0c(rng: np.random.Generator) -> None:
    """Buffers of rank 2, as they are before layouts are fixed."""
    a, b = operand(rng, (33, 50), np.float16), operand(rng, (50, 20), np.float16)
    c = np.zeros((33, 20), np.float32)
    run(product(a, b, c, flat=True), [a, b, c])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)


def test_hf32_keeps_eleven_bits(rng: np.random.Generator) -> None:
    a, b = np.full((16, 8), 1 + 2.0**-12 + 2.0**-20, np.float32), np.eye(8, 16, dtype=np.float32)
    c = np.zeros((16, 16), np.float32)
    run(product(a, b, c, extra="enable_HF32"), [a, b, c])
    assert set(np.unique(c)) == {0.0, np.float32(1 + 2.0**-11)}
    run(product(a, b, c), [a, b, c])
    assert set(np.unique(c)) == {0.0, np.float32(1 + 2.0**-12 + 2.0**-20)}


@pytest.mark.parametrize(("element", "quant"), [(np.float16, "F322F16"), (ml_dtypes.bfloat16, "F322BF16")])
@pytest.mark.parametrize("n", [48, 37])
@pytest.mark.parametrize("relu", [False, True])
def test_the_way_out_converts(rng: np.random.Generator, element: Any, quant: str, n: int, relu: bool) -> None:
    a, b = operand(rng, (32, 32), np.float16), operand(rng, (32, n), np.float16)
    c = np.zeros((32, n), element)
    attributes = f", pre_quant = #hivm.fixpipe_pre_quant_mode<{quant}>"
    if relu:
        attributes += ", pre_relu = #hivm.fixpipe_pre_relu_mode<NORMAL_RELU>"
    run(product(a, b, c, out=attributes), [a, b, c])
    plain = np.zeros((32, n), np.float32)
    run(product(a, b, plain), [a, b, plain])
    expected = (np.maximum(plain, 0) if relu else plain).astype(element)
    np.testing.assert_array_equal(c.view(np.uint16), expected.view(np.uint16))


def test_quantisation(rng: np.random.Generator) -> None:
    a, b = operand(rng, (16, 32), np.int8), operand(rng, (32, 32), np.int8)
    c = np.zeros((16, 32), np.int8)
    text = product(a, b, c, out=", pre_quant = #hivm.fixpipe_pre_quant_mode<S322I8>")
    fixpipe = next(line for line in text.splitlines() if "hivm.hir.fixpipe" in line)
    text = text.replace(fixpipe, f"    %scale = arith.constant 1.0e-3 : f32\n{fixpipe} quant_scale = %scale : f32")
    run(text, [a, b, c])
    exact = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float32) * np.float32(1e-3)
    np.testing.assert_array_equal(c, np.clip(np.rint(exact), -128, 127))


def test_mismatched_conversion_is_refused(rng: np.random.Generator) -> None:
    a, b, c = operand(rng, (16, 16), np.float16), operand(rng, (16, 16), np.float16), np.zeros((16, 16), np.float16)
    with pytest.raises(TileError, match="T506"):
        simulate(parse_module(product(a, b, c)), [a, b, c], blocks=1)


def test_sizes_beyond_the_buffers_are_refused(rng: np.random.Generator) -> None:
    a, b, c = operand(rng, (16, 16), np.float16), operand(rng, (16, 16), np.float16), np.zeros((16, 16), np.float32)
    text = product(a, b, c).replace("%k = arith.constant 16", "%k = arith.constant 32")
    with pytest.raises(TileError, match=r"T507.*k = 32.*16 and 16 elements along k"):
        simulate(parse_module(text), [a, b, c], blocks=1)
