"""The launches of a script's kernels, as the vendor's profilers list them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.target.chip_data import FunctionCore

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.simulator import AnyLaunch

__all__ = ["ACCELERATORS", "LaunchedKernel", "csv_text", "launched_kernels"]

ACCELERATORS: dict[FunctionCore, str] = {"AIV": "AI_VECTOR_CORE", "AIC": "AI_CORE", "MIX": "MIX_AIC"}
"""The vendor's names of the cores that execute a kernel."""


@dataclass(frozen=True)
class LaunchedKernel:
    """A recorded launch of a kernel.

    Attributes:
        name: the kernel's name.
        step: the number of the step in which the kernel was launched; None if the profile has no schedule.
        start_us: the modelled start time in microseconds.
        duration_us: the modelled duration in microseconds.
        cores: the cores that execute the kernel: ``AIV``, ``AIC`` or ``MIX``.
        blocks: the number of blocks.
        mixed_blocks: the number of Vector cores of all blocks if the kernel uses both cores, otherwise 0.
    """

    name: str
    step: int | None
    start_us: float
    duration_us: float
    cores: FunctionCore
    blocks: int
    mixed_blocks: int


def launched_kernels(kernel: JITKernel, launch: AnyLaunch, step: int | None = None) -> list[LaunchedKernel]:
    """Returns the launches of one call of a kernel that has just ended: one for each ``T.Kernel``.

    Args:
        kernel: the kernel.
        launch: its last launch.
        step: the number of the profile's step; None if there is none.
    """
    found = []
    start = listeners.clock_us() - launch.time_us
    for part in launch.parts:
        program = part.recorded.program
        cores: FunctionCore = "MIX" if program.mixed else program.functions[0].core
        name = kernel.name if len(launch.parts) == 1 else part.name
        vectors = sum(program.functions[index].core == "AIV" for index, _ in program.lanes) if program.mixed else 0
        found.append(LaunchedKernel(name, step, start, part.time_us, cores, part.blocks, vectors * part.blocks))
        start += part.time_us
    return found


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Returns rows as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
