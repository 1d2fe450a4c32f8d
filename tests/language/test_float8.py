"""Products of float8, which the 950 multiplies and the chips before it do not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


def product(m: int, k: int, n: int, dtype: str, accumulator: str = "float32") -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), accumulator)):  # type: ignore[valid-type]
        with T.Kernel(T.ceildiv(m, 32)) as block:
            a, b = T.alloc_shared((32, 64), dtype), T.alloc_shared((64, n), dtype)
            c = T.alloc_fragment((32, n), accumulator)
            for step in T.Pipelined(T.ceildiv(k, 64), num_stages=2):
                T.copy(A[block * 32, step * 64], a)
                T.copy(B[step * 64, 0], b)
                T.gemm(a, b, c, init=step == 0)
            T.copy(c, C[block * 32, 0])

    return main


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize(("m", "k", "n"), [(64, 128, 48), (50, 100, 33)])
def test_on_the_950(rng: np.random.Generator, name: str, m: int, k: int, n: int) -> None:
    element = getattr(ml_dtypes, name)
    a, b = rng.standard_normal((m, k)).astype(element), rng.standard_normal((k, n)).astype(element)
    c = tilelang.compile(product(m, k, n, name), out_idx=[2], chip="a5")(a, b)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)


def test_before_the_950() -> None:
    with pytest.raises(TileError, match=r"T110.*float8_e5m2, which Ascend910B2 does not support"):
        tilelang.compile(product(64, 64, 32, "float8_e5m2"), out_idx=[2], chip="Ascend910B2")(
            np.zeros((64, 64), ml_dtypes.float8_e5m2), np.zeros((64, 32), ml_dtypes.float8_e5m2))


def test_the_accumulator_is_wide() -> None:
    with pytest.raises(TileError, match=r"T121.*no product of float8_e5m2 and float8_e5m2 into float8_e5m2"):
        tilelang.compile(product(64, 64, 32, "float8_e5m2", "float8_e5m2"), out_idx=[2], chip="a5")


def conversion(shape: tuple[int, int], source: str, target: str, parallel: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor(shape, source), B: T.Tensor(shape, target)):  # type: ignore[valid-type]
        with T.Kernel(1, is_npu=True) as (cid, _):
            a, b = T.alloc_shared(shape, source), T.alloc_shared(shape, target)
            T.copy(A, a)
            if parallel:
                for i, j in T.Parallel(*shape):
                    b[i, j] = a[i, j]
            else:
                T.copy(a, b)
            T.copy(b, B)

    return main


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("other", ["float32", "float16", "bfloat16"])
def test_conversions_on_the_950(rng: np.random.Generator, name: str, other: str, parallel: bool) -> None:
    narrow, wide = getattr(ml_dtypes, name), np.float16 if other == "float16" else getattr(ml_dtypes, other, np.float32)
    x = np.concatenate([rng.standard_normal(59) * 10.0 ** rng.integers(-4, 4, 59), [0.0, -0.0, np.inf, -np.inf, np.nan, 464.0]])
    values = x.astype(np.float32).astype(wide).reshape(5, 13)
    made = tilelang.compile(conversion((5, 13), other, name, parallel), out_idx=[1], chip="a5", target="npuir")(values)
    expected = values.astype(np.float32).astype(narrow)
    np.testing.assert_array_equal(np.asarray(made).view(np.uint8), expected.view(np.uint8))
    every = np.arange(256, dtype=np.uint8).view(narrow).reshape(16, 16)
    back = tilelang.compile(conversion((16, 16), name, other, parallel), out_idx=[1], chip="a5", target="npuir")(every)
    np.testing.assert_array_equal(np.asarray(back).astype(np.float32), every.astype(np.float32).astype(wide).astype(np.float32))
