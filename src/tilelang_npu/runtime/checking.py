"""Looking at kernels in place of running them: what ``tilelang-npu check`` does to each launch of a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.runtime import listeners
from tilelang_npu.runtime.environment import most_ops
from tilelang_npu.runtime.sanitizer import Sanitizer

if TYPE_CHECKING:
    from tilelang_npu.runtime.binding import BoundCall
    from tilelang_npu.runtime.kernel import JITKernel
    from tilelang_npu.simulator import AnyLaunch, Launch
    from tilelang_npu.simulator.result.static_check import Checked
    from tilelang_npu.simulator.sanitizer.findings import Finding

__all__ = ["SIZE", "Checker", "Look"]

SIZE = 256
"""A symbolic dimension that no call and no option gives a value."""
NUMBER = 1
"""A number among the arguments that no call and no option gives."""


@dataclass(frozen=True)
class Look:
    """One kernel at one set of sizes.

    Attributes:
        kernel: its name; of a kernel with several ``T.Kernel`` the launch's.
        chip: the chip it is compiled for.
        blocks: blocks of the launch.
        sizes: values of symbolic dimensions and numbers, with a word beside those that were assumed.
        done: what was found.
        findings: the same by cause, with what is let pass marked.
    """

    kernel: str
    chip: str
    blocks: int
    sizes: str
    done: Checked
    findings: list[Finding]


class Checker:
    """Checks kernels.

    Args:
        session: judges the hazards.
        sizes: values of symbolic dimensions and of numbers among the arguments, by name.
        wanted: whether a kernel is to be told of; of the others a call gets its times alone. None: of all.

    Attributes:
        wanted: the same.
        looks: every kernel at every set of sizes, in the order of first calls.
    """

    def __init__(self, session: Sanitizer, sizes: Mapping[str, int],
                 wanted: Callable[[JITKernel], bool] | None = None) -> None:
        self.session = session
        self.wanted = wanted
        self.looks: list[Look] = []
        self._sizes = sizes
        self._used: set[str] = set()
        self._lock = RLock()
        self._known: dict[object, tuple[JITKernel, AnyLaunch | None]] = {}

    def look_at(self, kernel: JITKernel, call: BoundCall, assumed: str = "") -> AnyLaunch | None:
        """Check a call, once for each set of sizes; the trace that has its times, None where it came to an error.

        Args:
            kernel: the kernel.
            call: its arguments.
            assumed: what to say of the sizes in place of their values.
        """
        numbers = {parameter.name: value.item() for parameter, value in zip(kernel.params, call.values, strict=True)
                   if parameter.shape is None}
        values = {**call.symbols, **numbers}
        key = id(kernel), tuple(values.items())
        with self._lock:
            launch = self._looked(key, kernel, call, values, assumed)
        if launch is not None:
            listeners.launched(kernel, launch)
        return launch

    def _looked(self, key: object, kernel: JITKernel, call: BoundCall, values: Mapping[str, int],
                assumed: str) -> AnyLaunch | None:
        from tilelang_npu.simulator.result.call_launches import joined
        from tilelang_npu.simulator.result.static_check import check

        if key not in self._known:
            sizes = assumed or ", ".join(f"{name}={value}" for name, value in values.items())
            parts: list[Launch | None] = []
            for program, blocks in zip(kernel.programs, kernel.blocks(call), strict=True):
                before = [part for part in parts if part is not None]
                made = call.made if len(before) == len(parts) else ()
                done = check(program, kernel.machine_arguments(call), blocks, most_ops=most_ops(), made=made, before=before)
                if self.wanted is None or self.wanted(kernel):
                    findings = self.session.judge(done.hazards, program, program.name, kernel.prim_func)
                    self.looks.append(Look(program.name, kernel.chip.name, blocks, sizes, done, findings))
                parts.append(done.launch)
            known = [part for part in parts if part is not None]
            self._known[key] = kernel, joined(kernel.name, known) if len(known) == len(parts) else None
            if known and len(known) == len(parts):
                for left in kernel.left_out(joined(kernel.name, known), call):
                    error = left.error()
                    done.errors += [error] if error is not None else []
                    done.notes += [left.warning()] if error is None and left.warning() else []
        return self._known[key][1]

    def look_alone(self, kernel: JITKernel) -> None:
        """Check a kernel that nobody calls: its sizes are given by name, or assumed."""
        said: list[str] = []

        def size(name: str, otherwise: int) -> int:
            self._used.add(name)
            value = self._sizes.get(name, otherwise)
            said.append(f"{name}={value}" + ("" if name in self._sizes else " (assumed)"))
            return value

        symbols = {name: size(name, SIZE) for name in kernel.signature.symbols}
        values: list[Any] = [parameter.dtype.numpy.type(size(parameter.name, NUMBER)) if shape is None
                             else np.zeros(shape, parameter.dtype.numpy) for parameter, shape in kernel.input_shapes(symbols)]
        self.look_at(kernel, kernel.signature.bind(values), ", ".join(said))

    def has_seen(self, kernel: JITKernel) -> bool:
        """Whether a kernel was checked."""
        return any(kernel is other for other, _ in self._known.values())

    def idle(self) -> list[TileError]:
        """An error for each size that no kernel asked for."""
        return [TileError(f"no kernel that was checked by itself has a dimension or number {name}", code="T419",
                          help=f"remove --size {name}; a script's own calls have their own sizes")
                for name in self._sizes if name not in self._used]
