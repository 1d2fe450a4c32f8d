"""The balance of cores: waves, tails, unequal blocks, and cores without blocks."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.result.profile.core_balance import CoreBalance, core_balance


def _rows(blocks: int, last: int = 1) -> Any:
    """A kernel that loads a tile in each block; the last block does so ``last`` times."""

    @T.prim_func
    def kernel(A: T.Tensor((blocks, 4096), "float32"), B: T.Tensor((blocks, 4096), "float32")):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            a = T.alloc_ub((4096,), "float32")
            for _ in T.serial(T.if_then_else(block == blocks - 1, last, 1)):
                T.copy(A[block, 0], a)
                T.copy(a, B[block, 0])

    return tilelang.compile(kernel, target="npuir", pass_configs={"tl.disable": ["make-persistent"]})


def _balance(blocks: int, last: int = 1) -> CoreBalance:
    return core_balance(_rows(blocks, last).trace())


def test_a_last_wave_of_few_blocks_is_a_tail() -> None:
    found = _balance(48 + 6)
    assert (found.cores, found.unused, found.waves, found.last_wave) == (48, 0, 2, 6)
    assert found.cause == "a tail: the last of 2 waves has 6 blocks for 48 cores"
    assert found.first_end_us < 0.7 * found.last_end_us
    assert 0.3 < found.idle < 0.6
    assert "idle for" in str(found)


def test_cores_without_blocks_are_counted() -> None:
    found = _balance(12)
    assert (found.cores, found.unused, found.waves) == (12, 36, 1)
    assert found.cause == "few blocks: 36 of 48 cores get none"
    assert found.idle > 0.7


def test_a_block_that_takes_longer_is_named() -> None:
    found = _balance(48, last=12)
    assert found.longest == 47
    assert found.uneven > 4
    assert found.cause.startswith("blocks of unequal length: block 47 takes ")


def test_as_data() -> None:
    found = _balance(12)
    data = found.to_dict()
    assert data["cause"] == found.cause
    assert data["idle"] == pytest.approx(found.idle)
