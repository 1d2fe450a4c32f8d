"""The result of a launch: times, hazards, written elements, timeline and summary, computed on demand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilelang_npu import display
from tilelang_npu.errors import door
from tilelang_npu.sharing import once
from tilelang_npu.simulator.machine.aliasing_arguments import memory_ranges
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.simulator.result import JsonObject, gm_transfers, report
from tilelang_npu.simulator.result.block_kinds import Key, block_kinds_in_memory, key_of
from tilelang_npu.simulator.result.kernel_class import kind_of
from tilelang_npu.simulator.result.time_split import Split, split_of
from tilelang_npu.simulator.result.written_elements import written
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch, SharedResults
from tilelang_npu.simulator.time import l2
from tilelang_npu.simulator.time.cost import CostModel
from tilelang_npu.simulator.time.critical_path import CoreGroup, CoreGroupTimes, RecordedWalk
from tilelang_npu.simulator.time.gm_traffic import Key as Tensor
from tilelang_npu.simulator.time.gm_traffic import MovedBytes, Served, bytes_of, pace_of, served
from tilelang_npu.simulator.time.pipe_steps import PIPES, Expansion
from tilelang_npu.simulator.time.step_order import StepOrder
from tilelang_npu.simulator.time.timing import BlockTiming, simulate_times
from tilelang_npu.target import Chip, error_of

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.profile.launch_profile import Profile
    from tilelang_npu.simulator.sanitizer.hazard import Hazard
    from tilelang_npu.simulator.sanitizer.numerics import NumberFinding

ROUNDS = 8
"""Limit of the rounds in which GM sharing and times are iterated."""
SETTLED = 0.01
"""Relative change of a block's cycles, and of the transfers in flight, below which they are settled."""


TIMED_EVENTS = 400_000
"""Limit of the events of the blocks that are timed; further kinds of blocks get the time of the most similar timed block."""
STALE_KINDS = 16
"""Limit of the kinds of blocks in which the cause of a NaN is searched."""
KEPT_STEPS = 1_000_000
"""Limit of the steps of the step orders that are kept; a launch with more computes them again when needed."""


@dataclass(frozen=True)
class Group:
    """Blocks with equal event streams in waves of equal width: timed once.

    Attributes:
        run: one of the blocks.
        width: number of blocks that run concurrently.
        count: number of blocks in the group.
        sharing: mean number of GM transfers of all cores in flight, with which the times were computed.
        timing: the times.
    """

    run: BlockRun
    width: int
    count: int
    sharing: float
    timing: BlockTiming


Expand = Callable[[Sequence[OpRecord], CostModel], Expansion]
"""Makes the steps of a function's ops."""

_Value = TypeVar("_Value")


def _in_common(make: Callable[[Launch], _Value]) -> once[Launch, _Value]:
    """A property that is shared by launches with equal records, unless their times are those of another chip or other steps."""
    return once(make, lambda launch: launch if launch.is_retimed else launch.recorded.alike)


