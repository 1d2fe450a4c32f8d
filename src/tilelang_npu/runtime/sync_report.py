"""Every wait of a kernel with its reason and its price: what ``kernel.sync_report()`` shows.

One row for each wait and barrier of the kernel's text, in its order, those that mmadL1 makes itself included. The reason is the
remark of the pass that made it; the price is what the timing held of that operation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.ir.remarks import Remark, Touched, WaitReason, Waits, remark_of, remarks_of, remarks_of_events
from tilelang_npu.dialects.text import location_of
from tilelang_npu.display import Report
from tilelang_npu.errors import Location

if TYPE_CHECKING:
    from tilelang_npu.simulator import AnyLaunch, Launch

__all__ = ["SyncReport", "WaitEntry", "reasons_of_waits", "sync_report", "why"]

WAITS = (hivm.WaitFlagOp, hivm.PipeBarrierOp, hivm.SyncBlockWaitOp, hivm.SyncBlockOp)
"""The operations that wait."""


@dataclass(frozen=True)
class WaitEntry:
    """A wait or a barrier.

    Attributes:
        core: ``AIC`` or ``AIV``.
        what: ``wait MTE2 -> V``, ``barrier V``, ``wait for AIV`` or, for ``sync_block``, ``meet ALL_VECTOR``.
        numbers: the events or the flag, in words; empty for a barrier.
        line: the line of the kernel in front of which it stands, or behind whose loop.
        reason: the accesses that it keeps apart; ``by hand`` where the author wrote it, or what the compiler needs it for.
        stalls_us: microseconds that it holds its pipe in a block, on average.
        between: lines of the two accesses, the earlier one first; None where the compiler did not insert it for two.
        behind: it stands behind the loop of a wait, and takes back what the last iterations have left.
    """

    core: str
    what: str
    numbers: str
    line: Location | None
    reason: str
    stalls_us: float
    between: tuple[Location | None, Location | None] | None = None
    behind: bool = False


@dataclass(frozen=True)
class SyncReport(Report):
    """The waits of a kernel.

    Attributes:
        kernel: its name.
        chip: the chip that the times are of.
        entries: one for each wait of the text, in its order.
    """

    kernel: str
    chip: str
    entries: tuple[WaitEntry, ...]

    def __str__(self) -> str:
        rows = [(entry.core, entry.what, entry.numbers, _placed(entry),
                 entry.reason, f"stalls {entry.stalls_us:.2f} us" if entry.stalls_us >= 0.005 else "stalls 0")
                for entry in self.entries]
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(6)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        head = f"{self.kernel} on {self.chip}: {len(rows)} waits and barriers; microseconds of a block"
        return "\n".join([head, *lines])


def _placed(entry: WaitEntry) -> str:
    if entry.line is None:
        return ""
    return f"behind the loop of line {entry.line.line}" if entry.behind else f"before line {entry.line.line}"


def sync_report(name: str, launch: AnyLaunch) -> SyncReport:
    """The report of a kernel.

    Args:
        name: the kernel's name.
        launch: a launch, for the times.
    """
    return SyncReport(name, launch.parts[0].chip.name, tuple(entry for part in launch.parts for entry in _entries(part)))


def _entries(launch: Launch) -> Iterator[WaitEntry]:
    held: dict[tuple[Operation, int], float] = defaultdict(float)
    program = launch.recorded.program
    for index, function in enumerate(program.functions):
        for op, record in zip(program.ops(index), function.records, strict=True):
            for place in (-1, *(event.place for event, _ in _waits_inside(op))):
                held[op, place] += launch.held_us.get((index, record.number, place), 0.0)
    for device_function, function in zip(program.device_functions, program.functions, strict=True):
        for op in device_function.walk():
            if isinstance(op, WAITS):
                yield _entry(op, function.core, held.get((op, -1), 0.0))
            for event, value in _waits_inside(op):
                said = remarks_of_events(op).get(event.place)
                yield _told(op, function.core, f"wait {event.source} -> {event.target}", constant_value(value), said,
                            held.get((op, event.place), 0.0))


def _waits_inside(op: Operation) -> list[tuple[hivm.SharedEvent, SSAValue]]:
    """The events that a macro waits for, where it is not for itself."""
    if not isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
        return []
    return [(event, value) for event, value in op.shared_events() if not event.sets and event not in op.HALVES]


def reasons_of_waits(op: Operation) -> list[Remark]:
    """What passes said of the waits that an operation is or makes."""
    if isinstance(op, WAITS):
        return list(remarks_of(op))
    about = remarks_of_events(op)
    return [about[event.place] for event, _ in _waits_inside(op) if event.place in about]


def _entry(op: Operation, core: str, held: float) -> WaitEntry:
    what, number = _described(op, core)
    return _told(op, core, what, number if isinstance(number, int) else None, remark_of(op), held)


def _told(op: Operation, core: str, what: str, number: int | None, said: Remark | None, held: float) -> WaitEntry:
    """A row.

    Args:
        op: the operation that waits.
        core: its core.
        what: what it is.
        number: of the event or flag; None where it is computed, or there is none.
        said: what a pass said of it.
        held: microseconds.
    """
    facts = said.facts if said is not None and isinstance(said.facts, Waits) else Waits()
    numbers = facts.numbers if number is None else (number,)
    if isinstance(op, (hivm.WaitFlagOp, hivm.MmadL1Op, hivm.BatchMmadL1Op)):
        spelled = (", ".join(f"EVENT_ID{one}" for one in numbers) or "events") + ("" if len(numbers) == 1 else " in turn")
    elif isinstance(op, hivm.SyncBlockWaitOp):
        spelled = f"flag {numbers[0]}" if numbers else "a flag"
    else:
        spelled = ""
    if said is None:
        return WaitEntry(core, what, spelled, location_of(op), "by hand", held)
    between = (facts.reasons[0].first.line, facts.reasons[0].second.line) if facts.reasons else None
    line = location_of(op) if facts.behind or not facts.reasons else facts.before
    return WaitEntry(core, what, spelled, line, why(said), held, between, facts.behind)


def _described(op: Operation, core: str) -> tuple[str, int | SSAValue | None]:
    """What a wait is, and its event or flag."""
    if isinstance(op, hivm.WaitFlagOp):
        return f"wait {' -> '.join(op.pipes())}", op.event_id()
    if isinstance(op, hivm.SyncBlockWaitOp):
        return f"wait for {'AIV' if core == 'AIC' else 'AIC'}", op.flag_id()
    if isinstance(op, hivm.PipeBarrierOp):
        return f"barrier {op.pipes()[0]}", None
    assert isinstance(op, hivm.SyncBlockOp)
    return f"meet {op.sync_block_mode.data}", None


def why(said: Remark) -> str:
    """Why an operation that synchronises was made, in words."""
    return said.text or "; ".join(map(_apart, said.facts.reasons if isinstance(said.facts, Waits) else ()))


def _apart(reason: WaitReason) -> str:
    first, second = reason.first, reason.second
    name = second.name if first.name == second.name else f"{second.name} in the bytes of {first.name}"
    later = {0: "", 1: " of the next iteration"}.get(reason.distance, f" {reason.distance} iterations on")
    return f"{name}, {reason.size} B: {_did(first)}, {_did(second)}{later} ({reason.kind})"


def _did(touched: Touched) -> str:
    place = touched.line
    return f"{'written' if touched.writes else 'read'} at {place.line if place is not None else '?'}"
