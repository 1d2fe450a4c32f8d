"""A timing walk over the steps of a launch in which waits for other cards of a pod end at given times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.time.pipe_steps import PIPE, PipeStep
from tilelang_npu.simulator.time.step_order import StepOrder
from tilelang_npu.simulator.time.timing import SCALAR, Pace, PipeClock, TimedWalk
from tilelang_npu.target import Chip

COMPUTING = (PIPE["M"], PIPE["V"])
PeerOp = tuple[int, int]
"""A signal or a wait for other cards: the position of its core, and of the executed op in the stream of the core."""


class HeldWait(NamedTuple):
    """A wait for other cards that held its core.

    Attributes:
        op: the wait.
        record: the number of the op's record.
        start, end: the cycles in which the core reaches the wait and goes on.
    """

    op: PeerOp
    record: int
    start: float
    end: float


class CardWalk(TimedWalk):
    """A timing walk that holds waits for other cards until given cycles, and notes when signals arrive at the other cards.

    Args:
        order, cores, chip, pace: as for ``TimedWalk``.
        ends: for each signal and each wait for other cards, the cycle before which a wait does not end; 0 for signals.

    Attributes:
        reached: for each of them the cycle in which its core reaches it.
        effects: for each of them the cycle in which it is done; a signal is at the other card then.
        waits: the waits that were not over when their cores reached them.
        computing: the cycles in which pipes M and V work, as intervals by core and pipe, in order.
        cycles: the cycle in which the last core is done, after :meth:`walk`.
    """

    def __init__(self, order: StepOrder, cores: int, chip: Chip, pace: Pace, ends: Mapping[PeerOp, float]) -> None:
        super().__init__(order, cores, chip, pace)
        self._ends = ends
        self._numbers = order.steps.columns[2]
        self.reached: dict[PeerOp, float] = {}
        self.effects: dict[PeerOp, float] = {}
        self.waits: list[HeldWait] = []
        self.computing: dict[tuple[int, int], list[list[float]]] = {}
        self.cycles = 0.0

    def walk(self) -> None:
        """Computes the times of all steps; must be called once."""
        super().walk()
        self.cycles = max((clock.drained() for clock in self.clocks), default=0.0)

    def run(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Times a step that executes work."""
        core, number = pipe.clock.number, pipe.number
        if number == SCALAR and (op := (core, self._numbers[place])) in self._ends:
            self.reached[op] = start
            if self._ends[op] > start:
                self.held[core, step.op, step.place] += self._ends[op] - start
                self.waits.append(HeldWait(op, step.op, start, self._ends[op]))
                start = self._ends[op]
            self.effects[op] = start + step.cost.done
        began = super().run(pipe, start, step, place, partners)
        if number in COMPUTING and pipe.free > began:
            spans = self.computing.setdefault((core, number), [])
            if spans and began <= spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], pipe.free)
            else:
                spans.append([began, pipe.free])
        return began


class CardTimer(NamedTuple):
    """What is needed to time a group of cores under different ends of their waits for other cards.

    Attributes:
        order: the ordered steps of the cores.
        cores: the cores.
        chip: the chip.
        pace: the speed of transfers in GM.
    """

    order: StepOrder
    cores: Sequence[CoreId]
    chip: Chip
    pace: Pace

    def walk(self, ends: Mapping[PeerOp, float]) -> CardWalk:
        """Returns the walk in which the waits end at the given cycles at the earliest."""
        walk = CardWalk(self.order, len(self.cores), self.chip, self.pace, ends)
        walk.walk()
        return walk
