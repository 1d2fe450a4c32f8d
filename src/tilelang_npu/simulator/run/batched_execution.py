"""Batched execution: decides which blocks of a launch one call of the generated code computes together, and runs them.

Blocks can form a batch if all of the following hold:

- The cores of all blocks record the same events, so that the blocks run the same ops on the same on-chip offsets.
- The scalar operands of the ops are equal in all blocks.
- The offsets of each GM operand are evenly spaced from block to block.
- No block accesses bytes that another block writes, so that the order of blocks has no effect.

Batches are formed only if the ops of the kernel do not depend on data; a trace then shows whether these conditions hold.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import prod
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.aliasing_arguments import memory_ranges
from tilelang_npu.simulator.machine.batch_layout import BatchLayout
from tilelang_npu.simulator.machine.cube_products import CubeProducts
from tilelang_npu.simulator.machine.memory import POISON, Array, CoreMemory, block_memories, shared_arrays
from tilelang_npu.simulator.machine.memory_pool import MemoryArena, borrow_arena
from tilelang_npu.simulator.machine.op_records import OpRecord, Stream, footprint, number_of
from tilelang_npu.simulator.machine.repeated_events import counted
from tilelang_npu.simulator.machine.worker_threads import helped, one_blas_thread, short_switch_interval
from tilelang_npu.simulator.run.arguments import BoundArguments
from tilelang_npu.simulator.run.bound_core import BoundCore, LaunchResources, run_cores
from tilelang_npu.simulator.run.gm_accesses import GmAccesses
from tilelang_npu.simulator.run.recorded_launch import BlockRun, OffsetsOfBlock, SharedResults, columns, offsets_key
from tilelang_npu.simulator.run.uninitialised_reads import find_uninitialised_reads
from tilelang_npu.target.chip_data import Space

if TYPE_CHECKING:
    from tilelang_npu.progress import Underway
    from tilelang_npu.simulator.run.compiled_function import BatchedFunction
    from tilelang_npu.simulator.run.program import Program

LEAST_BLOCKS = 4
LEAST_BYTES = 1 << 20
"""``LEAST_BLOCKS`` is a number of blocks, ``LEAST_BYTES`` the size of all arguments. Below them no batches are planned, as
planning takes longer than it saves."""
AT_ONCE = 1 << 25
"""Bytes of all arguments from which on batches are planned at the first launch. For a smaller launch they are planned when an
equal launch follows, as planning takes longer than it saves in a single small launch."""
LEAST_OPS = 1 << 16
"""Number of ops of a launch from which on batches are planned at the first launch, if many blocks can be traced at once."""
MOST_PLACES = 1 << 24
"""Limit of the number of GM offsets of all blocks; the plan of a launch with more would take too much memory."""
LEAST_WRITTEN = 1 << 26
"""Bytes that all ops of a launch write, on chip and in GM, from which on several threads compute the launch."""
LEAST_AT_A_TIME = 1 << 14
"""Average bytes that a batched op writes, below which one thread computes the launch: several threads would mostly wait for the
interpreter lock."""
ROOM = 1 << 21
"""Limit of the on-chip bytes of one core in all blocks of a batch, which should fit a processor's cache with the operands."""
PRODUCTS_ROOM = 1 << 25
"""The same limit for kernels that run on the Cube core alone: blocks of a batch share operands, and one large product of BLAS
takes less time than many small ones."""
MOST_ROOM = 1 << 23
"""Limit of the on-chip bytes of a batch that exceeds ``ROOM`` for the sake of ``ENOUGH_AT_A_TIME``."""
ENOUGH_AT_A_TIME = 1 << 18
"""Bytes that a batched op of a Vector core should write on average; batches are enlarged up to ``MOST_ROOM`` for that. Threads
with shorter operations wait for the interpreter lock so often that they gain nothing."""
_APART = 192
"""Bytes between the memories of blocks in addition to what they use, so that equal offsets of blocks do not share cache
sets."""


Numbers = Mapping[tuple[int, int], Sequence[object]]
"""Scalar operands by block and sub-block."""


@dataclass(frozen=True)
class Batch:
    """Blocks that one call of the generated code computes together.

    Attributes:
        first: the index of the first block.
        layouts: for each core of a block, the layout of its arrays.
    """

    first: int
    layouts: tuple[BatchLayout, ...]


