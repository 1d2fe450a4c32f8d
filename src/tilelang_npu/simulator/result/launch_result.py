"""``Launch``, the result of a launch: times, hazards, written elements, timeline and summary, each computed on demand."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilelang_npu import display
from tilelang_npu.errors import TileError, door
from tilelang_npu.sharing import once
from tilelang_npu.simulator.machine.aliasing_arguments import memory_ranges
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.simulator.machine.repeated_events import RepeatedStream, counted, kept_events, unrolled
from tilelang_npu.simulator.result import JsonObject, gm_transfers, report
from tilelang_npu.simulator.result.block_kinds import Key, block_kinds_in_memory, key_of
from tilelang_npu.simulator.result.kernel_class import COPY, kind_of
from tilelang_npu.simulator.result.time_split import Split, split_of
from tilelang_npu.simulator.result.written_elements import written
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch, SharedResults
from tilelang_npu.simulator.time import l2
from tilelang_npu.simulator.time.card_waits import CardTimer
from tilelang_npu.simulator.time.cost import CostModel
from tilelang_npu.simulator.time.critical_path import CoreGroup, CoreGroupTimes, RecordedWalk
from tilelang_npu.simulator.time.gm_traffic import (
    GmUse,
    MovedBytes,
    Served,
    Sharing,
    bytes_of,
    gm_use,
    pace_of,
    seconds_of_links,
    served,
)
from tilelang_npu.simulator.time.gm_traffic import Key as Tensor
from tilelang_npu.simulator.time.periodic_order import PeriodicOrder
from tilelang_npu.simulator.time.pipe_steps import Expansion
from tilelang_npu.simulator.time.step_order import StepOrder
from tilelang_npu.simulator.time.timing import BlockTiming, simulate_times
from tilelang_npu.target import Chip, error_of
from tilelang_npu.target.chip_data import PIPES, CoreKind, Pipe

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.access_map import AccessMap
    from tilelang_npu.simulator.result.profile.launch_profile import Profile
    from tilelang_npu.simulator.result.profile.time_parts import Reason
    from tilelang_npu.simulator.sanitizer.hazard import Hazard
    from tilelang_npu.simulator.sanitizer.numerics import NumberFinding

ROUNDS = 8
"""Maximum number of iterations in which a block's time and the number of GM transfers in flight are computed from each
other."""
SETTLED = 0.01
"""The relative change, of a block's cycles and of the number of transfers in flight, below which this iteration ends."""


TIMED_EVENTS = 400_000
"""Maximum number of executed ops, summed over the kinds of blocks, that are timed. Further kinds of blocks get the time of the
timed kind with the closest number of executed ops."""
OF_DISPATCH, OF_LATENCY = 0.9, 0.4
"""Thresholds of ``Launch.bound_by``, as shares of the time: if the dispatch of blocks takes a larger share than the first,
dispatch bounds the launch; if the most used pipe works for a smaller share than the second, latency bounds it."""
OF_BYTES = 0.5
"""``Launch.bound_by`` names atomic updates in place of L2 if the bytes of the launch take less than this share of the time for
which L2 is occupied: the rest is spent on updates of one line, one after the other."""
MAX_EVENTS_OF_PATH = 10_000
"""Maximum number of executed ops, summed over the kinds of blocks, of a launch whose critical path ``Launch.critical_path``
computes."""
STALE_KINDS = 16
"""Maximum number of kinds of blocks that ``Launch.stale`` searches."""
STALE_EVENTS = 250_000
"""Maximum number of executed ops of the kinds of blocks that ``Launch.stale`` searches, except if the first kind has more. The
search takes about four times as long as the simulation of the same ops."""
KEPT_STEPS = 1_000_000
"""Maximum number of steps in the step orders that a launch keeps in memory; other step orders are computed again when
needed."""


def _different_lengths_first(runs: list[BlockRun]) -> list[BlockRun]:
    """Returns the kinds of blocks in their order, but first one of each number of ops that the lanes execute."""
    firsts = {tuple(map(len, run.streams)): run for run in reversed(runs)}
    chosen = {id(run) for run in firsts.values()}
    return sorted(runs, key=lambda run: id(run) not in chosen)


@dataclass(frozen=True)
class Group:
    """A group of blocks that execute the same ops while equally many blocks run concurrently; they have equal times.

    Attributes:
        run: one of the blocks.
        width: the number of blocks of the launch that run concurrently with each block of the group, itself included.
        count: the number of blocks in the group.
        sharing: the mean numbers of GM transfers in flight on the whole chip with which the times were computed.
        lockstep: whether all cores begin at once, so that several cores read the same bytes at the same time.
        timing: the times of one block, or of all blocks if the blocks wait for each other.
    """

    run: BlockRun
    width: int
    count: int
    sharing: Sharing
    lockstep: bool
    timing: BlockTiming


GroupKey = tuple[Key, int, bool]
"""The key of a group of blocks: the event streams of the block, the number of blocks that run concurrently, and whether the
cores begin at once and read some bytes at the same time."""
L2State = Literal["warm", "cold"]
"""The state of L2 when a launch begins: ``warm``, L2 holds what an identical launch before has left; ``cold``, L2 is empty."""
WARM: L2State = "warm"
Expand = Callable[[Sequence[OpRecord], CostModel], Expansion]
"""A function that returns the steps of the ops of a kernel's function, from the records of the ops and the chip's costs."""

_Value = TypeVar("_Value")


def _in_common(make: Callable[[Launch], _Value]) -> once[Launch, _Value]:
    """Makes a method a cached property. Launches whose recorded instructions are equal share one value; a launch that is timed
    on another chip, with changed steps or with a cold L2 has its own.
    """
    return once(make, lambda launch: launch if launch.is_retimed else launch.recorded.alike)


