"""Compares two versions of each kernel with the same tiles: Developer mode, and Expert mode with explicit buffers, scopes,
flags and slots.

The kernels are those of ``examples/``: NAME.py and NAME_expert.py. Cycles are those of the simulated chip, from the start of
the first block to the end of the last, and do not depend on the machine that simulates.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@dataclass(frozen=True)
class Pair:
    """A kernel with a Developer and an Expert version.

    Attributes:
        name: the example.
        kernel: the name of its factory.
        shapes: sizes to measure, the smallest first.
        tiles: further arguments of both factories.
        depths: alternative arguments of the Developer factory, of which the fastest is used.
        by_hand: alternative arguments of the Expert factory, of which the fastest is used.
        tolerance: relative and absolute, for comparisons with NumPy and between the versions.
    """

    name: str
    kernel: str
    shapes: tuple[tuple[int, ...], ...]
    tiles: Mapping[str, int] = field(default_factory=dict)
    depths: tuple[Mapping[str, int], ...] = ({},)
    by_hand: tuple[Mapping[str, int], ...] = ({},)
    tolerance: tuple[float, float] = (0.0, 0.0)


PAIRS = (
    Pair("gemm", "gemm", ((512, 512, 512), (1024, 1024, 1024)), {"tile_N": 256, "tile_K": 128}, tolerance=(2e-3, 3e-2)),
    Pair("softmax", "softmax", ((1000, 640), (4096, 640)), tolerance=(1e-5, 1e-7)),
    Pair("rms_norm", "rms_norm", ((1000, 512), (4096, 1024)), tolerance=(2e-3, 2e-3)),
    Pair("flash_attention", "attention", ((384, 512, 128), (128, 4096, 128), (3072, 2048, 128)), {"tile": 128},
         ({"stages": 2}, {"stages": 3}), ({"ahead": 1}, {"ahead": 2}, {"ahead": 3}), (1e-2, 5e-3)),
    Pair("minicv", "exp_of_product", ((512, 512, 128), (2048, 1536, 256)), {"tile_M": 128}, tolerance=(2e-3, 1e-3)),
    Pair("w4a8_gemm", "w4a8_gemm", ((256, 256, 1024), (768, 512, 2048))),
    Pair("linear_relu", "linear_relu", ((512, 512, 512), (2048, 1536, 1024)), tolerance=(2e-3, 3e-2)),
    Pair("persistent_gemm", "persistent_gemm", ((1024, 1536, 512), (2048, 2048, 1024)), {},
         ({"tile_K": 128}, {"tile_K": 256}), ({"tile_K": 128}, {"tile_K": 256}), (2e-3, 3e-2)),
    Pair("grouped_gemm", "grouped_gemm", ((512, 4, 512, 256), (3584, 8, 1024, 1024)), {},
         ({"tile_K": 128}, {"tile_K": 256}), ({"tile_K": 128}, {"tile_K": 256}), (2e-3, 3e-2)),
    Pair("causal_attention", "causal_attention", ((2, 512, 128), (2, 2048, 128)), {"tile": 128},
         ({"stages": 2}, {"stages": 3}), ({"ahead": 1}, {"ahead": 2}, {"ahead": 3}), (1e-2, 5e-3)),
    Pair("decode_attention", "decode_attention", ((2, 32, 4, 2048, 128), (4, 64, 8, 4096, 128)), {"splits": 3},
         ({"stages": 2}, {"stages": 3}), ({"ahead": 1}, {"ahead": 2}), (1e-2, 5e-3)),
)


@dataclass(frozen=True)
class Measured:
    """The cycles of both versions of a kernel at one size.

    Attributes:
        difference: the largest difference between elements of both results.
    """

    pair: Pair
    shape: tuple[int, ...]
    developer: float
    expert: float
    difference: float

    @property
    def ratio(self) -> float:
        return self.developer / self.expert


def measure(pair: Pair, shape: Sequence[int]) -> Measured:
    """Runs both versions and compares their values with NumPy's and with each other.

    Raises:
        AssertionError: values differ by more than the tolerance.
    """
    developer, expert = (importlib.import_module(pair.name + suffix) for suffix in ("", "_expert"))
    inputs = developer.inputs(*shape)
    expected = developer.expected(*inputs)
    relative, absolute = pair.tolerance
    cycles: dict[Any, list[float]] = {developer: [], expert: []}
    results: list[Any] = []
    chosen = [(developer, choice) for choice in pair.depths] + [(expert, choice) for choice in pair.by_hand]
    for module, choice in chosen:
        kernel = getattr(module, pair.kernel)(*shape, **pair.tiles, **choice)
        results.append(np.asarray(kernel(*inputs), np.float64))
        np.testing.assert_allclose(results[-1], expected, rtol=relative, atol=absolute)
        np.testing.assert_allclose(results[-1], results[0], rtol=relative, atol=absolute)
        cycles[module].append(kernel.last_launch.cycles)
    difference = max(float(np.max(np.abs(result - results[0]))) for result in results)
    return Measured(pair, tuple(shape), min(cycles[developer]), min(cycles[expert]), difference)


def find(name: str) -> Pair:
    """Returns the pair with a name."""
    return next(pair for pair in PAIRS if pair.name == name)


def table() -> Iterator[str]:
    """Yields the lines of the table of all pairs, in Markdown, as they are computed."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    yield "| kernel | shape | Developer, cycles | Expert, cycles | ratio | largest difference |"
    yield "|---|---|---:|---:|---:|---:|"
    for pair in PAIRS:
        for shape in pair.shapes:
            it = measure(pair, shape)
            yield (f"| {pair.name} | {' x '.join(map(str, shape))} | {it.developer:.0f} | {it.expert:.0f} | {it.ratio:.3f} "
                   f"| {it.difference:.1g} |")


__all__ = ["EXAMPLES", "PAIRS", "Measured", "Pair", "find", "measure", "table"]
