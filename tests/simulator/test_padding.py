"""Reductions that what T.copy fills in beyond a tensor decides: S224."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.finding import Hazard

CONFIGS = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}


def findings(kernel: Any, *arrays: np.ndarray) -> list[Hazard]:
    kernel(*arrays)
    return [hazard for hazard in kernel.last_launch.hazards if hazard.code == "S224"]


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def extreme(columns: int, mode: str, dtype: str = "float32", pad: Any = None, magnitude: bool = False) -> Any:
    """Rows of a tile of 128 columns, of which ``columns`` are a tensor's, reduced."""
    fold = {"max": T.reduce_max, "min": T.reduce_min, "sum": T.reduce_sum}[mode]

    @T.prim_func
    def main(A: T.Tensor((32, columns), dtype), C: T.Tensor((32, 1), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32, 128), dtype)
            c = T.alloc_ub((32, 1), dtype)
            T.copy(A[0, 0], a, pad_value=pad)
            if magnitude:
                T.tile.abs(a, a)
            fold(a, c, dim=-1)
            T.copy(c, C)
    return main


def rows(columns: int, dtype: str, low: float, high: float) -> np.ndarray:
    return np.random.default_rng(0).uniform(low, high, (32, columns)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int16", "int32"])
@pytest.mark.parametrize(("mode", "low", "high"), [("max", -90, -10), ("min", 10, 90)])
def test_zero_beyond_an_extreme(mode: str, low: float, high: float, dtype: str) -> None:
    a, c = rows(100, dtype, low, high), np.ones((32, 1), dtype)
    (hazard,) = findings(extreme(100, mode, dtype), a, c)
    assert not c.any()  # what a chip would leave too
    wanted = getattr(a, mode)(axis=1)[0]
    said = f"padding changes 32 of 32 results of the {mode} of a: the first, of 100 loaded elements and 28 of padding, is 0"
    assert said in str(hazard)
    assert hazard.missing.endswith(f"and {np.float32(wanted) if dtype == 'float16' else wanted} without")
    assert hazard.second is not None and hazard.first.location is not None and hazard.second.location is not None
    assert "fold(a, c" in hazard.first.location.source() and "T.copy(A" in hazard.second.location.source()


@pytest.mark.parametrize(("mode", "low", "high", "pad", "magnitude", "columns"), [
    ("max", 10, 90, None, False, 100),  # 0 is below all of them
    ("max", -90, -10, float("-inf"), False, 100),
    ("min", 10, 90, float("inf"), False, 100),
    ("sum", -90, 90, None, False, 100),
    ("max", -90, -10, None, True, 100),  # 0 is below each magnitude
    ("max", -90, -10, None, False, 128),  # nothing is filled in
])
def test_what_is_neutral(mode: str, low: float, high: float, pad: Any, magnitude: bool, columns: int) -> None:
    a, c = rows(columns, "float32", low, high), np.zeros((32, 1), np.float32)
    assert findings(extreme(columns, mode, "float32", pad, magnitude), a, c) == []
    np.testing.assert_allclose(c[:, 0], getattr(np.abs(a) if magnitude else a, mode)(axis=1), rtol=1e-5)


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def denominators(columns: int, masked: bool) -> Any:
    """The sums of a softmax over 128 columns, of which ``columns`` are a tensor's."""
    @T.prim_func
    def main(A: T.Tensor((32, columns), "float16"), C: T.Tensor((32, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32, 128), "float16")
            wide = T.alloc_ub((32, 128), "float32")
            c = T.alloc_ub((32, 1), "float32")
            T.copy(A[0, 0], a)
            T.copy(a, wide)
            T.tile.exp(wide, wide)
            if masked:
                for i, j in T.Parallel(32, 128):
                    wide[i, j] = T.if_then_else(j < columns, wide[i, j], 0.0)
            T.reduce_sum(wide, c, dim=-1)
            T.copy(c, C)
    return main


def test_zeros_that_became_ones() -> None:
    a, c = rows(90, "float16", -1, 1), np.zeros((32, 1), np.float32)
    (hazard,) = findings(denominators(90, False), a, c)
    np.testing.assert_allclose(c[:, 0], np.exp(a.astype(np.float32)).sum(axis=1) + 38, rtol=1e-4)
    assert "32 of 32 results of the sum of wide: the first, of 90 loaded elements and 38 of padding" in hazard.missing


def test_padding_that_a_mask_takes_out() -> None:
    a, c = rows(90, "float16", -1, 1), np.zeros((32, 1), np.float32)
    assert findings(denominators(90, True), a, c) == []
    np.testing.assert_allclose(c[:, 0], np.exp(a.astype(np.float32)).sum(axis=1), rtol=1e-4)


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def in_parts(columns: int, larger: bool) -> Any:
    """Row sums of a tensor, 64 columns at a time: the tail's padding adds 0 to what the tiles before have left."""
    @T.prim_func
    def main(A: T.Tensor((32, columns), "float32"), C: T.Tensor((32, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32, 64), "float32")
            total = T.alloc_ub((32, 64), "float32")
            c = T.alloc_ub((32, 1), "float32")
            T.tile.fill(total, 0.0)
            for part in T.serial(T.ceildiv(columns, 64)):
                T.copy(A[0, part * 64], a)
                if larger:
                    T.tile.add(a, a, 1.0)
                T.tile.add(total, total, a)
            T.reduce_sum(total, c, dim=-1)
            T.copy(c, C)
    return main


def test_padding_that_adds_nothing_to_a_running_sum() -> None:
    a, c = rows(100, "float32", 1, 2), np.zeros((32, 1), np.float32)
    assert findings(in_parts(100, False), a, c) == []
    np.testing.assert_allclose(c[:, 0], a.sum(axis=1), rtol=1e-5)
    (hazard,) = findings(in_parts(100, True), a, c)  # 0 has become 1 before it was added
    assert "32 of 32 results of the sum of total" in hazard.missing


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def whole_rows(lines: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((lines, 64), "float32"), C: T.Tensor((lines, 1), "float32"), S: T.Tensor((1, 1), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32, 64), "float32")
            c = T.alloc_ub((32, 1), "float32")
            s = T.alloc_ub((1, 1), "float32")
            T.copy(A[0, 0], a)
            T.reduce_max(a, c, dim=-1)  # rows of padding come to padding, which nothing stores
            T.copy(c, C[0, 0])
            T.reduce_max(c, s, dim=0)  # and this takes it in
            T.copy(s, S)
    return main


def test_rows_of_padding() -> None:
    a = -1 - np.random.default_rng(0).random((20, 64), np.float32)
    c, s = np.zeros((20, 1), np.float32), np.ones((1, 1), np.float32)
    (hazard,) = findings(whole_rows(20), a, c, s)
    np.testing.assert_array_equal(c[:, 0], a.max(axis=1))
    assert s == 0
    assert "results of the max of c: the first, of 20 loaded elements and 12 of padding, is 0.0" in hazard.missing
