"""Accumulators with clears that cannot be folded into a gemm."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T

COUNT = int(os.environ.get("TILELANG_RANDOM_ACCUMULATORS", "10"))


@pytest.mark.parametrize(("dtype", "total"), [("float16", "float32"), ("int8", "int32")])
@pytest.mark.parametrize("sync", [True, False])
def test_a_gemm_under_a_condition_adds_to_a_cleared_accumulator(dtype: str, total: str, sync: bool,
                                                                rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((96, 32), dtype), B: T.Tensor((96, 48), dtype), Count: T.Tensor((4,), "int32"),
             C: T.Tensor((4, 32, 48), total)):
        with T.Kernel(4, is_npu=True) as (cid, _):
            a = T.alloc_L1((32, 32), dtype)
            b = T.alloc_L1((32, 48), dtype)
            c = T.alloc_L0C((32, 48), total)
            with T.Scope("C"):
                for i, j in T.Parallel(32, 48):
                    c[i, j] = 0
                for k in T.serial(3):
                    if k < Count[cid]:
                        T.barrier_all()
                        T.copy(A[k * 32, 0], a)
                        T.copy(B[k * 32, 0], b)
                        T.barrier_all()
                        T.gemm_v0(a, b, c, transpose_A=True)
                        T.barrier_all()
                T.copy(c, C[cid, 0, 0])

    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((96, 32), (96, 48)))
    counts = np.array([0, 3, 1, 2], np.int32)
    found = tilelang.compile(main, target="ascendc", out_idx=[3], pass_configs={"tl.ascend_auto_sync": sync})(a, b, counts)
    for block, count in enumerate(counts):
        rows = slice(0, 32 * count)
        np.testing.assert_array_equal(found[block], a[rows].astype(total).T @ b[rows].astype(total))


CLEARS = ("under a condition", "in the other branch", "in a loop", "in a loop of constant length", "in two loops", "in a while",
          "at the end of an iteration", "in a later iteration", "ahead of a product under no condition",
          "in a loop of other products")
"""Positions of clears after which no op in the same block accesses the accumulator, although it is read later."""


def cleared_somewhere(form: str, dialect: str, dtype: str, total: str, by_vector_work: bool, **configs: Any) -> Any:
    """An accumulator that holds a product, is cleared at one of ``CLEARS``, and is stored, from L0C or by vector work."""
    @T.macro
    def multiply(a: Any, b: Any, c: Any, start: Any):
        if dialect == "npuir":
            T.gemm(a, b, c, initC=start)
        else:
            T.gemm_v0(a, b, c, init=start)

    @T.prim_func
    def main(A: T.Tensor((40, 32), dtype), B: T.Tensor((32, 24), dtype), Result: T.Tensor((40, 24), total), n: T.int32):
        with T.Kernel(1, is_npu=True) as (_, __):
            a = T.alloc_shared((40, 32), dtype)
            b = T.alloc_shared((32, 24), dtype)
            c = T.alloc_fragment((40, 24), total)
            d = T.alloc_fragment((40, 24), total)
            e = T.alloc_shared((40, 24), total)
            k = T.alloc_var("int32")
            T.copy(A, a)
            T.copy(B, b)
            multiply(a, b, c, True)
            if form == "under a condition":
                if n > 1:
                    T.clear(c)
            elif form == "in the other branch":
                if n > 1:
                    multiply(a, b, c, False)
                else:
                    T.clear(c)
            elif form == "in a loop":
                for _i in T.serial(n):
                    T.clear(c)
            elif form == "in a loop of constant length":
                for _i in T.serial(3):
                    T.clear(c)
            elif form == "in two loops":
                for _i in T.Pipelined(n, num_stages=2):
                    for _j in T.serial(2):
                        T.clear(c)
            elif form == "in a while":
                k = 0
                while k < n:
                    T.clear(c)
                    k = k + 1
            elif form == "at the end of an iteration":
                for _i in T.serial(n):
                    multiply(a, b, c, False)
                    T.clear(c)
            elif form == "in a later iteration":
                for i in T.serial(n):
                    if i == 1:
                        T.clear(c)
                    multiply(a, b, c, False)
            elif form == "ahead of a product under no condition":
                if n > 1:
                    T.clear(c)
                multiply(a, b, c, False)
            else:
                for i in T.serial(n):
                    multiply(a, b, d, i == 0)
                    T.clear(c)
            if by_vector_work:
                T.copy(c, e)
                for i, j in T.Parallel(40, 24):
                    e[i, j] = e[i, j] + 1
                T.copy(e, Result)
            else:
                T.copy(c, Result)

    on = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True, "tl.ascend_auto_cv_combine": True,
          "tl.ascend_auto_cross_core_sync": True} if dialect == "ascendc" else {}
    return tilelang.compile(main, target=dialect, sanitize=True, pass_configs={**on, **configs})


def products_when_cleared(form: str, n: int) -> int:
    """How many products the accumulator holds at the end."""
    if form in ("under a condition", "ahead of a product under no condition"):
        return (0 if n > 1 else 1) + (form != "under a condition")
    if form == "in the other branch":
        return 2 if n > 1 else 0
    if form == "in a later iteration":
        return 1 + n if n < 2 else n - 1
    return 0 if n or form == "in a loop of constant length" else 1


@pytest.mark.parametrize("by_vector_work", [False, True])
@pytest.mark.parametrize(("dtype", "total"), [("float16", "float32"), ("int8", "int32")])
@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize("form", CLEARS)
def test_a_clear_is_read_outside_of_its_block(form: str, dialect: str, dtype: str, total: str, by_vector_work: bool,
                                              rng: np.random.Generator) -> None:
    """A regression: the clear was dropped if no later op of the same block accessed the accumulator."""
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((40, 32), (32, 24)))
    product = a.astype(total) @ b.astype(total)
    ways: list[dict[str, Any]] = [{}] if by_vector_work else [{}, {"tl.disable": ["fold-accumulator-clear"]}]
    for configs in ways:
        kernel = cleared_somewhere(form, dialect, dtype, total, by_vector_work, **configs)
        for n in range(4):
            result = np.full((40, 24), 7, total)
            kernel(a, b, result, n)
            np.testing.assert_array_equal(result, products_when_cleared(form, n) * product + by_vector_work, f"n = {n}")


def test_a_clear_that_nothing_reads_costs_nothing() -> None:
    """An accumulator that a gemm overwrites needs no product of zeros, at any position of the clear."""
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (_, __):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            for i in T.serial(n):
                for _j in T.serial(2):
                    T.gemm(a, a, c, initC=True)
                T.copy(c, C)
                if i > 0:
                    T.clear(c)
            T.clear(c)

    text = tilelang.compile(main, target="npuir").mlir()
    assert text.count("hivm.hir.mmadL1") == 1


TURNS = {
    "first": lambda i, k, start: k == start,
    "up to": lambda i, k, start: k < start + 1,
    "twice": lambda i, k, start: k * 2 == start * 2,
    "first, and more that holds": lambda i, k, start: T.And(k == start, k <= start + 2),
    "first, or a whole turn": lambda i, k, start: T.Or(k == start, i == 1),
    "always": lambda i, k, start: True,
    "carried": lambda i, k, start: T.And(i == 0, k == start),
}
"""When an accumulator is overwritten; all but ``carried`` in the first iteration of each inner loop."""


def one_after_the_other(kinds: list[str], outer: int, inner: int, start: int, dialect: str, **configs: Any) -> Any:
    """Accumulators of half of L0C each, used one after the other in a loop."""
    count = len(kinds)

    @T.macro
    def turn(A: Any, B: Any, C: Any, a: Any, b: Any, total: Any, i: Any, number: Any, kind: Any):
        for k in T.serial(start, start + inner):
            T.copy(A[number * 128, (i * inner + k - start) * 16], a)
            T.copy(B[(i * inner + k - start) * 16, 0], b)
            if dialect == "npuir":
                T.gemm(a, b, total, initC=TURNS[kind](i, k, start))
            else:
                T.gemm_v0(a, b, total, init=TURNS[kind](i, k, start))
        T.copy(total, C[i, number, 0, 0])

    @T.prim_func
    def main(A: T.Tensor((count * 128, outer * inner * 16), "float16"), B: T.Tensor((outer * inner * 16, 128), "float16"),
             C: T.Tensor((outer, count, 128, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (_, __):
            a = T.alloc_L1((128, 16), "float16")
            b = T.alloc_L1((16, 128), "float16")
            c = T.alloc_L0C((128, 128), "float32")
            d = T.alloc_L0C((128, 128), "float32")
            e = T.alloc_L0C((128, 128), "float32")
            f = T.alloc_L0C((128, 128), "float32")
            for i in T.serial(outer):
                turn(A, B, C, a, b, c, i, 0, kinds[0])
                turn(A, B, C, a, b, d, i, 1, kinds[1])
                if count > 2:
                    turn(A, B, C, a, b, e, i, 2, kinds[2])
                if count > 3:
                    turn(A, B, C, a, b, f, i, 3, kinds[3])

    on = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True} if dialect == "ascendc" else {}
    return tilelang.compile(main, target=dialect, out_idx=[-1], pass_configs={**on, **configs})


def products_in_turn(a: Any, b: Any, kinds: list[str], outer: int, inner: int, start: int) -> Any:
    wanted = np.zeros((outer, len(kinds), 128, 128), np.float32)
    for number, kind in enumerate(kinds):
        total = np.full((128, 128), np.nan, np.float32)
        for i in range(outer):
            for k in range(start, start + inner):
                first = {"carried": i == 0 and k == start, "always": True,
                         "first, or a whole turn": k == start or i == 1}.get(kind, k == start)
                place = slice((i * inner + k - start) * 16, (i * inner + k - start + 1) * 16)
                product = a[number * 128 : number * 128 + 128, place].astype(np.float32) @ b[place].astype(np.float32)
                total = product if first else total + product
            wanted[i, number] = total
    return wanted


@settings(max_examples=COUNT, deadline=None)
@given(kinds=st.lists(st.sampled_from(sorted(TURNS)), min_size=2, max_size=4), outer=st.integers(2, 3), inner=st.integers(1, 3),
       start=st.integers(0, 2), dialect=st.sampled_from(["ascendc", "npuir"]), seed=st.integers(0, 99))
def test_accumulators_share_bytes_where_each_turn_starts_them_over(kinds: list[str], outer: int, inner: int, start: int,
                                                                   dialect: str, seed: int) -> None:
    """Two fit at a time: one with a loop-carried value and one in use. The values are NumPy's, at all addresses."""
    carried = kinds.count("carried")
    if carried + (carried < len(kinds)) > 2:
        with pytest.raises(tilelang.TileError, match="L0C needs") as caught:
            one_after_the_other(kinds, outer, inner, start, dialect)
        assert caught.value.code == "T104"
        return
    rng = np.random.default_rng(seed)
    a = rng.integers(-4, 5, (len(kinds) * 128, outer * inner * 16)).astype(np.float16)
    b = rng.integers(-4, 5, (outer * inner * 16, 128)).astype(np.float16)
    wanted = products_in_turn(a, b, kinds, outer, inner, start)
    ways: list[dict[str, Any]] = [{}, {"tl.disable": ["sink-buffers"]}] if len(kinds) == 2 else [{}]
    for configs in ways:
        kernel = one_after_the_other(kinds, outer, inner, start, dialect, **configs)
        kernel.sanitize = True
        np.testing.assert_array_equal(kernel(a, b), wanted)


