"""Bandwidth of global memory for one core while others use it too.

The chip serves each byte once from HBM and again from L2 as long as L2 holds it (``l2``). That gives mean seconds per byte of
each tensor; with ``n`` transfers in flight, each takes ``n`` times as long per byte. The mean number of transfers in flight
follows from the times and the times from it, so both are iterated until they settle.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilelang_npu.simulator.machine.op_records import Event
from tilelang_npu.simulator.time.pipe_steps import Expansion
from tilelang_npu.simulator.time.timing import Pace, Share
from tilelang_npu.target import Chip

Key = tuple[int, bool]
"""A kernel argument, and whether it is written."""


@dataclass
class MovedBytes:
    """Bytes of a tensor that a launch moves, as in ``GmBytes``."""

    nbytes: float = 0.0
    far: float = 0.0
    near: float = 0.0

    def add(self, nbytes: float, far: float, near: float, times: int) -> None:
        """Adds bytes, multiplied by ``times``."""
        self.nbytes += nbytes * times
        self.far += far * times
        self.near += near * times


def bytes_of(stream: Sequence[Event], expansion: Expansion) -> dict[Key, MovedBytes]:
    """Returns the GM bytes of one core in one block."""
    total: dict[Key, MovedBytes] = defaultdict(MovedBytes)
    for event, count in Counter(stream).items():
        for step in expansion.of(event):
            for part in step.cost.gm:
                total[part.buffer, part.written].add(part.nbytes, part.far, part.near, count)
    return total


@dataclass(frozen=True)
class Served:
    """How the chip serves a tensor.

    Attributes:
        far: share of its bytes that are transferred from or to HBM.
        hbm, l2: mean seconds of HBM and of L2 per byte.
    """

    far: float
    hbm: float
    l2: float


def served(moved: Mapping[Key, MovedBytes], missed: Mapping[Key, float], added: Mapping[int, int],
           chip: Chip) -> dict[Key, Served]:
    """Returns how the chip serves each tensor.

    Args:
        moved: bytes of the whole launch.
        missed: the share of them that L2 does not hold (``l2``).
        added: for each tensor with atomic updates, the number of updates of its most updated line: they are serialised.
        chip: gives the rates.
    """
    rates = chip.traffic
    near = sum(part.near for part in moved.values())
    read = sum(part.near for (_, written), part in moved.items() if not written)
    l2 = rates.l2_at(read / near if near else 1.0)
    found = {}
    for key in moved:
        far = missed.get(key, 0.0)
        buffer, written = key
        in_turn = added.get(buffer, 0) * rates.same_line / max(moved[key].near, 1.0) if written else 0.0
        found[key] = Served(far, far / (rates.hbm_write if written else rates.hbm_read), max((1.0 - far) / l2, in_turn))
    return found


def pace_of(serves: Mapping[Key, Served], sharing: float, chip: Chip) -> Pace:
    """Returns the share of one transfer among ``sharing`` that are in flight at the same time."""
    return {key: Share(one.far, one.hbm * sharing * chip.clock, one.l2 * sharing * chip.clock) for key, one in serves.items()}
