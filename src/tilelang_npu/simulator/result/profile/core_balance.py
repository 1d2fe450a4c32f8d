"""The balance of a launch: for how long each core works, waits for other cores to end, and what makes cores idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilelang_npu.simulator.result import JsonObject
    from tilelang_npu.simulator.result.launch_result import Launch

_UNEVEN = 0.05
"""The idle share of the cores' time from which on a cause is named."""


@dataclass(frozen=True)
class CoreBalance:
    """How evenly the blocks of a launch use the cores of the chip.

    Attributes:
        cores: the number of cores that run blocks; a core is a Cube core with its Vector cores, or a Vector core alone.
        unused: the number of further cores of the chip, which get no block.
        waves: the number of waves.
        last_wave: the number of blocks of the last wave.
        first_end_us: the microseconds from the start of the first block to the end of the core that ends first.
        last_end_us: the microseconds from the start of the first block to the end of the core that ends last.
        idle: the share of the time of all cores of the chip, from 0 to 1, in which a core has no block.
        longest: the number of the block with the longest time.
        uneven: the time of the longest block divided by that of the shortest one.
    """

    cores: int
    unused: int
    waves: int
    last_wave: int
    first_end_us: float
    last_end_us: float
    idle: float
    longest: int
    uneven: float

    @property
    def cause(self) -> str:
        """What makes cores idle most, as text; empty if they are idle for less than 5 % of the time."""
        if self.idle < _UNEVEN:
            return ""
        without_blocks = self.unused / (self.cores + self.unused)
        if without_blocks > self.idle / 2:
            return f"few blocks: {self.unused} of {self.cores + self.unused} cores get none"
        if self.uneven > 1 + _UNEVEN and self.last_end_us - self.first_end_us > _UNEVEN * self.last_end_us:
            return f"blocks of unequal length: block {self.longest} takes {self.uneven:.1f} times as long as the shortest"
        if self.waves > 1 and self.last_wave < self.cores:
            return f"a tail: the last of {self.waves} waves has {self.last_wave} blocks for {self.cores} cores"
        return "cores wait for the dispatch of their blocks"

    def __str__(self) -> str:
        unused = f", {self.unused} more cores are unused" if self.unused else ""
        cause = f"; {self.cause}" if self.cause else ""
        waves = f"{self.waves} wave{'s' * (self.waves != 1)}"
        first, last = f"{self.first_end_us:.2f}", f"{self.last_end_us:.2f}"
        ends = f"cores end after {first if first == last else f'{first} to {last}'} us"
        return f"{self.cores} cores, {waves}{unused}; {ends}, and are idle for {self.idle:.0%} of the time{cause}"

    def to_dict(self) -> JsonObject:
        """Returns the balance as a dict that JSON can hold."""
        return {**vars(self), "cause": self.cause}


def core_balance(launch: Launch) -> CoreBalance:
    """Returns the balance of a launch."""
    cores = min(launch.cores, launch.blocks)
    ends = [launch.chip.microseconds(cycles) for cycles in launch.core_cycles]
    times = [launch.chip.microseconds(group.timing.cycles) for group in launch.group_of_block]
    total = max(max(ends), 1e-12)
    longest = max(range(len(times)), key=times.__getitem__)
    last_wave = launch.blocks - (launch.waves - 1) * launch.cores
    idle = max(0.0, 1 - sum(times) / (launch.cores * total))
    return CoreBalance(cores, launch.cores - cores, launch.waves, last_wave, min(ends), max(ends), idle, longest,
                       times[longest] / max(min(times), 1e-12))
