"""Tries source edits of a kernel: compiles and times the edited kernels, and compares their results with the kernel's.

The following edits are tried:

* the edits that passes propose as data in their refusals (``reports/kernel_edits.py``);
* other values of ``num_stages`` for a loop;
* one block for each core in place of more blocks than cores, each with a loop over its share of the grid;
* other numbers for the factory, such as tile sizes, if the kernel's parameters stay the same;
* switching on an optimisation that is switched off;
* removing the author's barriers, if the compiler inserts waits anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.buffer_sizes import nbytes_of
from tilelang_npu.analysis.buffers import space_of
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import DONE, REFUSED, Remark, module_remarks
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.tile import NUM_STAGES, AllocOp, CopyOp, stages_of
from tilelang_npu.errors import Location, TileError
from tilelang_npu.progress import shown
from tilelang_npu.runtime.checks.result_comparison import Verdict, compared
from tilelang_npu.runtime.checks.rounding_spread import copied
from tilelang_npu.runtime.kernel.draft import launch_of_call
from tilelang_npu.runtime.reports.generated_inputs import generated_inputs
from tilelang_npu.runtime.reports.kernel_edits import (
    Edit,
    EditableKernel,
    edits_of_refusals,
    fewer_blocks,
    loops,
    number_edits,
    stages_edit,
    switched_on,
)
from tilelang_npu.runtime.reports.source_edits import remove_statements
from tilelang_npu.runtime.settings.log import silenced
from tilelang_npu.simulator.result.profile.lost_time import SMALL_TILES
from tilelang_npu.source_changes import SourceChange
from tilelang_npu.transforms.infra.options import Options

if TYPE_CHECKING:
    from tilelang_npu.runtime.arguments.tensors import Argument
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch

_RESOLVED_WITHOUT_REMARK = ("banks", "hoist-loads", "keep-apart", "sink-buffers")
"""Optimisations that need not be done if they are no longer refused: then no banks conflict, no load is repeated, no buffers
share bytes, and no buffer outlives an iteration."""
_DONE_FOR_WHOLE_LAUNCH = ("bind-sub-blocks",)
"""Optimisations whose remark that they are done has no line, but whose refusals have one."""
_MAX_WINNING = 3
"""The number of winning edits."""
_LEAST_GAIN = 0.01
"""The share of its time that a kernel must save for an edit to win."""
_MAX_TRIALS = 24
"""The number of edits of one kernel that are tried."""
_MAX_EVENTS = 300_000
"""The number of instructions above which a kernel takes too long to be timed for each edit. Cores that issue the same
instructions count once, as their time is computed once."""
_MAX_COMPARED_US = 2000.0
"""The modelled microseconds above which the results of a kernel are not compared with those of its edits: a product of matrices
of this length takes 5 to 10 seconds to simulate on two processors."""
ROUNDED_NOTE = ", which changes the order of additions: results differ by rounding"
"""What follows the words of an edit after which results are equal within rounding, but not bit by bit."""
_MAX_STAGES = 4
"""The largest ``num_stages`` that is tried."""


@dataclass(frozen=True)
class TriedEdit:
    """A source edit of a kernel that was compiled and timed.

    Attributes:
        text: the edit in words.
        place: the edited source line; None if the edit has no line.
        before: modelled microseconds of the kernel without the edit.
        after: modelled microseconds of the edited kernel.
        cause: the reason why the kernel loses time without the edit, in a few words.
        gone: the remarks about optimisations that were refused in the kernel and are done in the edited kernel.
        wins: whether this is one of the best edits: it saves time, and the edited kernel computes the same results.
        changes: the edit as changes of the author's file; empty for another argument of the factory whose place in the file is
            not known, and for an edit that does not win.
        growth: the bytes of the tiles that the edited kernel allocates, divided by those of the kernel without the edit.
    """

    text: str
    place: Location | None
    before: float
    after: float
    cause: str = ""
    gone: tuple[Remark, ...] = ()
    wins: bool = True
    changes: tuple[SourceChange, ...] = ()
    growth: float = 1.0

    @property
    def gain(self) -> float:
        """The share of the kernel's time that the edit saves, from 0 to 1; negative if the edited kernel is slower."""
        return 1 - self.after / self.before

    @property
    def changed_lines(self) -> list[str]:
        """The lines to remove, each after ``- ``, and the lines to write, each after ``+ ``."""
        return [row for change in self.changes for row in str(change).splitlines()]

    def __str__(self) -> str:
        place = self.place or (self.changes[0] if self.changes else None)
        where = f"line {place.line}: " if place is not None else ""
        return f"{where}{self.text}  {self.before:.1f} us become {self.after:.1f} ({-self.gain:+.0%})"


