"""The kinds of blocks: blocks of one kind execute the same ops. For the search for hazards, their accesses to memory ranges in
GM that several accesses share must also have the same distances from each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.op_records import accesses_to_gm
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch, columns, offsets_key
from tilelang_npu.simulator.sanitizer.happens_before import Places, shared_memories

Key = tuple[int, ...]
"""A key that identifies the event streams of a block: the ids of the streams, because equal streams are one object."""


def key_of(run: BlockRun) -> Key:
    """Returns a key that is equal for blocks that execute the same ops (equal event streams)."""
    return tuple(id(stream) for stream in run.streams)


def block_kinds_in_memory(recorded: RecordedLaunch, distinct: list[BlockRun], places: Places) -> list[BlockRun]:
    """Returns one block of each kind, where blocks of one kind have equal event streams and equal distances between their
    accesses to those memory ranges in GM in which accesses can conflict.

    Args:
        recorded: the record of the launch.
        distinct: one block of each kind of event streams.
        places: the memory range in GM that contains each kernel argument, and the argument's offset in it.
    """
    program = recorded.program
    records = [program.functions[index].records for index, _ in program.lanes]
    shared = shared_memories(records, places)
    if not shared:
        return distinct
    alike: dict[tuple[object, ...], list[BlockRun]] = {}
    for run in recorded.blocks:
        alike.setdefault((key_of(run), offsets_key(run)), []).append(run)
    kinds: list[BlockRun] = []
    for runs in alike.values():
        # the memory range of each GM offset
        owners = [np.array([places[access.buffer][0] for *_, access in accesses_to_gm(known, stream)], np.intp)
                  for known, stream in zip(records, runs[0].streams, strict=True)]
        distances = _distances(runs, owners, shared)
        kinds += {row.tobytes(): run for row, run in reversed(list(zip(distances, runs, strict=True)))}.values()
    return sorted(kinds, key=lambda run: run.block)


def _distances(runs: Sequence[BlockRun], owners: Sequence[NDArray[np.intp]], shared: frozenset[int]) -> NDArray[np.int64]:
    """Returns a row for each block: the distances in bytes of its accesses from its first access in the same memory range.

    Args:
        runs: blocks with equal event streams.
        owners: for each core, the memory range of each GM access.
        shared: the memory ranges in which accesses can conflict.
    """
    parts = [np.zeros((len(runs), 0), np.int64)]
    for memory in sorted(shared):
        those = np.concatenate([columns(runs, lane, np.flatnonzero(owner == memory))[1]
                                for lane, owner in enumerate(owners)], axis=1)
        parts.append(those - those[:, :1])
    return np.concatenate(parts, axis=1)
