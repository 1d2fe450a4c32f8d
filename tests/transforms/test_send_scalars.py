"""The Cube core's control flow depends on numbers that the Vector core computes: right values, no hazards, balanced flags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError


@tilelang.jit(target="npu", sanitize=True)
def chosen_products(count: int, stages: int, *, computed: bool) -> Any:
    """The sum of the products that a table chooses, which the Vector core adds to if ``computed``."""
    @T.prim_func
    def main(h: T.Tensor((count * 32, 32), "float16"), w: T.Tensor((32, 48), "float16"),
             mask: T.Tensor((64,), "int32"), o: T.Tensor((32, 48), "float32")):  # type: ignore[no-untyped-def, valid-type]
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 48), "float16")
            c = T.alloc_fragment((32, 48), "float32")
            total = T.alloc_fragment((32, 48), "float32")
            table = T.alloc_fragment((64,), "int32")
            T.copy(mask, table)
            T.copy(w, b)
            T.clear(total)
            for i in T.Pipelined(count, num_stages=stages):
                if computed:
                    for j in T.Parallel(64):
                        table[j] = table[j] + 1
                if table[i] > 3:
                    T.copy(h[i * 32, 0], a)
                    T.clear(c)
                    T.gemm(a, b, c)
                    for p, q in T.Parallel(32, 48):
                        total[p, q] += T.max(c[p, q], 0)
            T.copy(total, o)
    return main


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_tile_decides_which_products_are_made(count: int, stages: int, *, computed: bool, rng: np.random.Generator) -> None:
    h = rng.integers(-3, 4, (count * 32, 32)).astype(np.float16)
    w = rng.integers(-3, 4, (32, 48)).astype(np.float16)
    mask = rng.integers(0, 6, 64).astype(np.int32)
    o = np.zeros((32, 48), np.float32)
    kernel = chosen_products(count, stages, computed=computed)
    kernel(h, w, mask, o)
    wanted = np.zeros_like(o)
    for i in range(count):
        if mask[i] + (i + 1) * computed > 3:
            wanted += np.maximum(h[i * 32:i * 32 + 32].astype(np.float32) @ w.astype(np.float32), 0)
    np.testing.assert_array_equal(o, wanted)
    assert kernel.last_launch.hazards == []
    assert "sent" in kernel.mlir("cross-sync")


def test_a_sum_counts_the_turns_and_gives_the_place() -> None:
    @tilelang.jit(target="npu", sanitize=True)
    def powers() -> Any:
        @T.prim_func
        def main(x: T.Tensor((1, 64), "float32"), h: T.Tensor((256, 32), "float16"), o: T.Tensor((32, 32), "float32")):  # type: ignore[no-untyped-def, valid-type]
            with T.Kernel(1, threads=128):
                row = T.alloc_fragment((1, 64), "float32")
                total = T.alloc_fragment((1,), "float32")
                number = T.alloc_fragment((1,), "int32")
                a = T.alloc_shared((32, 32), "float16")
                c = T.alloc_fragment((32, 32), "float32")
                T.copy(x, row)
                T.reduce_sum(row, total, dim=1)
                for i in T.Parallel(1):
                    number[i] = T.cast(total[i], "int32")
                T.clear(c)
                for i in T.serial(number[0]):
                    T.copy(h[(number[0] - i) * 32, 0], a)
                    T.gemm(a, a, c)
                T.copy(c, o)
        return main

    rng = np.random.default_rng(4)
    h, o = rng.integers(-2, 3, (256, 32)).astype(np.float16), np.zeros((32, 32), np.float32)
    kernel = powers()
    for many in (0, 1, 5, 7):
        x = np.zeros((1, 64), np.float32)
        x[0, 9:9 + many] = 1
        kernel(x, h, o)
        blocks = h.astype(np.float32).reshape(8, 32, 32)[1:many + 1]
        np.testing.assert_array_equal(o, sum((block @ block for block in blocks), np.zeros_like(o)))
        assert kernel.last_launch.hazards == []


def test_what_each_vector_core_has_of_its_own_is_refused() -> None:
    @T.prim_func
    def main(n: T.Tensor((2, 32), "int32"), h: T.Tensor((64, 64), "float16"), o: T.Tensor((64, 64), "float32")):  # type: ignore[no-untyped-def, valid-type]
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            x = T.alloc_ub((1, 32), "int32")
            y = T.alloc_ub((1, 32), "int32")
            T.tile.fill(y, 0)
            if vid > 0:
                T.tile.fill(y, 1)
            T.copy(n[0, 0], x)
            T.tile.add(x, x, y)
            for i in T.serial(x[0, 0]):
                T.copy(h, a)
                T.gemm_v0(a, a, c, init=(i == 0))
            T.copy(c, o)

    with pytest.raises(TileError, match="depends on a scalar that only the Vector core has") as caught:
        tilelang.compile(main, target="ascendc", pass_configs={
            "tl.ascend_auto_sync": True, "tl.ascend_auto_cv_combine": True, "tl.ascend_auto_cross_core_sync": True})
    assert caught.value.code == "T245"
