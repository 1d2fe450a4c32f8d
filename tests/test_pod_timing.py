"""The modelled times of all cards of a pod: when waits for signals and barriers end."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from pod_kernels import LATENCY, LOOK, copying, drive_passing, passing
from tilelang_npu import pods
from tilelang_npu.pod_timing import common, length, union
from tilelang_npu.pods import Card
from tilelang_npu.symmetric_heap import rehearsal


@pytest.mark.parametrize("tiles", [1, 8, 32])
def test_a_wait_ends_when_the_signal_of_the_other_card_arrives(tiles: int) -> None:
    profile = pods.profile(drive_passing(tiles), 2)
    (flow,) = profile.flows
    (first,), (second,) = (card.launches for card in profile.cards)
    (wait,) = second.waits
    assert (flow.sender, flow.receiver) == (0, 1)
    assert LATENCY < flow.ended - flow.sent < LATENCY + LOOK
    assert wait.end == pytest.approx(flow.ended, abs=LOOK)
    assert wait.location is not None
    assert "signal_wait_until" in Path(wait.location.file).read_text(encoding="utf-8").splitlines()[wait.location.line - 1]
    assert not first.waits
    # the sender needs as long as a card alone; the receiver as long as without its wait, and the time for which it waits
    alone = [passing(rank, tiles).estimate().time_us for rank in range(2)]
    assert first.end == pytest.approx(alone[0])
    assert second.end == pytest.approx(alone[1] + wait.end - wait.start, abs=0.05)
    assert profile.time_us == max(first.end, second.end)


@tilelang.jit(target="npuir")
def meeting(rank: int, tiles: int) -> Any:
    """Copies ``tiles`` tiles for each card before this one and once more, and meets the other cards inside of the kernel."""
    @T.prim_func
    def meeting(X: T.Tensor((128, 128), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((128, 128), "float32")
            for _turn in T.serial(tiles * rank + 1):
                T.copy(X, tile)
                T.copy(tile, X)
            T.shmem_barrier_all()
            T.copy(X, tile)

    return meeting


def test_all_cards_go_on_after_a_barrier_when_the_last_has_come() -> None:
    profile = pods.profile(lambda card: meeting(card.rank, 8)(card.tensor((128, 128))), 3)
    (first,), (second,), (last,) = (card.launches for card in profile.cards)
    assert not last.waits
    (came,) = {flow.sent for flow in profile.flows if flow.sender == 2}
    for launch in (first, second):
        wait = max(launch.waits, key=lambda wait: wait.end - wait.start)
        assert wait.start < came
        assert wait.end == pytest.approx(came + LATENCY, abs=LOOK)


def test_a_barrier_between_launches_waits_for_the_slowest_card() -> None:
    def drive(card: Card) -> int:
        x = card.tensor((128, 128))
        copying(4 * card.rank + 1)(x)
        card.barrier()
        copying(2)(x)
        return card.rank

    profile = pods.profile(drive, 3)
    assert profile.results == [0, 1, 2]
    times = [copying(4 * rank + 1).estimate().time_us for rank in range(3)]
    again = copying(2).estimate().time_us
    for rank, card in enumerate(profile.cards):
        one, two = card.launches
        assert (one.start, one.end) == pytest.approx((0.0, times[rank]))
        assert (two.start, two.end) == pytest.approx((max(times), max(times) + again))
        assert length(card.waiting) == pytest.approx(max(times) - times[rank])
        assert card.overlap is None
    assert profile.overlap is None


@tilelang.jit(target="npuir")
def counting(rank: int, cards: int, rounds: int) -> Any:
    """All Vector cores of all cards count at card 0, which answers each round."""
    @T.prim_func
    def counting(F: T.Tensor((2,), "int32")) -> None:
        with T.Kernel(2, is_npu=True) as (_, _unused):
            for i in T.serial(rounds):
                T.shmem_signal_op(F, 0, 1, 1, 0)
                if rank == 0:
                    T.shmem_signal_wait_until(F, 0, 3, (i + 1) * cards * 2)
                    T.sync_all()
                    for other in T.serial(cards):
                        T.shmem_signal_op(F, 1, i + 1, 0, other)
                T.shmem_signal_wait_until(F, 1, 3, i + 1)
                T.sync_all()

    return counting


def test_times_do_not_depend_on_the_order_in_which_the_run_executes_the_cards() -> None:
    def drive(card: Card) -> None:
        flags = card.tensor(2, "int32")
        card.barrier()
        counting(card.rank, card.ranks, 3)(flags)

    found = {json.dumps(pods.profile(drive, 3, interleaving=seed).to_dict()) for seed in (None, 1, 2, 3, 4)}
    assert len(found) == 1
    assert json.loads(found.pop())["time_us"] > 6 * LATENCY  # each round takes a signal to card 0 and one back


@pytest.mark.parametrize("seed", range(20))
def test_unions_and_common_parts_of_intervals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    masks = []
    spans = []
    for _ in range(2):
        starts = rng.integers(0, 90, rng.integers(0, 8))
        ends = starts + rng.integers(0, 12, len(starts))
        places = np.arange(110)[:, None]
        masks.append(((starts <= places) & (places < ends)).any(axis=1))
        spans.append(union([np.stack([starts, ends], axis=1).astype(float)]))
        assert length(spans[-1]) == masks[-1].sum()
        assert np.all(spans[-1][1:, 0] > spans[-1][:-1, 1])
    assert length(common(*spans)) == (masks[0] & masks[1]).sum()


def test_kernels_in_a_rehearsal_wait_for_nobody() -> None:
    def drive(card: Card) -> None:
        x, f = card.tensor((128, 128)), card.tensor(1, "int32")
        with rehearsal():
            passing(1, 1)(x, f)

    profile = pods.profile(drive, 1)
    assert not profile.flows
    assert profile.time_us == pytest.approx(passing(1, 1).estimate().time_us)


@tilelang.jit(target="npuir")
def producing(rank: int, chunks: int, tiles: int) -> Any:
    """Card 0 signals after each chunk of work; card 1 waits for a chunk and takes it from the counter, as a semaphore."""
    @T.prim_func
    def producing(X: T.Tensor((128, 128), "float32"), F: T.Tensor((1,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((128, 128), "float32")
            for _chunk in T.serial(chunks):
                if rank == 0:
                    for _turn in T.serial(tiles):
                        T.copy(X, tile)
                        T.copy(tile, X)
                    T.shmem_quiet()
                    T.shmem_signal_op(F, 0, 1, 1, 1)
                else:
                    T.shmem_signal_wait_until(F, 0, 2, 0)
                    T.shmem_signal_op(F, 0, -1, 1, 1)

    return producing


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_semaphore_ends_each_wait_when_its_own_chunk_is_there(seed: int | None) -> None:
    def drive(card: Card) -> None:
        producing(card.rank, 4, 8)(card.tensor((128, 128)), card.tensor(1, "int32"))

    profile = pods.profile(drive, 2, interleaving=seed)
    (sender,), (receiver,) = (card.launches for card in profile.cards)
    ends = [wait.end for wait in receiver.waits]
    assert len(ends) == 4
    chunk = (sender.end - sender.overhead) / 4
    assert np.diff(ends) == pytest.approx([chunk] * 3, rel=0.05)
    assert ends[-1] == pytest.approx(sender.end - sender.overhead, abs=2 * LOOK)  # the sender ends when its signal has arrived


@tilelang.jit(target="npuir")
def first_of(rank: int, tiles: int, adds: bool) -> Any:
    """Cards 1 and 2 signal card 0, card 2 after ``tiles`` copies; card 0 waits for any of them."""
    @T.prim_func
    def first_of(X: T.Tensor((128, 128), "float32"), F: T.Tensor((1,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((128, 128), "float32")
            if rank == 0:
                T.shmem_signal_wait_until(F, 0, 3, 1)
            else:
                for _turn in T.serial(tiles if rank == 2 else 0):
                    T.copy(X, tile)
                    T.copy(tile, X)
                T.shmem_signal_op(F, 0, rank, int(adds), 0)

    return first_of


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("late", [1, 2])
def test_the_first_signal_in_modelled_time_ends_a_wait_whichever_the_run_executed_first(adds: bool, late: int) -> None:
    def drive(card: Card) -> None:
        x, f = card.tensor((128, 128)), card.tensor(1, "int32")
        if card.rank == late:
            time.sleep(0.2)  # real time, in which the other card's signal comes
        first_of(card.rank, 8, adds)(x, f)

    (launch,), (quick,), (slow,) = (card.launches for card in pods.profile(drive, 3).cards)
    assert [wait.end for wait in launch.waits] == pytest.approx([LATENCY], abs=2 * LOOK)
    assert quick.end < slow.end


def test_flags_that_later_launches_set_again() -> None:
    def drive(card: Card) -> None:
        x, f = card.tensor((128, 128)), card.tensor(1, "int32")
        for _ in range(2):
            card.barrier()
            passing(card.rank, 4)(x, f)
            card.barrier()
            f[...] = 0

    profile = pods.profile(drive, 2)
    one, two = ([wait.end - launch.start for wait in launch.waits] for launch in profile.cards[1].launches)
    assert len(one) == 1
    assert two == pytest.approx(one)
