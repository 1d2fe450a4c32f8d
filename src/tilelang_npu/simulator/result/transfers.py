"""The transfers between the cores and GM of a launch, with where in GM they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tilelang_npu.simulator.machine.events import OpRecord, Stream, number_of
from tilelang_npu.simulator.run.recorded import Recorded
from tilelang_npu.simulator.time.l2 import Used
from tilelang_npu.simulator.time.steps import Expansion


class _Transfer(NamedTuple):
    """A transfer of a stream: where its offset stands among those of GM, the tensor, whether it is written, bytes."""

    place: int
    buffer: int
    written: bool
    nbytes: int


def by_wave(recorded: Recorded, expansions: Sequence[Expansion], cores: int) -> Iterator[list[list[Used]]]:
    """What each core uses with its block, for the blocks that ``cores`` take side by side."""
    known: dict[int, list[_Transfer]] = {}
    for start in range(0, len(recorded.blocks), cores):
        wave = []
        for run in recorded.blocks[start:start + cores]:
            for stream, offsets, (index, _) in zip(run.streams, run.gm, recorded.program.lanes, strict=True):
                if id(stream) not in known:
                    known[id(stream)] = _of(stream, recorded.program.functions[index].records, expansions[index])
                places = list(offsets)
                wave.append([Used(one.buffer, one.written, places[one.place], one.nbytes, one.nbytes)
                             for one in known[id(stream)]])
        yield wave


def _of(stream: Stream, records: Sequence[OpRecord], expansion: Expansion) -> list[_Transfer]:
    found, place = [], 0
    for event in stream:
        parts = {(part.buffer, part.written): part.nbytes for step in expansion.of(event) for part in step.cost.gm}
        for access in records[number_of(event)].accesses:
            if access.offset is None:
                key = access.buffer, access.writes
                if key in parts:
                    found.append(_Transfer(place, *key, parts[key]))
                place += 1
    return found
