"""``written``, which computes the elements of a tensor that a launch wrote."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import Access, Footprint, accesses_to_gm, footprint
from tilelang_npu.simulator.run.recorded_launch import RecordedLaunch


def written(recorded: RecordedLaunch, buffer: int, array: Array) -> NDArray[np.bool_]:
    """Returns a mask, in the shape of ``array``, of the elements that a launch wrote.

    Atomic updates do not count as writes, because their result depends on the previous value.

    Args:
        recorded: the record of the launch.
        buffer: the position of the kernel argument.
        array: the array that was passed for this argument.
    """
    def only_writes(access: Access) -> bool:
        return access.memory == "gm" and access.buffer == buffer and access.writes and not access.reads

    functions = recorded.program.functions
    grain = gcd(array.itemsize, *(access.element for function in functions for record in function.records
                                  for access in record.accesses if only_writes(access)))
    covered = np.zeros(array.nbytes // grain, np.bool_)
    known: dict[tuple[int, int], dict[Footprint, list[int]]] = {}  # of each stream, positions of offsets by footprint
    for run in recorded.blocks:
        for stream, offsets, (index, _) in zip(run.streams, run.gm, recorded.program.lanes, strict=True):
            key = index, id(stream)  # equal streams are one object
            if key not in known:
                known[key] = {}
                for position, _, event, access in accesses_to_gm(functions[index].records, stream, only_writes):
                    shape = footprint(access, event).simplified()
                    if not shape.empty:
                        known[key].setdefault(shape, []).append(position)
            where = np.asarray(offsets) // grain
            for shape, positions in known[key].items():
                _mark(covered, shape, where[positions].tolist(), grain)
    whole = covered.reshape(-1, array.itemsize // grain).all(axis=1)
    return np.asarray(whole.reshape(array.shape))


def _mark(covered: NDArray[np.bool_], shape: Footprint, offsets: Sequence[int], grain: int) -> None:
    """Marks the bytes of a footprint as written, for each of some offsets.

    Args:
        covered: the mask, with an element for each ``grain`` bytes of the tensor.
        shape: the footprint.
        offsets: the offsets, in units of ``grain`` bytes.
        grain: the number of bytes of an element of the mask.
    """
    run = shape.element // grain
    if not shape.sizes:
        for offset in offsets:
            covered[offset:offset + run] = True
        return
    strides = (*(stride // grain for stride in shape.strides), 1)
    for offset in offsets:
        np.ndarray((*shape.sizes, run), np.bool_, covered, offset, strides)[...] = True