class Trials(NamedTuple):
    """The edits of a kernel that were tried.

    Attributes:
        edits: the edits, the fastest kernel first.
        note: the reason if no edit wins; otherwise empty.
    """

    edits: tuple[TriedEdit, ...]
    note: str


class _TimedEdit(NamedTuple):
    """An edit, its kernel, and the kernel's modelled microseconds."""

    after: float
    edit: Edit
    made: CompiledKernel


def try_edits(source: EditableKernel, refused: Sequence[Remark], arguments: Sequence[Argument] | None = None,
              most: int = _MAX_TRIALS) -> Trials:
    """Compiles and times edits of a kernel.

    Nothing is tried if the time depends on the arguments of a call, and there are none, or if the kernel issues too many
    different instructions. Edits whose results must be compared do not win if a simulation of the kernel takes long.

    Args:
        source: the kernel.
        refused: the remarks about optimisations that were not done in the kernel.
        arguments: the arguments of a call, for which edited kernels are timed and their results compared; None for arrays of
            the declared shapes with generated elements.
        most: the largest number of edits to try.
    """
    kernel = source.kernel
    launch = launch_of_call(kernel, arguments)
    before = _time_of_short(launch)
    if before is None or launch is None:
        reason = (f"the kernel issues more than {_MAX_EVENTS} different instructions; tilelang-npu improve tries edits of long "
                  "kernels"
                  if launch is not None else
                  "the time depends on the sizes or the elements of a call's arrays, and the kernel was not called")
        return Trials((), f"nothing was tried: {reason}")
    timed: list[_TimedEdit] = []
    tried: set[tuple[str, Location | None]] = set()
    with shown(f"trying edits of {kernel.name}:", most, "edits") as step:
        for edit in _candidates(source, refused, launch):
            if len(tried) == most:
                break
            if (edit.text, edit.place) in tried:
                continue
            made, after = make_and_time(edit, arguments)
            if made is not None:
                tried.add((edit.text, edit.place))
            if made is not None and after is not None:
                timed.append(_TimedEdit(after, edit, made))
            step.done = len(tried)
    winning = {id(one.timed): one for one in islice(_winning(kernel, before, timed, arguments), _MAX_WINNING)}
    found = []
    for one in sorted(timed, key=lambda each: (each.after, each.edit.text)):
        gone = resolved_refusals(refused, one.made) if refused else ()
        wins = winning.get(id(one))
        text = one.edit.text + (ROUNDED_NOTE if wins is not None and wins.rounded else "")
        found.append(TriedEdit(text, one.edit.place, before, one.after, one.edit.cause, gone, wins is not None,
                               () if wins is None else wins.changes,
                               _tile_bytes(one.made) / (_tile_bytes(kernel) or 1)))
    return Trials(tuple(found), "" if winning else _why_none(before, timed, len(tried)))


def _tile_bytes(kernel: CompiledKernel) -> int:
    """Returns the bytes of all on-chip buffers that a kernel allocates, each with one slot."""
    return sum(nbytes_of(op.result) for op in kernel._lowering.traced.module.walk() if isinstance(op, AllocOp))


def refuted_causes(trials: Sequence[TriedEdit]) -> frozenset[str]:
    """Returns the names of the causes of lost time that trials contradict: ``small tiles`` if no edit with larger tiles saves
    time, although one was tried, or although an edit with smaller tiles wins."""
    larger = [one for one in trials if one.growth > 1]
    smaller_wins = any(one.wins for one in trials if one.growth < 1)
    if (larger or smaller_wins) and not any(one.gain > _LEAST_GAIN for one in larger):
        return frozenset({SMALL_TILES})
    return frozenset()


def _why_none(before: float, timed: Sequence[_TimedEdit], tried: int) -> str:
    """Returns the reason why no edit wins."""
    if before > _MAX_COMPARED_US and (left_out := sum(one.after < before * (1 - _LEAST_GAIN) for one in timed)):
        return (f"{left_out} of {tried} edits that were tried save {_LEAST_GAIN:.0%} or more, but their results were not "
                f"compared: simulating a kernel of {before:.0f} us takes long; tilelang-npu improve compares them")
    return f"none of {tried} edits that were tried saves {_LEAST_GAIN:.0%}" if tried else (
        "nothing was tried: no edit applies to this kernel")


