"""A module, compiled to Python once, and its launches."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp

from tilelang_npu.dialects import hacc
from tilelang_npu.dialects.hivm.enums import FuncCoreTypeAttr
from tilelang_npu.dialects.text import location_of, read_back, to_keep
from tilelang_npu.errors import TileError
from tilelang_npu.sharing import once, state_of
from tilelang_npu.simulator.codegen import Emitter
from tilelang_npu.simulator.codegen.data_uses import DataUses
from tilelang_npu.simulator.codegen.emitter import MAX_BLOCKS
from tilelang_npu.simulator.codegen.scope import Int
from tilelang_npu.simulator.codegen.stepwise import StepwiseEmitter
from tilelang_npu.simulator.codegen.traced import Ways, Witness
from tilelang_npu.simulator.codegen.watched import Observer, WatchingEmitter
from tilelang_npu.simulator.machine.blas import one_blas_thread
from tilelang_npu.simulator.machine.cores import CoreId, Coroutine, Flags, Running, run_together
from tilelang_npu.simulator.machine.datapath import Product, Scratch, no_scratch
from tilelang_npu.simulator.machine.events import Stream
from tilelang_npu.simulator.machine.memory import POISON, Array, CoreMemory
from tilelang_npu.simulator.machine.work import CrossWait
from tilelang_npu.simulator.run.arguments import Bound, bind, parameters
from tilelang_npu.simulator.run.compiled import CompiledFunction, Form, TracedFunction, functions_of
from tilelang_npu.simulator.run.endless import Guard
from tilelang_npu.simulator.run.reorder import LeftSet, Parts, Policy, Stepped, Stores, policy, run_reordered
from tilelang_npu.simulator.run.replay import Replay
from tilelang_npu.simulator.time.cost import CostModel
from tilelang_npu.simulator.time.schedule import Order
from tilelang_npu.simulator.time.steps import Expansion
from tilelang_npu.target import DEFAULT, Chip
from tilelang_npu.target import chip as find_chip

WORKSPACE_BYTES = 32768
"""Bytes of workspace per block where no host function tells: the default of tilelang-ascend's runtime (npuir)."""
_WORKSPACE_FUNCTION = "_infer_workspace_shape_function"
_TASK_TYPE_FUNCTION = "_infer_task_type_function"
MIX_1_1 = 31
"""Task type of a mixed kernel with one Vector core beside each Cube core."""


Left = dict[tuple[int, int, int], LeftSet]
"""What is set on the cores of a chip: by the place of the block among those that run together, function and sub-block."""


@dataclass(frozen=True)
class BlockRun:
    """What one block recorded: per core the event stream (equal streams are one object) and the GM offsets."""

    block: int
    streams: tuple[Stream, ...]
    gm: tuple[Sequence[int], ...]


@dataclass(frozen=True)
class Recorded:
    """A finished launch as recorded, before timing."""

    program: Program
    bound: Bound
    blocks: tuple[BlockRun, ...]
    workspace_bytes: int
    count: int
    """Blocks of the launch; a trace of many may hold but some of them."""
    traced: bool = False
    """Whether nothing was computed."""

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self)

    @property
    def is_complete(self) -> bool:
        """Whether it is known what the launch accesses: all blocks are there, and no data could have decided otherwise."""
        return not self.traced or (len(self.blocks) == self.count and self.program.data_free)

    @once
    def replay(self) -> Replay:
        """Further runs of single blocks."""
        return Replay(self)


class Again(NamedTuple):
    """What a further run of blocks left: the arrays, and per core its events and GM offsets."""

    arrays: tuple[Array | None, ...]
    recorded: list[tuple[list[Any], list[int]]]


