"""``JITKernel``: the compiled kernel that users call, and ask for its MLIR, its times and its reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import Self

from tilelang_npu.display import Mlir
from tilelang_npu.errors import TileError, doors
from tilelang_npu.runtime.arguments.binding import size_of
from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
from tilelang_npu.runtime.kernel.lowering import FINAL
from tilelang_npu.runtime.reports.profiler import Profiler, TensorSupplyType
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.checks.interpreter_check import Agreement
    from tilelang_npu.runtime.reports.explanation import Explanation
    from tilelang_npu.runtime.reports.memory_report import MemoryReport
    from tilelang_npu.runtime.reports.sync_report import SyncReport
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.result.profile.launch_profile import Profile


class JITKernel(CompiledKernel):
    """One kernel for fixed sizes, types and switches, compiled for one chip.

    Several threads may call it at the same time. It can be pickled: the pickle holds the compiled kernel, and can be loaded
    and run where neither the kernel's source nor its factory exist.

    Attributes:
        prim_func: the function under ``@T.prim_func``.
        name: the kernel's name.
        chip: the chip that it is compiled for and modelled on.
        dialect: ``"ascendc"`` or ``"npuir"``.
        switches: the compiler switches in effect, by their string keys.
        without: the optimisations that are switched off.
        remarks: the front end's warnings on the kernel, and those of unknown keys in ``pass_configs``.
        idle: a warning of a switch that changes nothing in this kernel; None if there is no such switch.
        signature: its parameters, and the positions of outputs and workspaces.
        latency: modelled milliseconds of the configuration that tuning chose; None if the kernel was not tuned.
        config: that configuration.
        ref_latency: milliseconds of the tuning's reference on the host; None without a reference.
        made_by: the factory that returned its function, and the factory's arguments; None for a kernel without a factory, and
            after unpickling.
        sanitize: look for hazards after every run, and raise an error if there are any; None: as ``TILELANG_NPU_SANITIZE``
            says.
        is_interpreted: whether it runs as Python, as :class:`InterpretedKernel` does.
    """

    # -- text --------------------------------------------------------------------------------------------------------

    def mlir(self, stage: str = FINAL, generic: bool = False, locations: bool = False, annotate: bool = False) -> str:
        """Returns the kernel as MLIR text.

        Args:
            stage: one of :meth:`stages`. The last one, ``hivm``, is the text that runs.
            generic: print every operation in the generic form.
            locations: print the source line of every operation.
            annotate: print a comment for each operation that moves data or computes: its Python line, its bytes, and in the
                last stage its cycles on an idle chip in a block of the last launch (of a trace or a run, if there was no
                launch). For each operation that a pass inserted to wait, and each address, the comment names the pass and its
                reason.

        Raises:
            TileError: T710 there is no such stage; with ``annotate``, what a run raises.
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
        """Returns the kernel as a module of the MLIR project's Python bindings, in a context of its own.

        Raises:
            TileError: T711 no MLIR bindings are installed.
        """
        from tilelang_npu.runtime.reports.mlir_bindings import parse_module

        return parse_module(self.mlir(stage, generic=True, locations=True))

    def get_kernel_source(self) -> str:
        """Returns the HIVM text that runs; the same as ``mlir()``."""
        return self.mlir()

    @property
    def kernel_source(self) -> str:
        """The same as ``get_kernel_source()``."""
        return self.mlir()

    mlir_content = kernel_source

    def get_host_source(self) -> str:
        """Returns a comment: there is no host code, as this package launches the kernel."""
        return f"// {self.name} is launched by tilelang_npu; there is no host source\n"

    def export(self, directory: str | Path) -> list[Path]:
        """Writes the files that the vendor's compiler, and a launcher of its binary, need.

        Args:
            directory: the directory, which is created. Files of an earlier export are replaced.

        Returns:
            The files: ``NAME.mlir`` (the last stage), ``NAME.auto.mlir`` (``hivm-auto``), ``NAME.json`` (the arguments, the
            grid, the workspace) and ``README.md``, which says how bishengir-compile is called.
        """
        from tilelang_npu.runtime.reports.export import export

        blocks: list[int | None] = []
        for grid, per_point in zip(self._lowering.grids, self._blocks_per_point, strict=True):
            try:
                blocks.append(math.prod(size_of(size, {}) for size in grid) * per_point)
            except KeyError:
                blocks.append(None)
        return export(self, self._lowering, Path(directory), self._effects, blocks)

    # -- the interpreter ---------------------------------------------------------------------------------------------

    def interpret(self, *args: object, **named: object) -> Any:
        """Executes the kernel as Python, without its compiled form. Arguments and results are those of a call.

        Debuggers, ``print`` and any other Python work in the kernel (docs/debugging.md).

        Raises:
            TileError: T734, the kernel comes from a pickle; errors of the kernel, at its line.
        """
        from tilelang_npu.runtime.kernel.interpreted_kernel import InterpretedKernel

        return InterpretedKernel(self.prim_func, self._settings, lambda: self, self._lengths)(*args, **named)

    def check(self, *args: object, **named: object) -> Agreement:
        """Runs the kernel compiled and interpreted on copies of the arguments, and compares the results: bit by bit for
        integers, within rounding errors for floats.

        Returns:
            The comparison. It is true if the results agree; its text says where they do not.

        Raises:
            TileError: what a call raises.
        """
        from tilelang_npu.runtime.checks.interpreter_check import compare_with_interpreter
        from tilelang_npu.runtime.checks.rounding_spread import copied

        arguments = self.positional(args, named)
        call = self.signature.bind([np.array(arg, copy=True) if isinstance(arg, np.ndarray) else arg for arg in arguments])
        before = copied(call.values)
        self._run(call)
        return compare_with_interpreter(self, before, call)

    # -- times -------------------------------------------------------------------------------------------------------

    def estimate(self, *args: object, **named: object) -> AnyLaunch:
        """Returns the launch that a call would make, with its times, without computing values (docs/accuracy.md).

        Args:
            args, named: as for a call; a tuple of sizes may stand for an array. Without any, arrays have the declared shapes.

        Returns:
            The launch. Its times are those of a run with arrays of these shapes.

        Raises:
            TileError: T421 data decide what the kernel does; what a call raises if an argument does not fit.
        """
        from tilelang_npu.runtime.reports.launches import estimate

        return estimate(self, self.positional(args, named) if args or named else ())

    def profile(self, *args: object, **named: object) -> Profile:
        """Returns where the time goes: the critical path, pipes, lines, bytes, and the changes that would save time
        (docs/profiling.md).

        Args:
            args, named: as for a call, or tuples of sizes in place of arrays. No array is written, unless data decide what the
                kernel does: then it runs. Without any, the last launch is taken, or else a trace, or a run on made-up inputs.

        Raises:
            TileError: what a call raises.
        """
        from tilelang_npu.runtime.reports.launches import launch_of, profile_of

        return profile_of(self, launch_of(self, args, named))

    def get_profiler(self, tensor_supply_type: TensorSupplyType = TensorSupplyType.Auto) -> Profiler:
        """Returns an object that makes inputs for the kernel, times it, and compares its results with a reference."""
        return Profiler(self, tensor_supply_type)

    def benchmark(self, warmup: float = 25, rep: float = 100, n_warmup: int = 1, n_repeat: int = 1) -> float:
        """Returns the modelled milliseconds of one run on made-up inputs. The arguments have no effect, see
        ``Profiler.do_bench``."""
        return self.get_profiler().do_bench(None, warmup, rep, n_warmup, n_repeat)

    def run_once(self) -> Any:
        """Returns the result of one run on made-up inputs."""
        return self.get_profiler().run_once()

    def update_tuner_result(self, latency: float, config: Mapping[str, object], ref_latency: float | None) -> Self:
        """Stores the result of tuning in the kernel; returns the kernel."""
        self.latency, self.config, self.ref_latency = latency, dict(config), ref_latency
        return self

    def get_tuner_result(self) -> dict[str, Any]:
        """Returns ``latency`` (modelled milliseconds), ``config`` and ``ref_latency`` (milliseconds on the host).

        Raises:
            TileError: T731 the kernel was not tuned.
        """
        if self.config is None:
            msg = f"{self.name} was not tuned"
            raise TileError(msg, code="T731", location=user_location(),
                            help="call a factory under @tilelang.autotune without its tunable parameters")
        return {"latency": self.latency, "config": self.config, "ref_latency": self.ref_latency}

    # -- decisions of the compiler -----------------------------------------------------------------------------------

    def explain(self) -> Explanation:
        """Returns the decisions of the compiler on a page: memories, vector loops, pipelines, cores, bytes and waits.

        The printed page begins with the time of the last launch, or of one with arrays of the declared shapes, and the edits
        that save most time. They are compiled, timed and compared in values when the page is printed, which takes seconds.
        """
        from tilelang_npu.runtime.reports.explanation import explain
        from tilelang_npu.runtime.reports.kernel_edits import EditableKernel

        source = EditableKernel(self, self._lowering.traced, self._settings, self.made_by)
        return explain(source, self._lowering, lambda: self.last_launch or self.trace())

    def memory_report(self) -> MemoryReport:
        """Returns the address of each buffer in each on-chip memory, and the lines between which it holds a value."""
        from tilelang_npu.runtime.reports.memory_report import memory_report

        return memory_report(self.name, self.chip.name, self._lowering.final)

    def sync_report(self, *args: object) -> SyncReport:
        """Returns every wait and barrier: the two lines and the bytes of the dependence, and how long it stalls its pipe.

        Args:
            args: as for a call. Without any, the times are those of the last launch, or of a trace, or of a run on made-up
                inputs.

        Raises:
            TileError: what a call raises.
        """
        from tilelang_npu.runtime.reports.launches import launch_of
        from tilelang_npu.runtime.reports.sync_report import sync_report

        return sync_report(self.name, launch_of(self, args))


doors(globals())
