"""Element types that the Vector core does not compute in, or orders unsigned: T.Parallel is vector operations on them too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, COLUMNS = 12, 40
HALF = ml_dtypes.bfloat16


def kernel(kind: str, change: Callable[[Any, Any], Any], **settings: Any) -> Any:
    @tilelang.jit(out_idx=[-1], target="npuir", sanitize=True, **settings)
    def made():
        @T.prim_func
        def main(A: T.Tensor((ROWS, COLUMNS), kind), B: T.Tensor((ROWS, COLUMNS), kind), C: T.Tensor((ROWS, COLUMNS), kind)):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_shared((ROWS, COLUMNS), kind)
                b = T.alloc_shared((ROWS, COLUMNS), kind)
                c = T.alloc_shared((ROWS, COLUMNS), kind)
                T.copy(A, a)
                T.copy(B, b)
                for i, j in T.Parallel(ROWS, COLUMNS):
                    c[i, j] = change(a[i, j], b[i, j])
                T.copy(c, C)

        return main

    return made()


def vectorised(made: Any) -> bool:
    return "scf.for" not in made.get_kernel_source()


HALVES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "sum": (lambda x, y: x + y, lambda x, y: x + y),
    "product and sum": (lambda x, y: x * y + x, lambda x, y: x * y + x),
    "quotient": (lambda x, y: x / y, lambda x, y: x / y),
    "scalar": (lambda x, y: x * T.cast(0.3, "bfloat16") - 1, lambda x, y: x * HALF(0.3) - HALF(1)),
    "absolute": (lambda x, y: T.abs(x), lambda x, y: np.abs(x)),
    "largest": (lambda x, y: T.max(T.max(x, y), x * y), lambda x, y: np.maximum(np.maximum(x, y), x * y)),
    "choice": (lambda x, y: T.if_then_else(x < y, x - y, y), lambda x, y: np.where(x < y, x - y, y)),
    "root": (lambda x, y: T.sqrt(T.abs(x)), lambda x, y: np.sqrt(np.abs(x))),
}


@pytest.mark.parametrize("what", HALVES)
def test_bfloat16_is_rounded_after_each_operation_and_none_is_point_by_point(what: str) -> None:
    change, meaning = HALVES[what]
    rng = np.random.default_rng(0)
    a, b = ((rng.standard_normal((ROWS, COLUMNS)) * 5).astype(HALF) for _ in range(2))
    made = kernel("bfloat16", change)
    assert vectorised(made)
    found, wanted = np.asarray(made(a, b)), meaning(a, b)
    np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))


def test_a_function_of_bfloat16_is_what_it_is_point_by_point() -> None:
    rng = np.random.default_rng(1)
    a = (rng.standard_normal((ROWS, COLUMNS)) * 5).astype(HALF)

    def gate(x: Any, y: Any) -> Any:
        return x / (1 + T.exp(-x))

    whole, by_point = kernel("bfloat16", gate), kernel("bfloat16", gate, pass_configs={"tl.disable": ["vectorise-parallel"]})
    assert vectorised(whole)
    assert not vectorised(by_point)
    np.testing.assert_array_equal(np.asarray(whole(a, a)).view(np.uint16), np.asarray(by_point(a, a)).view(np.uint16))
    assert by_point.last_launch.time_us > 3 * whole.last_launch.time_us


UNSIGNED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "largest": (lambda x, y: T.max(x, y), np.maximum),
    "smallest": (lambda x, y: T.min(x, y), np.minimum),
    "not less than a number": (lambda x, y: T.max(x, 200), lambda x, y: np.maximum(x, x.dtype.type(200))),
    "less": (lambda x, y: T.if_then_else(x < y, x, y), lambda x, y: np.where(x < y, x, y)),
    "beyond": (lambda x, y: T.if_then_else(x > 150, x, y), lambda x, y: np.where(x > 150, x, y)),
    "equal": (lambda x, y: T.if_then_else(x == y, x, 1), lambda x, y: np.where(x == y, x, 1).astype(x.dtype)),
    "sum around the end": (lambda x, y: T.if_then_else(x + y <= y, T.max(x, y), x),
                           lambda x, y: np.where(x + y <= y, np.maximum(x, y), x)),
}


@pytest.mark.parametrize("what", UNSIGNED)
@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_elements_are_ordered_from_zero_and_not_point_by_point(kind: str, what: str) -> None:
    change, meaning = UNSIGNED[what]
    top = np.iinfo(kind).max
    a, b = (np.random.default_rng(seed).integers(0, top, (ROWS, COLUMNS), kind, endpoint=True) for seed in (0, 1))
    b[::5] = a[::5]
    made = kernel(kind, change)
    assert vectorised(made)
    np.testing.assert_array_equal(made(a, b), meaning(a, b))


@pytest.mark.parametrize(("rows", "columns"), [(8, 32), (64, 96)])
def test_halves_of_bytes_are_unpacked_by_their_place(rows: int, columns: int) -> None:
    """As kernels for GPUs have it: the shift is computed of the column, in the type of the bytes."""
    @tilelang.jit(out_idx=[-1], target="npuir", sanitize=True)
    def made():
        @T.prim_func
        def main(A: T.Tensor((rows, columns), "uint8"), C: T.Tensor((rows, 2 * columns), "float16")):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_shared((rows, columns), "uint8")
                c = T.alloc_shared((rows, 2 * columns), "float16")
                T.copy(A, a)
                for i, j in T.Parallel(rows, 2 * columns):
                    c[i, j] = T.cast((a[i, j // 2] >> (4 * (j % 2))) & 15, "float16")
                T.copy(c, C)

        return main

    a = np.random.default_rng(0).integers(0, 256, (rows, columns), np.uint8)
    kernel_ = made()
    assert "T.Parallel" in str(kernel_.explain())
    assert "point by point" not in str(kernel_.explain())
    np.testing.assert_array_equal(kernel_(a), np.stack([a & 15, a >> 4], -1).reshape(rows, 2 * columns))


def test_bits_of_a_bfloat16_become_a_float32() -> None:
    @tilelang.jit(out_idx=[-1], target="npuir", sanitize=True)
    def made():
        @T.prim_func
        def main(A: T.Tensor((ROWS, COLUMNS), "uint16"), C: T.Tensor((ROWS, COLUMNS), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_shared((ROWS, COLUMNS), "uint16")
                c = T.alloc_shared((ROWS, COLUMNS), "float32")
                T.copy(A, a)
                for i, j in T.Parallel(ROWS, COLUMNS):
                    c[i, j] = T.reinterpret("float32", T.cast(a[i, j], "uint32") << 16)
                T.copy(c, C)

        return main

    wanted = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(HALF)
    kernel_ = made()
    assert vectorised(kernel_)
    np.testing.assert_array_equal(kernel_(wanted.view(np.uint16)), wanted.astype(np.float32))


@pytest.mark.parametrize("by", [2, 8, 64])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_quotients_and_rests_of_data_by_powers_of_two_are_shifts(kind: str, by: int) -> None:
    """They round towards minus infinity, as in Python, for every number that there is."""
    info = np.iinfo(kind)
    a = np.random.default_rng(3).integers(info.min, info.max, (ROWS, COLUMNS), dtype=kind, endpoint=True)
    a[0, :2] = info.min, info.max
    for change, expected in ((lambda x, y: x // by, a // np.array(by, kind)), (lambda x, y: x % by, a % np.array(by, kind))):
        made = kernel(kind, change)
        assert vectorised(made)
        np.testing.assert_array_equal(made(a, a), expected)
