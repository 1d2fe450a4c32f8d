"""The achieved rate of a launch, and the limits of the chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.result.cube_operations import products
from tilelang_npu.simulator.result.profile.moved_bytes import argument_bytes, vector_work

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch


@dataclass(frozen=True)
class Roofline:
    """The rate of a unit over a time, and the limits.

    Attributes:
        unit: ``Cube`` or ``Vector``, whichever has more work; empty if neither has any.
        operations: multiplications and additions of the Cube cores, including padding; or elements of the Vector cores.
        seconds: the whole time.
        at_peak: seconds that the units of the whole chip need for the operations.
        hbm_bytes: bytes transferred from or to HBM.
        hbm_seconds: seconds that HBM needs for them.
        needed_bytes: the least number of bytes that the kernel's arguments need.
        l2_bytes: bytes that pass through L2.
        l2_rate: bytes per second of L2.
        hbm_rate: bytes per second of HBM, for this mixture of reads and writes.
    """

    unit: str
    operations: float
    seconds: float
    at_peak: float
    hbm_bytes: int
    hbm_seconds: float
    needed_bytes: int
    l2_bytes: int
    l2_rate: float
    hbm_rate: float

    @property
    def intensity(self) -> float:
        """Operations per byte of HBM."""
        return self.operations / self.hbm_bytes if self.hbm_bytes else 0.0

    @property
    def peak(self) -> float:
        """Operations per second of all units of the chip."""
        return self.operations / self.at_peak if self.at_peak else 0.0

    @property
    def achieved(self) -> float:
        """Operations per second of the launch."""
        return self.operations / self.seconds

    @property
    def attainable(self) -> float:
        """Operations per second that the limits allow at this intensity."""
        return min(self.peak, self.intensity * self.hbm_rate) if self.hbm_bytes else self.peak

    @property
    def bound(self) -> str:
        """The limit that applies: ``compute`` or ``HBM``."""
        return "HBM" if self.hbm_seconds > self.at_peak else "compute"

    def to_dict(self) -> JsonObject:
        """Returns the figures as data for JSON."""
        derived = ("intensity", "peak", "achieved", "attainable", "bound")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def roofline(launches: Sequence[Launch]) -> Roofline:
    """Returns the roofline of launches, one after the other."""
    cube = cube_seconds = vector = vector_seconds = seconds = hbm_seconds = 0.0
    hbm = needed = l2 = 0
    for launch in launches:
        for kind, work in products(launch).items():
            cube += work.done
            cube_seconds += work.done / launch.chip.peak_flops(kind)
        elements, at_peak = vector_work(launch)
        vector, vector_seconds = vector + elements, vector_seconds + at_peak
        seconds += launch.time_us * 1e-6
        rates = launch.chip.traffic
        for row in argument_bytes(launch):
            hbm, needed, l2 = hbm + row.hbm, needed + row.needed, l2 + row.moved
            hbm_seconds += row.hbm / (rates.hbm_write if row.written else rates.hbm_read)
    unit, operations, at_peak = max((("Cube", cube, cube_seconds), ("Vector", vector, vector_seconds)), key=lambda one: one[2])
    rates = launches[0].chip.traffic
    return Roofline(unit if operations else "", operations, seconds, at_peak, hbm, hbm_seconds, needed, l2, rates.l2,
                    hbm / hbm_seconds if hbm_seconds else rates.hbm_read)