@door
class Launch:
    """The result of a launch.

    Args:
        recorded: the record of the launch.
        hazards: search for hazards now; otherwise when ``hazards`` is first read.
        numbers: the numerical faults, if an observer looked for them.
        made: positions of the user's arguments that the call allocated, and that therefore had no contents.
        before: the earlier launches of the call.
        chip: the chip that gives the times; None takes the chip of the program. The number of cores stays the same.
        expand: makes the steps of each function's ops.

    Launches with equal records share the results that follow from the record.
    """

    def __init__(self, recorded: RecordedLaunch, *, hazards: bool = False, numbers: Sequence[NumberFinding] = (),
                 made: Iterable[int] = (), before: Sequence[Launch] = (), chip: Chip | None = None,
                 expand: Expand = Expansion) -> None:
        self.recorded = recorded
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
                         None if self.chip is self.recorded.program.chip else self.chip, self._expand)

    @property
    def is_retimed(self) -> bool:
        """Whether its times are those of another chip, or of other steps."""
        return self.chip is not self.recorded.program.chip or self._expand is not Expansion

    def retimed(self, chip: Chip | None = None, *, expand: Expand = Expansion, blocks: Sequence[BlockRun] = ()) -> Launch:
        """Returns the same launch with other times.

        Args:
            chip: the times of another chip.
            expand: other steps for its ops.
            blocks: its blocks in another order.
        """
        recorded = replace(self.recorded, blocks=tuple(blocks), alike=SharedResults()) if blocks else self.recorded
        return Launch(recorded, chip=chip or self.chip, expand=expand)

    def keep(self, changed: Iterable[int]) -> None:
        """Copies arrays that are about to change, if this launch used them and its hazards were not searched yet: they are
        searched with the contents that it left.

        Args:
            changed: positions among the user's arguments.
        """
        bound, program = self.recorded.bound, self.recorded.program
        if self._hazards is None:
            which = program.used.intersection(bound.users[position] for position in changed)
            if which:
                self.recorded = replace(self.recorded, bound=bound.copied(which))

    @property
    def parts(self) -> tuple[Launch, ...]:
        """The launches of the call: this one (see ``Launches``)."""
        return (self,)

    @_in_common
    def expansions(self) -> list[Expansion]:
        """The steps of each function's ops."""
        costs = CostModel(self.chip)
        return [self._expand(function.records, costs) for function in self.recorded.program.functions]

    # -- times ---------------------------------------------------------------------------------------------------------

    @property
    def cores(self) -> int:
        """Cores that each take a block at a time."""
        return self.recorded.program.cores

    @property
    def waves(self) -> int:
        """Number of waves: rounds in which the cores take the blocks."""
        return -(-self.blocks // self.cores)

    @property
    def cycles(self) -> float:
        """Cycles from the start of the first block to the end of the last, without the time in which no block runs."""
        return max(self.core_cycles)

    @property
    def time_us(self) -> float:
        """Microseconds that a profiler would show as the task's duration: the cycles and the launch overhead."""
        return self.chip.microseconds(self.cycles) + self.launch_us

    @property
    def launch_us(self) -> float:
        """Microseconds of ``time_us`` in which no block runs: start and end of the kernel, for each core, and the delay of cold
        cores."""
        cores = min(self.cores, self.blocks) * len(self.recorded.program.lanes)
        law = self.chip.launch
        return law.kernel_us + law.cold_us + law.core_us * (cores - 1)

    @_in_common
    def kind(self) -> str:
        """The class of kernels that it belongs to, by the work of its cores: ``vector``, ``small gemm``, ``gemm``, ``fused`` or
        ``attention`` (docs/accuracy.md)."""
        return kind_of(self.recorded)

    @property
    def error(self) -> float | None:
        """Median relative error of modelled times of its class; None if the class was not measured on chips of the family, or
        the chip is a user's."""
        return error_of(self.kind, self.chip)

    @_in_common
    def split(self) -> Split:
        """The parts of ``time_us``: ``launch``, ``ramp``, ``steady``, ``tail``."""
        return split_of(self)

    @_in_common
    def core_cycles(self) -> list[float]:
        """Cycles from the start of each core's first block to the end of its last."""
        gap = self.chip.launch.block_us * 1e-6 * self.chip.clock
        total = [0.0] * min(self.cores, self.blocks)
        for place, group in enumerate(self.group_of_block):
            core = place % self.cores
            total[core] += group.timing.cycles + (gap if place >= self.cores else 0.0)
        return total

    @property
    def group_of_block(self) -> list[Group]:
        """The group of each block."""
        return self._timed_blocks[0]

    @property
    def sample(self) -> tuple[int, int]:
        """Number of kinds of blocks that were timed, and of all kinds."""
        return self._timed_blocks[1]

    @_in_common
    def _timed_blocks(self) -> tuple[list[Group], tuple[int, int]]:
        """The group of each block, and the sample."""
        cores, runs = self.cores, self.recorded.blocks
        if self.recorded.program.global_sync:
            group = self._timed(list(runs), len(runs), 1)
            return [group] * len(runs), (1, 1)
        keys = [(key_of(run), min(cores, len(runs) - place // cores * cores)) for place, run in enumerate(runs)]
        distinct = dict(zip(keys, runs, strict=True))
        timed = self._representatives({key: sum(map(len, run.streams)) for key, run in distinct.items()})
        counts = Counter(timed[key] for key in keys)
        made = {key: self._timed([distinct[key]], key[1], counts[key]) for key in dict.fromkeys(timed.values())}
        return [made[timed[key]] for key in keys], (len(set(timed.values())), len(timed))

    @staticmethod
    def _representatives(sizes: dict[tuple[Key, int], int]) -> dict[tuple[Key, int], tuple[Key, int]]:
        """Returns, for each kind of block, the kind that is timed for it: itself within the limit, otherwise the timed kind
        with the closest number of events."""
        chosen: list[tuple[Key, int]] = []
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
        """The distinct groups."""
        seen: dict[int, Group] = {id(group): group for group in self.group_of_block}
        return list(seen.values())

    def _together(self, runs: Sequence[BlockRun]) -> CoreGroup:
        """Returns the cores of blocks that run together."""
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
        """The step orders that are kept."""
        return {}

    def _order(self, runs: Sequence[BlockRun]) -> StepOrder:
        key = tuple(key_of(run) for run in runs)
        kept = self._orders
        found = kept.get(key)
        if found is None:
            cores, streams, expansions, _ = self._together(runs)
            found = StepOrder(cores, streams, expansions, self.chip.sync.flag_limit)
            if len(found.steps) + sum(len(order.steps) for order in tuple(kept.values())) <= KEPT_STEPS:
                kept[key] = found
        return found

    @_in_common
    def _orders_exist(self) -> bool:
        """True; raises the deadlocks that only pipes show: an event that is awaited and never set."""
        for runs in [self.recorded.blocks] if self.recorded.program.global_sync else [[run] for run in self.distinct_blocks]:
            self._order(runs)
        return True

    @_in_common
    def distinct_blocks(self) -> list[BlockRun]:
        """One block of each kind of event streams."""
        seen: dict[tuple[int, ...], BlockRun] = {}
        for run in self.recorded.blocks:
            seen.setdefault(key_of(run), run)
        return list(seen.values())

    def _timed(self, runs: list[BlockRun], width: int, count: int) -> Group:
        cores = self._together(runs).cores
        order = self._order(runs)
        per_group = len({core.block for core in cores})
        found, last = float(width), 0.0
        for _ in range(ROUNDS):
            sharing = found
            timing = simulate_times(order, len(cores), self.chip, pace_of(self.serves, sharing, self.chip))
            found = max(width / per_group * timing.moving / max(timing.cycles, 1.0), 1e-9)
            # unchanged times do not settle while more transfers are in flight than assumed: GM would be too fast
            if abs(timing.cycles - last) <= SETTLED * timing.cycles and found <= (1 + SETTLED) * sharing:
                break
            last = timing.cycles
        return Group(runs[0], width, count, sharing, timing)

    # -- traffic -------------------------------------------------------------------------------------------------------

    @_in_common
    def moved(self) -> dict[Tensor, MovedBytes]:
        """GM bytes of the whole launch by (kernel argument, whether they are written)."""
        counts = Counter(key_of(run) for run in self.recorded.blocks)
        total: dict[Tensor, MovedBytes] = defaultdict(MovedBytes)
        for run in self.distinct_blocks:
            for stream, (index, _) in zip(run.streams, self.recorded.program.lanes, strict=True):
                for key, part in bytes_of(stream, self.expansions[index]).items():
                    total[key].add(part.nbytes, part.far, part.near, counts[key_of(run)])
        return total

    @_in_common
    def serves(self) -> dict[Tensor, Served]:
        """How the chip serves each tensor, by (kernel argument, whether it is written)."""
        usual = self._expand is Expansion
        missed = self.recorded.alike.missed.get(self.chip.l2, self._missed) if usual else self._missed()
        return served(self.moved, missed, self._most_added, self.chip)

    @_in_common
    def _most_added(self) -> dict[int, int]:
        """For each tensor with atomic updates, the number of updates of its most updated line."""
        return gm_transfers.most_added(self.recorded, self.chip.traffic.line)

    def _missed(self) -> dict[Tensor, float]:
        """Returns the shares of the bytes of each tensor that miss L2."""
        bound = self.recorded.bound
        sizes = {parameter.index: array.nbytes
                 for parameter, array in zip(bound.parameters, bound.arrays, strict=True) if array is not None}
        if l2.touched(self.moved, sizes) <= self.chip.l2:
            return l2.missed_once(self.moved, sizes, self.produced)
        kinds: l2.Kinds = {}
        waves = gm_transfers.by_wave(self.recorded, self.expansions, self.cores, kinds)
        return l2.missed_by_walk(waves, kinds, self.chip.l2)

    @_in_common
    def produced(self) -> frozenset[int]:
        """Tensors that every block reads only after its own first write: they pass data, as a workspace or a ring does."""
        found = {buffer for buffer, writes in self.moved if not writes and (buffer, True) in self.moved}
        together = [self.recorded.blocks] if self.recorded.program.global_sync else [[run] for run in self.distinct_blocks]
        for runs in together if found else ():
            open_ = set(found)
            for ordered in self._order(runs).steps:
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
    def busy_cycles(self) -> dict[str, dict[str, float]]:
        """Cycles in which each pipe of each kind of core has work in flight, summed over all cores of the launch."""
        total: dict[str, dict[str, float]] = {}
        for group in self.groups:
            for (index, _), busy in zip(self._lanes(group), group.timing.busy, strict=True):
                kind = self.recorded.program.functions[index].core
                row = total.setdefault(kind, dict.fromkeys(PIPES, 0.0))
                for pipe, cycles in zip(PIPES, busy, strict=True):
                    row[pipe] += cycles * group.count
        return {kind: {pipe: cycles for pipe, cycles in row.items() if cycles} for kind, row in total.items()}

    @_in_common
    def held_us(self) -> dict[tuple[int, int, int], float]:
        """Microseconds that each wait and barrier holds its pipe in a block, averaged over blocks and Vector cores.

        The keys are the number of the function, the number of the op's record, and the position of the event in the op's
        ``sync_related_args``; -1 for an op that is a wait, and for the other waits of a macro.
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
    def pipes(self) -> dict[str, dict[str, float]]:
        """Share of the time in which each pipe of each kind of core has work in flight, averaged over the cores in use."""
        program = self.recorded.program
        lanes = Counter(program.functions[index].core for index, _ in program.lanes)
        taking_part = min(self.cores, self.blocks)
        return {kind: {pipe: cycles / (self.cycles * lanes[kind] * taking_part) for pipe, cycles in row.items()}
                for kind, row in self.busy_cycles.items()}

    @property
    def busiest(self) -> tuple[str, str, float]:
        """The kind of core, the pipe and its share of the time; empty and 0 if no pipe has work."""
        found = max(((core, pipe, share) for core, row in self.pipes.items() for pipe, share in row.items()),
                    key=lambda item: item[2], default=("", "", 0.0))
        return found if found[2] else ("", "", 0.0)

    def at_work(self, group: Group, core: str, pipe: int) -> list[tuple[float, float]]:
        """Returns, for each core of a kind, the start of a pipe's first work in a block and the end of its last, if any."""
        return [spans[pipe] for (index, _), spans in zip(self._lanes(group), group.timing.spans, strict=True)
                if self.recorded.program.functions[index].core == core and spans[pipe][1]] or [(0.0, 0.0)]

    @property
    def bound_by(self) -> str:
        """The busiest pipe, and the memory that it waits for if GM slows it down."""
        core, pipe, share = self.busiest
        if not share:
            return "nothing"
        number = PIPES.index(pipe)
        late = sum(group.timing.stalled[place][number] * group.count for group in self.groups
                   for place, (index, _) in enumerate(self._lanes(group))
                   if self.recorded.program.functions[index].core == core)
        if late > 0.1 * self.busy_cycles[core][pipe]:
            return f"{pipe} (waiting for {self._slow_memory()})"
        return pipe

    def _slow_memory(self) -> str:
        """Returns ``HBM`` or ``L2``, whichever needs more time."""
        hbm = l2 = 0.0
        for key, one in self.serves.items():
            hbm += one.hbm * self.moved[key].far
            l2 += one.l2 * self.moved[key].near
        return "HBM" if hbm > 0.25 * (hbm + l2) else "L2"

    @once
    def memory(self) -> dict[str, int]:
        """Used bytes of each on-chip memory, by ``UB``, ``L1``, ``L0A``, ``L0B``, ``L0C``."""
        return report.memory_use(self.recorded.program, self.distinct_blocks, self.expansions)

    # -- hazards, written elements, timeline ---------------------------------------------------------------------------

    @property
    def hazards(self) -> list[Hazard]:
        """Races and wrong use of flags in one block of each kind and between blocks; invalid addresses; results of
        uninitialised bytes.

        Whether uninitialised bytes reach a result is decided with the contents of the arrays when this is first read.
        """
        return self._find_hazards()

    def _find_hazards(self) -> list[Hazard]:
        """Returns the hazards, which are searched once."""
        from tilelang_npu.simulator.sanitizer.all_hazards import find_all_hazards

        with self._lock:
            if self._hazards is None:
                self._hazards = find_all_hazards(self.recorded, self.distinct_blocks, self.met, self._misaligned, self._blank)
            return self._hazards

    @_in_common
    def met(self) -> list[tuple[list[BlockRun], list[Hazard]]]:
        """The hazards between ops of blocks that run together, for one block of each kind."""
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
        """On-chip addresses at which an op cannot begin."""
        from tilelang_npu.simulator.sanitizer.alignment import find_misaligned

        return list(find_misaligned(self.recorded, self.recorded.blocks))

    @property
    def may_be_stale(self) -> bool:
        """Whether an op may read uninitialised bytes, as far as the record tells."""
        one = self.recorded
        return not one.alike.filled or any(one.reads(one.bound.users[argument]) for argument in self._made)

    def stale(self) -> Hazard | None:
        """Returns the first read, in the first few kinds of blocks, of uninitialised bytes or of bytes that another buffer
        left, if a tensor depends on it."""
        from tilelang_npu.simulator.sanitizer.reused_bytes import find_reused_bytes
        from tilelang_npu.simulator.sanitizer.uninitialised_memory import find_uninitialised_memory
        from tilelang_npu.simulator.sanitizer.uninitialised_tensors import find_uninitialised_tensors

        one, kinds = self.recorded, self.distinct_blocks[:STALE_KINDS]
        return next(chain(find_uninitialised_memory(one, kinds), find_uninitialised_tensors(one, self._blank),
                          find_reused_bytes(one, kinds)), None)

    @once
    def _blank(self) -> dict[int, NDArray[np.bool_]]:
        """The unwritten bytes of arguments that the call allocated and this launch reads, where they are known."""
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
        """Returns which elements of a GM argument were written, in its shape; atomic updates do not count.

        Args:
            argument: position among the user's arguments.
        """
        bound = self.recorded.bound
        given = bound.given[argument]
        assert isinstance(given, np.ndarray), f"argument {argument} is a number"
        return written(self.recorded, bound.users[argument], given)

    def chooses(self, argument: int) -> bool:
        """Whether data decide which elements of a GM argument are written."""
        return self.recorded.bound.users[argument] in self.recorded.program.places

    def adds(self, argument: int) -> bool:
        """Whether an op makes atomic updates of a GM argument."""
        buffer = self.recorded.bound.users[argument]
        return any(access.memory == "gm" and access.buffer == buffer and access.adds
                   for function in self.recorded.program.functions for record in function.records for access in record.accesses)

    def trace(self) -> JsonObject:
        """Returns the timeline as Chrome trace events (for Perfetto): a track per core and pipe, with one block per core."""
        from tilelang_npu.simulator.result.chrome_trace import chrome_trace

        return chrome_trace(self)

    def plot(self, block: int = 0, axes: Any = None) -> Any:
        """Draws the timeline of a block with matplotlib: a row per core and pipe, a bar per op.

        Args:
            block: number of the block.
            axes: the axes to draw in; None makes a figure.

        Returns:
            The axes.

        Raises:
            TileError: T412 matplotlib is not installed (``pip install 'tilelang-npu[viz]'``), or there is no such block.
        """
        from tilelang_npu.simulator.result.plot import timeline

        return timeline(self, block, axes)

    def traced(self, group: Group) -> CoreGroupTimes:
        """Returns the times of a block, with the moments of its steps."""
        runs = list(self.recorded.blocks) if self.recorded.program.global_sync else [group.run]
        together = self._together(runs)
        return CoreGroupTimes(RecordedWalk(self._order(runs), len(together.cores), self.chip,
                                           pace_of(self.serves, group.sharing, self.chip)), together)

    def profile(self) -> Profile:
        """Returns the profile: the critical path, pipes, lines, bytes, and the gain of possible changes (docs/profiling.md)."""
        from tilelang_npu.simulator.result.profile.launch_profile import Profile

        return Profile(self)

    def _repr_html_(self) -> str:
        return display.report(self.summary())

    def summary(self, name: str | None = None) -> str:
        """Returns the launch in some lines: time and its parts, busy pipes, memory."""
        return report.summary(self, name or self.name)

    def to_dict(self) -> JsonObject:
        """Returns the launch as data for JSON: docs/accuracy.md lists the keys."""
        return report.launch_data(self)

    def __repr__(self) -> str:
        return f"<{report.line(self)}>"


def _launch(recorded: RecordedLaunch, numbers: Sequence[NumberFinding], made: Iterable[int], before: Sequence[Launch],
            hazards: list[Hazard] | None, chip: Chip | None, expand: Expand) -> Launch:
    """Unpickles a launch."""
    launch = Launch(recorded, numbers=numbers, made=made, before=before, chip=chip, expand=expand)
    launch._hazards = hazards
    return launch
