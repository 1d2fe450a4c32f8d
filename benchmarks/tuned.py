"""Compares the hand-written parameters of each example, and of the last step of each ladder, with those that tuning finds.

    python benchmarks/tuned.py [--only matmul,gemm,...]

The numeric parameters of a factory that have defaults (tiles, stages, parts) are halved and doubled, one or two at a time, and
each configuration is timed without values: examples at their first size and, if that is small for real workloads, also at a
size of ``LONG``; ladders at all large sizes. Each row has the time of the hand-written parameters, the tuned time, and the
parameters that are faster. Tiles that fit only in strips (``split-tiles``) are excluded, since they would be another kernel.
The command fails if other parameters are faster by a hundredth at one size and slower at none. The figures are the same in
every run.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import io
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from runpy import run_path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import ladders
import numpy as np
from numpy.typing import NDArray

from tilelang_npu import AutoTuner, TileError

ROOT = Path(__file__).resolve().parent.parent
LEAST = 0.01
"""The relative gain from which on a configuration is faster."""
GIVEN = ("cores", "blocks")
"""Parameters that are not tuned: the number of blocks is the chip's number of cores."""

LONG = {"gemm": (4096, 4096, 4096), "gemm_expert": (4096, 4096, 4096), "causal_attention": (8, 4096, 128),
        "causal_attention_expert": (8, 4096, 128), "flash_attention": (4096, 4096, 128),
        "flash_attention_expert": (4096, 4096, 128), "multi_head_attention": (8, 4096, 4096)}
"""Further sizes at which examples are timed: parameters that are faster at the first size alone may be slower in real
workloads."""
PATIENCE = 3600.0
"""Time limit in seconds for a configuration; it is high, so that the result does not depend on other load of the machine."""


@dataclass(frozen=True)
class Entry:
    """A kernel with hand-written parameters.

    Attributes:
        name: the name of the example or of the ladder.
        factory: its factory.
        sizes: arguments of the factory, at each of which a configuration is timed.
        check: raises an error if kernels of a factory give other values, since a parameter may be part of a data format.
    """

    name: str
    factory: Callable[..., Any]
    sizes: Sequence[Mapping[str, Any]]
    check: Callable[[Callable[..., Any]], None]

    @property
    def numbers(self) -> dict[str, int]:
        """The tuned parameters, with their hand-written values."""
        parameters = inspect.signature(self.factory).parameters.values()
        given = {name for size in self.sizes for name in size}
        return {one.name: one.default for one in parameters
                if type(one.default) is int and one.name not in (*GIVEN, *given)}


@dataclass(frozen=True)
class Compared:
    """The result of tuning.

    Attributes:
        by_hand: microseconds at each size with the hand-written parameters.
        best: microseconds of the fastest configuration that is slower at no size; ``by_hand`` if there is none.
        numbers: the parameters of this configuration that differ.
        tried: the number of configurations that fit the chip.
        refused: the number of those that do not.
    """

    entry: Entry
    by_hand: tuple[float, ...]
    best: tuple[float, ...]
    numbers: Mapping[str, int]
    tried: int
    refused: int

    @property
    def gain(self) -> float:
        """The largest relative gain at a size."""
        return max(1 - best / hand for best, hand in zip(self.best, self.by_hand, strict=True))

    @property
    def beaten(self) -> bool:
        return self.gain > LEAST


