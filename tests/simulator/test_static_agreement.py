"""The static check has the findings of a run with data, for whole kernels, and for kernels without a wait or a set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captured import KERNELS, captured, copies
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Launch, Program
from tilelang_npu.simulator.result.static_check import check

SYNC = re.compile(r"hivm\.hir\.(set_flag|wait_flag|sync_block_set|sync_block_wait|pipe_barrier)\b")
MUTANTS = 5
"""Ops that are taken out of each kernel, one at a time; benchmarks/mutation.py takes more."""


def reported(program: Program, arguments: list[Any], blocks: int) -> set[object]:
    """Returns the findings of a run with data: hazards, or the code of the error that ends it."""
    try:
        return {hazard.key for hazard in Launch(program.run(copies(arguments), blocks=blocks)).hazards}
    except TileError as error:
        return {error.code}


def checked(program: Program, arguments: list[Any], blocks: int) -> set[object]:
    """Returns the findings of the static check; integer arguments are passed, since some are indices, and zeros for all
    others."""
    blank = [value if not isinstance(value, np.ndarray) or value.dtype.kind in "iu" else np.zeros_like(value)
             for value in arguments]
    done = check(program, blank, blocks)
    return {error.code for error in done.errors} or {hazard.key for hazard in done.hazards}


@pytest.mark.parametrize("script", KERNELS, ids=lambda path: path.stem)
def test_the_check_says_what_a_run_says(script: Path) -> None:
    first = captured(script)[0]
    lines = first.text.split("\n")
    program, blocks = first.launch.recorded.program, first.launch.blocks
    assert checked(program, first.before, blocks) == reported(program, first.before, blocks) == set()
    if not program.global_sync:
        blocks = min(blocks, 2)
    places = [number for number, line in enumerate(lines) if SYNC.search(line)]
    found = 0
    for place in places[::max(1, len(places) // MUTANTS)]:
        program = Program(parse_module("\n".join(lines[:place] + lines[place + 1:])))
        wrong = reported(program, first.before, blocks)
        assert checked(program, first.before, blocks) == wrong, lines[place]
        found += bool(wrong)
    assert found, "no op that was taken out was missed"
