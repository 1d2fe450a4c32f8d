"""The bytes that a launch moves: on each data path of the chip, and for each tensor, with the minimum that the tensor needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.simulator.machine.op_records import Mmad, OpRecord, PatchLoad, ScalarAccess, Transfer
from tilelang_npu.simulator.machine.repeated_events import counted
from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.result.gm_transfers import by_wave
from tilelang_npu.simulator.time.l2 import WALKED, Kinds
from tilelang_npu.simulator.time.pipe_steps import PIPE, RUN, PipeStep
from tilelang_npu.target.chip_data import REPEAT_BYTES, CoreKind, Pipe

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch

_INTO_L0 = {0: "l1_l0a", 1: "l1_l0b", 3: "l1_bt"}
"""The data paths on which the matmul macro loads its operands, by the number of the access."""


@dataclass(frozen=True)
class PathBytes:
    """The bytes that a launch moves on one data path between two memories.

    Attributes:
        path: the name of the path, such as ``gm_ub``.
        core: the kind of core whose pipe moves the data.
        pipe: the pipe that moves the data.
        used: the number of bytes that the ops use.
        moved: the number of bytes that are transferred. In GM these are whole lines for rows that are not aligned to sectors.
        rate: the used bytes divided by the duration of the launch, in gigabytes per second.
        peak: the rate in gigabytes per second that the pipes of all cores of the chip can reach on this path.
    """

    path: str
    core: CoreKind
    pipe: Pipe
    used: int
    moved: int
    rate: float
    peak: float

    def to_dict(self) -> JsonObject:
        """Returns the bytes of the path as a dict that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class ArgumentBytes:
    """The bytes that a launch reads from a tensor in GM, or that it writes to the tensor.

    Attributes:
        name: the name of the tensor in the kernel.
        written: whether the bytes are written; otherwise they are read.
        used: the number of bytes that the ops use.
        moved: the number of bytes that are transferred, with whole lines for rows that are not aligned to sectors.
        hbm: the number of moved bytes that are transferred from or to HBM.
        needed: the minimum number of bytes: each accessed byte once; 0 for a tensor that only passes data from core to core.
    """

    name: str
    written: bool
    used: int
    moved: int
    hbm: int
    needed: int

    def to_dict(self) -> JsonObject:
        """Returns the bytes of the tensor as a dict that JSON can hold."""
        return asdict(self)


def path_bytes(launch: Launch) -> list[PathBytes]:
    """Returns the bytes that a launch moves on each data path, sorted by the name of the path."""
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
    """Yields the steps that a launch executes: the record of the op, the step, and how often it is executed."""
    for index, stream, times in launch.recorded.distinct_streams:
        expansion = launch.expansions[index]
        for event, count in counted(stream).items():
            for step in expansion.of(event):
                if step.kind == RUN:
                    yield expansion.records[step.op], step, count * times


def _path(record: OpRecord, step: PipeStep) -> str:
    if isinstance(record.work, Transfer | PatchLoad):
        return record.work.path
    if isinstance(record.work, Mmad) and step.pipe == PIPE["MTE1"]:
        return _INTO_L0[step.accesses[0]]
    return ""


def vector_work(launch: Launch) -> tuple[float, float]:
    """Returns the number of elements that the Vector cores computed, and the seconds that all Vector cores of the chip together
    need for them at one repeat (256 bytes) per cycle."""
    elements = cycles = 0.0
    for record, step, count in _steps(launch):
        if step.pipe == PIPE["V"] and record.accesses and step.cost.nbytes:
            width = max((access.element for access in record.accesses if not access.scratch), default=1)
            elements += step.cost.nbytes / width * count
            cycles += step.cost.nbytes / REPEAT_BYTES * count
    return elements, cycles / launch.chip.aiv / launch.chip.clock


def argument_names(launch: Launch) -> dict[int, str]:
    """Returns the names of a launch's parameters, by position: the author's names of tensors, where ops access them."""
    names = {parameter.index: parameter.name for parameter in launch.recorded.bound.parameters}
    for function in launch.recorded.program.functions:
        names |= {access.buffer: access.label for record in function.records for access in record.accesses
                  if access.memory == "gm" and access.label}
    return names


def argument_bytes(launch: Launch) -> list[ArgumentBytes]:
    """Returns the bytes that a launch reads from and writes to each tensor; reads and writes of one tensor are separate
    rows."""
    bound = launch.recorded.bound
    sizes = {parameter.index: array.nbytes
             for parameter, array in zip(bound.parameters, bound.arrays, strict=True) if array is not None}
    own = {parameter.index for parameter in bound.parameters if parameter.role != "user"}
    names = argument_names(launch)
    touched = tile_bytes(launch)
    found = []
    for (buffer, written), part in sorted(launch.moved.items()):
        passed = buffer in own or ((buffer, not written) in launch.moved and buffer in launch.produced)
        least = 0 if passed else min(touched.get((buffer, written), part.nbytes), sizes.get(buffer, part.nbytes))
        far = launch.serves[buffer, written].far
        found.append(ArgumentBytes(names.get(buffer, f"argument {buffer}"), written, round(part.nbytes),
                                   max(round(part.nbytes), round(part.far)), round(part.far * far), round(least)))
    return found


def scalar_tensors(launch: Launch) -> list[str]:
    """Returns the names of the tensors in GM of which a launch reads or writes single elements by the scalar unit, sorted.

    These elements pass through the cache of the scalar unit and are no transfers: neither ``argument_bytes`` nor ``path_bytes``
    has their bytes.
    """
    return sorted({access.label for function in launch.recorded.program.functions for record in function.records
                   if isinstance(record.work, ScalarAccess) for access in record.accesses
                   if access.memory == "gm" and access.label})


def tile_bytes(launch: Launch) -> dict[tuple[int, bool], float]:
    """Returns the bytes of the different tiles of each tensor that are read or written, by (kernel argument, whether written).

    Tiles that overlap without being equal count separately. The result is empty for a launch with too many transfers.
    """
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
