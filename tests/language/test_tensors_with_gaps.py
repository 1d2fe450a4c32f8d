"""``T.StridedTensor``: arrays with gaps between their rows, compiled as interpreted and as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

M, N, S, R = (T.symbolic(name) for name in "MNSR")


def run(main: Any, *arrays: Any, rtol: float = 0) -> list[np.ndarray]:
    """The arguments after the kernel, compiled; the interpreter must agree, and nothing but the last array's elements change.

    An array is a part of a larger one, whose other elements are -7 and stay so.
    """
    kernel = tilelang.compile(main, target="npu")
    found = []
    for execute in (kernel, kernel.interpret):
        wholes = [(np.full(whole, -7, array.dtype), part, array) for array, whole, part in arrays]
        for whole, part, array in wholes:
            whole[part] = array
        execute(*(whole[part] for whole, part, _ in wholes))
        for whole, part, _ in wholes:
            rest = whole.copy()
            rest[part] = -7
            assert (rest == -7).all()
        found.append([whole[part].copy() for whole, part, _ in wholes])
        assert kernel.last_launch.hazards == []
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.astype(np.float32), other.astype(np.float32), rtol=rtol)
    return found[0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int32"])
@pytest.mark.parametrize(("m", "n", "gap"), [(16, 64, 0), (17, 45, 3), (5, 7, 25), (1, 33, 5)])
def test_rows_of_a_matrix(dtype: str, m: int, n: int, gap: int) -> None:
    @T.prim_func
    def main(A: T.StridedTensor((M, N), (S, 1), dtype), B: T.StridedTensor[(M, N), (R, 1), dtype]):
        with T.Kernel(T.ceildiv(M, 8), T.ceildiv(N, 32), threads=128) as (i, j):
            a = T.alloc_shared((8, 32), dtype)
            T.copy(A[i * 8, j * 32], a)
            T.copy(a, B[i * 8, j * 32])

    a = (np.arange(m * n) % 100).reshape(m, n).astype(dtype)
    whole, part = (m, n + gap), (slice(None), slice(gap, gap + n))
    found = run(main, (a, whole, part), (np.zeros_like(a), (m + 2, n + 2 * gap), (slice(1, m + 1), slice(0, n))))
    np.testing.assert_array_equal(found[1], a)


@pytest.mark.parametrize("constant", [True, False])
def test_three_axes_and_elements(constant: bool) -> None:
    strides: Any = (200, 40, 1) if constant else (R, S, 1)

    @T.prim_func
    def main(A: T.StridedTensor((3, 4, 33), strides, "float32"), B: T.Tensor((3, 4, 33), "float32")):
        with T.Kernel(3, threads=128) as i:
            a = T.alloc_fragment((4, 33), "float32")
            for j, k in T.Parallel(4, 33):
                a[j, k] = A[i, j, k] * 2.0
            T.copy(a, B[i, :, :])
            if i == 1:
                B[1, 2, 3] = A[2, 3, 32]

    a = np.arange(396, dtype=np.float32).reshape(3, 4, 33)
    found = run(main, (a, (3, 5, 40), (slice(None), slice(1, 5), slice(2, 35))), (np.zeros_like(a), a.shape, ...))
    expected = a * 2
    expected[1, 2, 3] = a[2, 3, 32]
    np.testing.assert_array_equal(found[1], expected)


@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 32), (33, 20, 47)])
def test_operands_and_the_result_of_a_product(m: int, n: int, k: int) -> None:
    K = T.symbolic("K")

    @T.prim_func
    def main(A: T.StridedTensor((M, K), (S, 1), "float16"), B: T.StridedTensor((K, N), (R, 1), "float16"),
             C: T.StridedTensor((M, N), (S, 1), "float32")):
        with T.Kernel(T.ceildiv(M, 16), threads=128) as i:
            a = T.alloc_shared((16, 64), "float16")
            b = T.alloc_shared((64, 32), "float16")
            c = T.alloc_fragment((16, 32), "float32")
            T.copy(A[i * 16, 0], a)
            T.copy(B[0, 0], b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C[i * 16, 0])

    a = (np.arange(m * k) % 5 - 2).reshape(m, k).astype(np.float16)
    b = (np.arange(k * n) % 7 - 3).reshape(k, n).astype(np.float16)
    found = run(main, (a, (m, 60), (slice(None), slice(1, k + 1))), (b, (k, n + 9), (slice(None), slice(0, n))),
                (np.zeros((m, n), np.float32), (m, 60), (slice(None), slice(2, n + 2))))
    np.testing.assert_array_equal(found[2], a.astype(np.float32) @ b.astype(np.float32))


def test_from_gm_to_gm_and_a_fill() -> None:
    @T.prim_func
    def main(A: T.StridedTensor((9, 21), (S, 1), "float32"), B: T.StridedTensor((9, 21), (40, 1), "float32")):
        with T.Kernel(1, threads=128) as i:
            T.fill(B, 3.0)
            T.copy(A[0:4, :], B[0:4, :])

    a = np.arange(189, dtype=np.float32).reshape(9, 21)
    found = run(main, (a, (9, 30), (slice(None), slice(9, 30))), (np.zeros_like(a), (9, 40), (slice(None), slice(0, 21))))
    expected = np.full_like(a, 3)
    expected[:4] = a[:4]
    np.testing.assert_array_equal(found[1], expected)


def doubled(strides: Any = (S, 1)) -> Any:
    @T.prim_func
    def main(A: T.StridedTensor((4, 8), strides, "float32")):
        with T.Kernel(1, threads=128) as i:
            a = T.alloc_fragment((4, 8), "float32")
            T.copy(A, a)
            for j, k in T.Parallel(4, 8):
                a[j, k] = a[j, k] * 2.0
            T.copy(a, A)

    return main


@pytest.mark.parametrize(("strides", "array", "code", "message"), [
    ((16, 1), np.zeros((4, 12), np.float32)[:, :8], "T404", r"A has strides \[16, 1\]; the array has \[12, 1\]"),
    ((S, 1), np.zeros((8, 4), np.float32).T, "T404", r"A has strides \[1, 1\]; the array has \[1, 4\]"),
    ((S, 1), np.zeros((4, 12), np.float32)[:, :9], "T403", r"A has shape \[4, 8\]; the array has \[4, 9\]"),
    ((S, 1), np.lib.stride_tricks.as_strided(np.zeros(32, np.float32), (4, 8), (8, 4)), "T404",
     "the kernel writes A, and elements of the array share memory"),
])
def test_arrays_that_do_not_fit(strides: Any, array: Any, code: str, message: str) -> None:
    kernel = tilelang.compile(doubled(strides), target="npu")
    with pytest.raises(TileError, match=message) as caught:
        kernel(array)
    assert caught.value.code == code


def test_declarations_that_are_refused() -> None:
    with pytest.raises(TileError, match="1 strides for 2 axes"):
        T.StridedTensor((4, 8), (8,), "float32")
    with pytest.raises(TileError, match="the last stride of 'A' is 4") as caught:
        tilelang.compile(doubled((1, 4)), target="npu")
    assert caught.value.code == "T190"
    with pytest.raises(TileError, match="A is a tensor with gaps, which a call cannot allocate"):
        tilelang.compile(doubled((16, 1)), out_idx=[0], target="npu")()


def test_a_tensor_with_gaps_has_no_other_shape() -> None:
    @T.prim_func
    def main(A: T.StridedTensor((4, 8), (S, 1), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=128) as i:
            a = T.alloc_fragment((32,), "float32")
            T.copy(T.view(A, (32,)), a)
            T.copy(a, B)

    with pytest.raises(TileError):
        tilelang.compile(main, target="npu")
