"""Figures of the kernels that a test ran, for baselines, budgets and reports of tests: time, bottleneck, on-chip memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.runtime.jit.recording import Tally
    from tilelang_npu.simulator import AnyLaunch


@dataclass(frozen=True)
class KernelFigures:
    """The figures of the runs of one kernel in a test.

    Attributes:
        label: the kernel's name, arguments and chip; ``#2`` follows for the second kernel with these.
        us: the mean modelled time of a call, in microseconds, rounded to nanoseconds.
        bound_by: the bottleneck of the last call; of several launches in a call, their different bottlenecks in order.
        memory: the number of bytes that the last call uses of each on-chip memory, by common name (``UB``, ``L1`` ...).
    """

    label: str
    us: float
    bound_by: str
    memory: dict[str, int]


def label_of(kernel: JITKernel) -> str:
    """Returns a kernel's name, arguments and chip: ``add(float32 64, float32 64) on Ascend910B2``."""
    arguments = ", ".join(f"{one.dtype} {'x'.join(map(str, one.shape))}" if one.shape is not None else str(one.dtype)
                          for one in kernel.params)
    return f"{kernel.name}({arguments}) on {kernel.chip.name}"


def mean_times(tallies: Iterable[Tally]) -> dict[str, float]:
    """Returns the mean modelled time of a call of each kernel in microseconds, by :attr:`KernelFigures.label`."""
    return {label: _mean(tally) for label, tally in _labelled(tallies)}


def figures_of(tallies: Iterable[Tally]) -> list[KernelFigures]:
    """Returns the figures of each kernel, in the order of the first runs."""
    return [KernelFigures(label, _mean(tally), ", ".join(dict.fromkeys(part.bound_by for part in tally.last.parts)),
                          memory_of(tally.last))
            for label, tally in _labelled(tallies)]


def memory_of(launch: AnyLaunch) -> dict[str, int]:
    """Returns the number of bytes that a call uses of each on-chip memory, by common name: of several launches, the largest."""
    used: dict[str, int] = {}
    for part in launch.parts:
        for memory, nbytes in part.memory.items():
            used[memory] = max(used.get(memory, 0), nbytes)
    return used


def _mean(tally: Tally) -> float:
    return round(tally.total_us / tally.count, 3)


def _labelled(tallies: Iterable[Tally]) -> list[tuple[str, Tally]]:
    labelled: list[tuple[str, Tally]] = []
    counts: dict[str, int] = {}
    for tally in tallies:
        label = label_of(tally.kernel)
        counts[label] = counts.get(label, 0) + 1
        labelled.append((label + (f" #{counts[label]}" if counts[label] > 1 else ""), tally))
    return labelled
