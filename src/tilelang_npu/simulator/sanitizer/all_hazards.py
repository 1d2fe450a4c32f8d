"""``find_all_hazards``, which runs all searches of the sanitizer on the record of a launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch
from tilelang_npu.simulator.sanitizer.block_races import find_block_races
from tilelang_npu.simulator.sanitizer.hazard import Hazard
from tilelang_npu.simulator.sanitizer.identical_writes import drop_identical_writes
from tilelang_npu.simulator.sanitizer.padding import find_padding
from tilelang_npu.simulator.sanitizer.reused_bytes import find_reused_bytes
from tilelang_npu.simulator.sanitizer.uninitialised_memory import find_uninitialised_memory
from tilelang_npu.simulator.sanitizer.uninitialised_tensors import find_uninitialised_tensors


def find_all_hazards(recorded: RecordedLaunch, distinct: Sequence[BlockRun], met: Sequence[tuple[list[BlockRun], list[Hazard]]],
                     misaligned: Sequence[Hazard], blank: Mapping[int, NDArray[np.bool_]]) -> list[Hazard]:
    """Returns all hazards of a launch, each only once although several blocks or iterations may have it.

    Args:
        recorded: the record of the launch.
        distinct: one block of each kind of event streams.
        met: groups of blocks that run together, each with the races and flag faults among their ops.
        misaligned: the hazards of misaligned addresses.
        blank: for each kernel argument that the call allocated, a mask of the bytes that no launch has written.
    """
    found = [hazard for runs, hazards in met for hazard in drop_identical_writes(recorded, runs, hazards)]
    found += misaligned
    if not recorded.program.global_sync:
        found += find_block_races(recorded)  # otherwise ``met`` contains them
    found += find_uninitialised_memory(recorded, distinct)
    found += find_uninitialised_tensors(recorded, blank)
    found += find_reused_bytes(recorded, distinct)
    found += find_padding(recorded, distinct)
    seen: dict[tuple[object, ...], Hazard] = {}
    for hazard in found:
        seen.setdefault(hazard.key, hazard)
    return list(seen.values())
