"""Compares classes of kernels with their roofline bound: products with the Cube cores' peak, row-wise kernels with HBM.

    python benchmarks/classes.py

Only times are computed, on the simulated Ascend910B2, including the launch; the figures are the same in every run. The peak is
that of all Cube cores in float16. L2 is empty when the launch begins (``--l2 cold``). The HBM bound is the time to read each
byte of the arguments once, and to write the results that do not fit into L2, at the measured rates (``docs/hardware.md``).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import ladders


@dataclass(frozen=True)
class Case:
    """A kernel at a size.

    Attributes:
        example, factory: the file of ``examples/`` and its factory.
        shape: the sizes that the factory is called with.
        tiles: further arguments of the factory.
        products: additions and multiplications of the kernel's products; 0 for row-wise kernels, which HBM bounds.
    """

    example: str
    factory: str
    shape: tuple[int, ...]
    tiles: Mapping[str, int] = field(default_factory=dict)
    products: int = 0


CASES = (
    Case("gemm", "gemm", (4096, 4096, 4096), {"tile_N": 256, "tile_K": 256}, 2 * 4096**3),
    Case("persistent_gemm", "persistent_gemm", (4096, 4096, 4096), {"tile_K": 256}, 2 * 4096**3),
    Case("multi_head_attention", "attention", (32, 8192, 8192), {}, 4 * 32 * 8192**2 * 128),
    Case("softmax", "softmax", (4096, 4096), {"tile": 2}),
    Case("softmax", "softmax", (32768, 4096), {"tile": 2}),
    Case("rms_norm", "rms_norm", (4096, 4096), {"tile": 2, "stages": 3}),
    Case("rms_norm", "rms_norm", (32768, 4096), {"tile": 2, "stages": 3}),
)


@dataclass(frozen=True)
class Measured:
    """The modelled time of a case.

    Attributes:
        us: the time of the launch, in microseconds.
        least: the roofline bound by the Cube cores or HBM, in microseconds.
        bound: the busiest pipe, and the memory that it waits for.
    """

    case: Case
    us: float
    least: float
    bound: str

    @property
    def share(self) -> float:
        return self.least / self.us


def measure(case: Case) -> Measured:
    """Traces the kernel of a case, and returns its times."""
    kernel = getattr(importlib.import_module(case.example), case.factory)(*case.shape, **case.tiles)
    with ladders.cold_l2():
        launch: Any = kernel.trace()
    chip = launch.chip
    if case.products:
        least = 1e6 * case.products / (chip.aic * 2 * chip.cube.m**2 * chip.cube.k_step["f16"] * chip.clock)
    else:
        written = {place % len(kernel.params) for place in kernel.out_idx}
        sizes = [int(np.prod(parameter.shape)) * parameter.dtype.nbytes for parameter in kernel.params]
        outputs = sum(sizes[place] for place in written)
        least = ladders.Work(read=sum(sizes) - outputs, written=outputs).memory_us(chip)
    return Measured(case, launch.time_us, least, launch.bound_by)


def table() -> Iterator[str]:
    """Yields the lines of the table as they are computed."""
    yield "| kernel | shape | time, us | bound, us | roof | share | bound by |"
    yield "|---|---|---:|---:|---|---:|---|"
    for one in map(measure, CASES):
        what = "Cube peak" if one.case.products else "HBM"
        yield (f"| {one.case.example}.py | {' x '.join(map(str, one.case.shape))} | {one.us:.1f} | {one.least:.1f} | {what} |"
               f" {one.share:.0%} | {one.bound} |")


if __name__ == "__main__":
    for line in table():
        print(line, flush=True)
