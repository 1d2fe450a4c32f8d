"""The predecessors of the moments of a step: the moment that decided when it happened."""

from __future__ import annotations

import pytest

from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.time.cost import Cost
from tilelang_npu.simulator.time.critical_path import RecordedWalk
from tilelang_npu.simulator.time.pipe_steps import PIPE, RUN, SET, Expansion, PipeStep
from tilelang_npu.simulator.time.step_order import StepOrder
from tilelang_npu.target import chip

CHIP = chip("Ascend910B2")


class _Steps(Expansion):
    """Steps that are given, each of them an op."""

    def __init__(self, *steps: PipeStep) -> None:
        self.steps = steps

    def of(self, event: object) -> tuple[PipeStep, ...]:
        assert isinstance(event, int)
        return (self.steps[event],)


@pytest.mark.parametrize(("longer", "work"), [(-0.5, -1), (0, -1), (0.5, 0)])
def test_a_set_waits_for_work_that_is_not_done_when_the_set_is_issued(longer: float, work: int) -> None:
    """The work takes as long as the scalar unit takes to issue the set, or less, or more."""
    done = CHIP.scalar.issue + longer
    steps = _Steps(PipeStep(RUN, PIPE["V"], cost=Cost(0.0, done)), PipeStep(SET, PIPE["V"], PIPE["MTE3"]))
    order = StepOrder([CoreId(0, "AIV")], [(0, 1)], [steps], CHIP.sync.flag_limit)
    walk = RecordedWalk(order, 1, CHIP, {})
    assert walk.work_before(1) == work
