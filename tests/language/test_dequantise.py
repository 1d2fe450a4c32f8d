"""``T.set_deq_scale``: conversions from int32 to float16 with a factor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang

SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
KERNEL = """
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((6, 32), "int32"), B: T.Tensor((6, 32), "float16"), s: T.float32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((6, 32), "int32")
            b = T.alloc_ub((6, 32), "float16")
            if vid == 0:
                T.copy(A, a)
                {statements}
                T.copy(b, B)
"""


def made(source: Any, a: np.ndarray, statements: str, s: float = 0.0) -> np.ndarray:
    module = source(KERNEL.replace("{statements}", statements.replace("\n", "\n                ")))
    result = tilelang.compile(module.main, out_idx=[1], target="ascendc", pass_configs=SYNC)(a, s)
    assert isinstance(result, np.ndarray)
    return result


def numbers(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-70000, 70000, (6, 32), np.int32)


@pytest.mark.parametrize("convert", ["T.tile.cast(b, a, 'CAST_RINT', 192)", "T.copy(a, b)"])
@pytest.mark.parametrize(("scale", "kept"), [("0.25", 0.25), ("0.1", float(np.float16(0.1))), ("s", float(np.float16(0.3))),
                                             ("1", 1.0)])
def test_conversions_are_scaled(source: Any, rng: np.random.Generator, convert: str, scale: str, kept: float) -> None:
    a = numbers(rng) // (1 if kept < 1 else 2)
    expected = (a.astype(np.float32) * np.float32(kept)).astype(np.float16)
    np.testing.assert_array_equal(made(source, a, f"T.set_deq_scale({scale})\n{convert}", 0.3), expected)


@pytest.mark.parametrize(("mode", "rounded"), [("CAST_FLOOR", np.floor), ("CAST_CEIL", np.ceil), ("CAST_TRUNC", np.trunc)])
def test_the_result_is_rounded_once_by_the_mode(source: Any, rng: np.random.Generator, mode: str, rounded: Any) -> None:
    a = rng.integers(2049, 4096, (6, 32), np.int32)  # float16 has the even ones here
    expected = (2 * rounded(a / 2)).astype(np.float16) / 2
    np.testing.assert_array_equal(made(source, a, f"T.set_deq_scale(0.5)\nT.tile.cast(b, a, '{mode}', 192)"), expected)


def test_the_last_factor_counts_and_holds_in_loops(source: Any, rng: np.random.Generator) -> None:
    a = numbers(rng) // 2
    found = made(source, a, "T.tile.cast(b, a, 'CAST_RINT', 192)\nT.set_deq_scale(4)\nT.set_deq_scale(0.5)\n"
                            "for i in T.serial(6):\n    if i > 1:\n        T.copy(a[i, :], b[i, :])")
    expected = a.astype(np.float16)
    expected[2:] = (a[2:] / 2).astype(np.float16)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("statements", "at", "problem"), [
    ("for i in T.serial(2):\n    T.set_deq_scale(2)\nT.copy(a, b)", "T.copy(a, b)", "a loop or branch that has ended"),
    ("for i in T.serial(2):\n    T.copy(a[i, :], b[i, :])\n    T.set_deq_scale(2)", "T.set_deq_scale(2)", "in the same loop"),
])
def test_a_factor_that_depends_on_the_way_taken_is_refused(source: Any, rng: np.random.Generator, refused: Any, statements: str,
                                                           at: str, problem: str) -> None:
    if "in the same loop" in problem:
        statements = "T.set_deq_scale(3)\n" + statements
    with refused("T190", at=at, message=problem):
        made(source, numbers(rng), statements)


def test_the_factor_is_a_number(source: Any, rng: np.random.Generator, refused: Any) -> None:
    with refused("T141", at="T.set_deq_scale(a)", message="is not a scalar"):
        made(source, numbers(rng), "T.set_deq_scale(a)")
