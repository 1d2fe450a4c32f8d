"""Every wait of a kernel with its reason and its price: what ``kernel.sync_report()`` shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.names import spoken
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.simulator.events import Fact, OpRecord
from tilelang_npu.simulator.work import Barrier, CrossWait, EventWait
from tilelang_npu.transforms.cores import kernel_of
from tilelang_npu.transforms.sync.decision import Decision
from tilelang_npu.transforms.sync.items import Touch

if TYPE_CHECKING:
    from tilelang_npu.simulator import AnyLaunch, Launch

Lines = Collection[Location | None]
_FLAGS = (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.PipeBarrierOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp, hivm.SyncBlockOp)

__all__ = ["SyncReport", "WaitEntry", "sync_report"]


@dataclass(frozen=True)
class WaitEntry:
    """A wait or a barrier.

    Attributes:
        core: ``AIC`` or ``AIV``.
        what: ``wait MTE2 -> V``, ``barrier V`` or ``wait for AIV``.
        numbers: the events or the flag, in words; empty for a barrier.
        line: the line of the kernel in front of which it stands, or behind whose loop.
        reason: the two accesses that it keeps apart; ``by hand`` where the author wrote it, or what the compiler needs it for.
        stalls_us: microseconds that it holds its pipe in a block, on average.
        between: lines of the two accesses, the earlier one first; None where the compiler did not insert it for two.
    """

    core: str
    what: str
    numbers: str
    line: Location | None
    reason: str
    stalls_us: float
    between: tuple[Location | None, Location | None] | None = None


@dataclass(frozen=True)
class SyncReport:
    """The waits of a kernel.

    Attributes:
        kernel: its name.
        chip: the chip that the times are of.
        entries: core by core, in the order of the program.
    """

    kernel: str
    chip: str
    entries: tuple[WaitEntry, ...]

    def __str__(self) -> str:
        rows = [(entry.core, entry.what, entry.numbers, f"before line {entry.line.line}" if entry.line is not None else "",
                 entry.reason, f"stalls {entry.stalls_us:.2f} us" if entry.stalls_us >= 0.005 else "stalls 0")
                for entry in self.entries]
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(6)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        head = f"{self.kernel} on {self.chip}: {len(rows)} waits and barriers; microseconds of a block"
        return "\n".join([head, *lines])


def sync_report(name: str, traced: ModuleOp, decisions: Sequence[Decision], launch: AnyLaunch) -> SyncReport:
    """The report of a kernel.

    Args:
        name: the kernel's name.
        traced: the kernel as its author wrote it.
        decisions: what the passes inserted.
        launch: a launch, for the times.
    """
    by_hand = {location_of(op) for op in traced.walk() if isinstance(op, _FLAGS)}
    entries = [entry for part in launch.parts for entry in _entries(part, decisions, by_hand)]
    return SyncReport(name, launch.parts[0].chip.name, tuple(entries))


def _entries(launch: Launch, decisions: Sequence[Decision], by_hand: Lines) -> list[WaitEntry]:
    entries: list[WaitEntry] = []
    own = [one for one in decisions if kernel_of(one.before) == launch.name]
    for index, function in enumerate(launch.recorded.program.functions):
        seen: dict[WaitEntry, float] = {}
        for record in function.records:
            held = launch.held_us.get((index, record.number), 0.0)
            entry = _entry(record, function.core, own, by_hand)
            if entry is not None:  # a wait behind a loop takes back what the waits inside left: it is one of them
                seen[entry] = seen.get(entry, 0.0) + held
        entries += [replace(one, stalls_us=held) for one, held in seen.items()]
    return entries


def _entry(record: OpRecord, core: str, decisions: Sequence[Decision], by_hand: Lines) -> WaitEntry | None:
    work = record.work
    own = record.location in by_hand
    if isinstance(work, EventWait):
        found = None if own else _found(decisions, record, (work.source, work.target), work.event)
        numbers = found.numbers if found is not None else () if isinstance(work.event, Fact) else (work.event,)
        said = ", ".join(f"EVENT_ID{number}" for number in numbers) or "events"
        if len(numbers) != 1:
            said += " in turn"
        other = "by hand" if own else "its half of L0A and L0B is free again"
        return _made(record, core, f"wait {work.source} -> {work.target}", said, found, other)
    if isinstance(work, CrossWait):
        flag = work.flag
        flags = [] if own else [one for one in decisions if "." in one.source and one.numbers == (flag,)]
        found = next((one for one in flags if _here(one, record)), None)
        source = found.source.split(".")[0] if found is not None else "AIV" if core == "AIC" else "AIC"
        said = "a flag" if isinstance(flag, Fact) else f"flag {flag}"
        return _made(record, core, f"wait for {source}", said, found, "by hand")
    if isinstance(work, Barrier):
        fences = [] if own else [one for one in decisions if not one.numbers and one.source == work.pipe]
        found = next((one for one in fences if _here(one, record)), None)
        return _made(record, core, f"barrier {work.pipe}", "", found, "by hand" if own else "the kernel ends when all is done")
    return None


def _found(decisions: Sequence[Decision], record: OpRecord, pipes: tuple[str, str], event: int | Fact) -> Decision | None:
    return next((one for one in decisions if (one.source, one.target) == pipes and _here(one, record)
                 and (len(one.numbers) > 1 if isinstance(event, Fact) else event in one.numbers)), None)


def _here(decision: Decision, record: OpRecord) -> bool:
    """Whether the wait stands where the decision put it: in front of its operation, or behind the loop."""
    return record.location in {location_of(op) for op in (decision.before, decision.loop) if op is not None}


def _made(record: OpRecord, core: str, what: str, numbers: str, found: Decision | None, other: str) -> WaitEntry:
    if found is None:
        return WaitEntry(core, what, numbers, record.location, other, 0.0)
    first, second = (location_of(touch.op) for touch in (found.hazard.first, found.hazard.second))
    return WaitEntry(core, what, numbers, location_of(found.before), _reason(found), 0.0, (first, second))


def _reason(decision: Decision) -> str:
    first, second = decision.hazard.first, decision.hazard.second
    names = [spoken(touch.place.root, "scratch") for touch in (first, second)]
    name = names[1] if names[0] == names[1] else f"{names[1]} in the bytes of {names[0]}"
    size = min(touch.place.high - touch.place.low for touch in (first, second))
    later = {0: "", 1: " of the next iteration"}.get(decision.distance, f" {decision.distance} iterations on")
    return f"{name}, {size} B: {_said(first)}, {_said(second)}{later} ({decision.hazard.kind})"


def _said(touch: Touch) -> str:
    place = location_of(touch.op)
    return f"{'written' if touch.writes else 'read'} at {place.line if place is not None else '?'}"
