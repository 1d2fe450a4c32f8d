"""The modelled times of all cards of a pod: waits for signals and barriers, overlap, links, and what shows them."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import pods
from tilelang_npu.errors import TileError
from tilelang_npu.pod_timing import common, length, union
from tilelang_npu.pods import Card
from tilelang_npu.symmetric_heap import rehearsal
from tilelang_npu.target import chip

A2 = chip("910B2")
LATENCY = A2.links.latency * 1e6
"""Microseconds until a signal is at another card."""
LOOK = A2.microseconds(A2.scalar.store + A2.scalar.load) + 0.05
"""Microseconds within which a signal is sent and a core that waits for it goes on, in addition to the latency."""


@tilelang.jit(target="npuir")
def passing(rank: int, tiles: int) -> Any:
    """Card 0 copies ``tiles`` tiles and then signals card 1, which waits before it copies one tile."""
    @T.prim_func
    def passing(X: T.Tensor((128, 128), "float32"), F: T.Tensor((1,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((128, 128), "float32")
            if rank == 0:
                for _turn in T.serial(tiles):
                    T.copy(X, tile)
                    T.copy(tile, X)
                T.shmem_signal_op(F, 0, 1, 0, 1)
            else:
                T.shmem_signal_wait_until(F, 0, 3, 1)
                T.copy(X, tile)
                T.copy(tile, X)

    return passing


def drive_passing(tiles: int) -> Any:
    def drive(card: Card) -> None:
        x, f = card.tensor((128, 128)), card.tensor(1, "int32")
        card.barrier()
        passing(card.rank, tiles)(x, f)

    return drive


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


@tilelang.jit(target="npuir")
def copying(tiles: int) -> Any:
    @T.prim_func
    def copying(X: T.Tensor((128, 128), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((128, 128), "float32")
            for _turn in T.serial(tiles):
                T.copy(X, tile)
                T.copy(tile, X)

    return copying


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
def exchange(other: int, turns: int, computes: bool) -> Any:
    """Puts tiles to a card, and computes on another buffer meanwhile if asked for."""
    @T.prim_func
    def exchange(X: T.Tensor((64, 1024), "float32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((16, 1024), "float32")
            own = T.alloc_shared((16, 1024), "float32")
            T.clear(tile)
            T.clear(own)
            for turn in T.serial(turns):
                T.shmem_ub_put_nbi(tile, X[turn % 4 * 16, 0], 16 * 1024, other)
                if computes:
                    for _turn in T.serial(4):
                        T.tile.exp(own, own)

    return exchange


def _exchanged(computes: bool) -> pods.PodProfile:
    return pods.profile(lambda card: exchange(1 - card.rank, 8, computes)(card.tensor((64, 1024))), 2)


def test_overlap_is_the_share_of_transfers_during_which_the_card_computes() -> None:
    blocking, overlapped = _exchanged(False), _exchanged(True)
    assert blocking.overlap is not None
    assert overlapped.overlap is not None
    assert blocking.overlap < 0.05
    assert 0.3 < overlapped.overlap <= 1.0
    for card in overlapped.cards:  # against a fine grid of moments
        moments = np.linspace(0.0, card.end, 200_001)
        moving, computing = (np.any([(first <= moments) & (moments < last) for first, last in spans], axis=0)
                             for spans in (card.transfers, card.computing))
        assert card.overlap == pytest.approx((moving & computing).sum() / moving.sum(), abs=1e-3)


def test_faster_links_shorten_transfers_and_slower_ones_lengthen_them() -> None:
    profile = _exchanged(False)
    fast, slow = profile.with_links(2.0), profile.with_links(0.5)
    assert fast.time_us < profile.time_us < slow.time_us
    assert length(slow.cards[0].transfers) == pytest.approx(2 * length(profile.cards[0].transfers), rel=0.15)
    assert profile.with_links(1.0).to_dict() == profile.to_dict()
    with pytest.raises(TileError, match="T435"):
        profile.with_links(0.0)


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


def test_the_trace_has_a_process_for_each_card_and_a_flow_for_each_signal(tmp_path: Path) -> None:
    profile = pods.profile(drive_passing(4), 2)
    profile.trace(tmp_path / "pod.json")
    events = json.loads((tmp_path / "pod.json").read_text(encoding="utf-8"))["traceEvents"]
    assert {event["args"]["name"] for event in events if event["name"] == "process_name"} == {"card 0", "card 1"}
    begins, ends = ([event for event in events if event["ph"] == phase] for phase in "sf")
    assert [(event["id"], event["pid"]) for event in begins] == [(1, 0)]
    assert [(event["id"], event["pid"]) for event in ends] == [(1, 1)]
    for flow in (*begins, *ends):  # viewers need a slice at the ends of a flow
        assert any(event["ph"] == "X" and (event["pid"], event["tid"]) == (flow["pid"], flow["tid"])
                   and event["ts"] <= flow["ts"] <= event["ts"] + event["dur"] for event in events)


def test_the_text_has_a_row_for_each_card_and_the_lines_of_waits() -> None:
    profile = pods.profile(drive_passing(64), 2)
    text = str(profile)
    rows = re.findall(r"\|([=\-#. ]{60})\|", text)
    assert len(rows) == 2
    assert "." not in rows[0]
    assert rows[1].lstrip().startswith(".....")
    assert re.search(r"waits +[\d.]+ us at .*test_pod_profile\.py:\d+", text)
    assert f"{profile.time_us:.1f} us" in text


def test_the_page_is_one_file_with_bars_and_signals() -> None:
    page = pods.profile(drive_passing(8), 2).html()
    assert page.count('class="flow"') == 1
    assert "card 1 waits for other cards" in page
    assert not re.search(r"(src|href)=", page)


def test_a_pod_that_runs_no_compiled_kernel_has_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TileError, match="T435"):
        pods.profile(lambda card: card.barrier(), 2)
    monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    with pytest.raises(TileError, match="T435"):
        pods.profile(lambda card: copying(1)(card.tensor((128, 128))), 2)


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


def test_interpreted_kernels_that_signal_have_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    with pytest.raises(TileError, match="T435"):
        pods.profile(drive_passing(2), 2)


def test_a_kernel_whose_error_the_body_catches_has_no_times() -> None:
    @tilelang.jit(target="npuir")
    def failing() -> Any:
        @T.prim_func
        def failing(F: T.Tensor((1,), "int32")) -> None:
            with T.Kernel(1, is_npu=True) as (_, _unused):
                T.shmem_signal_op(F, 0, 1, 0, 0)
                T.shmem_signal_op(F, 0, 1, 0, 7)

        return failing

    def drive(card: Card) -> None:
        f = card.tensor(1, "int32")
        with pytest.raises(TileError, match="T431"):
            failing()(f)
        copying(1)(card.tensor((128, 128)))

    profile = pods.profile(drive, 1)
    assert [launch.name for launch in profile.cards[0].launches] == ["copying"]
