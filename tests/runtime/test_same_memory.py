"""One array for several parameters works like one tensor; arrays that overlap in part are an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.arguments.aliasing import aliased_parameters

ROWS, COLUMNS = 9, 72


def first_row_again(dtype: str = "float32", rows: Any = ROWS) -> Any:
    """Each row of Y is the first row of X plus that of W: if X is Y, the first store changes the later loads."""
    @T.prim_func
    def main(X: T.Tensor((rows, COLUMNS), dtype), W: T.Tensor((1, COLUMNS), dtype), Y: T.Tensor((rows, COLUMNS), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((1, COLUMNS), dtype)
            w = T.alloc_shared((1, COLUMNS), dtype)
            for i in T.serial(rows):
                T.copy(X[0, 0], x)
                T.copy(W, w)
                T.vadd(x, w, w)
                T.copy(w, Y[i, 0])

    return main


def whole(dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 9, (ROWS, COLUMNS)).astype(dtype), rng.integers(1, 9, (1, COLUMNS)).astype(dtype)


@pytest.mark.parametrize("rows", [ROWS, "symbolic"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_a_load_does_not_pass_a_store_to_its_array(dtype: str, rows: Any) -> None:
    rows = T.symbolic("n") if rows == "symbolic" else rows
    kernel = tilelang.compile(first_row_again(dtype, rows), target="npuir", sanitize=True)
    x, w = whole(dtype)
    apart = np.zeros_like(x)
    kernel(x, w, apart)
    np.testing.assert_array_equal(apart, np.broadcast_to(x[:1] + w, x.shape))
    together = x.copy()
    kernel(together, w, together)
    expected = x.copy()
    for i in range(ROWS):
        expected[i] = expected[0] + w[0]
    np.testing.assert_array_equal(together, expected)
    assert (expected != apart).any()


def test_what_ran_can_be_seen() -> None:
    kernel = tilelang.compile(first_row_again(), target="npuir")
    x, w = whole("float32")
    kernel(x, w, np.zeros_like(x))
    cycles = kernel.last_launch.cycles
    ran = kernel.for_arguments(x, w, x)
    assert kernel.for_arguments(x, w, x.copy()) is kernel
    assert ran is not kernel and ran is kernel.for_arguments(x, w, x)
    kernel(x, w, x)
    assert kernel.last_launch is ran.last_launch and kernel.last_launch.cycles > cycles
    assert ran.explain().sections["arguments"] == ("Y is X: one array is passed for both",)
    assert "arguments" not in kernel.explain().sections
    assert kernel.trace(x, w, x).cycles == ran.last_launch.cycles
    assert ran.mlir() != kernel.mlir()


def test_each_row_in_place_costs_nothing() -> None:
    """Rows that each iteration has for itself need no wait, in one array as in two."""
    @T.prim_func
    def main(X: T.Tensor((64, 256), "float32"), Y: T.Tensor((64, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 256), "float32")
            for i in T.Pipelined(8, num_stages=2):
                T.copy(X[i * 8, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[i * 8, 0])

    kernel = tilelang.compile(main, target="npuir", sanitize=True)
    x = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)
    y = np.zeros_like(x)
    kernel(x, y)
    cycles = kernel.last_launch.cycles
    kernel(x, x)
    np.testing.assert_array_equal(x, y)
    assert kernel.last_launch.cycles == cycles


def test_between_the_cores() -> None:
    """The Cube core stores to one parameter, the Vector core loads another: they are synchronised if both are one array."""
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), S: T.Tensor((4, 64, 64), "float32"), R: T.Tensor((4, 64, 64), "float32"),
             Y: T.Tensor((4, 64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            x = T.alloc_ub((32, 64), "float32")
            for i in T.serial(4):
                T.copy(A, a)
                T.gemm(a, a, c, initC=True)
                T.copy(c, S[i, 0, 0])
                for j in T.serial(2):
                    T.copy(R[i, j * 32, 0], x)
                    T.vadd(x, x, x)
                    T.copy(x, Y[i, j * 32, 0])

    a = np.random.default_rng(0).integers(0, 4, (64, 64)).astype(np.float16)
    product = np.broadcast_to(a.astype(np.float32) @ a.astype(np.float32), (4, 64, 64))
    kernel = tilelang.compile(main, target="npuir", sanitize=True)
    s, y = np.ones((4, 64, 64), np.float32), np.zeros((4, 64, 64), np.float32)
    kernel(a, s, s, y)
    np.testing.assert_array_equal(s, product)
    np.testing.assert_array_equal(y, 2 * product)
    kernel(a, s, s, s)  # all three
    np.testing.assert_array_equal(s, 2 * product)
    assert kernel.for_arguments(a, s, s, s).explain().sections["arguments"] == (
        "R is S: one array is passed for both", "Y is S: one array is passed for both")


def test_torch_tensors_and_results_that_the_caller_passes() -> None:
    torch = pytest.importorskip("torch", reason="torch is an optional package; its tests need it")
    kernel = tilelang.compile(first_row_again(), target="npuir", out_idx=[2])
    x, w = whole("float32")
    expected = x.copy()
    for i in range(ROWS):
        expected[i] = expected[0] + w[0]
    given = torch.from_numpy(x.copy())
    result = kernel(given, torch.from_numpy(w), given)
    assert result.data_ptr() == given.data_ptr()
    np.testing.assert_array_equal(given.numpy(), expected)


def test_arrays_that_are_longer_than_declared() -> None:
    kernel = tilelang.compile(first_row_again(), target="npuir")
    _, w = whole("float32")
    x = np.ones((ROWS + 3, COLUMNS), np.float32)
    with pytest.warns(tilelang.TileWarning, match="T411"):
        kernel(x, w, x)
    np.testing.assert_array_equal(x[0], 1 + w[0])
    np.testing.assert_array_equal(x[1:ROWS], np.broadcast_to(1 + 2 * w, (ROWS - 1, COLUMNS)))
    assert (x[ROWS:] == 1).all()


def test_a_part_of_the_memory_is_refused() -> None:
    kernel = tilelang.compile(first_row_again(), target="npuir")
    memory = np.ones((ROWS + 1, COLUMNS), np.float32)
    _, w = whole("float32")
    for x, y in ((memory[:ROWS], memory[1:]), (memory[1:], memory[:ROWS])):
        with pytest.raises(TileError, match=rf"X and Y share {(ROWS - 1) * COLUMNS * 4} bytes") as caught:
            kernel(x, w, y)
        assert caught.value.code == "T420"
        assert caught.value.location is not None and caught.value.location.file == __file__
    with pytest.raises(TileError, match="W and Y share"):
        kernel(memory[1:].copy(), memory[3:4], memory[:ROWS])
    assert (memory == 1).all()
    kernel(memory[:ROWS], memory[2:3], np.zeros((ROWS, COLUMNS), np.float32))  # arrays that are only read may overlap
    kernel(memory[4:5].repeat(ROWS, 0), memory[:1], memory[1:])  # side by side


def test_where_the_author_orders_all_it_runs_as_written() -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((8, 64), "float32")
            T.copy(X, x)
            T.barrier_all()
            T.copy(x, Y)

    kernel = tilelang.compile(main, target="ascendc")
    memory = np.arange(9 * 64, dtype=np.float32).reshape(9, 64)
    expected = memory[:8].copy()
    kernel(memory[:8], memory[1:])
    np.testing.assert_array_equal(memory[1:], expected)
    assert kernel.for_arguments(memory[:8], memory[:8]) is kernel


def test_which_are_the_same() -> None:
    kernel = tilelang.compile(first_row_again(), target="npuir")
    x, w = whole("float32")
    assert aliased_parameters(kernel.params, [x, w, x], [0, 1, 2], [2]) == {2: 0}
    assert aliased_parameters(kernel.params, [x, w, x], [0, 1, 2], [0]) == {2: 0}
    assert aliased_parameters(kernel.params, [x, w, x], [0, 1, 2], [1]) == {}
    assert aliased_parameters(kernel.params, [x, w, x], [1, 2], [2]) == {}
    assert aliased_parameters(kernel.params, [x, np.float32(1), x], [0, 1, 2], [2]) == {2: 0}
    for other in (x.view(np.int32), x.reshape(-1), x[:4], x[1:]):
        with pytest.raises(TileError, match="T420"):
            aliased_parameters(kernel.params, [x, w, other], [0, 1, 2], [2])