def space(numbers: Mapping[str, int]) -> list[dict[str, int]]:
    """Yields the hand-written parameters, then all configurations with one or two of them halved or doubled."""
    near = {name: [half for half in (value // 2, 2 * value) if half] for name, value in numbers.items()}
    found = [dict(numbers)]
    for count in (1, 2):
        for names in itertools.combinations(numbers, min(count, len(numbers))):
            found += [{**numbers, **dict(zip(names, values, strict=True))}
                      for values in itertools.product(*(near[name] for name in names))]
    return [one for place, one in enumerate(found) if one not in found[:place]]


def compare(entry: Entry) -> Compared | None:
    """Times all configurations of an entry; returns None if the time depends on data, or if nothing can be tuned."""
    configs = space(entry.numbers)
    if len(configs) == 1 or entry.factory(**entry.sizes[0]).trace() is None:
        return None
    times: dict[tuple[tuple[str, int], ...], list[float]] = {tuple(config.items()): [] for config in configs}
    for size in entry.sizes:
        tuner = AutoTuner(entry.factory, [{**size, **config} for config in configs]).set_profile_args(skip_check=True)
        with mock.patch.dict(os.environ, {"TILELANG_NPU_WITHOUT": "split-tiles"}):
            tried = tuner.run(timeout=PATIENCE).tried
        for latency, config in tried:
            times[tuple((name, config[name]) for name in entry.numbers)].append(1000 * latency)
    whole = {config: tuple(us) for config, us in times.items() if len(us) == len(entry.sizes)}
    by_hand = whole[tuple(entry.numbers.items())]
    no_slower = [config for config, us in whole.items()
                 if all(one <= hand for one, hand in zip(us, by_hand, strict=True))]
    ranked = sorted(no_slower, key=lambda config: sum(one / hand for one, hand in zip(whole[config], by_hand, strict=True)))
    best = next(config for config in ranked if dict(config) == entry.numbers or _right(entry, dict(config)))
    moved = {name: value for name, value in best if value != entry.numbers[name]}
    return Compared(entry, by_hand, whole[best], moved, len(whole), len(configs) - len(whole))


def _right(entry: Entry, config: Mapping[str, int]) -> bool:
    try:
        entry.check(functools.partial(entry.factory, **config))
    except (AssertionError, TileError):
        return False
    return True


def _as_by_hand(names: Mapping[str, Any], factory: Callable[..., Any]) -> Callable[[Callable[..., Any]], None]:
    """Returns a check that an example computes the same values with other parameters."""
    shape = names["SHAPES"][0]

    def values(made: Callable[..., Any]) -> Sequence[NDArray[Any]]:
        arrays = names["inputs"](*shape)
        given = made(*shape)(*arrays)
        given = arrays[-1] if given is None else given
        return list(given) if isinstance(given, (tuple, list)) else [given]

    def check(other: Callable[..., Any]) -> None:
        for one, two in zip(values(other), values(factory), strict=True):
            np.testing.assert_allclose(one.astype(np.float64), two.astype(np.float64), rtol=1e-2, atol=1e-2)

    return check


def entries(only: Sequence[str] = ()) -> Iterator[Entry]:
    """Yields the selected examples that have sizes, then the selected ladders."""
    for file in sorted((ROOT / "examples").glob("*.py")):
        if not only or file.stem in only:
            names = run_path(str(file), run_name=file.stem)
            factory = next((one for one in names.values() if getattr(one, "__module__", "") == file.stem
                            and hasattr(one, "compile")), None)
            if "SHAPES" in names and factory is not None:
                shapes = [names["SHAPES"][0], *([LONG[file.stem]] if file.stem in LONG else [])]
                sizes = [dict(zip(inspect.signature(factory).parameters, shape, strict=False)) for shape in shapes]
                yield Entry(file.stem, factory, sizes, _as_by_hand(names, factory))
    for folder in ladders.folders():
        if not only or folder.name in only:
            ladder = ladders.load(folder)
            yield Entry(folder.name, ladders.steps(folder)[-1].factory(), ladder.large, ladder.check_values)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="examples and ladders, separated by commas; default: all")
    options = parser.parse_args(arguments)
    beaten = 0
    print(f"{'kernel':24} {'tried':>5} {'refused':>7}  {'by hand, us':>18} {'tuned, us':>18}  faster with")
    for entry in entries([name for name in options.only.split(",") if name]):
        with contextlib.redirect_stderr(io.StringIO()):  # warnings of configurations that do not fit
            found = compare(entry)
        if found is None:
            continue
        beaten += found.beaten
        hand, best = (" ".join(f"{us:.1f}" for us in row) for row in (found.by_hand, found.best))
        said = " ".join(f"{name}={value}" for name, value in found.numbers.items()) if found.beaten else "-"
        print(f"{entry.name:24} {found.tried:5} {found.refused:7}  {hand:>18} {best:>18}  {said}", flush=True)
    print(f"{beaten} beaten")
    return int(beaten > 0)


if __name__ == "__main__":
    sys.exit(main())
