"""``kernel.explain()``: reports the compiler's decisions for a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import MemRefType, ModuleOp

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import Smaller
from tilelang_npu.dialects.ir.remarks import DONE, REFUSED, Points, Remark, Scoped, Turns, Waits, module_remarks
from tilelang_npu.dialects.text import location_of
from tilelang_npu.display import Report
from tilelang_npu.errors import Location
from tilelang_npu.plugins.registry import registrations
from tilelang_npu.runtime.reports.generated_inputs import arguments_of
from tilelang_npu.runtime.reports.memory_report import memory_report
from tilelang_npu.runtime.reports.sync_report import wait_remarks
from tilelang_npu.sharing import once, state_of
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import BufferSpace
from tilelang_npu.transforms.infra.optimisations import OPTIMISATIONS

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel.lowering import Lowering
    from tilelang_npu.runtime.reports.edit_trials import Trials, TriedEdit
    from tilelang_npu.runtime.reports.kernel_edits import EditableKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.result.profile.refusal_costs import RefusalCost
    from tilelang_npu.transforms.infra.options import Options


@dataclass(frozen=True)
class Explanation(Report):
    """The report of the compiler's decisions for a kernel. It prints as text with one section per topic.

    Attributes:
        kernel: the kernel's name.
        chip: the name of the chip for which the kernel is compiled.
        sections: the lines of each section, by its title: ``arguments``, ``buffers``, ``loops``, ``pipelines``, ``hand-overs``
            (transfers of data between the Cube core and the Vector cores), ``memory``, ``waits``, ``optimisations`` and
            ``refused`` (optimisations that were not done). Empty sections are left out.
        remarks: the remarks of the passes, in order. Of a remark, ``kind`` is ``done`` or ``refused``, ``about`` is the name of
            the optimisation, ``place`` the source line, ``text`` the remark in words, ``edit`` a source edit that would enable
            a refused optimisation, ``facts`` the remark's data, and ``change`` the edit as data.
        source: the kernel and its trace, from which edited kernels are compiled; None to try no edits.
        find_launch: returns the launch whose time is shown, or None.
    """

    kernel: str
    chip: str
    sections: dict[str, tuple[str, ...]]
    remarks: tuple[Remark, ...] = ()
    source: EditableKernel | None = field(default=None, compare=False, repr=False)
    find_launch: Callable[[], AnyLaunch | None] = field(default=lambda: None, compare=False, repr=False)

    @once
    def time(self) -> str:
        """The modelled time of a launch with its error and its parts, as text; empty if there is no launch without a call's
        sizes or data.
        """
        from tilelang_npu.simulator.result.report import time_text

        launch = self.find_launch()
        return "" if launch is None else f"{time_text(launch.time_us, launch.error)}: {launch.split}"

    @once
    def rates(self) -> tuple[str, ...]:
        """For each launch, the achieved rate with its share of the chip's peak, and the bottleneck, as text; empty if there is
        no launch without a call's sizes or data.
        """
        from tilelang_npu.simulator.result.report import rate_text

        launch = self.find_launch()
        parts = () if launch is None else launch.parts
        return tuple("; ".join(filter(None, (rate_text(part), f"bound by {part.bound_by}"))) for part in parts)

    @once
    def tried(self) -> tuple[TriedEdit, ...]:
        """The source edits that save most time, at most three, the best one first.

        The first read of this property tries edits, which takes seconds: each edited kernel is compiled and timed, and the
        results of the best ones are compared with the kernel's.
        """
        return tuple(one for one in self.trials if one.wins)

    @once
    def trials(self) -> tuple[TriedEdit, ...]:
        """All source edits that were tried, the best one first, each with the refused optimisations that it enables.

        Edits that save no time are included. Results are compared with the kernel's only for the edits in ``tried``.
        """
        return self._trials.edits

    @once
    def trial_note(self) -> str:
        """If ``tried`` is empty, the reason, such as that no edit saves time; otherwise empty."""
        return self._trials.note

    @once
    def _trials(self) -> Trials:
        from tilelang_npu.runtime.reports.edit_trials import Trials, try_edits

        if self.source is None:
            return Trials((), "no edits were tried: edits=False or --no-edits was given")
        kernel = self.source.kernel
        if not kernel._depends_on_call:
            return kernel._once_in_process("tried edits", partial(try_edits, self.source, self.refused))
        launch = self.find_launch()
        return try_edits(self.source, self.refused, None if launch is None else arguments_of(kernel, launch))

    @once
    def costs(self) -> dict[Remark, RefusalCost]:
        """For each refused optimisation, an upper bound of the time that the optimisation would save.

        The launch is timed again without the work that the optimisation would remove. Refusals for which this is not possible
        are left out.
        """
        from tilelang_npu.simulator.result.profile.refusal_costs import cost_of

        launch = self.find_launch()
        if launch is None:
            return {}
        found = {remark: cost_of(remark, self.refused, launch) for remark in dict.fromkeys(self.refused)}
        return {remark: cost for remark, cost in found.items() if cost is not None}

    def __getstate__(self) -> dict[str, object]:
        return state_of(self)

    @property
    def refused(self) -> tuple[Remark, ...]:
        """The remarks about optimisations that a pass considered and did not do."""
        return tuple(remark for remark in self.remarks if remark.kind == REFUSED)

    def __str__(self) -> str:
        lines = [f"{self.kernel} on {self.chip}"]
        edits = [line for one in self.tried for line in (one, *(f"  {row}" for row in one.changed_lines))]
        first: dict[str, Sequence[object]] = {"time": (self.time, *self.rates),
                                              "edits that win most, tried": edits or (self.trial_note,)}
        first = {title: entries for title, entries in first.items() if any(entries)}
        for title, entries in {**first, **self.sections}.items():
            shown = entries if title != "refused" else self._with_costs(entries)
            lines += ["", title, *(f"  {entry}" for entry in shown)]
        return "\n".join(lines)

    def _with_costs(self, lines: Sequence[object]) -> Iterator[object]:
        """Yields the lines about refused optimisations, the most expensive ones first, each with its cost.

        If the proposed edit was tried, the result is added. The edit of a refusal that costs nothing is left out.
        """
        by_line = {_refusal_line(remark): remark for remark in dict.fromkeys(self.refused)}
        pairs = list(zip(lines[::2], lines[1::2], strict=True))
        costs = self.costs
        savings = {remark: cost.before - cost.after for remark, cost in costs.items()}
        for line, edit in sorted(pairs, key=lambda pair: -savings.get(by_line[str(pair[0])], 0.0)):
            remark = by_line[str(line)]
            cost = costs.get(remark)
            yield line
            if cost is not None:
                yield f"  {cost}"
            if cost is None or not cost.nothing:
                yield edit
                best = next((trial for trial in self.trials if remark in trial.gone and (trial.wins or trial.gain <= 0)), None)
                if best is not None:
                    yield f"  tried: {best}"
                    continue
                larger = next((one for one in self.tried if one.growth > 1), None)
                if larger is not None and isinstance(remark.change, Smaller):
                    yield f"  larger tiles win in this kernel instead: {larger.text} ({-larger.gain:+.0%})"


def explain(source: EditableKernel, lowering: Lowering, find_launch: Callable[[], AnyLaunch | None], *, edits: bool = True
            ) -> Explanation:
    """Returns the report of the compiler's decisions for a kernel.

    Args:
        source: the kernel and its trace, from which edited kernels are compiled.
        lowering: the kernel's modules after each stage.
        find_launch: returns a launch of the kernel whose time is shown, or None if there is none.
        edits: whether the report tries edits of the source when they are read.
    """
    name, chip = source.kernel.name, source.kernel.chip.name
    waits, memory = _inserted_waits(lowering.final), memory_report(name, chip, lowering.final)
    remarks = tuple(module_remarks(lowering.final))
    names = [parameter.name for parameter in lowering.traced.parameters]
    parts = {
        "arguments": (f"{names[later]} is {names[first]}: one array is passed for both"
                      for later, first in lowering.traced.same.items()),
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
    return Explanation(name, chip, {title: lines for title, lines in made.items() if lines}, remarks,
                       source if edits else None, find_launch)


def _line(where: Location | None) -> str:
    return where.line_with_calls if where is not None else "no line"


def _buffers(traced: ModuleOp, remarks: Sequence[Remark]) -> Iterator[str]:
    """Yields a line for each buffer of the author, with its memory; a buffer can be in several memories."""
    found: dict[tuple[str, Location | None], list[str]] = {}
    for remark in remarks:
        if isinstance(remark.facts, Scoped) and remark.kind == DONE:
            found.setdefault((remark.facts.label, remark.place), []).extend(map(_memory_name, remark.facts.spaces))
    rows = []
    for op in traced.walk():
        if isinstance(op, tile.AllocOp):
            label, where = op.label.data, location_of(op)
            kind = op.result.type
            assert isinstance(kind, MemRefType)
            shape = "x".join(map(str, kind.get_shape()))
            places = ", ".join(dict.fromkeys(found.get((label, where), []))) or "not used"
            rows.append((label, f"{kind.element_type} {shape}", places, _line(where)))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    yield from ("  ".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)) for row in rows)


def _memory_name(space: BufferSpace) -> str:
    return "a workspace in GM" if space == "gm" else name_of(space)


def _points(points: Points) -> str:
    """Returns the text that says how a ``T.Parallel`` is executed."""
    extents = "x".join("?" if extent is None else str(extent) for extent in points.extents)
    return f"T.Parallel {extents}" + (f" from {list(points.starts)}" if points.starts else "")


def _loops(remarks: Sequence[Remark]) -> Iterator[str]:
    for remark in remarks:
        if isinstance(points := remark.facts, Points):
            notes = f"; not aligned to a block of UB: {', '.join(points.unaligned)}" if points.unaligned else ""
            notes += f"; rearranged first: {', '.join(points.rearranged)}" if points.rearranged else ""
            rows = f", {points.rows} rows at a time" if points.rows > 1 else ", row by row" if points.rows else ""
            ops = ", ".join(points.ops) or "copies and fills"
            how = f"point by point: {remark.text}" if remark.kind == REFUSED else f"vector{rows}: {ops}{notes}"
            yield f"{_line(remark.place)}  {_points(points)}  {how}"


def _pipelines(remarks: Sequence[Remark]) -> Iterator[str]:
    one_slot = {(remark.facts.label, remark.place) for remark in remarks
                if remark.kind == REFUSED and isinstance(remark.facts, Scoped)}
    for remark in remarks:
        if isinstance(turns := remark.facts, Turns):
            buffers = (f"{label} ({_memory_name(space)})" for label, space, where in zip(
                turns.labels, turns.spaces, turns.places, strict=True) if (label, where) not in one_slot)
            how = remark.text or f"multi-buffered: {', '.join(buffers) or 'nothing'}"
            yield f"{_line(remark.place)}  num_stages={turns.stages}  {how}"


def _inserted_waits(final: ModuleOp) -> list[Waits]:
    """Returns the data of the remarks about waits that passes inserted.

    Waits after loops are left out, because each belongs to a wait in the loop.
    """
    remarks = [remark for op in final.walk() for remark in wait_remarks(op)]
    return [remark.facts for remark in remarks
            if isinstance(remark.facts, Waits) and remark.facts.reasons and not remark.facts.after_loop]


def _hand_overs(waits: list[Waits]) -> Iterator[str]:
    for one in waits:
        (reason, *_) = one.reasons
        if "." in one.source and reason.kind == "RAW":
            lines = f"from {_line(reason.first.line)} to {_line(reason.second.line)}"
            yield f"{one.source} -> {one.target}  {reason.first.name}, {lines}"


def _optimisations(remarks: Sequence[Remark], options: Options) -> Iterator[str]:
    """Yields a line for each optimisation: what it changed, or that it was refused everywhere, did not apply, or is off."""
    names = [*OPTIMISATIONS, *_plugin_passes()]
    width = max(map(len, names))
    for name in names:
        own = [remark for remark in remarks if remark.about == name]
        found = [f"{_line(remark.place)}: {remark.text}" if remark.place is not None else remark.text
                 for remark in own if remark.kind == DONE]
        if not found:
            found = [f"{len(dict.fromkeys(own))} refused, see 'refused' below" if own else "no occasion"]
        if name in OPTIMISATIONS and not options.does(name):
            found = ["switched off" if not options.has(name) else f"off: {options.off(name)}"]
        for position, text in enumerate(dict.fromkeys(found)):
            yield f"{name if position == 0 else '':<{width}}  {text}"


def _refused(remarks: Sequence[Remark], options: Options) -> Iterator[str]:
    """Yields two lines for each refusal: the source line with the reason, and the edit that would allow the optimisation."""
    for name in (*OPTIMISATIONS, *_plugin_passes()):
        if name not in OPTIMISATIONS or options.does(name):
            pairs = ((_refusal_line(one), f"  to have it: {one.edit}")
                     for one in remarks if one.about == name and one.kind == REFUSED)
            for line, edit in dict.fromkeys(pairs):
                yield line
                yield edit


def _plugin_passes() -> list[str]:
    """Returns the names of the passes that plug-ins have registered, whose remarks the report shows too."""
    return [one.name for one in registrations() if one.kind == "pass"]


def _refusal_line(remark: Remark) -> str:
    loop = f"{_points(remark.facts)} point by point: " if isinstance(remark.facts, Points) else ""
    return f"{remark.about}  {_line(remark.place)}: {loop}{remark.text}"


def _waits(waits: list[Waits]) -> Iterator[str]:
    # The source of a flag between cores is CORE.PIPE; that of an event within a core is the pipe alone.
    flags = sum("." in one.source for one in waits)
    events = Counter(f"{one.source} -> {one.target}" for one in waits if "." not in one.source and one.numbers)
    barriers = Counter(one.source for one in waits if "." not in one.source and not one.numbers)
    if flags:
        yield f"{flags} flags between the cores"
    if events:
        yield "events " + ", ".join(f"{pipes} {count}" for pipes, count in sorted(events.items()))
    if barriers:
        yield "barriers " + ", ".join(f"{pipe} {count}" for pipe, count in sorted(barriers.items()))
    if waits:
        yield "their reasons and stalls: kernel.sync_report()"