def resolved_refusals(refused: Sequence[Remark], made: CompiledKernel) -> tuple[Remark, ...]:
    """Returns the refused optimisations of a kernel that are done in an edited version of the kernel.

    It is not enough that the edited kernel lacks the refusal, because the edit can remove the statements that the optimisation
    was about.

    Args:
        refused: the remarks about optimisations that were not done in the kernel.
        made: the edited kernel.
    """
    remarks = list(module_remarks(made._lowering.final))
    still_refused = {(remark.about, remark.place) for remark in remarks if remark.kind == REFUSED}
    done = {(remark.about, place) for remark in remarks if remark.kind == DONE for place in (remark.place, None)}
    return tuple(
        remark for remark in refused if (remark.about, remark.place) not in still_refused and (
            remark.about in _RESOLVED_WITHOUT_REMARK
            or (remark.about, None if remark.about in _DONE_FOR_WHOLE_LAUNCH else remark.place) in done))


def _candidates(source: EditableKernel, refused: Sequence[Remark], launch: AnyLaunch) -> Iterator[Edit]:
    yield from _without_barriers(source)
    yield from edits_of_refusals(source, refused)
    yield from _other_stages(source)
    for name in source.kernel.without:
        yield switched_on(source, name)
    yield from fewer_blocks(source, [(part.blocks, part.cores) for part in launch.parts])
    yield from number_edits(source)


def make_and_time(edit: Edit, arguments: Sequence[Argument] | None = None) -> tuple[CompiledKernel | None, float | None]:
    """Compiles an edited kernel and models its time.

    Args:
        edit: the edit.
        arguments: the arguments of the call that is timed; None for arrays of the declared shapes.

    Returns:
        The kernel, or None if the edit does not apply or the kernel cannot be compiled; and the modelled microseconds of a run,
        or None if they are not known.
    """
    try:
        with silenced():
            made = edit.make()
            return made, time_of(made, arguments) if made is not None else None
    except TileError:  # for example, the edited kernel does not fit into UB
        return None, None


class _WinningEdit(NamedTuple):
    """An edit that saves time and keeps the results, its changes of the source, and whether results round differently."""

    timed: _TimedEdit
    changes: tuple[SourceChange, ...]
    rounded: bool


def _winning(kernel: CompiledKernel, before: float, timed: Sequence[_TimedEdit], arguments: Sequence[Argument] | None
             ) -> Iterator[_WinningEdit]:
    """Yields the best edits, the best one first: those that save time, do not change the kernel's results by more than
    rounding, and can be written in the author's file or are another argument of the factory.

    Of several edits of one object of the source (``Edit.subject``), only the best is yielded.

    Args:
        kernel: the kernel.
        before: the modelled microseconds of the kernel.
        timed: the edits with their times.
        arguments: the arguments of a call for which results are compared; None to generate them.
    """
    found: dict[str, _TimedEdit] = {}
    changes: dict[str, tuple[SourceChange, ...]] = {}
    for one in timed:
        subject = one.edit.subject
        best = found[subject].after if subject in found else before
        if one.after < best * (1 - _LEAST_GAIN):
            written = tuple(one.edit.write())
            if written or one.edit.is_argument:
                found[subject], changes[subject] = one, written
    # The stages of a loop may be one of the factory's numbers: an edit of the same time is then the same edit.
    times_of_unsafe = {one.after for one in found.values() if not one.edit.safe}
    comparison = EditComparison(kernel, arguments)
    with shown(f"comparing results of edits of {kernel.name}:", len(found), "edits") as step:
        for one in sorted(found.values(), key=lambda each: (each.after, each.edit.text)):
            if one.edit.safe:
                verdict = Verdict.EQUAL if one.after not in times_of_unsafe else Verdict.DIFFERENT
            else:
                verdict = comparison.verdict(one.made) if before <= _MAX_COMPARED_US else Verdict.DIFFERENT
            step.done += 1
            if verdict is not Verdict.DIFFERENT:
                yield _WinningEdit(one, changes[one.edit.subject], verdict is Verdict.ROUNDED)


