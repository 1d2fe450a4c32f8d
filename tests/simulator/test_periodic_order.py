"""An order with periods has the steps of the order of all iterations, and the same times."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.machine.op_records import Event, Nothing, OpRecord
from tilelang_npu.simulator.machine.repeated_events import Repeat, RepeatedStream
from tilelang_npu.simulator.time.cost import Cost, CostModel
from tilelang_npu.simulator.time.periodic_order import Period, PeriodicOrder
from tilelang_npu.simulator.time.pipe_steps import CROSS_SET, CROSS_WAIT, PIPE, RUN, SET, WAIT, Expansion, PipeStep
from tilelang_npu.simulator.time.step_order import StepOrder
from tilelang_npu.simulator.time.timing import simulate_times
from tilelang_npu.target import chip

CHIP = chip("Ascend910B2")
CUBE, VECTOR = CoreId(0, "AIC", 0), CoreId(0, "AIV", 0)


class Steps(Expansion):
    """Steps given by name: ``V:7`` is 7 cycles of work of pipe V, ``V>MTE3`` and ``MTE3<V`` set and wait for an event,
    ``FIX+1`` and ``MTE2-1`` set and wait for a flag of the other core."""

    def __init__(self, names: Sequence[str]) -> None:
        records = [OpRecord(number, name, "V", "AIV", None, (), Nothing(), 0) for number, name in enumerate(names)]
        super().__init__(records, CostModel(CHIP))
        self.steps = [(self.named(number, name),) for number, name in enumerate(names)]

    def named(self, number: int, name: str) -> PipeStep:
        for sign, kind in ((">", SET), ("<", WAIT)):
            if sign in name:
                pipe, other = name.split(sign)
                return PipeStep(kind, PIPE[pipe], PIPE[other], op=number)  # type: ignore[index]
        for sign, kind in (("+", CROSS_SET), ("-", CROSS_WAIT)):
            if sign in name:
                pipe, flag = name.split(sign)
                return PipeStep(kind, PIPE[pipe], number=int(flag), group="pair", op=number)  # type: ignore[index]
        pipe, cycles = name.split(":")
        cost = Cost(float(cycles), float(cycles) + 3.0)
        return PipeStep(RUN, PIPE[pipe], cost=cost, op=number, scalars=1)  # type: ignore[index]

    def of(self, event: Event) -> tuple[PipeStep, ...]:
        assert isinstance(event, int)
        return self.steps[event]


def orders(programs: Sequence[tuple[Sequence[str], tuple[Repeat, ...]]]) -> tuple[PeriodicOrder, StepOrder, int]:
    cores = [CUBE, VECTOR][:len(programs)]
    expansions = [Steps(names) for names, _ in programs]
    streams = [RepeatedStream(tuple(range(len(names))), repeats) for names, repeats in programs]
    limit = CHIP.sync.flag_limit
    return (PeriodicOrder(cores, streams, expansions, limit), StepOrder(cores, list(map(tuple, streams)), expansions, limit),
            len(cores))


def executed(order: PeriodicOrder) -> int:
    """The number of steps of an order with all executions of its periods."""
    def more(periods: Sequence[Period]) -> int:
        return sum((one.end - one.first + more(one.inner)) * one.more + more(one.inner) for one in periods)

    return len(order.steps) + more(order.periods)


ALONE = ["MTE2:5", "MTE2>V", "V<MTE2", "V:7.3", "V>MTE3", "MTE3<V", "MTE3:9", "V>MTE2", "MTE2<V", "V:30"]
CUBE_PART = ["MTE2-2", "MTE2:6", "MTE2>M", "M<MTE2", "M:40.2", "M>FIX", "FIX<M", "FIX:9", "FIX+1", "M>MTE2", "MTE2<M", "M:1"]
VECTOR_PART = ["MTE2-1", "MTE2:13.3", "MTE2>V", "V<MTE2", "V:11.7", "V>MTE3", "MTE3<V", "MTE3:5", "MTE3+2", "V>MTE2", "MTE2<V",
               "V:2"]
CASES: dict[str, list[tuple[list[str], tuple[Repeat, ...]]]] = {
    "one core": [(ALONE, (Repeat(0, 9, 1000),))],
    "nested": [(ALONE, (Repeat(0, 10, 50), Repeat(0, 9, 40), Repeat(3, 4, 6)))],
    "set before the loop": [(["V>MTE2", "MTE2:5", "MTE2>V", "MTE2<V", "V<MTE2", "V:7.1", "V>MTE2", "MTE2<V", "V:2"],
                             (Repeat(1, 7, 300),))],
    "two cores": [([*CUBE_PART, "M:5"], (Repeat(0, 12, 500),)), (["MTE3+2", *VECTOR_PART, "V:6"], (Repeat(1, 13, 500),))],
    "two in flight": [([*CUBE_PART, "M:5"], (Repeat(0, 12, 500),)),
                      (["MTE3+2", "MTE3+2", *VECTOR_PART, "V:6"], (Repeat(2, 14, 500),))],
    "one is ahead": [(["M:3", "FIX+1", "M:5"], (Repeat(0, 2, 500),)),
                     (["MTE2-1", "MTE2:13", "V:11.7", "V:6"], (Repeat(0, 3, 500),))],
    "other loops": [([*CUBE_PART, "M:5"], (Repeat(0, 12, 600),)),
                    (["MTE3+2", *VECTOR_PART, "V:1.5", *VECTOR_PART, "V:1"], (Repeat(1, 26, 300), Repeat(13, 14, 7)))],
}


@pytest.mark.parametrize("name", CASES)
def test_times_are_those_of_all_iterations(name: str) -> None:
    periodic, whole, cores = orders(CASES[name])
    assert executed(periodic) == len(whole.steps)
    if name != "one is ahead":
        assert periodic.periods
        assert len(periodic.steps) < len(whole.steps) / 4
    one, other = (simulate_times(order, cores, CHIP, {}) for order in (periodic, whole))
    assert one.cycles == pytest.approx(other.cycles, rel=1e-12)
    assert one.cores == pytest.approx(other.cores, rel=1e-12)
    for found, expected in zip(one.busy + one.worked, other.busy + other.worked, strict=True):
        assert found == pytest.approx(expected, rel=1e-10)
    assert one.held == pytest.approx(other.held, rel=1e-3)  # at which of two waits a pipe is held depends on the order of issue
    assert [[end for _, end in row] for row in one.spans] == [pytest.approx([end for _, end in row]) for row in other.spans]


def test_cores_that_hang_are_an_error() -> None:
    with pytest.raises(TileError) as found:
        orders([(["M:40", "FIX+1", "MTE2-2"], (Repeat(0, 3, 500),)), (["MTE2-1", "V:4"], (Repeat(0, 2, 500),))])
    assert found.value.code == "S302"
