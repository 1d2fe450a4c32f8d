"""Random schedules of random loops: an accepted ``order`` and ``stage`` gives the results of the original loop, without a
hazard; for a refused one, the suggested schedule does.

``TILELANG_RANDOM_SCHEDULES=1000 pytest tests/test_random_schedules.py`` sets the number of schedules.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from test_random_loops import BEYOND, COLUMNS, LOOP, ROWS, Loop, _made
from tilelang_npu import TileError

SCHEDULES = int(os.environ.get("TILELANG_RANDOM_SCHEDULES", "8"))


@settings(max_examples=SCHEDULES, suppress_health_check=list(HealthCheck), deadline=None, phases=[Phase.generate])
@given(loop=LOOP, seed=st.integers(0, 999), rounds=st.integers(0, 3), shuffled=st.booleans())
def test_a_schedule_computes_what_the_loop_does(tmp_path_factory: pytest.TempPathFactory, loop: Loop, seed: int, rounds: int,
                                                shuffled: bool) -> None:
    folder, rng = tmp_path_factory.mktemp("loop"), np.random.default_rng(seed)
    text = loop.text()

    def scheduled(stage: list[int], order: list[int]) -> str:
        return text.replace("num_stages=stages)", f"num_stages=stages, stage={stage}, order={order or None})")

    with pytest.raises(TileError) as reported:
        _made(folder / f"count{seed}.py", scheduled([0] * 50, []))(loop.stages)
    found = re.search(r"50 numbers for (\d+) statement", str(reported.value))
    assert found is not None
    count = int(found[1])
    stage = np.cumsum(rng.integers(0, 4, count) == 3).tolist()
    order = rng.permutation(count).tolist() if shuffled else list(range(count))
    try:
        placed = _made(folder / f"placed{seed}.py", scheduled(stage, order))(loop.stages)
    except TileError as error:
        if error.code != "T206":
            raise
        legal = re.search(r"stage=(\[.*?\]), order=(\[.*?\])", str(error))
        assert legal is not None
        stage, order = ([int(number) for number in re.findall(r"\d+", part)] for part in legal.groups())
        placed = _made(folder / f"legal{seed}.py", scheduled(stage, order))(loop.stages)
    length = (loop.start + loop.trips or 1) * ROWS
    x = rng.uniform(-1, 1, (length, COLUMNS)).astype(np.float16 if loop.product else np.float32)
    w = rng.uniform(-1, 1, (COLUMNS, COLUMNS)).astype(np.float16)
    end = loop.start + loop.trips if loop.bound != "symbolic" else length // ROWS
    turns = length if loop.bound == "symbolic" else length // ROWS + BEYOND * (loop.bound == "argument")
    chosen = rng.integers(0, 2, (2, turns), np.int32)
    left = []
    for kernel in (_made(folder / f"serial{seed}.py", text)(1), placed):
        out, carried = np.full((length, COLUMNS), 7.0, np.float32), np.zeros((ROWS, COLUMNS), np.float32)
        kernel(x, w, *chosen, end, rounds, out, carried)
        assert kernel.last_launch.hazards == []
        left.append((out.tobytes(), carried.tobytes()))
    assert left[0] == left[1], (stage, order)
