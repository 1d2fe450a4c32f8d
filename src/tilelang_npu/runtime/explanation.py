"""What the compiler made of a kernel, on a page: what ``kernel.explain()`` shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.remarks import Remark, remark_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.runtime.memory_report import memory_report
from tilelang_npu.runtime.sync_report import WAITS
from tilelang_npu.target import name_of
from tilelang_npu.transforms.ir.optimisations import OPTIMISATIONS

if TYPE_CHECKING:
    from tilelang_npu.runtime.lowering import Lowering

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """A kernel's page.

    Attributes:
        kernel: its name.
        chip: the chip that it is compiled for.
        sections: title and lines of each part: ``arguments``, ``buffers``, ``loops``, ``pipelines``, ``hand-overs``,
            ``memory``, ``waits``, ``optimisations``. A part with nothing in it is left out.
    """

    kernel: str
    chip: str
    sections: dict[str, tuple[str, ...]]

    def __str__(self) -> str:
        lines = [f"{self.kernel} on {self.chip}"]
        for title, entries in self.sections.items():
            lines += ["", title, *(f"  {entry}" for entry in entries)]
        return "\n".join(lines)


def explain(name: str, chip: str, lowering: Lowering) -> Explanation:
    """The page of a kernel.

    Args:
        name: its name.
        chip: the chip's.
        lowering: the kernel in its stages.
    """
    waits, memory = _inserted(lowering.final), memory_report(name, chip, lowering.layouts())
    names = [parameter.name for parameter in lowering.traced.parameters]
    parts = {
        "arguments": (f"{names[other]} is {names[first]}: one array is passed for both"
                      for other, first in lowering.traced.same.items()),
        "buffers": _buffers(lowering.module("tile"), lowering.module("infer-scopes")),
        "loops": _loops(lowering),
        "pipelines": _pipelines(lowering.module("tile"), lowering.module("sink-buffers")),
        "hand-overs": _hand_overs(waits),
        "memory": (f"{one.name:<4} of {one.core}{memory.launch_of(one)}  {one.used:>7} of {one.room} bytes, "
                   f"{one.alive} alive together at most" for one in memory.memories),
        "waits": _waits(waits),
        "optimisations": _optimisations(lowering),
    }
    made = {title: tuple(lines) for title, lines in parts.items()}
    return Explanation(name, chip, {title: lines for title, lines in made.items() if lines})


def _line(where: Location | None) -> str:
    return f"line {where.line}" if where is not None else "no line"


def _buffers(written: ModuleOp, inferred: ModuleOp) -> Iterator[str]:
    """The author's buffers, and the memories that they are in; those of several are in each of them."""
    found: dict[tuple[str, Location | None], list[str]] = {}
    for op in inferred.walk():
        if isinstance(op, tile.AllocOp):
            found.setdefault((op.label.data, location_of(op)), []).append(_memory(op))
    rows = []
    for op in written.walk():
        if isinstance(op, tile.AllocOp):
            label, where = op.label.data, location_of(op)
            places = found.get((label, where)) or [
                memory for (name, line), memories in found.items() if name.startswith(label + "_") and line == where
                for memory in memories]
            kind = op.result.type
            assert isinstance(kind, MemRefType)
            shape = "x".join(map(str, kind.get_shape()))
            rows.append((label, f"{kind.element_type} {shape}", ", ".join(dict.fromkeys(places)) or "not used", _line(where)))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    yield from ("  ".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)) for row in rows)


def _memory(op: tile.AllocOp) -> str:
    space = hivm.space_of(op.result.type)
    return "a workspace in GM" if space == "gm" else name_of(space or "?")


def _loops(lowering: Lowering) -> Iterator[str]:
    for outcome in lowering.loops():
        points = "x".join("?" if extent is None else str(extent) for extent in outcome.extents)
        ops = ", ".join(outcome.ops) or "copies and fills"
        beside = f"; what begins at no block of UB: {', '.join(outcome.unaligned)}" if outcome.unaligned else ""
        rows = ", row by row" if outcome.by_rows else ""
        how = f"point by point: {outcome.reason}" if outcome.reason else f"vector{rows}: {ops}{beside}"
        begin = f" from {list(outcome.starts)}" if outcome.starts else ""
        yield f"{_line(location_of(outcome.loop))}  T.Parallel {points}{begin}  {how}"


def _pipelines(written: ModuleOp, sunk: ModuleOp) -> Iterator[str]:
    asked = {location_of(loop): tile.stages_of(loop) for loop in written.walk() if isinstance(loop, scf.ForOp)}
    for loop in sunk.walk():
        stages = asked.get(location_of(loop), 1) if isinstance(loop, scf.ForOp) else 1
        if isinstance(loop, scf.ForOp) and stages > 1:
            several = [f"{op.label.data} ({_memory(op)})" for op in loop.body.block.ops
                       if isinstance(op, tile.AllocOp) and op.slots is not None and op.slots.value.data > 1]
            turns = ", ".join(several) or "nothing"
            yield f"{_line(location_of(loop))}  num_stages={stages}  iterations take turns with {turns}"


def _inserted(final: ModuleOp) -> list[Remark]:
    """What the waits are for that passes have inserted; those behind loops belong to one inside."""
    said = [remark_of(op) for op in final.walk() if isinstance(op, WAITS)]
    return [one for one in said if one is not None and one.reasons and not one.behind]


def _hand_overs(waits: list[Remark]) -> Iterator[str]:
    for one in waits:
        (reason, *_) = one.reasons
        if "." in one.source and reason.kind == "RAW":
            lines = f"from {_line(reason.first.line)} to {_line(reason.second.line)}"
            yield f"{one.source} -> {one.target}  {reason.first.name}, {lines}"


def _optimisations(lowering: Lowering) -> Iterator[str]:
    """Each by its name: what it did, that there was nothing for it to do, or that it is off."""
    deeds, width = lowering.deeds(), max(map(len, OPTIMISATIONS))
    for name in OPTIMISATIONS:
        done = [f"{_line(deed.at)}: {deed.text}" if deed.at is not None else deed.text
                for deed in deeds if deed.optimisation == name]
        if not lowering.options.has(name):
            done = ["switched off"]
        for position, text in enumerate(dict.fromkeys(done) or ["no occasion"]):
            yield f"{name if position == 0 else '':<{width}}  {text}"


def _waits(waits: list[Remark]) -> Iterator[str]:
    between = sum("." in one.source for one in waits)
    inside = Counter(f"{one.source} -> {one.target}" for one in waits if "." not in one.source and one.numbers)
    barriers = Counter(one.source for one in waits if "." not in one.source and not one.numbers)
    if between:
        yield f"{between} flags between the cores"
    if inside:
        yield "events " + ", ".join(f"{pipes} {count}" for pipes, count in sorted(inside.items()))
    if barriers:
        yield "barriers " + ", ".join(f"{pipe} {count}" for pipe, count in sorted(barriers.items()))
    if waits:
        yield "each with its reason and price: kernel.sync_report()"
