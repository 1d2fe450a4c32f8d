"""The cost of a refusal: the time that a kernel loses because the compiler could not apply an optimisation.

To find that cost, the launch is timed again without the work or the waits that the optimisation would have removed, such as a
copy, or the waits for the only slot of a buffer. The cost is an upper bound of the gain of an edit, because the edit can cause
costs of other kinds. If the launch does not become faster, the refusal costs nothing and no edit is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilelang_npu.dialects.ir.remarks import Held, Remark, Scoped, Waits, remarks_of
from tilelang_npu.simulator.machine.op_records import Mmad, OpRecord
from tilelang_npu.simulator.result.profile.time_parts import line_of
from tilelang_npu.simulator.result.profile.what_if import with_steps, without_flags, without_scalar_work
from tilelang_npu.simulator.time.pipe_steps import BARRIER, CROSS_WAIT, JOIN, PIPE, RUN, WAIT, Change, PipeStep, scaled_work

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tilelang_npu.simulator.result.call_launches import AnyLaunch
    from tilelang_npu.simulator.result.launch_result import Launch

__all__ = ["RefusalCost", "cost_of"]

LEAST = 0.01
"""The minimum loss, as a share of the kernel's time, for which a refusal counts as costly."""
_SLOTS = ("multi-buffer", "sink-buffers", "keep-apart")
"""Optimisations that remove waits until bytes of a buffer are free again."""
_AT_A_LINE = ("hoist-loads", "collapse-copies", "fold-accumulator-clear")
"""Optimisations that remove all or nearly all work of the source line that they are applied to."""

@dataclass(frozen=True)
class RefusalCost:
    """An upper bound of the time that a kernel loses by a refused optimisation.

    Attributes:
        before: the modelled duration of the call in microseconds.
        after: the duration in microseconds without the work or the waits that the optimisation would have removed.
        busiest: a text about the busiest pipe that ends the message if the refusal costs nothing; it can be empty.
    """

    before: float
    after: float
    busiest: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the refusal costs nothing: the loss is less than ``LEAST`` of the time."""
        return self.before - self.after < LEAST * self.before

    def __str__(self) -> str:
        if self.nothing:
            return f"costs nothing: {self.before:.1f} us now, {self.after:.1f} us if optimised{self.busiest}"
        return f"costs at most {self.before - self.after:.1f} of {self.before:.1f} us"


def cost_of(said: Remark, refused: Iterable[Remark], launch: AnyLaunch) -> RefusalCost | None:
    """Returns the cost of a refused optimisation; None if it cannot be computed.

    Args:
        said: the remark about the refusal.
        refused: the remarks about all refusals of the kernel.
        launch: a launch of the kernel.
    """
    whose = [said]
    if isinstance(said.facts, Held) and said.facts.bytes_alone:  # its cost is that of the refusals for lack of its bytes
        whose = [one for one in refused if said.facts.space in _wanting(one)]
    found = [launch.time_us]
    for one in whose:
        times = [_without(one, part) for part in launch.parts]
        if any(time is None for time in times):
            return None
        found.append(sum(time for time in times if time is not None))
    core, pipe, share = max(launch.parts, key=lambda part: part.time_us).busiest
    busiest = f"; {pipe} of {core} is busy {share:.0%} of the time" if pipe else ""
    return RefusalCost(launch.time_us, min(found), busiest)


def _wanting(said: Remark) -> tuple[str, ...]:
    """Returns the memories whose lack of free bytes is the reason of a refusal."""
    facts = said.facts
    if isinstance(facts, Held):
        return (facts.space,) if said.about in _SLOTS and not facts.bytes_alone else ()
    return facts.spaces if isinstance(facts, Scoped) and said.about in _SLOTS else ()


def _without(said: Remark, launch: Launch) -> float | None:
    """Returns the duration of a launch, in microseconds, if the refused optimisation had been applied; None if it cannot be
    computed."""
    if said.about == "banks":
        rates = {name: replace(rate, banked=False) for name, rate in launch.chip.vector.items()}
        return launch.retimed(replace(launch.chip, vector=rates)).time_us
    change = _change(said, launch)
    return None if change is None else with_steps(launch, change).time_us


def _change(said: Remark, launch: Launch) -> Change | None:
    """Returns the change of the kernel's steps that a refused optimisation would make; None if no change of steps expresses the
    optimisation."""
    facts = said.facts
    if said.about in _SLOTS:
        if isinstance(facts, Scoped):
            facts = Held((facts.label,), facts.spaces[0])
        return _without_waits_for(facts, launch) if isinstance(facts, Held) and not facts.bytes_alone else None
    if said.about in _AT_A_LINE and said.place is not None:
        return lambda record, step: None if step.kind == RUN and line_of(record.location) == line_of(said.place) else step
    if said.about == "bind-sub-blocks":  # all Vector cores of a block do the work on some buffers, or all work
        labels = facts.labels if isinstance(facts, Held) else ()
        return lambda record, step: (
            scaled_work(step, 1 / launch.chip.aiv_per_aic) if record.core == "AIV" and step.kind == RUN and
            (not labels or any(access.label in labels for access in record.accesses)) else step)
    return {"vectorise-parallel": without_scalar_work, "overlap-iterations": without_flags}.get(said.about)


def _without_waits_for(held: Held, launch: Launch) -> Change:
    """Returns the change of the kernel's steps that removes the waits until bytes of some buffers are free again.

    Args:
        held: the data of the refusal's remark, with the names of these buffers.
        launch: the launch.
    """
    program = launch.recorded.program
    reasons = {(function.core, record.number): [reason for one in remarks_of(op) if isinstance(one.facts, Waits)
                                                and one.facts.place is None for reason in one.facts.reasons]
               for index, function in enumerate(program.functions)
               for op, record in zip(program.ops(index), function.records, strict=True)}

    def change(record: OpRecord, step: PipeStep) -> PipeStep | None:
        if step.kind == JOIN and step.pipe == PIPE["M"]:  # the product waits until the previous one is drained
            return None if isinstance(record.work, Mmad) and any(
                access.label in held.labels for access in record.accesses if access.memory == "cc") else step
        if step.kind not in (WAIT, BARRIER, CROSS_WAIT):
            return step
        for reason in reasons[record.core, record.number]:
            names = {reason.first.name, reason.second.name}
            if names <= set(held.labels) and (len(names) == 2 if held.shared else reason.kind != "RAW"):
                return None
        return step

    return change
