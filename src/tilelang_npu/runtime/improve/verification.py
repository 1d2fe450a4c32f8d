"""Checks that an edited kernel computes what the kernel as it is computes, and that its run has no hazards."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.arguments.tensors import Argument, Array, as_array, is_tensor
from tilelang_npu.runtime.checks.rounding_spread import copied, differs, distance
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.kernel.listeners import Listener, listen
from tilelang_npu.runtime.reports.generated_inputs import generated_inputs
from tilelang_npu.runtime.settings.log import silenced

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding

_UNITS = 8
"""Units in the last place by which two orders of the same operations can differ, relative to the element, or to the root mean
square of its row where that is larger. Sums of n terms differ by sqrt(n) units of float32, which is below one unit of the types
of 16 bits up to n = 4e6, and below 8 units of float32 up to n = 64."""


class Verdict(Enum):
    """How the results of an edited kernel compare with those of the kernel as it is."""

    EQUAL = "equal bit by bit"
    ROUNDED = "equal within the rounding of the element type"
    DIFFERENT = "different results"
    HAZARD = "a hazard"


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
        verdict = Verdict.EQUAL
        for name, wanted in self._wanted.items():
            got = results[name]
            differing = differs(got, wanted)
            if not differing.any():
                continue
            if got.dtype.kind in "iub" or (distance(got, wanted) > _allowed(wanted)).any():
                index = tuple(int(part) for part in np.argwhere(differing)[0])
                return Verdict.DIFFERENT, f"{name} differs in {int(differing.sum())} elements, first at {list(index)}"
            verdict = Verdict.ROUNDED
        return verdict, ""


def _allowed(wanted: Array) -> Array:
    """Returns for each element the largest difference that another order of operations explains."""
    info: Any = ml_dtypes.finfo
    unit = float(info(wanted.dtype if wanted.dtype.itemsize < 4 else np.float32).eps)
    wide = np.abs(wanted.astype(np.float64))
    finite = np.where(np.isfinite(wide), wide, 0.0)
    rows = np.sqrt(np.mean(finite * finite, axis=-1, keepdims=True)) if finite.ndim else finite
    return _UNITS * unit * np.maximum(finite, rows)


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
