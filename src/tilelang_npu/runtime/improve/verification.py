"""Checks that an edited kernel computes what the kernel as it is computes, and that its run has no hazards."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.arguments.tensors import Argument, Array, as_array, is_tensor
from tilelang_npu.runtime.checks.result_comparison import Verdict, compared
from tilelang_npu.runtime.checks.rounding_spread import copied
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.kernel.listeners import Listener, listen
from tilelang_npu.runtime.reports.generated_inputs import generated_inputs
from tilelang_npu.runtime.settings.log import silenced

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding


class _Hazards(Listener):
    """Searches runs for hazards, and keeps those that no allowance permits."""

    def __init__(self) -> None:
        self.thread, self.sanitizer = threading.get_ident(), Sanitizer([])
        self.found: list[Finding] = []

    def on_launched(self, kernel: CompiledKernel, launch: AnyLaunch, findings: list[Finding]) -> None:
        self.found += [finding for finding in findings if finding.allowed is None]


class ResultComparison:
    """Runs kernels with the same arguments, and compares their results with those of the kernel as it is.

    Results are all arrays that the caller passes, as they are after the call, and all arrays that the call returns: an edited
    kernel may write an array that the kernel as it is only reads.

    Args:
        kernel: the kernel as it is.
        arguments: the arguments of a call, in the order of the parameters that callers pass; None to generate them.

    Attributes:
        hazards: the hazards of the kernel as it is.
    """

    def __init__(self, kernel: CompiledKernel, arguments: Sequence[object] | None = None) -> None:
        given = generated_inputs(kernel) if arguments is None else arguments
        self._arguments = [as_array(one) if is_tensor(one) else cast("Argument", one) for one in given]
        self._wanted, self.hazards = _run(kernel, self._arguments)

    def verdict(self, kernel: CompiledKernel) -> tuple[Verdict, str]:
        """Runs an edited kernel, and returns how its results compare, with a text that says where they differ."""
        try:
            results, hazards = _run(kernel, self._arguments)
        except TileError as error:
            return Verdict.DIFFERENT, f"its run ends with {error.code}: {error.message}"
        if hazards:
            return Verdict.HAZARD, str(hazards[0]).splitlines()[0]
        return compared(results, self._wanted)


def _run(kernel: CompiledKernel, arguments: Sequence[Argument]) -> tuple[dict[str, Array], list[Finding]]:
    """Runs a kernel on copies of arguments.

    Returns:
        The passed arrays after the call, by the name of the parameter, and the returned ones, as ``result 0`` and so on; and
        the hazards of the run.
    """
    copies = copied(arguments)
    with silenced(), listen(hazards := _Hazards()):
        returned = kernel(*copies)
    names = [kernel.params[position].name for position in kernel.signature.positions_passed(len(copies))]
    results = {name: value for name, value in zip(names, copies, strict=True) if isinstance(value, np.ndarray)}
    made = [] if returned is None else returned if isinstance(returned, (list, tuple)) else [returned]
    return {**results, **{f"result {place}": np.asarray(one) for place, one in enumerate(made)}}, hazards.found