class Program:
    """A kernel ready to run.

    Args:
        module: HIVM in the planned form: addresses given, Cube and Vector work split, synchronised.
        chip: the chip to run on, by name or itself; None takes the module's ``hacc.target``.
        entry: name of the kernel where the module has several (of a mixed one without ``_mix_aic``).

    Raises:
        TileError: T501, an op that is not executed; T502, an address outside of its memory; T508, no kernel, or several,
            or one that is not split.
    """

    def __init__(self, module: ModuleOp, chip: Chip | str | None = None, *, entry: str | None = None) -> None:
        self.module = module
        self.chip = find_chip(chip if chip is not None else hacc.target_of(module) or DEFAULT)
        self.name, kernels = _kernels(module, entry)
        mixed = len(kernels) > 1
        per_block = _vector_cores(module, self.name, self.chip) if mixed else 1
        self.functions = tuple(
            CompiledFunction(function, core, self.chip, per_block if core == "AIV" else 1) for core, function in kernels)
        self.entry = kernels[0][1]
        self.mixed = mixed
        self.lanes = tuple((index, sub) for index, function in enumerate(self.functions)
                           for sub in range(per_block if function.core == "AIV" else 1))
        self.global_sync = any(function.global_sync for function in self.functions)
        asked = _answer(module, self.name + _WORKSPACE_FUNCTION, self.chip)
        self.workspace = WORKSPACE_BYTES if asked is None else asked
        self.workspace_from = "the default in place of " * (asked is None) + self.name + _WORKSPACE_FUNCTION

    @once
    def written(self) -> frozenset[int]:
        """The arguments that some op writes."""
        return frozenset(access.buffer for function in self.functions for record in function.records
                         for access in record.accesses if access.memory == "gm" and access.writes)

    @once
    def used(self) -> frozenset[int]:
        """The arguments that some op reads or writes."""
        return frozenset(access.buffer for function in self.functions for record in function.records
                         for access in record.accesses if access.memory == "gm")

    @property
    def changed(self) -> frozenset[int]:
        """The positions among the user's arguments of those that some op writes."""
        users = [parameter.index for parameter in parameters(self.entry) if parameter.role == "user"]
        return frozenset(position for position, index in enumerate(users) if index in self.written)

    def __reduce__(self) -> tuple[Any, ...]:
        return _program, (to_keep(self.module), self.chip, self.name)

    @once
    def stepwise(self) -> tuple[CompiledFunction, ...]:
        """The functions in the form that a schedule runs."""
        return self._in_form(StepwiseEmitter)

    @once
    def traced(self) -> tuple[TracedFunction, ...]:
        """The functions in the form that only tells what they do."""
        return tuple(TracedFunction(function.function, function.core, self.chip, function.parallel)
                     for function in self.functions)

    @property
    def data_free(self) -> bool:
        """Whether a kernel does the same whatever its tensors hold: a trace is then what a run records."""
        return not any(function.data.uses for function in self.traced)

    @once
    def places(self) -> frozenset[int]:
        """The arguments of which data decide what parts are written."""
        return frozenset[int]().union(*(DataUses(function.function).places for function in self.functions))

    def _in_form(self, form: Form) -> tuple[CompiledFunction, ...]:
        return tuple(CompiledFunction(function.function, function.core, self.chip, function.parallel, form=form)
                     for function in self.functions)

    @property
    def cores(self) -> int:
        """Cores of the chip that take a block each at a time."""
        return self.chip.aic if self.mixed or self.functions[0].core == "AIC" else self.chip.aiv

    def source(self) -> str:
        """The generated Python."""
        return "\n".join(f"# {function.name} on {function.core}\n{function.source}" for function in self.functions)

    def core_ids(self, block: int) -> list[CoreId]:
        """The cores that work on a block, in the order of ``BlockRun.streams``."""
        return [CoreId(block, self.functions[index].core, sub) for index, sub in self.lanes]

    def run(self, args: Sequence[Any], *, blocks: int, order: Sequence[int] | int | None = None,
            schedule: str | None = None, left: Left | None = None, stores: Stores | None = None,
            observer: Observer | None = None, most_ops: int | None = None) -> Recorded:
        """Execute all blocks; the arrays among ``args`` are written in place.

        Args:
            args: the user's arguments in order: NumPy arrays and numbers.
            blocks: number of blocks.
            order: the order in which blocks run, or the seed of a random one.
            schedule: run the ops in another order than the program's, see ``reorder.policy``.
            left: events and flags that earlier launches left set on the cores, which the ops find in a schedule; what this one
                leaves set is added.
            stores: sees each tile that an op writes in a schedule, except scratch and what is added to GM, and each that it
                reads: the core, the pipe, the memory or ``read``, the numbers.
            observer: sees every op that writes before and behind it.
            most_ops: ops that a core may issue in a block; as ``endless`` says where None.

        Raises:
            TileError: T401 to T405, wrong arguments; S301 to S306, a hang; T413, no such schedule, or one with an observer;
                T502, an access outside of its memory.
        """
        self._check_blocks(blocks)
        if schedule is not None and observer is not None:
            raise TileError(f"numbers are watched in the program's own order, not in {schedule!r}", code="T413",
                            help="ask for one of the two")
        bound = bind(self.entry, args, blocks, self.workspace)
        sequence = _sequence(blocks, order)
        with one_blas_thread(), np.errstate(all="ignore"):
            if schedule is not None:
                runs = self._reordered(bound, sequence, policy(schedule), {} if left is None else left, stores, most_ops)
            else:
                functions = self.functions if observer is None else self._in_form(partial(WatchingEmitter, observer))
                run = self._all_at_once if self.global_sync else self._one_by_one
                runs = run(bound, sequence, _Means(functions, most_ops))
        runs.sort(key=lambda run: run.block)
        return Recorded(self, bound, tuple(runs), self.workspace, blocks)

    def trace(self, args: Sequence[Any], *, blocks: int, value: int | tuple[int, int] | None = None,
              most: int | None = None, most_ops: int | None = None, ways: Sequence[Ways] | None = None) -> Recorded:
        """What blocks would record, without values: nothing is computed and nothing written.

        Args:
            args: as for ``run``; arrays give their sizes, and the numbers that the scalar unit reads from them.
            blocks: number of blocks.
            value: what stands in for every number that is read from memory, or two numbers that do in turn; None takes it from
                the arrays, 0 on chip.
            most: ops in which all blocks are traced; of a longer launch the first blocks, the last, and some between them.
            most_ops: as for ``run``.
            ways: takes for each function how the conditions came out that depend on data.

        Returns:
            the launch, for times, hazards and traffic: of any data if the kernel is ``data_free``.

        Raises:
            TileError: T401 to T406, wrong arguments; S304, more blocks than can wait for each other; T502, an access outside of
                its memory; S305, S306, a loop comes to no end: where data end it, it may not without them.
        """
        self._check_blocks(blocks)
        bound = bind(self.entry, args, blocks, self.workspace)
        witnesses = tuple(Witness(value, None if ways is None else ways[index]) for index in range(len(self.traced)))
        means = _Means(self.traced, most_ops, no_scratch, 0, witnesses)
        run = partial(self._all_at_once if self.global_sync else self._one_by_one, bound, means=means, count=blocks)
        with np.errstate(all="ignore"):
            if most is None or blocks == 1:
                return Recorded(self, bound, tuple(run(range(blocks))), self.workspace, blocks, traced=True)
            if not self.global_sync:
                first = run([0])
                runs = [*first, *run(_behind_first(first, blocks, most))]
            else:
                try:
                    chosen = [0, *_behind_first(run([0]), blocks, most)]
                except TileError:  # of a block that the others should be beside
                    chosen = list(range(blocks))
                runs = run(chosen)
        return Recorded(self, bound, tuple(runs), self.workspace, blocks, traced=True)

    def _check_blocks(self, blocks: int) -> None:
        if not 0 < blocks <= MAX_BLOCKS:
            raise TileError(f"{blocks} blocks", code="T406", help=f"a launch has 1 to {MAX_BLOCKS}")
        if not 0 <= self.workspace * blocks <= self.chip.hbm:
            raise TileError(f"{self.workspace_from} asks for {self.workspace} bytes for each of {blocks} blocks; "
                            f"{self.chip.name} has {self.chip.hbm}", code="T502",
                            help="return the bytes of workspace that one block needs")
        if self.global_sync and blocks > self.cores:
            raise TileError(f"{self.name} waits for all its {blocks} blocks at once, but {self.chip.name} runs {self.cores} "
                            "side by side", code="S304", help="launch no more blocks than cores, and loop over the rest inside")

    def _one_by_one(self, bound: Bound, sequence: Sequence[int], means: _Means, count: int | None = None) -> list[BlockRun]:
        """Blocks one behind the other; of ``count`` in the launch, where they are not all."""
        blocks = len(sequence) if count is None else count
        lanes = [_Lane(self, index, sub, bound, blocks, means) for index, sub in self.lanes]
        runs = []
        interned: dict[Stream, Stream] = {}
        for block in sequence:
            if len(lanes) == 1 and not lanes[0].function.switches:
                lanes[0].call(block)
            else:
                _together(lanes, [block], self)
            runs.append(_finish(block, lanes, interned))
        return runs

    def _all_at_once(self, bound: Bound, sequence: Sequence[int], means: _Means, count: int | None = None) -> list[BlockRun]:
        """Blocks side by side; of ``count`` in the launch, where they are not all."""
        blocks = len(sequence) if count is None else count
        table = {block: [_Lane(self, index, sub, bound, blocks, means) for index, sub in self.lanes] for block in sequence}
        _together([lane for lanes in table.values() for lane in lanes],
                  [block for block, lanes in table.items() for _ in lanes], self)
        interned: dict[Stream, Stream] = {}
        return [_finish(block, lanes, interned) for block, lanes in table.items()]

    def again(self, bound: Bound, blocks: Sequence[int], count: int, *, poison: int = POISON,
              spans: Mapping[int, tuple[int, int]] | None = None, observer: Observer | None = None) -> Again:
        """What the arrays of a launch hold after blocks have run once more; the arrays themselves stay as they are.

        Args:
            bound: the launch's arguments.
            blocks: the blocks, side by side: one, or all of a launch in which they wait for each other.
            count: how many the launch has.
            poison: the byte that fills on-chip memory at first.
            spans: bytes of the written arrays that the blocks are known to access, first and behind the last; the others are 0
                in what they run on. None takes all.
            observer: sees every op that writes before and behind it.
        """
        arrays = tuple(array if array is None or number not in self.written else _part(array, spans, number)
                       for number, array in enumerate(bound.arrays))
        functions = self.functions if observer is None else self._in_form(partial(WatchingEmitter, observer))
        means = _Means(functions, poison=poison)
        given = replace(bound, arrays=arrays)
        lanes = [_Lane(self, index, sub, given, count, means) for _ in blocks for index, sub in self.lanes]
        with one_blas_thread(), np.errstate(all="ignore"):
            _together(lanes, [block for block in blocks for _ in self.lanes], self)
        return Again(arrays, [(lane.events, lane.gm) for lane in lanes])

    @once
    def _parts(self) -> list[Parts]:
        costs = CostModel(self.chip)
        return [Parts(function.records, costs) for function in self.stepwise]

    def _reordered(self, bound: Bound, sequence: Sequence[int], policy: Policy, left: Left,
                   stores: Stores | None, most_ops: int | None) -> list[BlockRun]:
        """As many blocks at a time as the chip has cores, op by op in the policy's order; cores keep what was left set."""
        runs = []
        means = _Means(self.stepwise, most_ops)
        interned: dict[Stream, Stream] = {}
        for start in range(0, len(sequence), self.cores):
            table: dict[int, list[_Lane]] = {}
            cores: dict[CoreId, Stepped] = {}
            for place, block in enumerate(sequence[start:start + self.cores]):
                table[block] = [_Lane(self, index, sub, bound, len(sequence), means) for index, sub in self.lanes]
                for identity, lane, (index, sub) in zip(self.core_ids(block), table[block], self.lanes, strict=True):
                    found = left.setdefault((place, index, sub), LeftSet())
                    cores[identity] = lane.stepped(identity, self._parts[index], found, stores)
            run_reordered(list(cores.values()), policy)
            for block, lanes in table.items():
                for identity, lane in zip(self.core_ids(block), lanes, strict=True):
                    lane.events, lane.gm = list(cores[identity].events), cores[identity].gm
                runs.append(_finish(block, lanes, interned))
        return runs