def _other_stages(source: EditableKernel) -> Iterator[Edit]:
    """Yields other values of ``num_stages``, and ``num_stages=2`` for innermost loops that load tiles without it."""
    for position, loop in enumerate(loops(source.traced.module)):
        if NUM_STAGES in loop.attributes:
            for stages in range(1, _MAX_STAGES + 1):
                if stages != stages_of(loop):
                    yield stages_edit(source, position, stages)
        elif (any(isinstance(op, CopyOp) and space_of(op.source) == "gm" for op in loop.body.walk())
              and not any(isinstance(inner, scf.ForOp) for inner in loop.body.walk())):
            yield stages_edit(source, position, 2)


def _without_barriers(source: EditableKernel) -> Iterator[Edit]:
    """Yields the edit that leaves out the author's barriers, if the compiler inserts waits."""

    def barriers(module: ModuleOp) -> list[hivm.PipeBarrierOp]:
        return [op for op in module.walk() if isinstance(op, hivm.PipeBarrierOp)]

    def erase_barriers(module: ModuleOp) -> None:
        for op in barriers(module):
            Rewriter.erase_op(op)

    lines = sorted({place.line for op in barriers(source.traced.module) if (place := location_of(op)) is not None})
    kernel = source.kernel
    options = Options.from_switches(kernel.chip, kernel.dialect, kernel.switches, kernel.without)
    if lines and options.synchronise:
        place = location_of(barriers(source.traced.module)[0])
        yield Edit("barriers", f"no barriers (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))})", place,
                   partial(source.rewritten, erase_barriers), safe=False, cause="redundant barrier",
                   write=partial(remove_statements, [location_of(op) for op in barriers(source.traced.module)]))


def time_of(kernel: CompiledKernel, arguments: Sequence[Argument] | None = None) -> float | None:
    """Returns the modelled microseconds of a kernel.

    Args:
        kernel: the kernel.
        arguments: the arguments of the call that is timed; None for arrays of the declared shapes.

    Returns:
        The microseconds; None if the time depends on a call's arguments and there are none, or if the kernel issues more than
        300 000 different instructions.
    """
    return _time_of_short(launch_of_call(kernel, arguments))


def _time_of_short(launch: AnyLaunch | None) -> float | None:
    """Returns the modelled microseconds of a launch; None if there is none, or if it issues too many different instructions."""
    if launch is None:
        return None
    events = sum(len(stream) for part in launch.parts for _, stream, _ in part.recorded.distinct_streams)
    return launch.time_us if events <= _MAX_EVENTS else None


class EditComparison:
    """Compares the results of edited kernels with those of a kernel for the same inputs.

    The kernel runs once, before the first comparison.

    Args:
        kernel: the kernel.
        arguments: the arguments of a call. Elements that decide what the kernel does are taken from them; otherwise arrays of
            their shapes are generated. None for arrays of the declared shapes.
    """

    def __init__(self, kernel: CompiledKernel, arguments: Sequence[Argument] | None = None) -> None:
        self._kernel, self._arguments = kernel, arguments
        self._inputs: Sequence[Argument] = ()
        self._wanted: dict[str, np.ndarray] | None = None

    def verdict(self, edited: CompiledKernel) -> Verdict:
        """Returns how the results of an edited kernel, which has the same parameters, compare with those of the kernel.

        They are different, too, if a run fails, or if inputs cannot be generated.
        """
        try:
            if self._wanted is None:
                data_free = all(program.data_free for program in self._kernel.programs)
                self._inputs = (generated_inputs(self._kernel, self._arguments) if self._arguments is None or data_free
                                else self._arguments)
                self._wanted = _named(results_of(self._kernel, copied(self._inputs)))
            return compared(_named(results_of(edited, copied(self._inputs))), self._wanted)[0]
        except TileError:
            return Verdict.DIFFERENT


def _named(results: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"result {place}": one for place, one in enumerate(results)}


def results_of(kernel: CompiledKernel, arrays: Sequence[object]) -> list[np.ndarray]:
    """Runs a kernel without reporting the run to listeners, and returns the arrays that it writes.

    Args:
        kernel: the kernel.
        arrays: the arguments, as for a call.

    Returns:
        The written arrays except workspaces, in the order of the parameters.
    """
    call = kernel.signature.bind(arrays)
    arguments = kernel.machine_arguments(call)
    for program, blocks in zip(kernel.programs, kernel.blocks(call), strict=True):
        if blocks:
            program.run(arguments, blocks=blocks)
    written = [call.values[position] for position in sorted(kernel.signature.written) if position not in kernel.workspace_idx]
    return [value for value in written if isinstance(value, np.ndarray)]