@dataclass(frozen=True)
class BatchPlan:
    """The batches of a launch. Later launches with equal arguments use the same plan.

    Attributes:
        runs: the record of each block.
        batches: the batches, in the order of their first blocks.
        written: the number of bytes that the ops of all blocks write, on chip and in GM.
        calls: the number of executed ops of one block of each batch, summed over the batches.
        alike: results that do not depend on the contents of arrays, so that all launches with this plan use them.
    """

    runs: tuple[BlockRun, ...]
    batches: tuple[Batch, ...]
    written: int
    calls: int
    alike: SharedResults


def plan_batches(program: Program, functions: Sequence[BatchedFunction], runs: Sequence[BlockRun], numbers: Sequence[Numbers],
                 bound: BoundArguments) -> BatchPlan | None:
    """Returns the batches of a launch; None if its blocks depend on each other, or the batches have fewer than two blocks on
    average.

    Args:
        program: the kernel.
        functions: the device functions, compiled to code that computes batches.
        runs: the record of each block.
        numbers: for each device function, the scalar operands of the ops in each block.
        bound: the arguments of the launch.
    """
    records = [program.functions[index].records for index, _ in program.lanes]
    cores = [program.functions[index].core for index, _ in program.lanes]
    gaps = _gaps(program, functions)
    used = max(sum(gaps.get(name, 0) for name in program.chip.memories(function.core)) for function in functions)
    foreign = frozenset[str]().union(*(function.flow.foreign for function in functions))
    if sum(offsets.places.kinds if isinstance(offsets, OffsetsOfBlock) else len(offsets) for run in runs for offsets in run.gm
           ) > MOST_PLACES:
        return None
    alike: dict[tuple[object, ...], list[BlockRun]] = {}
    for run in runs:
        taken = (tuple(numbers[index].get((run.block, sub), ())) for index, sub in program.lanes)
        alike.setdefault((*map(id, run.streams), *taken, offsets_key(run)), []).append(run)
    batches: list[Batch] = []
    each = {key: list(map(_written, records, some[0].streams)) for key, some in alike.items()}
    written = sum(len(some) * sum(each[key]) for key, some in alike.items())
    processors = _processors() if written >= LEAST_WRITTEN else 1
    calls = 0
    for key, some in alike.items():
        ops = list(map(len, some[0].streams))
        busiest = max(range(len(ops)), key=ops.__getitem__)
        room = PRODUCTS_ROOM if cores[busiest] == "AIC" and len(cores) == 1 else ROOM
        enough = ENOUGH_AT_A_TIME * ops[busiest] // max(1, each[key][busiest]) if cores[busiest] == "AIV" else 1
        most = max(1, room // max(1, used), min(MOST_ROOM // max(1, used), enough))
        made = list(_Grouping(records, some, gaps, foreign).batches(_evenly(len(some), most, processors)))
        batches += made
        calls += len(made) * sum(ops)
    if len(batches) * 2 > len(runs) or not all(GmAccesses(records, runs, memory).are_independent()
                                               for memory in memory_ranges(bound.arrays)):
        return None
    kinds = {tuple(map(id, run.streams)): run for run in runs}.values()
    filled = not foreign and not any(any(find_uninitialised_reads(program, run.streams, lane)) for run in kinds
                                     for lane in range(len(program.lanes)))
    return BatchPlan(tuple(runs), tuple(sorted(batches, key=lambda batch: batch.first)), written, calls,
                     SharedResults(apart=True, filled=filled))


def _gaps(program: Program, functions: Sequence[BatchedFunction]) -> dict[Space, int]:
    """Returns, for each on-chip memory that is used, the distance in bytes between the memories of two blocks of a batch."""
    found: dict[Space, int] = {}
    for name, row in program.chip.memory.items():
        used = max(function.extents.get(name, 0) for function in functions)
        if used:
            anywhere = any(name in function.open_ended for function in functions)
            found[name] = (row.size if anywhere else -(-used // 64) * 64) + _APART
    return found


class _Grouping:
    """Divides blocks with equal event streams into batches.

    Args:
        records: for each core of a block, the records of its ops.
        runs: the records of the blocks.
        gaps: the result of ``_gaps``.
        foreign: the on-chip memories that several cores access.
    """

    def __init__(self, records: Sequence[Sequence[OpRecord]], runs: Sequence[BlockRun], gaps: dict[Space, int],
                 foreign: frozenset[str]) -> None:
        self.runs, self.gaps, self.foreign = runs, gaps, foreign
        owners = [_owners(known, stream) for known, stream in zip(records, runs[0].streams, strict=True)]
        found = [columns(runs, lane, np.arange(len(owner)), owner) for lane, owner in enumerate(owners)]
        self.counts = [sum(record.gm_operands for record in known) for known in records]
        starts = [0, *accumulate(self.counts)]
        owner = np.concatenate([part[chosen] + start for part, (chosen, _), start in zip(owners, found, starts, strict=False)])
        self.first = np.zeros(starts[-1], np.intp)  # for each operand, the first column with one of its offsets
        self.first[owner[::-1]] = np.arange(len(owner))[::-1]
        self.like = self.first[owner]
        self.ran = np.isin(np.arange(starts[-1]), owner)
        self.starts = starts
        self.places = np.concatenate([places for _, places in found], axis=1)
        self.steps = np.diff(self.places, axis=0)
        self.even = (self.steps == self.steps[:, self.like]).all(axis=1)
        """For each block, whether every operand has one distance from it to the next block."""
        self.again = np.zeros(len(runs), bool)
        """For each block, whether its distance to the next block equals that of the next block to its successor."""
        if len(runs) > 2:
            self.again[:-2] = (self.steps[1:] == self.steps[:-1]).all(axis=1)

    def batches(self, most: int) -> Iterator[Batch]:
        """Yields batches of at most ``most`` blocks.

        The blocks of a batch form a matrix with about as many rows as columns, because blocks of a row often read the same
        data, and so do blocks of a column.
        """
        place = 0
        while place < len(self.runs):
            row = self._row(place)
            rows = self._rows(place, row)
            wide = _even(row, max(1, most // min(rows, int(most ** 0.5))))
            high = _even(rows, max(1, most // wide))
            for first in range(0, rows, high):
                for start in range(0, row, wide):
                    sizes = min(high, rows - first), min(wide, row - start)
                    yield self._pile(place + first * row + start, sizes, row)
            place += rows * row

    def _row(self, start: int) -> int:
        """Returns the number of blocks from position ``start`` on whose GM offsets are evenly spaced."""
        if start + 1 == len(self.runs) or not self.even[start]:
            return 1
        return int(np.argmin(self.again[start:])) + 2

    def _rows(self, start: int, row: int) -> int:
        """Returns the number of rows of ``row`` blocks from position ``start`` on whose GM offsets are evenly spaced.

        The spacing of the blocks inside a row must be equal in all these rows.
        """
        rows = 1
        first, inside = self.places[start], self.steps[start:start + row - 1]
        while start + (rows + 1) * row <= len(self.runs):
            at = start + rows * row
            step = self.places[at] - self.places[at - row]
            if not np.array_equal(step, step[self.like]) or not np.array_equal(step, self.places[start + row] - first):
                break
            if not np.array_equal(self.steps[at:at + row - 1], inside):
                break
            rows += 1
        return rows

    def _pile(self, start: int, sizes: tuple[int, int], row: int) -> Batch:
        """Returns the batch of a matrix of blocks whose first block is at position ``start``.

        Args:
            start: the position of the first block among the blocks.
            sizes: the number of rows of the matrix, and the number of blocks of a row.
            row: the distance between the positions of the first blocks of two rows.
        """
        nowhere = np.zeros(self.places.shape[1], np.int64)
        steps = [self.places[start + row] - self.places[start] if sizes[0] > 1 else nowhere,
                 self.steps[start] if sizes[1] > 1 else nowhere]
        places = (np.where(self.ran, step[self.first], 0).tolist() if len(nowhere) else [0] * len(self.first)
                  for step in steps)
        both = list(zip(*places, strict=True))
        blocks = [self.runs[start + far * row + near].block for far, near in np.ndindex(*sizes)]
        layouts = tuple(BatchLayout(sizes, tuple(both[first:first + count]), self.gaps, self.foreign, blocks)
                        for first, count in zip(self.starts, self.counts, strict=False))
        return Batch(blocks[0], layouts)


def _even(count: int, most: int) -> int:
    """Returns the size of the parts if ``count`` is divided as evenly as possible into the fewest parts of at most ``most``."""
    return -(-count // -(-count // most))


def _evenly(blocks: int, most: int, processors: int) -> int:
    """Returns the size of batches, at most ``most`` blocks, with which all processors get the same number of batches."""
    return -(-blocks // (-(-blocks // (most * processors)) * processors))


def _processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _owners(records: Sequence[OpRecord], stream: Stream) -> NDArray[np.intp]:
    """Returns, for each GM offset of a stream, the number of its operand among the GM operands of all records."""
    firsts = [0, *accumulate(record.gm_operands for record in records)]
    numbers = [range(firsts[record.number], firsts[record.number + 1]) for record in records]
    return np.array([operand for event in stream for operand in numbers[number_of(event)]], np.intp)


def _written(records: Sequence[OpRecord], stream: Stream) -> int:
    """Returns the number of bytes that the ops of a stream write."""
    return sum(count * footprint(access, event).nbytes for event, count in counted(stream).items()
               for access in records[number_of(event)].accesses if access.writes)


def threads_for(plan: BatchPlan, jobs: int | None) -> int:
    """Returns the number of threads that compute the batches of a launch.

    Args:
        plan: the batches.
        jobs: the limit of the number; if None, the number of processors, or 1 if the ops are too short for several threads.
    """
    if jobs is None:
        if plan.written < LEAST_WRITTEN or plan.written < plan.calls * LEAST_AT_A_TIME:
            return 1
        jobs = _processors()
    return min(jobs, len(plan.batches))


def run_batches(program: Program, functions: Sequence[BatchedFunction], plan: BatchPlan, bound: BoundArguments,
                most_ops: int | None, jobs: int | None = None, step: Underway | None = None) -> None:
    """Computes a launch by batches, on several threads, and writes its results to the arrays of the arguments.

    No batch accesses bytes that another batch writes, so their order has no effect.

    Args:
        program, functions, bound: as for :func:`plan_batches`.
        plan: the batches.
        most_ops: the limit of the ops of a core in a block; None for the default.
        jobs: as for :func:`threads_for`.
        step: the work whose number of finished blocks the progress line shows; None to count none.

    Raises:
        Exception: the error of the first batch, in the order of the plan, among those that failed.
    """
    threads = threads_for(plan, jobs)
    lock = Lock()

    def count(batch: Batch) -> None:
        if step is not None:
            with lock:
                step.done += prod(batch.layouts[0].sizes)

    if threads < 2:
        with borrow_arena() as held:
            work = _BatchWorker(program, functions, plan, bound, most_ops, held)
            for batch in plan.batches:
                work.compute(batch)
                count(batch)
        return
    hands = _BatchQueue(len(plan.batches), threads)
    failed: dict[int, Exception] = {}

    def take(hand: int) -> None:
        """Computes batches of the queue until it is empty. After an error, no batch that follows in the plan is started."""
        with one_blas_thread(), np.errstate(all="ignore"), borrow_arena() as held:
            work = _BatchWorker(program, functions, plan, bound, most_ops, held)
            while (number := hands.next(hand)) is not None:
                try:
                    work.compute(plan.batches[number])
                    count(plan.batches[number])
                except Exception as error:  # noqa: BLE001 - the caller raises it
                    failed[number] = error
                    hands.stop(number)

    with short_switch_interval(), helped([partial(take, hand) for hand in range(1, threads)]):
        try:
            take(0)
        finally:
            hands.stop(0)  # in case of an interrupt
    if failed:
        raise failed[min(failed)]


class _BatchQueue:
    """Distributes batches among threads.

    Each thread gets a contiguous part of the batches and takes them in order. When its part is empty, a thread takes the last
    batch of the thread that has the most batches left. In this way threads write far from each other, which matters because the
    system clears a new large page twice if two threads access the page at the same time.

    Args:
        batches: the number of batches.
        threads: the number of threads.
    """

    def __init__(self, batches: int, threads: int) -> None:
        firsts = [batches * hand // threads for hand in range(threads + 1)]
        self._left = [range(first, end) for first, end in zip(firsts, firsts[1:], strict=False)]
        self._lock = Lock()

    def next(self, hand: int) -> int | None:
        """Removes a batch from the queue, and returns its position in the plan; None if the queue is empty.

        Args:
            hand: the number of the thread that computes the batch.
        """
        with self._lock:
            if self._left[hand]:
                number, self._left[hand] = self._left[hand][0], self._left[hand][1:]
                return number
            other = max(range(len(self._left)), key=lambda one: len(self._left[one]))
            if not self._left[other]:
                return None
            number, self._left[other] = self._left[other][-1], self._left[other][:-1]
            return number

    def stop(self, number: int) -> None:
        """Removes all batches from position ``number`` of the plan on from the queue."""
        with self._lock:
            self._left = [range(part.start, min(part.stop, max(part.start, number))) for part in self._left]


class _BatchMemories(NamedTuple):
    """The resources for all batches with equal numbers of rows and columns of blocks.

    Attributes:
        resources: the code of the launch, and the resources that its cores use in common.
        memories: the on-chip memories of each core, by the name of the core.
        shared: for each core, the arrays of ``shared_arrays``.
    """

    resources: LaunchResources
    memories: dict[str, CoreMemory]
    shared: list[list[Array | None]]


class _Bound(NamedTuple):
    """Cores whose code is bound to a layout of arrays.

    The same cores can run all batches that differ only in the indices of their blocks.

    Attributes:
        lanes: the cores.
        layouts: the layout of each core.
    """

    lanes: list[BoundCore]
    layouts: list[BatchLayout]


class _BatchWorker:
    """Computes batches in one thread, and keeps the memories and bound cores for later batches.

    Args:
        program, functions, plan, bound, most_ops: as for :func:`run_batches`.
        room: allocates the on-chip memories.
    """

    def __init__(self, program: Program, functions: Sequence[BatchedFunction], plan: BatchPlan, bound: BoundArguments,
                 most_ops: int | None, room: MemoryArena) -> None:
        self._program, self._functions, self._bound, self._most_ops = program, functions, bound, most_ops
        self._room = room
        self._blocks = len(plan.runs)
        self._poison = None if plan.alike.filled else POISON  # without unwritten reads the contents have no effect
        self._gaps = _gaps(program, functions)
        self._made: dict[tuple[int, int], _BatchMemories] = {}
        self._bound_to: dict[tuple[object, ...], _Bound] = {}
        self._used = [function.extents for function in functions]

    def compute(self, batch: Batch) -> None:
        """Runs the generated code for a batch, which writes the results of its blocks to the arrays of the arguments."""
        key = tuple((layout.sizes, layout.places) for layout in batch.layouts)
        found = self._bound_to.get(key)
        if found is None:
            found = self._bound_to[key] = self._bind(batch)
        lanes = found.lanes
        for layout, given in zip(found.layouts, batch.layouts, strict=True):
            layout.blocks, layout.failed_block = given.blocks, None
        if len(lanes) == 1 and not lanes[0].function.switches:
            lanes[0].run_block(batch.first)
        else:
            run_cores(lanes, [batch.first], self._program)

    def _bind(self, batch: Batch) -> _Bound:
        """Returns cores that are bound to the layout of a batch."""
        program, sizes, count = self._program, batch.layouts[0].sizes, batch.layouts[0].count
        if sizes not in self._made:
            self._room.clear()  # batches of different shapes are not computed at the same time
            held = block_memories(program.chip, program.core_ids(0), self._used, count, self._gaps, self._room.part)
            resources = LaunchResources(self._functions, self._most_ops, partial(CubeProducts, 2), self._poison)
            self._made[sizes] = _BatchMemories(resources, held, [shared_arrays(program.chip, core, held)
                                                                 for core in program.core_ids(0)])
        resources, held, shared = self._made[sizes]
        layouts = [copy(layout) for layout in batch.layouts]  # other threads use the plan's own at the same time
        return _Bound([BoundCore(program, index, sub, self._bound, self._blocks, resources, held, layout, arrays)
                       for (index, sub), layout, arrays in zip(program.lanes, layouts, shared, strict=True)], layouts)
