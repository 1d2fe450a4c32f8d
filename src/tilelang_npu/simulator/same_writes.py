"""Writes of the same bytes by both Vector cores of a block: a kernel that does not part their work does everything twice.

Where two writes differ it is a race; where they are the same, whichever lands last leaves what the other left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from xdsl.ir import Operation

from tilelang_npu.simulator.events import OpRecord
from tilelang_npu.simulator.finding import Hazard
from tilelang_npu.simulator.program import BlockRun, Recorded

_VECTOR = ("AIV0", "AIV1")


def without_same_writes(recorded: Recorded, run: BlockRun, hazards: Sequence[Hazard]) -> list[Hazard]:
    """The hazards without those of writes to GM that both Vector cores do with the same bytes.

    Args:
        recorded: the launch.
        run: the block; it runs once more, on copies, where such writes meet.
        hazards: what was found in it.
    """
    met = {hazard.first.number for hazard in hazards if _both_write(hazard)}
    if not met:
        return list(hazards)
    watch = _Writes(met)
    recorded.program.again(recorded.bound, run.block, len(recorded.blocks), observer=watch)
    return [hazard for hazard in hazards if not (_both_write(hazard) and watch.agree(hazard.first.number))]


def _both_write(hazard: Hazard) -> bool:
    """Whether a hazard is one op of both Vector cores, writing the same bytes of GM."""
    return (hazard.code == "S202" and hazard.kind == "WAW" and hazard.memory == "GM" and hazard.second is not None
            and hazard.first.number == hazard.second.number >= 0
            and (hazard.first.core, hazard.second.core) in (_VECTOR, _VECTOR[::-1]))


class _Writes:
    """Keeps what some ops of the Vector cores write: where, and which bytes, each time that they run."""

    def __init__(self, numbers: set[int]) -> None:
        self._kept: dict[int, tuple[list[object], list[object]]] = {number: ([], []) for number in numbers}

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[NDArray[Any]],
               writes: Sequence[NDArray[Any]]) -> object:
        return (sub, record.number, writes) if record.core == "AIV" and record.number in self._kept else None

    def after(self, kept: Any) -> None:
        if kept is not None:
            sub, number, writes = kept
            self._kept[number][sub].append([(one.__array_interface__["data"], one.strides, one.tobytes()) for one in writes])

    def agree(self, number: int) -> bool:
        """Whether both cores write the same to the same places, time by time."""
        first, second = self._kept[number]
        return first == second
