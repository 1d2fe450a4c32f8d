"""``JITKernel``: the compiled kernel that users call, with methods that return its MLIR text, its times and its reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from tilelang_npu.display import Mlir
from tilelang_npu.errors import TileError, doors
from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
from tilelang_npu.runtime.kernel.lowering import FINAL
from tilelang_npu.runtime.reports.profiler import Profiler, TensorSupplyType
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.checks.interpreter_check import Agreement
    from tilelang_npu.runtime.improve.improvement import Improvement
    from tilelang_npu.runtime.reports.explanation import Explanation
    from tilelang_npu.runtime.reports.memory_report import MemoryReport
    from tilelang_npu.runtime.reports.sync_report import SyncReport
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.result.profile.launch_profile import Profile


class JITKernel(CompiledKernel):
    """One callable kernel for fixed sizes, types and switches, compiled for one chip.

    Several threads can call a kernel at the same time. A kernel can be pickled: the pickle contains the compiled kernel, and
    can be loaded and run in a process that has neither the kernel's source nor its factory.

    Attributes:
        prim_func: the function under ``@T.prim_func``.
        name: the kernel's name.
        chip: the chip for which the kernel is compiled, and on which its time is modelled.
        dialect: the dialect of TileLang in which the kernel is written: ``"ascendc"`` or ``"npuir"``.
        switches: the values of the compiler switches that have an effect, by their string keys.
        without: the names of the optimisations that are switched off.
        remarks: the front end's warnings about the kernel, and warnings about unknown keys in ``pass_configs``.
        strips: notes on tiles that do not fit at once, so that statements are executed for strips of them.
        idle: a warning about a switch that changes nothing in this kernel; None if there is no such switch.
        signature: the kernel's parameters, and the positions of outputs and workspaces.
        latency: modelled milliseconds of the configuration that tuning chose; None if the kernel was not tuned.
        config: the configuration that tuning chose; None if the kernel was not tuned.
        ref_latency: milliseconds that the reference program of the tuning took on the host; None without a reference.
        made_by: the factory that returned the ``prim_func``, and the factory's arguments; None for a kernel without a factory,
            and after unpickling.
        sanitize: whether to look for hazards after every run, and to raise an error if there are any; None: only if
            ``TILELANG_NPU_SANITIZE`` is set.
        is_interpreted: False; True for an :class:`InterpretedKernel`, which runs as Python.
    """

    # -- text --------------------------------------------------------------------------------------------------------

    def mlir(self, stage: str = FINAL, generic: bool = False, locations: bool = False, annotate: bool = False) -> str:
        """Returns the kernel as MLIR text.

        Args:
            stage: one of :meth:`stages`. The last one, ``hivm``, is the text that runs.
            generic: print every operation in the generic form.
            locations: print the source line of every operation.
            annotate: print a comment for each operation that moves data or computes, with its Python line and its bytes. In the
                last stage, the comment also has the operation's cycles in one block of the last launch, without contention for
                memory; if there was no launch, a launch is traced or run for it. For each wait that a pass inserted, and each
                address, the comment names the pass and its reason.

        Raises:
            TileError: T710 there is no such stage; with ``annotate``, also the errors of a call.
        """
        from tilelang_npu.dialects.text import print_module

        module = self._lowering.module(stage)
        notes = None
        if annotate:
            from tilelang_npu.runtime.reports.annotations import operation_comments
            from tilelang_npu.runtime.reports.launches import launch_of

            notes = operation_comments(module, launch_of(self) if stage == FINAL else None)
        return Mlir(print_module(module, generic=generic, locations=locations, notes=notes))

    def mlir_module(self, stage: str = FINAL) -> Any:
        """Returns the kernel as a module of the MLIR project's Python bindings, in a new MLIR context.

        Args:
            stage: one of :meth:`stages`.

        Raises:
            TileError: T710 there is no such stage, T711 no MLIR bindings are installed.
        """
        from tilelang_npu.runtime.reports.mlir_bindings import parse_module

        return parse_module(self.mlir(stage, generic=True, locations=True))

    def get_kernel_source(self) -> str:
        """Returns the HIVM text of the last stage, which is the text that the simulator runs; the same as ``mlir()``."""
        return self.mlir()

    @property
    def kernel_source(self) -> str:
        """The HIVM text of the last stage; the same as ``get_kernel_source()``."""
        return self.mlir()

    mlir_content = kernel_source

    def get_host_source(self) -> str:
        """Returns a comment that says that there is no host source, because this package launches the kernel itself."""
        return f"// {self.name} is launched by tilelang_npu; there is no host source\n"

    def export(self, directory: str | Path) -> list[Path]:
        """Writes the files from which the vendor's compiler builds a binary, and the data that a launcher of the binary needs.

        Args:
            directory: the directory to write to, which is created. Files of an earlier export are replaced.

        Returns:
            The files: ``NAME.mlir`` (the last stage), ``NAME.auto.mlir`` (``hivm-auto``), ``NAME.json`` (the arguments, the
            grid, the workspace) and ``README.md``, which says how bishengir-compile is called.
        """
        from tilelang_npu.runtime.reports.export import export

        blocks = [program.block_dim for program in self.programs]
        return export(self, self._lowering, Path(directory), self._effects, blocks)

    # -- the interpreter ---------------------------------------------------------------------------------------------

    def interpret(self, *args: object, **named: object) -> Any:
        """Executes the kernel's Python source in the interpreter, instead of the compiled kernel.

        Debuggers, ``print`` and any other Python code work in the kernel (docs/debugging.md).

        Args:
            args, named: the arguments, as for a call.

        Returns:
            The results, as a call returns them.

        Raises:
            TileError: T734, the kernel comes from a pickle and has no source; errors in the kernel, with the line.
        """
        from tilelang_npu.runtime.kernel.interpreted_kernel import InterpretedKernel

        return InterpretedKernel(self.prim_func, self._settings, lambda: self, self._lengths)(*args, **named)

    def check(self, *args: object, **named: object) -> Agreement:
        """Runs the compiled kernel and the interpreter on copies of the arguments, and compares their results.

        Integers must be equal, and floats must be equal within rounding errors.

        Args:
            args, named: the arguments, as for a call. The arrays are not changed.

        Returns:
            The comparison. Its truth value says whether the results agree; its text says where they differ.

        Raises:
            TileError: the errors of a call.
        """
        from tilelang_npu.runtime.checks.interpreter_check import compare_with_interpreter
        from tilelang_npu.runtime.checks.rounding_spread import copied

        arguments = self.positional(args, named)
        call = self.signature.bind(arguments)
        if aliases := self._aliases(call):
            return self._with_aliases(aliases).check(*arguments)
        before = copied(call.values)
        call = replace(call, values=copied(call.values))
        self._run(call)
        return compare_with_interpreter(self, before, call)

    # -- times -------------------------------------------------------------------------------------------------------

    def estimate(self, *args: object, **named: object) -> AnyLaunch:
        """Returns the modelled times of a call without computing values (docs/accuracy.md). No array is written.

        Args:
            args, named: the arguments, as for a call; a tuple of sizes can replace an array. Without arguments, the arrays have
                the declared shapes.

        Returns:
            The launch. Its times are those of a run with arrays of these shapes.

        Raises:
            TileError: T421 the kernel's control flow or addresses depend on array elements, so that there is no time without
                values; the errors of a call if an argument does not fit.
        """
        from tilelang_npu.runtime.reports.launches import estimate

        return estimate(self, self.positional(args, named) if args or named else ())

    def profile(self, *args: object, edits: bool = True, **named: object) -> Profile:
        """Returns a profile of a launch: its critical path, the times of pipes and lines, the bytes moved, and the changes that
        would save time (docs/profiling.md).

        Args:
            args, named: the arguments, as for a call; a tuple of sizes can replace an array. The launch is traced, and no array
                is written, unless the kernel's control flow or addresses depend on array elements: then the kernel runs.
                Without arguments, the last launch is profiled. If there was none, a launch with arrays of the declared shapes
                is traced, or run on generated inputs if it cannot be traced.
            edits: whether the profile tries edits of the source when it is printed, which takes from seconds to minutes.

        Raises:
            TileError: the errors of a call.
        """
        from tilelang_npu.runtime.reports.launches import launch_on, profile_of

        launch, generated = launch_on(self, args, named)
        return profile_of(self, launch, is_of_generated_inputs=generated, edits=edits)

    def get_profiler(self, tensor_supply_type: TensorSupplyType = TensorSupplyType.Auto) -> Profiler:
        """Returns a profiler, which generates inputs for the kernel, times it, and compares its results with a reference.

        Args:
            tensor_supply_type: how the profiler chooses the elements of generated inputs.
        """
        return Profiler(self, tensor_supply_type)

    def benchmark(self, warmup: float = 25, rep: float = 100, n_warmup: int = 1, n_repeat: int = 1) -> float:
        """Returns the modelled milliseconds of one run on generated inputs.

        The arguments exist for scripts of TileLang and have no effect, because a modelled time is the same in each run.
        """
        return self.get_profiler().do_bench(None, warmup, rep, n_warmup, n_repeat)

    def run_once(self) -> Any:
        """Runs the kernel once on generated inputs and returns its result, as a call does."""
        return self.get_profiler().run_once()

    def update_tuner_result(self, latency: float, config: Mapping[str, object], ref_latency: float | None) -> Self:
        """Stores the result of tuning in the kernel, and returns the kernel.

        Args:
            latency: modelled milliseconds of the chosen configuration.
            config: the chosen values of the tunable parameters.
            ref_latency: milliseconds of the reference program on the host; None without a reference.
        """
        self.latency, self.config, self.ref_latency = latency, dict(config), ref_latency
        return self

    def get_tuner_result(self) -> dict[str, Any]:
        """Returns the result of tuning: ``latency`` (modelled milliseconds), ``config`` (the chosen values of the tunable
        parameters), and ``ref_latency`` (milliseconds of the reference program on the host, or None).

        Raises:
            TileError: T731 the kernel was not tuned.
        """
        if self.config is None:
            msg = f"{self.name} was not tuned"
            raise TileError(msg, code="T731", location=user_location(),
                            help="call a factory under @tilelang.autotune without its tunable parameters")
        return {"latency": self.latency, "config": self.config, "ref_latency": self.ref_latency}

    @property
    def kernel_name(self) -> str:
        """The name of the kernel, under the name of this attribute in TileLang-Ascend."""
        return self.name

    def improve(self, *args: object, budget: float = 60.0, trials: int | None = None, executor: object = None,
                reassociate: bool = False) -> Improvement:
        """Searches source edits that shorten the kernel's modelled time (docs/improve.md).

        Versions of the factory's source with other numbers, stages of loops and blocks are compiled and timed. The results of
        the best one are compared with those of the kernel, and its run is searched for hazards. No file is written.

        Args:
            args: the arguments of a call, for which results are compared; without them, arguments are generated. If the time
                depends on a call's sizes or on the elements of arrays, versions are timed for this call.
            budget: the seconds that the search takes.
            trials: the number of versions after which the search ends; None for no limit.
            executor: where versions are compiled: a ``concurrent.futures`` executor, or a name such as ``"processes:2"``; None
                for this thread.
            reassociate: whether edits are also made after which results differ within the rounding of their type.

        Returns:
            The report. ``improved`` is the source with the edits, ``patch`` the edits as a diff, ``changes`` each edit.

        Raises:
            TileError: T421 the time depends on a call's arguments, and none are given; T734, T810 the factory's source is not
                known; T735 LibCST is not installed.
        """
        from tilelang_npu.runtime.improve import needed_package

        needed_package()
        from tilelang_npu.runtime.improve.improvement import Improver
        from tilelang_npu.runtime.improve.script_version import program_of
        from tilelang_npu.runtime.kernel.executors import open_executor

        with open_executor(executor) as workers:
            return Improver(program_of(self), self.positional(args, {}) if args else None, executor=workers,
                            reassociate=reassociate).run(budget, trials)

    # -- decisions of the compiler -----------------------------------------------------------------------------------

    def explain(self, *, edits: bool = True) -> Explanation:
        """Returns a report of the compiler's decisions about memories, vector loops, pipelines, cores, bytes moved and waits.

        The printed report begins with the modelled time of the last launch (of a trace with arrays of the declared shapes, if
        there was no launch), and with the source edits that save most time. Printing compiles and times the edited kernels and
        compares their results with the kernel's, which takes from seconds to minutes.

        Args:
            edits: whether edits are tried.
        """
        from tilelang_npu.runtime.reports.explanation import explain
        from tilelang_npu.runtime.reports.kernel_edits import EditableKernel

        source = EditableKernel(self, self._lowering.traced, self._settings, self.made_by)
        return explain(source, self._lowering, lambda: self.last_launch or self.trace(), edits=edits)

    def _repr_html_(self) -> str:
        """Returns a card with the signature, the modelled time and the memories, which notebooks show."""
        from tilelang_npu.runtime.reports.kernel_card import card

        return card(self, self.memory_report(), self.get_kernel_source())

    def memory_report(self) -> MemoryReport:
        """Returns a report of each buffer's address in its on-chip memory, and of the source lines of its live range."""
        from tilelang_npu.runtime.reports.memory_report import memory_report

        return memory_report(self.name, self.chip.name, self._lowering.final)

    def sync_report(self, *args: object) -> SyncReport:
        """Returns a report of every wait and barrier: the two lines and the bytes of the dependence that the wait enforces, and
        the microseconds for which it stalls its pipe.

        Args:
            args: the arguments, as for a call. Without arguments, the times are those of the last launch; if there was none, a
                launch with arrays of the declared shapes is traced, or run on generated inputs if it cannot be traced.

        Raises:
            TileError: the errors of a call.
        """
        from tilelang_npu.runtime.reports.launches import launch_of
        from tilelang_npu.runtime.reports.sync_report import sync_report

        return sync_report(self.name, launch_of(self, args))


doors(globals())
