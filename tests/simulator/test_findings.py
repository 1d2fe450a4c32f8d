"""One missing wait is one finding, however many pairs it leaves in no order; two missing waits are two."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import Location
from tilelang_npu.simulator.sanitizer.findings import Finding, causes, merged
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Site

N = 64


def site(line: int, pipe: str, number: int, core: str = "AIV0", iteration: int = 0) -> Site:
    return Site("vadd", Location("kernel.py", line), pipe, core, iteration, "dst", number)


def race(first: Site, second: Site, **facts: Any) -> Hazard:
    given = {"code": "S201", "kind": "RAW", "memory": "UB", "start": 0, "end": 256, "missing": "an event", "block": 0, **facts}
    return Hazard(first=first, second=second, **given)


LOAD_A, LOAD_B, ADD, SUB = site(3, "MTE2", 0), site(4, "MTE2", 1), site(6, "V", 4), site(7, "V", 5)


def test_pairs_around_one_place_are_one_finding() -> None:
    (found,) = causes([race(one, two) for one in (LOAD_A, LOAD_B) for two in (ADD, SUB)], "k", "chip")
    assert found.hazard == race(LOAD_B, ADD)  # the nearest pair
    assert len(found.others) == 3 and (found.kernel, found.chip) == ("k", "chip")
    assert str(found).endswith(
        "  and 3 more with the same cause\n"
        "    S201  line 3 (MTE2) -> line 6 (V)  RAW, UB bytes 0..255\n"
        "    S201  line 4 (MTE2) -> line 7 (V)  RAW, UB bytes 0..255\n"
        "    S201  line 3 (MTE2) -> line 7 (V)  RAW, UB bytes 0..255")


def test_equal_lines_are_shown_once() -> None:
    """Reads of blocks that differ only in the bytes of the result look alike in one line."""
    reads = [Hazard("S221", "unwritten", LOAD_A, ADD, "L1", 0, end, f"{block} bytes depend on them", block, "k")
             for block, end in enumerate((64, 64, 64, 128, 128))]
    (found,) = causes(reads[:3])
    assert len(found.others) == 2 and str(found) == str(found.hazard)
    (found,) = causes(reads)
    assert len(found.others) == 4
    assert str(found) == (f"{found.hazard}\n  and 1 more with the same cause\n"
                          "    S221  line 3 (MTE2) -> line 6 (V)  unwritten, L1 bytes 0..127 of k")


def test_pairs_one_after_the_other_are_two() -> None:
    later = race(site(9, "MTE2", 7), site(10, "V", 8))
    assert [found.hazard for found in causes([later, race(LOAD_A, ADD)])] == [race(LOAD_A, ADD), later]


def test_other_pipes_are_another_finding_unless_barriers_of_all_pipes_order_the_core() -> None:
    pairs = [race(LOAD_A, ADD), race(LOAD_B, site(7, "MTE3", 5))]
    assert len(causes(pairs)) == 2
    assert len(causes([race(one.first, one.second, barriers=True) for one in pairs])) == 1


def test_a_pair_across_iterations_belongs_to_the_place_it_passes() -> None:
    around = race(site(8, "MTE3", 6), LOAD_A, kind="WAR")
    assert len(causes([around, race(site(8, "MTE3", 6), LOAD_B, kind="WAR")])) == 1


def test_both_vector_cores_are_one_cause() -> None:
    pairs = [race(site(3, "MTE2", 0, core), site(6, "V", 4, core)) for core in ("AIV0", "AIV1")]
    assert len(causes(pairs)) == 1


def test_a_write_that_does_not_wait_for_a_read_does_not_wait_for_the_write_before_it() -> None:
    war, waw = race(ADD, LOAD_A, kind="WAR"), race(LOAD_A, LOAD_A, kind="WAW")
    (found,) = causes([waw, war])
    assert found.hazards == (war, waw)
    assert len(causes([waw, race(ADD, LOAD_A, kind="WAR", start=512, end=600)])) == 2  # other bytes


def flag(code: str, pipe: str, number: int, waiter: str = "V", name: str = "EVENT_ID0") -> Hazard:
    return Hazard(code, "flag", site(5, pipe, number), None, "", 0, 0, f"{name} for {waiter} is set", 0, flag=(name, waiter))


def test_a_flag_without_its_wait_belongs_to_the_race() -> None:
    left, twice = flag("S211", "MTE2", 2), flag("S212", "MTE2", 2)
    (found,) = causes([left, race(LOAD_A, ADD), twice])
    assert found.hazards == (race(LOAD_A, ADD), left, twice)
    assert [one.code for one in causes([race(LOAD_A, ADD), flag("S211", "MTE2", 2, "MTE3")])] == ["S211", "S201"]
    assert [one.hazards for one in causes([left, twice])] == [(left, twice)]


def test_blocks_at_odds_over_one_tensor() -> None:
    def between(first: int, second: int, buffer: str) -> Hazard:
        return race(site(first, "MTE3", first), site(second, "MTE2", second), code="S203", buffer=buffer, memory="GM")

    found = causes([between(8, 8, "Y"), between(8, 3, "Y"), between(20, 21, "Y"), between(8, 8, "Z")])
    assert sorted(len(one.hazards) for one in found) == [1, 1, 2]


def test_the_order_is_that_of_the_lines_and_no_other() -> None:
    pairs = [race(site(line, "MTE2", 2 * line), site(line + 1, "V", 2 * line + 1)) for line in (30, 2, 100, 9)]
    for shuffled in (pairs, pairs[::-1], pairs[2:] + pairs[:2]):
        assert [found.hazard.first.location.line for found in causes(shuffled)] == [2, 9, 30, 100]


def test_merging_keeps_each_cause_once() -> None:
    one, two = causes([race(LOAD_A, ADD)]), causes([race(LOAD_A, ADD, block=5), race(LOAD_B, ADD)])
    (both,) = merged([*two, *one, *one])
    assert both.hazards == (race(LOAD_B, ADD), race(LOAD_A, ADD, block=5))
    kernels = merged(Finding(one[0].hazard, kernel=name) for name in ("b", "a", "b"))
    assert [found.kernel for found in kernels] == ["a", "b"]
    assert len(merged([*one, Finding(one[0].hazard, allowed="a reason")])) == 2


def sums(count: int) -> Any:
    @T.prim_func
    def main(X: T.Tensor((count, N), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            tile = T.alloc_ub((count, N), "float32")
            y = T.alloc_ub((N,), "float32")
            z = T.alloc_ub((N,), "float32")
            T.copy(X, tile)
            T.tile.exp(y, tile[0, :])
            T.tile.exp(z, tile[1, :])
            T.tile.add(y, y, z)
            T.copy(y, Y)

    return main


@pytest.mark.parametrize("kind", ["wait_flag", "both"])
def test_what_is_taken_out_of_a_kernel_is_one_finding(kind: str, rng: np.random.Generator) -> None:
    """Each event that the compiler put in, without its wait, and without set and wait."""
    kernel = tilelang.compile(sums(4), out_idx=[-1], target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    x = rng.standard_normal((4, N)).astype(np.float32)
    kernel(x)
    lines = kernel.mlir(locations=True).split("\n")
    waits = [place for place, line in enumerate(lines) if "hivm.hir.wait_flag[" in line]
    assert len(waits) >= 2
    for place in waits:
        wanted = re.search(r"wait_flag(\[.*?\])", lines[place])[1]
        gone = {place}
        if kind == "both":
            gone.add(max(n for n in range(place) if f"set_flag{wanted}" in lines[n]))
        text = "\n".join(line for number, line in enumerate(lines) if number not in gone)
        blocks = kernel.last_launch.blocks
        launch = simulator.simulate(parse_module(text), [x, np.zeros(N, np.float32)], blocks=blocks, hazards=True)
        assert len(causes(launch.hazards)) == 1, "\n".join(map(str, causes(launch.hazards)))


def two_hand_overs(ready: bool, between: bool) -> Any:
    """Cube hands over one tile, and after that another; by flags for each, and one the other way between them."""
    @tilelang.jit(target="ascendc")
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((32, 16), "float16"), W: T.Tensor((32, 16), "float32"), B: T.Tensor((32, 16), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_L1((16, 16), "float16")
                c = T.alloc_L0C((16, 16), "float32")
                x = T.alloc_ub((8, 16), "float32")
                y = T.alloc_ub((8, 16), "float32")
                with T.Scope("C"):
                    T.copy(A[0, 0], a)
                    T.barrier_all()
                    T.gemm_v0(a, a, c, init=True)
                    T.barrier_all()
                    T.copy(c, W[0, 0])
                    if ready:
                        T.set_cross_flag("FIX", 0)
                    if between:
                        T.wait_cross_flag(1)
                    T.copy(c, W[16, 0])
                    if ready:
                        T.set_cross_flag("FIX", 2)
                with T.Scope("V"):
                    if ready:
                        T.wait_cross_flag(0)
                    T.copy(W[vid * 8, 0], x)
                    if between:
                        T.set_cross_flag("MTE2", 1)
                    if ready:
                        T.wait_cross_flag(2)
                    T.copy(W[16 + vid * 8, 0], y)
                    T.barrier_all()
                    T.copy(x, B[vid * 8, 0])
                    T.copy(y, B[16 + vid * 8, 0])

        return main

    return factory()


@pytest.mark.parametrize(("ready", "between", "count"), [(True, True, 0), (True, False, 0), (False, False, 1),
                                                         (False, True, 2)])
def test_hand_overs_that_no_single_flag_orders_are_two(ready: bool, between: bool, count: int) -> None:
    kernel = two_hand_overs(ready, between)
    kernel(np.ones((32, 16), np.float16), *np.zeros((2, 32, 16), np.float32))
    found = causes(kernel.last_launch.hazards)
    assert [one.code for one in found] == ["S202"] * count
    assert sorted(len(one.hazards) for one in found) == {0: [], 1: [4], 2: [2, 2]}[count]  # AIV0 and AIV1
    assert len({one.hazard.first.location for one in found}) == count
