"""Properties of modelled times for every kernel: no bound of the hardware is exceeded, and no better chip is slower."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.runtime.jit.factory import Factory
from tilelang_npu.simulator import Launch, simulate
from tilelang_npu.simulator.result import cube_operations
from tilelang_npu.target import Chip, chip

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def additions(blocks: int, tile: int) -> Launch:
    n = blocks * tile
    x = np.zeros(n, np.float16)
    return simulate(parse_module(texts.add_tiles(tile, "f16")), [x, x.copy(), x.copy(), n], blocks=blocks, chip="910B1")


def products(m: int, n: int, k: int) -> Launch:
    args = [np.zeros(shape, np.float16) for shape in ((m, k), (k, n), (m, n))]
    return simulate(parse_module(texts.gemm(m, n, k)), args, blocks=m * n // 128**2, chip="910B1")


KERNELS: dict[str, Callable[[], Launch]] = {
    "one addition": lambda: additions(1, 2048), "48 additions": lambda: additions(48, 16384),
    "waves of small additions": lambda: additions(480, 512), "one product": lambda: products(128, 128, 512),
    "24 products": lambda: products(512, 768, 1024), "waves of products": lambda: products(1024, 896, 128),
}


@cache
def launch(name: str) -> Launch:
    return KERNELS[name]()


def faster(factor: float, *names: str) -> Callable[[Chip], Chip]:
    def change(one: Chip) -> Chip:
        return replace(one, traffic=replace(one.traffic, **{name: getattr(one.traffic, name) * factor for name in names}))

    return change


BETTER: dict[str, Callable[[Chip], Chip]] = {
    "HBM": faster(1.5, "hbm_read", "hbm_write"), "much HBM": faster(20, "hbm_read", "hbm_write"),
    "L2": faster(1.5, "l2", "l2_read", "l2_write"), "larger L2": lambda one: replace(one, l2=2 * one.l2),
    "clock": lambda one: replace(one, clock=1.2 * one.clock),
    "flags": lambda one: replace(one, sync=replace(one.sync, handoff=10)),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("what", BETTER)
def test_no_better_chip_is_slower(name: str, what: str) -> None:
    before = launch(name)
    after = Launch(before.recorded, chip=BETTER[what](before.chip))
    assert after.time_us <= 1.01 * before.time_us


@pytest.mark.parametrize("name", KERNELS)
def test_no_bound_of_the_hardware_is_beaten(name: str) -> None:
    """The bounds are the peak of the Cube cores, the bandwidth of HBM, and that of L2."""
    one = launch(name).retimed(l2_state="cold")
    seconds = one.cycles / one.chip.clock
    moved = one.moved
    bound = one.recorded.bound
    sizes = {parameter.index: array.nbytes
             for parameter, array in zip(bound.parameters, bound.arrays, strict=True) if array is not None}
    first = sum(min(part.nbytes, sizes[buffer]) for (buffer, written), part in moved.items() if not written)
    assert seconds >= first / 1.8e12, "HBM's nominal rate"
    assert seconds >= sum(part.nbytes for part in moved.values()) / one.chip.traffic.l2
    busy = one.busy_cycles
    for kind, row in busy.items():
        cores = min(one.cores, one.blocks) * (2 if kind == "AIV" and "AIC" in busy else 1)
        for pipe, cycles in row.items():
            assert cycles <= one.cycles * cores * 1.0001, (kind, pipe)


@pytest.mark.parametrize("name", KERNELS)
def test_times_are_equal_from_run_to_run(name: str) -> None:
    assert KERNELS[name]().time_us == launch(name).time_us
    assert Launch(launch(name).recorded).time_us == launch(name).time_us


def test_the_chip_of_a_launch_may_be_another() -> None:
    one = launch("24 products")
    slow = Launch(one.recorded, chip=chip("910B4"))
    assert slow.time_us > one.time_us
    assert slow.cores == one.cores


SOME = ("gemm", "flash_attention", "causal_attention_expert", "decode_attention", "linear_relu", "softmax_expert")
NAMES = sorted(file.stem for file in EXAMPLES.glob("*.py")) if os.environ.get("TILELANG_WHAT_IF") == "all" else SOME


@cache
def traced(name: str) -> tuple[Launch, ...]:
    """Returns the launches of an example's kernel for its first shape, with the compiler's flags and waits; without values,
    unless the control flow depends on them."""
    module: Any = importlib.import_module(name)
    kernel = next(value for value in vars(module).values() if isinstance(value, Factory))(*module.SHAPES[0])
    arrays = module.inputs(*module.SHAPES[0])
    launch = kernel.trace(*arrays)
    if launch is None:
        kernel(*arrays)
        launch = kernel.last_launch
    return tuple(launch.parts)


@pytest.mark.parametrize("name", NAMES)
def test_no_example_is_slower_on_a_better_chip(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``TILELANG_WHAT_IF=all`` takes all of them."""
    monkeypatch.syspath_prepend(EXAMPLES)
    for before in traced(name):
        for what, change in BETTER.items():
            after = Launch(before.recorded, chip=change(before.chip))
            assert after.time_us <= 1.01 * before.time_us, what
        assert Launch(before.recorded).time_us == before.time_us


@pytest.mark.parametrize("name", NAMES)
def test_no_example_beats_the_hardware(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are the Cube cores' peak and L2's bandwidth; and no pipe is busy for longer than the kernel takes."""
    monkeypatch.syspath_prepend(EXAMPLES)
    for one in traced(name):
        seconds = one.cycles / one.chip.clock
        done = cube_operations.products(one)
        assert bool(done) == ("M" in one.busy_cycles.get("AIC", {}))
        for kind, found in done.items():
            assert found.done <= seconds * one.chip.peak_flops(kind)
        for kind, row in one.busy_cycles.items():
            cores = min(one.cores, one.blocks) * (2 if kind == "AIV" and done else 1)
            assert max(row.values()) <= one.cycles * cores * 1.0001
        assert seconds >= sum(part.nbytes for part in one.moved.values()) / one.chip.traffic.l2
        assert seconds >= 0.99 * _served_by_hbm(one)


def _served_by_hbm(launch: Launch) -> float:
    """Returns the seconds that HBM alone needs for the transfers of a launch."""
    return sum(part.nbytes * launch.serves[key].hbm for key, part in launch.moved.items())


@tilelang.jit(target="npuir")
def worked_on(work: int, rows: int = 65536, columns: int = 1024, tile: int = 8, cores: int = 48) -> Any:
    @T.prim_func
    def worked_on(X: T.Tensor((rows, columns), "float16"), Y: T.Tensor((rows, columns), "float16")) -> None:
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), "float16")
            for i in T.Pipelined(rows // (tile * cores), num_stages=3):
                T.copy(X[(i * cores + core) * tile, 0], x)
                for _ in range(work):
                    for r, c in T.Parallel(tile, columns):
                        x[r, c] = T.exp(x[r, c])
                T.copy(x, Y[(i * cores + core) * tile, 0])
    return worked_on


@pytest.mark.parametrize("work", range(3, 9))
def test_many_transfers_at_once_have_no_more_than_hbm_gives(work: int) -> None:
    """If V takes about as long as HBM, more transfers overlap from iteration to iteration before the times change."""
    for one in worked_on(work).estimate().parts:
        assert one.cycles / one.chip.clock >= 0.99 * _served_by_hbm(one)
