"""The Developer version of a kernel computes the same as the Expert version, in no more cycles."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tilelang_npu.simulator import Launch
from tilelang_npu.target import Chip, Move

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("gemm", "softmax", "rms_norm", "flash_attention", "minicv", "w4a8_gemm", "linear_relu", "persistent_gemm",
         "grouped_gemm", "causal_attention", "decode_attention")
LIMIT = 1.00
"""Cycles of the Developer version against those of the Expert version, at most."""


@pytest.fixture(scope="module")
def developer() -> Iterator[ModuleType]:
    added = [str(ROOT / "benchmarks"), str(ROOT / "examples")]
    sys.path[:0] = added
    try:
        import developer

        yield developer
    finally:
        for path in added:
            sys.path.remove(path)


@pytest.mark.parametrize("name", NAMES)
def test_equal_values_in_no_more_cycles(name: str, developer: ModuleType) -> None:
    pair = developer.find(name)
    measured = developer.measure(pair, pair.shapes[0])
    assert measured.ratio <= LIMIT, f"{measured.developer:.0f} cycles against {measured.expert:.0f}"


def test_every_kernel_is_measured(developer: ModuleType) -> None:
    assert {pair.name for pair in developer.PAIRS} == set(NAMES)
    written = {file.stem.removesuffix("_expert") for file in (ROOT / "examples").glob("*_expert.py")}
    assert written == set(NAMES)


def test_the_table_in_the_docs_has_every_pair(developer: ModuleType) -> None:
    lines = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8").splitlines()
    cells = [line.split("|")[1:3] for line in lines if line.startswith("| ")]
    shown = [(name.strip(), shape.strip()) for name, shape in cells if name.strip() in NAMES]
    assert shown == [(pair.name, " x ".join(map(str, shape))) for pair in developer.PAIRS for shape in pair.shapes]


def slow_to_load(one: Chip) -> Chip:
    move = Move(fixed=1000, rate=100, sustained=100, issue=21, row=1.0, source="this test")
    loads = replace(one.paths["gm_l1_nd2nz"], move=move, near=None)
    return replace(one, paths={**one.paths, loads.name: loads})


@pytest.mark.parametrize("depth", [8, 16])
def test_two_stages_save_what_the_timeline_says(depth: int, developer: ModuleType) -> None:
    """With two stages, a loop of loads and products takes the longer of both, plus one iteration to fill the pipeline; tested
    on a chip with slow loads, so that loads take about as long as products.

    With one stage the next A is already loaded during the product, whose operands are in L0.
    """
    import gemm

    arrays = gemm.inputs(128, 256, 128 * depth)
    launches = []
    for stages in (1, 2):
        kernel = gemm.gemm(128, 256, 128 * depth, tile_M=128, tile_N=256, tile_K=128, stages=stages)
        kernel(*arrays)
        launches.append(Launch(kernel.last_launch.recorded, chip=slow_to_load(kernel.last_launch.chip)))
    serial, overlapped = launches
    longest = max(serial.busy_cycles["AIC"].values())
    assert overlapped.cycles <= longest + serial.cycles / depth
    one_by_one = serial.busy_cycles["AIC"]["MTE2"] + serial.busy_cycles["AIC"]["M"]
    assert serial.cycles < one_by_one
    assert overlapped.cycles < 0.6 * one_by_one
