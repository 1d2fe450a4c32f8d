"""Checks that an edited kernel computes what the kernel as it is computes, and that its run has no hazards."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.checks.rounding_spread import differs, distance
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.kernel.listeners import Listener, listen
from tilelang_npu.runtime.settings.log import silenced

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding

_UNITS = 8
"""Units in the last place by which two orders of the same operations can differ, relative to the element, or to the root mean
square of its row where that is larger. Sums of n terms differ by sqrt(n) units of float32, which is below one unit of the types
of 16 bits up to n = 4e6, and below 8 units of float32 up to n = 64."""
_MAX_INTEGER = 4
"""Generated integers are below this number, as they may be indices."""


class Verdict(Enum):
    """How the results of an edited kernel compare with those of the kernel as it is."""

    EQUAL = "equal bit by bit"
    ROUNDED = "equal within the rounding of the element type"
    DIFFERENT = "different results"
    HAZARD = "a hazard"


class _Hazards(Listener):
    """Searches runs for hazards, and keeps their texts."""

    def __init__(self) -> None:
        self.thread, self.sanitizer = threading.get_ident(), Sanitizer([])
        self.found: list[str] = []

    def on_launched(self, kernel: CompiledKernel, launch: AnyLaunch, findings: list[Finding]) -> None:
        self.found += [str(finding) for finding in findings if finding.allowed is None]


class ResultComparison:
    """Runs kernels with the same arguments, and compares their results with those of the kernel as it is.

    Args:
        kernel: the kernel as it is.
        arguments: the arguments of a call, in the order of the parameters that callers pass; None to generate them.
    """

    def __init__(self, kernel: CompiledKernel, arguments: Sequence[object] | None = None) -> None:
        self._arguments = list(arguments) if arguments is not None else generated(kernel)
        self._wanted = _results(kernel, self._arguments)[0]

    def verdict(self, kernel: CompiledKernel) -> tuple[Verdict, str]:
        """Runs an edited kernel, and returns how its results compare, with a text that says where they differ."""
        try:
            results, hazards = _results(kernel, self._arguments)
        except TileError as error:
            return Verdict.DIFFERENT, f"its run ends with {error.code}: {error.message}"
        if hazards:
            return Verdict.HAZARD, hazards[0].splitlines()[0]
        verdict = Verdict.EQUAL
        for position, (got, wanted) in enumerate(zip(results, self._wanted, strict=True)):
            differing = differs(got, wanted)
            if not differing.any():
                continue
            if got.dtype.kind in "iub" or (distance(got, wanted) > _allowed(wanted)).any():
                index = tuple(int(part) for part in np.argwhere(differing)[0])
                text = f"result {position} differs in {int(differing.sum())} elements, first at {list(index)}"
                return Verdict.DIFFERENT, text
            verdict = Verdict.ROUNDED
        return verdict, ""


def _allowed(wanted: Any) -> Any:
    """Returns for each element the largest difference that another order of operations explains."""
    info: Any = ml_dtypes.finfo
    unit = float(info(wanted.dtype if wanted.dtype.itemsize < 4 else np.float32).eps)
    wide = np.abs(wanted.astype(np.float64))
    finite = np.where(np.isfinite(wide), wide, 0.0)
    rows = np.sqrt(np.mean(finite * finite, axis=-1, keepdims=True)) if finite.ndim else finite
    return _UNITS * unit * np.maximum(finite, rows)


def generated(kernel: CompiledKernel) -> list[object]:
    """Returns arguments for a kernel: standard normal floats, and integers from 0 to 3, from a fixed seed.

    Raises:
        TileError: T810 a size of a tensor is known only from the arguments of a call.
    """
    rng = np.random.default_rng(0)
    made: list[object] = []
    for position in kernel.signature.inputs:
        one = kernel.params[position]
        if one.shape is None or not all(isinstance(size, int) for size in one.shape):
            raise TileError(f"{kernel.name} has the parameter {one.name} whose value or sizes only a call knows", code="T810",
                            help="call the kernel in the script, so that its arguments are known")
        shape = tuple(size for size in one.shape if isinstance(size, int))
        values = rng.standard_normal(shape) if one.dtype.is_float else rng.integers(0, _MAX_INTEGER, size=shape)
        made.append(values.astype(one.dtype.numpy))
    return made


def _results(kernel: CompiledKernel, arguments: Sequence[object]) -> tuple[list[Any], list[str]]:
    """Runs a kernel on copies of arguments, and returns the arrays that it writes and the hazards of the run."""
    copies = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    with silenced(), listen(hazards := _Hazards()):
        returned = kernel(*copies)
    written = [copies[index] for index, position in enumerate(kernel.signature.inputs)
               if position in kernel.signature.written]
    made = [] if returned is None else returned if isinstance(returned, (list, tuple)) else [returned]
    return [np.asarray(one) for one in (*written, *made)], hazards.found
