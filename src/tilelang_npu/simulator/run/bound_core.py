"""The cores of a running launch: the code of each, bound to the arguments and to its own memories."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.batch_layout import BatchLayout
from tilelang_npu.simulator.machine.core_coroutines import CoreId, Coroutine, Flags, Running, run_coroutines
from tilelang_npu.simulator.machine.datapath import Multipliers, Product
from tilelang_npu.simulator.machine.memory import POISON, Array, CoreMemory, block_memories, shared_arrays
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

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.observed_emitter import Observer
    from tilelang_npu.simulator.run.program import Program


@dataclass(frozen=True)
class LaunchResources:
    """The code of one launch, and the resources that its cores share.

    Attributes:
        functions: the code of each device function.
        most_ops: limit of the ops of a core in a block; ``endless.MOST_OPS`` where None.
        scratch: returns the multiplier of a product.
        poison: the byte that fills on-chip memory before a block; None to leave it as it is.
        placeholders: for each function the placeholders of a trace; empty where values are computed.
        view: creates arrays, as ``numpy.ndarray`` does.
        observer: called around each op, by code that is observed.
    """

    functions: Sequence[CompiledFunction]
    most_ops: int | None = None
    scratch: Callable[[Product], object] = field(default_factory=Multipliers)
    poison: int | None = POISON
    placeholders: Sequence[PlaceholderData] = ()
    view: Callable[..., object] = np.ndarray
    observer: Observer | None = None


def cores_of_block(program: Program, bound: BoundArguments, blocks: int, resources: LaunchResources) -> list[BoundCore]:
    """Returns the cores of a block, each with its view of the block's memories."""
    memories = block_memories(program.chip, program.core_ids(0), [function.extents for function in resources.functions])
    return [BoundCore(program, index, sub, bound, blocks, resources, memories) for index, sub in program.lanes]


class BoundCore:
    """One core of a launch: its memories, its code bound to the arguments, and the state of its current block.

    With a ``layout`` it represents the cores of all blocks of a batch. ``shared`` are the arrays of the memories, if the caller
    has them already.
    """

    def __init__(self, program: Program, index: int, sub: int, bound: BoundArguments, blocks: int, resources: LaunchResources,
                 memories: Mapping[str, CoreMemory], layout: BatchLayout | None = None,
                 shared: Sequence[Array | None] | None = None) -> None:
        self._poison, self._layout = resources.poison, layout
        self._workspaces = program.workspaces
        self._workspace = f"{program.workspace_from} gives {program.workspace} bytes to each of {blocks} blocks: too few"
        self.function = resources.functions[index]
        self.sub = sub
        core = CoreId(0, self.function.core, sub)
        self.memory = memories[core.label]
        self.events: list[Event] = []
        self.gm: list[int] = []
        try:
            own = resources.view is not np.ndarray or resources.observer is not None
            bind = self.function.bind_with(resources.view, resources.observer) if own else self.function.bind
            self.run: Run = bind(
                bound.arrays, bound.scalars, bound.dims, blocks, sub, resources.scratch, LoopGuard(self.function.core,
                                                                                                   resources.most_ops),
                resources.placeholders[index] if resources.placeholders else None, layout,
                *(shared_arrays(program.chip, core, memories) if shared is None else shared))
        except Exception as error:
            raise self.explained(error, 0) from error

    def explained(self, error: Exception, block: int) -> Exception:
        """Returns the user's error for an exception, if it is the kernel's fault."""
        # in a batch it may be another block than the first
        if self._layout is not None and self._layout.failed_block is not None:
            block = self._layout.failed_block
        told = self.function.explain(error, block, self._workspace, self._workspaces)
        return error if told is None else told

    def start(self) -> None:
        """Prepares for a block."""
        if self._poison is not None:
            self.memory.poison(self._poison)
        self.events, self.gm = [], []

    def run_block(self, block: int) -> None:
        """Runs a block that waits for no other core."""
        self.start()
        self.run_code(block)

    def run_code(self, block: int) -> None:
        """Runs the code of a block without preparing memory."""
        try:
            self.run(block, self.events, self.gm, None, _nobody)
        except Exception as error:
            told = self.explained(error, block)
            if told is error:
                raise
            raise told from None

    def stepped(self, core: CoreId, expansion: StepParts, left: SyncState, stores: Stores | None) -> SteppedCore:
        """Returns the core in the form that a schedule runs."""
        self.start()
        return SteppedCore(core, self.run(core.block, [], None, None, None), expansion,
                           lambda error: self.explained(error, core.block), left, stores)

    def coroutine(self, block: int, flags: Flags, core: CoreId) -> Coroutine:
        """Runs a block; yields where it waits."""
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
    """Sets a flag that no core of the launch receives."""


def run_cores(lanes: Sequence[BoundCore], blocks: Sequence[int], program: Program) -> None:
    """Runs the cores of one block, or of all blocks, concurrently."""
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
    """Returns the error for cores that hang when each runs its ops one after the other."""
    costs = CostModel(program.chip)
    expansions = {id(lane.function): Expansion(lane.function.records, costs) for lane in lanes}
    try:
        StepOrder(cores, [lane.events for lane in lanes], [expansions[id(lane.function)] for lane in lanes],
                  program.chip.sync.flag_limit)
    except TileError as error:
        return error
    waits = (record for lane in lanes for record in lane.function.records if isinstance(record.work, CrossWait))
    return TileError(f"{program.name} waits on a pipe for later ops of the same core", code="T511",
                     location=next((record.location for record in waits), None),
                     notes=("each core runs its ops one after the other; on a card the other pipes go on",),
                     help="run it with --schedule early, which runs each pipe by itself")


def block_run_of(block: int, lanes: Sequence[BoundCore], interned: dict[Stream, Stream]) -> BlockRun:
    """Returns the record of a block; equal streams become one object."""
    streams = []
    for lane in lanes:
        stream = tuple(lane.events)
        streams.append(interned.setdefault(stream, stream))
    return BlockRun(block, tuple(streams), tuple(array("q", lane.gm) for lane in lanes))


def copy_span(array: Array, spans: Mapping[int, tuple[int, int]] | None, number: int) -> Array:
    """Returns a copy of an array, of the bytes of its span where spans are given."""
    if spans is None:
        return array.copy()
    made = np.zeros(array.shape, array.dtype)  # pages that are never written take no memory
    first, end = spans.get(number, (0, 0))
    made[first:end] = array[first:end]
    return made
