"""Findings of the sanitizer in kernels whose blocks wait for each other: all blocks run at the same time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.sanitizer.hazard import Hazard

CONFIGS = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def turned(between: bool = True, loaded: int = 64, filled: bool = False) -> Any:
    """Rows in reverse order: each block writes its row to a workspace and reads another block's."""
    @T.prim_func
    def main(A: T.Tensor((4, loaded), "float32"), W: T.Tensor((4, 64), "float32"), C: T.Tensor((4, 64), "float32"),
             S: T.Tensor((4, 1), "float32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "float32")
            b = T.alloc_ub((1, 64), "float32")
            s = T.alloc_ub((1, 1), "float32")
            if vid == 0:
                if filled:
                    T.copy(A[cid, 0], a)
                else:
                    T.copy(A[cid, :], a[0:loaded])
                T.copy(a, W[cid, :])
            if between:
                T.sync_all()
            if vid == 0:
                T.copy(W[3 - cid, :], b)
                T.copy(b, C[3 - cid, :])
                if filled:
                    T.copy(A[cid, 0], b)
                T.reduce_max(b, s, dim=-1)
                T.copy(s, S[cid, :])
            T.sync_all()
    return main


def findings(kernel: Any, loaded: int = 64) -> tuple[list[Hazard], np.ndarray, np.ndarray, np.ndarray]:
    a = -1 - np.random.default_rng(0).random((4, loaded), np.float32)
    c, s = np.zeros((4, 64), np.float32), np.zeros((4, 1), np.float32)
    kernel(a, np.zeros((4, 64), np.float32), c, s)
    return kernel.last_launch.hazards, a, c, s


def test_a_barrier_orders_the_blocks() -> None:
    hazards, a, c, s = findings(turned())
    assert hazards == []
    np.testing.assert_array_equal(c, a)
    np.testing.assert_array_equal(s[:, 0], a.max(axis=1)[::-1])


def test_none_is_a_race_between_blocks() -> None:
    hazards, *_ = findings(turned(between=False))
    assert {hazard.code for hazard in hazards} == {"S203"}
    assert {hazard.kind for hazard in hazards} == {"RAW", "WAR"}
    for hazard in hazards:
        assert hazard.buffer == "W" and hazard.memory == "GM"
        assert hazard.missing.startswith("a barrier of all blocks between line ")
        assert hazard.second is not None and hazard.first.core.partition(" of ")[2] != hazard.second.core.partition(" of ")[2]


def test_bytes_that_nothing_wrote() -> None:
    with pytest.warns(tilelang.TileWarning, match="S221"):
        hazards, a, c, _ = findings(turned(loaded=32), 32)
    np.testing.assert_array_equal(c[:, :32], a)
    (hazard,) = [one for one in hazards if one.code == "S221"]
    assert (hazard.memory, hazard.buffer, hazard.start, hazard.end) == ("UB", "a", 128, 256)
    assert "bytes of W depend on them" in hazard.missing or "bytes of C depend on them" in hazard.missing


def test_padding() -> None:
    hazards, a, c, s = findings(turned(loaded=50, filled=True), 50)
    np.testing.assert_array_equal(c[:, :50], a)
    assert not s.any()
    (hazard,) = hazards
    assert hazard.code == "S224" and "50 loaded elements and 14 of padding" in hazard.missing
