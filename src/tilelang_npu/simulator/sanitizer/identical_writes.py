"""Removal of reported races in which two Vector cores write equal values to the same bytes.

In a kernel that does not divide a block's work among its Vector cores, each Vector core computes and stores everything. Such
writes are a race only if their values differ; if the values are equal, the order of the writes has no effect.
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
    """Returns the hazards without those in which two Vector cores write equal values to the same bytes of GM.

    Args:
        recorded: the record of the launch.
        runs: the blocks that run together. They run once more, on copies of the arrays, if a hazard has to be decided.
        hazards: the hazards of these blocks.
    """
    met = {hazard.first.number for hazard in hazards if _both_write(hazard)}
    if not met:
        return list(hazards)
    watch = _Writes(met)
    decided = recorded.replay.watched(runs, watch)
    return [hazard for hazard in hazards if not (_both_write(hazard) and (not decided or watch.agree(hazard.first.number)))]


def _both_write(hazard: Hazard) -> bool:
    """Whether a hazard is a race in which two Vector cores execute the same op, which writes the same bytes of GM."""
    return (hazard.code in ("S202", "S203") and hazard.kind == "WAW" and hazard.memory == "GM" and hazard.second is not None
            and hazard.first.number == hazard.second.number >= 0
            and hazard.first.core.startswith("AIV") and hazard.second.core.startswith("AIV"))


class _Write(NamedTuple):
    """An op that is about to write: its block and sub-block, its number, and the arrays of its outputs."""

    core: tuple[int, int]
    number: int
    writes: Sequence[Array]


class _Writes:
    """An observer that records the addresses and values that some ops of the Vector cores write.

    Args:
        numbers: the numbers of these ops.
    """

    def __init__(self, numbers: set[int]) -> None:
        self._kept: dict[int, dict[tuple[int, int], list[list[_Written]]]] = {number: {} for number in numbers}

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Array],
               writes: Sequence[Array]) -> object:
        """Returns a description of the op for :meth:`after` if the op's writes are to be recorded, otherwise None."""
        known = record.core == "AIV" and record.number in self._kept
        return _Write((block, sub), record.number, writes) if known else None

    def after(self, kept: object) -> None:
        """Records the addresses and values that an op has written."""
        if isinstance(kept, _Write):
            self._kept[kept.number].setdefault(kept.core, []).append([_Written.of(one) for one in kept.writes])

    def agree(self, number: int) -> bool:
        """Whether all cores whose executions of an op write overlapping bytes wrote the same values to the same addresses in
        the same order.

        Args:
            number: the number of the op.
        """
        cores = list(self._kept[number].values())
        return all(one == other or not any(a.meets(b) for a in chain(*one) for b in chain(*other))
                   for one, other in combinations(cores, 2))


class _Written(NamedTuple):
    """A write: the address of its first byte and of the byte after its last one, its strides in bytes, and its values."""

    start: int
    end: int
    strides: tuple[int, ...]
    left: bytes

    @classmethod
    def of(cls, array: Array) -> _Written:
        """Returns the write of all elements of an array."""
        start = end = array.__array_interface__["data"][0]
        for size, stride in zip(array.shape, array.strides, strict=True):
            start += min((size - 1) * stride, 0)
            end += max((size - 1) * stride, 0)
        return cls(start, end + array.itemsize, array.strides, array.tobytes())

    def meets(self, other: _Written) -> bool:
        """Whether the ranges of addresses of two writes overlap."""
        return self.start < other.end and other.start < self.end
