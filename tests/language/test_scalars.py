"""Functions of scalars and symbolic dimensions on the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.traced.symbols import Sym


def test_python_numbers_are_computed_at_once() -> None:
    assert T.min(T.ceildiv(100, 64), 8).value == 2
    assert type(T.max(2, 3) + 1) is int
    assert T.ceildiv(1000, 128) == 8
    assert T.ceildiv(0, 4) == 0
    assert T.floordiv(-7, 2) == -4
    assert T.floormod(-7, 2) == 1
    assert T.truncdiv(-7, 2) == -3
    assert T.truncmod(-7, 2) == -1
    assert (T.min(3, 4), T.max(3, 4), T.abs(-3)) == (3, 4, 3)
    assert T.exp(0.0) == 1.0
    assert T.sigmoid(0.0) == 0.5
    assert T.rsqrt(4.0) == 0.5
    assert T.exp2(3) == 8.0
    assert T.if_then_else(True, 1, 2) == 1
    assert T.Select(False, 1, 2) == 2
    assert T.And(True, 1) is True
    assert T.Or(False, 0) is False
    assert T.Not(True) is False
    assert T.infinity("float16") == math.inf
    assert T.infinity("int8") == 127
    assert T.infinity("uint8") == 255
    assert T.cast(2.9, "int32") == 2
    assert T.Cast("float16", 0.1) == 0.0999755859375
    assert T.pow(2, 5) == 32


def test_wrong_calls_on_the_host() -> None:
    for use, message in ((lambda: T.min(1), "takes two scalars"), (lambda: T.exp(), "takes one scalar"),
                         (lambda: T.cast(1, "int3"), "unknown element type 'int3'")):
        with pytest.raises(TileError, match=message):
            use()


SIZES = st.integers(-50, 50)
OPERATIONS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": lambda a, b: a // b, "%": lambda a,
    b: a % b,
    "min": T.min, "max": T.max, "ceildiv": T.ceildiv,
}


@st.composite
def expressions(draw: Any, depth: int = 3) -> Any:
    """A function of M and N built from the operations, as a closure over both kinds of operand."""
    if depth == 0 or draw(st.booleans()):
        leaf = draw(st.one_of(st.sampled_from(["M", "N"]), SIZES))
        return lambda env: env[leaf] if isinstance(leaf, str) else leaf
    operation = OPERATIONS[draw(st.sampled_from(sorted(OPERATIONS)))]
    left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    return lambda env: operation(left(env), right(env))


@given(expressions(), st.integers(-20, 20), st.integers(-20, 20))
def test_an_expression_of_dimensions_evaluates_as_its_numbers_do(expression: Any, m: int, n: int) -> None:
    try:
        expected = expression({"M": m, "N": n})
    except ZeroDivisionError:
        return
    try:
        made = expression({"M": T.symbolic("M"), "N": T.symbolic("N")})
    except ZeroDivisionError:
        return
    value = made.evaluate({"M": m, "N": n}) if isinstance(made, Sym) else made
    assert value == expected


def test_text_and_equality_of_dimensions() -> None:
    M, N = T.dynamic("M N")
    assert str(T.ceildiv(M, 128) * (N - 1)) == "(M + 127) // 128 * (N + -1)" or str(T.ceildiv(M, 128) * (N - 1)) == (
        "(M + 127) // 128 * (N - 1)")
    assert str(T.min(M, 4) // (N + 1)) == "min(M, 4) // (N + 1)"
    assert str(M - (N - M)) == "M - (N - M)"
    assert M + 0 is M
    assert M * 1 is M
    assert M // 1 is M
    assert M * 0 == 0
    assert (M + 3) + 4 == M + 7
    assert (M + 3) - 3 is M
    assert T.symbolic("M") == M
    assert M != N
    assert M != 3
    assert len({M, T.symbolic("M"), N}) == 2
    assert (M + N).symbols() == ("M", "N")
    assert T.dynamic("K") == T.symbolic("K")
    assert np.int64(3) + M == 3 + M
    assert (-M).evaluate({"M": 4}) == -4
    with pytest.raises(KeyError, match="no value for the symbolic dimension 'N'"):
        (M + N).evaluate({"M": 1})


@pytest.mark.parametrize("use", [
    lambda M: bool(M), lambda M: int(M), lambda M: float(M), lambda M: list(range(M)), lambda M: M < 3, lambda M: M / 2,
])
def test_a_dimension_has_no_number_on_the_host(use: Any) -> None:
    with pytest.raises(TileError, match="the symbolic dimension M has no Python") as caught:
        use(T.symbolic("M"))
    assert caught.value.code == "T144"
    assert caught.value.location.file == __file__


def test_names_of_dimensions() -> None:
    with pytest.raises(TileError, match="takes an identifier as its name, not 'a b'"):
        T.symbolic("a b")


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int8", "int32"])
def test_elements_of_every_integer_type_are_read_and_written(dtype: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((8,), dtype), Y: T.Tensor((8,), dtype)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((32,), dtype)
            y = T.alloc_ub((8,), dtype)
            T.copy(X[0], x[0:8])
            for j in T.serial(4):
                y[2 * j] = x[2 * j + 1]
                y[2 * j + 1] = x[2 * j] - 1
            T.copy(y, Y)

    limits = np.iinfo(dtype)
    x = np.array([0, limits.max, limits.min, limits.max // 2, 1, limits.max - 1, 7, 100], dtype)
    y = np.zeros(8, dtype)
    tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})(x, y)
    np.testing.assert_array_equal(y[0::2], x[1::2])
    np.testing.assert_array_equal(y[1::2], x[0::2] - np.array(1, dtype))


def test_the_functions_of_fast_mathematics_are_those_of_the_plain_names() -> None:
    @tilelang.jit(out_idx=[-1])
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), B: T.Tensor((8, 64), "float32")) -> None:
            with T.Kernel(1, threads=128):
                a = T.alloc_fragment((64,), "float32")
                b = T.alloc_fragment((8, 64), "float32")
                T.copy(A, a)
                for j in T.Parallel(64):
                    b[0, j] = T.__exp(a[j])
                    b[1, j] = T.__exp10(a[j])
                    b[2, j] = T.__log(a[j])
                    b[3, j] = T.__log2(a[j])
                    b[4, j] = T.__log10(a[j])
                    b[5, j] = T.__sin(a[j])
                    b[6, j] = T.__cos(a[j])
                    b[7, j] = T.__tan(a[j])
                T.copy(b, B)

        return main

    a = np.random.default_rng(0).uniform(0.1, 1.5, 64).astype(np.float32)
    wanted = [np.exp(a), 10**a, np.log(a), np.log2(a), np.log10(a), np.sin(a), np.cos(a), np.tan(a)]
    np.testing.assert_allclose(factory()(a), wanted, rtol=2e-5, atol=2e-6)
    assert T.__log2 is T.log2


def test_a_value_can_be_evaluated_and_discarded() -> None:
    @tilelang.jit(out_idx=[-1])
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), n: T.int32, B: T.Tensor((64,), "float32")) -> None:
            with T.Kernel(1, threads=128):
                a = T.alloc_fragment((64,), "float32")
                T.evaluate(0)
                T.evaluate(T.max(n, 1) + T.align_up(n, 8))
                T.copy(A, a)
                T.copy(a, B)

        return main

    a = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(factory()(a, 3), a)
