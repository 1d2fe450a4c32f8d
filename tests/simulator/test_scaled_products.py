"""mmadmxL1 and load_scale of given HIVM against NumPy, their times, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Launch, simulate

M, K, N = 32, 128, 48


def text(element: str, *, formats: str = "", extra: str = "", transposed: str = "") -> str:
    """A product of MX matrices in L1: A [M, K], B [K, N], scales [M, K / 32] and [N, K / 32]."""
    width = 32
    columns = {"i8": 2}.get(element, 1)  # elements in a byte
    a, b = (f"memref<{size}x{element}, {texts.L1}>" for size in (
        f"{K // columns // width}x{M // 16}x16x{width}", f"{-(-N // columns // width)}x{K // 16}x16x{width}"))
    c = f"memref<{N // 16}x{M // 16}x16x16xf32, {texts.L0C}>"
    outside = {"A": f"{M}x{K // columns}x{element}", "B": f"{K}x{N // columns}x{element}", "SA": f"{M}x{K // 32}xui8",
               "SB": f"{N}x{K // 32}xui8", "C": f"{M}x{N}xf32"}
    kinds = {name: f"memref<{shape}, {texts.GM}>" for name, shape in outside.items()}
    scales = [f"memref<{size}x{K // 32}xui8, {texts.L1}>" for size in (M, N)]
    lines = [f"    %{name} = arith.constant {value} : index" for name, value in (("m", M), ("k", K), ("n", N))]
    lines += ["    %yes = arith.constant true", texts.tile("a", 0, a.split("<")[1].rsplit("x", 1)[0], element, texts.L1),
              texts.tile("b", 131072, b.split("<")[1].rsplit("x", 1)[0], element, texts.L1),
              texts.tile("sa", 262144, f"{M}x{K // 32}", "ui8", texts.L1),
              texts.tile("sb", 264192, f"{N}x{K // 32}", "ui8", texts.L1),
              texts.tile("c", 0, f"{N // 16}x{M // 16}x16x16", "f32", texts.L0C)]
    lines += [f"    hivm.hir.nd2nz {{dst_continuous}} ins(%{x.upper()} : {kinds[x.upper()]}) outs(%{x} : {kind})"
              for x, kind in (("a", a), ("b", b))]
    lines += [f"    hivm.hir.load_scale{transposed} ins(%{x.upper()} : {kinds[x.upper()]}) outs(%{x} : {kind})"
              for x, kind in zip(("sa", "sb"), scales, strict=True)]
    lines += [texts.sync("MTE2", "MTE1"),
              f"    hivm.hir.mmadmxL1 {formats} ins(%a, %b, %sa, %sb, %yes, %m, %k, %n : {a}, {b}, {', '.join(scales)}, "
              f"{texts.SIZES}) outs(%c : {c}){extra}", texts.sync("M", "FIX"),
              f"    hivm.hir.fixpipe {{dma_mode = #hivm.dma_mode<nz2nd>}} ins(%c : {c}) outs(%C : {kinds['C']})"]
    return texts.module(texts.kernel("AIC", [f"%{name}: {kind}" for name, kind in kinds.items()], "\n".join(lines)))


def run(source: str, args: list[Any], chip: str = "a5") -> Launch:
    return simulate(parse_module(source), args, blocks=1, hazards=True, chip=chip)


def numbers(rng: np.random.Generator, element: str) -> tuple[np.ndarray, ...]:
    kind = getattr(ml_dtypes, element)
    return (rng.standard_normal((M, K)).astype(kind), rng.standard_normal((K, N)).astype(kind),
            rng.integers(110, 140, (M, K // 32)).astype(np.uint8), rng.integers(110, 140, (N, K // 32)).astype(np.uint8))


def wanted(a: np.ndarray, b: np.ndarray, sa: np.ndarray, sb: np.ndarray) -> np.ndarray:
    """The products of each group in float32, scaled, and added in float32."""
    total = np.zeros((M, N), np.float32)
    for group in range(K // 32):
        part = slice(32 * group, 32 * group + 32)
        sums = (a[:, part].astype(np.float64) @ b[part].astype(np.float64)).astype(np.float32)
        total += (sums * 2.0 ** (sa[:, group, None].astype(int) + sb[None, :, group].astype(int) - 254)).astype(np.float32)
    return total


@pytest.mark.parametrize("element", ["float8_e4m3fn", "float8_e5m2"])
def test_float8(rng: np.random.Generator, element: str) -> None:
    given = numbers(rng, element)
    c = np.zeros((M, N), np.float32)
    launch = run(text({"float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"}[element]), [*given, c])
    np.testing.assert_allclose(c, wanted(*given), rtol=1e-5, atol=1e-6 * np.abs(c).max())
    assert launch.hazards == []
    assert launch.cycles > 0


@pytest.mark.parametrize(("number", "element"), [(1, "float8_e5m2"), (2, "float8_e4m3fn")])
def test_bytes_with_a_format(rng: np.random.Generator, number: int, element: str) -> None:
    a, b, sa, sb = numbers(rng, element)
    c = np.zeros((M, N), np.float32)
    run(text("ui8", formats=f"{{lhsFormat = {number} : i32, rhsFormat = {number} : i32}}"),
        [a.view(np.uint8), b.view(np.uint8), sa, sb, c])
    np.testing.assert_allclose(c, wanted(a, b, sa, sb), rtol=1e-5, atol=1e-6 * np.abs(c).max())


def test_float4(rng: np.random.Generator) -> None:
    a, b, sa, sb = numbers(rng, "float4_e2m1fn")
    c = np.zeros((M, N), np.float32)
    pairs = [(one.view(np.uint8)[:, ::2] | one.view(np.uint8)[:, 1::2] << 4).view(np.int8) for one in (a, b)]
    run(text("i8", formats="{lhsFormat = 3 : i32, rhsFormat = 3 : i32}"), [*pairs, sa, sb, c])
    np.testing.assert_allclose(c, wanted(a, b, sa, sb), rtol=1e-5, atol=1e-6 * np.abs(c).max())


@pytest.mark.parametrize(("options", "chip", "message"), [
    ({"element": "ui8"}, "a5", "does not state their format"),
    ({"element": "f8E5M2", "transposed": " {is_transposed = true}"}, "a5", "transposed scales"),
    ({"element": "f8E5M2", "extra": " sync_related_args(%zero, %zero : i64, i64)"}, "a5", "sync_related_args"),
    ({"element": "ui8", "formats": "{lhsFormat = 1 : i32, rhsFormat = 1 : i32}"}, "Ascend910B2", "no products of MX matrices"),
])
def test_what_is_refused(rng: np.random.Generator, options: dict[str, str], chip: str, message: str) -> None:
    a, b, sa, sb = numbers(rng, "float8_e5m2")
    if options["element"] == "ui8":
        a, b = a.view(np.uint8), b.view(np.uint8)
    source = text(**options).replace("    %yes =", "    %zero = arith.constant 0 : i64\n    %yes =", 1)
    with pytest.raises(TileError, match=message):
        run(source, [a, b, sa, sb, np.zeros((M, N), np.float32)], chip)
