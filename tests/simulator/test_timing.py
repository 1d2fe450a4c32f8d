"""The clock of a core's pipes, step by step, against times reckoned by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tilelang_npu.simulator.time.cost import Cost, GmBytes
from tilelang_npu.simulator.time.pipe_steps import (
    ALL,
    BARRIER,
    CROSS_SET,
    CROSS_WAIT,
    NO_PLACE,
    PIPES,
    RUN,
    SET,
    WAIT,
    PipeStep,
)
from tilelang_npu.simulator.time.step_order import Ordered, OrderedSteps
from tilelang_npu.simulator.time.timing import BlockTiming, Share, shared_cycles, simulate_times
from tilelang_npu.target import chip

S, V, MTE2 = (PIPES.index(name) for name in ("S", "V", "MTE2"))
CHIP = chip("Ascend910B2")
CHIP = replace(CHIP, scalar=replace(CHIP.scalar, issue=1.0, alu=2.0),
               sync=replace(CHIP.sync, event=5.0, barrier=7.0, vector_barrier=4.0, handoff=100.0, flag=3.0, queue=2),
               traffic=replace(CHIP.traffic, in_flight=0.25))


def times(*steps: tuple[int, PipeStep, tuple[int, ...]], cores: int = 1, pace: Any = None) -> BlockTiming:
    ordered = OrderedSteps(Ordered(core, step, place, partners) for place, (core, step, partners) in enumerate(steps))
    order: Any = SimpleNamespace(steps=ordered)
    return simulate_times(order, cores, CHIP, pace or {})


def run(pipe: int, busy: float, done: float, scalars: int = 0, **more: Any) -> tuple[int, PipeStep, tuple[int, ...]]:
    return 0, PipeStep(RUN, pipe, cost=Cost(busy, done, **more), scalars=scalars), ()


def test_a_pipe_takes_its_next_step_while_the_last_ones_result_is_on_its_way() -> None:
    found = times(run(V, 10, 30), run(V, 10, 30))
    # issued at 1 and 2; the second starts when the pipe is free, at 11, and is done at 41
    assert found.cycles == 41
    assert found.busy[0][V] == 40
    assert found.spans[0][V] == (1, 41)


def test_scalar_instructions_run_ahead_of_what_they_are_for() -> None:
    assert times(run(V, 10, 10, scalars=4)).cycles == 1 + 4 * 2 + 10
    found = times(run(V, 10, 10, scalars=4))
    assert found.busy[0][S] == found.worked[0][S] == 9


def test_pipes_run_concurrently_until_one_waits() -> None:
    assert times(run(MTE2, 50, 50), run(V, 20, 20)).cycles == 51
    waited = times(run(MTE2, 50, 50), (0, PipeStep(SET, MTE2, V), ()), (0, PipeStep(WAIT, V, MTE2, op=9), (1,)),
                   run(V, 20, 20))
    # the set fires when the load is done (51) and 5 cycles later lets V go, which has waited since its wait was issued (3)
    assert waited.cycles == 51 + 5 + 20
    assert waited.held == {(0, 9, NO_PLACE): 56 - 3}


def test_an_instruction_that_finds_the_queue_full_holds_the_scalar_unit() -> None:
    found = times(run(V, 10, 10), run(V, 10, 10), run(V, 10, 10), run(MTE2, 1, 1))
    # the third waits until the first has begun: at once; the queue is of two, so it is the fourth of V that would be held
    held = times(*[run(V, 10, 10)] * 4, run(MTE2, 1, 1))
    assert found.spans[0][MTE2][0] == 4
    assert held.spans[0][MTE2][0] == 11 + 1  # the fourth is issued when the second starts, at 11


def test_a_barrier_drains_one_pipe_and_one_of_all_every_one() -> None:
    assert times(run(V, 5, 40), (0, PipeStep(BARRIER, V, op=3), ()), run(V, 5, 5)).cycles == 41 + 4 + 5
    assert times(run(MTE2, 5, 40), (0, PipeStep(BARRIER, MTE2, op=3), ()), run(MTE2, 5, 5)).cycles == 41 + 7 + 5
    every = times(run(V, 5, 40), run(MTE2, 5, 60), (0, PipeStep(BARRIER, ALL, op=3), ()), run(V, 5, 5))
    assert every.cycles == 62 + 7 + 1 + 5


def test_a_flag_between_cores_takes_its_way_and_its_pipe() -> None:
    found = times(run(MTE2, 20, 20), (0, PipeStep(CROSS_SET, MTE2), ()), (1, PipeStep(CROSS_WAIT, V, op=4), (1,)),
                  (1, PipeStep(RUN, V, cost=Cost(10, 10)), ()), cores=2)
    # the set is taken when the load lets it (21), holds MTE2 for 3, and is there 100 after it
    assert found.cores == [24, 21 + 100 + 10]
    assert found.cycles == 131


@pytest.mark.parametrize(("share", "expected"), [
    (Share(0.0, 0.0, 0.0, 0.0), (10.0, 15.0, 0.0)),  # no other core is active
    (Share(1.0, 0.1, 0.0, 0.0), (12.0, 18.0, 0.0)),  # HBM is further away than L2, 2 and 3 cycles
    (Share(0.0, 0.5, 0.0, 0.0), (50.0, 54.0, 40.0)),  # 100 bytes at half a cycle each, then 4 cycles of latency
    (Share(0.0, 0.5, 0.25, 0.0), (60.0, 64.0, 50.0)),  # and 40 at a quarter
    (Share(0.0, 0.5, 0.25, 15.0), (60.0, 64.0, 50.0)),  # in 4 requests, which are answered while the bytes come
    (Share(0.0, 0.0, 0.25, 20.0), (80.0, 84.0, 70.0)),  # or later than the bytes
    (Share(0.0, 0.0, 0.275, 0.0), (11.0, 15.0, 1.0)),  # one cycle longer, and 4 of latency: no later than alone
])
@pytest.mark.parametrize("written", [False, True])
def test_concurrent_transfers_share_the_bandwidth(
        share: Share, expected: tuple[float, float, float], written: bool) -> None:
    gm = GmBytes(2, written, 100, 100.0, 40.0, 4.0)
    cost = Cost(10.0, 15.0, 100, (gm,), more_busy=2.0, more_done=3.0, latency=4.0)
    hbm = 100 * share.hbm
    l2 = max(40 * share.l2, 4 * share.request - hbm)
    of_writes = l2 / (hbm + l2) if written and l2 else 0.0  # HBM serves reads and writes alike
    assert shared_cycles(cost, {(2, written): share}) == pytest.approx((*expected, of_writes))
    assert shared_cycles(cost, {(2, not written): share, (1, written): share}) == (10.0, 15.0, 0.0, 0.0)
    found = times((0, PipeStep(RUN, MTE2, cost=cost), ()), pace={(2, written): share})
    assert (found.cycles, found.stalled[0][MTE2]) == (1 + expected[1], expected[2])
    busy, done, _ = expected
    in_flight = busy + 0.25 * (done - busy)  # a quarter of its latency
    assert (found.reading, found.writing) == pytest.approx((in_flight * (1 - of_writes), in_flight * of_writes))
