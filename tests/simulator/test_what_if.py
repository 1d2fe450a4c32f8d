"""What-if analysis: the re-timed launch has the time of the kernel compiled for a chip with the change."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from simulator.test_time_properties import KERNELS, launch
from tilelang_npu import target
from tilelang_npu.simulator.result.profile.what_if import (
    hbm_free,
    l2_free,
    links_twice_as_fast,
    no_launch,
    twice_as_fast,
)
from tilelang_npu.target import Chip

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ALL = os.environ.get("TILELANG_WHAT_IF") == "all"


def hbm_twice(chip: Chip) -> Chip:
    rates = chip.traffic
    return replace(chip, traffic=replace(rates, hbm_read=2 * rates.hbm_read, hbm_write=2 * rates.hbm_write))


CHANGES: dict[str, Callable[[Chip], Chip]] = {
    "HBM free": hbm_free, "L2 free": l2_free, "no launch": no_launch, "HBM twice as fast": hbm_twice,
    **{f"{core} {pipe} twice as fast": partial(twice_as_fast, core, pipe)
       for core, pipe in (("AIC", "MTE2"), ("AIC", "M"), ("AIC", "FIX"), ("AIV", "V"), ("AIV", "MTE2"), ("AIV", "MTE3"))},
    "scalar units twice as fast": partial(twice_as_fast, "AIC", "S"),
}
SOME = [("gemm", 0), ("flash_attention", 0), ("softmax", 0), ("rms_norm_expert", 0)]
NAMES = [(file.stem, shape) for file in sorted(EXAMPLES.glob("*.py")) for shape in (0, 1)] if ALL else SOME


@pytest.mark.parametrize(("name", "shape"), NAMES)
def test_what_if_agrees_with_a_chip_that_has_it(name: str, shape: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is compiled for the other chip, whose costs its passes see, and traced there. ``TILELANG_WHAT_IF=all`` takes
    all examples."""
    monkeypatch.syspath_prepend(EXAMPLES)
    module: Any = importlib.import_module(name)
    factory = next(value for value in vars(module).values() if isinstance(value, tilelang.runtime.jit.factory.Factory))
    base = target.chip("910B2")
    kernel = factory(*module.SHAPES[shape])
    given = module.inputs(*module.SHAPES[shape])
    here = kernel.profile(*given)
    for text, change in CHANGES.items():
        other = change(base)
        real = type(kernel)(kernel.prim_func, replace(kernel._settings, chip=other)).profile(*given)
        assert here.on(other).time_us == pytest.approx(real.time_us, rel=0.05), text


def test_links_twice_as_fast_move_twice_the_bytes_with_the_same_latency() -> None:
    chip = target.chip("910B2")
    assert links_twice_as_fast(chip) == replace(chip, links=replace(
        chip.links, **{name: 2 * getattr(chip.links, name) for name in ("write", "read", "write_all", "read_all")}))


HALVED = {"scalar": ("alu", "load", "store", "issue"), "vector": ("slope16", "slope32", "fixed", "issue"),
          "cube": ("overhead", "latency"), "move": ("fixed", "floor", "issue", "row")}
DOUBLED = {"scalar": (), "vector": (), "cube": (), "move": ("rate", "sustained")}


