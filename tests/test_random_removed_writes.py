"""Random kernels in which a tile's first write is removed: the sanitizer reports it at every address of the tile, and reports
nothing for the original kernel.

A kernel loads tiles before their first use and stores them after their last write, so that live ranges are short and tiles
share addresses. Whether a result depends on uninitialised bytes follows from the list of steps alone.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang

EXAMPLES = int(os.environ.get("TILELANG_RANDOM_REMOVED", "25"))
TILES, ROWS, COLUMNS = 5, 8, 64
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
Step = tuple[str, int, int, int]
HEAD = """
import tilelang_npu.language as T

@T.prim_func
def main(X: T.Tensor(({tiles} * 8, 64), "float32"), Y: T.Tensor(({tiles} * 8, 64), "float32")):
    with T.Kernel(2, is_npu=True) as (block, _):
"""


@st.composite
def programs(draw: Any) -> list[Step]:
    """Steps (operation, target, two sources) over tiles."""
    tile = st.integers(0, TILES - 1)
    return [(draw(st.sampled_from(list(BINARY))), draw(tile), draw(tile), draw(tile)) for _ in range(draw(st.integers(1, 7)))]


def loaded(program: list[Step]) -> list[int]:
    """The tiles that are read before a step has made them, in the order of their first reads."""
    made, found = set[int](), list[int]()
    for _, target, *sources in program:
        found += [source for source in dict.fromkeys(sources) if source not in made and source not in found]
        made.add(target)
    return found


def text(program: list[Step], left_out: int | None) -> str:
    """Returns the kernel: a tile is loaded directly before its first read, and stored directly after its last write."""
    lines = [f"t{tile} = T.alloc_ub((8, 64), 'float32')" for tile in range(TILES)]
    last = {target: number for number, (_, target, _, _) in enumerate(program)}
    present, first = set[int](), set(loaded(program))
    for number, (kind, target, *sources) in enumerate(program):
        for source in dict.fromkeys(sources):
            if source in first - present:
                lines += [f"T.copy(X[{source * ROWS}, 0], t{source})"] * (source != left_out)
        present |= {*sources, target}
        lines.append(f"T.tile.{kind}(t{target}, t{sources[0]}, t{sources[1]})")
        if last[target] == number:
            lines += [f"if block == {target % 2}:", f"    T.copy(t{target}, Y[{target * ROWS}, 0])"]
    return HEAD.format(tiles=TILES) + "".join(f"        {line}\n" for line in lines)


def reference(program: list[Step], x: Any, y: Any) -> Any:
    tiles = {tile: x[tile * ROWS:][:ROWS] for tile in range(TILES)}
    for kind, target, *sources in program:
        tiles[target] = BINARY[kind](*(tiles[source] for source in sources))
    for target in {target for _, target, _, _ in program}:
        y[target * ROWS:][:ROWS] = tiles[target]
    return y


def depends(program: list[Step], tile: int) -> bool:
    """Whether a result depends on the initial contents of a tile, so that NaN there would be visible."""
    x = np.ones((TILES * ROWS, COLUMNS), np.float32)
    x[tile * ROWS:][:ROWS] = np.nan
    return bool(np.isnan(reference(program, x, np.zeros_like(x))).any())


def compiled(path: Path, source: str, planning: bool) -> Any:
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return tilelang.compile(module.main, target="ascendc", pass_configs={
        "tl.ascend_auto_sync": True, "tl.ascend_memory_planning": planning})


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(program=programs(), which=st.integers(0, TILES - 1), seed=st.integers(0, 999))
def test_a_removed_load_is_reported_and_nothing_else(tmp_path_factory: pytest.TempPathFactory, program: list[Step],
                                                             which: int, seed: int) -> None:
    folder = tmp_path_factory.mktemp("kernels")
    x = np.random.default_rng(seed).uniform(-1, 1, (TILES * ROWS, COLUMNS)).astype(np.float32)
    tiles = loaded(program)
    removed = tiles[which % len(tiles)]
    for left_out in (None, removed):
        reported = []
        for planning in (True, False):
            name = f"kernel_{seed}_{'whole' if left_out is None else left_out}_{planning}"
            kernel = compiled(folder / f"{name}.py", text(program, left_out), planning)
            y = np.zeros_like(x)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                kernel(x, y)
            found = [hazard for hazard in kernel.last_launch.hazards if hazard.code in ("S221", "S222")]
            assert kernel.last_launch.hazards == found, kernel.last_launch.hazards
            assert any("stale[" in str(one.message) for one in caught) == bool(found), "the default run tells of it, too"
            reported.append({(hazard.buffer, hazard.first.location.line) for hazard in found if hazard.first.location})
            if left_out is None:
                np.testing.assert_array_equal(y, reference(program, x, np.zeros_like(x)))
        assert reported[0] == reported[1], "wherever the planner puts it"
        expected = left_out is not None and depends(program, left_out)
        assert {buffer for buffer, _ in reported[0]} == ({f"t{left_out}"} if expected else set())
