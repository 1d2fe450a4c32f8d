"""Random kernels in which one buffer gets the address of another one, run as given HIVM: if results change, the sanitizer
has a finding. With the planner's addresses, where buffers reuse bytes, it has none.

``TILELANG_RANDOM_ADDRESSES=1000 pytest tests/test_random_addresses.py`` sets the number of cases.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
from test_random_hand_overs import CHIPS, NO_ROOM, TILES, _function, blocks, shapes, source
from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError

KERNELS = int(os.environ.get("TILELANG_RANDOM_ADDRESSES", "12"))
CAST = re.compile(r"(%\S+ = hivm\.hir\.pointer_cast\()(%\w+)(\) : memref<\S+, #hivm\.address_space<(ub|cbuf|cc)>>)")


def moved(text: str, pick: Any) -> str | None:
    """Returns the kernel with one buffer at the address of another one in the same memory; None if there are no two."""
    start = 0
    places = []
    for number, function in enumerate(re.split(r"(?=^  func\.func )", text, flags=re.MULTILINE)):
        places += [(number, found[4], start + found.start(), found) for found in CAST.finditer(function)]
        start += len(function)
    pairs = [(place, found, other) for number, memory, place, found in places for core, kind, _, other in places
             if (number, memory) == (core, kind) and found[2] != other[2]]
    if not pairs:
        return None
    place, found, other = pick(pairs)
    return text[:place] + found[1] + other[2] + found[3] + text[place + len(found[0]):]


def run(text: str, inputs: Sequence[Any], rows: int, blocks_: int, columns: int) -> tuple[Any, list[Any]]:
    """Returns the results of the kernel, and the findings of the sanitizer."""
    out = np.zeros((rows * blocks_ * 8, columns), np.float32)
    launch = simulator.simulate(parse_module(text), [*inputs, out], blocks=blocks_, hazards=True)
    return out, launch.hazards


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("addresses")


def check(folder: Path, pick: Any, chip: str, seed: int) -> str:
    """Run a kernel as it is, and with a buffer moved: ``alike``, ``found``, or why there is nothing to compare."""
    shape = shapes(pick)
    body = blocks(pick, shape)
    try:
        kernel = tilelang.compile(_function(folder, source(shape, body)), target="npuir", chip=chip)
    except TileError as error:
        if error.code in NO_ROOM:
            return "no room"
        raise
    text = kernel.mlir()
    rng = np.random.default_rng(seed)
    x, h = (rng.integers(-4, 5, (TILES * shape.rows, shape.columns)).astype(kind) for kind in (np.float32, np.float16))
    w = rng.integers(-1, 2, (2 * shape.columns, shape.columns)).astype(np.float16)
    inputs = x, h, w, rng.integers(0, 2, TILES).astype(np.int32), 2
    right, found = run(text, inputs, shape.rows, shape.blocks, shape.columns)
    assert found == [], f"{found[0]}\n{text}"
    other = moved(text, pick)
    if other is None:
        return "one buffer"
    try:
        wrong, found = run(other, inputs, shape.rows, shape.blocks, shape.columns)
    except TileError:
        return "refused"
    if np.array_equal(right, wrong):
        return "alike"
    assert found != [], other
    return "found " + found[0].code


@settings(max_examples=KERNELS, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data(), chip=st.sampled_from(CHIPS), seed=st.integers(0, 99))
def test_a_buffer_on_the_bytes_of_another_one(data: st.DataObject, chip: str, seed: int, folder: Path) -> None:
    assume(check(folder, lambda choices: data.draw(st.sampled_from(choices)), chip, seed) not in ("no room", "one buffer"))
