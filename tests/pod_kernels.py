"""Kernels of pods, for the tests of their times."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.pods import Card
from tilelang_npu.target import chip

A2 = chip("910B2")
LATENCY = A2.links.latency * 1e6
"""Microseconds until a signal is at another card."""
LOOK = A2.microseconds(A2.scalar.store + A2.scalar.load) + 0.05
"""Microseconds within which a signal is sent and a core that waits for it goes on, in addition to the latency."""


@tilelang.jit(target="npuir")
def passing(rank: int, tiles: int) -> Any:
    """Card 0 copies ``tiles`` tiles and then signals card 1, which waits before it copies one tile."""
    @T.prim_func
    def passing(X: T.Tensor((128, 128), "float32"), F: T.Tensor((1,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((128, 128), "float32")
            if rank == 0:
                for _turn in T.serial(tiles):
                    T.copy(X, tile)
                    T.copy(tile, X)
                T.shmem_signal_op(F, 0, 1, 0, 1)
            else:
                T.shmem_signal_wait_until(F, 0, 3, 1)
                T.copy(X, tile)
                T.copy(tile, X)

    return passing


def drive_passing(tiles: int) -> Any:
    def drive(card: Card) -> None:
        x, f = card.tensor((128, 128)), card.tensor(1, "int32")
        card.barrier()
        passing(card.rank, tiles)(x, f)

    return drive


@tilelang.jit(target="npuir")
def copying(tiles: int) -> Any:
    @T.prim_func
    def copying(X: T.Tensor((128, 128), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((128, 128), "float32")
            for _turn in T.serial(tiles):
                T.copy(X, tile)
                T.copy(tile, X)

    return copying
