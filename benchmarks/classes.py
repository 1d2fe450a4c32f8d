"""The classes of kernels beside what bounds each: products against the Cube cores' peak, rows against HBM.

    python benchmarks/classes.py

Nothing is computed but times, on the simulated Ascend910B2, launch included; the figures are the same in every run. The peak is
that of all Cube cores in float16. L2 holds nothing when the launch begins (``--l2 cold``). HBM takes at least the time to read
each byte of the arguments once, and to write those that L2 does not keep until the launch is over, at the rates that are
measured (``docs/hardware.md``).
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
        shape: what the factory is given for its sizes.
        tiles: what it is given besides.
        products: additions and multiplications of the products that it is there for; of none where it moves rows.
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
    """What is modelled of a case.

    Attributes:
        us: the time of the launch.
        least: microseconds that the Cube cores or HBM take for it at least.
        bound: the busiest pipe, and what it waits for.
    """

    case: Case
    us: float
    least: float
    bound: str

    @property
    def share(self) -> float:
        return self.least / self.us


def measure(case: Case) -> Measured:
    """Trace it."""
    kernel = getattr(importlib.import_module(case.example), case.factory)(*case.shape, **case.tiles)
    with ladders.nothing_in_l2():
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
    """The lines of the table, as they are measured."""
    yield "| kernel | shape | time, us | least, us | of what | share | bound by |"
    yield "|---|---|---:|---:|---|---:|---|"
    for one in map(measure, CASES):
        what = "Cube peak" if one.case.products else "HBM"
        yield (f"| {one.case.example}.py | {' x '.join(map(str, one.case.shape))} | {one.us:.1f} | {one.least:.1f} | {what} |"
               f" {one.share:.0%} | {one.bound} |")


if __name__ == "__main__":
    for line in table():
        print(line, flush=True)
