"""What the compiler made of a kernel, on a page: what ``kernel.explain()`` shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import MemRefType, ModuleOp

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.remarks import DONE, REFUSED, Points, Remark, Scoped, Turns, Waits, module_remarks
from tilelang_npu.dialects.text import location_of
from tilelang_npu.display import Report
from tilelang_npu.errors import Location
from tilelang_npu.runtime.memory_report import memory_report
from tilelang_npu.runtime.sync_report import reasons_of_waits
from tilelang_npu.sharing import once, state_of
from tilelang_npu.target import name_of
from tilelang_npu.transforms.ir.optimisations import OPTIMISATIONS

if TYPE_CHECKING:
    from tilelang_npu.runtime.edited import Ingredients
    from tilelang_npu.runtime.edits import Tried
    from tilelang_npu.runtime.lowering import Lowering
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.result.profile.refusal_costs import RefusalCost
    from tilelang_npu.transforms.ir.options import Options

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation(Report):
    """A kernel's page.

    Attributes:
        kernel: its name.
        chip: the chip that it is compiled for.
        sections: title and lines of each part: ``arguments``, ``buffers``, ``loops``, ``pipelines``, ``hand-overs``,
            ``memory``, ``waits``, ``optimisations``, ``refused``. A part with nothing in it is left out.
        remarks: what the page is made of: what each pass did, or looked at and left, in their order; ``kind`` is ``done`` or
            ``refused``, ``about`` the optimisation, ``place`` the line, ``text`` the words, ``edit`` what would change a
            refusal, ``facts`` the data, ``change`` the edit as data.
        source: what the kernel is made of, to make it again with an edit.
        find_launch: gives the launch that ``time`` is of.
    """

    kernel: str
    chip: str
    sections: dict[str, tuple[str, ...]]
    remarks: tuple[Remark, ...] = ()
    source: Ingredients | None = field(default=None, compare=False, repr=False)
    find_launch: Callable[[], AnyLaunch | None] = field(default=lambda: None, compare=False, repr=False)

    @once
    def time(self) -> str:
        """The modelled time, its error and its parts; empty where only a call tells the sizes, or data decide."""
        from tilelang_npu.simulator.result.report import time_text

        launch = self.find_launch()
        return "" if launch is None else f"{time_text(launch.time_us, launch.error)}: {launch.split}"

    @once
    def tried(self) -> tuple[Tried, ...]:
        """The edits that win most, at most three, the best one first. They are looked for when they are first asked for: each
        is a kernel that is compiled, timed and compared."""
        return tuple(one for one in self.trials if one.wins)

    @once
    def trials(self) -> tuple[Tried, ...]:
        """All edits that were tried, the best one first, also those that win nothing: of each what is refused no more with it.
        The values are compared of those that ``tried`` tells."""
        from tilelang_npu.runtime.edits import best_edits

        return tuple(best_edits(self.source, self.refused)) if self.source is not None else ()

    @once
    def costs(self) -> dict[Remark, RefusalCost]:
        """What each refusal costs at most: the launch timed again without what stays because of it. Those of which that cannot
        be told are left out."""
        from tilelang_npu.simulator.result.profile.refusal_costs import cost_of

        launch = self.find_launch()
        found = {one: cost_of(one, self.refused, launch) for one in dict.fromkeys(self.refused)} if launch is not None else {}
        return {one: cost for one, cost in found.items() if cost is not None}

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self)

    @property
    def refused(self) -> tuple[Remark, ...]:
        """What was looked at and left."""
        return tuple(one for one in self.remarks if one.kind == REFUSED)

    def __str__(self) -> str:
        lines = [f"{self.kernel} on {self.chip}"]
        first: dict[str, Sequence[object]] = {"time": (self.time,), "edits that win most, tried": self.tried}
        first = {title: entries for title, entries in first.items() if any(entries)}
        for title, entries in {**first, **self.sections}.items():
            shown = entries if title != "refused" else self._priced(entries)
            lines += ["", title, *(f"  {entry}" for entry in shown)]
        return "\n".join(lines)

    def _priced(self, lines: Sequence[object]) -> Iterator[object]:
        """The lines about refusals with what each costs, the dear ones first. Where that is nothing, there is nothing to edit;
        of an edit that was tried it says what became of it."""
        by_line = {line: one for one in dict.fromkeys(self.refused) for line in [_refusal(one)]}
        pairs = [(line, edit) for line, edit in zip(lines[::2], lines[1::2], strict=True)]
        costs = self.costs
        left = {one: cost.before - cost.after for one, cost in costs.items()}
        for line, edit in sorted(pairs, key=lambda pair: -left.get(by_line[str(pair[0])], 0.0)):
            one = by_line[str(line)]
            cost = costs.get(one)
            yield line
            if cost is not None:
                yield f"  {cost}"
            if cost is None or not cost.nothing:
                yield edit
                best = next((each for each in self.trials if one in each.gone and (each.wins or each.gain <= 0)), None)
                if best is not None:
                    yield f"  tried: {best}"


def explain(source: Ingredients, lowering: Lowering, find_launch: Callable[[], AnyLaunch | None]) -> Explanation:
    """The page of a kernel.

    Args:
        source: what it is made of.
        lowering: the kernel in its stages.
        find_launch: gives a launch of it, where there can be one.
    """
    name, chip = source.kernel.name, source.kernel.chip.name
    waits, memory = _inserted(lowering.final), memory_report(name, chip, lowering.final)
    remarks = tuple(module_remarks(lowering.final))
    names = [parameter.name for parameter in lowering.traced.parameters]
    parts = {
        "arguments": (f"{names[other]} is {names[first]}: one array is passed for both"
                      for other, first in lowering.traced.same.items()),
        "buffers": _buffers(lowering.traced.module, remarks),
        "loops": _loops(remarks),
        "pipelines": _pipelines(remarks),
        "hand-overs": _hand_overs(waits),
        "memory": (f"{one.name:<4} of {one.core}{memory.launch_of(one)}  {one.used:>7} of {one.room} bytes, "
                   f"{one.alive} alive together at most" for one in memory.memories),
        "waits": _waits(waits),
        "optimisations": _optimisations(remarks, lowering.options),
        "refused": _refused(remarks, lowering.options),
    }
    made = {title: tuple(lines) for title, lines in parts.items()}
    return Explanation(name, chip, {title: lines for title, lines in made.items() if lines}, remarks, source, find_launch)


def _line(where: Location | None) -> str:
    return f"line {where.line}" if where is not None else "no line"


def _buffers(written: ModuleOp, remarks: Sequence[Remark]) -> Iterator[str]:
    """The author's buffers, and the memories that they are in; those of several are in each of them."""
    found: dict[tuple[str, Location | None], list[str]] = {}
    for said in remarks:
        if isinstance(said.facts, Scoped) and said.kind == DONE:
            found.setdefault((said.facts.label, said.place), []).extend(map(_memory, said.facts.spaces))
    rows = []
    for op in written.walk():
        if isinstance(op, tile.AllocOp):
            label, where = op.label.data, location_of(op)
            kind = op.result.type
            assert isinstance(kind, MemRefType)
            shape = "x".join(map(str, kind.get_shape()))
            places = ", ".join(dict.fromkeys(found.get((label, where), []))) or "not used"
            rows.append((label, f"{kind.element_type} {shape}", places, _line(where)))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    yield from ("  ".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)) for row in rows)


