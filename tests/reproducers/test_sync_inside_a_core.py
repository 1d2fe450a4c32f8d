"""Synchronisation inside one core: joins at branches, buffers refilled too early, overlapping addresses, numbers of events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T
from reproducers.kernels import AUTO, HAND, compiled, holds, refused, reported
from tilelang_npu import TileError
from tilelang_npu.cli import main as command

N = 64
RNG = np.random.default_rng(0)


def line() -> Any:
    return RNG.standard_normal(N).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1])
def test_a_wait_in_one_branch_does_not_hold_after_both(n: int) -> None:
    @T.prim_func
    def main(B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, y = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32")
            T.tile.fill(x, 1.0)
            T.tile.fill(y, 2.0)
            if n > 0:
                T.tile.fill(y, 3.0)
                T.tile.add(y, y, y)
            T.tile.add(x, x, x)
            T.copy(x, B)
            T.copy(y, C)

    kernel = compiled(main, AUTO)
    for order in (None, "late", "early", "random:1"):
        b, c = np.zeros((2, N), np.float32)
        kernel.program.run([b, c, n], blocks=1, schedule=order)
        assert (b == 2).all() and (c == (6 if n else 2)).all()


@pytest.mark.parametrize(("n", "expected"), [(1, []), (0, [("S201", "RAW", "x")])])
def test_a_barrier_in_one_branch_is_missing_on_the_other(n: int, expected: list[Any]) -> None:
    @T.prim_func
    def main(B: T.Tensor((N,), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid), T.Scope("V"):
            x, y, z = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32")
            T.tile.fill(x, 1.0)
            if n > 0:
                T.tile.fill(y, 3.0)
                T.pipe_barrier("v")
                T.tile.add(y, y, y)
            T.tile.add(z, x, x)
            T.barrier_all()
            T.copy(z, B)

    assert reported(compiled(main, HAND), np.zeros(N, np.float32), n) == expected


def ping_pong(back: bool, event: int) -> Any:
    @T.prim_func
    def main(B: T.Tensor((8, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid), T.Scope("V"):
            x = T.alloc_ub((2, N), "float32")
            if back:
                T.set_flag("mte3", "v", 0)
                T.set_flag("mte3", "v", 1)
            for i in T.serial(8):
                if back:
                    T.wait_flag("mte3", "v", i % 2)
                T.tile.fill(x[i % 2, :], 1.0)
                T.set_flag("v", "mte3", event)
                T.wait_flag("v", "mte3", event)
                T.copy(x[i % 2, :], B[i, :])
                if back:
                    T.set_flag("mte3", "v", i % 2)
            if back:
                T.wait_flag("mte3", "v", 0)
                T.wait_flag("mte3", "v", 1)

    return main


def test_a_tile_is_refilled_when_its_reader_is_done() -> None:
    b = np.zeros((8, N), np.float32)
    holds(compiled(ping_pong(True, 0), HAND), [b], [np.ones_like(b)])
    assert ("S201", "WAR", "x") in reported(compiled(ping_pong(False, 0), HAND), b)


def test_event_numbers() -> None:
    """The language has event numbers up to 15, the chip eight events at a time: 9 is mapped to a free one; 16 is invalid."""
    b = np.zeros((8, N), np.float32)
    holds(compiled(ping_pong(True, 9), HAND), [b], [np.ones_like(b)])
    assert refused(ping_pong(True, 16), HAND).code == "T161"


def overlapping(ordered: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid), T.Scope("V"):
            a, b = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32")
            T.annotate_address({a: 0, b: 128})
            T.copy(A, a)
            T.barrier_all()
            T.copy(a, B)
            if ordered:
                T.barrier_all()
            T.tile.fill(b, 5.0)
            T.barrier_all()
            T.copy(b, C)

    return main


def test_a_store_is_done_before_its_bytes_get_another_tile() -> None:
    a, b, c = line(), np.zeros(N, np.float32), np.zeros(N, np.float32)
    holds(compiled(overlapping(True), HAND), [a, b, c], [a, np.full(N, 5, np.float32)])
    holds(compiled(overlapping(False), AUTO), [a, b, c], [a, np.full(N, 5, np.float32)])
    kernel = compiled(overlapping(False), HAND)
    assert reported(kernel, a, b, c) == [("S201", "WAR", "b")]
    (hazard,) = kernel.last_launch.hazards
    assert (hazard.start, hazard.end) == (128, 256)


def loaded_stored_used(stored: bool, used: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid), T.Scope("V"):
            x, y = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32")
            T.copy(A, x)
            if stored:
                T.set_flag("mte2", "mte3", 0)
                T.wait_flag("mte2", "mte3", 0)
            T.copy(x, B)
            if used:
                T.set_flag("mte2", "v", 0)
                T.wait_flag("mte2", "v", 0)
            T.tile.add(y, x, x)
            T.barrier_all()
            T.copy(y, C)

    return main


def test_a_store_between_a_load_and_its_use() -> None:
    a, zero = line(), np.zeros(N, np.float32)
    holds(compiled(loaded_stored_used(False, False), AUTO), [a, zero, zero], [a, a + a])
    broken = compiled(loaded_stored_used(True, False), HAND)
    assert reported(broken, a, zero, zero) == [("S201", "RAW", "x")]
    holds(compiled(loaded_stored_used(True, True), HAND), [a, zero, zero], [a, a + a])


def test_three_slots_need_no_full_barrier() -> None:
    @T.prim_func
    def main(A: T.Tensor((9, N), "float32"), B: T.Tensor((9, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            for i in T.Pipelined(9, num_stages=3):
                T.copy(A[i, :], x)
                T.tile.add(x, x, x)
                T.copy(x, B[i, :])

    a = RNG.standard_normal((9, N)).astype(np.float32)
    kernel = compiled(main, AUTO)
    holds(kernel, [a, np.zeros_like(a)], [a + a])
    loop = kernel.mlir().partition("scf.for")[2]
    assert loop.count("PIPE_ALL") == 1  # the kernel's end


def test_more_events_at_a_time_than_there_are() -> None:
    @T.prim_func
    def main(B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid), T.Scope("V"):
            x = T.alloc_ub((N,), "float32")
            T.tile.fill(x, 1.0)
            for event in T.unroll(9):
                T.set_flag("v", "mte3", event)
            for event in T.unroll(9):
                T.wait_flag("v", "mte3", event)
            T.copy(x, B)

    with pytest.raises(TileError) as caught:
        compiled(main, HAND)(np.zeros(N, np.float32))
    assert caught.value.code == "T505" and caught.value.location is not None, str(caught.value)


UNKNOWN = """func.func @k() {
  %c0 = arith.constant 0 : i64
  %x = hivm.hir.pointer_cast(%c0) : memref<64xf32, #hivm.address_space<ub>>
  "other.clear"(%x) : (memref<64xf32, #hivm.address_space<ub>>) -> ()
  return
}
"""


def test_an_unknown_op_may_have_any_effect(
        tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kernel.mlir"
    file.write_text(UNKNOWN)
    assert command(["opt", str(file), "-p", "insert-sync"]) == 1
    output = capsys.readouterr().err
    assert "other.clear" in output and f"{file}:4:3" in output, output


def test_clearing_directly_after_the_last_read() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, N), "float32"), B: T.Tensor((4, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, total = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32")
            for i in T.serial(4):
                T.tile.fill(total, 0.0)
                T.copy(A[i, :], x)
                T.tile.add(total, total, x)
                T.copy(total, B[i, :])

    a = RNG.standard_normal((4, N)).astype(np.float32)
    holds(compiled(main, AUTO), [a, np.zeros_like(a)], [a])
