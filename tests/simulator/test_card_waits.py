"""A timing walk whose waits for other cards end at given cycles."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.machine.op_records import PeerWait, number_of
from tilelang_npu.simulator.time.card_waits import CardTimer, CardWalk, PeerOp


@tilelang.jit(target="npuir")
def waiting(after: int) -> Any:
    """Waits for a signal, computes, and signals."""
    @T.prim_func
    def waiting(X: T.Tensor((64, 128), "float32"), F: T.Tensor((1,), "int32")) -> None:
        with T.Kernel(1, is_npu=True) as (_, _unused):
            tile = T.alloc_shared((64, 128), "float32")
            T.shmem_signal_wait_until(F, 0, 3, 1)
            T.copy(X, tile)
            for _turn in T.serial(after):
                T.tile.exp(tile, tile)
            T.shmem_quiet()
            T.shmem_signal_op(F, 0, 1, 0, 1)

    return waiting


@pytest.fixture
def timer() -> tuple[CardTimer, PeerOp, PeerOp]:
    """What times the kernel, and the places of its wait and of its signal."""
    launch = waiting(4).estimate()
    (run,) = launch.recorded.blocks
    (function,) = launch.recorded.program.functions
    peers = [place for place, event in enumerate(run.streams[0])
             if type(function.records[number_of(event)].work).__name__ in ("PeerWait", "PeerSignal")]
    assert isinstance(function.records[number_of(run.streams[0][peers[0]])].work, PeerWait)
    return launch.card_timer(launch.groups[0]), (0, peers[0]), (0, peers[1])


def _walk(timer: CardTimer, wait: PeerOp, signal: PeerOp, end: float) -> CardWalk:
    return timer.walk({wait: end, signal: 0.0})


def test_a_wait_that_is_over_costs_nothing(timer: tuple[CardTimer, PeerOp, PeerOp]) -> None:
    one, wait, signal = timer
    assert _walk(one, wait, signal, 0.0).cycles == pytest.approx(waiting(4).estimate().cycles)
    assert not _walk(one, wait, signal, 0.0).waits


@pytest.mark.parametrize("late", [100.0, 5000.0])
def test_what_follows_a_wait_is_as_late_as_the_wait(timer: tuple[CardTimer, PeerOp, PeerOp], late: float) -> None:
    one, wait, signal = timer
    before = _walk(one, wait, signal, 0.0)
    after = _walk(one, wait, signal, before.reached[wait] + late)
    assert after.reached[wait] == before.reached[wait]
    assert after.effects[signal] - before.effects[signal] == pytest.approx(late)
    assert after.cycles - before.cycles == pytest.approx(late)
    (held,) = after.waits
    assert (held.op, held.end - held.start) == (wait, pytest.approx(late))
    spans, moved = ([tuple(span) for rows in walk.computing.values() for span in rows] for walk in (before, after))
    assert moved == [pytest.approx((first + late, last + late)) for first, last in spans]


def test_a_signal_is_at_the_other_card_after_the_latency_of_the_link(timer: tuple[CardTimer, PeerOp, PeerOp]) -> None:
    one, wait, signal = timer
    walk = _walk(one, wait, signal, 0.0)
    took = (walk.effects[signal] - walk.reached[signal]) / one.chip.clock
    assert took == pytest.approx(one.chip.links.latency + one.chip.scalar.store / one.chip.clock)


def test_the_work_of_pipe_v_is_noted(timer: tuple[CardTimer, PeerOp, PeerOp]) -> None:
    one, wait, signal = timer
    walk = _walk(one, wait, signal, 0.0)
    busy = sum(last - first for rows in walk.computing.values() for first, last in rows)
    used = {number for _, number in walk.computing}
    worked = sum(pipe.worked for pipe in walk.clocks[0].pipes if pipe.number in used)
    assert busy == pytest.approx(worked, rel=0.05)
    assert worked > 0