def _numbers(chip: Chip) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The fields of each rate of a chip, by the kind of rate, its name, and the core and pipe that it is of."""
    found = {("scalar", "", "S"): vars(chip.scalar), ("cube", "", "M"): vars(chip.cube)}
    found |= {("vector", name, "V"): vars(rate) for name, rate in chip.vector.items()}
    found |= {("move", f"{name} {which}", f"{path.core} {path.pipe}"): vars(move)
              for name, path in chip.paths.items() for which in ("move", "near") if (move := getattr(path, which)) is not None}
    return found


@pytest.mark.parametrize("chip", ["910B2", "910_95"])
@pytest.mark.parametrize(("core", "pipe"), [("AIC", "S"), ("AIC", "M"), ("AIV", "V"), ("AIC", "MTE1"), ("AIC", "MTE2"),
                                            ("AIV", "MTE2"), ("AIV", "MTE3"), ("AIC", "FIX")])
def test_a_pipe_that_is_twice_as_fast_takes_half_of_every_time(chip: str, core: str, pipe: str) -> None:
    """Its cycles are half, its bytes per cycle and steps of K twice as many, and nothing else of the chip changes."""
    base = target.chip(chip)
    before, after = _numbers(base), _numbers(twice_as_fast(core, pipe, base))
    assert before.keys() == after.keys()
    changed = 0
    for key, fields in before.items():
        kind, _, of = key
        is_of_pipe = of in (pipe, f"{core} {pipe}")
        changed += is_of_pipe
        for name, value in fields.items():
            factor = 0.5 if is_of_pipe and name in HALVED[kind] else 2 if is_of_pipe and name in DOUBLED[kind] else 1
            if kind == "cube" and name == "k_step":
                assert after[key][name] == {word: (2 if is_of_pipe else 1) * step for word, step in value.items()}
            elif kind == "cube" and name == "burst":
                assert after[key][name] == value / (2 if pipe == "MTE1" else 1)
            else:
                assert after[key][name] == (value if factor == 1 else value * factor), (key, name)
    assert changed


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_that_is_free_costs_time(name: str) -> None:
    one = launch(name).profile()
    for row in one.what_if:
        assert row.before == one.launch.time_us
        assert row.after <= 1.01 * row.before, row
    found = {row.change: row.after for row in one.what_if}
    (part,) = one.launch.parts
    blocks = [0.0] * part.cores  # the blocks of a core are contiguous in time
    for place, group in enumerate(part.group_of_block):
        blocks[place % part.cores] += group.timing.cycles
    assert found["no launch"] == pytest.approx(part.chip.microseconds(max(blocks)), rel=1e-6)


def test_an_l2_that_is_free_answers_all_requests_at_once() -> None:
    """All cores read the same rows at the same time, and wait for L2 alone."""
    @T.prim_func
    def main(X: T.Tensor((64, 1024), "float32"), Y: T.Tensor((48, 1024), "float32")):
        with T.Kernel(48, is_npu=True) as (block, _):
            x = T.alloc_shared((8, 1024), "float32")
            for t in T.Pipelined(8, num_stages=2):
                T.copy(X[t * 8, 0], x)
            T.copy(x[0:1, :], Y[block:block + 1, :])

    launch: Any = tilelang.compile(main, target="npuir").trace()
    found = {row.change: row.after for row in launch.profile().what_if}
    chip = launch.chip
    alone = chip.paths["gm_ub"].near
    assert launch.bound_by == "MTE2 (waiting for L2)"
    assert alone is not None
    loads = chip.microseconds(8 * 8 * 4096 / alone.sustained)
    assert launch.time_us > launch.launch_us + 3 * loads
    assert launch.launch_us + loads < found["L2 free"] < launch.launch_us + 2 * loads


@pytest.mark.parametrize("name", KERNELS)
def test_without_waits_the_busiest_pipe_is_what_is_left(name: str) -> None:
    """No pipe takes longer than all its work, and none less than the work of the pipe that has most."""
    one = launch(name)
    after = next(row.after for row in one.profile().what_if if row.change == "no waits")
    busiest = max(share for row in one.pipes.values() for share in row.values()) * one.chip.microseconds(one.cycles)
    assert one.launch_us < after < one.time_us
    assert after > 0.5 * busiest


def test_a_profile_on_another_chip_is_of_the_same_launch() -> None:
    one = launch("24 products")
    slow = one.profile().on("910B4")
    assert slow.chip == "Ascend910B4"
    assert slow.launch.parts[0].recorded is one.recorded
    assert slow.time_us > one.profile().time_us
    assert sum(part.us for part in slow.critical_path) == slow.time_us