def _memory(space: str) -> str:
    return "a workspace in GM" if space == "gm" else name_of(space)


def _points(points: Points) -> str:
    """A ``T.Parallel`` in words."""
    extents = "x".join("?" if extent is None else str(extent) for extent in points.extents)
    return f"T.Parallel {extents}" + (f" from {list(points.starts)}" if points.starts else "")


def _loops(remarks: Sequence[Remark]) -> Iterator[str]:
    for said in remarks:
        if isinstance(points := said.facts, Points):
            beside = f"; what begins at no block of UB: {', '.join(points.unaligned)}" if points.unaligned else ""
            beside += f"; brought into order: {', '.join(points.rearranged)}" if points.rearranged else ""
            rows = f", {points.rows} rows at a time" if points.rows > 1 else ", row by row" if points.rows else ""
            how = f"point by point: {said.text}" if said.kind == REFUSED else f"vector{rows}: {said.text}{beside}"
            yield f"{_line(said.place)}  {_points(points)}  {how}"


def _pipelines(remarks: Sequence[Remark]) -> Iterator[str]:
    one_slot = {(said.facts.label, said.place) for said in remarks if said.kind == REFUSED and isinstance(said.facts, Scoped)}
    for said in remarks:
        if isinstance(turns := said.facts, Turns):
            several = (f"{label} ({_memory(space)})" for label, space, where in zip(
                turns.labels, turns.spaces, turns.places, strict=True) if (label, where) not in one_slot)
            how = said.text or f"iterations take turns with {', '.join(several) or 'nothing'}"
            yield f"{_line(said.place)}  num_stages={turns.stages}  {how}"


def _inserted(final: ModuleOp) -> list[Waits]:
    """What the waits are for that passes have inserted; those behind loops belong to one inside."""
    said = [one for op in final.walk() for one in reasons_of_waits(op)]
    return [one.facts for one in said if isinstance(one.facts, Waits) and one.facts.reasons and not one.facts.behind]


def _hand_overs(waits: list[Waits]) -> Iterator[str]:
    for one in waits:
        (reason, *_) = one.reasons
        if "." in one.source and reason.kind == "RAW":
            lines = f"from {_line(reason.first.line)} to {_line(reason.second.line)}"
            yield f"{one.source} -> {one.target}  {reason.first.name}, {lines}"


def _optimisations(remarks: Sequence[Remark], options: Options) -> Iterator[str]:
    """Each by its name: what it did, that it is off and why, that it refused all it looked at, or that there was nothing."""
    width = max(map(len, OPTIMISATIONS))
    for name in OPTIMISATIONS:
        about = [one for one in remarks if one.about == name]
        found = [f"{_line(one.place)}: {one.text}" if one.place is not None else one.text for one in about if one.kind == DONE]
        if not found:
            found = [f"refused, see below: {len(dict.fromkeys(about))}" if about else "no occasion"]
        if not options.does(name):
            found = ["switched off" if not options.has(name) else f"off: {options.off(name)}"]
        for position, text in enumerate(dict.fromkeys(found)):
            yield f"{name if position == 0 else '':<{width}}  {text}"


def _refused(remarks: Sequence[Remark], options: Options) -> Iterator[str]:
    """What each optimisation looked at and left: the line, why, and the change with which it is done."""
    for name in OPTIMISATIONS:
        for one in dict.fromkeys(one for one in remarks if one.about == name and one.kind == REFUSED and options.does(name)):
            yield _refusal(one)
            yield f"  to have it: {one.edit}"


def _refusal(one: Remark) -> str:
    what = f"{_points(one.facts)} point by point: " if isinstance(one.facts, Points) else ""
    return f"{one.about}  {_line(one.place)}: {what}{one.text}"


def _waits(waits: list[Waits]) -> Iterator[str]:
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
