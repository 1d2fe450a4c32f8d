"""Planned addresses: nothing that is alive together overlaps, and small problems are packed as well as an exact search does."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from random import Random

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp

import tilelang_npu as tilelang
import tilelang_npu.language as T
from captured import KERNELS, captured
from tilelang_npu.analysis.allocation_live_ranges import LiveRange
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.target import BLOCK
from tilelang_npu.transforms.hivm import plan_memory
from tilelang_npu.transforms.hivm.plan_memory import MemoryPlan, PlanMemory, plan
from tilelang_npu.transforms.lower.lower_to_hivm import ADDRESS

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(file for file in FOLDER.glob("*.py") if "expert" not in file.stem)


def _lives(problem: list[tuple[int, int, int]]) -> list[LiveRange]:
    """Lives of allocations of (bytes, start, length), in UB."""
    text = "\n".join(f"%a{i} = memref.alloc() : memref<{size}xi8, #hivm.address_space<ub>>"
                     for i, (size, _, _) in enumerate(problem))
    module = parse_module(f"func.func @k() {{\n{text}\nreturn\n}}", verify=False)
    allocations = [op for op in module.walk() if isinstance(op, memref.AllocOp)]
    return [LiveRange(op, "ub", size, 1, start, start + length)
            for op, (size, start, length) in zip(allocations, problem, strict=True)]


ALLOCATION = st.tuples(st.integers(1, 4).map(lambda n: 32 * n), st.integers(0, 6), st.integers(0, 3))
PROBLEM = st.lists(ALLOCATION, min_size=1, max_size=6)


@settings(max_examples=60)
@given(problem=PROBLEM)
def test_what_is_alive_together_does_not_overlap(problem: list[tuple[int, int, int]]) -> None:
    lives = _lives(problem)
    total = sum(size for size, _, _ in problem)
    try:
        placed = plan(lives, "ub", total - 1, reuse=True)
    except TileError:
        placed = plan(lives, "ub", total, reuse=True)
    for one in lives:
        for other in lives:
            if one is not other and one.overlaps(other):
                a, b = placed[one][0], placed[other][0]
                assert a + one.nbytes <= b or b + other.nbytes <= a
    assert all(address % 32 == 0 for addresses in placed.values() for address in addresses)


def _first_fit(lives: tuple[LiveRange, ...]) -> int:
    taken: list[tuple[int, LiveRange]] = []
    for life in lives:
        address = 0
        for start, other in sorted(taken, key=lambda entry: entry[0]):
            if other.overlaps(life) and start < address + life.nbytes and start + other.nbytes > address:
                address = start + other.nbytes
        taken.append((address, life))
    return max(start + life.nbytes for start, life in taken)


@settings(max_examples=150)
@given(problem=PROBLEM)
def test_what_fits_is_found(problem: list[tuple[int, int, int]]) -> None:
    """Placed in the order of its addresses, the smallest plan comes out of first fit: all orders are an exact search."""
    lives = _lives(problem)
    best = min(_first_fit(order) for order in permutations(lives))
    placed = plan(lives, "ub", best, reuse=True)
    assert max(placed[life][0] + life.nbytes for life in lives) <= best
    with pytest.raises(TileError):
        plan(lives, "ub", best - 32, reuse=True)


def _peak(lives: list[LiveRange]) -> int:
    """Bytes that are alive together at the worst point: no plan takes fewer."""
    blocks = [(one, -(-one.nbytes // BLOCK) * BLOCK * one.slots) for one in lives]
    return max(sum(nbytes for one, nbytes in blocks if one.start <= at.start <= one.end) for at in lives)


@settings(max_examples=40)
@given(problem=st.lists(st.tuples(st.integers(1, 40).map(lambda n: 32 * n), st.integers(0, 60), st.integers(0, 20)),
                        min_size=12, max_size=40))
def test_many_take_little_more_than_is_alive(problem: list[tuple[int, int, int]]) -> None:
    lives = _lives(problem)
    plan(lives, "ub", int(1.15 * _peak(lives)) + 32, reuse=True)


@settings(max_examples=60)
@given(problem=st.lists(st.tuples(st.integers(1, 3).map(lambda n: 32 * n), st.integers(0, 9), st.integers(0, 4)), min_size=2,
                        max_size=9), part=st.integers(40, 100), numbers=st.randoms(use_true_random=False))
def test_a_search_that_ends_where_nothing_better_can_be_finds_what_the_whole_search_finds(
        problem: list[tuple[int, int, int]], part: int, numbers: Random) -> None:
    lives = _lives(problem)
    lives = [replace(one, slots=numbers.randint(1, 2), heirs=frozenset(
        other.value for other in lives if one.start < one.end == other.start and numbers.random() < 0.5))
        for one in lives]
    capacity = _peak(lives) * part // 100

    def outcome() -> object:
        try:
            return [(life.label, addresses) for life, addresses in plan(lives, "ub", capacity, reuse=True).items()]
        except TileError as error:
            return str(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_memory, "FEW", 5)
        patch.setattr(plan_memory, "TRIES", 30)
        found = outcome()
        patch.setattr(plan_memory, "_least_bytes", lambda *_: 0)
        assert outcome() == found


@pytest.mark.parametrize(("count", "complete"), [(3, True), (4, False)])
def test_all_orders_of_few_allocations_are_tried(count: int, complete: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_memory, "FEW", 3)
    monkeypatch.setattr(plan_memory, "TRIES", 5)
    lives = _lives([(32 * (1 + index), index, 1) for index in range(count)])
    orders = [tuple(order) for order in plan_memory._orders(lives)]
    assert (set(orders) >= set(permutations(lives))) is complete
    assert len(orders) == 3 + (6 if complete else 5)


def test_random_orders_are_near_the_order_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least half of the allocations keep their order among each other."""
    monkeypatch.setattr(plan_memory, "TRIES", 20)
    lives = _lives([(32 * (60 - index), index, 1) for index in range(40)])  # the largest first
    for order in list(plan_memory._orders(lives))[3:]:
        ends: list[int] = []  # at index n, the least last element of an ascending sequence of n + 1 elements
        for life in order:
            place = bisect_left(ends, lives.index(life))
            ends[place:place + 1] = [lives.index(life)]
        assert len(ends) >= 20


