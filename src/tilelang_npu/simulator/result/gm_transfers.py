"""The transfers of a launch between the cores and GM, with their offsets in the tensors, for the model of L2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.op_records import Event, OpRecord, Stream, accesses_to_gm, number_of
from tilelang_npu.simulator.machine.repeated_events import counted, first_executed, first_offsets, kept_events
from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch
from tilelang_npu.simulator.time.l2 import WALKED, Flags, Kinds, Numbers, Used, most_of_each
from tilelang_npu.simulator.time.pipe_steps import Expansion


class _Transfers(NamedTuple):
    """The GM transfers of one core in one block: the positions of their offsets among the core's GM offsets, the numbers of
    their kinds, and whether they write."""

    place: Numbers
    kind: NDArray[np.int32]
    written: Flags


def by_wave(recorded: RecordedLaunch, expansions: Sequence[Expansion], cores: int, kinds: Kinds,
            most: int = WALKED) -> Iterator[list[Used]]:
    """Yields, for each wave (one block on each core), the GM transfers of each core; adds new kinds of transfers to ``kinds``.

    Args:
        recorded: the record of the launch.
        expansions: the steps of the ops of each function.
        cores: the number of blocks of a wave.
        kinds: the kinds of transfers (pairs of a kernel argument and a transfer size), which this function extends.
        most: the number of transfers of a wave that are needed; the arrays of the result have no others.
    """
    known: dict[tuple[int, int, int], _Transfers] = {}  # a Cube core and a Vector core may have equal streams
    counts: dict[tuple[int, int], int] = {}
    for start in range(0, len(recorded.blocks), cores):
        lanes = [(index, stream, offsets) for run in recorded.blocks[start:start + cores]
                 for stream, offsets, (index, _) in zip(run.streams, run.gm, recorded.program.lanes, strict=True)]
        for index, stream, _ in lanes:
            if (index, id(stream)) not in counts:
                counts[index, id(stream)] = _count(stream, recorded.program.functions[index].records, expansions[index])
        totals = [counts[index, id(stream)] for index, stream, _ in lanes]
        wave = []
        for (index, stream, offsets), total, length in zip(lanes, totals, most_of_each(totals, most), strict=True):
            key = index, id(stream), length
            if key not in known:
                known[key] = _of(stream, recorded.program.functions[index].records, expansions[index], kinds, length)
            place, kind, written = known[key]
            found = first_offsets(offsets, int(place[-1]) + 1 if len(place) else 0)
            wave.append(Used(kind, written, found[place], total))
        yield wave


def most_added(recorded: RecordedLaunch, line: int) -> dict[int, int]:
    """Returns, for each kernel argument with atomic updates, the number of updates of the line that is updated most often.

    Args:
        recorded: the record of the launch.
        line: the number of bytes of an L2 line.
    """
    functions = recorded.program.functions
    lanes = [functions[index].records for index, _ in recorded.program.lanes]
    if not any(access.memory == "gm" and access.adds for records in lanes for record in records for access in record.accesses):
        return {}
    known: dict[tuple[int, int], dict[int, Numbers]] = {}
    counted: dict[int, Counter[int]] = {}
    for run in recorded.blocks:
        for stream, offsets, records in zip(run.streams, run.gm, lanes, strict=True):
            key = id(records), id(stream)
            if key not in known:
                positions: dict[int, list[int]] = {}
                for position, _, _, access in accesses_to_gm(records, stream, lambda access: access.adds):
                    positions.setdefault(access.buffer, []).append(position)
                known[key] = {buffer: np.array(found, np.int64) for buffer, found in positions.items()}
            for buffer, places in known[key].items():
                counted.setdefault(buffer, Counter()).update((np.asarray(offsets, np.int64)[places] // line).tolist())
    return {buffer: max(lines.values()) for buffer, lines in counted.items()}


def _count(stream: Stream, records: Sequence[OpRecord], expansion: Expansion) -> int:
    """Returns the number of GM transfers of one core in one block."""
    return sum(times * sum((access.buffer, access.writes) in _moved(expansion, event)
                           for access in records[number_of(event)].accesses if access.offset is None)
               for event, times in counted(stream).items())


def _moved(expansion: Expansion, event: Event) -> dict[tuple[int, bool], int]:
    """Returns the bytes that an executed op moves, by kernel argument and whether they are written."""
    return {(part.buffer, part.written): part.nbytes for step in expansion.of(event) for part in step.cost.gm}


def _of(stream: Stream, records: Sequence[OpRecord], expansion: Expansion, kinds: Kinds, most: int) -> _Transfers:
    """Returns the first ``most`` GM transfers of one core in one block; adds new kinds of transfers to ``kinds``."""
    events = kept_events(stream)
    made: list[tuple[int, int, bool]] = []  # of each kept event in turn: the operand, the kind, and whether it is written
    counts, operands = np.zeros(len(events), np.int64), np.zeros(len(events), np.int64)
    for place, event in enumerate(events):
        in_gm = [access for access in records[number_of(event)].accesses if access.offset is None]
        if in_gm:
            moved, before = _moved(expansion, event), len(made)
            for operand, access in enumerate(in_gm):
                nbytes = moved.get((access.buffer, access.writes))
                if nbytes is not None:
                    made.append((operand, kinds.setdefault((access.buffer, nbytes), len(kinds)), access.writes))
            counts[place], operands[place] = len(made) - before, len(in_gm)
    wanted = most
    executed = first_executed(stream, wanted)
    while counts[executed].sum() < most and wanted < len(stream):
        wanted *= 4
        executed = first_executed(stream, wanted)
    starts = np.cumsum(counts) - counts
    offsets = np.cumsum(operands[executed]) - operands[executed]
    repeated = counts[executed]
    within = np.arange(repeated.sum()) - np.repeat(np.cumsum(repeated) - repeated, repeated)
    chosen = (np.repeat(starts[executed], repeated) + within)[:most]
    number, kind, written = np.array(made, np.int64).reshape(-1, 3).T
    places = np.repeat(offsets, repeated)[:most] + number[chosen]
    return _Transfers(places, kind.astype(np.int32)[chosen], written.astype(bool)[chosen])
