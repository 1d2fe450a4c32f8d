"""Writes of both Vector cores of a block to the same bytes: a race if the values differ, none if they are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC
from tilelang_npu.simulator.result.static_check import check

SIDE = 32


def both_write(add: str, parted: bool) -> Any:
    """Half of a product by each Vector core, and a vector that both write; ``add`` is the value that is added to it."""

    @tilelang.jit(target="ascendc", pass_configs=SYNC)
    def made(size: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((SIDE, SIDE), "float16"), V: T.Tensor((64,), "float32"), C: T.Tensor((SIDE, SIDE), "float32"),
                 W: T.Tensor((size,), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_L1((SIDE, SIDE), "float16")
                c = T.alloc_L0C((SIDE, SIDE), "float32")
                v = T.alloc_ub((64,), "float32")
                with T.Scope("C"):
                    T.copy(A, a)
                    T.gemm_v0(a, a, c, init=True)
                    T.copy(c, C)
                with T.Scope("V"):
                    T.copy(V, v)
                    if add == "same":
                        T.tile.add(v, v, 1.0)
                    elif add == "scaled":
                        T.tile.mul(v, v, T.cast(vid + 1, "float32"))
                    else:
                        T.tile.add(v, v, T.cast(vid, "float32"))
                    if parted:
                        T.copy(v, W[vid * 64])
                    else:
                        T.copy(v, W[0])

        return main

    return made(128 if parted else 64)


@pytest.mark.parametrize(("add", "parted", "race"), [
    ("same", False, False), ("own", False, True), ("own", True, False), ("same", True, False)])
def test_only_different_bytes_are_a_race(add: str, parted: bool, race: bool) -> None:
    kernel = both_write(add, parted)
    a = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float16)
    v, c, w = np.arange(64, dtype=np.float32), np.zeros((SIDE, SIDE), np.float32), np.zeros(128, np.float32)
    w = w[:128 if parted else 64]
    kernel(a, v, c, w)
    hazards = kernel.last_launch.hazards
    assert [(hazard.code, hazard.kind, hazard.buffer) for hazard in hazards] == ([("S202", "WAW", "W")] if race else [])
    results = set()
    for schedule in ("early", "late", *(f"random:{seed}" for seed in range(20))):
        once = np.zeros_like(w)
        kernel.program.run([a, v, c, once], blocks=1, schedule=schedule)
        results.add(once.tobytes())
    assert (len(results) > 1) == race  # the schedules say the same


@pytest.mark.parametrize(("add", "race"), [("same", False), ("own", True), ("scaled", True)])
def test_a_check_does_not_take_zeros_for_what_the_cores_write(add: str, race: bool) -> None:
    program = both_write(add, False).program
    arrays = [np.zeros(shape, element) for shape, element in (
        ((SIDE, SIDE), np.float16), (64, np.float32), ((SIDE, SIDE), np.float32), (64, np.float32))]
    done = check(program, arrays, 1)
    assert [(hazard.code, hazard.kind, hazard.buffer) for hazard in done.hazards] == ([("S202", "WAW", "W")] if race else [])
    assert (done.errors, done.notes) == ([], [])


@pytest.mark.parametrize(("own", "race"), [(False, False), (True, True)])
def test_blocks_that_wait_for_each_other(own: bool, race: bool) -> None:
    """Both Vector cores of each block store a row, which all blocks read after a barrier."""

    @tilelang.jit(target="ascendc", pass_configs=SYNC)
    def made(blocks: int) -> Any:
        @T.prim_func
        def main(V: T.Tensor((blocks, 64), "float32"), W: T.Tensor((blocks, 64), "float32"),
                 C: T.Tensor((blocks, 64), "float32")):
            with T.Kernel(blocks, is_npu=True) as (cid, vid):
                v = T.alloc_ub((1, 64), "float32")
                with T.Scope("C"):
                    T.sync_all()
                with T.Scope("V"):
                    T.copy(V[cid, 0], v)
                    if own:
                        T.tile.add(v, v, T.cast(vid, "float32"))
                    T.copy(v, W[cid, 0])
                    T.sync_all()
                    T.copy(W[blocks - 1 - cid, 0], v)
                    if vid == 0:
                        T.copy(v, C[cid, 0])

        return main

    kernel, v = made(4), np.arange(256, dtype=np.float32).reshape(4, 64)
    w, c = np.zeros_like(v), np.zeros_like(v)
    kernel(v, w, c)
    assert {(hazard.code, hazard.kind) for hazard in kernel.last_launch.hazards} == ({("S203", "WAW")} if race else set())
    if not race:
        np.testing.assert_array_equal(c, v[::-1])
        assert kernel.program.global_sync
