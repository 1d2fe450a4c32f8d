"""A kernel that is compiled to Python once, and the launches that run it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.progress import shown
from tilelang_npu.sharing import Kept, once
from tilelang_npu.simulator.machine.aliasing_arguments import memory_ranges
from tilelang_npu.simulator.machine.core_coroutines import MAX_BLOCKS, CoreId
from tilelang_npu.simulator.machine.cube_products import NoProducts
from tilelang_npu.simulator.machine.memory import POISON, POISON_NOW, Spot
from tilelang_npu.simulator.machine.op_records import PeerWait, Stream
from tilelang_npu.simulator.machine.placeholder_data import BranchOutcomes, PlaceholderData
from tilelang_npu.simulator.machine.worker_threads import one_blas_thread
from tilelang_npu.simulator.run import batched_execution
from tilelang_npu.simulator.run.arguments import BoundArguments, FunctionParameter, bind
from tilelang_npu.simulator.run.batched_execution import BatchPlan, plan_batches, run_batches
from tilelang_npu.simulator.run.batched_trace import trace_batched
from tilelang_npu.simulator.run.bound_core import BoundCore, LaunchResources, block_run_of, copy_span, cores_of_block, run_cores
from tilelang_npu.simulator.run.compiled_function import BatchedFunction, CompiledFunction, TracedFunction
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch, ReplayResult
from tilelang_npu.simulator.run.reordered_execution import (
    Policy,
    StepParts,
    SteppedCore,
    Stores,
    SyncState,
    policy,
    run_reordered,
)
from tilelang_npu.simulator.run.repeated_trace import trace_repeated
from tilelang_npu.simulator.run.uninitialised_reads import reads_first, writes_part_first
from tilelang_npu.simulator.time.cost import CostModel
from tilelang_npu.symmetric_heap import current_heap, rehearsal
from tilelang_npu.target import DEFAULT, Chip
from tilelang_npu.target import chip as find_chip
from tilelang_npu.target.chip_data import CoreKind

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Operation

    from tilelang_npu.simulator.codegen.observed_emitter import Observer

Made = TypeVar("Made")
WORKSPACE_BYTES = 32768
"""Bytes of workspace of each block if no host function returns them; the default of TileLang-Ascend's runtime for npuir."""
_WORKSPACE_FUNCTION = "_infer_workspace_shape_function"


class CompiledForms(TypedDict, total=False):
    """The device functions of a program, compiled to two further forms of code when these are first needed."""

    batched: tuple[BatchedFunction, ...]
    """The functions as code that computes many blocks at once; empty if no such code can be generated."""
    traced: tuple[TracedFunction, ...]
    """The functions as code that records their ops and computes no values."""


@dataclass(frozen=True)
class ExecutableKernel:
    """A compiled kernel as data that can be stored and run without the module.

    Attributes:
        name: the kernel's name.
        functions: the compiled device functions.
        mixed: whether the kernel has functions for both kinds of cores.
        most_blocks: the largest number of blocks of a launch.
        lanes: for each core of a block, the position in ``functions`` of the function that the core runs, and the number of the
            core's sub-block.
        global_sync: whether the blocks wait for each other, so that they must run concurrently.
        workspace: the number of bytes of workspace of each block.
        workspace_from: the source of the number ``workspace`` for error messages, such as the name of the host function that
            returns it.
        block_dim: the number of blocks that the kernel declares (``hacc.block_dim``); None if it declares none.
    """

    name: str
    functions: tuple[CompiledFunction, ...]
    mixed: bool
    most_blocks: int
    lanes: tuple[tuple[int, int], ...]
    global_sync: bool
    workspace: int
    workspace_from: str
    block_dim: int | None = None


Left = dict[tuple[int, int, int], SyncState]
"""The events and flags that a launch leaves set on each core. The key of a core is the position of its block among those
that run concurrently, the number of its function, and its sub-block."""


def _fact(make: Callable[[Program], Made]) -> once[Program, Made]:
    """Makes a method a property that is computed when it is first read, and stored in the cache together with the kernel."""
    def known(program: Program) -> Made:
        found: Made = program._facts.get(make.__name__, lambda: make(program))
        return found

    known.__name__, known.__doc__ = make.__name__, make.__doc__
    return once(known)


