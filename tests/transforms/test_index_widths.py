"""Loop indices with elements of 64 bits, and with elements of 32 that a sum leaves: values are those of 64-bit integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.linear import Interval
from tilelang_npu.transforms.tile.vectorise_parallel.detours import I32
from tilelang_npu.transforms.tile.vectorise_parallel.index_widths import I64, IndexWidths

ROWS, COLUMNS = 3, 21
Both = Callable[[Any, Any, Any, Any], Any]
SUMS: dict[str, tuple[Both, Both]] = {
    "sum": (lambda x, i, j, n: x + j, lambda x, i, j, n: x + j),
    "difference": (lambda x, i, j, n: i * 7 - x, lambda x, i, j, n: i * 7 - x),
    "product": (lambda x, i, j, n: x * j, lambda x, i, j, n: x * j),
    "bits": (lambda x, i, j, n: (x | j) + (x & i) + (x ^ j), lambda x, i, j, n: (x | j) + (x & i) + (x ^ j)),
    "least": (lambda x, i, j, n: T.min(x + i, x), lambda x, i, j, n: np.minimum(x + i, x)),
    "largest": (lambda x, i, j, n: T.max(x, j * 3), lambda x, i, j, n: np.maximum(x, j * 3)),
    "choice": (lambda x, i, j, n: T.if_then_else(j < 3, x, j), lambda x, i, j, n: np.where(j < 3, x, j)),
    "order": (lambda x, i, j, n: T.if_then_else(x > j, 1, 0), lambda x, i, j, n: (x > j) * 1),
    "order of a sum": (lambda x, i, j, n: T.if_then_else(x + j > n, i, j), lambda x, i, j, n: np.where(x + j > n, i, j)),
    "equality": (lambda x, i, j, n: T.if_then_else(x + i == x + j, x, i), lambda x, i, j, n: np.where(i == j, x, i)),
    "quotient": (lambda x, i, j, n: (x + j) // 8, lambda x, i, j, n: (x + j) // 8),
    "rest": (lambda x, i, j, n: (x - j) % 16, lambda x, i, j, n: (x - j) % 16),
    "shift": (lambda x, i, j, n: (x + i) >> 3, lambda x, i, j, n: (x + i) >> 3),
    "absolute": (lambda x, i, j, n: T.abs(x - j), lambda x, i, j, n: np.abs(x - j)),
    "with a parameter": (lambda x, i, j, n: x + (j + n) * 3, lambda x, i, j, n: x + (j + n) * 3),
    "of indices alone": (lambda x, i, j, n: j * 1000000007, lambda x, i, j, n: 0 * x + j * 1000000007),
    "of indices and a parameter": (lambda x, i, j, n: (j + n) * 1000000007, lambda x, i, j, n: 0 * x + (j + n) * 1000000007),
    "of what wrapped before": (lambda x, i, j, n: T.cast(j * 20, "int8") + i + T.cast(j * 100000007, "int32"),
                               lambda x, i, j, n: 0 * x + (j * 20).astype(np.int8).astype(np.int64) + i
                               + (j * 100000007).astype(np.int32).astype(np.int64)),
}


@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize("what", SUMS)
@pytest.mark.parametrize("kind", ["int64", "int32", "uint32", "uint8"])
def test_elements_and_indices_meet_in_64_bits(kind: str, what: str, dialect: str) -> None:
    """As a vector and point by point, into 64 bits and 32, whatever the sum and however large the elements."""
    change, meaning = SUMS[what]

    @T.prim_func
    def main(X: T.Tensor((ROWS, COLUMNS), kind), Y: T.Tensor((ROWS, COLUMNS), "int64"), Z: T.Tensor((ROWS, COLUMNS), "int32"),
             n: T.int32):
        with T.Kernel(1, is_npu=True) as (_, _vid):
            x = T.alloc_ub((ROWS, COLUMNS), kind)
            y = T.alloc_ub((ROWS, COLUMNS), "int64")
            z = T.alloc_ub((ROWS, COLUMNS), "int32")
            T.copy(X, x)
            for i, j in T.Parallel(ROWS, COLUMNS):
                y[i, j] = change(x[i, j], i, j, n)
            for i, j in T.Parallel(ROWS, COLUMNS):
                z[i, j] = change(x[i, j], i, j, n)
            T.copy(y, Y)
            T.copy(z, Z)

    configs = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True} if dialect == "ascendc" else {}
    held = np.iinfo(kind)
    x = np.random.default_rng(1).integers(held.min // 4, held.max // 4, (ROWS, COLUMNS), kind, endpoint=True)
    x[0, :5] = 0, 1, 5, 7, held.max if kind != "int64" else 3 << 60
    x[1, :2] = held.min if kind != "int64" else -(3 << 60), 100
    i, j = np.ogrid[:ROWS, :COLUMNS]
    for off in ([], ["vectorise-parallel"]):
        made = tilelang.compile(main, target=dialect, sanitize=True, pass_configs={**configs, "tl.disable": off})
        if not off:
            assert "scf.for" not in made.get_kernel_source()
        for n in (5, 2**31 - 1, -(2**31)):
            y, z = np.zeros((ROWS, COLUMNS), np.int64), np.zeros((ROWS, COLUMNS), np.int32)
            made(x, y, z, n)
            with np.errstate(over="ignore"):
                wanted = np.broadcast_to(meaning(x.astype(np.int64), i, j, n), y.shape)
            np.testing.assert_array_equal(y, wanted)
            np.testing.assert_array_equal(z, wanted.astype(np.int32))


@pytest.mark.parametrize(("change", "text"), [
    (lambda x, i, j: x + j, "xi64"),  # beyond int32, into int64
    (lambda x, i, j: T.cast(x + j, "int32"), "xi32"),  # the low bits of a sum
    (lambda x, i, j: i * 8 + j, "xi32"),  # all values fit
    (lambda x, i, j: T.cast((x + j) >> 1, "int32"), "xi64"),  # the low bits of a shift are other bits of the sum
])
def test_what_fits_or_is_cut_off_is_computed_in_int32(change: Any, text: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((ROWS, COLUMNS), "int32"), Y: T.Tensor((ROWS, COLUMNS), "int64")):
        with T.Kernel(1, is_npu=True) as (_, _vid):
            x = T.alloc_ub((ROWS, COLUMNS), "int32")
            y = T.alloc_ub((ROWS, COLUMNS), "int64")
            T.copy(X, x)
            for i, j in T.Parallel(ROWS, COLUMNS):
                y[i, j] = change(x[i, j], i, j)
            T.copy(y, Y)

    lines = tilelang.compile(main, target="npuir").mlir().splitlines()
    made = [line.partition(" outs(")[2] for line in lines if "hivm.hir.vadd" in line or "hivm.hir.varange" in line]
    assert made
    assert all(text in line for line in made), made


def sized(low: int, high: int, ranges: Ranges) -> Any:
    value = Block(arg_types=[IndexType()]).args[0]
    ranges.assume(value, Interval(low, high))
    return value


def constant(value: int) -> Any:
    return arith.ConstantOp(IntegerAttr(value, IndexType())).result


@pytest.mark.parametrize(("make", "wanted", "computed"), [
    (arith.AddiOp, I32, I32), (arith.AddiOp, I64, I64), (arith.MuliOp, I32, I32), (arith.OrIOp, I32, I32),
    (arith.MinSIOp, I32, I64), (arith.MaxSIOp, I64, I64), (arith.ShRSIOp, I32, I64), (arith.FloorDivSIOp, I32, I64),
])
def test_operations_on_what_int32_does_not_hold(make: Any, wanted: Any, computed: Any) -> None:
    ranges = Ranges()
    op: Operation = make(sized(-5, 1 << 40, ranges), sized(1, 3, ranges))
    assert IndexWidths(ranges).type_to_compute(op, wanted) == computed


@pytest.mark.parametrize("make", [arith.AddiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp, arith.FloorDivSIOp])
@pytest.mark.parametrize("wanted", [I32, I64])
def test_operations_on_what_int32_holds(make: Any, wanted: Any) -> None:
    ranges = Ranges()
    op: Operation = make(sized(-5, 1 << 20, ranges), sized(1, 3, ranges))
    assert IndexWidths(ranges).type_to_compute(op, wanted) == I32


@pytest.mark.parametrize(("make", "by", "computed"), [
    (arith.ShLIOp, 3, I32), (arith.ShLIOp, 31, I32), (arith.ShLIOp, 32, I64), (arith.ShLIOp, 40, I64),
    (arith.RemUIOp, 16, I32), (arith.RemUIOp, 24, I64), (arith.RemUIOp, 1 << 31, I32), (arith.RemUIOp, 1 << 32, I64),
    (arith.RemUIOp, 1 << 40, I64)])
def test_operations_by_a_number(make: Any, by: int, computed: Any) -> None:
    ranges = Ranges()
    assert IndexWidths(ranges).type_to_compute(make(sized(0, 1 << 40, ranges), constant(by)), I32) == computed


def test_sums_that_may_have_wrapped_are_not_compared_as_sums() -> None:
    ranges = Ranges()
    widths, index = IndexWidths(ranges), sized(0, 300, ranges)
    narrow = arith.IndexCastOp(index, I32)
    small = arith.MuliOp(narrow.result, arith.ConstantOp(IntegerAttr(1000, 32)).result)
    large = arith.MuliOp(narrow.result, arith.ConstantOp(IntegerAttr(100000000, 32)).result)
    for op, exact in ((small, True), (large, False)):
        back = arith.IndexCastOp(op.result, IndexType())
        assert widths.is_exact(back.result) is exact
        assert widths.is_exact(arith.AddiOp(back.result, index).result) is exact
