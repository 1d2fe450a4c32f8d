"""Products of MX matrices, scaled in groups of 32 elements along K, compared with NumPy, and errors."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

ELEMENTS = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e2m1": "float4_e2m1fn"}
LAYOUTS = ("MX_A_ND", "MX_A_DN", "MX_B_ND", "MX_B_DN")


@pytest.fixture(autouse=True)
def _a5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_CHIP", "a5")


def numbers(rng: np.random.Generator, shape: tuple[int, int], element: str) -> np.ndarray:
    return (2 * rng.standard_normal(shape)).astype(np.float32).astype(getattr(ml_dtypes, element))


def exponents(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.integers(117, 137, shape).astype(np.uint8)


def arranged(scales: np.ndarray, layout: str) -> np.ndarray:
    """The scales of A (m, k / 32) or of B (k / 32, n) as a tensor of pairs."""
    rows = scales if "_A_" in layout else scales.T
    pairs = rows.reshape(len(rows), -1, 2)
    return np.ascontiguousarray(pairs if layout in ("MX_A_ND", "MX_B_DN") else pairs.transpose(1, 0, 2))


def packed(values: np.ndarray) -> np.ndarray:
    """Elements of four bits in pairs: the lower half of a byte is the element with the even index."""
    bits = np.ascontiguousarray(values).view(np.uint8)
    return bits[:, ::2] | bits[:, 1::2] << 4


def wanted(a: np.ndarray, b: np.ndarray, sa: np.ndarray, sb: np.ndarray) -> np.ndarray:
    """The product of the scaled matrices in float64."""
    left = a.astype(np.float64) * np.repeat(2.0 ** (sa.astype(int) - 127), 32, axis=1)
    right = b.astype(np.float64) * np.repeat(2.0 ** (sb.astype(int) - 127), 32, axis=0)
    return left @ right


def near(found: np.ndarray, exact: np.ndarray) -> None:
    np.testing.assert_allclose(found, exact, atol=2e-6 * np.abs(exact).max(), rtol=0)


def product(m: int, n: int, k: int, tile: tuple[int, int, int], a_type: str, b_type: str, layouts: tuple[str, str], *,
            scale: str = "uint8", corner: bool = False, fmt: str | None = None) -> Any:
    tile_m, tile_n, tile_k = tile
    a_shape = (m, k // 64, 2) if layouts[0] == "MX_A_ND" else (k // 64, m, 2)
    b_shape = (k // 64, n, 2) if layouts[1] == "MX_B_ND" else (n, k // 64, 2)

    @T.prim_func
    def main(A: T.Tensor((m, k), a_type), B: T.Tensor((k, n), b_type), SA: T.Tensor(a_shape, scale),
             SB: T.Tensor(b_shape, scale), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, tile_m) * T.ceildiv(n, tile_n), is_npu=True) as (cid, _):
            row, column = cid // T.ceildiv(n, tile_n) * tile_m, cid % T.ceildiv(n, tile_n) * tile_n
            a, b = T.alloc_L1((tile_m, tile_k), a_type), T.alloc_L1((tile_k, tile_n), b_type)
            sa = T.alloc_L1_scale_a((tile_m, tile_k // 32), scale)
            sb = T.alloc_L1_scale_b((tile_k // 32, tile_n), scale)
            c = T.alloc_L0C((tile_m, tile_n), "float32")
            for step in T.serial(k // tile_k):
                group = step * (tile_k // 64)
                T.copy(A[row, step * tile_k], a)
                T.copy(B[step * tile_k, column], b)
                if corner and layouts[0] == "MX_A_ND":
                    T.copy(SA[row, group, 0], sa, src_layout=layouts[0])
                elif corner:
                    T.copy(SA[group, row, 0], sa, src_layout=layouts[0])
                elif layouts[0] == "MX_A_ND":
                    T.copy(SA[row:row + tile_m, group:group + tile_k // 64, :], sa, src_layout=layouts[0])
                else:
                    T.copy(SA[group:group + tile_k // 64, row:row + tile_m, :], sa, src_layout=layouts[0])
                if layouts[1] == "MX_B_ND":
                    T.copy(SB[group:group + tile_k // 64, column:column + tile_n, :], sb, src_layout=layouts[1])
                else:
                    T.copy(SB[column, group, 0], sb, src_layout=layouts[1])
                T.gemm_mx(a, b, c, sa, sb, init=(step == 0), format=fmt)
            T.copy(c, C[row, column])

    return main


@pytest.mark.parametrize(("a_type", "b_type"), [("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"), ("e2m1", "e2m1")])
@pytest.mark.parametrize("layouts", [("MX_A_ND", "MX_B_ND"), ("MX_A_DN", "MX_B_DN")])
@pytest.mark.parametrize("corner", [False, True])
def test_a_product(a_type: str, b_type: str, layouts: tuple[str, str], corner: bool, rng: np.random.Generator) -> None:
    m, n, k = 64, 128, 192
    left, right = ELEMENTS[a_type], ELEMENTS[b_type]
    a, b = numbers(rng, (m, k), left), numbers(rng, (k, n), right)
    sa, sb = exponents(rng, (m, k // 32)), exponents(rng, (k // 32, n))
    kernel = tilelang.compile(product(m, n, k, (32, 64, 64), left, right, layouts, corner=corner), out_idx=[-1],
                              target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    given = [packed(a), packed(b)] if a_type == "e2m1" else [a, b]
    given += [arranged(sa, layouts[0]), arranged(sb, layouts[1])]
    exact = wanted(a, b, sa, sb)
    near(kernel(*given), exact)
    near(kernel.interpret(*given), exact)
    text = kernel.mlir("hivm")
    assert "hivm.hir.mmadmxL1" in text
    assert text.count("hivm.hir.load_scale") == 2
    assert ("lhsFormat = 3" in text) is (a_type == "e2m1")


def test_tiles_that_extend_past_the_tensors(rng: np.random.Generator) -> None:
    m, n, k = 40, 72, 128
    a, b = numbers(rng, (m, k), "float8_e4m3fn"), numbers(rng, (k, n), "float8_e4m3fn")
    sa, sb = exponents(rng, (m, k // 32)), exponents(rng, (k // 32, n))
    layouts = ("MX_A_ND", "MX_B_DN")
    kernel = tilelang.compile(product(m, n, k, (32, 64, 64), "e4m3_float8", "e4m3_float8", layouts, corner=True, fmt="e4m3"),
                              out_idx=[-1], target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    given = a, b, arranged(sa, layouts[0]), arranged(sb, layouts[1])
    near(kernel(*given), wanted(a, b, sa, sb))
    near(kernel.interpret(*given), wanted(a, b, sa, sb))


@pytest.mark.parametrize("fmt", ["e4m3", "e5m2"])
def test_bytes_with_a_format_and_exponents_of_their_own_type(fmt: str, rng: np.random.Generator) -> None:
    m, n, k = 32, 64, 64
    a, b = numbers(rng, (m, k), ELEMENTS[fmt]), numbers(rng, (k, n), ELEMENTS[fmt])
    sa, sb = exponents(rng, (m, 2)), exponents(rng, (2, n))
    layouts = ("MX_A_ND", "MX_B_ND")
    kernel = tilelang.compile(product(m, n, k, (32, 64, 64), "uint8", "uint8", layouts, scale="float8_e8m0fnu", fmt=fmt),
                              out_idx=[-1], target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    given = (a.view(np.uint8), b.view(np.uint8),
             *(arranged(one, layout).view(ml_dtypes.float8_e8m0fnu) for one, layout in zip((sa, sb), layouts, strict=True)))
    near(kernel(*given), wanted(a, b, sa, sb))
    near(kernel.interpret(*given), wanted(a, b, sa, sb))
    assert f"lhsFormat = {1 if fmt == 'e5m2' else 2}" in kernel.mlir("hivm")


def in_l0(scale_a: tuple[int, ...], scale_b: tuple[int, ...]) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64, 128), "float8_e4m3fn"), B: T.Tensor((128, 64), "float8_e4m3fn"), SA: T.Tensor(scale_a, "uint8"),
             SB: T.Tensor(scale_b, "uint8"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _), T.Scope("C"):
            a, b = T.alloc_L1((64, 128), "float8_e4m3fn"), T.alloc_L1((128, 64), "float8_e4m3fn")
            left, right = T.alloc_L0A((64, 128), "float8_e4m3fn"), T.alloc_L0B((128, 64), "float8_e4m3fn")
            sa, sb = T.alloc_shared((64, 4), "uint8"), T.alloc_shared((4, 64), "uint8")
            c = T.alloc_L0C((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(a, left)
            T.copy(b, right)
            T.copy(SA, sa)
            T.copy(SB, sb)
            T.mma_mx(left, right, c, sa, sb, init=True, scale_dtype="uint8")
            T.mma_mx(left, right, c, sa, sb)
            T.copy(c, C)

    return main


def test_matrices_in_l0_with_scales_of_plain_copies(rng: np.random.Generator) -> None:
    a, b = numbers(rng, (64, 128), "float8_e4m3fn"), numbers(rng, (128, 64), "float8_e4m3fn")
    sa, sb = exponents(rng, (64, 4)), exponents(rng, (4, 64))
    kernel = tilelang.compile(in_l0((64, 4), (4, 64)), out_idx=[-1], target="ascendc",
                              pass_configs={"tl.ascend_auto_sync": True})
    near(kernel(a, b, sa, sb), 2 * wanted(a, b, sa, sb))
    near(kernel.interpret(a, b, sa, sb), 2 * wanted(a, b, sa, sb))


def test_a_transposed_matrix_extreme_scales_and_nan(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 16), "float8_e5m2"), B: T.Tensor((16, 64), "float8_e5m2"), SA: T.Tensor((16, 2), "uint8"),
             SB: T.Tensor((2, 16), "uint8"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a, b = T.alloc_L1((64, 16), "float8_e5m2"), T.alloc_L1((16, 64), "float8_e5m2")
            sa, sb = T.alloc_L1_scale_a((16, 2)), T.alloc_L1_scale_b((2, 16))
            c = T.alloc_L0C((16, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(SA, sa, src_layout="MX_A_ND")
            T.copy(SB, sb, src_layout="MX_B_ND")
            T.gemm_mx(a, b, c, sa, sb, init=True, transpose_A=True, transpose_B=True)
            T.copy(c, C)

    a, b = numbers(rng, (16, 64), "float8_e5m2"), numbers(rng, (64, 16), "float8_e5m2")
    sa, sb = exponents(rng, (16, 2)), exponents(rng, (2, 16))
    sa[0], sb[:, 0] = 254, 0  # 2 ** 127 and 2 ** -127
    sa[1], sa[2, 1] = 0, 255
    sb[:, 1] = 20
    kernel = tilelang.compile(main, out_idx=[-1], target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    given = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), sa, sb
    with np.errstate(over="ignore"):
        exact = wanted(a, b, sa, sb)
    exact[2] = np.nan
    for found in (kernel(*given), kernel.interpret(*given)):
        assert np.isnan(found[2]).all()
        assert not np.isnan(found[3:]).any()
        np.testing.assert_allclose(found[:, 0], exact[:, 0], rtol=1e-3, atol=1e-30)
        assert np.abs(found[1, 1]) < 1e-38


def test_tensors_of_torch(rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    layouts = ("MX_A_ND", "MX_B_ND")
    a, b = numbers(rng, (32, 64), "float4_e2m1fn"), numbers(rng, (64, 64), "float4_e2m1fn")
    sa, sb = exponents(rng, (32, 2)), exponents(rng, (2, 64))
    kernel = tilelang.compile(product(32, 64, 64, (32, 64, 64), "e2m1_float4", "float4_e2m1fn", layouts, fmt="e2m1x2",
                                      scale="float8_e8m0fnu"), out_idx=[-1], target="ascendc")
    given = [torch.from_numpy(packed(one)).view(torch.float4_e2m1fn_x2) for one in (a, b)]
    given += [torch.from_numpy(arranged(one, layout)).view(torch.float8_e8m0fnu)
              for one, layout in zip((sa, sb), layouts, strict=True)]
    near(kernel(*given).numpy(), wanted(a, b, sa, sb))


@pytest.mark.parametrize(("statement", "code", "words"), [
    (lambda t: T.alloc_L1_scale_a((64, 3)), "T120", "multiple of 64"),
    (lambda t: T.alloc_L1_scale_b((2, 2, 64)), "T120", "the shape is"),
    (lambda t: T.alloc_L1_scale_a((64, 2), "int8"), "T110", "biased exponent"),
    (lambda t: T.gemm_mx(t.a, t.b, t.c, t.sb, t.sb), "T120", "the scales of A"),
    (lambda t: T.gemm_mx(t.a, t.b, t.c, t.sa, t.sa), "T120", "the scales of B"),
    (lambda t: T.gemm_mx(t.a, t.half, t.c, t.sa, t.sb), "T121", "no product of MX matrices"),
    (lambda t: T.gemm_mx(t.a, t.b, t.c, t.sa, t.sb, format="e5m2"), "T145", "leave format out"),
    (lambda t: T.gemm_mx(t.a, t.b, t.c, t.sa, t.sb, format="e3m4"), "T145", "no format"),
    (lambda t: T.gemm_mx(t.a, t.b, t.c, t.sa, t.sb, format="e1m2x2"), "T190", "e1m2"),
    (lambda t: T.gemm_mx(t.bytes_a, t.bytes_b, t.c, t.sa, t.sb, format="e2m1x2"), "T190", "two elements in each byte"),
    (lambda t: T.gemm_mx(t.a, t.b, t.c, t.a, t.sb), "T121", "the scales of A"),
    (lambda t: T.gemm_mx(t.a, t.b, t.c, t.ub, t.sb), "T122", "not in L1"),
    (lambda t: T.gemm_mx(t.a, t.b, t.integers, t.sa, t.sb), "T121", "float32"),
    (lambda t: T.mma_mx(t.a, t.b, t.c, t.sa, t.sb), "T122", "L0A"),
    (lambda t: T.copy(t.SA, t.sa, src_layout="MX_A_ZZ"), "T145", "no src_layout"),
    (lambda t: T.copy(t.SA, t.sa, src_layout="MX_A_DN"), "T131", "slice the tensor"),
    (lambda t: T.copy(t.SA, t.sa, src_layout="MX_A_ND", transpose=True), "T145", "another argument"),
    (lambda t: T.copy(t.sa, t.SA, src_layout="MX_A_ND"), "T231", "no load of scales"),
    (lambda t: T.copy(t.A, t.sa, src_layout="MX_A_ND"), "T110", "no scales"),
    (lambda t: T.tile.add(t.four, t.four, t.four), "T110", "float4_e2m1fn"),
    (lambda t: T.copy(t.four[:, 0:2], t.ub), "T110", "does not convert float4_e2m1fn"),
    (lambda t: T.tile.cast(t.ub, t.four), "T110", "float4_e2m1fn"),
])
def test_what_is_refused(statement: Callable[[Any], Any], code: str, words: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float8_e4m3fn"), SA: T.Tensor((64, 1, 2), "uint8")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a, b = T.alloc_L1((64, 64), "float8_e4m3fn"), T.alloc_L1((64, 64), "float8_e4m3fn")
            bytes_a, bytes_b = T.alloc_L1((64, 64), "uint8"), T.alloc_L1((64, 64), "uint8")
            half, four = T.alloc_L1((64, 64), "float16"), T.alloc_ub((64, 64), "float4_e2m1fn")
            sa, sb = T.alloc_L1_scale_a((64, 2)), T.alloc_L1_scale_b((2, 64))
            c, integers = T.alloc_L0C((64, 64), "float32"), T.alloc_L0C((64, 64), "int32")
            ub = T.alloc_ub((64, 2), "uint8")
            statement(SimpleNamespace(A=A, SA=SA, a=a, b=b, bytes_a=bytes_a, bytes_b=bytes_b, half=half, four=four, sa=sa,
                                      sb=sb, c=c, integers=integers, ub=ub))

    with pytest.raises(tilelang.TileError, match=words) as error:
        tilelang.compile(main, target="ascendc")
    assert error.value.code == code


def test_chips_without_these_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_CHIP", "Ascend910B2")
    with pytest.raises(tilelang.TileError, match="no products of MX matrices") as error:
        tilelang.compile(product(32, 64, 64, (32, 64, 64), "float4_e2m1fn", "float4_e2m1fn", ("MX_A_ND", "MX_B_ND")),
                         target="ascendc")
    assert error.value.code == "T110"


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "float8_e8m0fnu"])
def test_single_elements_of_packed_types_are_refused(dtype: str, reads: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            a = T.alloc_ub((16, 64), "float32")
            b = T.alloc_ub((16, 64), dtype)
            T.copy(A, a)
            for i, j in T.Parallel(16, 64):
                if reads:
                    a[i, j] = b[i, j] * 2.0
                else:
                    b[i, j] = a[i, j] * 2.0
            T.copy(a, A)

    with pytest.raises(TileError) as caught:
        tilelang.compile(main, target="npuir", chip="Ascend910_95")
    assert caught.value.code in ("T110", "T190")
    assert dtype in caught.value.message
