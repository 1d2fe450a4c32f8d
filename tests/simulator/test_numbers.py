"""The first line that produces a NaN or an infinity, and the precision loss of conversions and sums, with the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.op_records import Access, Nothing, OpRecord
from tilelang_npu.simulator.sanitizer.numerics import NumberFinding, Numbers

SIZE = 64


def watched(kernel: Any, *args: Any) -> list[NumberFinding]:
    """Returns the findings of a run, and checks that results and times are those of a run without observation."""
    before = [argument.copy() for argument in args]
    kernel(*args)
    launch, results = kernel.last_launch, [argument.tobytes() for argument in args]
    observer = Numbers()
    recorded = kernel.program.run(before, blocks=launch.blocks, observer=observer)
    assert [argument.tobytes() for argument in before] == results
    assert [one.streams for one in recorded.blocks] == [one.streams for one in launch.recorded.blocks]
    return observer.findings


def unary(dtype: str, result: str, body: Callable[[Any, Any], None]) -> Any:
    @tilelang.jit(target="npuir")
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((2 * SIZE,), dtype), B: T.Tensor((2 * SIZE,), result)):
            with T.Kernel(2, is_npu=True) as (block, _):
                a = T.alloc_shared((SIZE,), dtype)
                b = T.alloc_shared((SIZE,), result)
                T.copy(A[block * SIZE], a)
                body(a, b)
                T.copy(b, B[block * SIZE])

        return main

    return made()


@T.macro
def root(a: Any, b: Any) -> None:
    T.vsqrt(a, b)


@T.macro
def root_twice(a: Any, b: Any) -> None:
    T.vsqrt(a, b)
    T.vadd(b, 1.0, b)
    T.vexp(b, b)


@T.macro
def exponential(a: Any, b: Any) -> None:
    T.vexp(a, b)


@T.macro
def to_half(a: Any, b: Any) -> None:
    T.vcast(a, b, round_mode="rint")


def only(findings: list[NumberFinding]) -> NumberFinding:
    (found,) = findings
    return found


def test_a_nan_is_reported_at_the_line_that_produces_it_only() -> None:
    a = np.ones(2 * SIZE, np.float32)
    a[SIZE + 3], a[SIZE + 5] = -4, -1
    found = only(watched(unary("float32", "float32", root_twice), a, np.zeros_like(a)))
    assert (found.code, found.op, found.block, found.index, found.elements, found.of) == (
        "S401", "hivm.hir.vsqrt", 1, (3,), 2, SIZE)
    assert found.location is not None
    assert found.location.source().strip() == "T.vsqrt(a, b)"
    assert (found.buffer, found.detail) == ("b", "src0 = -4.0 gives nan")
    text = str(found)
    assert text.startswith("numbers[S401]: an op makes NaN from operands that are no NaN: 2 of 64 elements of b\n")
    assert "T.vsqrt(a, b)" in text
    assert text.endswith("first at [3] in block 1, AIV0: src0 = -4.0 gives nan")


def test_a_nan_that_came_in_is_not_born() -> None:
    a = np.full(2 * SIZE, np.nan, np.float32)
    assert watched(unary("float32", "float32", root_twice), a, np.zeros_like(a)) == []


@pytest.mark.filterwarnings("ignore:stale")
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("infinite", [True, False])
def test_a_nan_of_a_product_with_uninitialised_rows_is_not_born(transposed: bool, infinite: bool) -> None:
    """Of the matrix B, 60 of 64 rows are loaded; the others are columns of the result, or terms of all its elements."""
    m, k, n = (16, 128, 64) if transposed else (16, 64, 128)

    @tilelang.jit(target="npuir")
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((m, n), "float32")):
            with T.Kernel(1, is_npu=True) as (block, _):
                a = T.alloc_shared((m, k), "float16")
                b = T.alloc_shared((64, 128), "float16")
                c = T.alloc_fragment((m, n), "float32")
                T.copy(A, a)
                T.copy(B[0:60, :], b)
                T.gemm(a, b, c, initC=True, b_transpose=transposed)
                T.copy(c, C)

        return main

    a, b = np.ones((m, k), np.float16), np.zeros((64, 128), np.float16)
    if infinite:
        a[3, 5] = np.inf  # times 0
    found = watched(made(), a, b, np.zeros((m, n), np.float32))
    assert [(one.code, one.elements) for one in found if one.code == "S401"] == [("S401", 60)] * (infinite and transposed)


@pytest.mark.filterwarnings("ignore:stale")
@pytest.mark.parametrize(("value", "found"), [(4.0, 0), (-4.0, 1)])
def test_a_nan_beside_uninitialised_elements(value: float, found: int) -> None:
    @tilelang.jit(target="npuir")
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((8, 48), "float16"), B: T.Tensor((8, 64), "float16"), S: T.Tensor((8, 1), "float16")):
            with T.Kernel(1, is_npu=True) as (block, _):
                a = T.alloc_shared((8, 64), "float16")
                s = T.alloc_shared((8, 1), "float16")
                T.copy(A, a[:, 0:48])
                T.vsqrt(a, a)
                T.reduce_sum(a, s, dim=1)
                T.copy(a, B)
                T.copy(s, S)

        return main

    a = np.ones((8, 48), np.float16)
    a[3, 5] = value
    findings = watched(made(), a, np.zeros((8, 64), np.float16), np.zeros((8, 1), np.float16))
    assert [(one.code, one.op, one.elements) for one in findings] == [("S401", "hivm.hir.vsqrt", 1)] * found


def test_for_an_operation_in_place_the_old_numbers_are_reported() -> None:
    @T.macro
    def divided(a: Any, b: Any) -> None:
        T.vmul(a, 0.0, b)
        T.vdiv(b, b, b)

    a = np.ones(2 * SIZE, np.float32)
    found = only(watched(unary("float32", "float32", divided), a, np.zeros_like(a)))
    assert (found.code, found.elements, found.detail) == ("S401", 2 * SIZE, "src0 = 0.0, src1 = 0.0 gives nan")


@pytest.mark.parametrize(("dtype", "body", "value"), [("float32", exponential, 100.0), ("float16", exponential, 12.0)])
def test_an_overflow(dtype: str, body: Callable[[Any, Any], None], value: float) -> None:
    a = np.zeros(2 * SIZE, dtype)
    a[7] = value
    found = only(watched(unary(dtype, dtype, body), a, np.zeros_like(a)))
    assert (found.code, found.index, found.elements, found.detail) == ("S402", (7,), 1, f"src0 = {value} gives inf")


def test_an_infinity_that_is_given_or_filled_in_is_none() -> None:
    @T.macro
    def masked(a: Any, b: Any) -> None:
        T.vbrc(-float("inf"), b)
        T.vmax(a, b, b)

    a = np.zeros(2 * SIZE, np.float32)
    a[1] = np.inf
    assert watched(unary("float32", "float32", masked), a, np.zeros_like(a)) == []


@pytest.mark.parametrize(("source", "result", "value", "code", "lost"), [
    ("float32", "float16", 1e5, "S402", True), ("float32", "float16", 1e-9, "S403", True),
    ("float32", "float16", 1 / 3, "", False), ("float32", "bfloat16", 1e-9, "", False),
    ("int32", "float32", 2**24 + 1, "S403", True), ("int32", "float32", 2**24, "", False),
    ("float32", "int32", 3e9, "S403", True), ("float32", "int32", 2.5, "", False),
    ("float32", "int16", 32769, "S403", True), ("float32", "int16", 32766.5, "", False),
])
def test_what_a_conversion_loses(source: str, result: str, value: float, code: str, lost: bool) -> None:
    from tilelang_npu.target.dtypes import DType

    a, b = np.zeros(2 * SIZE, source), np.zeros(2 * SIZE, DType(result).numpy)
    a[70] = value
    found = watched(unary(source, result, to_half), a, b)
    assert [(one.code, one.block, one.index, one.elements) for one in found] == ([(code, 1, (6,), 1)] if lost else [])


def test_a_comparison_loses_nothing() -> None:
    """The compiler computes the number whose sign decides, and converts it to a truth value."""

    @tilelang.jit(target="npuir")
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((2 * SIZE,), "float32"), N: T.Tensor((1,), "int32"), B: T.Tensor((2 * SIZE,), "float32")):
            with T.Kernel(2, is_npu=True) as (block, _):
                a = T.alloc_shared((SIZE,), "float32")
                count = N[0]
                T.copy(A[block * SIZE], a)
                for i in T.Parallel(SIZE):
                    a[i] = T.if_then_else(block * SIZE + i < count, a[i], 0.0)
                T.copy(a, B[block * SIZE])

        return main

    kernel, b = made(), np.zeros(2 * SIZE, np.float32)
    assert watched(kernel, np.ones(2 * SIZE, np.float32), np.array([70], np.int32), b) == []
    np.testing.assert_array_equal(b, np.arange(2 * SIZE) < 70)


@pytest.mark.parametrize(("dtype", "value"), [("float32", 0.25), ("float32", np.nan), ("int32", 3), ("int8", -1)])
def test_a_conversion_to_truth_values_loses_nothing(dtype: str, value: float) -> None:
    observer = Numbers()
    source = np.full(SIZE, value, dtype)
    accesses = tuple(Access("ub", 0, reads, not reads, size, 0, (SIZE,), (size,), "V", name)
                     for reads, size, name in ((True, source.itemsize, "src"), (False, 1, "dst")))
    record = OpRecord(0, "hivm.hir.vcast", "V", "AIV", None, accesses, Nothing(), 0)
    result = source != 0
    observer.after(observer.before(0, 0, None, record, [source], [result]))  # type: ignore[arg-type]  # the op is not used
    assert observer.findings == []


@pytest.mark.parametrize(("dtype", "turns", "swallowed"), [("float16", 2048, 0), ("float16", 2050, 2), ("float32", 2050, 0)])
def test_a_sum_that_swallows_what_is_added(dtype: str, turns: int, swallowed: int) -> None:
    @T.macro
    def counted(a: Any, b: Any) -> None:
        T.vbrc(0.0, b)
        for _ in T.serial(turns):
            T.vadd(b, a, b)

    a = np.zeros(2 * SIZE, dtype)
    a[5] = 1
    found = watched(unary(dtype, dtype, counted), a, np.zeros_like(a))
    assert [(one.code, one.elements, one.detail) for one in found] == (
        [("S404", swallowed, "src0 = 2048.0, src1 = 1.0 gives 2048.0")] if swallowed else [])


def test_one_order_at_a_time() -> None:
    kernel = unary("float32", "float32", root)
    a = np.ones(2 * SIZE, np.float32)
    kernel(a, a.copy())
    with pytest.raises(TileError, match="T413"):
        kernel.program.run([a, a.copy()], blocks=2, observer=Numbers(), schedule="late")
