"""Signals between cards: values, what they order, kernels that hang, and invalid operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError, pods
from tilelang_npu.card_signals import COMPARISONS
from tilelang_npu.pods import Card

WORDS = 8
INTERPRETED = pytest.mark.parametrize("interpreted", [False, True], ids=["compiled", "interpreted"])


@pytest.fixture(autouse=True)
def _interpret(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.callspec.params.get("interpreted") if hasattr(request.node, "callspec") else False:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")


def failure(body: Any, ranks: int = 2, **settings: Any) -> TileError:
    with pytest.raises(TileError) as caught:
        pods.run(body, ranks, heap_bytes=1 << 18, **{"timeout": 60.0, **settings})
    return caught.value


@tilelang.jit(target="npuir")
def ring(rank: int, ranks: int, rows: int, completes: str = "quiet", waits: bool = True, signals: bool = True) -> Any:
    """Each card passes the parts that it gets to the next card: an all-gather."""
    after = (rank + 1) % ranks

    @T.prim_func
    def main(Y: T.Tensor((ranks * rows, 64), "float32"), F: T.Tensor((WORDS,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((rows, 64), "float32")
            for step in T.serial(ranks - 1):
                part = (rank + ranks - step) % ranks
                if waits and step > 0:
                    T.shmem_signal_wait_until(F, part, 3, 1)
                T.copy(Y[part * rows, 0], tile)
                T.shmem_ub_put_nbi(tile, Y, rows * 64, after, part * rows * 64)
                if completes == "quiet":
                    T.shmem_quiet()
                elif completes == "mte":
                    T.shmem_mte_quiet()
                elif completes == "fence":
                    T.shmem_fence()
                if signals:
                    T.shmem_signal_op(F, part, 1, 0, after)
            if waits:
                T.shmem_signal_wait_until(F, after, 3, 1)

    return main


def gathered(card: Card, **settings: Any) -> np.ndarray:
    y, flags = card.tensor((card.ranks * 4, 64)), card.tensor(WORDS, "int32")
    y[4 * card.rank:4 * card.rank + 4] = card.rank + 1
    card.barrier()
    ring(card.rank, card.ranks, 4, **settings)(y, flags)
    card.barrier()
    return y.copy()


@INTERPRETED
@pytest.mark.parametrize("completes", ["quiet", "mte", "fence"])
def test_a_ring(completes: str, interpreted: bool) -> None:
    ranks = 4
    wanted = np.repeat(np.arange(1, ranks + 1, dtype=np.float32), 4)[:, None] * np.ones((1, 64), np.float32)
    for found in pods.run(lambda card: gathered(card, completes=completes), ranks, sanitize=True, interleaving=3):
        np.testing.assert_array_equal(found, wanted)


def test_a_put_that_is_not_complete_before_its_signal() -> None:
    error = failure(lambda card: gathered(card, completes=""), 4, sanitize=True)
    assert error.code == "S232"
    assert error.location is not None
    assert "T.shmem_ub_put_nbi" in error.location.source()
    assert "T.shmem_quiet()" in error.help


def test_a_wait_that_was_left_out() -> None:
    assert failure(lambda card: gathered(card, waits=False), 4, sanitize=True).code == "S231"


@INTERPRETED
def test_a_signal_that_was_left_out(interpreted: bool) -> None:
    error = failure(lambda card: gathered(card, signals=False), 3)
    assert error.code == "S308"
    assert error.message == "rank 0 waits for F >= 1 (it is 0), and no card that runs can end this wait" or interpreted
    assert error.location is not None
    assert "T.shmem_signal_wait_until" in error.location.source()
    assert len(error.notes) == 2


@tilelang.jit(target="npuir")
def exchange(rank: int, before: bool) -> Any:
    """Two cards signal each other; the wait is before or after the signal."""
    @T.prim_func
    def main(F: T.Tensor((WORDS,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            if before:
                T.shmem_signal_wait_until(F, rank, 0, 7)
            T.shmem_signal_op(F, 1 - rank, 7, 0, 1 - rank)
            if not before:
                T.shmem_signal_wait_until(F, rank, 0, 7)

    return main


@INTERPRETED
def test_two_cards_that_wait_for_each_other(interpreted: bool) -> None:
    error = failure(lambda card: exchange(card.rank, True)(card.tensor(WORDS, "int32")))
    assert error.code == "S308"
    if not interpreted:  # whose cores are Python functions, which cannot be executed past a wait
        assert error.message == "rank 0 and rank 1 wait for each other's signals"
        assert [note.split(" at ")[0] for note in error.notes] == [
            "rank 0 waits for F == 7 (it is 0)", "rank 1 waits for F == 7 (it is 0)"]
        assert all(f"which rank {1 - rank} would set at" in note for rank, note in enumerate(error.notes))
    pods.run(lambda card: exchange(card.rank, False)(card.tensor(WORDS, "int32")), 2)


def test_a_card_that_ends_without_a_signal() -> None:
    error = failure(lambda card: None if card.rank else exchange(0, True)(card._heap and card_words(card)))
    assert error.code == "S308"
    assert "rank 1 has ended" in error.notes


def card_words(card: Card) -> np.ndarray:
    """An array on the heap that one card makes alone."""
    return card._heap.memory.data[card.rank, :4 * WORDS].view(np.int32)


@tilelang.jit(target="npuir")
def compared(cmp: int, value: int, sent: int, adds: int) -> Any:
    @T.prim_func
    def main(F: T.Tensor((WORDS,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            T.shmem_signal_op(F[2], 1, sent, adds, 0)
            T.shmem_signal_wait_until(F, 3, cmp, value)

    return main


@INTERPRETED
@pytest.mark.parametrize("cmp", range(len(COMPARISONS)), ids=[text for text, _ in COMPARISONS])
@pytest.mark.parametrize("adds", [0, 1])
def test_comparisons(cmp: int, adds: int, interpreted: bool) -> None:
    """A word that is 5 gets 3 or 8, and is compared with a number below, equal and above."""
    word = 8 if adds else 3
    for value in (word - 1, word, word + 1):
        def body(card: Card, value: int = value) -> int:
            flags = card.tensor(WORDS, "int32")
            flags[3] = 5
            compared(cmp, value, 3, adds)(flags)
            return int(flags[3])

        if COMPARISONS[cmp][1](word, value):
            assert pods.run(body, 1, heap_bytes=1 << 16) == [word]
        else:
            assert failure(body, 1).code == "S308"


@tilelang.jit(target="npuir")
def counting(rank: int, blocks: int, rounds: int) -> Any:
    """All blocks of all cards add to one word of card 0, and its blocks wait for the sum."""
    @T.prim_func
    def main(F: T.Tensor((WORDS,), "int32"), X: T.Tensor((blocks, 16), "int32")) -> None:
        with T.Kernel(blocks, is_npu=True) as (block, _):
            tile = T.alloc_shared((1, 16), "int32")
            for _turn in T.serial(rounds):
                T.shmem_signal_op(F, 0, block + 1, 1, 0)
            if rank == 0:
                T.shmem_signal_wait_until(F, 0, 3, 3 * rounds * (blocks * (blocks + 1) // 2))
            T.fill(tile, block)
            T.copy(tile, X[block, 0])

    return main


@INTERPRETED
def test_blocks_of_one_card_wait_while_others_run(interpreted: bool) -> None:
    def body(card: Card) -> tuple[int, list[int]]:
        flags, x = card.tensor(WORDS, "int32"), np.zeros((4, 16), np.int32)
        counting(card.rank, 4, 5)(flags, x)
        card.barrier()
        return int(flags[0]), x[:, 0].tolist()

    assert pods.run(body, 3, interleaving=0) == [(150, [0, 1, 2, 3]), (0, [0, 1, 2, 3]), (0, [0, 1, 2, 3])]


@tilelang.jit(target="npuir")
def shifted_twice(rank: int, ranks: int, blocks: int, team: int | None) -> Any:
    """Each block puts its row to the next card, and after a barrier what has come to the one after that."""
    after = (rank + 1) % ranks if team is None else rank ^ 1

    @T.prim_func
    def main(X: T.Tensor((blocks, 64), "float32"), Y: T.Tensor((blocks, 64), "float32"), Z: T.Tensor((blocks, 64), "float32")
             ) -> None:
        with T.Kernel(blocks, is_npu=True) as (block, _):
            tile = T.alloc_shared((1, 64), "float32")
            T.copy(X[block, 0], tile)
            T.shmem_ub_put_nbi(tile, Y, 64, after, block * 64)
            if team is None:
                T.shmem_barrier_all()
            else:
                T.shmem_barrier(team)
            other = (block + 1) % blocks
            T.copy(Y[other, 0], tile)
            T.shmem_ub_put_nbi(tile, Z, 64, after, other * 64)

    return main


@INTERPRETED
@pytest.mark.parametrize("teams", [False, True])
def test_a_barrier_inside_of_a_kernel(teams: bool, interpreted: bool) -> None:
    """All blocks of all cards pass it together, with the data of the puts before it."""
    def body(card: Card) -> float:
        x, y, z = (card.tensor((3, 64)) for _ in range(3))
        numbers = [card.team([0, 1]), card.team([2, 3])] if teams else [None, None]
        x[...] = card.rank
        card.barrier()
        shifted_twice(card.rank, card.ranks, 3, numbers[card.rank // 2])(x, y, z)
        card.barrier()
        assert (z == z[0, 0]).all()
        return float(z[0, 0])

    assert pods.run(body, 4, sanitize=True, interleaving=2) == ([0, 1, 2, 3] if teams else [2, 3, 0, 1])


def test_a_barrier_that_one_card_does_not_reach() -> None:
    def body(card: Card) -> None:
        x, y, z = (card.tensor((2, 64)) for _ in range(3))
        if card.rank:
            shifted_twice(card.rank, 2, 2, None)(x, y, z)

    error = failure(body)
    assert error.code == "S308"
    assert "rank 0 to reach the barrier" in error.message


@pytest.mark.parametrize("members", [[], [2], [-1, 0]])
def test_a_team_that_cannot_be(members: list[int]) -> None:
    assert failure(lambda card: card.team(members)).code == "T431"


def test_a_team_that_the_card_is_not_in() -> None:
    def body(card: Card) -> None:
        x, y, z = (card.tensor((2, 64)) for _ in range(3))
        shifted_twice(card.rank, 2, 2, card.team([0]))(x, y, z)

    assert failure(body).code in ("T431", "S308")


def test_signals_without_a_pod() -> None:
    with pytest.raises(TileError) as caught:
        exchange(0, False)(np.zeros(WORDS, np.int32))
    assert caught.value.code == "T430"


def test_more_blocks_than_cores_cannot_wait() -> None:
    with pytest.raises(TileError) as caught:
        pods.run(lambda card: counting(0, 100, 1)(card.tensor(WORDS, "int32"), np.zeros((100, 16), np.int32)), 1)
    assert caught.value.code == "S304"


def test_other_schedules_are_refused() -> None:
    kernel = exchange(0, False)
    with pytest.raises(TileError) as caught:
        pods.run(lambda card: kernel.program.run([card.tensor(WORDS, "int32")], blocks=1, schedule="latest"), 1)
    assert caught.value.code == "T413"


def test_the_time_of_a_kernel_with_signals() -> None:
    assert 0 < ring(0, 4, 4).estimate().time_us < 1000


@tilelang.jit(target="npuir")
def reading_again(times: int, meets: bool) -> Any:
    """Reads one place after each signal, or each barrier."""
    @T.prim_func
    def main(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((times * 16, 64), "float32"), F: T.Tensor((64,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((16, 64), "float32")
            for i in T.serial(times):
                if meets:
                    T.shmem_barrier_all()
                else:
                    T.shmem_signal_wait_until(F, i, 3, 1)
                T.copy(X, tile)
                T.copy(tile, Y[i * 16, 0])

    return main


@pytest.mark.parametrize("meets", [False, True])
def test_no_load_moves_before_a_wait(meets: bool) -> None:
    """Although the load reads the same place in each iteration, and the kernel does not write there."""
    lines = [line.strip() for line in reading_again(4, meets).mlir().splitlines()]
    loop, wait, load = (next(number for number, line in enumerate(lines) if word in line) for word in (
        "scf.for", 'symbol = "shmem_barrier"' if meets else 'symbol = "shmem_signal_wait_until"', "hivm.hir.load"))
    assert loop < wait < load


@tilelang.jit(target="ascendc", pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: False,
                                              tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
                                              tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True})
def _square_if_told(rank: int) -> Any:
    @T.prim_func
    def square(A: T.Tensor((32, 32), "float16"), N: T.Tensor((8,), "int32"), P: T.Tensor((32, 32), "float32"),
               C: T.Tensor((32, 32), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, vid):
            with T.Scope("V"):
                x = T.alloc_ub((16, 32), "float32")
                T.shmem_signal_op(N, 0, 1, 1, 1 - rank)
                T.shmem_signal_wait_until(N, 0, 0, 2)
                T.sync_all("Mix")
                T.sync_all("Mix")
                T.copy(P[vid * 16, 0], x)
                T.copy(x, C[vid * 16, 0])
            with T.Scope("C"):
                a = T.alloc_L1((32, 32), "float16")
                c = T.alloc_L0C((32, 32), "float32")
                T.sync_all("Mix")
                if N[0] > 0:
                    T.copy(A, a)
                    T.gemm_v0(a, a, c, init=True)
                    T.copy(c, P)
                T.sync_all("Mix")

    return square


@INTERPRETED
def test_the_cube_core_takes_part_in_a_barrier_though_only_a_signal_gives_it_work(interpreted: bool) -> None:
    a = (np.random.default_rng(0).integers(-4, 5, (32, 32)) / 2).astype(np.float16)

    def body(card: Card) -> np.ndarray:
        words, product, found = card.tensor(8, "int32"), np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
        _square_if_told(card.rank)(a, words, product, found)
        card.barrier()
        return found

    wanted = a.astype(np.float32) @ a.astype(np.float32)
    for found in pods.run(body, 2):
        np.testing.assert_array_equal(found, wanted)


@tilelang.jit(target="npuir")
def own_signal() -> Any:
    """Waits for two signals of its own, of which it sends one before the wait and one after it."""
    @T.prim_func
    def own_signal(F: T.Tensor((1,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            T.shmem_signal_op(F, 0, 1, 1, 0)
            T.shmem_signal_wait_until(F, 0, 0, 2)
            T.shmem_signal_op(F, 0, 1, 1, 0)

    return own_signal


def test_a_card_that_waits_for_its_own_later_signal_is_told_so() -> None:
    with pytest.raises(TileError, match=r"rank 0 waits for signals of its own that come only afterwards") as caught:
        pods.run(lambda card: own_signal()(card.tensor(1, "int32")), 1)
    assert caught.value.code == "S308"
