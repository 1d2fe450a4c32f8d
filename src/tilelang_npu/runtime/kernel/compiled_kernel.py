"""The base class of compiled kernels: traces and lowers a kernel, binds the arguments of calls, and runs and checks the calls.

The public class :class:`tilelang_npu.runtime.jit.jit_kernel.JITKernel` adds the reports.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from typing_extensions import Self

from tilelang_npu import frontend
from tilelang_npu.errors import TileError, doors
from tilelang_npu.language.functions import AbsentFunc
from tilelang_npu.ops import DType
from tilelang_npu.runtime.arguments.aliasing import aliased_parameters
from tilelang_npu.runtime.arguments.binding import BoundCall, Signature, positions_of, size_of
from tilelang_npu.runtime.checks import unwritten_results
from tilelang_npu.runtime.checks.unwritten_results import ParameterEffect, UnwrittenResult
from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.runtime.kernel.lowering import Lowering
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.argument_location import location_of_word
from tilelang_npu.runtime.settings.log import TileWarning, is_silenced, verbose_log, warn_at
from tilelang_npu.runtime.settings.switches import complete_switches, disabled_optimisations, resolve, warn_of_unknown_keys
from tilelang_npu.runtime.settings.targets import dialect_of, select_chip
from tilelang_npu.sharing import Kept, once, state_of
from tilelang_npu.simulator.machine.core_coroutines import MAX_BLOCKS
from tilelang_npu.traced.author import user_location
from tilelang_npu.transforms.infra.launch_names import launch_function_names
from tilelang_npu.transforms.infra.options import UPSTREAM

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter, Traced
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.settings.jit_settings import MadeBy, Settings
    from tilelang_npu.simulator import AnyLaunch, Program
    from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch, UpstreamLaunch


ReportT = TypeVar("ReportT")


class _ProcessState:
    """The state of a kernel that belongs to this process, and that a pickle leaves out.

    Attributes:
        threads: the last launch of each thread.
        overwritten: by the sizes of a call (:attr:`BoundCall.sizes`) that was checked for unwritten results: the positions of
            large results that such a call writes wholly and never reads.
        warned_of_stale: whether a result of uninitialised memory was reported.
        searched_for_stale: the sizes of the calls that were searched for such results.
        lock: guards the other attributes.
        reports: results that reports share, by their keys.
        report_lock: held while such a result is computed.
    """

    def __init__(self) -> None:
        self.threads = threading.local()
        self.overwritten: dict[object, frozenset[int]] = {}
        self.warned_of_stale = False
        self.searched_for_stale: set[object] = set()
        self.lock = threading.RLock()
        self.reports: dict[object, Any] = {}
        self.report_lock = threading.RLock()


class CompiledKernel:
    """One callable kernel for fixed sizes, types and switches, compiled for one chip; see :class:`JITKernel`.

    Args:
        func: the function under ``@T.prim_func``.
        settings: the arguments of ``jit``, such as the target, the compiler switches and the outputs.
        lengths: for parameters by name, the length of the first axis that replaces the declared length.
        aliases: maps the position of each parameter that gets the same array as an earlier parameter to the position of the
            earlier parameter.
        traced: the trace of ``func`` if it exists already; None to trace ``func``.
        trial: whether the kernel is compiled only to time it, see :class:`Lowering`.

    Raises:
        TileError: the kernel or its settings are wrong.
    """

    is_interpreted = False
    strips: tuple[str, ...] = ()

    def __init__(self, func: PrimFunc, settings: Settings, lengths: Mapping[str, int] | None = None,
                 aliases: Mapping[int, int] | None = None, traced: Traced | None = None, *, trial: bool = False) -> None:
        environment.check()
        self.chip = select_chip(settings.chip, settings.platform, settings.at)
        if traced is None:
            traced = frontend.trace(func, dialect=dialect_of(settings.target, settings.at), lengths=lengths,
                                    vector_cores=self.chip.aiv_per_aic, chip=self.chip)
            for remark in traced.remarks:
                warn_at(remark)
        self.name = traced.name
        self.dialect = traced.dialect
        self.remarks = (*traced.remarks, *warn_of_unknown_keys(settings.pass_configs, settings.at))
        self.switches: Mapping[str, bool] = resolve(settings.pass_configs, self.dialect, settings.at)
        self.without = disabled_optimisations(settings.pass_configs, settings.at)
        self.idle: TileError | None = None
        if self.dialect == "ascendc":
            self.switches, self.idle = complete_switches(self.switches, traced.module, settings.at)
        if self.idle is not None:
            warn_at(self.idle)
        # The parameters that the compiler added (traced.own of them, T.alloc_global) come last and are workspaces.
        count = len(traced.parameters) - traced.own
        outputs = positions_of(settings.out_idx, count, "out_idx", settings.at)
        workspaces = (*positions_of(settings.workspace_idx, count, "workspace_idx", settings.at),
                      *range(count, count + traced.own))
        if aliases:
            traced = traced.as_one(aliases)
        traced.mark_scratch(outputs, workspaces)
        with verbose_log(settings.verbose):
            self._lowering = Lowering(traced, self.chip, self.switches, self.without, trial=trial)
        from tilelang_npu.runtime.checks.scalar_loops import scalar_loop_warnings
        from tilelang_npu.runtime.checks.strip_notes import strip_notes

        slow = scalar_loop_warnings(self._lowering.final, self.chip)
        for remark in slow:
            warn_at(remark)
        self.remarks = (*self.remarks, *slow)
        self.strips = strip_notes(self._lowering.final)
        self.signature = Signature(self.name, traced.parameters, traced.symbols, outputs, workspaces,
                                   frozenset(position for position, effect in self._effects.items() if effect.writes),
                                   flat=self.dialect == "ascendc",
                                   unused=frozenset(range(count)) - frozenset(self._effects))
        self._begin(func, settings, lengths)
        self._check_allocated(settings)
        if settings.debug_root_path is not None:
            with verbose_log(settings.verbose):
                self._lowering.write_texts(Path(settings.debug_root_path))

    def _begin(self, func: PrimFunc, settings: Settings, lengths: Mapping[str, int] | None = None) -> None:
        """Sets the attributes that follow from the function and the settings, for new kernels and for kernels from the cache.
        """
        self.prim_func, self._settings, self._lengths, self.sanitize = func, settings, lengths, settings.sanitize
        self._by_lengths: Kept[tuple[tuple[str, int], ...], Self] = Kept()
        self._by_aliases: Kept[tuple[tuple[int, int], ...], Self] = Kept()
        self.out_idx, self.workspace_idx = list(self.signature.outputs), list(self.signature.workspaces)
        self.latency: float | None = None
        self.config: dict[str, object] | None = None
        self.ref_latency: float | None = None
        self.made_by: MadeBy | None = None
        self._store: Callable[[CompiledKernel], None] | None = None
        self._process = _ProcessState()

    def __getstate__(self) -> dict[str, object]:
        state = {name: value for name, value in state_of(self).items() if name != "_process"}
        return state | {"made_by": None, "_store": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        environment.check()
        vars(self).update(state, _process=_ProcessState())

    def _check_allocated(self, settings: Settings) -> None:
        """Checks that ``out_idx`` and ``workspace_idx`` name arrays, each once, and that the kernel writes its outputs.

        Raises:
            TileError: T709, one of these conditions does not hold.
        """
        for name, positions in (("out_idx", self.out_idx), ("workspace_idx", self.workspace_idx)):
            for position in positions:
                parameter = self.params[position]
                twice = name == "workspace_idx" and position in self.out_idx
                effect = self._effects.get(position)
                if name == "out_idx" and effect is not None and effect.reads and not effect.writes:
                    msg = f"out_idx names parameter {position}, {parameter.name}, which the kernel reads and never writes"
                    raise TileError(msg, code="T709", location=location_of_word(name, settings.at),
                                    help="name the parameters that the kernel writes: an output has no values before a call")
                if parameter.shape is None or twice:
                    problem = "is also in out_idx" if twice else "is a number and cannot be allocated"
                    msg = f"{name} names parameter {position}, {parameter.name}, which {problem}"
                    raise TileError(msg, code="T709", location=location_of_word(name, settings.at),
                                    help=f"remove it from {name}")

    # -- what was compiled -------------------------------------------------------------------------------------------

    @once
    def _effects(self) -> Mapping[int, ParameterEffect]:
        return unwritten_results.parameter_effects(self._lowering.traced.module)

    @once
    def _effects_of_launches(self) -> list[Mapping[int, ParameterEffect]]:
        return [unwritten_results.parameter_effects(launch) for launch in self._lowering.traced.launches]

    @once
    def programs(self) -> tuple[Program, ...]:
        """The simulator programs that a call runs in this order: one for each ``T.Kernel`` of the kernel."""
        from tilelang_npu.simulator import Program

        return tuple(Program(self._lowering.final, self.chip, entry=name, computes=not self._lowering.trial)
                     for name in self._lowering.names)

    @once
    def program(self) -> Program:
        """The simulator program of a kernel that has only one ``T.Kernel``.

        Raises:
            TileError: T508, the kernel has several ``T.Kernel``; see :attr:`programs`.
        """
        from tilelang_npu.simulator import Program

        return self.programs[0] if len(self.programs) == 1 else Program(self._lowering.final, self.chip)

    @property
    def params(self) -> tuple[Parameter, ...]:
        """The kernel's parameters, each with its name, element type, shape, and location in the source."""
        return self.signature.parameters

    def stages(self) -> list[str]:
        """Returns the names of the kernel's compilation stages in order, which :meth:`mlir` takes.

        The first is ``tile`` (the traced kernel). Then come the stages that are named after passes, and finally ``hivm-auto``
        (the input of the vendor's compiler) and ``hivm`` (the text that the simulator runs).
        """
        return self._lowering.stages()

    def pipeline(self, stage: str | None = None) -> str:
        """Returns the passes that compile the kernel, with all their options, as text that ``tilelang-npu opt -p`` takes.

        Args:
            stage: the name of a stage, to get only the pass whose result is this stage; None for all passes, one per line.

        Raises:
            TileError: T710 there is no such stage, or the stage is ``tile``, which is not the result of a pass.
        """
        return self._lowering.pipeline(stage)

    # -- calls -------------------------------------------------------------------------------------------------------

    def __call__(self, *args: object, **named: object) -> Any:
        """Runs the kernel.

        Args:
            args: arrays (NumPy, or torch on the CPU) and numbers for all parameters that are in neither ``out_idx`` nor
                ``workspace_idx``, in order. Arrays are used in place.
            named: arguments by the names of their parameters. ``stream`` is ignored, unless a parameter has this name.

        Returns:
            The arrays of ``out_idx``: one array by itself, several arrays as a list. They are torch tensors if an argument is a
            torch tensor, else NumPy arrays. Without ``out_idx``: None, or an empty list in the ascendc dialect, as in
            TileLang-Ascend.

        Raises:
            TileError: T401 to T407 an argument does not fit (in the npuir dialect an array can be longer than declared), T420
                two arrays overlap in memory, T410 a part of a result is never written; and the errors of the simulated
                machine, such as a deadlock (S301) or an access beyond the end of an array.
            SanitizerError: ``sanitize`` is on, and the run has hazards. The results are in the arrays nevertheless.
        """
        args = self.positional(args, named)
        if self.dialect == "npuir" and (lengths := self.signature.longer_lengths(args)):
            return self._call_variant(self._with_lengths(lengths), args)
        self.last_launch = None  # the last launch holds as many arrays as this call allocates
        call = self.signature.bind(args, self._overwritten)
        if aliases := self._aliases(call):
            return self._call_variant(self._with_aliases(aliases), args)
        if not any(self.blocks(call)):  # the arrays have no elements
            return self.signature.results(call, args)
        listeners.tell_called(self, call)
        checker = listeners.active_checker()
        if checker is None and environment.AGAINST.is_on():
            from tilelang_npu.runtime.checks.interpreter_check import check_against_interpreter
            from tilelang_npu.runtime.checks.rounding_spread import copied

            before = copied(call.values)
            self._run(call)
            check_against_interpreter(self, before, call)
        elif checker is None:
            self._run(call)
        else:
            self.last_launch = checker.look_at(self, call)
        return self.signature.results(call, args)

    def __getitem__(self, grid: object) -> NoReturn:
        """Raises a TileError (T401): a kernel takes no grid in brackets, as Triton's kernels do."""
        names = ", ".join(parameter.name for parameter in self.params)
        raise TileError(f"{self.name} is launched without a grid in brackets", code="T401", location=user_location(),
                        help=f"call it with ({names}): T.Kernel(...) in it says how many blocks there are")

    def positional(self, args: tuple[object, ...], named: dict[str, object]) -> tuple[object, ...]:
        """Returns all arguments of a call in the order of the parameters, with each named argument at its parameter's position.

        Raises:
            TileError: T401 to T407, a named argument does not fit.
        """
        return self.signature.positional(args, named)

    @property
    def last_launch(self) -> AnyLaunch | Any:  # None before the first call, which scripts do not ask about
        """The times, hazards and trace of the last run of this kernel in the calling thread.

        None before the thread's first run, and after a run that failed. If many kernels have run, it has possibly given up its
        arrays (:meth:`Launch.release`). For a kernel with several ``T.Kernel`` it is a
        ``Launches`` object, whose ``parts`` are the launches in order.
        """
        return getattr(self._process.threads, "last", None)

    @last_launch.setter
    def last_launch(self, launch: AnyLaunch | None) -> None:
        self._process.threads.last = launch
        if launch is not None:
            from tilelang_npu.runtime.kernel.kept_launches import KEPT

            for part in launch.parts:
                KEPT.add(part)

    def _run(self, call: BoundCall) -> None:
        """Runs a bound call, and checks its results."""
        from tilelang_npu.simulator import Launch, Numbers
        from tilelang_npu.simulator.result.call_launches import joined

        schedule = environment.SCHEDULE.text() or None
        arguments, blocks = self.machine_arguments(call), self.blocks(call)
        parts: list[Launch] = []
        for program, count, upstream in zip(self.programs, blocks, self._as_upstream, strict=True):
            if not count:
                continue
            for part in parts:
                part.keep(program.changed)
            watch = Numbers() if environment.NUMBERS.is_on() else None
            recorded = program.run(arguments, blocks=count, schedule=schedule, observer=watch,
                                   most_ops=environment.most_ops(), jobs=environment.jobs())
            numbers = watch.findings if watch is not None else ()
            recorded = replace(recorded, as_upstream=upstream)
            parts.append(Launch(recorded, numbers=numbers, made=call.made, before=parts, l2_state=environment.l2_state()))
        launch = self.last_launch = joined(self.name, parts, self.signature.workspaces)
        listeners.tell_launched(self, launch)
        self._check_written(launch, call)
        if (environment.SANITIZE.is_on() if self.sanitize is None else self.sanitize) and not listeners.are_sanitized():
            from tilelang_npu.runtime.checks.sanitizer import process_sanitizer, raise_findings

            raise_findings(process_sanitizer().judge_all(launch, self.prim_func))
        self._warn_of_stale_results(launch, call)
        if self._store is not None:
            self._store(self)

    def _once_in_process(self, name: str, compute: Callable[[], ReportT]) -> ReportT:
        """Returns a result that several reports of the kernel need, computed once in this process for each state of L2.

        Args:
            name: the name of the result.
            compute: computes the result.
        """
        process, key = self._process, (name, environment.l2_state())
        with process.report_lock:
            if key not in process.reports:
                process.reports[key] = compute()
            found: ReportT = process.reports[key]
            return found

    def _run_without_listeners(self, args: Sequence[object]) -> AnyLaunch:
        """Runs a call and returns its launch. No listener is notified of the run, and no result is checked or kept.

        Args:
            args: the arguments, as for a call.
        """
        kernel, call = self._bound(args)
        arguments = kernel.machine_arguments(call)
        return kernel._launched(call, lambda program, blocks: program.run(arguments, blocks=blocks))

    def _bound(self, args: Sequence[object]) -> tuple[Self, BoundCall]:
        """Binds the arguments of a call. Returns the kernel that runs the call (see :meth:`for_arguments`), and the call."""
        if args and self.dialect == "npuir" and (lengths := self.signature.longer_lengths(args)):
            return self._with_lengths(lengths)._bound(args)
        call = self.signature.bind(args)
        if aliases := self._aliases(call):
            return self._with_aliases(aliases)._bound(args)
        return self, call

    def _launched(self, call: BoundCall, record: Callable[[Program, int], RecordedLaunch]) -> AnyLaunch:
        """Returns the launches of a call with their modelled times.

        Args:
            call: the call.
            record: records the launch of a program with a number of blocks.

        Raises:
            TileError: T406, the call launches no block.
        """
        from tilelang_npu.simulator import Launch
        from tilelang_npu.simulator.result.call_launches import joined

        counts = self.blocks(call)
        if not any(counts):
            raise TileError(f"{self.name} launches no block: its arrays have no elements", code="T406",
                            location=user_location(), help="pass arrays with elements")
        parts: list[Launch] = []
        for program, blocks, upstream in zip(self.programs, counts, self._as_upstream, strict=True):
            if blocks:
                recorded = replace(record(program, blocks), as_upstream=upstream)
                parts.append(Launch(recorded, made=call.made, before=parts, l2_state=environment.l2_state()))
        return joined(self.name, parts, self.signature.workspaces)

    @property
    def _depends_on_call(self) -> bool:
        """Whether the time of a call depends on its arguments: on sizes, numbers or the elements of arrays."""
        return (bool(self.signature.symbols) or any(parameter.shape is None for parameter in self.params)
                or not all(program.data_free for program in self.programs))

    def trace(self, *args: object, **named: object) -> AnyLaunch | None:
        """Simulates a call without computing values, which is much faster than a run. No array is written.

        Args:
            args, named: the arguments, as for a call. Without arguments, arrays of the declared shapes are assumed, which must
                then be constants.

        Returns:
            The launch, whose times, traffic and hazards equal those of a run. None if the kernel's control flow or addresses
            depend on array elements, or if no arguments are given and the kernel has a symbolic dimension or a number
            parameter.

        Raises:
            TileError: the errors of a call that do not depend on the elements of arrays.
        """
        args = self.positional(args, named)
        if args:
            kernel, call = self._bound(args)
        elif self._depends_on_call:
            return None
        else:
            shapes = ([size_of(size, {}) for size in parameter.shape or ()] for parameter in self.params)
            kernel, call = self, BoundCall([np.empty(parameter.array_shape(shape), parameter.array_dtype)
                                            for parameter, shape in zip(self.params, shapes, strict=True)], {})
        if not all(program.data_free for program in kernel.programs):
            return None
        arguments, most = kernel.machine_arguments(call), environment.most_ops()
        return kernel._launched(call, lambda program, blocks: program.trace(arguments, blocks=blocks, most_ops=most))

    @property
    def _as_upstream(self) -> list[UpstreamLaunch | None]:
        """For each ``T.Kernel``, how TileLang-Ascend launches it; None for each unless ``TILELANG_NPU_AS=upstream`` is set."""
        if not self.switches.get(UPSTREAM):
            return [None] * len(self.programs)
        from tilelang_npu.simulator.run.recorded_launch import UpstreamLaunch

        return [UpstreamLaunch(self.dialect, per_point) for per_point in self._blocks_per_point]

    def machine_arguments(self, call: BoundCall) -> list[object]:
        """Returns the arguments of the compiled function: the values of a call, then the values of the symbolic dimensions."""
        return [*call.values, *(call.symbols[name] for name in self.signature.symbols)]

    def _least_ops(self) -> float:
        """Returns an estimate of the number of ops that a call issues, from constant trip counts and numbers of blocks.

        It is infinite if the number of blocks depends on the call.
        """
        total = 0.0
        for program in self.programs:
            total += program.least_ops * (math.inf if program.block_dim is None else program.block_dim)
        return total

    def blocks(self, call: BoundCall) -> tuple[int, ...]:
        """Returns for each ``T.Kernel`` the number of blocks that a call launches.

        The number is 0 where a size of the grid is 0 and an array of the call has no elements.

        Raises:
            TileError: T406 a grid is empty for the sizes and numbers among the arguments although all arrays have elements, or
                has too many blocks.
        """
        is_empty = any(isinstance(value, np.ndarray) and not value.size for value in call.values)
        numbers = {parameter.name: int(value) for parameter, value in zip(self.params, call.values, strict=True)
                   if parameter.shape is None and not parameter.dtype.is_float}
        found = []
        names = launch_function_names(self.name, len(self._lowering.grids))
        for number, (name, sizes, per_point, program) in enumerate(
                zip(names, self._lowering.grids, self._blocks_per_point, self.programs, strict=True)):
            grid = [size_of(size, {**numbers, **call.symbols}) for size in sizes]
            text = f"the grid of {name} is {' x '.join(map(str, grid))}"
            if is_empty and min(grid) == 0:
                found.append(0)
                continue
            if min(grid) <= 0:
                raise TileError(f"{text}: there is no block to run", code="T406", location=user_location(),
                                help="skip the call where there is nothing to compute")
            # A block may loop over the work of several (make-persistent).
            points = math.prod(grid) if program.block_dim is None else program.block_dim // per_point
            if points > MAX_BLOCKS:  # the limit is on points: the Vector cores of a point are one block of the launch
                called = user_location()
                raise TileError(f"{text}: {points} blocks, and a launch has at most {MAX_BLOCKS}", code="T406",
                                location=self._lowering.location_of_launch(number),
                                notes=(f"in the call at {called}",) if called else (),
                                help="take larger tiles, or let each block loop over several of them (T.Persistent)")
            found.append(points * per_point)
        return tuple(found)

    @once
    def _blocks_per_point(self) -> tuple[int, ...]:
        """For each ``T.Kernel``, the number of blocks that together compute one point of the grid.

        If only Vector cores work and they divide the work of a point, this is the number of these Vector cores; else it is 1.
        """
        found = []
        for launch, program in zip(self._lowering.traced.launches, self.programs, strict=True):
            vector_only = all(function.core == "AIV" for function in program.functions)
            divided = launch.explicit_sub_block is not None or launch.spread is not None
            found.append(launch.sub_blocks.value.data if vector_only and divided else 1)
        return tuple(found)

    @property
    def numbers_of_calls(self) -> tuple[str, ...]:
        """The names of the symbolic dimensions and of the number parameters, whose values only a call gives."""
        return (*self.signature.symbols, *(parameter.name for parameter in self.params if parameter.shape is None))

    def input_shapes(self, symbols: Mapping[str, int]) -> Iterator[tuple[Parameter, tuple[int, ...] | None]]:
        """Yields the parameters for which a caller passes arguments, each with its shape (None for a number).

        Args:
            symbols: the values of the symbolic dimensions, by name.

        Raises:
            TileError: T403 a symbolic dimension has no value.
        """
        for position in self.signature.inputs:
            parameter = self.params[position]
            try:
                shape = None if parameter.shape is None else tuple(size_of(size, symbols) for size in parameter.shape)
            except KeyError as error:
                raise TileError(f"{parameter.name}: {error.args[0]}", code="T403", location=parameter.location,
                                help="pass the inputs, or the values of the symbolic dimensions") from None
            yield parameter, shape

    # -- variants: kernels that run in place of this one for some calls ---------------------------------------------------

    def for_arguments(self, *args: object) -> Self:
        """Returns the kernel that a call with these arguments runs.

        This is a variant, another kernel object, if arrays are longer than declared (npuir dialect only), or if one array is
        passed for several parameters. Otherwise it is this kernel.

        Raises:
            TileError: T401 to T407 an argument does not fit, T420 two arrays overlap in memory.
        """
        return self._bound(args)[0]

    def _call_variant(self, variant: CompiledKernel, args: tuple[object, ...]) -> object:
        try:
            return variant(*args)
        finally:
            self.last_launch = variant.last_launch

    def _with_lengths(self, lengths: Mapping[str, int]) -> Self:
        """Returns the kernel for arrays with more rows than declared, which the npuir dialect allows.

        Args:
            lengths: by the name of the parameter, the number of rows of the array.

        Raises:
            TileError: T403, the kernel cannot be compiled for these numbers of rows; T734, the kernel comes from a pickle and
                has no source to compile.
        """
        kernel = self._by_lengths.get(tuple(lengths.items()), lambda: self._compile_with_lengths(lengths))
        kernel.sanitize = self.sanitize
        return kernel

    def _compile_with_lengths(self, lengths: Mapping[str, int]) -> Self:
        try:
            made = type(self)(self.prim_func, self._settings, lengths)
        except TileError as error:
            if isinstance(self.prim_func, AbsentFunc):
                raise
            parameter = next(parameter for parameter in self.params if parameter.name in lengths)
            called = user_location()
            raise TileError(
                f"{parameter.name} has shape {list(parameter.shape or ())}; the array has {lengths[parameter.name]} rows, and "
                "the kernel cannot be compiled for so many rows", code="T403", location=parameter.location,
                notes=(*([f"in the call at {called}"] if called else ()), f"at {error.location}: {error.message}"),
                help="pass an array of the declared shape, or make the kernel for the shape of the array") from None
        for parameter in self.params:
            rows = lengths.get(parameter.name)
            if rows is not None:
                warn_at(TileError(
                    f"{parameter.name} is declared with shape {list(parameter.shape or ())}, but the array has {rows} rows; "
                    f"the kernel was compiled again, for {rows} rows", code="T411", location=parameter.location,
                    help="declare the parameter with the shape of the array"))
        return made

    def _aliases(self, call: BoundCall) -> dict[int, int]:
        """Returns the parameters that get the same array as an earlier parameter, see :func:`aliased_parameters`.

        The result is empty if the author orders all accesses by hand, because the compiled kernel then does not depend on
        whether two parameters are different arrays.
        """
        if not self._lowering.options.orders:
            return {}
        return aliased_parameters(self.params, call.values, self._effects, self.signature.written)

    def _with_aliases(self, aliases: Mapping[int, int]) -> Self:
        """Returns the kernel in which the parameters that get one array are one tensor."""
        kernel = self._by_aliases.get(tuple(aliases.items()), lambda: self._compile_with_aliases(aliases))
        kernel.sanitize = self.sanitize
        return kernel

    def _compile_with_aliases(self, aliases: Mapping[int, int]) -> Self:
        try:
            return type(self)(self.prim_func, self._settings, self._lengths, aliases, self._lowering.traced)
        except TileError as error:
            pairs = ", ".join(f"{self.params[later].name} is {self.params[first].name}" for later, first in aliases.items())
            error.notes = (*error.notes, f"in a call with one array for several parameters: {pairs}")
            raise

    # -- checks of results -------------------------------------------------------------------------------------------

    def unwritten_results(self, launch: AnyLaunch, call: BoundCall) -> Iterator[UnwrittenResult]:
        """Yields the results of which some elements are never written.

        Args:
            launch: the launch of a run or of a trace.
            call: the bound arguments of the same call.
        """
        return unwritten_results.find(self.params, self.out_idx, self._effects, self._effects_of_launches, launch, call)

    def _check_written(self, launch: AnyLaunch, call: BoundCall) -> None:
        """Checks for unwritten results, once for each set of sizes.

        Further calls with the same sizes write the same elements, unless data decide which elements are written; in that case
        there is only a warning.

        Raises:
            TileError: T410, a part of a result is never written.
        """
        if (sizes := call.sizes) in self._process.overwritten or is_silenced():
            return
        with self._process.lock:
            unwritten = [] if sizes in self._process.overwritten else list(self.unwritten_results(launch, call))
            unwritten_results.report(unwritten)
            if not self._process.overwritten:
                unwritten_results.warn_without_result(
                    self.name, self.params, lambda: self._lowering.traced.module, self._effects)
            self._process.overwritten.setdefault(sizes, frozenset() if unwritten else unwritten_results.overwritten(
                self.params, self.out_idx, self._effects, self.programs, call))

    def _overwritten(self, call: BoundCall) -> frozenset[int]:
        """Returns the positions of the results that an earlier call with these sizes wrote wholly and did not read.

        These results need no initial values.
        """
        return self._process.overwritten.get(call.sizes, frozenset()).intersection(call.made)

    def _warn_of_stale_results(self, launch: AnyLaunch, call: BoundCall) -> None:
        """Warns of a result that depends on uninitialised memory, at most once per kernel; also if the sanitizer is off.

        The run is searched for such a result in two cases. First, if a result contains NaN, because on-chip memory is filled
        with NaN when a block starts. Second, once for each set of sizes, if the kernel's first access to some tile is a read:
        integers, and tiles in the bytes of an earlier tile, contain ordinary numbers instead of NaN. Results that are integers
        show no NaN either; for these, a first access that writes a part of a tile, of run-time size, counts too. The
        sanitizer's rule decides whether a result depends on the read.
        """
        process = self._process
        if process.warned_of_stale or listeners.are_sanitized():
            return
        is_new = False
        written = [call.values[position] for position, effect in self._effects.items() if effect.writes]
        programs = [part.recorded.program for part in launch.parts]
        may_be_hidden = any(one.reads_first for one in programs) or (
            any(one.writes_part_first for one in programs)
            and any(isinstance(value, np.ndarray) and not DType(value.dtype).is_float for value in written))
        if may_be_hidden and not is_silenced():
            with process.lock:
                is_new = call.sizes not in process.searched_for_stale
                process.searched_for_stale.add(call.sizes)
        nans = (unwritten_results.has_nan(value) for value in written if isinstance(value, np.ndarray))
        if not is_new and not (launch.may_be_stale and any(nans)):
            return
        hazard = launch.stale()
        if hazard is None:
            return
        with process.lock:
            is_first, process.warned_of_stale = not process.warned_of_stale, True
        if is_first:
            place = hazard.first.location
            warnings.warn_explicit(str(hazard), TileWarning, place.file if place else self.name, place.line if place else 1)

    def __repr__(self) -> str:
        names = ", ".join(parameter.name for parameter in self.params)
        return f"<tilelang_npu kernel {self.name}({names}) for {self.chip.name}>"


doors(globals())
