"""No kernel exceeds the rates of the chip's tables for each unit, and a faster unit never makes a kernel slower.

``TILELANG_RANDOM_TIMES=200`` sets the number of kernels.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.time.pipe_steps import RUN
from tilelang_npu.target import Chip, Move, Path
from tilelang_npu.target.chip_data import PIPES, REPEAT_BYTES

COUNT = int(os.environ.get("TILELANG_RANDOM_TIMES", "6"))


@tilelang.jit(target="npuir")
def chain(tiles: int, columns: int, rows: int, cores: int, stages: int, work: int, element: str, chip: str) -> Any:
    """Tiles are loaded, worked on along their elements and along their rows, and stored."""
    @T.prim_func
    def chain(X: T.Tensor((tiles * cores * rows, columns), element), Y: T.Tensor((tiles * cores * rows, columns), element)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((rows, columns), element)
            top = T.alloc_shared((rows, 1), element)
            for i in T.Pipelined(tiles, num_stages=stages):
                T.copy(X[(i * cores + core) * rows, 0], x)
                for _ in range(work):
                    T.vexp(x, x)
                T.reduce_max(x, top, dim=-1)
                T.vsub(x, top, x)
                T.copy(x, Y[(i * cores + core) * rows, 0])
    return chain


@tilelang.jit(target="npuir")
def product(m: int, n: int, k: int, tile_m: int, tile_n: int, tile_k: int, stages: int, chip: str) -> Any:
    @T.prim_func
    def product(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(m, tile_m), T.ceildiv(n, tile_n), is_npu=True) as (i, j, _):
            a = T.alloc_shared((tile_m, tile_k), "float16")
            b = T.alloc_shared((tile_k, tile_n), "float16")
            c = T.alloc_fragment((tile_m, tile_n), "float32")
            for step in T.Pipelined(T.ceildiv(k, tile_k), num_stages=stages):
                T.copy(A[i * tile_m, step * tile_k], a)
                T.copy(B[step * tile_k, j * tile_n], b)
                T.gemm(a, b, c, initC=(step == 0))
            T.copy(c, C[i * tile_m, j * tile_n])
    return product


@tilelang.jit(target="npuir")
def sums(blocks: int, columns: int, places: int, chip: str) -> Any:
    """Blocks add tiles to ``places`` different addresses."""
    @T.prim_func
    def sums(X: T.Tensor((blocks, columns), "float32"), Y: T.Tensor((places, columns), "float32")):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            x = T.alloc_shared((1, columns), "float32")
            T.copy(X[block, 0], x)
            T.atomic_add(Y[block % places, 0], x)
    return sums


@cache
def drawn(seed: int) -> tuple[Launch, int]:
    """A kernel of the seed, without values; and how often it adds to one line at least."""
    rng = random.Random(seed)
    chip = rng.choice(["910B1", "910B2", "910B4", "910C"])
    in_a_line = 0
    kind = rng.choice(["chain", "chain", "product", "product", "sums"])
    if kind == "chain":
        columns, rows = rng.choice([32, 100, 128, 512, 1024]), rng.choice([1, 2, 5, 8])
        kernel = chain(rng.randint(1, 24), columns, rows, rng.choice([1, 7, 40]), rng.randint(1, 3), rng.randint(0, 6),
                       rng.choice(["float16", "float32"]), chip)
    elif kind == "product":
        tile_m, tile_n, tile_k = rng.choice([16, 64, 128]), rng.choice([32, 128, 256]), rng.choice([32, 64, 128])
        kernel = product(*(rng.choice([1, 2, 3, 5]) * size for size in (tile_m, tile_n, tile_k)), tile_m, tile_n, tile_k,
                         rng.randint(1, 2), chip)
    else:
        blocks, columns, places = rng.choice([1, 16, 48, 200]), rng.choice([8, 64, 512]), rng.choice([1, 3, 16])
        kernel = sums(blocks, columns, places, chip)
        in_a_line = max(1, min(places, 512 // (4 * columns))) * (blocks // places)
    (launch,) = kernel.estimate().parts
    return launch, in_a_line


def fastest(path: Path) -> float:
    """Bytes per cycle that a path moves at its best."""
    return max((max(move.rate, move.sustained) for move in (path.move, path.near) if move is not None), default=0.0)


def least(launch: Launch) -> dict[str, float]:
    """Returns the cycles that each unit needs for its work, by the chip's tables, over all cores and blocks."""
    chip, found = launch.chip, defaultdict[str, float](float)
    for run in launch.recorded.blocks:
        for stream, (index, _) in zip(run.streams, launch.recorded.program.lanes, strict=True):
            function, expansion = launch.recorded.program.functions[index], launch.expansions[index]
            for event, count in Counter(stream).items():
                for step in expansion.of(event):
                    found["S"] += count * (chip.scalar.issue + chip.scalar.alu * step.scalars)
                    if step.kind != RUN:
                        continue
                    pipe, core = PIPES[step.pipe], function.records[step.op].core
                    if pipe == "V":
                        found["V"] += count * step.cost.nbytes / REPEAT_BYTES / 2  # 16 to 32 bits: 512 in a repeat
                    elif pipe == "M":
                        found["M"] += count * step.cost.nbytes / (2 * chip.cube.m**2 * max(chip.cube.k_step.values()))
                    elif pipe != "S":
                        found[pipe] += count * step.cost.nbytes / max(map(fastest, chip.paths_of(pipe, core)))
    return found


