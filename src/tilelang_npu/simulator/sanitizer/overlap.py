"""Exact test whether two strided footprints share a byte, fast in common cases."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tilelang_npu.simulator.machine.events import Footprint
from tilelang_npu.simulator.machine.memory import Array


def overlap(first: Footprint, second: Footprint) -> bool:
    """Whether two simplified footprints overlap."""
    if first.empty or second.empty or first.end <= second.offset or second.end <= first.offset:
        return False
    if not first.sizes and not second.sizes:
        return True
    return _shifted(first._replace(offset=0), second._replace(offset=0), second.offset - first.offset)


@lru_cache(maxsize=4096)
def _shifted(first: Footprint, second: Footprint, apart: int) -> bool:
    """Whether they overlap if the second starts ``apart`` bytes after the first."""
    if len(first.strides) == 1 and first.strides == second.strides and max(first.element, second.element) <= first.strides[0]:
        return _same_pitch(first, second, apart)
    starts, ends = _runs(first)
    others, other_ends = _runs(second._replace(offset=apart))
    return bool((np.searchsorted(ends, others, "right") < np.searchsorted(starts, other_ends, "left")).any())


def _same_pitch(first: Footprint, second: Footprint, apart: int) -> bool:
    """Whether rows with equal stride overlap."""
    pitch = first.strides[0]
    rows, others = first.sizes[0], second.sizes[0]
    for column, row in ((apart % pitch, apart // pitch), (apart % pitch - pitch, apart // pitch + 1)):
        # second row j starts at column ``column`` of row ``row + j`` of the first's grid
        meets = column < first.element and column + second.element > 0
        if meets and row < rows and row + others > 0:
            return True
    return False


def _runs(place: Footprint) -> tuple[Array, Array]:
    """Returns the starts and ends of the contiguous runs, sorted."""
    starts = np.asarray([place.offset], np.int64)
    for size, stride in zip(place.sizes, place.strides, strict=True):
        starts = (starts[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    starts.sort()
    return starts, starts + place.element