class Program:
    """A kernel that is compiled to Python and ready to run.

    Args:
        module: HIVM in which buffers have addresses, Cube and Vector work are in separate functions, and waits are inserted.
        chip: the chip, or its name; None for the chip that the module's ``hacc.target`` names.
        entry: the name of the kernel, needed if the module has several; that of a mixed kernel without ``_mix_aic``.
        computes: whether the program will be run; if it is only traced, compilation takes half the time.

    Attributes:
        chip: the chip.
        name, functions, mixed, lanes, most_blocks, global_sync, workspace, workspace_from, block_dim: as in
            :class:`ExecutableKernel`.

    Raises:
        TileError: T501, the simulator does not execute an op; T502, an access is outside of its buffer or memory; T503, an op
            cannot access the memory of an operand; T508, the module has no kernel, or several, or one whose Cube and Vector
            work is not split. Other codes from T504 to T512 for wrong operands.
    """

    def __init__(self, module: ModuleOp, chip: Chip | str | None = None, *, entry: str | None = None,
                 computes: bool = True) -> None:
        from tilelang_npu.dialects import hacc
        from tilelang_npu.simulator.codegen.control import blocks_per_point
        from tilelang_npu.simulator.run.compile_functions import compile_function, compile_traced
        from tilelang_npu.simulator.run.entry_functions import answer_of, kernel_of, vector_cores

        target = find_chip(chip if chip is not None else hacc.target_of(module) or DEFAULT)
        name, kernels = kernel_of(module, entry)
        mixed = len(kernels) > 1
        per_block = vector_cores(module, name, target) if mixed else 1
        form = compile_function if computes else compile_traced
        functions = tuple(form(function, core, target, per_block if core == "AIV" else 1) for core, function in kernels)
        lanes = tuple((index, sub) for index, function in enumerate(functions)
                      for sub in range(per_block if function.core == "AIV" else 1))
        asked = answer_of(module, name + _WORKSPACE_FUNCTION, target)
        default = "the default in place of " if asked is None else ""
        self._begin(module, target, ExecutableKernel(
            name, functions, mixed,
            MAX_BLOCKS * (1 if mixed or kernels[0][0] != "AIV" else blocks_per_point(kernels[0][1], target.aiv_per_aic)),
            lanes, any(function.global_sync for function in functions), WORKSPACE_BYTES if asked is None else asked,
            f"{default}{name}{_WORKSPACE_FUNCTION}", hacc.block_dim_of(kernels[0][1])))

    def _begin(self, module: ModuleOp | Callable[[], ModuleOp], chip: Chip, kernel: ExecutableKernel,
               facts: Kept[str, Any] | None = None, forms: Callable[[], CompiledForms] | None = None) -> None:
        """Sets the fields of a new program.

        Args:
            module: the module, or a function that reads the module.
            chip: the chip.
            kernel: the compiled kernel.
            facts: the properties made by ``_fact`` that are already computed; None for none.
            forms: a function that reads the further compiled forms of the functions; None for none.
        """
        self._module, self.chip, self._kernel = module, chip, kernel
        self.name, self.functions, self.mixed, self.lanes = kernel.name, kernel.functions, kernel.mixed, kernel.lanes
        self.most_blocks, self.global_sync = kernel.most_blocks, kernel.global_sync
        self.workspace, self.workspace_from, self.block_dim = kernel.workspace, kernel.workspace_from, kernel.block_dim
        self._facts: Kept[str, Any] = Kept() if facts is None else facts
        self._forms = forms
        self._new_forms = CompiledForms()
        self._planned: tuple[object, BatchPlan | None] = (None, None)
        self._seen: object = None

    @once
    def module(self) -> ModuleOp:
        """The HIVM module of the program. For a program from the cache, the module is read when it is first needed."""
        return self._module() if callable(self._module) else self._module

    @once
    def device_functions(self) -> list[FuncOp]:
        """The device functions in the module's IR, in the order of ``functions``."""
        from tilelang_npu.simulator.run.entry_functions import kernel_of

        return [function for _, function in kernel_of(self.module, self.name)[1]]

    def as_data(self) -> dict[str, object]:
        """Returns the program as data without IR that can be pickled, from which :meth:`restored` makes the program again.

        Raises:
            TypeError: the program was compiled to be traced only.
        """
        if any(isinstance(function, TracedFunction) for function in self.functions):
            raise TypeError(self.name)
        return {"kernel": self._kernel, "facts": self._facts}

    @property
    def has_forms(self) -> bool:
        """Whether code that computes many blocks at once has been compiled, or is known to be impossible for this kernel.

        The result of :meth:`forms` is then worth storing for a later :meth:`restored`.
        """
        return self._forms is not None or "batched" in self._new_forms

    def forms(self) -> CompiledForms:
        """Returns the forms of code, in addition to ``functions``, to which the device functions have been compiled so far."""
        known = CompiledForms() if self._forms is None else self._forms()
        return {**known, **self._new_forms}

    @classmethod
    def restored(cls, data: Mapping[str, Any], chip: Chip, module: Callable[[], ModuleOp],
                 forms: Callable[[], CompiledForms] | None) -> Program:
        """Returns a program from the result of :meth:`as_data`, without a compilation.

        Args:
            data: the result of :meth:`as_data`.
            chip: the chip.
            module: a function that reads the module; called when the IR is first needed.
            forms: a function that reads the stored result of :meth:`forms`, the compiled Python code of the program; called
                when the code is first needed. None if that result was not stored.
        """
        made = cls.__new__(cls)
        made._begin(module, chip, data["kernel"], data["facts"], forms)
        return made

    @_fact
    def declared(self) -> list[FunctionParameter]:
        """The parameters of the kernel's device functions."""
        from tilelang_npu.simulator.run.compile_functions import parameters

        return parameters(self.device_functions[0])

    @_fact
    def has_grid(self) -> bool:
        """Whether the last three parameters can be the sizes of the grid."""
        from tilelang_npu.simulator.run.compile_functions import has_grid

        return has_grid(self.device_functions[0], self.declared)

    @once
    def workspaces(self) -> frozenset[int]:
        """The positions of the parameters that are workspaces."""
        return frozenset(parameter.index for parameter in self.declared if parameter.role == "workspace")

    def ops(self, index: int) -> Sequence[Operation]:
        """Returns the op in the IR for each record of a device function.

        Args:
            index: the position of the device function in ``functions``.
        """
        known = self.functions[index].recorded
        return self._recompiled[index] if known is None else known

    @once
    def _recompiled(self) -> list[Sequence[Operation]]:
        """For each device function, the op in the IR for each of its records; found by compiling the functions again."""
        from tilelang_npu.simulator.run.compile_functions import compile_function

        return [function.recorded or () for function in self._in_form(compile_function)]

    @once
    def written(self) -> frozenset[int]:
        """The positions of the parameters whose contents an op writes."""
        return frozenset(access.buffer for function in self.functions for record in function.records
                         for access in record.accesses if access.memory == "gm" and access.writes)

    @once
    def used(self) -> frozenset[int]:
        """The positions of the parameters whose contents an op reads or writes."""
        return frozenset(access.buffer for function in self.functions for record in function.records
                         for access in record.accesses if access.memory == "gm")

    @property
    def changed(self) -> frozenset[int]:
        """The positions, among the user's arguments, of the arguments whose contents an op writes."""
        users = [parameter.index for parameter in self.declared if parameter.role == "user"]
        return frozenset(position for position, index in enumerate(users) if index in self.written)

    def __reduce__(self) -> tuple[object, ...]:
        from tilelang_npu.dialects.text import serialise_module

        return _program, (serialise_module(self.module), self.chip, self.name)

    @once
    def stepwise(self) -> tuple[CompiledFunction, ...]:
        """The device functions, compiled to code that yields its ops to a schedule."""
        from tilelang_npu.simulator.codegen.stepwise_emitter import StepwiseEmitter
        from tilelang_npu.simulator.run.compile_functions import compile_function

        return self._in_form(partial(compile_function, form=StepwiseEmitter))

    @once
    def traced(self) -> tuple[TracedFunction, ...]:
        """The device functions, compiled to code that records its ops and computes no values."""
        if all(isinstance(function, TracedFunction) for function in self.functions):
            return tuple(function for function in self.functions if isinstance(function, TracedFunction))
        if self._forms is not None and "traced" in (kept := self._forms()):
            made = kept["traced"]
        else:
            from tilelang_npu.simulator.run.compile_functions import compile_traced

            made = self._in_form(compile_traced)
        self._new_forms["traced"] = made
        return made

    @once
    def _computing(self) -> tuple[CompiledFunction, ...]:
        """The device functions, compiled to code that computes in program order."""
        if not any(isinstance(function, TracedFunction) for function in self.functions):
            return self.functions
        from tilelang_npu.simulator.run.compile_functions import compile_function

        return self._in_form(compile_function)

    @_fact
    def data_free(self) -> bool:
        """Whether branches, trip counts, addresses and other numbers of ops are independent of data.

        The trace of a launch then equals the record of a run with any data.
        """
        return not any(function.data.uses for function in self.traced)

    @_fact
    def reads_first(self) -> bool:
        """Whether the first access to some on-chip buffer, in the order of the program's text, is a read."""
        return any(reads_first(function.records) for function in self.functions)

    @_fact
    def writes_part_first(self) -> bool:
        """Whether the first access to some on-chip buffer writes a part of a size that only run time knows."""
        return any(writes_part_first(function.records) for function in self.functions)

    @once
    def batched(self) -> tuple[BatchedFunction, ...]:
        """The device functions, compiled to code that computes many blocks at once.

        Empty if this is not possible: blocks wait for each other, or a function needs a number from memory that differs
        between blocks, has a ``while`` loop, or prints.
        """
        made = self._new_forms["batched"] = () if self.global_sync else self._compile_batched()
        return made

    def _compile_batched(self) -> tuple[BatchedFunction, ...]:
        if self._forms is not None:
            return self._forms()["batched"]
        from tilelang_npu.simulator.run.compile_functions import compile_batched

        made = []
        for function, compiled in zip(self.device_functions, self.functions, strict=True):
            if (one := compile_batched(function, compiled.core, self.chip, compiled.parallel)) is None:
                return ()
            made.append(one)
        return tuple(made)

    def _plan(self, bound: BoundArguments, blocks: int, most_ops: int | None) -> BatchPlan | None:
        """Returns the batches of a launch, or None if its blocks run one by one.

        The last plan is stored, and returned again for the next launch if its sizes are equal.
        """
        sizes = tuple(0 if array is None else array.nbytes for array in bound.arrays)
        long = blocks * self.least_ops >= batched_execution.LEAST_OPS
        if blocks < batched_execution.LEAST_BLOCKS or (sum(sizes) < batched_execution.LEAST_BYTES and not long):
            return None
        aliases = tuple(tuple(sorted(memory.delta.items())) for memory in memory_ranges(bound.arrays) if len(memory.delta) > 1)
        key = (blocks, bound.scalars, bound.dims, sizes, aliases, most_ops)
        kept, plan = self._planned
        if kept != key:
            again = sum(sizes) >= batched_execution.AT_ONCE or self._seen == key
            self._seen = key
            if not again and not long:
                return None
            plan = self._new_plan(bound, blocks, most_ops, one_by_one=again)
            if plan is not None or again:
                self._planned = key, plan
        return plan

    def _new_plan(self, bound: BoundArguments, blocks: int, most_ops: int | None, *, one_by_one: bool) -> BatchPlan | None:
        """Divides the blocks of a launch into batches, each of which is computed at once; returns None if the blocks are
        computed one by one.

        Args:
            bound: the arguments of the launch.
            blocks: the number of blocks.
            most_ops: the limit of the ops of a core in a block; None for the default.
            one_by_one: whether to trace each block separately if the blocks cannot be traced at once. Separate tracing is slow.
        """
        if not self.batched or not self.data_free:
            return None
        placeholders = [PlaceholderData() for _ in self.traced]
        runs: Sequence[BlockRun] | None = trace_batched(self, bound, blocks, most_ops, placeholders)
        if runs is None and one_by_one and not any(function.has_own for function in self.batched):
            placeholders = [PlaceholderData() for _ in self.traced]
            runs = self._trace(bound, blocks, placeholders, None, most_ops).blocks
        if runs is None:
            return None
        return plan_batches(self, self.batched, runs, [placeholder.numbers for placeholder in placeholders], bound)

    @_fact
    def least_ops(self) -> int:
        """An estimate of the number of ops that a block issues, from constant trip counts."""
        from tilelang_npu.simulator.run.compile_functions import ops_at_least

        return sum(ops_at_least(function.body.block) for function in self.device_functions)

    @_fact
    def places(self) -> frozenset[int]:
        """The positions of the parameters that are written at data-dependent addresses, or under data-dependent conditions."""
        from tilelang_npu.simulator.run.compile_functions import data_dependent_arguments

        return frozenset[int]().union(*map(data_dependent_arguments, self.device_functions))

    def _in_form(self, form: Callable[[FuncOp, CoreKind, Chip, int], Made]) -> tuple[Made, ...]:
        return tuple(form(function, compiled.core, self.chip, compiled.parallel)
                     for function, compiled in zip(self.device_functions, self.functions, strict=True))

    @once
    def _observed(self) -> tuple[CompiledFunction, ...]:
        """The device functions, compiled to code that calls an observer before and after each op."""
        from tilelang_npu.simulator.codegen.observed_emitter import ObservedEmitter
        from tilelang_npu.simulator.run.compile_functions import compile_function

        return self._in_form(partial(compile_function, form=ObservedEmitter))

    @property
    def cores(self) -> int:
        """The number of blocks that the chip runs at the same time.

        It is the number of the chip's Vector cores for a kernel that uses only these, otherwise the number of its Cube cores.
        """
        return self.chip.aic if self.mixed or self.functions[0].core == "AIC" else self.chip.aiv

    def source(self) -> str:
        """Returns the generated Python source that computes all device functions in program order."""
        return "\n".join(f"# {function.name} on {function.core}\n{function.source}" for function in self._computing)

    def core_ids(self, block: int) -> list[CoreId]:
        """Returns the cores that run a block, in the order of ``lanes`` and ``BlockRun.streams``."""
        return [CoreId(block, self.functions[index].core, sub) for index, sub in self.lanes]

    def run(self, args: Sequence[object], *, blocks: int, order: Sequence[int] | int | None = None,
            schedule: str | None = None, left: Left | None = None, stores: Stores | None = None,
            observer: Observer | None = None, most_ops: int | None = None, jobs: int | None = None) -> RecordedLaunch:
        """Runs all blocks of a launch. The results are written to the arrays among ``args``.

        Args:
            args: the user's arguments in order: NumPy arrays and numbers.
            blocks: the number of blocks.
            order: the block indices in the order in which the blocks run, or the seed of a random order; None for ascending.
            schedule: the name of a schedule that runs the ops in another order than the program's, see
                ``reordered_execution.policy``; None for program order.
            left: for a schedule, the events and flags that earlier launches left set on the cores; updated to those that this
                launch leaves set. None if there are none.
            stores: for a schedule, a function that is called for each operand that an op reads or writes, except temporaries
                and atomic updates of GM. Its arguments are the core, the pipe, the name of the written memory (``read`` for an
                operand that is read), and the values.
            observer: called before and after every op with operands in memory; only in program order.
            most_ops: the limit of the ops of a core in a block; None for the limits of ``loop_limits.py``.
            jobs: the number of threads that compute batches of blocks; if None, it depends on the size of the ops.

        Returns:
            the record of the launch.

        Raises:
            TileError: T401 to T406, the arguments or the number of blocks are wrong; S301 to S306, cores hang or a loop does
                not end; T413, there is no such schedule, or a schedule is given together with an observer; T502, an access is
                outside of its buffer or memory; T505, T509, T511 and others, mistakes that are found only at run time.
            ValueError: ``order`` is not a permutation of the blocks.
        """
        self._check_blocks(blocks)
        if schedule is not None and observer is not None:
            raise TileError(f"numbers can only be observed in program order, not with schedule {schedule!r}", code="T413",
                            help="leave out the schedule, or do not observe numbers")
        if schedule is not None and (waits := self._waits_for_cards()):
            raise TileError(f"{self.name} {waits}, and runs only in program order, not with schedule {schedule!r}", code="T413",
                            help="leave out the schedule")
        bound = self._bind(args, blocks, self.used)
        if schedule is None and observer is None and order is None and (plan := self._plan(bound, blocks, most_ops)):
            with one_blas_thread(), np.errstate(all="ignore"), shown(f"running {self.name},", blocks, "blocks") as step:
                run_batches(self, self.batched, plan, bound, most_ops, jobs, step)
            return RecordedLaunch(self, bound, plan.runs, self.workspace, blocks, alike=plan.alike)
        sequence = _sequence(blocks, order)
        with one_blas_thread(), np.errstate(all="ignore"):
            if schedule is not None:
                runs = self._reordered(bound, sequence, policy(schedule), {} if left is None else left, stores, most_ops)
            else:
                functions = self._computing if observer is None else self._observed
                run = self._all_at_once if self.global_sync else self._one_by_one
                runs = run(bound, sequence, LaunchResources(functions, most_ops, observer=observer))
        runs.sort(key=lambda run: run.block)
        return RecordedLaunch(self, bound, tuple(runs), self.workspace, blocks)

    def trace(self, args: Sequence[object], *, blocks: int, value: int | tuple[int, int] | None = None,
              most: int | None = None, most_ops: int | None = None,
              ways: Sequence[BranchOutcomes] | None = None) -> RecordedLaunch:
        """Records the ops of a launch without running them: no values are computed, and no array is written.

        Args:
            args: as for ``run``. Only the sizes of arrays matter, and the numbers that the scalar unit reads from them.
            blocks: the number of blocks.
            value: the number that replaces every number that the scalar unit reads from memory, or a pair of numbers that
                alternate by address. With None, numbers are read from the arrays, and are 0 on chip.
            most: the approximate number of ops to record. A larger launch is traced in part: its first blocks, its last ones,
                and evenly spaced ones between them. With None all blocks are traced.
            most_ops: as for ``run``.
            ways: one dictionary for each device function, to which the trace adds the values of data-dependent conditions.

        Returns:
            the record of the launch, from which times, hazards and traffic follow; valid for all data if the kernel is
            ``data_free``.

        Raises:
            TileError: T401 to T406, the arguments or the number of blocks are wrong; S304, there are more blocks than can wait
                for each other; T502, an access is outside of its buffer or memory; S305 or S306, a loop does not end, possibly
                only because the data that would end it are not computed.
        """
        self._check_blocks(blocks)
        bound = self._bind(args, blocks, frozenset() if self.data_free else self.used)
        if (most is None and most_ops is None and ways is None and self.data_free and not self.global_sync
                and blocks <= self.cores and (repeated := trace_repeated(self, bound, blocks)) is not None):
            return RecordedLaunch(self, bound, tuple(repeated), self.workspace, blocks, traced=True)
        placeholders = [PlaceholderData(value, None if ways is None else ways[index]) for index in range(len(self.traced))]
        if most is None and self.data_free and (runs := trace_batched(self, bound, blocks, most_ops, placeholders)) is not None:
            return RecordedLaunch(self, bound, tuple(runs), self.workspace, blocks, traced=True)
        return self._trace(bound, blocks, placeholders, most, most_ops)

    def _bind(self, args: Sequence[object], blocks: int, used: frozenset[int]) -> BoundArguments:
        """Returns the arguments of a launch as the byte arrays and numbers that generated code takes.

        Args:
            args: the user's arguments.
            blocks: the number of blocks.
            used: the positions of the parameters that an op accesses.
        """
        return bind(self.functions[0].name, self.declared, args, blocks, self.workspace, used, grid=self.has_grid)

    def _trace(self, bound: BoundArguments, blocks: int, placeholders: Sequence[PlaceholderData], most: int | None,
               most_ops: int | None) -> RecordedLaunch:
        """Records the ops of a launch as :meth:`trace` does, for arguments that are already bound."""
        resources = LaunchResources(self.traced, most_ops, NoProducts, 0, placeholders)
        run = partial(self._all_at_once if self.global_sync else self._one_by_one, bound, resources=resources, count=blocks)
        with np.errstate(all="ignore"):
            if most is None or blocks == 1:
                return RecordedLaunch(self, bound, tuple(run(range(blocks))), self.workspace, blocks, traced=True)
            if not self.global_sync:
                first = run([0])
                runs = [*first, *run(_blocks_after_first(first, blocks, most))]
            else:
                try:
                    chosen = [0, *_blocks_after_first(run([0]), blocks, most)]
                except TileError:  # the block cannot run without the others
                    chosen = list(range(blocks))
                runs = run(chosen)
        return RecordedLaunch(self, bound, tuple(runs), self.workspace, blocks, traced=True)

    def _check_blocks(self, blocks: int) -> None:
        if not 0 < blocks <= self.most_blocks:
            raise TileError(f"a launch of {blocks} blocks is not possible", code="T406",
                            help=f"launch 1 to {self.most_blocks} blocks")
        if not 0 <= self.workspace * blocks <= self.chip.hbm:
            raise TileError(f"{self.workspace_from} asks for {self.workspace} bytes for each of {blocks} blocks; "
                            f"{self.chip.name} has {self.chip.hbm} bytes of memory", code="T502",
                            help="return the bytes of workspace that one block needs")
        if self.global_sync and blocks > self.cores:
            raise TileError(f"the {blocks} blocks of {self.name} wait for each other and must run at the same time, but "
                            f"{self.chip.name} runs at most {self.cores}", code="S304",
                            help="launch at most as many blocks as cores, and let each block loop over several parts of the "
                                 "work")

    def _waits_for_cards(self) -> str:
        """Returns what of other cards the kernel waits for, as the end of a sentence; empty if it waits for none."""
        records = [record for function in self.functions for record in function.records]
        if any(isinstance(record.work, PeerWait) for record in records):
            return "waits for signals of other cards"
        return "reads in a loop what other cards write" if current_heap() is not None and any(
            record.polls for record in records) else ""

    def _one_by_one(self, bound: BoundArguments, sequence: Sequence[int], resources: LaunchResources,
                    count: int | None = None) -> list[BlockRun]:
        """Runs the blocks ``sequence`` one after the other.

        The launch has ``count`` blocks; with None, it consists of the blocks that are run.
        """
        blocks = len(sequence) if count is None else count
        lanes = cores_of_block(self, bound, blocks, resources)
        runs = []
        interned: dict[Stream, Stream] = {}
        with shown(f"running {self.name},", len(sequence), "blocks") as step:
            for block in sequence:
                if len(lanes) == 1 and not lanes[0].function.switches:
                    lanes[0].run_block(block)
                else:
                    run_cores(lanes, [block], self)
                runs.append(block_run_of(block, lanes, interned))
                step.done += 1
        return runs

    def _all_at_once(self, bound: BoundArguments, sequence: Sequence[int], resources: LaunchResources,
                     count: int | None = None) -> list[BlockRun]:
        """Runs the blocks ``sequence`` concurrently.

        The launch has ``count`` blocks; with None, it consists of the blocks that are run.
        """
        blocks = len(sequence) if count is None else count
        table = {block: cores_of_block(self, bound, blocks, resources) for block in sequence}
        run_cores([lane for lanes in table.values() for lane in lanes],
                  [block for block, lanes in table.items() for _ in lanes], self)
        interned: dict[Stream, Stream] = {}
        return [block_run_of(block, lanes, interned) for block, lanes in table.items()]

    def again(self, bound: BoundArguments, blocks: Sequence[int], count: int, *, poison: int = POISON,
              spans: Mapping[int, tuple[int, int]] | None = None, observer: Observer | None = None,
              most_ops: int | None = None, spot: Spot | None = None) -> ReplayResult:
        """Runs blocks of a launch once more in program order, on copies of the arrays that they write.

        Memory of other cards is not written.

        Args:
            bound: the launch's arguments.
            blocks: the blocks, which run concurrently: a single block, or all blocks of a launch whose blocks wait for each
                other.
            count: the number of blocks of the launch.
            poison: the byte that fills on-chip memory before the blocks.
            spans: by argument, the offset of the first byte that the blocks access and the offset after the last one. Only
                these bytes are copied, and the copy is 0 elsewhere. With None whole arrays are copied.
            observer: called before and after every op with operands in memory.
            most_ops: the limit of the ops of a core in a block; None for the limits of a launch.
            spot: a range of on-chip bytes that is filled with ``POISON``.

        Returns:
            the arrays after the run, of which the written ones are copies, and the record of each core.
        """
        arrays = tuple(array if array is None or number not in self.written else copy_span(array, spans, number)
                       for number, array in enumerate(bound.arrays))
        functions = self._computing if observer is None else self._observed
        resources = LaunchResources(functions, most_ops, poison=poison, spot=spot, observer=observer)
        given = replace(bound, arrays=arrays)
        lanes = [core for _ in blocks for core in cores_of_block(self, given, count, resources)]
        before = POISON_NOW.set(poison)
        try:
            with one_blas_thread(), np.errstate(all="ignore"), rehearsal(arrays, bound.arrays):
                run_cores(lanes, [block for block in blocks for _ in self.lanes], self)
        finally:
            POISON_NOW.reset(before)
        return ReplayResult(arrays, [(lane.events, lane.gm) for lane in lanes])

    @once
    def _parts(self) -> list[StepParts]:
        costs = CostModel(self.chip)
        return [StepParts(function.records, costs) for function in self.stepwise]

    def _reordered(self, bound: BoundArguments, sequence: Sequence[int], policy: Policy, left: Left,
                   stores: Stores | None, most_ops: int | None) -> list[BlockRun]:
        """Runs blocks with a schedule, as many at a time as the chip has cores.

        Events and flags that a block leaves set on a core are still set for the next block of this core.
        """
        runs = []
        resources = LaunchResources(self.stepwise, most_ops)
        interned: dict[Stream, Stream] = {}
        for start in range(0, len(sequence), self.cores):
            table: dict[int, list[BoundCore]] = {}
            cores: dict[CoreId, SteppedCore] = {}
            for place, block in enumerate(sequence[start:start + self.cores]):
                table[block] = cores_of_block(self, bound, len(sequence), resources)
                for identity, lane, (index, sub) in zip(self.core_ids(block), table[block], self.lanes, strict=True):
                    found = left.setdefault((place, index, sub), SyncState())
                    cores[identity] = lane.stepped(identity, self._parts[index], found, stores)
            run_reordered(list(cores.values()), policy)
            for block, lanes in table.items():
                for identity, lane in zip(self.core_ids(block), lanes, strict=True):
                    lane.events, lane.gm = list(cores[identity].events), cores[identity].gm
                runs.append(block_run_of(block, lanes, interned))
        return runs


def _program(kept: dict[str, str], chip: Chip, name: str) -> Program:
    """Unpickles a program."""
    from tilelang_npu.dialects.text import deserialise_module

    return Program(deserialise_module(kept), chip, entry=name)


def _blocks_after_first(first: Sequence[BlockRun], blocks: int, most: int) -> list[int]:
    """Returns the blocks to trace after the first ones, so that all traced blocks together have about ``most`` ops.

    The result has the first blocks, the last blocks, and evenly spaced blocks between them.
    """
    most //= max(1, sum(map(len, first[0].streams)))
    if blocks <= most + 1:
        return list(range(1, blocks))
    ends = {1, 2, blocks - 2, blocks - 1}
    spread = {round(place) for place in np.linspace(1, blocks - 1, max(most, 2))}
    return sorted(block for block in ends | spread if 0 < block < blocks)


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
