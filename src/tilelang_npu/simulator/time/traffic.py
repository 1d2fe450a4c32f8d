"""How fast global memory is for one core while others use it too.

The chip serves each byte once from HBM and again from L2. What all blocks together move in a tensor, against the tensor's
size, gives the mean seconds per byte of the tensor; with ``n`` transfers in flight, one gets a byte every ``n`` times as
long. How many are in flight on average follows from the times, and the times from it: a few rounds settle it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from tilelang_npu.simulator.machine.events import Event
from tilelang_npu.simulator.time.steps import Expansion
from tilelang_npu.simulator.time.timing import Pace
from tilelang_npu.target import Chip

Bytes = defaultdict[tuple[int, bool], float]


def bytes_of(stream: Sequence[Event], expansion: Expansion) -> Bytes:
    """GM bytes of one core's block by (kernel argument, whether they are written)."""
    total: Bytes = defaultdict(float)
    for event, count in Counter(stream).items():
        for step in expansion.of(event):
            for buffer, written, nbytes in step.cost.gm:
                total[buffer, written] += nbytes * count
    return total


def seconds_per_byte(moved: Bytes, sizes: Mapping[int, int], produced: frozenset[int],
                     chip: Chip) -> dict[tuple[int, bool], float]:
    """Mean time that the chip needs for a byte of each tensor.

    Args:
        moved: bytes of the whole launch.
        sizes: bytes of each tensor.
        produced: tensors whose reads find what the kernel wrote: they come from L2.
        chip: gives the rates.
    """
    rates = chip.traffic
    times = {}
    for (buffer, written), total in moved.items():
        if not total:
            continue
        first = min(float(total), float(sizes.get(buffer, 0)))
        if buffer in produced and not written:
            first = 0.0
        fast = rates.hbm_write if written else rates.hbm_read
        times[buffer, written] = (first / fast + (total - first) / rates.l2) / total
    return times


def pace_of(times: Mapping[tuple[int, bool], float], sharing: float, chip: Chip) -> Pace:
    """Cycles per byte for one transfer among ``sharing`` that are in flight at the same time."""
    return {key: seconds * sharing * chip.clock for key, seconds in times.items()}
