"""``T.set_atomic``: copies that combine with a global tensor, compared with NumPy, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

COMBINE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"add": np.add, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("kind", list(COMBINE))
@pytest.mark.parametrize("element", ["float32", "int16"])
def test_copies_from_ub_combine_until_the_mode_ends(kind: str, element: str, rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 64), element), C: T.Tensor((64,), element), D: T.Tensor((4, 64), element)):
        with T.Kernel(4, is_npu=True) as (cid, _):
            a = T.alloc_ub((64,), element)
            T.copy(A[cid, :], a)
            T.set_atomic(kind, element)
            for _ in T.serial(2):
                T.copy(a, C)
            T.set_atomic_none(element)
            T.copy(a, D[cid, :])

    a, c = rng.integers(-50, 50, (4, 64)).astype(element), rng.integers(-50, 50, 64).astype(element)
    wanted = c
    for row in np.repeat(a, 2, axis=0):
        wanted = COMBINE[kind](wanted, row)
    kernel = tilelang.compile(main, target="npuir", sanitize=True)
    for execute in (kernel, kernel.interpret):
        found, copied = c.copy(), np.zeros_like(a)
        execute(a, found, copied)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(copied, a)
    assert f"atomic = <{kind}>" in kernel.mlir("hivm")


@pytest.mark.parametrize("kind", ["add", "max"])
def test_products_combine(kind: str, rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 16, 32), "float16"), B: T.Tensor((32, 16), "float16"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a, b = T.alloc_L1((16, 32), "float16"), T.alloc_L1((32, 16), "float16")
            c = T.alloc_L0C((16, 16), "float32")
            T.copy(A[cid, :, :], a)
            T.copy(B, b)
            T.gemm_v0(a, b, c, init=True)
            T.set_atomic(kind)
            T.copy(c, C)
            T.set_atomic("none")

    a, b = rng.integers(-4, 5, (2, 16, 32)).astype(np.float16), rng.integers(-4, 5, (32, 16)).astype(np.float16)
    wanted = np.zeros((16, 16), np.float32)
    for left in a:
        wanted = COMBINE[kind](wanted, left.astype(np.float32) @ b.astype(np.float32))
    kernel = tilelang.compile(main, target="ascendc")
    for execute in (kernel, kernel.interpret):
        found = np.zeros((16, 16), np.float32)
        execute(a, b, found)
        np.testing.assert_array_equal(found, wanted)


def in_a_loop(a: Any, C: Any) -> None:
    for _ in T.serial(2):
        T.copy(a, C)
        T.set_atomic_add()


def after_a_loop(a: Any, C: Any) -> None:
    for _ in T.serial(2):
        T.set_atomic_add()
    T.copy(a, C)


def reset_in_a_loop(a: Any, C: Any) -> None:
    T.set_atomic_add()
    for _ in T.serial(2):
        T.copy(a, C)
        T.set_atomic_none()


def of_another_type(a: Any, C: Any) -> None:
    T.set_atomic_add("float16")
    T.copy(a, C)


def of_another_kind(a: Any, C: Any) -> None:
    T.set_atomic("max")
    T.atomic_add(C, a)


@pytest.mark.parametrize(("statements", "code", "words"), [
    (in_a_loop, "T190", "still set at the end of the loop"),
    (after_a_loop, "T190", "in a loop or branch that has ended"),
    (reset_in_a_loop, "T190", "in another loop or branch"),
    (of_another_type, "T110", "writes float32, and the atomic mode is add of float16"),
    (of_another_kind, "T190", "in the atomic mode max"),
    (lambda a, C: T.set_atomic("xor"), "T145", "no atomic mode 'xor'"),
    (lambda a, C: T.set_atomic("add", "uint32"), "T110", "no atomic addition of uint32"),
])
def test_errors(statements: Callable[[Any, Any], None], code: str, words: str) -> None:
    inlined = T.macro(statements) if statements.__name__ != "<lambda>" else statements

    @T.prim_func
    def main(C: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_ub((64,), "float32")
            T.fill(a, 1)
            inlined(a, C)

    with pytest.raises(tilelang.TileError, match=words) as error:
        tilelang.compile(main, target="npuir")
    assert error.value.code == code
