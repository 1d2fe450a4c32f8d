"""The transfers between the cores and GM of a launch, with their places in GM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tilelang_npu.simulator.machine.op_records import OpRecord, Stream, accesses_to_gm
from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch
from tilelang_npu.simulator.time.l2 import Kinds, Numbers, Used
from tilelang_npu.simulator.time.pipe_steps import Expansion


class _Transfers(NamedTuple):
    """The transfers of a stream: positions of their offsets among the GM offsets, their kinds, and whether they write."""

    place: Numbers
    kind: Numbers
    written: Numbers


def by_wave(recorded: RecordedLaunch, expansions: Sequence[Expansion], cores: int, kinds: Kinds) -> Iterator[list[Used]]:
    """Yields the transfers of each wave: those of all cores with one block each; adds new kinds to ``kinds``."""
    known: dict[int, _Transfers] = {}
    for start in range(0, len(recorded.blocks), cores):
        wave = []
        for run in recorded.blocks[start:start + cores]:
            for stream, offsets, (index, _) in zip(run.streams, run.gm, recorded.program.lanes, strict=True):
                if id(stream) not in known:
                    known[id(stream)] = _of(stream, recorded.program.functions[index].records, expansions[index], kinds)
                place, kind, written = known[id(stream)]
                wave.append(Used(kind, written, np.asarray(offsets, np.int64)[place]))
        yield wave


def most_added(recorded: RecordedLaunch, line: int) -> dict[int, int]:
    """Returns, for each tensor, the number of atomic updates of its most updated line."""
    functions = recorded.program.functions
    lanes = [functions[index].records for index, _ in recorded.program.lanes]
    if not any(access.memory == "gm" and access.adds for records in lanes for record in records for access in record.accesses):
        return {}
    known: dict[int, dict[int, Numbers]] = {}
    counted: dict[int, Counter[int]] = {}
    for run in recorded.blocks:
        for stream, offsets, records in zip(run.streams, run.gm, lanes, strict=True):
            if id(stream) not in known:
                positions: dict[int, list[int]] = {}
                for position, _, _, access in accesses_to_gm(records, stream, lambda access: access.adds):
                    positions.setdefault(access.buffer, []).append(position)
                known[id(stream)] = {buffer: np.array(found, np.int64) for buffer, found in positions.items()}
            for buffer, places in known[id(stream)].items():
                counted.setdefault(buffer, Counter()).update((np.asarray(offsets, np.int64)[places] // line).tolist())
    return {buffer: max(lines.values()) for buffer, lines in counted.items()}


def _of(stream: Stream, records: Sequence[OpRecord], expansion: Expansion, kinds: Kinds) -> _Transfers:
    """Returns the transfers of a stream; adds new kinds to ``kinds``."""
    found: list[tuple[int, int, bool]] = []
    for position, _, event, access in accesses_to_gm(records, stream):
        parts = {(part.buffer, part.written): part.nbytes for step in expansion.of(event) for part in step.cost.gm}
        nbytes = parts.get((access.buffer, access.writes))
        if nbytes is not None:
            found.append((position, kinds.setdefault((access.buffer, nbytes), len(kinds)), access.writes))
    return _Transfers(*np.array(found, np.int64).reshape(-1, 3).T)
