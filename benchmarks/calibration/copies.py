"""Copies alone, as the sources loop over them: one core or all, the same bytes each time, with or without a wait after each."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

REPEATS = 10_000
"""Number of copies in a row of ``measured.json`` if the source gives the time of one copy."""


def to_ub(count: int, blocks: int, payload: int, gap: int, *, cores: int = 1, chip: str) -> Any:
    """Each core loads the same ``blocks`` of ``payload`` bytes ``count`` times; the scalar unit waits after each load."""
    width, pitch = payload // 4, (payload + gap) // 4

    @T.prim_func
    def load(X: T.Tensor((cores * blocks, pitch), "float32"), Y: T.Tensor((cores * blocks, width), "float32")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((blocks, width), "float32")
            with T.Scope("V"):
                for _i in T.serial(count):
                    T.copy(X[core * blocks : (core + 1) * blocks, 0:width], x)
                    T.set_flag("mte2", "s", 0)
                    T.wait_flag("mte2", "s", 0)
                T.set_flag("mte2", "mte3", 0)
                T.wait_flag("mte2", "mte3", 0)
                T.copy(x, Y[core * blocks : (core + 1) * blocks, :])

    return tilelang.compile(load, target="ascendc", chip=chip)


def from_ub(count: int, blocks: int, payload: int, gap: int, *, cores: int = 1, chip: str) -> Any:
    """Each core stores the same ``blocks`` of ``payload`` bytes ``count`` times; the scalar unit waits after each store."""
    width, pitch = payload // 4, (payload + gap) // 4

    @T.prim_func
    def store(X: T.Tensor((cores * blocks, width), "float32"), Y: T.Tensor((cores * blocks, pitch), "float32")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((blocks, width), "float32")
            with T.Scope("V"):
                T.copy(X[core * blocks : (core + 1) * blocks, :], x)
                T.set_flag("mte2", "mte3", 0)
                T.wait_flag("mte2", "mte3", 0)
                for _i in T.serial(count):
                    T.copy(x, Y[core * blocks : (core + 1) * blocks, 0:width])
                    T.set_flag("mte3", "s", 0)
                    T.wait_flag("mte3", "s", 0)

    return tilelang.compile(store, target="ascendc", chip=chip)


def one_by_one(direction: str, blocks: int, payload: int, gap: int = 0, *, cores: int = 1) -> Case:
    """``REPEATS`` copies with a wait after each."""
    copy = to_ub if direction == "load" else from_ub
    return Case(lambda count: copy(count, blocks, payload, gap, cores=cores, chip=A3), (16, 48), REPEATS)


def through_ub(pieces: int, *, chip: str) -> Any:
    """One core copies pieces of 64 KB through one buffer. They are ordered only by a barrier of the load's pipe and one of the
    store's pipe: a store may start before its load has ended, as in the source."""
    run = 32768

    @T.prim_func
    def through(X: T.Tensor((pieces * run,), "float16"), Y: T.Tensor((pieces * run,), "float16")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_ub((run,), "float16")
            with T.Scope("V"):
                for i in T.serial(pieces):
                    T.copy(X[i * run : (i + 1) * run], x)
                    T.pipe_barrier("mte2")
                    T.copy(x, Y[i * run : (i + 1) * run])
                    T.pipe_barrier("mte3")

    return tilelang.compile(through, target="ascendc", chip=chip)


def fragments(count: int, *, chip: str) -> Any:
    """One core copies ``count`` separate elements of float16, one after the other through two slots."""

    @T.prim_func
    def copy(X: T.Tensor((count, 16), "float16"), Y: T.Tensor((1, count), "float16")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_ub((2, 1, 16), "float16")
            with T.Scope("V"):
                for slot in range(2):
                    T.set_flag("mte3", "mte2", slot)
                for i in T.serial(count):
                    T.wait_flag("mte3", "mte2", i % 2)
                    T.copy(X[i : i + 1, 0:1], x[i % 2, :, 0:1])
                    T.set_flag("mte2", "mte3", i % 2)
                    T.wait_flag("mte2", "mte3", i % 2)
                    T.copy(x[i % 2, :, 0:1], Y[0:1, i : i + 1])
                    T.set_flag("mte3", "mte2", i % 2)
                for slot in range(2):
                    T.wait_flag("mte3", "mte2", slot)

    return tilelang.compile(copy, target="ascendc", chip=chip)


def to_l1(pieces: int, *, cores: int = 1, around: int = 0, chip: str) -> Any:
    """Each core loads contiguous pieces of 256 KB into the same bytes of L1.

    Args:
        around: the number of pieces after which a core begins with the first again; if it is 0, all pieces are different.
    """
    wide = 512
    run = 131072 // wide
    own = around or pieces

    @T.prim_func
    def load(X: T.Tensor((cores * own * run, wide), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_L1((run, wide), "float16")
            with T.Scope("C"):
                for i in T.serial(pieces):
                    first = (core * own + i % own) * run
                    T.copy(X[first : first + run, :], x)

    return tilelang.compile(load, target="ascendc", chip=chip)


def to_l0(rounds: int, *, chip: str) -> Any:
    """One core loads the contiguous 16 KB pieces of 256 KB in L1 into the same bytes of L0A, piece after piece, ``rounds``
    times."""

    @T.prim_func
    def load(X: T.Tensor((64, 2048), "float16")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_L1((64, 2048), "float16")
            left = T.alloc_L0A((64, 128), "float16")
            with T.Scope("C"):
                T.copy(X, x)
                T.set_flag("mte2", "mte1", 0)
                T.wait_flag("mte2", "mte1", 0)
                for _i in T.serial(rounds):
                    for j in T.serial(16):
                        T.copy(x[:, j * 128 : (j + 1) * 128], left)

    return tilelang.compile(load, target="ascendc", chip=chip)


def from_l0c(times: int, *, chip: str) -> Any:
    """One product of 128 x 128 x 128 in float16, which is stored ``times`` times from L0C to the same bytes in float32."""

    @T.prim_func
    def store(A: T.Tensor((128, 4096), "float16"), B: T.Tensor((4096, 128), "float16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            a = T.alloc_L1((128, 128), "float16")
            b = T.alloc_L1((128, 128), "float16")
            left = T.alloc_L0A((128, 128), "float16")
            right = T.alloc_L0B((128, 128), "float16")
            c = T.alloc_L0C((128, 128), "float32")
            with T.Scope("C"):
                T.copy(A[0:128, 0:128], a)
                T.copy(B[0:128, 0:128], b)
                T.set_flag("mte2", "mte1", 0)
                T.wait_flag("mte2", "mte1", 0)
                T.copy(a, left)
                T.copy(b, right)
                T.set_flag("mte1", "m", 0)
                T.wait_flag("mte1", "m", 0)
                T.mma(left, right, c, init=True)
                T.set_flag("m", "fix", 0)
                T.wait_flag("m", "fix", 0)
                for _i in T.serial(times):
                    T.copy(c, C)

    return tilelang.compile(store, target="ascendc", chip=chip)


A3, B3 = "910_9382", "910B3"
LENGTHS = (32, 64, 128, 256, 512, 1024, 4096, 8192, 14336, 32768, 65536, 131072, 196288)
CASES = {
    **{f"wait_{direction}_{length}": one_by_one(direction, 1, length) for direction in ("load", "store") for length in LENGTHS},
    **{f"rows_{direction}_{payload}_{gap}_c{cores}": one_by_one(direction, 16, payload, gap, cores=cores)
       for direction, payload, gap, cores in (
           ("load", 512, 0, 1), ("load", 512, 0, 8), ("load", 512, 0, 48), ("load", 1024, 0, 1), ("load", 1024, 0, 48),
           ("load", 480, 32, 1), ("load", 480, 32, 8), ("load", 480, 32, 48), ("load", 32, 480, 1), ("load", 32, 480, 48),
           ("store", 512, 0, 1), ("store", 512, 0, 48), ("store", 480, 32, 1), ("store", 480, 32, 8), ("store", 480, 32, 48),
           ("store", 32, 480, 48))},
    "fragments_255": Case(lambda _count: fragments(255, chip="910B4-1")),
    "through_ub": Case(lambda count: through_ub(count, chip=B3), (64, 192), 5120),
    "to_l1_one": Case(lambda count: to_l1(count, chip=B3), (16, 48), 1280),
    "to_l1_all": Case(lambda count: to_l1(count, cores=20, around=64, chip=B3), (64, 128), 1280),
    "to_l0a": Case(lambda count: to_l0(count, chip=B3), (4, 12), 1280),
    "from_l0c": Case(lambda count: from_l0c(count, chip=B3), (16, 48), 1280),
}