@pytest.mark.parametrize("seed", range(COUNT))
def test_no_unit_does_more_than_its_tables_say(seed: int) -> None:
    """The sum over the units of all cores: the time is at least the needed cycles divided by the number of units."""
    launch, _ = drawn(seed)
    mixed = len(launch.busy_cycles) > 1
    for pipe, cycles in least(launch).items():
        units = min(launch.cores, launch.blocks) * (3 if pipe == "S" and mixed else 2 if mixed else 1)
        assert launch.cycles * units >= 0.999 * cycles, pipe


@pytest.mark.parametrize("seed", range(COUNT))
def test_memory_gives_no_more_than_it_has(seed: int) -> None:
    """HBM, L2 with its reads and writes, and a line to which blocks add in turn do not exceed their rates."""
    launch, in_a_line = drawn(seed)
    seconds = launch.cycles / launch.chip.clock
    traffic = launch.chip.traffic
    assert seconds >= 0.99 * sum(part.nbytes * launch.serves[key].hbm for key, part in launch.moved.items())
    assert seconds >= 0.99 * sum(part.near * (1 - launch.serves[key].far) for key, part in launch.moved.items()) / traffic.l2
    assert seconds >= 0.99 * in_a_line * traffic.same_line


def moved(change: Callable[[Move], Move]) -> Callable[[Chip], Chip]:
    """A chip with other paths on it."""
    def on(chip: Chip) -> Chip:
        return replace(chip, paths={
            name: replace(path, move=path.move and change(path.move), near=path.near and change(path.near))
            if path.core and "gm" not in (path.source, path.target) else path for name, path in chip.paths.items()})
    return on


FASTER: dict[str, Callable[[Chip], Chip]] = {
    "HBM": lambda chip: replace(chip, traffic=replace(chip.traffic, hbm_read=1.5 * chip.traffic.hbm_read,
                                                      hbm_write=1.5 * chip.traffic.hbm_write)),
    "L2": lambda chip: replace(chip, traffic=replace(chip.traffic, l2=1.5 * chip.traffic.l2, l2_read=1.5 * chip.traffic.l2_read,
                                                     l2_write=1.5 * chip.traffic.l2_write)),
    "a larger L2": lambda chip: replace(chip, l2=2 * chip.l2),
    "clock": lambda chip: replace(chip, clock=1.2 * chip.clock),
    "additions": lambda chip: replace(chip, traffic=replace(chip.traffic, same_line=chip.traffic.same_line / 2)),
    "on chip": moved(lambda move: replace(move, rate=2 * move.rate, sustained=2 * move.sustained)),
    "vectors": lambda chip: replace(chip, vector={
        name: replace(rate, slope16=rate.slope16 / 2, slope32=rate.slope32 / 2) for name, rate in chip.vector.items()}),
    "scalars": lambda chip: replace(chip, scalar=replace(chip.scalar, alu=chip.scalar.alu / 2, issue=chip.scalar.issue / 2)),
    "products": lambda chip: replace(chip, cube=replace(chip.cube, overhead=chip.cube.overhead / 2)),
    "hand-overs": lambda chip: replace(chip, sync=replace(chip.sync, handoff=chip.sync.handoff / 4)),
}


@pytest.mark.parametrize("seed", range(COUNT))
def test_no_faster_part_makes_a_kernel_slower(seed: int) -> None:
    launch, _ = drawn(seed)
    for what, change in FASTER.items():
        assert Launch(launch.recorded, chip=change(launch.chip)).time_us <= 1.01 * launch.time_us, what
