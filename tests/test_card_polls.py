"""Loops of a kernel that poll a tensor which another card writes: values, what they order, kernels that hang."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError, pods
from tilelang_npu.pods import Card

INTERPRETED = pytest.mark.parametrize("interpreted", [False, True], ids=["compiled", "interpreted"])
ROWS = 4
"""Rows of 64 elements that a card has."""


@pytest.fixture(autouse=True)
def _interpret(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.callspec.params.get("interpreted") if hasattr(request.node, "callspec") else False:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")


def failure(body: Any, ranks: int = 2, **settings: Any) -> TileError:
    with pytest.raises(TileError) as caught:
        pods.run(body, ranks, heap_bytes=1 << 18, **{"timeout": 60.0, **settings})
    return caught.value


@tilelang.jit(target="ascendc")
def pass_on(rank: int, ranks: int, completes: bool = True, polls: bool = True, puts_flags: bool = True,
            by_element: bool = False, resets: bool = True) -> Any:
    """Each card passes the parts that it gets to the next card, and puts a flag after each: an all-gather in a ring."""
    after = (rank + 1) % ranks

    @T.prim_func
    def main(Y: T.Tensor((ranks * ROWS, 64), "float32"), F: T.Tensor((ranks, 8), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, vid):
            tile = T.alloc_ub((ROWS, 64), "float32")
            ready = T.alloc_ub((8,), "float32")
            flags = T.alloc_ub((8,), "float32")
            with T.Scope("V"):
                if vid == 0:
                    T.tile.fill(ready, 1.0)
                    for step in T.serial(ranks - 1):
                        part = (rank + ranks - step) % ranks
                        if polls and step > 0:
                            if by_element:
                                while F[part, 0] < 1.0:
                                    pass
                            else:
                                flags[0] = 0.0
                                while flags[0] < 1.0:
                                    T.copy(F[part, 0], flags)
                                    T.barrier_all()
                        T.barrier_all()
                        T.copy(Y[part * ROWS, 0], tile)
                        T.barrier_all()
                        T.shmem_ub_put_nbi(tile, Y, ROWS * 64, after, part * ROWS * 64)
                        if completes:
                            T.barrier_all()
                        if puts_flags:
                            T.shmem_ub_put_nbi(ready, F, 8, after, part * 8)
                        T.barrier_all()
                    if polls:
                        flags[0] = 0.0
                        while flags[0] != 1.0:
                            T.copy(F[after, 0], flags)
                            T.barrier_all()
                    if resets:
                        T.tile.fill(flags, 0.0)
                        T.barrier_all()
                        for part in T.serial(ranks):
                            T.copy(flags, F[part, 0])

    return main


def gathered(card: Card, **settings: Any) -> np.ndarray:
    y, flags = card.tensor((card.ranks * ROWS, 64)), card.tensor((card.ranks, 8))
    y[ROWS * card.rank:ROWS * (card.rank + 1)] = card.rank + 1
    card.barrier()
    pass_on(card.rank, card.ranks, **settings)(y, flags)
    card.barrier()
    assert not flags.any()
    return y.copy()


@INTERPRETED
@pytest.mark.parametrize("by_element", [False, True], ids=["tile", "element"])
def test_a_ring(by_element: bool, interpreted: bool) -> None:
    ranks = 3
    wanted = np.repeat(np.arange(1, ranks + 1, dtype=np.float32), ROWS)[:, None] * np.ones((1, 64), np.float32)
    for found in pods.run(lambda card: gathered(card, by_element=by_element), ranks, sanitize=True, interleaving=5):
        np.testing.assert_array_equal(found, wanted)


def test_a_poll_that_was_left_out() -> None:
    assert failure(lambda card: gathered(card, polls=False, resets=False), 3, sanitize=True).code == "S231"


def test_a_put_that_has_not_ended_before_its_flag() -> None:
    error = failure(lambda card: gathered(card, completes=False), 3, sanitize=True)
    assert error.code == "S232"
    assert error.location is not None
    assert "T.shmem_ub_put_nbi(tile" in error.location.source()


@INTERPRETED
def test_a_flag_that_is_not_put(interpreted: bool) -> None:
    error = failure(lambda card: gathered(card, puts_flags=False), 3)
    assert error.code == "S308"
    assert "F" in error.message
    assert "to change" in error.message
    assert error.location is not None
    assert "while flags" in error.location.source() or interpreted
    assert len(error.notes) == 2


@tilelang.jit(target="ascendc")
def exchange(rank: int, before: bool) -> Any:
    """Two cards put each other a flag; the loop that polls is before or after the put."""
    @T.prim_func
    def main(F: T.Tensor((8,), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, vid):
            ready = T.alloc_ub((8,), "float32")
            flags = T.alloc_ub((8,), "float32")
            with T.Scope("V"):
                if vid == 0:
                    T.tile.fill(ready, 1.0)
                    flags[0] = 0.0
                    T.barrier_all()
                    if before:
                        while flags[0] < 1.0:
                            T.copy(F, flags)
                            T.barrier_all()
                    T.shmem_ub_put_nbi(ready, F, 8, 1 - rank)
                    if not before:
                        while flags[0] < 1.0:
                            T.copy(F, flags)
                            T.barrier_all()

    return main


@INTERPRETED
def test_two_cards_that_poll_before_they_put(interpreted: bool) -> None:
    error = failure(lambda card: exchange(card.rank, True)(card.tensor(8)))
    assert error.code == "S308"
    if not interpreted:  # whose cores are Python functions, which cannot be executed past a loop
        assert error.message == "rank 0 and rank 1 wait for each other's puts"
        assert len(error.notes) == 2
        assert all("an element of F to change" in note and "would write at" in note for note in error.notes)
        assert error.notes[0].count("line") + error.notes[0].count(".py:") >= 2


@INTERPRETED
def test_two_cards_that_put_before_they_poll(interpreted: bool) -> None:
    def body(card: Card) -> np.ndarray:
        flags = card.tensor(8)
        exchange(card.rank, False)(flags)
        return flags.copy()

    for found in pods.run(body, 2, sanitize=True):
        np.testing.assert_array_equal(found, np.ones(8, np.float32))


@tilelang.jit(target="ascendc")
def counted(rounds: int) -> Any:
    """Polls for a flag that never comes, a number of times."""
    @T.prim_func
    def main(F: T.Tensor((8,), "float32"), N: T.Tensor((8,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, vid):
            flags = T.alloc_ub((8,), "float32")
            count = T.alloc_ub((8,), "int32")
            with T.Scope("V"):
                if vid == 0:
                    flags[0] = 0.0
                    T.tile.fill(count, 0)
                    T.barrier_all()
                    while flags[0] < 1.0 and count[0] < rounds:
                        T.copy(F, flags)
                        T.barrier_all()
                        count[0] = count[0] + 1
                    T.barrier_all()
                    T.copy(count, N)

    return main


@INTERPRETED
def test_a_loop_that_counts_ends(interpreted: bool) -> None:
    def body(card: Card) -> int:
        count = np.zeros(8, np.int32)
        counted(20)(card.tensor(8), count)
        return int(count[0])

    assert pods.run(body, 2) == [20, 20]


@tilelang.jit(target="ascendc")
def send_some(most: int, between: bool) -> Any:
    """Puts the first ``N[0]`` elements to the other card, and gets as many."""
    @T.prim_func
    def main(X: T.Tensor((most,), "float32"), Y: T.Tensor((most,), "float32"), Z: T.Tensor((most,), "float32"),
             N: T.Tensor((8,), "int32"), P: T.Tensor((8,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, vid):
            tile = T.alloc_ub((most if not between else 8,), "float32")
            with T.Scope("V"):
                if vid == 0:
                    if between:
                        T.shmem_put_nbi(Y, X, N[0], P[0])
                        T.barrier_all()
                        T.shmem_get_nbi(Z, X, N[0], P[0])
                    else:
                        T.copy(X, tile)
                        T.barrier_all()
                        T.shmem_ub_put_nbi(tile, Y, N[0], P[0])
                        T.barrier_all()
                        T.tile.fill(tile, 0.0)
                        T.barrier_all()
                        T.shmem_ub_get_nbi(tile, X, N[0], P[0])
                        T.barrier_all()
                        T.copy(tile, Z)

    return main


@INTERPRETED
@pytest.mark.parametrize("count", [0, 8, 40, 1000, 1024])
@pytest.mark.parametrize("between", [False, True], ids=["ub", "tensors"])
def test_a_number_of_elements_of_run_time(between: bool, count: int, interpreted: bool) -> None:
    most = 1024

    def body(card: Card) -> tuple[np.ndarray, np.ndarray]:
        x, y = card.tensor(most), card.tensor(most)
        z = np.zeros(most, np.float32)
        x[...] = np.arange(most) + 10000 * (card.rank + 1)
        card.barrier()
        send_some(most, between)(x, y, z, np.full(8, count, np.int32), np.full(8, 1 - card.rank, np.int32))
        card.barrier()
        return y.copy(), z

    for rank, (y, z) in enumerate(pods.run(body, 2)):
        wanted = np.where(np.arange(most) < count, np.arange(most, dtype=np.float32) + 10000 * (2 - rank), 0)
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_array_equal(z, wanted)


def test_other_schedules_are_refused() -> None:
    """A schedule that executes ops in another order would execute such a loop again and again."""
    def body(card: Card) -> None:
        exchange(card.rank, False).program.run([card.tensor(8)], blocks=1, schedule="latest")

    error = failure(body)
    assert error.code == "T413"
    assert "reads in a loop what other cards write" in error.message
