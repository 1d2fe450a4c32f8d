"""Unit flags: pipe M and pipe FIX pass blocks of L0C to each other, each block on its own, without events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import simulate
from tilelang_npu.simulator.machine.op_records import Footprint, Multiply, Transfer
from tilelang_npu.simulator.time.pipe_steps import JOIN, PIPE, RELEASE, RUN, _blocks

TILES = 6


def alternating(slots: int, flag: int | None, *, hand: bool = False) -> Any:
    """Products into ``slots`` accumulators in turn, each stored before the next but ``slots - 1``."""
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((TILES, 128, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1((128, 64), "float16")
            b = T.alloc_L1((64, 128), "float16")
            left = T.alloc_L0A((128, 64), "float16")
            right = T.alloc_L0B((64, 128), "float16")
            acc = T.alloc_L0C((slots, 128, 128), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.copy(B, b)
                if hand:
                    T.barrier_all()
                T.copy(a, left)
                T.copy(b, right)
                if hand:
                    T.barrier_all()
                for i in T.serial(TILES):
                    T.mma(left, right, acc[i % slots, :, :], init=True, unit_flag=flag)
                    T.copy(acc[i % slots, :, :], C[i, :, :], unit_flag=flag)
                if hand:
                    T.barrier_all()

    configs = {"tl.ascend_auto_sync": not hand, "tl.ascend_memory_planning": True}
    return tilelang.compile(main, out_idx=[2], target="ascendc", pass_configs=configs)


@pytest.fixture
def operands(rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.integers(-4, 5, (128, 64)).astype(np.float16), rng.integers(-4, 5, (64, 128)).astype(np.float16)


@pytest.mark.parametrize("hand", [False, True])
@pytest.mark.parametrize("slots", [1, 2])
def test_unit_flags_order_what_events_order(slots: int, hand: bool, operands: tuple[Any, Any]) -> None:
    kernel = alternating(slots, 0b11, hand=hand)
    found = kernel(*operands)
    product = operands[0].astype(np.float32) @ operands[1].astype(np.float32)
    np.testing.assert_array_equal(found, np.broadcast_to(product, (TILES, 128, 128)))
    assert not kernel.last_launch.hazards
    assert "PIPE_FIX>, <EVENT" not in kernel.mlir()
    assert "<PIPE_FIX>, <PIPE_M>" not in kernel.mlir()


def in_parts(last: int) -> Any:
    """A sum of four products into one accumulator in a loop, of which the product ``last`` passes the blocks on."""
    @T.prim_func
    def main(A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1((32, 64), "float16")
            b = T.alloc_L1((64, 32), "float16")
            left = T.alloc_L0A((32, 16), "float16")
            right = T.alloc_L0B((16, 32), "float16")
            acc = T.alloc_L0C((32, 32), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.copy(B, b)
                for k in T.serial(4):
                    T.copy(a[0, k * 16], left)
                    T.copy(b[k * 16, 0], right)
                    T.mma(left, right, acc, init=(k == 0), unit_flag=T.if_then_else(k == last, 3, 2))
                T.copy(acc, C, unit_flag=3)

    return tilelang.compile(main, out_idx=[2], target="ascendc",
                            pass_configs={"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True})


def test_a_unit_flag_that_depends_on_the_iteration(rng: np.random.Generator) -> None:
    a, b = rng.integers(-4, 5, (32, 64)).astype(np.float16), rng.integers(-4, 5, (64, 32)).astype(np.float16)
    kernel = in_parts(3)
    for run in (kernel, kernel.interpret):
        np.testing.assert_array_equal(run(a, b), a.astype(np.float32) @ b.astype(np.float32))
    assert not kernel.last_launch.hazards
    assert "PIPE_FIX>, <EVENT" not in kernel.mlir()
    for last, message in ((1, "the product waits for ever"), (4, "the copy out of L0C waits for ever")):
        with pytest.raises(TileError, match=message) as caught:
            in_parts(last)(a, b)
        assert caught.value.code == "S307"


def test_without_flags_the_sanitizer_reports_the_races(operands: tuple[Any, Any]) -> None:
    kernel = alternating(2, None, hand=True)
    kernel(*operands)
    assert {(hazard.code, hazard.kind) for hazard in kernel.last_launch.hazards} >= {("S201", "RAW"), ("S201", "WAR")}


def test_a_product_waits_for_the_copy_of_its_own_blocks_only(operands: tuple[Any, Any]) -> None:
    """With two accumulators, a product overlaps the copy of the other one; with one, they alternate."""
    cycles = {}
    for slots in (1, 2):
        kernel = alternating(slots, 0b11)
        kernel(*operands)
        cycles[slots] = kernel.last_launch.cycles
    assert cycles[2] < 0.95 * cycles[1]


def test_unit_flags_take_no_longer_than_events(operands: tuple[Any, Any]) -> None:
    for slots in (1, 2):
        times = []
        for flag in (0b11, None):
            kernel = alternating(slots, flag)
            kernel(*operands)
            times.append(kernel.last_launch.cycles)
        assert times[0] <= times[1]


def test_steps_of_a_product_and_of_a_copy(operands: tuple[Any, Any]) -> None:
    launch = alternating(2, 0b11).trace(*operands)
    steps = {}
    for expansion, stream in zip(launch.expansions, launch.recorded.blocks[0].streams, strict=True):
        for event in dict.fromkeys(stream):
            work = expansion.records[event if isinstance(event, int) else event[0]].work
            if isinstance(work, Multiply | Transfer) and work.unit_flag:
                steps.setdefault(type(work), []).append(expansion.of(event))
    for kind, pipe, other in ((Multiply, "M", "FIX"), (Transfer, "FIX", "M")):
        assert {one[0].blocks for one in steps[kind]} == {(1 << 128) - 1, ((1 << 128) - 1) << 128}  # 64 KB each
        for join, run, release in steps[kind]:
            assert (join.kind, run.kind, release.kind) == (JOIN, RUN, RELEASE)
            assert (join.pipe, join.other, release.pipe) == (PIPE[pipe], PIPE[other], PIPE[pipe])
            assert join.blocks == release.blocks


@pytest.mark.parametrize(("where", "blocks"), [
    (Footprint(0, (4,), (4,), 4), {0}), (Footprint(512, (128,), (4,), 4), {1}), (Footprint(508, (2,), (4,), 4), {0, 1}),
    (Footprint(0, (2, 256), (4096, 4), 4), {0, 1, 8, 9}), (Footprint(0, (0, 256), (4096, 4), 4), set())])
def test_blocks_of_a_footprint(where: Footprint, blocks: set[int]) -> None:
    assert {bit for bit in range(64) if _blocks(where) >> bit & 1} == blocks


HIVM = """
!a = memref<16x16xf16, #hivm.address_space<gm>>
!c = memref<16x16xf32, #hivm.address_space<gm>>
!l1 = memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
!l0c = memref<1x1x16x16xf32, #hivm.address_space<cc>>
func.func @k(%A: !a, %C: !c, %flag: i1) attributes {
    hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  %p = arith.constant 0 : i64
  %true = arith.constant true
  %n = arith.constant 16 : index
  %a = hivm.hir.pointer_cast(%p) : !l1
  %c = hivm.hir.pointer_cast(%p) : !l0c
  hivm.hir.nd2nz {dst_continuous} ins(%A : !a) outs(%a : !l1)
  hivm.hir.pipe_barrier[<PIPE_ALL>]
  hivm.hir.mmadL1 ins(%a, %a, %true, %n, %n, %n : !l1, !l1, i1, index, index, index) outs(%c : !l0c) MMAD
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : !l0c) outs(%C : !c) FIXPIPE
  return
}
"""
PASS, KEEP, COPY = (f"unit_flag_mode([#hivm.unit_flag<{mode}>])" for mode in (
    "ENABLED_WITH_UPDATE", "ENABLED_WITHOUT_UPDATE", "ENABLED_WITH_UPDATE"))


@pytest.mark.parametrize(("mmad", "fixpipe", "hangs"), [
    (PASS, COPY, False), (KEEP, COPY, True), ("", COPY, True),
    ("unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>]) unit_flag_cond(%flag)", COPY, False)])
def test_unit_flags_of_given_hivm(mmad: str, fixpipe: str, hangs: bool) -> None:
    """Flags that depend on conditions are taken to be set as they are needed."""
    module = parse_module(HIVM.replace("MMAD", mmad).replace("FIXPIPE", fixpipe))
    given, found = np.ones((16, 16), np.float16), np.zeros((16, 16), np.float32)
    if hangs:
        with pytest.raises(TileError, match="the copy out of L0C waits for ever for 2 of its 2 blocks") as caught:
            simulate(module, [given, found, True], blocks=1, hazards=True)
        assert caught.value.code == "S307"
        return
    assert not simulate(module, [given, found, True], blocks=1, hazards=True).hazards
    np.testing.assert_array_equal(found, 16)
