"""Arguments in the interpreter: arrays of another shape than declared, and arrays that are the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.checks.rounding_spread import copied

WIDTH = 16


@tilelang.jit(target="pto")
def doubled(rows: int, planes: int) -> Any:
    shape = (planes, rows, WIDTH) if planes else (rows, WIDTH)

    @T.prim_func
    def doubled(X: T.Tensor(shape, "float32"), Y: T.Tensor(shape, "float32"), n: T.int32) -> None:
        with T.Kernel(1, is_npu=True) as (_, vid):
            tile = T.alloc_ub((1, WIDTH), "float32")
            with T.Scope("V"):
                if vid == 0:
                    for i in T.serial(n):
                        if planes:
                            T.copy(X[0, i, 0], tile)
                        else:
                            T.copy(X[i, 0], tile)
                        T.barrier_all()
                        T.tile.add(tile, tile, tile)
                        T.barrier_all()
                        if planes:
                            T.copy(tile, Y[0, i, 0])
                        else:
                            T.copy(tile, Y[i, 0])
                        T.barrier_all()

    return doubled


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("planes", [0, 1, 3])
@pytest.mark.parametrize("given", [(3 * WIDTH,), (3, WIDTH), (1, 3, WIDTH), (6, WIDTH // 2)])
def test_an_array_with_fewer_rows_than_declared_is_indexed_as_declared(planes: int, given: tuple[int, ...]) -> None:
    if planes == 3:
        given = (6 * WIDTH,)  # rows are whole planes
    kernel, rows = doubled(6, planes), 3
    x = np.arange(np.prod(given), dtype=np.float32).reshape(given)
    compiled, interpreted = np.zeros_like(x), np.zeros_like(x)
    kernel(x, compiled, rows)
    kernel.interpret(x, interpreted, rows)
    wanted = np.zeros_like(x)
    wanted.reshape(-1)[:rows * WIDTH] = 2 * x.reshape(-1)[:rows * WIDTH]
    np.testing.assert_array_equal(compiled, wanted)
    np.testing.assert_array_equal(interpreted, wanted)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("given", [(6, WIDTH), (1, 6 * WIDTH), (3 * WIDTH,)])
def test_one_array_for_two_parameters_is_one_memory_in_the_comparison(
        monkeypatch: pytest.MonkeyPatch, given: tuple[int, ...]) -> None:
    kernel = doubled(6, 0)
    x = np.arange(np.prod(given), dtype=np.float32).reshape(given)
    wanted = 2 * x
    assert kernel.check(x, x, x.size // WIDTH)
    monkeypatch.setenv("TILELANG_NPU_AGAINST_INTERPRETER", "1")
    kernel(x, x, x.size // WIDTH)
    np.testing.assert_array_equal(x, wanted)


def test_arrays_that_are_one_memory_in_two_shapes_are_one_memory_in_copies() -> None:
    x = np.arange(12, dtype=np.float32)
    turned = np.asfortranarray(x.reshape(3, 4))
    flat, rows, bits, once, again, number = copied([x, x.reshape(3, 4), x.view(np.int32), turned, turned, np.float32(1)])
    flat[5] = 7
    assert isinstance(rows, np.ndarray) and isinstance(bits, np.ndarray)
    assert rows[1, 1] == 7 and bits[5] == np.float32(7).view(np.int32)
    assert once is again and number == 1 and x[5] == 5


def test_a_comparison_changes_no_tensor_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.ones((6, WIDTH)), torch.zeros((6, WIDTH))
    assert doubled(6, 0).check(x, y, 6)
    assert not y.any()
