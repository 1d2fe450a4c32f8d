"""The bytes that a launch moves: by path, and by argument with the least number that it needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.simulator.machine.op_records import Mmad, OpRecord, Transfer
from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.result.gm_transfers import by_wave
from tilelang_npu.simulator.time.l2 import WALKED, Kinds
from tilelang_npu.simulator.time.pipe_steps import PIPE, RUN, PipeStep

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch

_INTO_L0 = {0: "l1_l0a", 1: "l1_l0b", 3: "l1_bt"}
"""The paths of the matmul macro's own loads, by the number of the access."""


@dataclass(frozen=True)
class PathBytes:
    """The bytes on one path between two memories, in the whole launch.

    Attributes:
        path: the path, a row of the chip.
        core, pipe: the core and pipe of the path.
        used: bytes that ops ask for.
        moved: bytes that are transferred: in GM whole lines, for rows that start anywhere in them.
        rate: used gigabytes per second of the launch.
        peak: the rate if all its pipes on the chip moved nothing else.
    """

    path: str
    core: str
    pipe: str
    used: int
    moved: int
    rate: float
    peak: float

    def to_dict(self) -> JsonObject:
        """Returns the row as data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ArgumentBytes:
    """The bytes that are read from a tensor in GM, or written to it.

    Attributes:
        name: the author's name.
        written: whether they are written.
        used, moved: as for a path.
        hbm: moved bytes that are transferred from or to HBM.
        needed: the least number: each byte once; none for a tensor that only passes data from core to core.
    """

    name: str
    written: bool
    used: int
    moved: int
    hbm: int
    needed: int

    def to_dict(self) -> JsonObject:
        """Returns the row as data for JSON."""
        return asdict(self)


def path_bytes(launch: Launch) -> list[PathBytes]:
    """Returns the bytes of a launch by path."""
    used: dict[str, int] = defaultdict(int)
    moved: dict[str, float] = defaultdict(float)
    for record, step, count in _steps(launch):
        path = _path(record, step)
        if path:
            used[path] += step.cost.nbytes * count
            moved[path] += sum(part.far for part in step.cost.gm) * count if step.cost.gm else step.cost.nbytes * count
    found = []
    for name in sorted(used):
        row = launch.chip.paths[name]
        cores = launch.chip.aic if row.core == "AIC" else launch.chip.aiv
        move = row.near or row.move
        peak = move.sustained * launch.chip.clock * cores / 1e9 if move is not None else 0.0
        found.append(PathBytes(name, row.core, row.pipe, used[name], max(used[name], round(moved[name])),
                               used[name] / launch.time_us / 1e3, peak))
    return found


def _steps(launch: Launch) -> Iterator[tuple[OpRecord, PipeStep, int]]:
    """Yields the executed steps, with their number."""
    for index, stream, times in launch.recorded.distinct_streams:
        expansion = launch.expansions[index]
        for event, count in Counter(stream).items():
            for step in expansion.of(event):
                if step.kind == RUN:
                    yield expansion.records[step.op], step, count * times


def _path(record: OpRecord, step: PipeStep) -> str:
    if isinstance(record.work, Transfer):
        return record.work.path
    if isinstance(record.work, Mmad) and step.pipe == PIPE["MTE1"]:
        return _INTO_L0[step.accesses[0]]
    return ""


def vector_work(launch: Launch) -> tuple[float, float]:
    """Returns the elements that the Vector cores computed, and the seconds that all of them need at one repeat per cycle."""
    elements = cycles = 0.0
    for record, step, count in _steps(launch):
        if step.pipe == PIPE["V"] and record.accesses and step.cost.nbytes:
            width = max((access.element for access in record.accesses if not access.scratch), default=1)
            elements += step.cost.nbytes / width * count
            cycles += step.cost.nbytes / 256 * count
    return elements, cycles / launch.chip.aiv / launch.chip.clock


def argument_bytes(launch: Launch) -> list[ArgumentBytes]:
    """Returns the bytes of a launch by argument."""
    bound, program = launch.recorded.bound, launch.recorded.program
    names = {parameter.index: parameter.name for parameter in bound.parameters}
    sizes = {parameter.index: array.nbytes
             for parameter, array in zip(bound.parameters, bound.arrays, strict=True) if array is not None}
    own = {parameter.index for parameter in bound.parameters if parameter.role != "user"}
    for function in program.functions:
        names |= {access.buffer: access.label for record in function.records for access in record.accesses
                  if access.memory == "gm" and access.label}
    touched = _touched(launch)
    found = []
    for (buffer, written), part in sorted(launch.moved.items()):
        passed = buffer in own or ((buffer, not written) in launch.moved and buffer in launch.produced)
        least = 0 if passed else min(touched.get((buffer, written), part.nbytes), sizes.get(buffer, part.nbytes))
        far = launch.serves[buffer, written].far
        found.append(ArgumentBytes(names.get(buffer, f"argument {buffer}"), written, round(part.nbytes),
                                   max(round(part.nbytes), round(part.far)), round(part.far * far), round(least)))
    return found


def _touched(launch: Launch) -> dict[tuple[int, bool], float]:
    """Returns the distinct bytes of each tensor that are read or written; overlapping tiles count separately. Empty for very
    long launches."""
    tiles: dict[tuple[int, int], set[int]] = defaultdict(set)  # offsets by kind of transfer and whether it writes
    kinds: Kinds = {}
    left = WALKED
    for wave in by_wave(launch.recorded, launch.expansions, launch.cores, kinds):
        for used in wave:
            for key in zip(*np.unique(np.stack((used.kind, used.written)), axis=1).tolist(), strict=True):
                tiles[key].update(used.offset[(used.kind == key[0]) & (used.written == key[1])].tolist())
            left -= len(used.kind)
        if left < 0:
            return {}
    rows = list(kinds)
    found: dict[tuple[int, bool], float] = defaultdict(float)
    for (kind, written), offsets in tiles.items():
        buffer, nbytes = rows[kind]
        found[buffer, bool(written)] += nbytes * len(offsets)
    return found
