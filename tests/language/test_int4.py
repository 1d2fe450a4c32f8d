"""Tensors and tiles of int4, two elements in a byte: conversions and products compared with NumPy, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def packed(values: np.ndarray) -> np.ndarray:
    """Integers from -8 to 7 in pairs: the lower half of a byte is the element with the even index."""
    return ((values[..., ::2] & 15) | (values[..., 1::2] & 15) << 4).astype(np.uint8)


def product(m: int, n: int, k: int, tile_m: int, tile_n: int, tile_k: int, *, transposed: bool = False) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, k), "int4"), B: T.Tensor((n, k) if transposed else (k, n), "int4"), C: T.Tensor((m, n), "int32")):
        with T.Kernel(m // tile_m * (n // tile_n), is_npu=True) as (cid, _):
            row, column = cid // (n // tile_n) * tile_m, cid % (n // tile_n) * tile_n
            a = T.alloc_L1((tile_m, tile_k), "int4")
            b = T.alloc_L1((tile_n, tile_k) if transposed else (tile_k, tile_n), "int4")
            c = T.alloc_L0C((tile_m, tile_n), "int32")
            for step in T.serial(k // tile_k):
                T.copy(A[row, step * tile_k], a)
                if transposed:
                    T.copy(B[column, step * tile_k], b)
                else:
                    T.copy(B[step * tile_k, column], b)
                T.gemm_v0(a, b, c, transpose_B=transposed, init=(step == 0))
            T.copy(c, C[row, column])

    return main


@pytest.mark.parametrize("sizes", [(32, 64, 64, 32, 64, 64), (32, 128, 256, 16, 64, 128)])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product(sizes: tuple[int, ...], transposed: bool, rng: np.random.Generator) -> None:
    m, n, k = sizes[:3]
    a, b = rng.integers(-8, 8, (m, k)), rng.integers(-8, 8, (k, n))
    kernel = tilelang.compile(product(*sizes, transposed=transposed), out_idx=[-1], target="ascendc")
    given = packed(a), packed(np.ascontiguousarray(b.T) if transposed else b)
    np.testing.assert_array_equal(kernel(*given), a @ b)
    np.testing.assert_array_equal(kernel.interpret(*given), a @ b)
    assert "enable_I4" in kernel.mlir("hivm") and "memref<16x2x16x32xi8" not in kernel.mlir("hivm")
    assert kernel.last_launch is not None and "of peak" not in kernel.last_launch.summary().splitlines()[0]


@T.prim_func
def halved(A: T.Tensor((40, 96), "float16"), Q: T.Tensor((40, 96), "int4"), R: T.Tensor((40, 96), "float16")):
    with T.Kernel(1, is_npu=True) as (_, _):
        a, r = T.alloc_ub((40, 96), "float16"), T.alloc_ub((40, 96), "float16")
        q = T.alloc_ub((40, 96), "int4")
        T.copy(A, a)
        T.tile.cast(q, a, "CAST_FLOOR")
        T.copy(q, Q)
        T.tile.cast(r, q)
        T.copy(r, R)


def test_conversions(rng: np.random.Generator) -> None:
    a = (rng.standard_normal((40, 96)) * 8).astype(np.float16)
    a[0, :2] = -np.inf, 100
    wanted = np.clip(np.floor(a.astype(np.float32)), -8, 7).astype(np.int64)
    kernel = tilelang.compile(halved, out_idx=[1, 2], target="ascendc")
    for q, r in (kernel(a), kernel.interpret(a)):
        assert q.shape == (40, 48)
        np.testing.assert_array_equal(q.view(np.uint8), packed(wanted))
        np.testing.assert_array_equal(r, wanted.astype(np.float16))


def test_part_of_a_tensor_of_run_time_size(rng: np.random.Generator) -> None:
    n = T.symbolic("n")

    @T.prim_func
    def main(A: T.Tensor((8, n), "int4"), B: T.Tensor((8, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a, b = T.alloc_ub((8, 32), "int4"), T.alloc_ub((8, 32), "float16")
            T.copy(A[:, n - 32:n], a)
            T.tile.cast(b, a)
            T.copy(b, B)

    a = rng.integers(-8, 8, (8, 70))
    kernel = tilelang.compile(main, out_idx=[-1], target="ascendc")
    np.testing.assert_array_equal(kernel(packed(a)), a[:, 38:])


def test_tensors_of_torch(rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    a = rng.integers(-8, 8, (32, 64))
    tensor = torch.empty((32, 64), dtype=torch.int4)
    tensor.view(torch.uint8).flatten()[:32 * 32] = torch.from_numpy(packed(a).reshape(-1))
    kernel = tilelang.compile(product(32, 64, 64, 32, 64, 64), out_idx=[-1], target="ascendc")
    b = rng.integers(-8, 8, (64, 64))
    np.testing.assert_array_equal(kernel(tensor, torch.from_numpy(packed(b))).numpy(), a @ b)


@pytest.mark.parametrize(("statement", "code", "words"), [
    (lambda q, h: T.alloc_ub((4, 17), "int4"), "T111", "odd contiguous dimension"),
    (lambda q, h: T.tile.add(q, q, q), "T110", "int4"),
    (lambda q, h: T.tile.fill(q, 1), "T110", "int4"),
    (lambda q, h: T.copy(q, h), "T110", "does not convert int4"),
    (lambda q, h: T.tile.cast(h[:, 0:4], q[:, 1:5]), "T111", "is odd"),
    (lambda q, h: T.copy(h, q), "T110", "does not convert int4"),
])
def test_what_int4_cannot_do(statement: Callable[[Any, Any], Any], code: str, words: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 16), "int4")):
        with T.Kernel(1, is_npu=True) as (_, _):
            q, h = T.alloc_ub((4, 16), "int4"), T.alloc_ub((4, 16), "float16")
            T.copy(A, q)
            statement(q, h)

    with pytest.raises(tilelang.TileError, match=words) as error:
        tilelang.compile(main, target="ascendc")
    assert error.value.code == code


def test_k_must_be_whole_blocks() -> None:
    with pytest.raises(tilelang.TileError, match="multiple of 64") as error:
        tilelang.compile(product(32, 64, 96, 32, 64, 96), target="ascendc")
    assert error.value.code == "T120"


def test_an_array_of_another_type() -> None:
    kernel = tilelang.compile(halved, target="ascendc")
    with pytest.raises(tilelang.TileError, match="two in each byte") as error:
        kernel(np.zeros((40, 96), np.float16), np.zeros((40, 48), np.float16), np.zeros((40, 96), np.float16))
    assert error.value.code == "T402"
