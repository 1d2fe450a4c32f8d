"""The text of a stage before and after each pass computes the same values, as a module of unknown origin.

A stage's text is run in three ways: with the passes after it; with the same passes except the next one, if that is optional;
and, if it is HIVM, with ``sim``, which completes modules of other tools, and runs a module with addresses unchanged, in program
order if waits are missing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from captured import KERNELS, Run, captured, copies
from tilelang_npu import simulator
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.runtime.kernel.foreign_modules import runnable
from tilelang_npu.transforms import pipeline
from transforms.pass_kernels import CALLS

PASSES = pipeline.stage_names()[1:]
IN_HIVM = PASSES[PASSES.index("lower-to-hivm"):]
UNORDERED = ("plan-memory", "guard-l0", "separate-statements")
"""Stages that have their addresses, and not yet their waits."""
NEEDED = {
    "split-tiles": "a memory has no room for the whole tiles",
    "split-launches": "a launch runs a function",
    "number-events": "the chip has eight",
    "vectorise-parallel": "HIVM has no such loop",
    "expand-composites": "HIVM has no such op",
    "legalise-types": "HIVM's ops do not take the type",
    "accumulate-in-ub": "no path leads from UB to L0C",
    "merge-core-loops": "each core waits for the other's loop",
    "order-hand-overs": "what is received is what was sent before",
    "infer-scopes": "HIVM's buffers have a memory",
    "assign-cores": "what asks for a core computes none",
    "hivm-cores": "what asks for a core computes none",
    "fold-accumulator-clear": "L0C has no fill",
    "lower-to-hivm": "the machine runs HIVM",
    "send-scalars": "no path leads from one scalar unit to the other",
    "cross-sync": "the cores run side by side",
    "plan-workspace": "the machine runs planned modules",
    "split-cores": "the machine runs planned modules",
    "plan-memory": "the machine runs planned modules",
}
"""Passes that a kernel which they change cannot do without, and why."""


class Compiled(NamedTuple):
    """A kernel with its arguments and its results."""

    kernel: Any
    arguments: list[Any]
    blocks: tuple[int, ...]
    right: list[bytes]

    def text(self, stage: str) -> str:
        text: str = self.kernel.mlir(stage, locations=True)
        return text

    def passed(self, stage: str, first: int) -> ModuleOp:
        """Returns the text of a stage after the passes from a number on."""
        module = parse_module(self.text(stage))
        for _, later in list(pipeline.kernel_passes(self.kernel._lowering.options))[first:]:
            later.apply(make_context(), module)
            module.verify()
        return module

    def run(self, module: ModuleOp) -> tuple[list[bytes], list[Any]]:
        """Returns the arrays after a run, and its hazards."""
        values = copies(self.arguments)
        found: list[Any] = []
        for one, blocks in zip(self.kernel.programs, self.blocks, strict=True):
            program = simulator.Program(module, self.kernel.chip, entry=one.name)
            blocks = blocks if program.block_dim is None else program.block_dim  # without make-persistent, there are more
            found += simulator.simulate(program, values, blocks=blocks, hazards=True).hazards
        seen = [value for place, value in enumerate(values) if place not in self.kernel.workspace_idx]
        return [value.tobytes() for value in seen if isinstance(value, np.ndarray)], found


@cache
def compiled(name: str) -> Compiled:
    make, arguments = CALLS[name]
    kernel = make()
    call = kernel.signature.bind(copies(arguments))
    found = Compiled(kernel, kernel.machine_arguments(call), kernel.blocks(call), [])
    right, hazards = found.run(parse_module(kernel.mlir()))
    assert hazards == []
    return found._replace(right=right)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("stage", PASSES)
def test_before_and_after_a_pass(stage: str, name: str) -> None:
    one, number = compiled(name), PASSES.index(stage)
    before = ["tile", *PASSES][number]
    if one.text(before) == one.text(stage):
        return
    assert print_module(one.passed(before, number)) == one.kernel.mlir()
    if stage not in NEEDED:
        assert one.run(one.passed(before, number + 1))[0] == one.right
    for form in (before, stage):
        if form in IN_HIVM:
            values, hazards = one.run(runnable(parse_module(one.text(form)), one.kernel.chip))
            assert values == one.right
            assert hazards == [] or form in UNORDERED


def test_each_pass_changes_a_kernel() -> None:
    def changes(stage: str, before: str) -> bool:
        return any(compiled(name).text(before) != compiled(name).text(stage) for name in CALLS)

    idle = [stage for before, stage in zip(["tile", *PASSES], PASSES, strict=False) if not changes(stage, before)]
    # Only TL_ASCEND_TAIL_MASK and --as upstream need these: test_mask_tails.py and tests/runtime/test_upstream_comparison.py.
    assert idle == ["mask-tails", "separate-statements"]


def kernels_of(script: Path) -> list[Run]:
    """A call of each kernel of a script."""
    return list({run.text: run for run in captured(script)}.values())


@pytest.mark.parametrize("script", KERNELS, ids=[file.stem for file in KERNELS])
def test_foreign_hivm_computes_what_the_kernel_does(script: Path) -> None:
    """The stage hivm-auto, read as another tool's module, which says nothing of how its author wants it compiled."""
    for run in kernels_of(script):
        module = runnable(parse_module(run.kernel.mlir("hivm-auto")), run.kernel.chip)
        values = copies(run.before)
        launch = simulator.simulate(module, values, chip=run.kernel.chip, blocks=run.launch.blocks, hazards=True)
        for made, expected in zip(values, run.after, strict=True):
            assert np.asarray(made).tobytes() == np.asarray(expected).tobytes()
        assert launch.hazards == []
