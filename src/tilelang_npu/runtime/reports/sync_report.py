"""``kernel.sync_report()``: lists every wait of a kernel with its reason and the time for which it stalls its pipe.

There is one row for each wait and barrier of the kernel's text, in order, and for each wait that an op ``mmadL1`` contains. The
reason is the remark of the pass that inserted the wait. The stall is the time for which the pipe is idle in the timing model
because of the wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.dialects.ir.remarks import Remark, Touched, WaitReason, Waits, remark_of, remarks_of, remarks_of_events
from tilelang_npu.dialects.text import location_of
from tilelang_npu.display import Report
from tilelang_npu.errors import Location
from tilelang_npu.target.chip_data import CoreKind

if TYPE_CHECKING:
    from tilelang_npu.simulator import AnyLaunch, Launch

WAITS = (hivm.WaitFlagOp, hivm.PipeBarrierOp, hivm.SyncBlockWaitOp, hivm.SyncBlockOp)
"""The operation classes of waits and barriers."""


@dataclass(frozen=True)
class WaitEntry:
    """A wait or a barrier: a row of the synchronisation report.

    Attributes:
        core: the kind of core that waits: ``AIC`` (Cube) or ``AIV`` (Vector).
        what: the kind of wait: ``wait MTE2 -> V`` for an event between two pipes, ``barrier V``, ``wait for AIV`` for a flag of
            the other core, or ``meet ALL_VECTOR`` for a ``sync_block``.
        numbers: the events (``EVENT_ID0``) or the flag (``flag 3``) of the wait; empty for a barrier.
        line: the line of the kernel before which the wait is; with ``after_loop``, the line of the loop after which it is.
        reason: the two accesses that the wait orders; ``by hand`` for a wait of the author; or another reason of the compiler.
        stalls_us: the microseconds for which the wait stalls its pipe in a block, averaged over the blocks.
        between: the lines of the two accesses, the earlier access first; None if the compiler did not insert the wait because
            of two accesses.
        after_loop: whether the wait is after a loop and consumes the events that the loop's last iterations have set.
        at_end: whether the wait is the kernel's last operation.
    """

    core: CoreKind
    what: str
    numbers: str
    line: Location | None
    reason: str
    stalls_us: float
    between: tuple[Location | None, Location | None] | None = None
    after_loop: bool = False
    at_end: bool = False


@dataclass(frozen=True)
class SyncReport(Report):
    """The synchronisation report of a kernel: its waits and barriers, with reasons and stalls. It prints as a table.

    Attributes:
        kernel: the kernel's name.
        chip: the name of the chip on which the times are modelled.
        entries: one entry for each wait and barrier, in the order of the kernel's text.
    """

    kernel: str
    chip: str
    entries: tuple[WaitEntry, ...]

    def __str__(self) -> str:
        rows = [(entry.core, entry.what, entry.numbers, _position(entry),
                 entry.reason, f"stalls {entry.stalls_us:.2f} us" if entry.stalls_us >= 0.005 else "stalls 0")
                for entry in self.entries]
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(6)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        head = f"{self.kernel} on {self.chip}: {len(rows)} waits and barriers; microseconds of a block"
        return "\n".join([head, *lines])


def _position(entry: WaitEntry) -> str:
    if entry.at_end:
        return "at the end"
    if entry.line is None:
        return ""
    return f"after the loop of {entry.line.line_with_calls}" if entry.after_loop else f"before {entry.line.line_with_calls}"


def sync_report(name: str, launch: AnyLaunch) -> SyncReport:
    """Returns the synchronisation report of a kernel.

    Args:
        name: the kernel's name.
        launch: a launch of the kernel, from which the modelled stalls are taken.
    """
    return SyncReport(name, launch.parts[0].chip.name, tuple(entry for part in launch.parts for entry in _entries(part)))


def _entries(launch: Launch) -> Iterator[WaitEntry]:
    stalls: dict[tuple[Operation, int], float] = defaultdict(float)  # by operation and event; -1 is the operation itself
    program = launch.recorded.program
    for index, function in enumerate(program.functions):
        for op, record in zip(program.ops(index), function.records, strict=True):
            for place in (-1, *(event.place for event, _ in _contained_waits(op))):
                stalls[op, place] += launch.held_us.get((index, record.number, place), 0.0)
    for device_function, function in zip(program.device_functions, program.functions, strict=True):
        for op in device_function.walk():
            if isinstance(op, WAITS):
                what, number = _described(op, function.core)
                yield _entry(op, function.core, what, number if isinstance(number, int) else None, remark_of(op),
                             stalls.get((op, -1), 0.0))
            for event, value in _contained_waits(op):
                yield _entry(op, function.core, f"wait {event.source} -> {event.target}", constant_value(value),
                             remarks_of_events(op).get(event.place), stalls.get((op, event.place), 0.0))


def _contained_waits(op: Operation) -> list[tuple[hivm.SharedEvent, SSAValue]]:
    """Returns the events that a macro op waits for, without those that it sets itself."""
    if not isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
        return []
    return [(event, value) for event, value in op.shared_events() if not event.sets and event not in op.HALVES]


def wait_remarks(op: Operation) -> list[Remark]:
    """Returns the remarks of passes on a wait operation, or on the waits that an operation such as ``mmadL1`` contains."""
    if isinstance(op, WAITS):
        return list(remarks_of(op))
    by_event = remarks_of_events(op)
    return [by_event[event.place] for event, _ in _contained_waits(op) if event.place in by_event]


def _entry(op: Operation, core: CoreKind, what: str, number: int | None, remark: Remark | None, stalls_us: float) -> WaitEntry:
    """Returns a row of the report.

    Args:
        op: the operation that waits.
        core: the kind of core that executes the operation.
        what: see :class:`WaitEntry`.
        number: the number of the event or flag; None if it is computed at run time, or there is none.
        remark: the remark of the pass that inserted the wait; None for a wait of the author.
        stalls_us: the microseconds for which the wait stalls its pipe.
    """
    facts = remark.facts if remark is not None and isinstance(remark.facts, Waits) else Waits()
    numbers = facts.numbers if number is None else (number,)
    if isinstance(op, (hivm.WaitFlagOp, hivm.MmadL1Op, hivm.BatchMmadL1Op)):
        spelled = (", ".join(f"EVENT_ID{one}" for one in numbers) or "events") + ("" if len(numbers) == 1 else " in turn")
    elif isinstance(op, hivm.SyncBlockWaitOp):
        spelled = f"flag {numbers[0]}" if numbers else "a flag"
    else:
        spelled = ""
    if remark is None:
        return WaitEntry(core, what, spelled, location_of(op), "by hand", stalls_us)
    between = (facts.reasons[0].first.line, facts.reasons[0].second.line) if facts.reasons else None
    line = location_of(op) if facts.after_loop or not facts.reasons else facts.before
    at_end = isinstance(op.next_op, func.ReturnOp) and isinstance(op, hivm.PipeBarrierOp)
    return WaitEntry(core, what, spelled, line, reason_text(remark), stalls_us, between, facts.after_loop, at_end)


def _described(op: Operation, core: CoreKind) -> tuple[str, int | SSAValue | None]:
    """Returns the text ``WaitEntry.what`` for an operation that waits, and the number of its event or flag."""
    if isinstance(op, hivm.WaitFlagOp):
        return f"wait {' -> '.join(op.pipes())}", op.event_id()
    if isinstance(op, hivm.SyncBlockWaitOp):
        return f"wait for {'AIV' if core == 'AIC' else 'AIC'}", op.flag_id()
    if isinstance(op, hivm.PipeBarrierOp):
        return f"barrier {op.pipes()[0]}", None
    assert isinstance(op, hivm.SyncBlockOp)
    return f"meet {op.sync_block_mode.data}", None


def reason_text(remark: Remark) -> str:
    """Returns the text that says why a pass inserted a wait or barrier: the remark's text, or the dependences of its facts."""
    return remark.text or "; ".join(map(_dependence, remark.facts.reasons if isinstance(remark.facts, Waits) else ()))


def _dependence(reason: WaitReason) -> str:
    first, second = reason.first, reason.second
    name = second.name if first.name == second.name else f"{second.name} in the bytes of {first.name}"
    later = {0: "", 1: " of the next iteration"}.get(reason.distance, f", {reason.distance} iterations later")
    return f"{name}, {reason.size} B: {_access(first)}, {_access(second)}{later} ({reason.kind})"


def _access(touched: Touched) -> str:
    place = touched.line
    where = f"{place.line}{place.calls}" if place is not None else "?"
    return f"{'written' if touched.writes else 'read'} at {where}"
