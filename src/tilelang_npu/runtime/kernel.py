"""A compiled kernel: called with arrays, asked for its MLIR, its source, its times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tilelang_npu import frontend
from tilelang_npu.display import Mlir
from tilelang_npu.errors import TileError, doors
from tilelang_npu.runtime import coverage, environment, listeners
from tilelang_npu.runtime.binding import BoundCall, Signature, indices, size_of
from tilelang_npu.runtime.here import Here
from tilelang_npu.runtime.left_over import tell_left_over
from tilelang_npu.runtime.log import is_unheard, told, warn_at
from tilelang_npu.runtime.longer import longer
from tilelang_npu.runtime.lowering import FINAL, Lowering
from tilelang_npu.runtime.pointing import find
from tilelang_npu.runtime.profiler import Profiler, TensorSupplyType
from tilelang_npu.runtime.same_memory import same_arrays
from tilelang_npu.runtime.switches import check_kernel, disabled, resolve, warn_without_effect
from tilelang_npu.runtime.targets import dialect_of, select_chip
from tilelang_npu.runtime.tensors import like_caller
from tilelang_npu.sharing import Kept, once, state_of
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter, Traced
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.explanation import Explanation
    from tilelang_npu.runtime.factory import MadeBy, Settings
    from tilelang_npu.runtime.interpreter_check import Agreement
    from tilelang_npu.runtime.memory_report import MemoryReport
    from tilelang_npu.runtime.sync_report import SyncReport
    from tilelang_npu.simulator import AnyLaunch, Program
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

__all__ = ["JITKernel"]


class JITKernel:
    """One kernel for fixed sizes, types and switches, compiled for one chip.

    Any number of threads may call it at the same time. It can be pickled, whatever it was made from: what is written is the
    compiled kernel, and it runs where there is neither its source nor its factory.

    Attributes:
        prim_func: the function it was made from.
        name: its name.
        chip: the chip it is compiled for and modelled on.
        dialect: ``"ascendc"`` or ``"npuir"``.
        switches: the compiler switches in effect, by their string keys.
        without: the optimisations that are off.
        remarks: what its author should know though nothing is wrong.
        idle: what its author should know of the switches; None where that is nothing.
        latency: modelled milliseconds of the configuration that tuning chose; None for a kernel that was not tuned.
        config: that configuration.
        made_by: the factory that returned its function, and what that was given; None where none did, or behind a pickle.
        ref_latency: milliseconds of the reference on the host, where tuning had one.
        signature: what it is called with.
        keep: what its first run hands it to, which keeps it for other processes.
        sanitize: look for hazards in every run and raise what is found; None asks ``TILELANG_NPU_SANITIZE``.
        is_interpreted: whether it runs as Python, as :class:`InterpretedKernel` does.
    """

    is_interpreted = False

    def __init__(self, func: PrimFunc, settings: Settings, lengths: Mapping[str, int] | None = None,
                 same: Mapping[int, int] | None = None, traced: Traced | None = None, *, tried: bool = False) -> None:
        """Trace and prepare a kernel.

        Args:
            func: the function.
            settings: target, switches, outputs.
            lengths: of the first axis of parameters, in place of those declared.
            same: parameters that have the array of an earlier one, by position: that one.
            traced: the function as it was traced before.
            tried: whether it is timed and forgotten, see :class:`Lowering`.
        """
        environment.check()
        self.chip = select_chip(settings.chip, settings.platform, settings.at)
        if traced is None:
            traced = frontend.trace(func, dialect=dialect_of(settings.target, settings.at), lengths=lengths)
            for remark in traced.remarks:
                warn_at(remark)
        self.name = traced.name
        self.dialect = traced.dialect
        self.remarks = (*traced.remarks, *warn_without_effect(settings.pass_configs, settings.at))
        self.switches = resolve(settings.pass_configs, self.dialect, settings.at)
        self.without = disabled(settings.pass_configs, settings.at)
        self.idle = check_kernel(self.switches, traced.module, settings.at) if self.dialect == "ascendc" else None
        if self.idle is not None:
            warn_at(self.idle)
        count = len(traced.parameters) - traced.own
        outputs = indices(settings.out_idx, count, "out_idx", find("out_idx", settings.at))
        workspaces = (*indices(settings.workspace_idx, count, "workspace_idx", find("workspace_idx", settings.at)),
                      *range(count, count + traced.own))
        if same:
            traced = traced.as_one(same)
        traced.mark_scratch(outputs, workspaces)
        with told(settings.verbose):
            self._lowering = Lowering(traced, self.chip, self.switches, self.without, tried=tried)
        self.signature = Signature(self.name, traced.parameters, traced.symbols, outputs, workspaces,
                                   frozenset(position for position, effect in self._effects.items() if effect.writes),
                                   flat=self.dialect == "ascendc",
                                   untouched=frozenset(range(count)) - frozenset(self._effects))
        self.begin(func, settings, lengths)
        self._check_allocated(settings)
        if settings.debug_root_path is not None:
            from tilelang_npu.runtime.export import dump

            with told(settings.verbose):
                dump(self, Path(settings.debug_root_path))

    def begin(self, func: PrimFunc, settings: Settings, lengths: Mapping[str, int] | None = None) -> None:
        """Give a kernel that is compiled, or found compiled, what is its own in this process; as for ``__init__``."""
        self.prim_func, self._settings, self._lengths, self.sanitize = func, settings, lengths, settings.sanitize
        self._longer: Kept[tuple[tuple[str, int], ...], JITKernel] = Kept()
        self._as_one: Kept[tuple[tuple[int, int], ...], JITKernel] = Kept()
        self.out_idx, self.workspace_idx = list(self.signature.outputs), list(self.signature.workspaces)
        self.latency: float | None = None
        self.config: dict[str, Any] | None = None
        self.ref_latency: float | None = None
        self.made_by: MadeBy | None = None
        self.keep: Callable[[JITKernel], None] | None = None
        self._here = Here()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in state_of(self).items() if name != "_here"} | {"made_by": None, "keep": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        environment.check()
        vars(self).update(state, _here=Here())

    @property
    def last_launch(self) -> AnyLaunch | Any:  # None before the first call, which scripts do not ask about
        """Times, hazards and trace of the run that the calling thread asked for last; None before its first, and where it came
        to no end. Of a kernel with several ``T.Kernel`` it is ``Launches``, whose ``parts`` are the launches in order."""
        return getattr(self._here.threads, "last", None)

    @last_launch.setter
    def last_launch(self, launch: AnyLaunch | None) -> None:
        self._here.threads.last = launch

    @once
    def _effects(self) -> Mapping[int, coverage.ParameterEffect]:
        return coverage.effects(self._lowering.traced.module)

    @once
    def _effects_of_launches(self) -> list[Mapping[int, coverage.ParameterEffect]]:
        return [coverage.effects(launch) for launch in self._lowering.traced.launches]

    @once
    def programs(self) -> tuple[Program, ...]:
        """The kernel as the simulator runs it: what a call launches, in order, one for each ``T.Kernel``."""
        from tilelang_npu.simulator import Program

        return tuple(Program(self._lowering.final, self.chip, entry=name, computes=not self._lowering.tried)
                     for name in self._lowering.names)

    @once
    def program(self) -> Program:
        """The only one of ``programs``.

        Raises:
            TileError: T508, there are several.
        """
        from tilelang_npu.simulator import Program

        return self.programs[0] if len(self.programs) == 1 else Program(self._lowering.final, self.chip)

    @property
    def params(self) -> tuple[Parameter, ...]:
        """Its parameters: name, element type, shape, place in the source."""
        return self.signature.parameters

    def _check_allocated(self, settings: Settings) -> None:
        """Only arrays can be allocated."""
        for name, positions in (("out_idx", self.out_idx), ("workspace_idx", self.workspace_idx)):
            for position in positions:
                parameter = self.params[position]
                twice = name == "workspace_idx" and position in self.out_idx
                effect = self._effects.get(position)
                if name == "out_idx" and not twice and effect is not None and effect.reads and not effect.writes:
                    msg = f"out_idx names parameter {position}, {parameter.name}, which the kernel reads and never writes"
                    raise TileError(msg, code="T709", location=find(name, settings.at),
                                    help="name what it writes; what out_idx names holds nothing before the call")
                if parameter.shape is None or twice:
                    what = "is in out_idx too" if twice else "is a number and cannot be allocated"
                    msg = f"{name} names parameter {position}, {parameter.name}, which {what}"
                    raise TileError(msg, code="T709", location=find(name, settings.at), help="name an array there")

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the kernel.

        Args:
            args: arrays (NumPy, or torch on the CPU) and numbers for all parameters that are in neither ``out_idx`` nor
                ``workspace_idx``, in order. Arrays are used in place.
            named: arguments by the names of their parameters; ``stream``, where no parameter is called so, is without effect.

        Returns:
            The arrays of ``out_idx``: one alone, several as a list; without any, nothing (an empty list in the ascendc
            dialect, as on its branch). They are torch tensors if an argument is one, else NumPy arrays.

        Raises:
            TileError: T401 to T407 an argument does not fit (an array may be longer than declared in the npuir dialect),
                T420 two arrays share a part of their memory, T410 a part of a result is never written, and what the machine
                finds in the run.
            SanitizerError: ``sanitize`` is on, and the run has hazards; its results are in the arrays.
        """
        args = self.positional(args, named)
        if self.dialect == "npuir" and (lengths := self.signature.longer(args)):
            return self._with_lengths(lengths)._called_for(self, args)
        self.last_launch = None  # what it holds of the last call is as much as this one allocates
        call = self.signature.bind(args, self._overwritten)
        if same := self._same_arrays(call):
            return self._with_same(same)._called_for(self, args)
        checker = listeners.checker()
        if checker is None and environment.AGAINST.is_on():
            from tilelang_npu.runtime.interpreter_check import against_interpreter
            from tilelang_npu.runtime.rounding_spread import copied

            before = copied(call.values)
            self._run(call)
            against_interpreter(self, before, call)
        elif checker is None:
            self._run(call)
        else:
            self.last_launch = checker.look_at(self, call)
        results = [like_caller(call.values[position], args) for position in self.out_idx]
        if not results:
            return None if self.dialect == "npuir" else []
        return results[0] if len(results) == 1 else results

    def __getitem__(self, grid: object) -> NoReturn:
        """Triton's way to name a grid: T401."""
        names = ", ".join(parameter.name for parameter in self.params)
        raise TileError(f"{self.name} is launched without a grid in brackets", code="T401", location=user_location(),
                        help=f"call it with ({names}): T.Kernel(...) in it says how many blocks there are")

    def positional(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in order, those that are named too."""
        if "stream" in named and all(parameter.name != "stream" for parameter in self.params):
            del named["stream"]
        return self.signature.positional(args, named)

    def _run(self, call: BoundCall) -> None:
        """Run a call, and look at what came of it."""
        from tilelang_npu.simulator import Launch, Numbers
        from tilelang_npu.simulator.result.call_launches import joined

        schedule = environment.SCHEDULE.text() or None
        arguments, blocks = self.machine_arguments(call), self.blocks(call)
        parts: list[Launch] = []
        for program, count in zip(self.programs, blocks, strict=True):
            for part in parts:
                part.keep(program.changed)
            watch = Numbers() if environment.NUMBERS.is_on() else None
            recorded = program.run(arguments, blocks=count, schedule=schedule, observer=watch,
                                   most_ops=environment.most_ops(), jobs=environment.jobs())
            numbers = watch.findings if watch is not None else ()
            parts.append(Launch(recorded, numbers=numbers, made=call.made, before=parts))
        launch = self.last_launch = joined(self.name, parts)
        listeners.launched(self, launch)
        self._check_written(launch, call)
        self._check_hazards(launch)
        tell_left_over(self.name, launch, call, self._effects, self._here)
        if self.keep is not None:
            self.keep(self)

    def _is_sanitized(self) -> bool:
        return environment.SANITIZE.is_on() if self.sanitize is None else self.sanitize

    def _check_hazards(self, launch: AnyLaunch) -> None:
        """Raise the hazards of a run, where that is asked for and nobody else tells them."""
        if self._is_sanitized() and not listeners.are_sanitized():
            from tilelang_npu.runtime.sanitizer import in_process, raise_found

            raise_found(in_process().judge_all(launch, self.prim_func))

    def trace(self, *args: Any, **named: Any) -> AnyLaunch | None:
        """What a launch does and takes, without values: much faster than a run. Nothing is written.

        Args:
            args, named: as for a call; without any, arrays as declared, where their sizes are constants.

        Returns:
            the launch with its times, traffic and hazards, equal to a run's; None where data decide what the kernel does, or
            where there are no arguments and a size or a number is needed.

        Raises:
            TileError: as a call, as far as it does not take values to find.
        """
        from tilelang_npu.simulator import Launch
        from tilelang_npu.simulator.result.call_launches import joined

        args = self.positional(args, named)
        if args and self.dialect == "npuir" and (lengths := self.signature.longer(args)):
            return self._with_lengths(lengths).trace(*args)
        if args:
            call = self.signature.bind(args)
            if same := self._same_arrays(call):
                return self._with_same(same).trace(*args)
        elif self.signature.symbols or any(parameter.shape is None for parameter in self.params):
            return None
        else:
            call = BoundCall([np.empty([size_of(size, {}) for size in parameter.shape or ()], parameter.dtype.numpy)
                         for parameter in self.params], {})
        if not all(program.data_free for program in self.programs):
            return None
        arguments, most = self.machine_arguments(call), environment.most_ops()
        parts: list[Launch] = []
        for program, blocks in zip(self.programs, self.blocks(call), strict=True):
            parts.append(Launch(program.trace(arguments, blocks=blocks, most_ops=most), made=call.made, before=parts))
        return joined(self.name, parts)

    def estimate(self, *args: Any, **named: Any) -> AnyLaunch:
        """The launch that a call would make, with its times, and without computing a value (docs/accuracy.md).

        Args:
            args, named: as for a call; a shape, as a tuple, may stand for an array. Without any, arrays are as declared.

        Returns:
            the launch; its times are those of a run with arrays of these shapes.

        Raises:
            TileError: T421 data decide what the kernel does; what a call raises where an argument does not fit.
        """
        from tilelang_npu.runtime.estimating import estimate

        return estimate(self, self.positional(args, named) if args or named else ())

    def _with_lengths(self, lengths: Mapping[str, int]) -> JITKernel:
        """The kernel for arrays that are longer than declared: on the npuir branch a tensor's first size binds nothing."""
        return self._in_place(self._longer.get(tuple(lengths.items()), lambda: longer(self, self._settings, lengths)))

    def _in_place(self, kernel: JITKernel) -> JITKernel:
        """A kernel that runs in the place of this one."""
        kernel.sanitize = self.sanitize
        return kernel

    def _same_arrays(self, call: BoundCall) -> dict[int, int]:
        """See ``same_arrays``; nothing where the author orders all that goes on."""
        if not self._lowering.options.orders:
            return {}
        return same_arrays(self.params, call.values, self._effects, self.signature.written)

    def _with_same(self, same: Mapping[int, int]) -> JITKernel:
        """The kernel for calls in which one array stands for several parameters: they are one tensor in it."""

        def make() -> JITKernel:
            try:
                return JITKernel(self.prim_func, self._settings, self._lengths, same, self._lowering.traced)
            except TileError as error:
                one = ", ".join(f"{self.params[other].name} is {self.params[first].name}" for other, first in same.items())
                error.notes = (*error.notes, f"in a call with one array for several parameters: {one}")
                raise

        return self._in_place(self._as_one.get(tuple(same.items()), make))

    def check(self, *args: Any, **named: Any) -> Agreement:
        """Run the kernel compiled and interpreted on copies of the arguments, and compare the results: bit by bit for integers,
        within what rounding explains for floats.

        Returns:
            what was found; it is true where the results agree, and printed it says where they do not.

        Raises:
            TileError: what a call raises.
        """
        from tilelang_npu.runtime.interpreter_check import check

        return check(self, self.positional(args, named))

    def interpret(self, *args: Any, **named: Any) -> Any:
        """Execute the kernel as Python, without its compiled form; arguments and results are those of a call.

        A debugger, ``print`` and any other Python work inside of it (docs/debugging.md).

        Raises:
            TileError: T734, the kernel comes from a pickle; what the kernel does wrong, at its line.
        """
        from tilelang_npu.runtime.interpreted import InterpretedKernel

        return InterpretedKernel(self.prim_func, self._settings, lambda: self, self._lengths)(*args, **named)

    def for_arguments(self, *args: Any) -> JITKernel:
        """The kernel that a call with these arguments runs: another one where arrays are longer than declared (in the npuir
        dialect), or one array stands for several parameters.

        Raises:
            TileError: T401 to T407, T420: an argument does not fit.
        """
        if self.dialect == "npuir" and (lengths := self.signature.longer(args)):
            return self._with_lengths(lengths).for_arguments(*args)
        same = self._same_arrays(self.signature.bind(args))
        return self._with_same(same) if same else self

    def _called_for(self, kernel: JITKernel, args: tuple[Any, ...]) -> Any:
        try:
            return self(*args)
        finally:
            kernel.last_launch = self.last_launch

    def machine_arguments(self, call: BoundCall) -> list[Any]:
        """What the compiled function takes: the values of a call, and those of the symbolic dimensions behind them."""
        return [*call.values, *(call.symbols[name] for name in self.signature.symbols)]

    def blocks(self, call: BoundCall) -> tuple[int, ...]:
        """How many blocks a run launches, for each ``T.Kernel``.

        Raises:
            TileError: T406 there are none, because a size or a number among the arguments makes the grid empty, or too many.
        """
        from tilelang_npu.runtime.grid_sizes import blocks

        return blocks(self.name, self.params, self._lowering.grids, self._blocks_per_point, call, self._lowering.place)

    @once
    def _blocks_per_point(self) -> tuple[int, ...]:
        """Two where the Vector cores run alone and share the work of a point of the grid: it is two blocks."""
        found = []
        for launch, program in zip(self._lowering.traced.launches, self.programs, strict=True):
            vector_only = all(function.core == "AIV" for function in program.functions)
            divided = launch.explicit_sub_block is not None or launch.spread is not None
            found.append(launch.sub_blocks.value.data if vector_only and divided else 1)
        return tuple(found)

    def left_out(self, launch: AnyLaunch, call: BoundCall) -> Iterator[coverage.LeftOut]:
        """What a call, or a trace of it, left unwritten of its results."""
        return coverage.left_out(self.params, self.out_idx, self._effects, self._effects_of_launches, launch, call)

    def _check_written(self, launch: AnyLaunch, call: BoundCall) -> None:
        """Look for unwritten results, once for each set of sizes that is in order: data decide nothing, or it is but told."""
        if (sizes := call.sizes) in self._here.overwritten or is_unheard():
            return
        with self._here.lock:
            left = [] if sizes in self._here.overwritten else list(self.left_out(launch, call))
            coverage.tell(left)
            if not self._here.overwritten:
                coverage.tell_without_result(self.name, self.params, lambda: self._lowering.traced.module, self._effects)
            self._here.overwritten.setdefault(sizes, frozenset() if left else coverage.overwritten(
                self.params, self.out_idx, self._effects, self.programs, call))

    def _overwritten(self, call: BoundCall) -> frozenset[int]:
        """The results of which an equal call has written all, and reads nothing: it did so whatever the arguments hold."""
        return self._here.overwritten.get(call.sizes, frozenset()).intersection(call.made)

    def input_shapes(self, symbols: Mapping[str, int]) -> Iterator[tuple[Parameter, tuple[int, ...] | None]]:
        """The parameters that a call passes, each with its shape (None for a number).

        Args:
            symbols: values of the symbolic dimensions.

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

    def mlir(self, stage: str = FINAL, generic: bool = False, locations: bool = False, annotate: bool = False) -> str:
        """The kernel as MLIR text.

        Args:
            stage: one of :meth:`stages`; the last one, ``hivm``, is what runs.
            generic: print every operation in the generic form.
            locations: print the source line of every operation.
            annotate: put a comment beside each operation that moves or computes: its Python line, its bytes, and in the last
                stage its cycles on an idle chip in a block of the last launch (of a trace, or a run, where there was none);
                beside each that a pass inserted to wait, or gave an address, the pass and why.

        Raises:
            TileError: T710 there is no such stage; with ``annotate``, what a run raises.
        """
        from tilelang_npu.dialects.text import print_module

        module = self._lowering.module(stage)
        notes = None
        if annotate:
            from tilelang_npu.runtime.annotations import comments
            from tilelang_npu.runtime.profiling import launch_of

            launch = None if stage != FINAL else launch_of(self)
            notes = comments(module, launch)
        return Mlir(print_module(module, generic=generic, locations=locations, notes=notes))

    def export(self, directory: str | Path) -> list[Path]:
        """Write what the vendor's compiler and a launcher of its binary need.

        Args:
            directory: where to; it is made. Files of an earlier export are replaced.

        Returns:
            The files: ``NAME.mlir`` (the last stage), ``NAME.auto.mlir`` (``hivm-auto``), ``NAME.json`` (the arguments, the
            grid, the workspace) and ``README.md``, which says how bishengir-compile is called.
        """
        from tilelang_npu.runtime.export import export

        blocks: list[int | None] = []
        for grid, per_point in zip(self._lowering.grids, self._blocks_per_point, strict=True):
            try:
                blocks.append(math.prod(size_of(size, {}) for size in grid) * per_point)
            except KeyError:
                blocks.append(None)
        return export(self, Path(directory), self._effects, blocks)

    def stages(self) -> list[str]:
        """Names of the stages, in order: ``tile`` as traced, each pass by its name, ``hivm-auto``, ``hivm``."""
        return self._lowering.stages()

    def sync_report(self, *args: Any) -> SyncReport:
        """Every wait and barrier: the two lines and the bytes that it keeps apart, and how long it holds its pipe.

        Args:
            args: as for a call; without any, the times are those of the last launch, of a trace, or of a run on made-up inputs.

        Raises:
            TileError: what the call raises.
        """
        from tilelang_npu.runtime.profiling import launch_of
        from tilelang_npu.runtime.sync_report import sync_report

        return sync_report(self.name, launch_of(self, args))

    def explain(self) -> Explanation:
        """What the compiler made of the kernel, on a page: memories, vector loops, pipelines, cores, bytes and waits. Printed,
        it begins with the time of the last launch, or of one with arrays as declared, and the edits that win most, which takes
        seconds: they are compiled, timed and compared in values."""
        from tilelang_npu.runtime.edited import Ingredients
        from tilelang_npu.runtime.explanation import explain

        source = Ingredients(self, self._lowering.traced, self._settings, self.made_by)
        return explain(source, self._lowering, lambda: self.last_launch or self.trace())

    def memory_report(self) -> MemoryReport:
        """Where each buffer lies in each memory on chip, and from which line to which it holds a value."""
        from tilelang_npu.runtime.memory_report import memory_report

        return memory_report(self.name, self.chip.name, self._lowering.final)

    def get_kernel_source(self) -> str:
        """The HIVM text that runs; the same as ``mlir()``."""
        return self.mlir()

    @property
    def kernel_source(self) -> str:
        """The same as ``get_kernel_source()``."""
        return self.mlir()

    mlir_content = kernel_source

    def get_host_source(self) -> str:
        """There is no host code here: what launches a kernel is this package. The text says so."""
        return f"// {self.name} is launched by tilelang_npu; there is no host source\n"

    def update_tuner_result(self, latency: float, config: Mapping[str, Any], ref_latency: float | None) -> JITKernel:
        """Note what tuning found; returns the kernel."""
        self.latency, self.config, self.ref_latency = latency, dict(config), ref_latency
        return self

    def get_tuner_result(self) -> dict[str, Any]:
        """``latency`` (modelled milliseconds), ``config`` and ``ref_latency`` (milliseconds of the host).

        Raises:
            TileError: T731 the kernel was not tuned.
        """
        if self.config is None:
            msg = f"{self.name} was not tuned"
            raise TileError(msg, code="T731", location=user_location(),
                            help="call a factory under @tilelang.autotune without its tunable parameters")
        return {"latency": self.latency, "config": self.config, "ref_latency": self.ref_latency}

    def mlir_module(self, stage: str = FINAL) -> Any:
        """The kernel as a live module of the MLIR bindings, in a context of its own.

        Raises:
            TileError: T711 no MLIR bindings are installed.
        """
        from tilelang_npu.runtime.mlir_bindings import live_module

        return live_module(self.mlir(stage, generic=True, locations=True))

    def profile(self, *args: Any, **named: Any) -> Profile:
        """Where the time goes: the critical path, pipes, lines, bytes, and what changes would win (docs/profiling.md).

        Args:
            args, named: as for a call, or shapes in place of arrays; nothing is written, but where data decide what the kernel
                does: there it runs. Without any, the last launch is looked at, or a trace, or a run on made-up inputs.

        Raises:
            TileError: what the call raises.
        """
        from tilelang_npu.runtime.profiling import profile

        return profile(self, args, named)

    def get_profiler(self, tensor_supply_type: TensorSupplyType = TensorSupplyType.Auto) -> Profiler:
        """Inputs, times and comparisons for this kernel."""
        return Profiler(self, tensor_supply_type)

    def benchmark(self, warmup: float = 25, rep: float = 100, n_warmup: int = 1, n_repeat: int = 1) -> float:
        """Modelled milliseconds of one run on made-up inputs; the arguments change nothing, see ``Profiler.do_bench``."""
        return self.get_profiler().do_bench(None, warmup, rep, n_warmup, n_repeat)

    def run_once(self) -> Any:
        """The result of one run on made-up inputs."""
        return self.get_profiler().run_once()

    def __repr__(self) -> str:
        names = ", ".join(parameter.name for parameter in self.params)
        return f"<tilelang_npu kernel {self.name}({names}) for {self.chip.name}>"


doors(globals())
