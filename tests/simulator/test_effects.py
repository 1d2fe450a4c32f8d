"""What ops say they do to their operands is what they do: everything else in memory may be noise."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from captured import KERNELS, Run, captured, copies
from frontend.conftest import source  # noqa: F401  (a fixture)
from ops import surface
from simulator.poisoning import Poisoner
from tilelang_npu import ops
from tilelang_npu.ops import DType, dtype

DEEP = int(os.environ.get("TILELANG_EFFECTS", "1"))
"""How often each op of a kernel is checked, and how many of an example's kernels are run; the tests' own are few."""


def _texts(runs: list[Run]) -> list[Run]:
    """One run of each text, of few blocks."""
    found: dict[str, Run] = {}
    for run in sorted(runs, key=lambda each: each.launch.blocks):
        found.setdefault(run.text, run)
    return list(found.values())[:DEEP]


@pytest.mark.parametrize("script", KERNELS, ids=[file.stem for file in KERNELS])
def test_ops_of_the_examples_do_what_they_say(script: Path) -> None:
    for run in _texts(captured(script)):
        poisoner = Poisoner(run.text, DEEP)
        poisoner.run(copies(run.before), min(run.launch.blocks, 1 + DEEP))
        assert poisoner.checked
        assert poisoner.faults == []


# -- the op tables -----------------------------------------------------------------------------------------------------

IN_A_KERNEL = 8
"""Calls that are compiled as one kernel."""


class Calls:
    """Calls of operations, compiled as one kernel: buffers that are loaded, worked on, and stored back."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.statements: list[str] = []
        self._rng = np.random.default_rng(1)

    def add(self, call: surface.Call) -> None:
        """Add a call on buffers of its own."""
        names = {name: f"b{len(self.arrays) + place}" for place, name in enumerate(call.buffers)}
        for name, (shape, element) in call.buffers.items():
            kind = np.dtype(element.numpy)
            numbers = np.zeros(shape) if name == "i" else self._rng.integers(1, 2 if element.mlir == "i1" else 100, shape)
            self.arrays[names[name]] = numbers.astype(kind)
        self.statements.append(re.sub(r"\b[a-z]\b", lambda word: names.get(word[0], word[0]), call.statement))

    def compiled(self, source: Callable[[str], Any], dialect: str) -> Any:
        """The kernel."""
        kinds = {name: str(dtype(array.dtype)) for name, array in self.arrays.items()}
        lines = [f"{name} = T.alloc_ub({array.shape}, {kinds[name]!r})" for name, array in self.arrays.items()]
        lines += [f"T.copy({name.upper()}, {name})" for name in self.arrays]
        lines += [*self.statements, *(f"T.copy({name}, {name.upper()})" for name in self.arrays)]
        parameters = ", ".join(f"{name.upper()}: T.Tensor({self.arrays[name].shape}, {kind!r})" for name, kind in kinds.items())
        text = surface.kernel_text(lines, parameters).replace("T.Kernel(1, is_npu=True) as (cid, vid)", "T.Kernel(1) as cid")
        return tilelang.compile(source(text).main, target=dialect)


def _kinds(entry: ops.Operation, name: str) -> list[DType]:
    legal = [kind for kind in dict.fromkeys((surface.first_type(entry, name), *entry.dtypes))
             if surface.is_legal(entry, kind, surface.dialect_of(name))]
    return legal if DEEP > 1 else legal[:1]


def _by_kernel() -> list[Any]:
    found: dict[str, list[surface.Call]] = {}
    for entry, name in surface.covered():
        for kind in _kinds(entry, name):
            found.setdefault(surface.dialect_of(name), []).append(surface.example(name, entry, kind))
    return [pytest.param(dialect, calls[first:first + IN_A_KERNEL], id=f"{dialect}-{calls[first].name}")
            for dialect, calls in found.items() for first in range(0, len(calls), IN_A_KERNEL)]


@pytest.mark.parametrize(("dialect", "calls"), _by_kernel())
def test_ops_of_the_tables_do_what_they_say(source: Any, dialect: str, calls: list[surface.Call]) -> None:  # noqa: F811
    made = Calls()
    for call in calls:
        made.add(call)
    kernel = made.compiled(source, dialect)
    poisoner = Poisoner(kernel.mlir())
    poisoner.run(copies(list(made.arrays.values())), 1)
    assert poisoner.checked > len(calls)
    assert poisoner.faults == []


def test_an_op_that_says_less_than_it_does_is_found_out(source: Any) -> None:  # noqa: F811
    made = Calls()
    for name in ("tile.add", "tile.select", "tile.gather_mask", "reduce_sum", "tile.transpose", "tile.exp"):
        entry = next(each for each, called in surface.covered() if called == name)
        made.add(surface.example(name, entry, surface.first_type(entry, name)))
    poisoner = Poisoner(made.compiled(source, "ascendc").mlir(), lies=True)
    poisoner.run(copies(list(made.arrays.values())), 1)
    assert poisoner.faults == []
    assert poisoner.missed == []
    assert poisoner.told > 2 * len(made.statements)
