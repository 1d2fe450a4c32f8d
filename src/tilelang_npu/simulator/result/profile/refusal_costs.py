"""The cost of a refused optimisation: the launch timed again without what the optimisation would have removed.

For example without a copy, or without the waits for the only slot of a buffer. The result is an upper bound of the gain: an
edit may have costs of its own. If the launch takes as long without it, the refusal costs nothing, and no edit is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tilelang_npu.dialects.remarks import Held, Remark, Scoped, WaitReason, Waits, remarks_of
from tilelang_npu.simulator.machine.op_records import Event, Mmad, OpRecord, number_of
from tilelang_npu.simulator.result.profile.time_parts import line_of
from tilelang_npu.simulator.time.cost import CostModel
from tilelang_npu.simulator.time.pipe_steps import BARRIER, CROSS_SET, CROSS_WAIT, JOIN, PIPE, RUN, WAIT, Expansion, PipeStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tilelang_npu.simulator.result.call_launches import AnyLaunch
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.target import Chip

__all__ = ["RefusalCost", "cost_of"]

LEAST = 0.01
"""The share of its time that a kernel must lose for a refusal to count as costly."""
_SLOTS = ("multi-buffer", "sink-buffers", "keep-apart")
"""Optimisations about bytes that accesses wait for."""
_AT_A_LINE = ("hoist-loads", "collapse-copies", "fold-accumulator-clear")
"""Optimisations that would remove all or nearly all work of the refused line."""

_Left = Callable[[OpRecord, PipeStep, tuple[WaitReason, ...]], PipeStep | None]
"""Returns the remaining step of an op, given its record, the step, and the reasons of its waits; None if nothing remains."""


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
    """Returns the microseconds of a launch without the consequences of a refusal."""
    if said.about == "banks":
        return launch.retimed(_without_conflicts(launch.chip)).time_us
    left = _left(said)
    if left is None:
        return None
    program = launch.recorded.program
    reasons = {id(function.records): [tuple(reason for one in remarks_of(op) if isinstance(one.facts, Waits)
                                            and one.facts.place is None for reason in one.facts.reasons)
                                      for op in program.ops(index)] for index, function in enumerate(program.functions)}
    vector = {id(function.records) for function in program.functions if function.core == "AIV"}
    if said.about == "bind-sub-blocks" and not vector:
        return launch.time_us
    return launch.retimed(expand=partial(_Less, left, reasons, vector if said.about == "bind-sub-blocks" else None)).time_us


def _left(said: Remark) -> _Left | None:
    """Returns the change of a kernel's steps without a refusal; None where steps cannot express it."""
    facts = said.facts
    if said.about in _SLOTS:
        if isinstance(facts, Scoped):
            facts = Held((facts.label,), facts.spaces[0])
        return partial(_waiting, facts) if isinstance(facts, Held) and not facts.bytes_alone else None
    if said.about in _AT_A_LINE and said.place is not None:
        return partial(_working, said)
    if said.about == "vectorise-parallel":
        return _scalar
    if said.about == "overlap-iterations":
        return _apart
    if said.about == "bind-sub-blocks":
        return partial(_divided, facts.labels if isinstance(facts, Held) else ())
    return None


def _waiting(held: Held, record: OpRecord, step: PipeStep, reasons: tuple[WaitReason, ...]) -> PipeStep | None:
    """Removes waits until bytes of some buffers are free again."""
    if step.kind == JOIN and step.pipe == PIPE["M"]:  # the product waits until the previous one is drained
        return None if isinstance(record.work, Mmad) and any(
            access.label in held.labels for access in record.accesses if access.memory == "cc") else step
    if step.kind not in (WAIT, BARRIER, CROSS_WAIT):
        return step
    for reason in reasons:
        names = {reason.first.name, reason.second.name}
        if names <= set(held.labels) and (len(names) == 2 if held.shared else reason.kind != "RAW"):
            return None
    return step


def _working(said: Remark, record: OpRecord, step: PipeStep, reasons: tuple[WaitReason, ...]) -> PipeStep | None:
    """Removes the work of a line."""
    return None if step.kind == RUN and line_of(record.location) == line_of(said.place) else step


def _scalar(record: OpRecord, step: PipeStep, reasons: tuple[WaitReason, ...]) -> PipeStep | None:
    """Removes loads and stores of single elements."""
    return None if step.kind == RUN and step.pipe == PIPE["S"] else step


def _apart(record: OpRecord, step: PipeStep, reasons: tuple[WaitReason, ...]) -> PipeStep | None:
    """Removes the flags between the cores."""
    return None if step.kind in (CROSS_SET, CROSS_WAIT) else step


def _divided(labels: Sequence[str], record: OpRecord, step: PipeStep, reasons: tuple[WaitReason, ...]) -> PipeStep | None:
    """Halves the work on some buffers, or all work, which both Vector cores do."""
    if step.kind != RUN or (labels and not any(access.label in labels for access in record.accesses)):
        return step
    return step._replace(cost=replace(step.cost, busy=step.cost.busy / 2, done=step.cost.done / 2))


class _Less(Expansion):
    """The steps that are left.

    Args:
        left: what is left of a step.
        reasons: what the ops of each function wait for.
        only: the functions that it is about; None for all.
        records, costs: as for ``Expansion``.
    """

    def __init__(self, left: _Left, reasons: dict[int, list[tuple[WaitReason, ...]]], only: set[int] | None,
                 records: Sequence[OpRecord], costs: CostModel) -> None:
        super().__init__(records, costs)
        self._left, self._reasons = left, reasons[id(records)]
        self._all = only is not None and id(records) not in only

    def of(self, event: Event) -> tuple[PipeStep, ...]:
        """The steps of an event."""
        steps = super().of(event)
        if self._all:
            return steps
        number = number_of(event)
        left = (self._left(self.records[number], step, self._reasons[number]) for step in steps)
        return tuple(step for step in left if step is not None)


def _without_conflicts(chip: Chip) -> Chip:
    """Returns the chip without bank conflicts."""
    return replace(chip, vector={name: replace(rate, banked=False) for name, rate in chip.vector.items()})
