"""A stage is its text: read back from it, the passes behind it make the same kernel, and foreign HIVM computes what it says.

Each pass on HIVM is so run on what its predecessors printed, not only on what they left in memory.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from captured import KERNELS, Run, captured, copies
from tilelang_npu import simulator
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.runtime.foreign import runnable
from tilelang_npu.transforms import pipeline


def kernels_of(script: Path) -> list[Run]:
    """A call of each kernel of a script."""
    return list({run.text: run for run in captured(script)}.values())


@pytest.mark.parametrize("script", KERNELS, ids=[file.stem for file in KERNELS])
def test_passes_go_on_from_the_text_of_a_stage(script: Path) -> None:
    for run in kernels_of(script):
        kernel = run.kernel
        named = list(pipeline._passes(kernel._lowering.options))
        first = [name for name, _ in named].index("lower-to-hivm")
        for number in range(first, len(named) - 1):
            module = parse_module(kernel.mlir(named[number][0], locations=True))
            for _, later in named[number + 1:]:
                later.apply(make_context(), module)
                module.verify()
            assert print_module(module) == kernel.mlir(), f"from the text of {named[number][0]}"


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
