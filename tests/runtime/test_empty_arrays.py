"""Arrays with a size of 0 as arguments and results: a call with them works, and reads and writes nothing of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def copied(rows: Any) -> Any:
    """Each block copies 8 rows."""

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        with T.Kernel(T.ceildiv(rows, 8), is_npu=True) as (cid, _):
            x = T.alloc_ub((8, 64), "float32")
            T.copy(A[cid * 8, 0], x)
            T.copy(x, B[cid * 8, 0])

    return main


def shifted(size: Any) -> Any:
    """Adds the first element of E to all of A where there is one."""
    reads = size is not None
    size = size if reads else 0

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), E: T.Tensor((size,), "float32"), B: T.Tensor((16, 64), "float32"), n: T.int32):
        with T.Kernel(2, is_npu=True) as (cid, _):
            x = T.alloc_ub((8, 64), "float32")
            e = T.alloc_ub((1,), "float32")
            T.copy(A[cid * 8, 0], x)
            if reads and n > 0:
                T.copy(E[0:1], e)
                T.vadd(x, e[0], x)
            T.copy(x, B[cid * 8, 0])

    return main


def summed() -> Any:
    """The sum of the rows of A."""
    rows = T.symbolic("rows")

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((1, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((1, 64), "float32")
            total = T.alloc_ub((1, 64), "float32")
            T.fill(total, 0.0)
            for row in T.serial(rows):
                T.copy(A[row, 0], x)
                T.vadd(total, x, total)
            T.copy(total, B)

    return main


def part(rows: Any) -> Any:
    """One block copies all rows in one slice."""

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((8, 64), "float32")
            T.copy(A[0:rows, 0:64], x[0:rows, 0:64])
            T.copy(x[0:rows, 0:64], B[0:rows, 0:64])

    return main


def product() -> Any:
    rows, inner = T.symbolic("rows"), T.symbolic("inner")

    @T.prim_func
    def main(A: T.Tensor((rows, inner), "float16"), B: T.Tensor((inner, 64), "float16"), C: T.Tensor((rows, 64), "float32")):
        with T.Kernel(T.ceildiv(rows, 32), is_npu=True) as (cid, _):
            a = T.alloc_L1((32, 32), "float16")
            b = T.alloc_L1((32, 64), "float16")
            c = T.alloc_L0C((32, 64), "float32")
            for k in T.serial(T.ceildiv(inner, 32)):
                T.copy(A[cid * 32, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c, initC=k == 0)
            T.copy(c, C[cid * 32, 0])

    return main


def both(kernel: Any) -> tuple[Any, Any]:
    """Executes the compiled kernel and the interpreted one."""
    return kernel, kernel.interpret


@pytest.mark.parametrize("rows", ["symbolic", "constant"])
def test_results_without_elements_are_allocated(rows: str) -> None:
    kernel = tilelang.compile(copied(0 if rows == "constant" else T.symbolic("rows")), out_idx=[1], target="npuir")
    for execute in both(kernel):
        assert execute(zeros(0, 64)).shape == (0, 64)
    if rows == "symbolic":
        np.testing.assert_array_equal(kernel(zeros(9, 64) + 2), zeros(9, 64) + 2)  # the same kernel, with rows


def test_torch_tensors_without_elements() -> None:
    torch = pytest.importorskip("torch")
    kernel = tilelang.compile(copied(T.symbolic("rows")), out_idx=[1], target="npuir")
    made = kernel(torch.zeros(0, 64))
    assert isinstance(made, torch.Tensor)
    assert made.shape == (0, 64)


def test_a_slice_of_no_constant_rows_is_an_error() -> None:
    with pytest.raises(TileError) as caught:
        tilelang.compile(part(0), target="npuir")
    assert caught.value.location is not None
    assert caught.value.location.source().strip() == "T.copy(A[0:rows, 0:64], x[0:rows, 0:64])"


@pytest.mark.parametrize(("make", "rows"), [(copied, "symbolic"), (copied, "constant"), (part, "symbolic")])
def test_arguments_without_elements(make: Any, rows: str) -> None:
    kernel = tilelang.compile(make(0 if rows == "constant" else T.symbolic("rows")), target="npuir")
    for execute in both(kernel):
        assert execute(zeros(0, 64), zeros(0, 64)) is None


@pytest.mark.parametrize("size", ["symbolic", "constant"])
def test_an_optional_argument_without_elements(size: str) -> None:
    kernel = tilelang.compile(shifted(None if size == "constant" else T.symbolic("size")), target="npuir")
    for execute in both(kernel):
        a, b = np.arange(16 * 64, dtype=np.float32).reshape(16, 64), zeros(16, 64)
        execute(a, zeros(0), b, 0)
        np.testing.assert_array_equal(b, a)


def test_a_loop_over_no_rows() -> None:
    kernel = tilelang.compile(summed(), target="npuir")
    for execute in both(kernel):
        b = zeros(1, 64) + 3
        execute(zeros(0, 64), b)
        np.testing.assert_array_equal(b, zeros(1, 64))


def test_products_of_no_rows() -> None:
    kernel = tilelang.compile(product(), target="npuir")
    for execute in both(kernel):
        execute(np.zeros((0, 64), np.float16), np.zeros((64, 64), np.float16), zeros(0, 64))


def test_a_sanitized_call_without_elements() -> None:
    kernel = tilelang.compile(summed(), target="npuir", sanitize=True)
    b = zeros(1, 64) + 3
    kernel(zeros(0, 64), b)
    np.testing.assert_array_equal(b, zeros(1, 64))


def test_a_call_that_launches_nothing_has_no_times() -> None:
    kernel = tilelang.compile(copied(T.symbolic("rows")), target="npuir")
    kernel(zeros(8, 64), zeros(8, 64))
    assert kernel.last_launch is not None
    kernel(zeros(0, 64), zeros(0, 64))
    assert kernel.last_launch is None
    with pytest.raises(TileError, match="main launches no block: its arrays have no elements") as caught:
        kernel.profile(zeros(0, 64), zeros(0, 64))
    assert caught.value.code == "T406"


def test_a_grid_of_no_blocks_is_an_error_where_all_arrays_have_elements() -> None:
    rows = T.symbolic("rows")

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        with T.Kernel(rows // 8, is_npu=True) as (cid, _):
            x = T.alloc_ub((8, 64), "float32")
            T.copy(A[cid * 8, 0], x)
            T.copy(x, B[cid * 8, 0])

    kernel = tilelang.compile(main, target="npuir")
    for execute in both(kernel):
        with pytest.raises(TileError) as caught:
            execute(zeros(4, 64), zeros(4, 64))
        assert caught.value.code == "T406"


def test_shapes_of_empty_arrays_are_checked() -> None:
    kernel = tilelang.compile(copied(T.symbolic("rows")), target="npuir")
    with pytest.raises(TileError, match="rows is 0 according to dimension 0 of A, and 8") as caught:
        kernel(zeros(0, 64), zeros(8, 64))
    assert caught.value.code == "T403"
