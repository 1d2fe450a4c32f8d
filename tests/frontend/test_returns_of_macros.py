"""``return`` in macros: before their end, in branches that are known when the kernel is compiled and in those that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

VALUES = np.arange(64, dtype=np.int32)


@T.macro
def scaled(value: Any, mode: str) -> Any:
    if mode == "none":
        return value
    factor = 3
    if mode == "double":
        factor = 2
        return value * factor
    return value * factor


@T.macro
def marked(tile: Any, number: Any, last: bool) -> None:
    if number == 0:
        return
    tile[0] = -1
    if number > 2:
        tile[1] = -2
        if last:
            return
    else:
        tile[2] = -3
        return
    tile[3] = -4


def built(body: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(4, threads=128) as bx:
            tile = T.alloc_shared((16,), "int32")
            T.copy(A[bx * 16], tile)
            body(tile, bx)
            T.copy(tile, B[bx * 16])

    return tilelang.compile(main, target="npu")


@pytest.mark.parametrize(("mode", "factor"), [("none", 1), ("double", 2), ("triple", 3)])
def test_values_by_conditions_that_are_known(mode: str, factor: int) -> None:
    @T.macro
    def body(tile, block):  # type: ignore[no-untyped-def]
        for i in T.serial(16):
            tile[i] = scaled(tile[i], mode)

    kernel = built(body)
    for run in (kernel, kernel.interpret):
        found = np.zeros_like(VALUES)
        run(VALUES, found)
        np.testing.assert_array_equal(found, VALUES * factor)


@pytest.mark.parametrize("last", [True, False])
def test_early_returns_by_conditions_of_a_run(last: bool) -> None:
    @T.macro
    def body(tile, block):  # type: ignore[no-untyped-def]
        marked(tile, block, last)

    expected = VALUES.reshape(4, 16).copy()
    expected[1:, 0] = -1
    expected[3, 1], expected[1:3, 2] = -2, -3
    if not last:
        expected[3, 3] = -4
    kernel = built(body)
    for run in (kernel, kernel.interpret):
        found = np.zeros_like(VALUES)
        run(VALUES, found)
        np.testing.assert_array_equal(found.reshape(4, 16), expected)


def test_a_value_under_a_condition_of_a_run_is_refused() -> None:
    @T.macro
    def pick(number):  # type: ignore[no-untyped-def]
        if number > 2:
            return 1
        return 2

    @T.macro
    def body(tile, block):  # type: ignore[no-untyped-def]
        tile[0] = pick(block)

    with pytest.raises(tilelang.TileError, match="a macro cannot return a value under a condition") as error:
        built(body)
    assert error.value.code == "T141"


def test_a_return_in_a_loop_is_refused() -> None:
    @T.macro
    def body(tile, block):  # type: ignore[no-untyped-def]
        for i in T.serial(16):
            if tile[i] > 3:
                return
            tile[i] = 0

    with pytest.raises(tilelang.TileError, match="a macro cannot return in a `for` block") as error:
        built(body)
    assert error.value.code == "T141"