def test_without_reuse_every_byte_has_one_owner() -> None:
    lives = _lives([(64, 0, 1), (64, 5, 1)])
    assert sorted(address for addresses in plan(lives, "ub", 128, reuse=False).values() for address in addresses) == [0, 64]
    with pytest.raises(TileError, match="memory planning is off") as caught:
        plan(lives, "ub", 64, reuse=False)
    assert caught.value.code == "T104"


def test_an_overflow_names_memory_planning_where_all_fits_with_it() -> None:
    for sizes, helps in (((64, 64), True), ((96, 32), False)):  # of 64 bytes
        with pytest.raises(TileError) as caught:
            plan(_lives([(sizes[0], 0, 1), (sizes[1], 5, 1)]), "ub", 64, reuse=False)
        assert ("switch memory planning on" in str(caught.value.help)) is helps


def test_an_overflow_tells_what_is_alive_when_all_slots_are_given_up() -> None:
    """Two slots of 160 KiB are 320; with one slot, the other buffer is too large, and fewer stages would not help."""
    text = """
func.func @k(%X: memref<40960xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  %b = memref.alloc() : memref<16384xf32, #hivm.address_space<ub>>
  hivm.hir.vrelu ins(%b : memref<16384xf32, #hivm.address_space<ub>>) outs(%b : memref<16384xf32, #hivm.address_space<ub>>)
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<40960xf32, #hivm.address_space<ub>>
    annotation.mark %a {hivm.multi_buffer = 2 : i32} : memref<40960xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%X : memref<40960xf32, #hivm.address_space<gm>>) outs(%a : memref<40960xf32, #hivm.address_space<ub>>)
    hivm.hir.vrelu ins(%b : memref<16384xf32, #hivm.address_space<ub>>) outs(%b : memref<16384xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%a : memref<40960xf32, #hivm.address_space<ub>>) outs(%X : memref<40960xf32, #hivm.address_space<gm>>)
  }
  return
}
"""
    with pytest.raises(TileError, match="UB needs 229 376 bytes") as caught:
        PlanMemory().apply(make_context(), parse_module(text))
    assert [note.split(",")[0].strip() for note in caught.value.notes[1:]] == ["a 163 840 bytes", "b 65 536 bytes"]
    assert caught.value.help == "shrink the tiles to 85 % or less"


@pytest.mark.parametrize("script", [*EXAMPLES, *KERNELS], ids=lambda script: script.stem)
def test_kernels_fit_into_little_more_than_is_alive(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[MemoryPlan] = []
    layouts = PlanMemory._layouts

    def observed(self: PlanMemory, module: ModuleOp) -> list[MemoryPlan]:
        found = layouts(self, module)
        for layout in found:
            lives = [life for life in layout.addresses if ADDRESS not in life.op.attributes]
            if lives:
                room = max(int(1.02 * _peak(lives)), *(life.nbytes for life in lives))
                placed = plan(lives, layout.space, room, reuse=True)
                made.append(replace(layout, addresses=placed))
        return found

    monkeypatch.setattr(PlanMemory, "_layouts", observed)
    captured(script)
    for layout in made:
        entries = [(life, at) for life, addresses in layout.addresses.items() for at in addresses]
        for (one, a), (other, b) in combinations(entries, 2):
            if one is other or one.overlaps(other):
                assert a == b or a + one.nbytes <= b or b + other.nbytes <= a
    assert made or "expert" in script.stem


@pytest.mark.parametrize("short", ["float16", "bfloat16"])
def test_a_conversion_in_the_bytes_of_its_input(short: str) -> None:
    """240 000 bytes of both in the 196 608 of UB, where the result takes the first half of its input's bytes."""
    length = 40000

    @T.prim_func
    def main(X: T.Tensor((1, length), "float32"), Y: T.Tensor((1, length), short)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((length,), "float32")
            y = T.alloc_shared((length,), short)
            T.copy(X[0, 0:length], x)
            T.vcast(x, y, "rint")
            T.copy(y, Y[0, 0:length])

    kernel = tilelang.compile(main, target="npuir")
    x = np.random.default_rng(0).standard_normal((1, length)).astype(np.float32)
    wanted = x.astype(np.float16 if short == "float16" else ml_dtypes.bfloat16)
    y = np.zeros_like(wanted)
    kernel(x, y)
    assert kernel.last_launch.hazards == []
    assert y.tobytes() == wanted.tobytes()
