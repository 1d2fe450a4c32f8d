"""Checks kernels without computing values: what ``tilelang-npu check`` does with each call of a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any

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
"""The size of a symbolic dimension for which no call and no option gives a value."""
_ASSUMED_NUMBER = 1
"""The value of a number among the arguments for which no call and no option gives a value."""


@dataclass(frozen=True)
class KernelCheck:
    """The check of one launch for one set of sizes.

    Attributes:
        kernel: the kernel's name; for a kernel with several ``T.Kernel``, the launch's.
        chip: the chip that it is compiled for.
        blocks: the number of blocks of the launch.
        sizes: a text with the values of symbolic dimensions and numbers, which marks assumed ones.
        done: the result of the check.
        findings: its hazards by cause; allowed ones are marked.
    """

    kernel: str
    chip: str
    blocks: int
    sizes: str
    done: Checked
    findings: list[Finding]


class Checker:
    """Checks the calls of kernels.

    Args:
        session: judges the hazards.
        sizes: values of symbolic dimensions and of numbers among the arguments, by name, for kernels that are not called.
        wanted: whether a kernel's checks are wanted. The calls of other kernels only get their times. None: all are wanted.

    Attributes:
        wanted: see above.
        looks: every wanted check, in the order of first calls.
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
        """Checks a call, once for each set of sizes. Returns the trace that has its times, or None after an error.

        Args:
            kernel: the kernel.
            call: its arguments.
            sizes: the text of the sizes, for a call with assumed ones.
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
        launch = joined(kernel.name, parts)
        for result in kernel.unwritten_results(launch, call):
            error = result.error()
            done.errors += [error] if error is not None else []
            done.notes += [result.warning()] if error is None and result.warning() else []
        return launch

    def look_alone(self, kernel: CompiledKernel) -> None:
        """Checks a kernel that is not called, with the sizes that are given by name, or assumed ones."""
        texts: list[str] = []

        def size(name: str, assumed: int) -> int:
            self._used.add(name)
            value = self._sizes.get(name, assumed)
            texts.append(f"{name}={value}" + ("" if name in self._sizes else " (assumed)"))
            return value

        symbols = {name: size(name, ASSUMED_SIZE) for name in kernel.signature.symbols}
        values: list[Any] = [parameter.dtype.numpy.type(size(parameter.name, _ASSUMED_NUMBER)) if shape is None
                             else np.zeros(shape, parameter.dtype.numpy) for parameter, shape in kernel.input_shapes(symbols)]
        self.look_at(kernel, kernel.signature.bind(values), ", ".join(texts))

    def has_seen(self, kernel: CompiledKernel) -> bool:
        """Whether a kernel was checked."""
        return any(kernel is other for other, _ in self._known.values())

    def idle(self) -> list[TileError]:
        """Returns an error for each given size that no kernel used."""
        return [TileError(f"no kernel that was checked by itself has a dimension or number {name}", code="T419",
                          help=f"remove --size {name}; a script's own calls have their own sizes")
                for name in self._sizes if name not in self._used]