@pytest.mark.parametrize("dialect", ["ascendc", "npuir"])
def test_two_accumulators_one_after_the_other_did_not_fit(dialect: str) -> None:
    """Each takes all of L0C, and the first is stored before the second begins."""
    @T.macro
    def turn(A: Any, B: Any, C: Any, a: Any, b: Any, total: Any, i: Any, which: Any):
        for k in T.serial(2):
            T.copy(A[i * 128, k * 64], a)
            T.copy(B[k * 64, 0], b)
            if dialect == "npuir":
                T.gemm(a, b, total, initC=(k == 0))
            else:
                T.gemm_v0(a, b, total, init=(k == 0))
        T.copy(total, C[which, i * 128, 0])

    @T.prim_func
    def main(A: T.Tensor((256, 128), "float16"), B: T.Tensor((128, 256), "float16"), C: T.Tensor((2, 256, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (_, __):
            a = T.alloc_L1((128, 64), "float16")
            b = T.alloc_L1((64, 256), "float16")
            c = T.alloc_L0C((128, 256), "float32")
            d = T.alloc_L0C((128, 256), "float32")
            for i in T.serial(2):
                turn(A, B, C, a, b, c, i, 0)
                turn(A, B, C, a, b, d, i, 1)

    configs = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True} if dialect == "ascendc" else {}
    kernel = tilelang.compile(main, target=dialect, out_idx=[-1], pass_configs=configs, sanitize=True)
    (memory,) = [one for one in kernel.memory_report().memories if one.name == "L0C"]
    assert [one.addresses for one in memory.buffers] == [(0,), (0,)]
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (256, 128)).astype(np.float16), rng.integers(-4, 5, (128, 256)).astype(np.float16)
    c = kernel(a, b)
    for which in range(2):
        np.testing.assert_array_equal(c[which], a.astype(np.float32) @ b.astype(np.float32))
