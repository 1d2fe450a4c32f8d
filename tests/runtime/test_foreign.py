"""Modules that other tools write, without addresses and waits: they run, with the numbers that they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.runtime.foreign import is_planned, runnable

FOLDER = Path(__file__).parent / "foreign"


def run(name: str, *args: Any, blocks: int = 1, hazards: bool = True) -> simulator.Launch:
    file = FOLDER / f"{name}.mlir"
    return simulator.simulate(runnable(parse_module(file.read_text(), str(file))), list(args), blocks=blocks, hazards=hazards)


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def test_vector_work() -> None:
    a, b, c = normal(48, 40), normal(48, 40, seed=1), np.zeros((48, 40), np.float32)
    assert run("scaled_sum", a, b, c, 0.5).hazards == []
    np.testing.assert_array_equal(c, a * np.float32(0.5) + b)


def test_both_cores_in_one_function() -> None:
    a, b, d = normal(64, 32, dtype=np.float16), normal(32, 48, dtype=np.float16), normal(64, 48)
    o = np.zeros_like(d)
    assert run("product_and_bias", a, b, d, o, blocks=2).hazards == []
    np.testing.assert_allclose(o, a.astype(np.float32) @ b.astype(np.float32) + d, rtol=1e-5, atol=1e-5)


def test_waits_of_the_author_are_kept_and_no_others_made() -> None:
    a, b = normal(256), np.zeros(256, np.float32)
    launch = run("own_waits", a, b)
    np.testing.assert_array_equal(b, np.maximum(a, 0))
    assert [hazard.first.pipe for hazard in launch.hazards] + [hazard.second.pipe for hazard in launch.hazards] == ["V", "MTE3"]


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.mlir")), ids=lambda file: file.stem)
def test_what_is_completed_is_a_planned_module(file: Path) -> None:
    module = parse_module(file.read_text(), str(file))
    assert not is_planned(module)
    runnable(module)
    assert is_planned(module)
    written = print_module(module)
    assert print_module(parse_module(written)) == written
