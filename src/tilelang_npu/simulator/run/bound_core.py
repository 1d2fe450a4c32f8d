"""The cores of a running launch: for each core its code, bound to the arguments of the launch and to the core's memories."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.batch_layout import BatchLayout
from tilelang_npu.simulator.machine.core_coroutines import CoreId, Coroutine, Flags, Running, run_coroutines
from tilelang_npu.simulator.machine.cube_products import CubeProducts, NoProducts
from tilelang_npu.simulator.machine.memory import POISON, Array, CoreMemory, Spot, block_memories, shared_arrays
from tilelang_npu.simulator.machine.op_records import CrossWait, Event, Stream
from tilelang_npu.simulator.machine.placeholder_data import PlaceholderData
from tilelang_npu.simulator.run.arguments import BoundArguments
from tilelang_npu.simulator.run.compiled_function import CompiledFunction, Run
from tilelang_npu.simulator.run.loop_limits import LoopGuard
from tilelang_npu.simulator.run.recorded_launch import BlockRun
from tilelang_npu.simulator.run.reordered_execution import StepParts, SteppedCore, Stores, SyncState
from tilelang_npu.simulator.time.cost import CostModel
from tilelang_npu.simulator.time.pipe_steps import Expansion
from tilelang_npu.simulator.time.step_order import StepOrder
from tilelang_npu.target.chip_data import CoreKind

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.observed_emitter import Observer
    from tilelang_npu.simulator.run.program import Program


@dataclass(frozen=True)
class LaunchResources:
    """The code of one launch, and the resources that its cores share.

    Attributes:
        functions: the compiled device functions that the launch runs.
        most_ops: the limit of the ops of a core in a block; None for the limits of ``loop_limits.py``.
        products: makes the object that computes the matrix products of a core.
        poison: the byte that fills on-chip memory before each block; None if the memory keeps its contents.
        placeholders: for each device function, the source of the numbers that a trace reads from memory; empty if the launch
            computes values.
        view: the function that creates arrays in the generated code, such as ``numpy.ndarray``.
        observer: the object that code of ``ObservedEmitter`` calls before and after each op; None for other code.
        guard: creates the limits of the loops of a core, from the kind of core and ``most_ops``.
        spot: a range of on-chip bytes that is filled with ``POISON`` before each block.
    """

    functions: Sequence[CompiledFunction]
    most_ops: int | None = None
    products: Callable[[], CubeProducts | NoProducts] = CubeProducts
    poison: int | None = POISON
    placeholders: Sequence[PlaceholderData] = ()
    view: Callable[..., object] = np.ndarray
    observer: Observer | None = None
    guard: Callable[[CoreKind, int | None], LoopGuard] = LoopGuard
    spot: Spot | None = None


def cores_of_block(program: Program, bound: BoundArguments, blocks: int, resources: LaunchResources) -> list[BoundCore]:
    """Allocates the memories of a block, and returns the cores of the block, bound to these memories.

    Args:
        program: the kernel.
        bound: the arguments of the launch.
        blocks: the number of blocks of the launch.
        resources: the code, and the resources that the cores use in common.
    """
    memories = block_memories(program.chip, program.core_ids(0), [function.extents for function in resources.functions])
    return [BoundCore(program, index, sub, bound, blocks, resources, memories) for index, sub in program.lanes]


class BoundCore:
    """One core of a launch: its memories, its code bound to the arguments, and the record of the block that it runs.

    Args:
        program: the kernel.
        index: the number of the device function that the core runs.
        sub: the number of the core among those of its kind in the block.
        bound: the arguments of the launch.
        blocks: the number of blocks of the launch.
        resources: the code, and the resources that the cores use in common.
        memories: the memories of all cores of the block, by the name of the core.
        layout: the layout of a batch; the object then represents the cores of this kind and number in all blocks of the batch.
            None for a core that runs one block at a time.
        shared: the arrays of ``shared_arrays`` for this core; None to compute them.

    Attributes:
        function: the device function.
        sub: the argument ``sub``.
        memory: the memories of the core.
        events: the events of the current block.
        gm: the GM offsets of the current block.
        run: runs a block.

    Raises:
        TileError: the code that runs once per launch found a mistake of the kernel.
    """

    def __init__(self, program: Program, index: int, sub: int, bound: BoundArguments, blocks: int, resources: LaunchResources,
                 memories: Mapping[str, CoreMemory], layout: BatchLayout | None = None,
                 shared: Sequence[Array | None] | None = None) -> None:
        self._poison, self._spot, self._layout = resources.poison, resources.spot, layout
        self._workspaces = program.workspaces
        self._workspace = (f"{program.workspace_from} gives {program.workspace} bytes of workspace to each of {blocks} blocks, "
                           "and a block needs more")
        self.function = resources.functions[index]
        self.sub = sub
        core = CoreId(0, self.function.core, sub)
        self.memory = memories[core.label]
        self.events: list[Event] = []
        self.gm: list[int] = []
        self._products = resources.products()
        self._products.watched = resources.observer is not None
        try:
            own = resources.view is not np.ndarray or resources.observer is not None
            bind = self.function.bind_with(resources.view, resources.observer) if own else self.function.bind
            self.run: Run = bind(
                bound.arrays, bound.scalars, bound.dims, blocks, sub, self._products,
                resources.guard(self.function.core, resources.most_ops),
                resources.placeholders[index] if resources.placeholders else None, layout,
                *(shared_arrays(program.chip, core, memories) if shared is None else shared))
        except Exception as error:
            raise self.explained(error, 0) from error

    def explained(self, error: Exception, block: int) -> Exception:
        """Returns the ``TileError`` for an exception that a mistake in the kernel caused; any other exception is returned
        itself.

        Args:
            error: the exception of the generated code.
            block: the block that ran; for a batch, the first block.
        """
        # in a batch it may be another block than the first
        if self._layout is not None and self._layout.failed_block is not None:
            block = self._layout.failed_block
        told = self.function.explain(error, block, self._workspace, self._workspaces)
        return error if told is None else told

    def start(self) -> None:
        """Prepares the core for a new block: fills its memory with the poison byte, discards products, and starts an empty
        record."""
        if self._poison is not None:
            self.memory.poison(self._poison, self._spot)
        self._products.forget()
        self.events, self.gm = [], []

    def run_block(self, block: int) -> None:
        """Prepares the core for a block that waits for no other core, and runs the block."""
        self.start()
        self.run_code(block)

    def run_code(self, block: int) -> None:
        """Runs a block that waits for no other core, without calling :meth:`start` before."""
        try:
            self.run(block, self.events, self.gm, None, _nobody)
        except Exception as error:
            told = self.explained(error, block)
            if told is error:
                raise
            raise told from None

    def stepped(self, core: CoreId, expansion: StepParts, left: SyncState, stores: Stores | None) -> SteppedCore:
        """Prepares the core for a block, and returns an object with which a schedule runs the ops of the block one by one.

        Args:
            core: the identity of the core, with the block.
            expansion: the steps of the function's events.
            left: the events and flags that are set on the core; updated in place.
            stores: as for ``SteppedCore``.
        """
        self.start()
        return SteppedCore(core, self.run(core.block, [], None, None, None), expansion,
                           lambda error: self.explained(error, core.block), left, stores)

    def coroutine(self, block: int, flags: Flags, core: CoreId) -> Coroutine:
        """Returns a coroutine that runs a block and yields at each wait for a flag between cores.

        Args:
            block: the block.
            flags: the flag counters of all cores that run concurrently.
            core: the identity of the core among them.
        """
        try:
            made = self.run(block, self.events, self.gm, flags.counts[core], flags.setter(core))
            if self.function.switches:
                yield from made or ()
        except Exception as error:
            told = self.explained(error, block)
            if told is error:
                raise
            raise told from None


def _nobody(flag: int, group: str) -> None:
    """Does nothing: takes the place of the function that sets a flag in a launch in which no core receives the flag."""


def run_cores(lanes: Sequence[BoundCore], blocks: Sequence[int], program: Program) -> None:
    """Runs the cores of one block, or of several blocks, concurrently.

    Args:
        lanes: the cores.
        blocks: the block of each core; or a single block, which all cores run.
        program: the kernel.

    Raises:
        TileError: S301 to S303, the cores hang; T511, the cores hang only because the simulator runs the ops of each core one
            after the other.
    """
    per_block = len(program.lanes)
    numbers = list(blocks) if len(blocks) == len(lanes) else [blocks[0]] * len(lanes)
    cores = [CoreId(block, lane.function.core, lane.sub) for block, lane in zip(numbers, lanes, strict=True)]
    flags = Flags(cores)
    running = []
    for lane, core in zip(lanes, cores, strict=True):
        lane.start()
        running.append(Running(core, lane.coroutine(core.block, flags, core)))
    assert len(lanes) % per_block == 0
    if not run_coroutines(running, flags):
        raise _hang(lanes, cores, program)


def _hang(lanes: Sequence[BoundCore], cores: Sequence[CoreId], program: Program) -> TileError:
    """Returns the error for cores that hang: S301 to S303 if they would also hang on a chip, whose pipes run independently;
    otherwise T511.
    """
    costs = CostModel(program.chip)
    expansions = {id(lane.function): Expansion(lane.function.records, costs) for lane in lanes}
    try:
        StepOrder(cores, [lane.events for lane in lanes], [expansions[id(lane.function)] for lane in lanes],
                  program.chip.sync.flag_limit)
    except TileError as error:
        return error
    waits = (record for lane in lanes for record in lane.function.records if isinstance(record.work, CrossWait))
    return TileError(f"{program.name} waits on one pipe for the effect of an op that the same core issues later", code="T511",
                     location=next((record.location for record in waits), None),
                     notes=("the simulator runs the ops of a core one after the other; on a card the other pipes run on",),
                     help="run the kernel with --schedule early, which runs each pipe independently")


def block_run_of(block: int, lanes: Sequence[BoundCore], interned: dict[Stream, Stream]) -> BlockRun:
    """Returns the record of a block that has run.

    Args:
        block: the block.
        lanes: the cores that ran the block.
        interned: the event streams of earlier blocks. A stream that equals one of them is replaced by it; a new stream is
            added.
    """
    streams = []
    for lane in lanes:
        stream = tuple(lane.events)
        streams.append(interned.setdefault(stream, stream))
    return BlockRun(block, tuple(streams), tuple(array("q", lane.gm) for lane in lanes))


def copy_span(array: Array, spans: Mapping[int, tuple[int, int]] | None, number: int) -> Array:
    """Returns a copy of an array, or of a part of it with zeros elsewhere.

    Args:
        array: the bytes of an argument.
        spans: by argument number, the offset of the first byte to copy and the offset after the last one. Of an argument
            without an entry no byte is copied. With None the whole array is copied.
        number: the number of the argument.
    """
    if spans is None:
        return array.copy()
    made = np.zeros(array.shape, array.dtype)  # pages that are never written take no memory
    first, end = spans.get(number, (0, 0))
    made[first:end] = array[first:end]
    return made
