"""A pass that runs a second time does not change the module, or refuses it; so does any pass on the final text.

``TILELANG_RANDOM_PASSES=11 pytest tests/transforms/test_passes_run_twice.py`` sets the number of kernels.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.transforms import pipeline
from transforms.pass_kernels import CALLS

FIRST = ["rows", "both_cores", "points", "by_hand"]
KERNELS = [*FIRST, *(name for name in CALLS if name not in FIRST)][:int(os.environ.get("TILELANG_RANDOM_PASSES", "4"))]
STAGES = pipeline.stage_names()[1:]
PASSES = pipeline.passes()


@cache
def _kernel(name: str) -> Any:
    return CALLS[name][0]()


def _again(made: Any, text: str) -> str:
    """Returns the text after one more run, or the refusal."""
    module = parse_module(text)
    try:
        made.apply(make_context(), module)
    except TileError as error:
        return f"{error.code}: {error.message.partition(',')[0]}"
    return print_module(module)


def _refusal(name: str, text: str) -> str:
    return f"T513: {name} has already run on {re.findall(r'func.func @(.+?)[(].*hacc.entry', text)[0]}"


@pytest.mark.parametrize("name", KERNELS)
def test_no_pass_does_its_work_twice(name: str) -> None:
    kernel = _kernel(name)
    passes = dict(pipeline.kernel_passes(kernel._lowering.options))
    for stage in STAGES:
        text = kernel.mlir(stage)
        assert _again(passes[stage], text) == print_module(parse_module(text)), stage


@pytest.mark.parametrize("name", KERNELS)
def test_no_pass_works_on_what_is_finished(name: str) -> None:
    """``opt -p insert-sync`` and ``-p guard-l0`` on a finished module added their waits again."""
    text = _kernel(name).mlir("hivm")
    assert "tile." not in text
    for one, made in PASSES.items():
        again = _again(made(), text)
        assert again == (_refusal(one, text) if one == "insert-sync" else text), one


def test_the_text_of_every_stage_is_that_of_the_module_that_is_passed_on() -> None:
    """The marks survive the text: a pass runs once between two stages, whether or not there is text in between."""
    kernel = _kernel("both_cores")
    options = kernel._lowering.options
    module: ModuleOp = parse_module(kernel.mlir("tile"))
    for _, made in pipeline.kernel_passes(options):
        made.apply(make_context(), module)
        module = parse_module(print_module(module))
    assert print_module(module) == kernel.mlir("hivm")