@door
class Launch:
    """The result of a launch of a kernel on a modelled chip: times, use of pipes and memories, hazards, and timeline.

    Args:
        recorded: the record of the launch.
        hazards: whether to search for hazards immediately; otherwise they are searched when ``hazards`` is first read.
        numbers: the numerical faults that an observer found while the launch ran; empty if there was no observer.
        made: the positions, among the user's arguments, of arrays that the call allocated, whose contents were undefined.
        before: the earlier launches of the same call.
        chip: the chip on which the launch is timed; None for the program's chip. The number of cores is always that of the
            program's chip.
        expand: a function that returns the steps of the ops of a kernel's function.
        l2_state: the state of L2 when the launch begins: ``warm`` or ``cold``.

    The results that depend on the record alone are computed once for all launches with equal records.
    """

    def __init__(self, recorded: RecordedLaunch, *, hazards: bool = False, numbers: Sequence[NumberFinding] = (),
                 made: Iterable[int] = (), before: Sequence[Launch] = (), chip: Chip | None = None,
                 expand: Expand = Expansion, l2_state: L2State = WARM) -> None:
        self.recorded = recorded
        self.l2_state = l2_state
        self._made, self._before = tuple(made), tuple(before)
        self.numbers = list(numbers)
        self.chip = chip or recorded.program.chip
        self._expand = expand
        self.blocks = recorded.count
        self.name = recorded.program.name
        self._hazards: list[Hazard] | None = None
        self._lock = RLock()
        self._checked = self._orders_exist  # raises the deadlocks that only pipes show
        if hazards:
            self._find_hazards()

    def __reduce__(self) -> tuple[object, ...]:
        return _launch, (self.recorded, self.numbers, self._made, self._before, self._hazards,
                         None if self.chip is self.recorded.program.chip else self.chip, self._expand, self.l2_state)

    @property
    def is_retimed(self) -> bool:
        """Whether the launch is timed on another chip than the program's, with changed steps of ops, or with a cold L2."""
        return self.chip is not self.recorded.program.chip or self._expand is not Expansion or self.l2_state != WARM

    def retimed(self, chip: Chip | None = None, *, expand: Expand = Expansion, blocks: Sequence[BlockRun] = (),
                l2_state: L2State | None = None) -> Launch:
        """Returns the same launch, timed again under other conditions. The kernel does not run again.

        Args:
            chip: the chip whose rates and latencies are used; None for the chip of this launch.
            expand: a function that returns the steps of the ops of a kernel's function.
            blocks: the blocks of this launch in another order; empty to leave the order unchanged.
            l2_state: the state of L2 when the launch begins, ``warm`` or ``cold``; None for the state of this launch.
        """
        recorded = replace(self.recorded, blocks=tuple(blocks), alike=SharedResults()) if blocks else self.recorded
        return Launch(recorded, chip=chip or self.chip, expand=expand, l2_state=l2_state or self.l2_state)

    def keep(self, changed: Iterable[int]) -> None:
        """Copies arrays that the caller is about to change, if this launch used them and was not searched for hazards yet.

        The search for hazards needs the contents that the launch left in the arrays.

        Args:
            changed: the positions of these arrays among the user's arguments.
        """
        bound, program = self.recorded.bound, self.recorded.program
        if self._hazards is None:
            which = program.used.intersection(bound.users[position] for position in changed)
            if which:
                self.recorded = replace(self.recorded, bound=bound.copied(which))

    def release(self) -> bool:
        """Gives up the arrays of the launch, and what can be computed again, so that only the record stays in memory.

        Times, traffic and reports stay as they are. Hazards that were not searched for yet are then those that numbers made up
        by the simulator show, as for ``estimate()``. A launch whose ops depend on data keeps its arrays until its hazards are
        known, and so does one whose program cannot be compiled again, because a plug-in of it is no longer loaded.

        Returns:
            whether the launch has given up its arrays.
        """
        with self._lock:
            try:
                if self._hazards is None and not self.recorded.program.data_free:
                    return False
            except TileError:
                return False
            self._orders.clear()
            self._periodic_orders.clear()
            self.recorded = replace(self.recorded, bound=self.recorded.bound.blank(), traced=True)
        return True

    @property
    def parts(self) -> tuple[Launch, ...]:
        """This launch as the only element of a tuple; a call with several launches has several (``Launches.parts``)."""
        return (self,)

    @property
    def workspaces(self) -> tuple[int, ...]:
        """No position: only a call with several launches (``Launches.workspaces``) passes tensors from launch to launch."""
        return ()

    @_in_common
    def expansions(self) -> list[Expansion]:
        """The steps of the ops of each function of the kernel."""
        upstream = self.recorded.as_upstream
        costs = CostModel(self.chip, scalar_arange=upstream is not None and upstream.dialect == "npuir")
        return [self._expand(function.records, costs) for function in self.recorded.program.functions]

    # -- times ---------------------------------------------------------------------------------------------------------

    @property
    def cores(self) -> int:
        """The number of blocks that the chip can run concurrently."""
        cores = self.recorded.program.cores
        return min(cores, self.chip.aic * self._points_share) if self._takes_all_cores else cores

    @property
    def waves(self) -> int:
        """The number of waves: the number of blocks divided by ``cores``, rounded up."""
        return -(-self.blocks // self.cores)

    @property
    def cycles(self) -> float:
        """The cycles from the start of the first block to the end of the last one, without launch overhead."""
        return max(self.core_cycles)

    @property
    def time_us(self) -> float:
        """The modelled duration of the launch in microseconds, as a profiler would show it: the time of ``cycles`` and the
        launch overhead ``launch_us``."""
        return self.chip.microseconds(self.cycles) + self.launch_us

    @property
    def launch_us(self) -> float:
        """The launch overhead in microseconds, in which no block runs: the start and end of the kernel, which depend on the
        number of cores."""
        return self.launch_us_of(self.blocks)

    def launch_us_of(self, blocks: int) -> float:
        """Returns the launch overhead in microseconds if the kernel were launched with another number of blocks."""
        law, lanes = self.chip.launch, self.recorded.program.lanes
        kinds = {self.recorded.program.functions[index].core for index, _ in lanes}
        mixed = len(kinds) > 1 or self._takes_all_cores
        cores = min(self.cores, blocks) * self._cores_of_block
        each = law.core_us if mixed or "AIC" in kinds else law.vector_core_us
        return law.kernel_us + (law.mixed_us if mixed else 0.0) + each * (cores - 1)

    def least_us_of_division(self) -> tuple[float, int]:
        """Returns the least time of the launch's work, and the number of blocks for which it holds, at most one for each core.

        The time is a bound: it holds if the work of the blocks can be divided equally, and if a block's time is proportional
        to its work.
        """
        work = self.chip.microseconds(self.cycles) * self.blocks / self.waves
        return min((self.launch_us_of(blocks) + work / blocks, blocks) for blocks in range(1, self.cores + 1))

    @property
    def _takes_all_cores(self) -> bool:
        """Whether each block occupies a Cube core and all its Vector cores, even if the kernel uses only some of them."""
        return self.recorded.as_upstream is not None and self.recorded.as_upstream.dialect == "ascendc"

    @property
    def _points_share(self) -> int:
        """The number of blocks that run on one Cube core and its Vector cores, if each point of the grid occupies all of
        them."""
        return self.recorded.as_upstream.blocks_per_point if self.recorded.as_upstream is not None else 1

    @property
    def _cores_of_block(self) -> float:
        """The number of cores that are started for a block."""
        return (1 + self.chip.aiv_per_aic) / self._points_share if self._takes_all_cores else len(self.recorded.program.lanes)

    @property
    def dispatch_cycles(self) -> float:
        """The cycles that the chip needs to dispatch a block; blocks are dispatched one after the other."""
        return self.chip.launch.dispatch_us * self._cores_of_block * 1e-6 * self.chip.clock

    @_in_common
    def kind(self) -> str:
        """The class of the kernel, for the error of the time: ``copy``, ``element-wise``, ``rearrangement``, ``reduction``,
        ``sort``, ``small gemm``, ``gemm``, ``attention`` or ``mixed`` (docs/accuracy.md)."""
        return kind_of(self.recorded)

    @property
    def error(self) -> float | None:
        """The error of ``time_us`` as a share of ``time_us``: 80 % of the measured kernels that are like this one have a
        smaller error (docs/accuracy.md). None if too few such kernels were measured on chips of the family, if the chip is
        described by a user's file, or if the launch moves data between cards, which no measured kernel does."""
        return None if self.linked else error_of(self.kind, self.time_us, self.chip)

    @_in_common
    def split(self) -> Split:
        """The division of ``time_us`` into launch overhead, ramp-up, steady state and tail, in microseconds."""
        return split_of(self)

    @_in_common
    def block_starts(self) -> list[float]:
        """For each block the cycle in which it begins, counted from the start of the first block: the block must be dispatched,
        and its core must be free."""
        dispatch, cores = self.dispatch_cycles, min(self.cores, self.blocks)
        ends, starts = [0.0] * cores, []
        for place, group in enumerate(self.group_of_block):
            starts.append(max(ends[place % cores], (place - cores + 1) * dispatch))
            ends[place % cores] = starts[-1] + group.timing.cycles
        return starts

    @_in_common
    def core_cycles(self) -> list[float]:
        """For each core the cycle in which its last block ends, counted from the start of the first block of the launch."""
        ends = [start + group.timing.cycles for start, group in zip(self.block_starts, self.group_of_block, strict=True)]
        return [ends[len(ends) - 1 - (len(ends) - 1 - core) % self.cores] for core in range(min(self.cores, self.blocks))]

    @property
    def group_of_block(self) -> list[Group]:
        """For each block the group of blocks with equal times that the block belongs to."""
        return self._timed_blocks[0]

    @property
    def sample(self) -> tuple[int, int]:
        """The number of kinds of blocks that were timed, and the number of all kinds. They differ for launches with many
        different blocks."""
        return self._timed_blocks[1]

    @_in_common
    def _timed_blocks(self) -> tuple[list[Group], tuple[int, int]]:
        """For each block its group, and the pair of numbers that ``sample`` returns."""
        cores, runs, lockstep = self.cores, self.recorded.blocks, bool(self._places_at_once)
        if self.recorded.program.global_sync:
            return [self._timed(list(runs), len(runs), 1, lockstep=lockstep)] * len(runs), (1, 1)
        keys = [(key_of(run), min(cores, len(runs) - place // cores * cores), lockstep and place < cores)
                for place, run in enumerate(runs)]
        distinct = dict(zip(keys, runs, strict=True))
        timed = self._representatives({key: sum(map(len, run.streams)) for key, run in distinct.items()})
        counts = Counter(timed[key] for key in keys)
        made = {key: self._timed([distinct[key]], key[1], counts[key], lockstep=key[2])
                for key in dict.fromkeys(timed.values())}
        return [made[timed[key]] for key in keys], (len(set(timed.values())), len(timed))

    @staticmethod
    def _representatives(sizes: dict[GroupKey, int]) -> dict[GroupKey, GroupKey]:
        """Returns, for each kind of block, the kind whose blocks are timed to get the time of its blocks.

        This is the kind itself, unless the timed kinds would then have more than ``TIMED_EVENTS`` executed ops. In that case it
        is the timed kind with the closest number of executed ops.

        Args:
            sizes: for each kind of block, the number of executed ops.
        """
        chosen: list[GroupKey] = []
        left = TIMED_EVENTS
        for key, size in sizes.items():
            if not chosen or size <= left:
                chosen.append(key)
                left -= size
        kept = set(chosen)
        return {key: key if key in kept else min(chosen, key=lambda other: abs(sizes[other] - size))
                for key, size in sizes.items()}

    @property
    def groups(self) -> list[Group]:
        """The groups of blocks with equal times, without duplicates."""
        seen: dict[int, Group] = {id(group): group for group in self.group_of_block}
        return list(seen.values())

    def _together(self, runs: Sequence[BlockRun]) -> CoreGroup:
        """Returns the cores of the given blocks, with their event streams, steps and records."""
        program = self.recorded.program
        found = CoreGroup([], [], [], [])
        for run in runs:
            for core, stream, (index, _) in zip(program.core_ids(run.block), run.streams, program.lanes, strict=True):
                found.cores.append(core)
                found.streams.append(stream)
                found.expansions.append(self.expansions[index])
                found.records.append(program.functions[index].records)
        return found

    @_in_common
    def _orders(self) -> dict[tuple[Key, ...], StepOrder]:
        """The step orders that have been computed, by the event streams of the blocks."""
        return {}

    def _order(self, runs: Sequence[BlockRun]) -> StepOrder:
        key = tuple(key_of(run) for run in runs)
        kept = self._orders
        found = kept.get(key)
        if found is None:
            cores, streams, expansions, _ = self._together(runs)
            found = StepOrder(cores, list(map(unrolled, streams)), expansions, self.chip.sync.flag_limit)
            if len(found.steps) + sum(len(order.steps) for order in tuple(kept.values())) <= KEPT_STEPS:
                kept[key] = found
        return found

    def _periodic_order(self, runs: Sequence[BlockRun]) -> StepOrder:
        """Returns the step order of blocks for times and for the first executions of steps; periods are in it once."""
        if not any(isinstance(stream, RepeatedStream) for run in runs for stream in run.streams):
            return self._order(runs)
        key = tuple(key_of(run) for run in runs)
        kept = self._periodic_orders
        if key not in kept:
            cores, streams, expansions, _ = self._together(runs)
            try:
                kept[key] = PeriodicOrder(cores, streams, expansions, self.chip.sync.flag_limit)
            except TileError:
                kept[key] = self._order(runs)  # raises the error with the numbers of all iterations
        return kept[key]

    @_in_common
    def _periodic_orders(self) -> dict[tuple[Key, ...], StepOrder]:
        """The step orders with periods that have been computed, by the event streams of the blocks."""
        return {}

    @_in_common
    def _orders_exist(self) -> bool:
        """True. Reading this property raises the error of a deadlock between pipes, such as a wait for an event that is never
        set."""
        for runs in [self.recorded.blocks] if self.recorded.program.global_sync else [[run] for run in self.distinct_blocks]:
            self._periodic_order(runs)
        return True

    @_in_common
    def distinct_blocks(self) -> list[BlockRun]:
        """The blocks with different event streams: of blocks that execute the same ops only the first one."""
        seen: dict[tuple[int, ...], BlockRun] = {}
        for run in self.recorded.blocks:
            seen.setdefault(key_of(run), run)
        return list(seen.values())

    def _timed(self, runs: list[BlockRun], width: int, count: int, *, lockstep: bool) -> Group:
        cores = self._together(runs).cores
        order = self._periodic_order(runs)
        per_group = len({core.block for core in cores})
        found, last = Sharing(float(width), float(width), float(width)), 0.0
        for _ in range(ROUNDS):
            sharing = found
            pace = pace_of(self.serves, sharing, self.chip, self.linked, lockstep=lockstep)
            timing = simulate_times(order, len(cores), self.chip, pace)
            each = width / per_group / max(timing.cycles, 1.0)
            # Blocks that wait for each other transfer in phases, in which the links are busier than on average. Other blocks
            # are timed one by one, so that nothing is known of what the others do meanwhile; those that use no links are not
            # taken to do what this one does.
            linked = (timing.linked / max(timing.link_span, 1.0) if self.recorded.program.global_sync
                      else each * timing.linked * min(1.0, self._blocks_with_links / width))
            found = Sharing(*(max(number, 1e-9) for number in (each * timing.reading, each * timing.writing, linked)))
            # unchanged times do not settle while more transfers are in flight than assumed: GM would be too fast
            if abs(timing.cycles - last) <= SETTLED * timing.cycles and all(
                    now <= (1 + SETTLED) * before for now, before in zip(found, sharing, strict=True)):
                break
            # where the pipes hardly wait for GM, what is in flight grows slowly: go further
            further = Sharing(*(now * max(1.0, now / before) ** 0.5 for now, before in zip(found, sharing, strict=True)))
            found = further._replace(linked=found.linked) if self.recorded.program.global_sync else further
            last = timing.cycles
        return Group(runs[0], width, count, sharing, lockstep, timing)

    # -- traffic -------------------------------------------------------------------------------------------------------

    @_in_common
    def moved(self) -> dict[Tensor, MovedBytes]:
        """The bytes that the launch moves in GM. The key is the position of the kernel argument and whether it is written."""
        counts = Counter(key_of(run) for run in self.recorded.blocks)
        total: dict[Tensor, MovedBytes] = defaultdict(MovedBytes)
        for run in self.distinct_blocks:
            for stream, (index, _) in zip(run.streams, self.recorded.program.lanes, strict=True):
                for key, part in bytes_of(stream, self.expansions[index]).items():
                    total[key].add(part.nbytes, part.far, part.near, part.requests, counts[key_of(run)])
        return total

    @_in_common
    def linked(self) -> dict[tuple[int, bool], int]:
        """The bytes that the launch moves to and from other cards, by the rank of the card and whether they are written there.
        """
        found: dict[tuple[int, bool], int] = defaultdict(int)
        for index, stream, times in self.recorded.distinct_streams:
            for event, count in counted(stream).items():
                for step in self.expansions[index].of(event):
                    if step.cost.link is not None:
                        found[step.cost.link[:2]] += step.cost.link.nbytes * count * times
        return dict(found)

    @_in_common
    def _blocks_with_links(self) -> int:
        """The number of blocks that move bytes to or from other cards."""
        counts = Counter(key_of(run) for run in self.recorded.blocks)
        return sum(counts[key_of(run)] for run in self.distinct_blocks
                   if any(step.cost.link is not None
                          for stream, (index, _) in zip(run.streams, self.recorded.program.lanes, strict=True)
                          for event in set(kept_events(stream)) for step in self.expansions[index].of(event)))

    @_in_common
    def serves(self) -> dict[Tensor, Served]:
        """For how many seconds the transfers of each tensor occupy HBM and L2, per transferred byte and per request.

        The seconds per byte are means over all bytes of the launch that are transferred for the tensor, because some of these
        bytes miss L2 and others hit it (:class:`Served`). The key is the position of the kernel argument and whether the bytes
        are written; reads and writes of one tensor have separate entries.
        """
        usual = self._expand is Expansion
        state = self.chip.l2, self.chip.traffic.dirty, self.l2_state
        missed = self.recorded.alike.missed.get(state, self._missed) if usual else self._missed()
        return served(self.moved, missed, self._most_added, self._places_at_once, self.chip)

    @_in_common
    def gm_use(self) -> GmUse:
        """The bytes that HBM and L2 transfer for the launch, and the least time that each of them needs for its bytes."""
        return gm_use(self.moved, self.serves, self.chip)

    @_in_common
    def _places_at_once(self) -> dict[int, float]:
        """For each tensor of which several cores of the first wave read the same bytes at the same time, the mean number of
        different offsets that they read at the same time. Empty for kernels that compute, because cores that compute between
        their reads do not read at the same time for long.
        """
        if self.kind != COPY:
            return {}
        kinds: l2.Kinds = {}
        wave = next(gm_transfers.by_wave(self.recorded, self.expansions, self.cores, kinds), [])
        return l2.places_at_once(wave, kinds)

    @_in_common
    def _most_added(self) -> dict[int, int]:
        """For each tensor with atomic updates, the number of updates of the L2 line that is updated most often."""
        return gm_transfers.most_added(self.recorded, self.chip.traffic.line)

    def _missed(self) -> dict[Tensor, float]:
        """Returns the share, from 0 to 1, of the transferred bytes of each tensor that miss L2.

        The key is the position of the kernel argument and whether the bytes are written.
        """
        bound = self.recorded.bound
        sizes = {parameter.index: array.nbytes
                 for parameter, array in zip(bound.parameters, bound.arrays, strict=True) if array is not None}
        if l2.touched(self.moved, sizes) <= self.chip.l2:
            return l2.missed_once(self.moved, sizes, self.produced, self.chip.traffic.dirty, warm=self.l2_state == WARM)
        kinds: l2.Kinds = {}
        waves = gm_transfers.by_wave(self.recorded, self.expansions, self.cores, kinds)
        return l2.missed_by_walk(waves, kinds, self.chip.l2, self.chip.traffic.dirty)

    @_in_common
    def produced(self) -> frozenset[int]:
        """The kernel arguments that every block reads only after its own first write, such as a workspace that passes data from
        core to core."""
        found = {buffer for buffer, writes in self.moved if not writes and (buffer, True) in self.moved}
        together = [self.recorded.blocks] if self.recorded.program.global_sync else [[run] for run in self.distinct_blocks]
        for runs in together if found else ():
            open_ = set(found)
            for ordered in self._periodic_order(runs).steps:
                for buffer, writes, *_ in ordered.step.cost.gm:
                    if buffer in open_:
                        open_.discard(buffer)
                        if not writes:
                            found.discard(buffer)
                if not open_:
                    break
        return frozenset(found)

    # -- work of the cores ---------------------------------------------------------------------------------------------

    @_in_common
    def busy_cycles(self) -> dict[CoreKind, dict[Pipe, float]]:
        """The cycles in which a pipe has work in flight, by kind of core and pipe, summed over all cores of the launch."""
        return self._pipe_cycles(lambda timing: timing.busy)

    @_in_common
    def worked_cycles(self) -> dict[CoreKind, dict[Pipe, float]]:
        """The cycles in which a pipe can start no other work (without latency), by kind of core and pipe, summed over all cores
        of the launch."""
        return self._pipe_cycles(lambda timing: timing.worked)

    def _pipe_cycles(self, of_timing: Callable[[BlockTiming], list[list[float]]]) -> dict[CoreKind, dict[Pipe, float]]:
        """Returns the sums of some cycles over all cores of the launch, by kind of core and pipe.

        Args:
            of_timing: selects the cycles: returns them for each core and pipe of a block.
        """
        total: dict[CoreKind, dict[Pipe, float]] = {}
        for group in self.groups:
            for (index, _), cycles in zip(self._lanes(group), of_timing(group.timing), strict=True):
                kind = self.recorded.program.functions[index].core
                row = total.setdefault(kind, dict.fromkeys(PIPES, 0.0))
                for pipe, each in zip(PIPES, cycles, strict=True):
                    row[pipe] += each * group.count
        return {kind: {pipe: cycles for pipe, cycles in row.items() if cycles} for kind, row in total.items()}

    @_in_common
    def held_us(self) -> dict[tuple[int, int, int], float]:
        """The microseconds for which each wait and each barrier holds its pipe in a block, averaged over the blocks and over
        the cores that execute the op.

        A key consists of the number of the kernel's function, the number of the op's record, and the position of the event in
        the ``sync_related_args`` of a matmul macro. The position is -1 for an op that is itself a wait or barrier, and for the
        internal waits of a macro.
        """
        total: dict[tuple[int, int, int], float] = defaultdict(float)
        for group in self.groups:
            lanes = self._lanes(group)
            for (core, number, place), cycles in group.timing.held.items():
                total[lanes[core][0], number, place] += cycles * group.count / lanes.count(lanes[core])
        sharers = Counter(index for index, _ in self.recorded.program.lanes)
        return {key: self.chip.microseconds(cycles) / self.blocks / sharers[key[0]] for key, cycles in total.items()}

    def _lanes(self, group: Group) -> list[tuple[int, int]]:
        lanes = list(self.recorded.program.lanes)
        return lanes * (len(group.timing.busy) // len(lanes))

    @once
    def pipes(self) -> dict[CoreKind, dict[Pipe, float]]:
        """The share, from 0 to 1, of ``cycles`` in which a pipe has work in flight, by kind of core and pipe, averaged over the
        cores in use.
        """
        program = self.recorded.program
        lanes = Counter(program.functions[index].core for index, _ in program.lanes)
        taking_part = min(self.cores, self.blocks)
        return {kind: {pipe: cycles / (self.cycles * lanes[kind] * taking_part) for pipe, cycles in row.items()}
                for kind, row in self.busy_cycles.items()}

    @property
    def busiest(self) -> tuple[CoreKind | Literal[""], Pipe | Literal[""], float]:
        """The pipe that has work in flight for the largest share of the time: its kind of core, its name and that share. Two
        empty strings and 0 if no pipe has work."""
        none: tuple[CoreKind | Literal[""], Pipe | Literal[""], float] = ("", "", 0.0)
        found = max(((core, pipe, share) for core, row in self.pipes.items() for pipe, share in row.items()),
                    key=lambda item: item[2], default=none)
        return found if found[2] else none

    def at_work(self, group: Group, core: CoreKind, pipe: int) -> list[tuple[float, float]]:
        """Returns, for each core of a kind that uses a pipe in a block, the cycles in which the pipe's first work starts and
        its last work ends; [(0, 0)] if no core of the kind uses the pipe.

        Args:
            group: the group of the block.
            core: the kind of core, ``AIC`` or ``AIV``.
            pipe: the number of the pipe.
        """
        return [spans[pipe] for (index, _), spans in zip(self._lanes(group), group.timing.spans, strict=True)
                if self.recorded.program.functions[index].core == core and spans[pipe][1]] or [(0.0, 0.0)]

    @_in_common
    def critical_path(self) -> dict[Reason, float]:
        """The microseconds of each reason on the critical path of the core that ends last, as in the profile. Empty for a
        launch of more than ``MAX_EVENTS_OF_PATH`` different ops, for which it takes long: the profile computes it."""
        from tilelang_npu.simulator.result.profile.time_breakdown import critical_path_of

        if sum(len(stream) for run in self.distinct_blocks for stream in run.streams) > MAX_EVENTS_OF_PATH:
            return {}
        return critical_path_of(self)

    @_in_common
    def _bounding_pipe(self) -> tuple[CoreKind, Pipe] | None:
        """The pipe whose work takes the largest part of the critical path: its kind of core and its name. For a launch whose
        critical path is not computed, the busiest pipe; None if no pipe has work.

        The busiest pipe is often another one: loads far ahead of their use keep MTE2 at work all the time, while M waits for
        MTE1, and only a faster M or MTE1 would save time.
        """
        from tilelang_npu.simulator.result.profile.time_parts import WORK

        found: dict[tuple[CoreKind, Pipe], float] = defaultdict(float)
        for reason, us in self.critical_path.items():
            if reason.core and reason.kind == "issue":
                found[reason.core, "S"] += us
            elif reason.core and reason.pipe and reason.kind in WORK:
                found[reason.core, reason.pipe] += us
        if found:
            return max(found, key=lambda row: found[row])
        core, pipe, _ = self.busiest
        return (core, pipe) if core and pipe else None

    @property
    def bound_by(self) -> str:
        """The bottleneck of the launch, as text.

        - A pipe such as ``MTE2``: the pipe whose work takes the largest part of the critical path; ``MTE2 (waiting for HBM)``
          if GM slows the pipe down, and ``MTE3 (waiting for links)`` if the links to other cards do.
        - ``dispatch``: the blocks are shorter than the time that the chip needs to dispatch a block.
        - ``latency (MTE2)``: no pipe works for much of the time, because ops wait for each other; the pipe is the one with the
          largest part of the critical path.
        - ``nothing``: no pipe has work.

        For a launch of more than ``MAX_EVENTS_OF_PATH`` different ops it is the busiest pipe.
        """
        row = self._bounding_pipe
        if row is None:
            return "nothing"
        core, pipe = row
        if (self.blocks - self.cores) * self.dispatch_cycles > OF_DISPATCH * self.cycles:
            return "dispatch"
        working = max((self.pipes[kind][name] * cycles / self.busy_cycles[kind][name]
                       for kind, row in self.worked_cycles.items() for name, cycles in row.items()), default=0.0)
        if working < OF_LATENCY:
            return f"latency ({pipe})"
        number = PIPES.index(pipe)
        late = sum(group.timing.stalled[place][number] * group.count for group in self.groups
                   for place, (index, _) in enumerate(self._lanes(group))
                   if self.recorded.program.functions[index].core == core)
        if late > 0.1 * self.busy_cycles[core][pipe]:
            return f"{pipe} (waiting for {self._slow_memory()})"
        return pipe

    def _slow_memory(self) -> Literal["HBM", "L2", "L2, atomic updates of one line", "links"]:
        """Returns what slows down transfers: the links to other cards if they need more time for the launch's bytes than HBM
        and L2 together; ``HBM`` if it takes more than a quarter of the time that HBM and L2 need; otherwise ``L2``."""
        hbm = self.gm_use.hbm_seconds
        ways = {False: 0.0, True: 0.0}
        for key, one in self.serves.items():
            ways[key[1]] += one.l2 * self.moved[key].near
        l2 = max(ways.values())  # L2 reads and writes at the same time
        if seconds_of_links(self.linked, self.chip) > hbm + l2:
            return "links"
        if hbm > 0.25 * (hbm + l2):
            return "HBM"
        return "L2, atomic updates of one line" if self.gm_use.l2_seconds < OF_BYTES * l2 else "L2"

    @once
    def memory(self) -> dict[str, int]:
        """The number of bytes that the launch uses of each on-chip memory, by common name (``UB``, ``L1``, ``L0A`` ...)."""
        return report.memory_use(self.recorded.program, self.distinct_blocks, self.expansions)

    # -- hazards, written elements, timeline ---------------------------------------------------------------------------

    @property
    def hazards(self) -> list[Hazard]:
        """The hazards of the launch: races inside blocks and between blocks, wrong use of flags, misaligned addresses, and
        results that depend on uninitialised bytes or on padding.

        Only one of the blocks that execute the same ops is searched. Whether uninitialised bytes reach a result is decided with
        the contents that the arrays have when this property is first read.
        """
        return self._find_hazards()

    def _find_hazards(self) -> list[Hazard]:
        """Returns the hazards; searches for them in the first call."""
        from tilelang_npu.simulator.sanitizer.all_hazards import find_all_hazards

        with self._lock:
            if self._hazards is None:
                self._hazards = find_all_hazards(self.recorded, self.distinct_blocks, self.met, self._misaligned, self._blank)
            return self._hazards

    @_in_common
    def met(self) -> list[tuple[list[BlockRun], list[Hazard]]]:
        """The races and flag faults among the ops of each kind of block, or of all blocks together if they wait for each other:
        pairs of the blocks and their hazards."""
        from tilelang_npu.simulator.sanitizer.happens_before import find_hazards

        shared = memory_ranges(self.recorded.bound.arrays)
        places = {number: (index, delta) for index, memory in enumerate(shared) for number, delta in memory.delta.items()}
        groups = ([list(self.recorded.blocks)] if self.recorded.program.global_sync
                  else [[run] for run in block_kinds_in_memory(self.recorded, self.distinct_blocks, places)])
        found = []
        for runs in groups:
            cores, streams, _, records = self._together(runs)
            gm = [offsets for run in runs for offsets in run.gm]
            found.append((runs, find_hazards(self._order(runs), cores, streams, gm, records, places)))
        return found

    @_in_common
    def _misaligned(self) -> list[Hazard]:
        """The hazards of misaligned on-chip addresses."""
        from tilelang_npu.simulator.sanitizer.alignment import find_misaligned

        return list(find_misaligned(self.recorded, self.recorded.blocks))

    @property
    def may_be_stale(self) -> bool:
        """Whether an op possibly reads uninitialised bytes; False if the record rules this out."""
        one = self.recorded
        return not one.alike.filled or any(one.reads(one.bound.users[argument]) for argument in self._made)

    def stale(self) -> Hazard | None:
        """Returns a read of uninitialised bytes, or of bytes of another buffer, on which a result of the launch depends; None
        if there is no such read. At most ``STALE_KINDS`` kinds of blocks are searched, and of several at most ``STALE_EVENTS``
        events; kinds that execute different numbers of ops first, since a loop without iterations may leave a tile unwritten.
        """
        from tilelang_npu.simulator.sanitizer.reused_bytes import find_reused_bytes
        from tilelang_npu.simulator.sanitizer.uninitialised_memory import find_uninitialised_memory
        from tilelang_npu.simulator.sanitizer.uninitialised_tensors import find_uninitialised_tensors

        one, runs = self.recorded, _different_lengths_first(self.distinct_blocks)[:STALE_KINDS]
        events = list(accumulate(sum(map(len, run.streams)) for run in runs))
        kinds = runs[:max(1, bisect_right(events, STALE_EVENTS))]
        return next(chain(find_uninitialised_memory(one, kinds), find_uninitialised_tensors(one, self._blank),
                          find_reused_bytes(one, kinds)), None)

    @once
    def _blank(self) -> dict[int, NDArray[np.bool_]]:
        """For each kernel argument that the call allocated and this launch reads, a mask of the bytes that no launch of the
        call has written. Empty if the record of a launch does not contain all blocks."""
        if not all(part.recorded.is_complete for part in (*self._before, self)):
            return {}
        found: dict[int, NDArray[np.bool_]] = {}
        for argument in self._made:
            buffer, array = self.recorded.bound.users[argument], self.recorded.bound.given[argument]
            if isinstance(array, np.ndarray) and self.recorded.reads(buffer):
                left = ~self.writes(argument)
                for part in self._before:
                    left &= ~part.writes(argument)
                if left.any():
                    found[buffer] = np.repeat(left.reshape(-1), array.itemsize)
        return found

    def writes(self, argument: int) -> NDArray[np.bool_]:
        """Returns a mask, in the shape of an array argument, of the elements that the launch wrote. Atomic updates do not count
        as writes.

        Args:
            argument: the position of the array among the user's arguments.
        """
        bound = self.recorded.bound
        given = bound.given[argument]
        assert isinstance(given, np.ndarray), f"argument {argument} is a number"
        return written(self.recorded, bound.users[argument], given)

    def chooses(self, argument: int) -> bool:
        """Whether the set of written elements of an array argument depends on data, because the kernel reads indices from a
        tensor.

        Args:
            argument: the position of the array among the user's arguments.
        """
        return self.recorded.bound.users[argument] in self.recorded.program.places

    def adds(self, argument: int) -> bool:
        """Whether an op makes atomic updates of an array argument.

        Args:
            argument: the position of the array among the user's arguments.
        """
        buffer = self.recorded.bound.users[argument]
        return any(access.memory == "gm" and access.buffer == buffer and access.adds
                   for function in self.recorded.program.functions for record in function.records for access in record.accesses)

    def trace(self) -> JsonObject:
        """Returns the timeline in Chrome's trace event format, which Perfetto displays: a process for each core, and in it a
        track for each pipe, with the blocks that the core runs."""
        from tilelang_npu.simulator.result.chrome_trace import chrome_trace

        return chrome_trace(self)

    def plot(self, block: int = 0, axes: Any = None) -> Any:
        """Draws the timeline of a block with matplotlib: a row for each pipe of each core, and in it a bar for each op.

        Args:
            block: the number of the block.
            axes: the matplotlib axes to draw in; None makes a new figure.

        Returns:
            The axes.

        Raises:
            TileError: T412, matplotlib is not installed (``pip install 'tilelang-npu[viz]'``), or there is no such block.
        """
        from tilelang_npu.simulator.result.plot import timeline

        return timeline(self, block, axes)

    def access_map(self, tensor: str, *, written: bool = False, block: int = 0, line: int | None = None) -> AccessMap:
        """Returns which bytes of a tensor in GM the launch reads or writes, and how often: figures, and a picture of the tensor
        in which the bytes of one block have a frame.

        Args:
            tensor: the name of the tensor in the kernel.
            written: whether the writes are counted; otherwise the reads. Atomic updates count as both.
            block: the number of the block that has a frame and figures of its own.
            line: the source line whose accesses are counted; None for all lines.

        Raises:
            TileError: T412, the launch does not access the tensor in this way, its record has no such block, or the tensor has
                more than 1 GiB.
        """
        from tilelang_npu.simulator.result.access_map import access_map

        return access_map(self, tensor, written=written, block=block, line=line)

    def traced(self, group: Group) -> CoreGroupTimes:
        """Returns the times of a block (or of all blocks, if they wait for each other), with the times of each of its steps.

        Args:
            group: the group of the block.
        """
        runs = list(self.recorded.blocks) if self.recorded.program.global_sync else [group.run]
        together = self._together(runs)
        return CoreGroupTimes(RecordedWalk(self._order(runs), len(together.cores), self.chip,
                                           pace_of(self.serves, group.sharing, self.chip, self.linked,
                                                   lockstep=group.lockstep)), together)

    def card_timer(self, group: Group) -> CardTimer:
        """Returns what times a block (or all blocks, if they wait for each other) under given ends of waits for other cards.

        Args:
            group: the group of the block.
        """
        runs = list(self.recorded.blocks) if self.recorded.program.global_sync else [group.run]
        return CardTimer(self._order(runs), self._together(runs).cores, self.chip,
                         pace_of(self.serves, group.sharing, self.chip, self.linked, lockstep=group.lockstep))

    def profile(self) -> Profile:
        """Returns the profile: the time along the critical path, by pipe and by source line, the moved bytes, and the gain of
        possible changes (docs/profiling.md)."""
        from tilelang_npu.simulator.result.profile.launch_profile import Profile

        return Profile(self)

    def _repr_html_(self) -> str:
        return display.report(self.summary())

    def summary(self, name: str | None = None) -> str:
        """Returns a summary in a few lines of text: the time and its parts, the use of the pipes and of the memories.

        Args:
            name: the kernel's name in the summary; None for the name of the launch.
        """
        return report.summary(self, name or self.name)

    def to_dict(self) -> JsonObject:
        """Returns the results as a dict that JSON can hold; docs/accuracy.md lists the keys."""
        return report.launch_data(self)

    def __repr__(self) -> str:
        return f"<{report.line(self)}>"


def _launch(recorded: RecordedLaunch, numbers: Sequence[NumberFinding], made: Iterable[int], before: Sequence[Launch],
            hazards: list[Hazard] | None, chip: Chip | None, expand: Expand, l2_state: L2State) -> Launch:
    """Returns a launch from its pickled fields."""
    launch = Launch(recorded, numbers=numbers, made=made, before=before, chip=chip, expand=expand, l2_state=l2_state)
    launch._hazards = hazards
    return launch
