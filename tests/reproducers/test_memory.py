"""On-chip memory: capacity in every mode, with the scratch of operations; slots that straddle; lives that do not overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T
from reproducers.kernels import AUTO, HAND, compiled, holds, refused, reported

RNG = np.random.default_rng(0)


def powers(rows: int, columns: int, dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b, c = (T.alloc_ub((rows, columns), dtype), T.alloc_ub((rows, columns), dtype),
                       T.alloc_ub((rows, columns), dtype))
            T.copy(A, a)
            T.tile.fill(b, 2.0)
            T.tile.pow(c, a, b)
            T.copy(a, B)
            T.copy(c, B)

    return main


def test_scratch_counts() -> None:
    """Tiles that fill the memory share it if their live ranges are disjoint; larger ones are an error that lists all live
    buffers."""
    for rows, dtype in ((128, "float32"), (160, "float16"), (128, "float32")):  # in one process
        a = (1 + RNG.integers(0, 5, (rows, rows))).astype(dtype)
        holds(compiled(powers(rows, rows, dtype), AUTO), [a, np.zeros_like(a)], [a * a], rtol=1e-3)
    error = refused(powers(160, 160, "float32"), AUTO)
    assert error.code == "T104"
    assert "UB needs" in error.message and "196 352" in error.message


def large(elements: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((elements,), "float32"), B: T.Tensor((elements,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid), T.Scope("V"):
            x = T.alloc_ub((elements,), "float32")
            T.copy(A, x)
            T.barrier_all()
            T.copy(x, B)

    return main


@pytest.mark.parametrize("switches", [HAND, {"tl.ascend_auto_sync": True}, AUTO], ids=["none", "sync", "all"])
def test_300_kilobytes_never_compile(switches: dict[str, bool]) -> None:
    error = refused(large(300 * 1024 // 4), switches)
    assert error.code == "T104"
    assert "307 200" in str(error) and "A: " not in str(error)
    a = RNG.random(40 * 1024).astype(np.float32)
    holds(compiled(large(40 * 1024), switches), [a, np.zeros_like(a)], [a])


def phases(together: bool) -> Any:
    """Two tiles of 120 KB, with disjoint or with overlapping live ranges."""
    rows = 30 * 1024

    @T.prim_func
    def main(A: T.Tensor((2, rows), "float32"), B: T.Tensor((2, rows), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, y = T.alloc_ub((rows,), "float32"), T.alloc_ub((rows,), "float32")
            T.copy(A[0, :], x)
            if together:
                T.copy(A[1, :], y)
                T.tile.add(x, x, y)
            T.copy(x, B[0, :])
            if not together:
                T.copy(A[1, :], y)
            T.copy(y, B[1, :])

    return main


def test_lives_that_do_not_overlap_share_memory_and_others_are_listed() -> None:
    a = RNG.random((2, 30 * 1024)).astype(np.float32)
    kernel = compiled(phases(False), AUTO)
    holds(kernel, [a, np.zeros_like(a)], [a])
    error = refused(phases(True), AUTO)
    assert error.code == "T104"
    report = str(error)
    assert "peak" in report and all(f"{name} 122 880 bytes" in report for name in "xy")
    assert "shrink the tiles to 79 %" in error.help


def test_the_scratch_of_a_sum_is_planned() -> None:
    """A row of 8192 and the scratch of its sum fit next to a tile that almost fills the remaining memory."""
    @T.prim_func
    def main(A: T.Tensor((8192,), "float32"), F: T.Tensor((32 * 1024,), "float32"), S: T.Tensor((1,), "float32"),
             G: T.Tensor((32 * 1024,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, f = T.alloc_ub((1, 8192), "float32"), T.alloc_ub((32 * 1024,), "float32")
            s = T.alloc_ub((1, 1), "float32")
            T.copy(A, x)
            T.copy(F, f)
            T.reduce_sum(x, s, dim=-1)
            T.copy(s, S)
            T.copy(f, G)

    a, f = RNG.integers(-4, 5, 8192).astype(np.float32), RNG.random(32 * 1024).astype(np.float32)
    holds(compiled(main, AUTO), [a, f, np.zeros(1, np.float32), np.zeros_like(f)], [a.sum(keepdims=True), f])


def straddling(address: int, ordered: bool) -> Any:
    """Two ring buffers of two slots of 24 KB and of 16 KB at the user's addresses: if both begin at 0, a slot of one overlaps
    two of the other."""
    first, second = 6 * 1024, 4 * 1024

    @T.prim_func
    def main(A: T.Tensor((4, first), "float32"), B: T.Tensor((4, first), "float32"), C: T.Tensor((4, second), "float32"),
             D: T.Tensor((4, second), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, y = T.alloc_ub((2, first), "float32"), T.alloc_ub((2, second), "float32")
            T.annotate_address({x: 0, y: address})
            for i in T.serial(4):
                T.copy(A[i, :], x[i % 2, :])
                if ordered:
                    T.barrier_all()
                T.copy(x[i % 2, :], B[i, :])
                T.copy(C[i, :], y[i % 2, :])
                if ordered:
                    T.barrier_all()
                T.copy(y[i % 2, :], D[i, :])

    return main


@pytest.mark.parametrize("address", [0, 2 * 24 * 1024])
def test_slots_across_those_of_another_ring(address: int) -> None:
    a, c = RNG.random((4, 6 * 1024)).astype(np.float32), RNG.random((4, 4 * 1024)).astype(np.float32)
    given = [a, np.zeros_like(a), c, np.zeros_like(c)]
    holds(compiled(straddling(address, False), {"tl.ascend_auto_sync": True}), given, [a, c, c])
    kernel = compiled(straddling(address, True), HAND)
    reported(kernel, *given)
    found = {(hazard.code, hazard.kind, hazard.first.op, hazard.second and hazard.second.op, hazard.buffer)
             for hazard in kernel.last_launch.hazards}
    assert found == ({("S201", "WAR", "store", "load", "y"), ("S201", "WAR", "store", "load", "x")} if address == 0 else set())
