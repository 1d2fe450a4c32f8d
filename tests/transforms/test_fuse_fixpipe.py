"""Products that are stored from L0C by the fixpipe, or through UB: the same bits, and no Vector core if none is needed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

WAYS = ("copied", "cast", "relu", "relu-cast", "cast-relu", "points", "twice")


def kernel(way: str, rows: int, columns: int, dtype: str) -> Any:
    """A product in tiles of 32 x 48, which do not divide the sizes; ``way`` is the operation on it before the store to GM."""
    across = -(-columns // 48)

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float16"), B: T.Tensor((64, columns), "float16"), C: T.Tensor((rows, columns), dtype)):
        with T.Kernel(-(-rows // 32) * across, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 64), "float16")
            b = T.alloc_shared((64, 48), "float16")
            c = T.alloc_fragment((32, 48), "float32")
            d = T.alloc_fragment((32, 48), "float32" if way in ("relu-cast", "twice") else dtype)
            out = T.alloc_shared((32, 48), dtype)
            T.copy(A[cid // across * 32, 0], a)
            T.copy(B[0, cid % across * 48], b)
            T.gemm(a, b, c, initC=True)
            if way == "copied":
                T.copy(c, out)
            elif way == "cast":
                T.vcast(c, out, "rint")
            elif way == "relu" or way == "relu-cast":
                T.vrelu(c, d)
                T.copy(d, out)
            elif way == "cast-relu":
                T.vcast(c, d, "rint")
                T.vmax(d, 0, out)
            elif way == "points":
                for i, j in T.Parallel(32, 48):
                    out[i, j] = T.max(c[i, j], 0.0)
            elif way == "twice":
                T.copy(c, d)
                T.copy(d, out)
            T.copy(out, C[cid // across * 32, cid % across * 48])

    return main


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("rows", "columns"), [(32, 48), (70, 100)])
def test_the_same_bits(rows: int, columns: int, way: str, dtype: str) -> None:
    if (dtype == "float32" and way in ("cast", "cast-relu")) or (dtype == "bfloat16" and way in ("relu", "cast-relu")):
        pytest.skip("a conversion to the same type, or relu on bfloat16, is no operation")
    if way == "relu" and dtype != "float32":
        pytest.skip("relu does not convert")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((rows, 64), (64, columns)))
    a[0], a[1], a[2, 0], a[3, 0] = 60000, -60000, np.nan, np.inf  # too large for float16, and not finite
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    left = []
    for off in ([], ["fuse-fixpipe"]):
        func = kernel(way, rows, columns, dtype)
        made = tilelang.compile(func, target="npuir", sanitize=True, pass_configs={"tl.disable": off})
        c = np.zeros((rows, columns), kind)
        with np.errstate(all="ignore"):
            made(a, b, c)
        left.append(c)
        assert ("hivm.hir.vcast" in made.mlir() or "hivm.hir.load" in made.mlir()) == bool(off)
        assert any(line.startswith("fuse-fixpipe") and "the fixpipe copies" in line
                   for line in made.explain().sections["optimisations"]) != bool(off)
    np.testing.assert_array_equal(*(values.astype(np.float32) for values in left))
    with np.errstate(all="ignore"):
        product = a[4:].astype(np.float32) @ b.astype(np.float32)
    product = np.maximum(product, 0) if "relu" in way or way == "points" else product
    np.testing.assert_allclose(left[0][4:].astype(np.float32), product, rtol=1e-2, atol=1e-2)


def test_what_else_reads_the_buffer_keeps_it() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float16"), D: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            out = T.alloc_shared((32, 32), "float16")
            T.copy(A, a)
            T.gemm(a, a, c, initC=True)
            T.copy(c, out)
            T.copy(out, C)
            T.vexp(out, out)
            T.copy(out, D)

    made = tilelang.compile(main, target="npuir", sanitize=True)
    (kept,) = (one for one in made.explain().refused if one.about == "fuse-fixpipe")
    assert "the product goes through UB: out (2 048 bytes" in kept.text
    assert kept.edit == "copy the product to the tensor directly, and to out for the other uses"
    a = (np.random.default_rng(0).standard_normal((32, 32)) / 8).astype(np.float16)
    c, d = np.zeros((2, 32, 32), np.float16)
    made(a, c, d)
    np.testing.assert_allclose(c, a.astype(np.float32) @ a.astype(np.float32), rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(d, np.exp(c.astype(np.float32)), rtol=1e-2)


def test_a_product_that_changes_meanwhile_goes_as_it_was() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float16"), D: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            out = T.alloc_shared((32, 32), "float16")
            T.copy(A, a)
            T.gemm(a, a, c, initC=True)
            T.copy(c, out)
            T.gemm(a, a, c)
            T.copy(out, C)
            T.copy(c, D)

    made = tilelang.compile(main, target="npuir", sanitize=True)
    a = (np.random.default_rng(0).standard_normal((32, 32)) / 8).astype(np.float16)
    c, d = np.zeros((32, 32), np.float16), np.zeros((32, 32), np.float32)
    made(a, c, d)
    product = a.astype(np.float32) @ a.astype(np.float32)
    np.testing.assert_allclose(c, product, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(d, 2 * product, rtol=1e-2, atol=1e-2)
    (kept,) = (one for one in made.explain().refused if one.about == "fuse-fixpipe")
    assert "the accumulator is written again before the store" in kept.text


@pytest.mark.parametrize("way", ["number", "quotient", "argument", "relu", "points"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_factor_stays_and_is_reported(way: str, dtype: str) -> None:
    """The factor of the fixpipe is of tf32; the product that the author writes is of float32."""
    @T.prim_func
    def main(A: T.Tensor((40, 32), "float16"), C: T.Tensor((40, 40), dtype), factor: T.float32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((48, 32), "float16")
            c = T.alloc_fragment((48, 48), "float32")
            d = T.alloc_shared((48, 48), "float32")
            out = T.alloc_shared((48, 48), dtype)
            T.copy(A[0, 0], a)
            T.gemm(a, a, c, initC=True, b_transpose=True)
            if way == "number":
                T.vmul(c, 0.125, d)
            elif way == "quotient":
                T.vdiv(c, 3.0, d)
            elif way == "argument":
                T.vmul(c, factor, d)
            elif way == "relu":
                T.vrelu(c, c)
                T.vmul(c, 0.3, d)
            if way == "points":
                for i, j in T.Parallel(48, 48):
                    out[i, j] = c[i, j] * 0.3
            else:
                T.copy(d, out)
            T.copy(out, C[0, 0])

    a = np.random.default_rng(0).standard_normal((40, 32)).astype(np.float16)
    left = []
    for off in ([], ["fuse-fixpipe"]):
        made = tilelang.compile(main, target="npuir", sanitize=True, pass_configs={"tl.disable": off})
        c = np.zeros((40, 40), dtype)
        made(a, c, 0.7)
        left.append(c)
    np.testing.assert_array_equal(*left)
    product = a.astype(np.float32) @ a.astype(np.float32).T
    factor = {"number": 0.125, "quotient": 1 / 3, "argument": 0.7, "relu": 0.3, "points": 0.3}[way]
    np.testing.assert_allclose(c, (np.maximum(product, 0) if way == "relu" else product) * factor, rtol=1e-2, atol=1e-2)
    page = "\n".join(tilelang.compile(main, target="npuir").explain().sections.get("refused", ()))
    reported = "the product is multiplied in UB: the fixpipe multiplies in tf32, which gives other bits than float32"
    assert (reported in page) == (way != "relu")  # there c is more than a product
