"""The contracts of operations: operands are checked when the kernel is traced, and results are as documented."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T
from reproducers.kernels import AUTO, compiled, holds, refused

RNG = np.random.default_rng(0)


def compared(first: int, second: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((first,), "float32"), B: T.Tensor((second,), "float32"), C: T.Tensor((first,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b = T.alloc_ub((first,), "float32"), T.alloc_ub((second,), "float32")
            bits = T.alloc_ub((first // 8,), "uint8")
            T.copy(A, a)
            T.copy(B, b)
            T.tile.compare(bits, a, b, "LT")
            T.tile.select(a, bits, a, 0.0, "VSEL_TENSOR_SCALAR_MODE")
            T.copy(a, C)

    return main


def test_a_comparison_does_not_read_past_its_second_operand() -> None:
    a, b = RNG.standard_normal((2, 256)).astype(np.float32)
    holds(compiled(compared(256, 256), AUTO), [a, b, np.zeros_like(a)], [np.where(a < b, a, 0)])
    error = refused(compared(256, 128), AUTO)
    assert error.code == "T111" and "256" in str(error) and "128" in str(error)


def test_a_single_number_fills_the_whole_tile() -> None:
    @T.prim_func
    def main(A: T.Tensor((1,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b = T.alloc_ub((1,), "float32"), T.alloc_ub((64,), "float32")
            T.copy(A, a)
            T.tile.broadcast(b, a)
            T.copy(b, B)

    a = RNG.random(1).astype(np.float32)
    holds(compiled(main, AUTO), [a, np.zeros(64, np.float32)], [np.full(64, a[0])])


def one(statement: Any, dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((16, 24), dtype), B: T.Tensor((16, 24), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b = T.alloc_ub((16, 24), dtype), T.alloc_ub((16, 24), dtype)
            T.copy(A, a)
            T.tile.fill(b, 1)
            statement(a, b)
            T.copy(a, B)

    return main


@T.macro
def silu(a: Any, b: Any) -> None:
    T.tile.silu(a, a)


@T.macro
def shifted(a: Any, b: Any) -> None:
    T.tile.bitwise_rshift(a, a, 1)


@T.macro
def both_bits(a: Any, b: Any) -> None:
    T.tile.bitwise_and(a, a, b)


@T.macro
def not_bits(a: Any, b: Any) -> None:
    T.tile.bitwise_not(a, a)


def test_in_place() -> None:
    a = RNG.standard_normal((16, 24)).astype(np.float32)
    holds(compiled(one(silu, "float32"), AUTO), [a, np.zeros_like(a)], [a / (1 + np.exp(-a))], rtol=1e-5)


@pytest.mark.parametrize(("statement", "dtype", "meaning"), [
    (both_bits, "int16", lambda a: a & 1), (not_bits, "int16", lambda a: ~a), (shifted, "int32", lambda a: a >> 1),
    (shifted, "int64", lambda a: a >> 1), (shifted, "float32", None), (silu, "int32", None)])
def test_element_types(statement: Any, dtype: str, meaning: Any) -> None:
    a = RNG.integers(-999, 999, (16, 24)).astype(dtype)
    if meaning is None:
        error = refused(one(statement, dtype), AUTO)
        assert error.code == "T110" and dtype in str(error)
    else:
        holds(compiled(one(statement, dtype), AUTO), [a, np.zeros_like(a)], [meaning(a)])


def test_operands_that_look_alike_are_named_with_their_sizes() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b, c = T.alloc_ub((16, 64), "float32"), T.alloc_ub((64, 8), "float32"), T.alloc_ub((16, 64), "float32")
            T.copy(A, a)
            T.tile.fill(b, 1.0)
            T.tile.mul(c, a, b)
            T.copy(c, B)

    error = refused(main, AUTO)
    assert error.code == "T111" and "[16, 64]" in str(error) and "[64, 8]" in str(error), str(error)
    assert error.location is not None and "T.tile.mul" in error.location.source()


def test_no_sum_in_global_memory() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            T.tile.atomic_add(B, A)

    error = refused(main, AUTO)
    assert error.code == "T132" and error.location is not None and "T.tile.atomic_add(B, A)" in error.location.source()
    assert "^" in str(error)
