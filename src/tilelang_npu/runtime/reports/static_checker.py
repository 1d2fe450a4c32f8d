"""Checks calls of kernels for hazards without computing values, for ``tilelang-npu check``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.runtime.settings.environment import most_ops

if TYPE_CHECKING:
    from tilelang_npu.runtime.arguments.binding import BoundCall
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch, Launch
    from tilelang_npu.simulator.result.static_check import Checked
    from tilelang_npu.simulator.sanitizer.findings import Finding

ASSUMED_SIZE = 256
"""The assumed size of a symbolic dimension in a check for which neither a call nor an option ``--size`` gives the size."""
_ASSUMED_NUMBER = 1
"""The value of a number among the arguments for which no call and no option gives a value."""


@dataclass(frozen=True)
class KernelCheck:
    """The static check of one launch of a kernel for one set of sizes.

    Attributes:
        kernel: the kernel's name; for a kernel with several ``T.Kernel``, the name of the launch.
        chip: the name of the chip for which the kernel is compiled.
        blocks: the number of blocks of the launch.
        sizes: the values of symbolic dimensions and number parameters, as text (``M=64, N=256 (assumed)``).
        done: the result of the check.
        findings: the hazards, merged by cause; hazards that the user allows have the reason in ``allowed``.
    """

    kernel: str
    chip: str
    blocks: int
    sizes: str
    done: Checked
    findings: list[Finding]


class Checker:
    """Checks calls of kernels statically, and collects the results.

    Args:
        session: the sanitizer session, which merges the hazards and applies the user's allowances.
        sizes: the values of symbolic dimensions and of number parameters, by name, for kernels that are not called.
        wanted: a function of a kernel that returns whether its checks are to be collected; None to collect all. A call of
            another kernel is only traced for its times.

    Attributes:
        wanted: the argument ``wanted``.
        looks: the collected checks, in the order of first calls.
    """

    def __init__(self, session: Sanitizer, sizes: Mapping[str, int],
                 wanted: Callable[[CompiledKernel], bool] | None = None) -> None:
        self.session = session
        self.wanted = wanted
        self.looks: list[KernelCheck] = []
        self._sizes = sizes
        self._used: set[str] = set()
        self._lock = RLock()
        self._known: dict[object, tuple[CompiledKernel, AnyLaunch | None]] = {}

    def look_at(self, kernel: CompiledKernel, call: BoundCall, sizes: str = "") -> AnyLaunch | None:
        """Checks a call of a kernel; a second call with the same sizes uses the result of the first.

        Args:
            kernel: the kernel.
            call: the bound arguments of the call.
            sizes: the text that describes the sizes in the report; empty to make it from the call.

        Returns:
            The trace with the call's modelled times; None if the check ended with an error.
        """
        numbers = {parameter.name: value.item() for parameter, value in zip(kernel.params, call.values, strict=True)
                   if parameter.shape is None}
        values = {**call.symbols, **numbers}
        key = id(kernel), tuple(values.items())
        with self._lock:
            if key not in self._known:
                text = sizes or ", ".join(f"{name}={value}" for name, value in values.items())
                self._known[key] = kernel, self._check(kernel, call, text)
            launch = self._known[key][1]
        if launch is not None:
            listeners.tell_launched(kernel, launch)
        return launch

    def _check(self, kernel: CompiledKernel, call: BoundCall, sizes: str) -> AnyLaunch | None:
        from tilelang_npu.simulator.result.call_launches import joined
        from tilelang_npu.simulator.result.static_check import check

        parts: list[Launch] = []
        failed = False
        for program, blocks in zip(kernel.programs, kernel.blocks(call), strict=True):
            if not blocks:
                continue
            # After a launch that failed, the contents of the allocated arrays are not known.
            done = check(program, kernel.machine_arguments(call), blocks, most_ops=most_ops(),
                         made=() if failed else call.made, before=parts)
            if self.wanted is None or self.wanted(kernel):
                findings = self.session.judge(done.hazards, program, program.name, kernel.prim_func)
                self.looks.append(KernelCheck(program.name, kernel.chip.name, blocks, sizes, done, findings))
            if done.launch is None:
                failed = True
            else:
                parts = [*parts, done.launch]
        if failed:
            return None
        launch = joined(kernel.name, parts, kernel.signature.workspaces)
        for result in kernel.unwritten_results(launch, call):
            error = result.error()
            done.errors += [error] if error is not None else []
            done.notes += [result.warning()] if error is None and result.warning() else []
        return launch

    def look_alone(self, kernel: CompiledKernel) -> None:
        """Checks a kernel that the script does not call, with the sizes that the user has given by name, or assumed sizes."""
        texts: list[str] = []

        def size(name: str, assumed: int) -> int:
            self._used.add(name)
            value = self._sizes.get(name, assumed)
            texts.append(f"{name}={value}" + ("" if name in self._sizes else " (assumed)"))
            return value

        symbols = {name: size(name, ASSUMED_SIZE) for name in kernel.signature.symbols}
        values: list[object] = [parameter.dtype.numpy.type(size(parameter.name, _ASSUMED_NUMBER)) if shape is None
                                else np.zeros(parameter.array_shape(shape), parameter.array_dtype)
                                for parameter, shape in kernel.input_shapes(symbols)]
        self.look_at(kernel, kernel.signature.bind(values), ", ".join(texts))

    def has_seen(self, kernel: CompiledKernel) -> bool:
        """Whether this object has checked a call of a kernel."""
        return any(kernel is other for other, _ in self._known.values())

    def launch_of(self, kernel: CompiledKernel) -> AnyLaunch | None:
        """Returns the trace of the last checked call of a kernel that ended without an error; None if there is none."""
        launches = [launch for other, launch in self._known.values() if kernel is other and launch is not None]
        return launches[-1] if launches else None

    def idle(self) -> list[TileError]:
        """Returns an error (T419) for each size given by the user that no check has used."""
        return [TileError(f"no kernel that was checked without a call has a dimension or number parameter {name}", code="T419",
                          help=f"remove --size {name}; --size has no effect on the calls of a script")
                for name in self._sizes if name not in self._used]