@dataclass(frozen=True)
class _Means:
    """What the cores of one launch run, and work with in common.

    Attributes:
        functions: their code.
        most_ops: ops that a core may issue in a block; ``endless.MOST_OPS`` where None.
        scratch: what products are computed in.
        poison: the byte that fills on-chip memory at first.
        witnesses: of each function, where nothing is computed.
    """

    functions: Sequence[CompiledFunction]
    most_ops: int | None = None
    scratch: Callable[[Product], object] = field(default_factory=Scratch)
    poison: int = POISON
    witnesses: Sequence[Witness] = ()


class _Lane:
    """One core of a launch: its memories, its bound code, and all that changes while that runs."""

    def __init__(self, program: Program, index: int, sub: int, bound: Bound, blocks: int, means: _Means) -> None:
        self._poison = means.poison
        self._workspace = f"{program.workspace_from} gives {program.workspace} bytes to each of {blocks} blocks: too few"
        self.function = means.functions[index]
        self.sub = sub
        self.memory = CoreMemory(program.chip, self.function.core, self.function.extents)
        self.events: list[Any] = []
        self.gm: list[int] = []
        arrays = [self.memory.arrays.get(name) for name in program.chip.memory]
        try:
            self.run: Callable[..., Any] = self.function.bind(
                bound.arrays, bound.scalars, bound.dims, blocks, sub, means.scratch, Guard(self.function.core, means.most_ops),
                means.witnesses[index] if means.witnesses else None, *arrays)
        except Exception as error:
            raise self.explained(error, 0) from error

    def explained(self, error: Exception, block: int) -> Exception:
        """The error for the user, where it is the kernel's fault."""
        told = self.function.explain(error, block, self._workspace)
        return error if told is None else told

    def start(self) -> None:
        """Make ready for a block."""
        self.memory.poison(self._poison)
        self.events, self.gm = [], []

    def call(self, block: int) -> None:
        """Run a block that waits for nobody."""
        self.start()
        self.tell(block)

    def tell(self, block: int) -> None:
        """Run code of a block that leaves memory as it is, or whose memory is ready."""
        try:
            self.run(block, self.events, self.gm, None, _nobody)
        except Exception as error:
            told = self.explained(error, block)
            if told is error:
                raise
            raise told from None

    def stepped(self, core: CoreId, expansion: Parts, left: LeftSet, stores: Stores | None) -> Stepped:
        """The core with its ops in a schedule's hands."""
        self.start()
        return Stepped(core, self.run(core.block, [], None, None, None), expansion,
                       lambda error: self.explained(error, core.block), left, stores)

    def coroutine(self, block: int, flags: Flags, core: CoreId) -> Coroutine:
        """Run a block, handing over where it waits."""
        try:
            made = self.run(block, self.events, self.gm, flags.counts[core], flags.setter(core))
            if self.function.switches:
                yield from made or ()
        except Exception as error:
            told = self.explained(error, block)
            if told is error:
                raise
            raise told from None


