"""The cost of a refused optimisation: the launch timed again without what the optimisation would have removed.

For example without a copy, or without the waits for the only slot of a buffer. The result is an upper bound of the gain: an
edit may have costs of its own. If the launch takes as long without it, the refusal costs nothing, and no edit is needed.
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
"""The share of its time that a kernel must lose for a refusal to count as costly."""
_SLOTS = ("multi-buffer", "sink-buffers", "keep-apart")
"""Optimisations about bytes that accesses wait for."""
_AT_A_LINE = ("hoist-loads", "collapse-copies", "fold-accumulator-clear")
"""Optimisations that would remove all or nearly all work of the refused line."""

@dataclass(frozen=True)
class RefusalCost:
    """An upper bound of the cost of a refusal.

    Attributes:
        before: microseconds of the call.
        after: microseconds without what the optimisation would have removed.
        busiest: the busiest pipe, as text.
    """

    before: float
    after: float
    busiest: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the refusal costs nothing."""
        return self.before - self.after < LEAST * self.before

    def __str__(self) -> str:
        if self.nothing:
            return f"costs nothing: {self.before:.1f} us with it, {self.after:.1f} us without it{self.busiest}"
        return f"costs at most {self.before - self.after:.1f} of {self.before:.1f} us"


def cost_of(said: Remark, refused: Iterable[Remark], launch: AnyLaunch) -> RefusalCost | None:
    """Returns the cost of a refusal; None where it cannot be computed.

    Args:
        said: the refusal.
        refused: all refusals of the kernel.
        launch: a launch of it.
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
    """Returns the memories in which a refusal lacks bytes."""
    facts = said.facts
    if isinstance(facts, Held):
        return (facts.space,) if said.about in _SLOTS and not facts.bytes_alone else ()
    return facts.spaces if isinstance(facts, Scoped) and said.about in _SLOTS else ()


def _without(said: Remark, launch: Launch) -> float | None:
    """Returns the microseconds of a launch without the consequences of a refusal; None where they cannot be computed."""
    if said.about == "banks":
        rates = {name: replace(rate, banked=False) for name, rate in launch.chip.vector.items()}
        return launch.retimed(replace(launch.chip, vector=rates)).time_us
    change = _change(said, launch)
    return None if change is None else with_steps(launch, change).time_us


def _change(said: Remark, launch: Launch) -> Change | None:
    """Returns the change of a kernel's steps without a refusal; None where steps cannot express it."""
    facts = said.facts
    if said.about in _SLOTS:
        if isinstance(facts, Scoped):
            facts = Held((facts.label,), facts.spaces[0])
        return _without_waits_for(facts, launch) if isinstance(facts, Held) and not facts.bytes_alone else None
    if said.about in _AT_A_LINE and said.place is not None:
        return lambda record, step: None if step.kind == RUN and line_of(record.location) == line_of(said.place) else step
    if said.about == "bind-sub-blocks":  # both Vector cores do the work on some buffers, or all work
        labels = facts.labels if isinstance(facts, Held) else ()
        return lambda record, step: (
            scaled_work(step, 0.5) if record.core == "AIV" and step.kind == RUN and
            (not labels or any(access.label in labels for access in record.accesses)) else step)
    return {"vectorise-parallel": without_scalar_work, "overlap-iterations": without_flags}.get(said.about)


def _without_waits_for(held: Held, launch: Launch) -> Change:
    """Returns the change that removes waits until bytes of some buffers are free again."""
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
