"""``Roofline``: the operations per second that a launch achieves, and the limits that the chip sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.result.cube_operations import products
from tilelang_npu.simulator.result.profile.moved_bytes import argument_bytes, vector_work

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch


@dataclass(frozen=True)
class Roofline:
    """The operations per second that a call achieves, and the limits of the chip (roofline model).

    The memory of the roofline is HBM. If no byte comes from HBM or goes to it, as with a warm L2, it is L2.

    Attributes:
        unit: ``Cube`` or ``Vector``, whichever needs more time for its work at its peak rate; empty if neither has work.
        operations: for ``Cube`` the number of multiplications and additions, including padding; for ``Vector`` the number of
            computed elements.
        seconds: the duration of the call in seconds.
        at_peak: the seconds that all units of this kind on the chip need for the operations at their peak rate.
        hbm_bytes: the number of bytes that are transferred from or to HBM.
        hbm_seconds: the seconds that HBM needs for these bytes at its peak rate.
        needed_bytes: the minimum number of bytes that have to be transferred for the kernel's arguments.
        l2_bytes: the number of bytes that L2 transfers to the cores and from them: those that hit it, with the whole lines of
            rows that are not aligned; atomic updates count twice, because they read and write.
        l2_seconds: the seconds that L2 needs for these bytes at its peak rate.
        l2_rate: the peak rate of L2 in bytes per second, for the call's mixture of reads and writes.
        hbm_rate: the peak rate of HBM in bytes per second, for the call's mixture of reads and writes.
    """

    unit: str
    operations: float
    seconds: float
    at_peak: float
    hbm_bytes: int
    hbm_seconds: float
    needed_bytes: int
    l2_bytes: int
    l2_seconds: float
    l2_rate: float
    hbm_rate: float

    @property
    def memory(self) -> Literal["HBM", "L2"]:
        """The memory whose bytes the roofline counts: ``HBM``, or ``L2`` if no byte is transferred from or to HBM."""
        return "HBM" if self.hbm_bytes else "L2"

    @property
    def memory_bytes(self) -> int:
        """The number of bytes that are transferred from or to this memory."""
        return self.hbm_bytes or self.l2_bytes

    @property
    def memory_rate(self) -> float:
        """The peak rate of this memory in bytes per second."""
        return self.hbm_rate if self.hbm_bytes else self.l2_rate

    @property
    def intensity(self) -> float:
        """The number of operations per byte that is transferred from or to this memory; 0 if there are no such bytes."""
        return self.operations / self.memory_bytes if self.memory_bytes else 0.0

    @property
    def peak(self) -> float:
        """The peak operations per second of all units of this kind on the chip."""
        return self.operations / self.at_peak if self.at_peak else 0.0

    @property
    def achieved(self) -> float:
        """The operations per second that the call achieves."""
        return self.operations / self.seconds

    @property
    def attainable(self) -> float:
        """The operations per second that the units and the memory allow at this intensity."""
        return min(self.peak, self.intensity * self.memory_rate) if self.memory_bytes else self.peak

    @property
    def share(self) -> float:
        """The achieved share of the attainable rate: of the call's duration, the share in which the units or the memory,
        whichever is slower, would be done at their peak rate. It is also defined for a call without operations."""
        in_memory = self.memory_bytes / self.memory_rate if self.memory_bytes else 0.0
        return max(self.at_peak, in_memory) / self.seconds

    @property
    def bound(self) -> str:
        """The limit that is reached first: the memory if it needs more time for its bytes than the units need at their peak
        rate, otherwise ``compute``."""
        return self.memory if self.memory_bytes > self.memory_rate * self.at_peak else "compute"

    def to_dict(self) -> JsonObject:
        """Returns all figures as a dict that JSON can hold."""
        derived = ("memory", "memory_bytes", "memory_rate", "intensity", "peak", "achieved", "attainable", "bound")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def roofline(launches: Sequence[Launch]) -> Roofline:
    """Returns the roofline of a call.

    Args:
        launches: the launches of the call; at least one.
    """
    cube = cube_seconds = vector = vector_seconds = seconds = 0.0
    hbm = hbm_seconds = l2 = l2_seconds = 0.0
    needed = 0
    for launch in launches:
        for kind, work in products(launch).items():
            cube += work.done
            cube_seconds += work.done / launch.chip.peak_flops(kind)
        elements, at_peak = vector_work(launch)
        vector, vector_seconds = vector + elements, vector_seconds + at_peak
        seconds += launch.time_us * 1e-6
        use = launch.gm_use
        hbm, hbm_seconds = hbm + use.hbm_bytes, hbm_seconds + use.hbm_seconds
        l2, l2_seconds = l2 + use.l2_bytes, l2_seconds + use.l2_seconds
        needed += sum(row.needed for row in argument_bytes(launch))
    unit, operations, at_peak = max((("Cube", cube, cube_seconds), ("Vector", vector, vector_seconds)), key=lambda one: one[2])
    rates = launches[0].chip.traffic
    return Roofline(unit if operations else "", operations, seconds, at_peak, round(hbm), hbm_seconds, needed, round(l2),
                    l2_seconds, l2 / l2_seconds if l2_seconds else rates.l2,
                    hbm / hbm_seconds if hbm_seconds else rates.hbm_read)
