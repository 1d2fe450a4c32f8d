"""Memory of cores that is reused from launch to launch: simultaneous launches do not share it, and repeated launches allocate
no new memory.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.machine import memory_pool
from tilelang_npu.simulator.machine.memory import Bytes, fresh
from tilelang_npu.simulator.machine.memory_pool import MemoryArena, borrow_arena

SIZE = 1024


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of fresh memory that is asked for; nothing is kept at first."""
    sizes: list[int] = []

    def made(size: int) -> Bytes:
        if size:
            sizes.append(size)
        return fresh(size)

    monkeypatch.setattr(memory_pool, "fresh", made)
    monkeypatch.setattr(memory_pool, "_kept", [])
    monkeypatch.setattr(memory_pool, "_MOST", 2)
    return sizes


@pytest.mark.parametrize("held", [0, 100, 4096])
def test_parts_lie_apart_until_they_are_given_up(held: int) -> None:
    one = MemoryArena(fresh(held))
    parts = [one.part(size) for size in (1, 100, 0, 1000)]
    for number, part in enumerate(parts):
        part.fill(number)
    assert [set(part.tolist()) for part in parts] == [{0}, {1}, set(), {3}]
    assert [part.size for part in parts] == [1, 100, 0, 1000]
    one.clear()
    again = one.part(4000)
    assert again.size == 4000
    assert np.shares_memory(again, parts[0]) == (held == 4096)


def test_the_next_one_has_room_for_all_that_this_one_asked_for(asked: list[int]) -> None:
    for _ in range(3):
        with borrow_arena() as one:
            one.part(1000)
            one.clear()
            one.part(3000)
            one.part(500)
    assert sorted(asked[:3]) == [500, 1000, 3000]
    assert len(asked) == 4
    assert asked[3] >= 3500


def test_arrays_in_use_are_not_given_out_again(asked: list[int]) -> None:
    with borrow_arena() as one:
        one.part(4096)
    with borrow_arena() as one, borrow_arena() as other:
        assert not np.shares_memory(one.part(4096), other.part(4096))
    with borrow_arena() as first, borrow_arena() as second, borrow_arena() as third:
        parts = [each.part(4096) for each in (first, second, third)]
        assert not any(np.shares_memory(a, b) for a, b in zip(parts, [*parts[1:], parts[0]], strict=True))
    assert len(memory_pool._kept) == 2
    del asked[:]
    with borrow_arena() as one, borrow_arena() as other:
        one.part(4096)
        other.part(4096)
    assert not asked


def test_where_something_fails_nothing_is_kept(asked: list[int]) -> None:
    def fail() -> None:
        with borrow_arena() as one:
            one.part(100)
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert asked == [100]
    assert not memory_pool._kept


def _doubled() -> Any:
    @T.prim_func
    def doubled(X: T.Tensor((SIZE, SIZE), "float32"), Y: T.Tensor((SIZE, SIZE), "float32")) -> None:
        with T.Kernel(SIZE // 8, is_npu=True) as (block, _):
            x = T.alloc_ub((8, SIZE), "float32")
            T.copy(X[block * 8, 0], x)
            T.vadd(x, x, x)
            T.copy(x, Y[block * 8, 0])

    return tilelang.compile(doubled, out_idx=[-1], target="npuir")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_launches_that_are_alike_need_fresh_memory_once(
        jobs: str, asked: list[int], monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setenv("TILELANG_NPU_JOBS", jobs)
    kernel = _doubled()
    x = rng.standard_normal((SIZE, SIZE), np.float32)
    for _ in range(12):
        np.testing.assert_array_equal(kernel(x), x + x)
    assert 2 <= len(asked) <= 3 * int(jobs)  # for each thread, for batches of two sizes, and then the reserve


def test_a_workspace_that_nothing_touches_is_the_same_for_all(rng: np.random.Generator) -> None:
    kernel = _doubled()
    x = rng.standard_normal((SIZE, SIZE), np.float32)
    given = []
    for _ in range(2):
        kernel(x)
        bound = kernel.last_launch.recorded.bound
        given += [bound.arrays[number] for number in sorted(kernel.program.workspaces - kernel.program.used)]
    assert len(given) == 2
    assert given[0] is given[1]
    assert given[0].size == kernel.program.workspace * kernel.last_launch.blocks


def test_launches_at_once_do_not_meet(asked: list[int], monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setenv("TILELANG_NPU_JOBS", "2")
    kernel = _doubled()
    given = [rng.standard_normal((SIZE, SIZE), np.float32) for _ in range(3)]
    found: dict[int, list[Any]] = {}

    def call(number: int) -> None:
        found[number] = [kernel(given[number]) for _ in range(5)]

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(given))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked
    for number, x in enumerate(given):
        for result in found[number]:
            np.testing.assert_array_equal(result, x + x)
