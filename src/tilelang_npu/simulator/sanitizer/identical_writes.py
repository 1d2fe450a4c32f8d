"""Equal writes of the same bytes by two Vector cores: a kernel that does not divide a block's work computes everything twice.

If two writes differ, they are a race; if they are equal, their order has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch
from tilelang_npu.simulator.sanitizer.hazard import Hazard

if TYPE_CHECKING:
    from xdsl.ir import Operation


def drop_identical_writes(recorded: RecordedLaunch, runs: Sequence[BlockRun], hazards: Sequence[Hazard]) -> list[Hazard]:
    """Removes hazards of writes to GM by two Vector cores that write equal values.

    Args:
        recorded: the launch.
        runs: the blocks that run together; they run once more, on copies, if there are such hazards.
        hazards: the hazards of these blocks.
    """
    met = {hazard.first.number for hazard in hazards if _both_write(hazard)}
    if not met:
        return list(hazards)
    watch = _Writes(met)
    decided = recorded.replay.watched(runs, watch)
    return [hazard for hazard in hazards if not (_both_write(hazard) and (not decided or watch.agree(hazard.first.number)))]


def _both_write(hazard: Hazard) -> bool:
    """Whether a hazard is one op of two Vector cores that writes the same bytes of GM."""
    return (hazard.code in ("S202", "S203") and hazard.kind == "WAW" and hazard.memory == "GM" and hazard.second is not None
            and hazard.first.number == hazard.second.number >= 0
            and hazard.first.core.startswith("AIV") and hazard.second.core.startswith("AIV"))


class _Write(NamedTuple):
    """An op before it writes: its core and number, and its outputs."""

    core: tuple[int, int]
    number: int
    writes: Sequence[Array]


class _Writes:
    """An observer that keeps the addresses and values of the writes of some ops of the Vector cores."""

    def __init__(self, numbers: set[int]) -> None:
        self._kept: dict[int, dict[tuple[int, int], list[list[_Written]]]] = {number: {} for number in numbers}

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        known = record.core == "AIV" and record.number in self._kept
        return _Write((block, sub), record.number, writes) if known else None

    def after(self, kept: object) -> None:
        if isinstance(kept, _Write):
            self._kept[kept.number].setdefault(kept.core, []).append([_Written.of(one) for one in kept.writes])

    def agree(self, number: int) -> bool:
        """Whether cores that write overlapping bytes write the same values to the same places, in the same order."""
        cores = list(self._kept[number].values())
        return all(one == other or not any(a.meets(b) for a in chain(*one) for b in chain(*other))
                   for one, other in combinations(cores, 2))


class _Written(NamedTuple):
    """A write: its first byte and one past its last, its strides, and its values."""

    start: int
    end: int
    strides: tuple[int, ...]
    left: bytes

    @classmethod
    def of(cls, array: Array) -> _Written:
        start = end = array.__array_interface__["data"][0]
        for size, stride in zip(array.shape, array.strides, strict=True):
            start += min((size - 1) * stride, 0)
            end += max((size - 1) * stride, 0)
        return cls(start, end + array.itemsize, array.strides, array.tobytes())

    def meets(self, other: _Written) -> bool:
        return self.start < other.end and other.start < self.end