def _program(kept: dict[str, str], chip: Chip, name: str) -> Program:
    """A program of another process."""
    return Program(read_back(kept), chip, entry=name)


def _finish(block: int, lanes: Sequence[_Lane], interned: dict[Stream, Stream]) -> BlockRun:
    """What a block recorded; equal streams become one object."""
    streams = []
    for lane in lanes:
        stream = tuple(lane.events)
        streams.append(interned.setdefault(stream, stream))
    return BlockRun(block, tuple(streams), tuple(array("q", lane.gm) for lane in lanes))


def _part(array: Array, spans: Mapping[int, tuple[int, int]] | None, number: int) -> Array:
    """A copy of an array, or of the part that counts."""
    if spans is None:
        return array.copy()
    made = np.zeros(array.shape, array.dtype)  # memory that is not touched costs nothing
    first, end = spans.get(number, (0, 0))
    made[first:end] = array[first:end]
    return made


def _behind_first(first: Sequence[BlockRun], blocks: int, most: int) -> list[int]:
    """The blocks behind the first one to trace, so that all are about so many ops."""
    return _sample(blocks, most // max(1, sum(map(len, first[0].streams))))


def _sample(blocks: int, most: int) -> list[int]:
    """The blocks behind the first one to trace: all, or as many as are affordable, ends first and the rest spread evenly."""
    if blocks <= most + 1:
        return list(range(1, blocks))
    ends = {1, 2, blocks - 2, blocks - 1}
    spread = {round(place) for place in np.linspace(1, blocks - 1, max(most, 2))}
    return sorted(block for block in ends | spread if 0 < block < blocks)


def _nobody(flag: int, group: str) -> None:
    """A flag for cores that the launch does not have."""


def _together(lanes: Sequence[_Lane], blocks: Sequence[int], program: Program) -> None:
    """Run the cores of one block, or of all blocks."""
    per_block = len(program.lanes)
    numbers = list(blocks) if len(blocks) == len(lanes) else [blocks[0]] * len(lanes)
    cores = [CoreId(block, lane.function.core, lane.sub) for block, lane in zip(numbers, lanes, strict=True)]
    flags = Flags(cores)
    running = []
    for lane, core in zip(lanes, cores, strict=True):
        lane.start()
        running.append(Running(core, lane.coroutine(core.block, flags, core)))
    assert len(lanes) % per_block == 0
    if not run_together(running, flags):
        raise _hang(lanes, cores, program)


def _hang(lanes: Sequence[_Lane], cores: Sequence[CoreId], program: Program) -> TileError:
    """Why cores that run their ops one behind the other do not come to their ends."""
    costs = CostModel(program.chip)
    expansions = {id(lane.function): Expansion(lane.function.records, costs) for lane in lanes}
    try:
        Order(cores, [lane.events for lane in lanes], [expansions[id(lane.function)] for lane in lanes],
              program.chip.sync.flag_limit)
    except TileError as error:
        return error
    waits = (record for lane in lanes for record in lane.function.records if isinstance(record.work, CrossWait))
    return TileError(f"{program.name} waits on a pipe for what later ops of the same core bring about", code="T511",
                     location=next((record.location for record in waits), None),
                     notes=("each core runs its ops one behind the other; on a card the other pipes go on",),
                     help="run it with --schedule early, which runs each pipe by itself")


def _sequence(blocks: int, order: Sequence[int] | int | None) -> list[int]:
    if order is None:
        return list(range(blocks))
    if isinstance(order, int):
        shuffled = list(range(blocks))
        random.Random(order).shuffle(shuffled)
        return shuffled
    if sorted(order) != list(range(blocks)):
        msg = f"order is not a permutation of 0..{blocks - 1}"
        raise ValueError(msg)
    return list(order)


def _core_type(function: FuncOp) -> str:
    attribute = function.attributes.get("hivm.func_core_type")
    if isinstance(attribute, FuncCoreTypeAttr):
        return attribute.data
    found = {op.core() for op in function.walk() if hasattr(op, "core") and callable(op.core)} - {"either"}
    return found.pop() if len(found) == 1 else "MIX" if found else "AIV"


def _check_core(function: FuncOp, core: str) -> None:
    stated = function.attributes.get("hivm.func_core_type")
    if isinstance(stated, FuncCoreTypeAttr) and stated.data in {"AIC", "AIV"} - {core}:
        name = function.sym_name.data
        raise TileError(f"{name} is a function of the {core} by its name, and hivm.func_core_type<{stated.data}> by its "
                        "attribute", code="T512", location=location_of(function),
                        help=f"write hivm.func_core_type<{core}>, or end its name in _mix_{stated.data.lower()}")


def kernels_of(module: ModuleOp) -> dict[str, list[tuple[str, FuncOp]]]:
    """The device functions of each kernel of a module, with their cores: kernel by kernel, as the text has them.

    Raises:
        TileError: T512, a function is of one core by its name and of the other by its attribute.
    """
    found: dict[str, list[tuple[str, FuncOp]]] = {}
    for function in functions_of(module):
        kind = function.attributes.get("hacc.function_kind")
        if "hacc.entry" not in function.attributes or (isinstance(kind, hacc.FunctionKindAttr) and kind.data == "HOST"):
            continue
        name = function.sym_name.data
        for suffix, core in (("_mix_aic", "AIC"), ("_mix_aiv", "AIV")):
            if name.endswith(suffix):
                _check_core(function, core)
                found.setdefault(name.removesuffix(suffix), []).append((core, function))
                break
        else:
            found.setdefault(name, []).append((_core_type(function), function))
    return found


def _kernels(module: ModuleOp, entry: str | None) -> tuple[str, list[tuple[str, FuncOp]]]:
    """The kernel's name and its device functions, Cube first."""
    found = kernels_of(module)
    names = ", ".join(found) or "none"
    if entry is not None and entry not in found:
        raise TileError(f"there is no kernel {entry}; the module has {names}", code="T508")
    if entry is not None:
        found = {entry: found[entry]}
    if len(found) != 1:
        raise TileError(f"one kernel is needed, the module has {names}", code="T508",
                        help="mark the device function hacc.entry" if not found else "name the kernel to run")
    name, functions = next(iter(found.items()))
    for core, _ in functions:
        if core not in ("AIC", "AIV"):
            raise TileError(f"{name} is one {core} function: Cube and Vector work are not split", code="T508",
                            help="run the passes up to the stage hivm first")
    return name, sorted(functions, key=lambda one: one[0])


def _answer(module: ModuleOp, name: str, chip: Chip) -> int | None:
    """What a host function of the module returns; None where there is no such function.

    Raises:
        TileError: T501, it does not return a constant.
    """
    for function in functions_of(module):
        if function.sym_name.data == name:
            last = function.body.block.last_op
            if isinstance(last, ReturnOp):
                value = Emitter(function, "AIV", chip, 1).value(last.arguments[0])
                if isinstance(value, Int) and value.known:
                    return value.const
            raise TileError(f"{name} does not return a constant", code="T501")
    return None


def _vector_cores(module: ModuleOp, name: str, chip: Chip) -> int:
    """Vector cores that a block of a mixed kernel takes: one if its task type says so (hivm.md 1.4), else all there are."""
    return 1 if _answer(module, name + _TASK_TYPE_FUNCTION, chip) == MIX_1_1 else chip.aiv_per_aic
