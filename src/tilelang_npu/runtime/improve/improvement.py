"""``improve``: searches source edits of a kernel, checks their results, and returns the improved script with a report."""

from __future__ import annotations

import difflib
import itertools
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from tilelang_npu.display import Report
from tilelang_npu.errors import TileError
from tilelang_npu.progress import shown
from tilelang_npu.runtime.arguments.tensors import Argument, as_array, is_tensor
from tilelang_npu.runtime.checks.result_comparison import Verdict
from tilelang_npu.runtime.improve.edit_search import Choice, EditSearch, TriedVersion
from tilelang_npu.runtime.improve.reasons import reason
from tilelang_npu.runtime.improve.verification import ResultComparison
from tilelang_npu.runtime.kernel.draft import launch_of_call

if TYPE_CHECKING:
    from tilelang_npu.runtime.improve.script_version import ScriptVersion
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding

LEAST_GAIN = 0.02
"""The share of the time that an edit must save to stay in the result. If the modelled times of two versions of a kernel
differ by less, the model does not know which version is faster: "Two versions of a kernel" in docs/accuracy.md."""
_ALTERNATIVES = 3
"""The number of alternatives that are reported."""
_LEAST_SEARCH = 0.5
"""The share of the budget that the search gets even if a run of the kernel takes longer than the budget."""
_CHECK_SHARE = 0.15
"""Results are compared during the search as long as this takes at most this share of the time."""
_MAX_KEPT = 1 / 3
"""The largest share of the budget that is kept for the steps after the search."""
_KEPT_RUNS = 3
"""The number of comparisons of results for which time is kept."""
_KEPT_VERSIONS = 6
"""The number of versions for whose compilation time is kept."""


_NOT_COMPARED = "faster versions, whose results were not compared for want of time: give a larger budget"
"""The note on versions that may be better than the reported one."""


@dataclass(frozen=True)
class AcceptedEdit:
    """A source edit that was made.

    Attributes:
        line: the first edited line in the script as it is, counted from 1.
        what: the edit in words; several edits that save time only together are separated by semicolons.
        why: the part of the time that shrank most, with figures; empty if there was no time left to find it.
        before: modelled microseconds without this edit and those after it in the report.
        after: modelled microseconds with this edit and those before it.
    """

    line: int
    what: str
    why: str
    before: float
    after: float | None

    def __str__(self) -> str:
        after = "no room" if self.after is None else f"{self.after:.1f}"
        return f"line {self.line}: {self.what}  {self.before:.1f} -> {after} us"


@dataclass(frozen=True)
class Improvement(Report):
    """The result of a search for source edits. It prints as a table.

    Attributes:
        kernel: the kernel's name.
        chip: the name of the chip.
        path: the path of the script.
        before: modelled microseconds of the script as it is.
        after: modelled microseconds of the improved script.
        roof_before: the share of the time, before the edits, that the memory or the units need at their peak rate for the work
            of the script as it is or of the improved script, whichever needs less.
        roof_after: the share of the time after the edits that they need for the same work.
        changes: the edits, in the order in which they were counted.
        verdict: how the results compare with those of the script as it is.
        source: the script as it is.
        improved: the improved script.
        alternatives: other versions whose time the model does not tell apart from the best one, with their edits in words.
        refused: edits that were not made because they change results, with the reason.
        tried: the number of versions that were tried.
        seconds: the seconds that the search took.
        note: the reason if the search took longer than its budget; otherwise empty.
    """

    kernel: str
    chip: str
    path: Path
    before: float
    after: float
    roof_before: float
    roof_after: float
    changes: tuple[AcceptedEdit, ...]
    verdict: Verdict
    source: str = field(repr=False)
    improved: str = field(repr=False)
    alternatives: tuple[tuple[float, str], ...] = ()
    refused: tuple[str, ...] = ()
    tried: int = 0
    seconds: float = 0.0
    note: str = ""

    @property
    def patch(self) -> str:
        """The edits as a unified diff."""
        name = self.path.name
        return "".join(difflib.unified_diff(self.source.splitlines(keepends=True), self.improved.splitlines(keepends=True),
                                            f"a/{name}", f"b/{name}"))

    def __str__(self) -> str:
        head = f"{self.kernel} on {self.chip}: {self.before:.1f} us"
        tried = f"{self.tried} versions tried in {self.seconds:.0f} s"
        if not self.changes and not self.tried:
            return "\n".join([f"{head}; no version could be tried in {self.seconds:.0f} s: give the search more time, such as "
                              "--budget 5min", *self._notes()])
        if not self.changes:
            compared = " whose results were compared" if _NOT_COMPARED in self.refused else ""
            return "\n".join([f"{head}; no edit{compared} wins {LEAST_GAIN:.0%} ({tried})", *self._notes()])
        rows = [("line", "us before", "us after", "edit")]
        rows += [(str(one.line), f"{one.before:.1f}", "no room" if one.after is None else f"{one.after:.1f}", one.what)
                 for one in self.changes]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        table = [f"  {row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}" for row in rows]
        return "\n".join([
            f"{head} become {self.after:.1f} us, {self.before / self.after:.2f} times as fast; {self.roof_before:.0%} of the"
            f" roof become {self.roof_after:.0%} ({tried})", *table, f"results: {self.verdict.value}", *self._notes()])

    def explained(self) -> str:
        """Returns the report with the reason of each edit."""
        unknown = "(There was no time to find the reason: give the search more, by --budget.)"
        return "\n".join([str(self), *(f"line {one.line}: {one.what}. {one.why or unknown}" for one in self.changes)])

    def _notes(self) -> Iterator[str]:
        if self.alternatives:
            yield f"within {LEAST_GAIN:.0%} of the best one, to be measured on a card:"
            yield from (f"  {us:.1f} us  {words}" for us, words in self.alternatives)
        if self.refused:
            yield "not made:"
            yield from (f"  {text}" for text in self.refused)
        if self.note:
            yield self.note


class _EditRow(NamedTuple):
    """Edits that the report shows in one row.

    Attributes:
        edits: the edits.
        before: modelled microseconds with the edits of the rows above.
        after: modelled microseconds with the edits of this row, too; None if there is no room, or no time to find it.
    """

    edits: Choice
    before: float
    after: float | None


class Improver:
    """Searches and checks edits of one kernel.

    Args:
        program: the script, and the factory's call that makes the kernel.
        arguments: the arguments of a call of the kernel, for which results are compared; None to generate arguments.
        executor: the executor that compiles and times versions; None to use this thread.
        reassociate: whether results may differ by the rounding of their type.
    """

    def __init__(self, program: ScriptVersion, arguments: Sequence[object] | None = None, *, executor: Executor | None = None,
                 reassociate: bool = False) -> None:
        self._begun = time.monotonic()
        self._program, self._reassociate = program, reassociate
        self._kernel: CompiledKernel = program.kernel()
        self._given = None if arguments is None else [as_array(one) if is_tensor(one) else cast("Argument", one)
                                                      for one in arguments]
        # Without arguments, one trace gives the time of all calls; otherwise the time is that of the given call.
        self._arguments = self._given if self._kernel._depends_on_call else None
        self._search = EditSearch(program, self._kernel.workspace_idx, self._arguments, executor, reassociate=reassociate)
        self._check: ResultComparison | None = None
        self._verdicts: dict[tuple[tuple[str, int], ...], tuple[Verdict, str]] = {}
        self._notes: list[str] = []
        self._kernels: dict[tuple[tuple[str, int], ...], CompiledKernel] = {(): self._kernel}
        self._launches: dict[tuple[tuple[str, int], ...], AnyLaunch] = {}
        self._end = self._begun
        self._run_seconds = 0.0

    def run(self, budget: float, trials: int | None = None) -> Improvement:
        """Searches for a number of seconds, or until a number of versions were tried.

        Ctrl-C ends the search; the best version so far is returned.

        A part of the time is kept for comparing results and for the report. Work that is not expected to end in time does not
        begin: then fewer versions are compared, and fewer alternatives and reasons are in the report. Two runs of the kernel,
        in which hazards are searched for, are needed in any case. If they take longer than half of the budget, the budget is
        exceeded, the search gets half of it, and a note says so.

        Args:
            budget: the seconds, from the creation of this object on.
            trials: the number of versions; None for no limit. With a limit and enough time, the same edits are found each time.

        Raises:
            TileError: T421 the kernel's time depends on the arguments of a call, and there are none, or it cannot be modelled;
                T810 arguments cannot be generated; the code of a hazard, such as S223, if the script as it is has one.
        """
        self._end = self._begun + budget
        self._search.trials = trials
        first = self._search.begin()
        if not first.works:
            raise TileError(f"{self._kernel.name} cannot be timed, so versions cannot be compared: {first}",
                            code="T421", help="name another kernel, or give the factory smaller sizes")
        if first.us is None:
            names = " ".join(f"{name}=..." for name in self._kernel.numbers_of_calls)
            also = f", or give them values: improve FILE --size {names}" if names else ""
            raise TileError(f"the time of {self._kernel.name} depends on the sizes or the elements of a call's arguments, and"
                            " none are known", code="T421",
                            help=f"call the kernel in the script, or pass arguments: kernel.improve(...){also}")
        started = time.monotonic()
        self._check = ResultComparison(self._kernel, self._given)
        # The comparison of a version also compiles it, which takes longer than the draft that was timed.
        self._run_seconds = time.monotonic() - started + 2 * self._search.seconds_each
        if self._check.hazards:
            raise self._has_hazard(self._check.hazards[0])
        most = max(budget * _MAX_KEPT, self._run_seconds)
        kept = min(most, _KEPT_RUNS * self._run_seconds + _KEPT_VERSIONS * self._search.seconds_each)
        room, searching = self._end - time.monotonic(), _LEAST_SEARCH * budget
        kept = max(self._run_seconds, min(kept, room - searching))
        missing = max(0.0, searching + kept - room)
        self._end += missing
        checking = 0.0
        try:
            with shown(f"improving {self._kernel.name}"):
                for best in self._search.run(self._end - kept):
                    elapsed = time.monotonic() - self._begun
                    if best.choice and checking <= _CHECK_SHARE * elapsed and self._is_time_for_run():
                        started = time.monotonic()
                        self._is_right(best.choice)
                        checking += time.monotonic() - started
        except KeyboardInterrupt:
            pass
        found = self._result(first.us)
        return found if not missing or found.seconds <= budget else replace(found, note=(
            f"the budget of {budget:.0f} s was exceeded: a run of the kernel, in which hazards are searched for, takes "
            f"{self._run_seconds:.0f} s, and two runs are needed"))

    def _has_hazard(self, finding: Finding) -> TileError:
        """Returns the error about a script whose own run has a hazard."""
        at = finding.location
        if at is not None and at.file.startswith(f"<{self._program.path.name}, version "):
            at = replace(at, file=str(self._program.path))  # the script as it is has the same lines
        where = f" at line {at.line}" if at is not None else ""
        return TileError(f"the script as it is has a hazard{where}, so no version of it is accepted: "
                         f"{str(finding).splitlines()[0]}", code=finding.code, location=at,
                         help="its results on a card are not certain; repair it first, `tilelang-npu check` and"
                              " `run --sanitize` report all hazards")

    def _is_time_for_run(self) -> bool:
        """Whether one more comparison of results, with the compilation of the version, is expected to end in time."""
        return time.monotonic() + self._run_seconds < self._end

    def _is_known(self, choice: Choice) -> bool:
        """Whether the results of a version were compared, or there is time to do so."""
        return _key(choice) in self._verdicts or self._is_time_for_run()

    def _result(self, before: float) -> Improvement:
        search = self._search
        while True:
            best = search.best()
            if not best.choice:
                break
            # The first comparison is made in any case: without one, the search would have been in vain.
            if not self._is_known(best.choice) and self._verdicts:
                best = self._best_compared()
                self._notes.append(_NOT_COMPARED)
                break
            if self._is_right(best.choice):
                break
        choice: Choice = self._without_idle(best)
        rows = self._rows(choice, before)
        if rows and not _saves(rows[-1]):
            rows.pop()
            choice = {name: value for row in rows for name, value in row.edits.items()}
        if choice and not (self._is_known(choice) and self._is_right(choice)):
            choice = best.choice
            rows = self._rows(choice, before)
        verdict = self._verdicts[_key(choice)][0] if choice else Verdict.EQUAL
        text = search.text(choice)
        after = before if not choice else search.time_of(choice, self._end) or best.expected
        launches = [self._launch(one) for one in ({}, choice)]
        least = min(_seconds_at_roof(one) for one in launches)
        return Improvement(
            self._kernel.name, self._kernel.chip.name, self._program.path, before, after, 1e6 * least / before,
            1e6 * least / after, tuple(self._changes(rows)), verdict, self._program.text, text,
            tuple(self._alternatives(choice, after)), tuple(self._notes), search.tried, time.monotonic() - self._begun)

    def _best_compared(self) -> TriedVersion:
        """Returns the fastest version whose results were compared and accepted; the script as it is if there is none."""
        search = self._search
        return min((one for one in search.versions if one.us is not None and (
            not one.choice or self._is_accepted(self._verdicts.get(_key(one.choice), (Verdict.DIFFERENT, ""))[0]))),
            key=lambda one: one.us or 0.0)

    def _is_right(self, choice: Choice) -> bool:
        """Whether a version computes the same results. If not, the edits that change them together are not made any more."""
        if self._is_accepted(self._verdict_on(choice)[0]):
            return True
        self._refuse(choice)
        return False

    def _verdict_on(self, choice: Choice) -> tuple[Verdict, str]:
        """Runs a version, and returns how its results compare, with a text that says where they differ."""
        key = _key(choice)
        if key not in self._verdicts:
            assert self._check is not None
            started = time.monotonic()
            self._verdicts[key] = self._check.verdict(self._kernel_of(choice))
            self._run_seconds = max(self._run_seconds, time.monotonic() - started)
        return self._verdicts[key]

    def _is_accepted(self, verdict: Verdict) -> bool:
        return verdict is Verdict.EQUAL or (verdict is Verdict.ROUNDED and self._reassociate)

    def _refuse(self, choice: Choice) -> None:
        """Finds the edits of a wrong version that change the results together, and excludes this combination from the search.

        Results of the combination are wrong, and those with any one of its edits left out are right or not known.
        """
        search, guilty = self._search, dict(choice)
        for name in choice:
            fewer = {other: value for other, value in guilty.items() if other != name}
            if fewer and search.time_of(fewer, self._end) is not None and self._is_known(fewer) and not self._is_accepted(
                    self._verdict_on(fewer)[0]):
                guilty = fewer
        search.refused.add(frozenset(guilty.items()))
        verdict, text = self._verdict_on(guilty)
        reason = {Verdict.ROUNDED: "it changes the order of additions; --reassociate allows it"}.get(
            verdict, f"{verdict.value}: {text}")
        edits = sorted((search.subjects[name].line, search.subjects[name].what(value)) for name, value in guilty.items())
        us, before = search.time_of(guilty, self._end), search.versions[0].us
        known = verdict is Verdict.ROUNDED and us is not None and before is not None
        gain = f" ({before:.1f} -> {us:.1f} us)" if known else ""
        note = f"{' together with '.join(f'line {line}: {what}' for line, what in edits)}{gain}: {reason}"
        if note not in self._notes:
            self._notes.append(note)

    def _without_idle(self, best: TriedVersion) -> dict[str, int]:
        """Returns the choice of a version without the edits that save too little to be told apart, alone or two together."""
        search, choice = self._search, dict(best.choice)
        assert best.us is not None
        for size in (1, 2):
            for names in itertools.combinations(list(choice), size):
                if not choice.keys() >= set(names):
                    continue
                fewer = {other: value for other, value in choice.items() if other not in names}
                us = search.versions[0].us if not fewer else search.time_of(fewer, self._end)
                if us is not None and us <= best.us * (1 + LEAST_GAIN):
                    choice = fewer
        return choice

    def _rows(self, choice: Choice, before: float) -> list[_EditRow]:
        """Returns the edits in rows that each save enough to be told apart, but possibly the last one.

        Each time, the edit is added that saves most of those that are left. An edit that saves too little, or for which there
        is no room, is in one row with the next one.
        """
        search, made, current = self._search, dict[str, int](), before
        left, rows, open_row = dict(choice), list[_EditRow](), dict[str, int]()
        while left:
            times = {name: search.time_of({**made, name: value}, self._end) for name, value in left.items()}
            name = min(left, key=lambda one: (times[one] is None, times[one] or 0.0, one))
            us = times[name]
            made[name] = open_row[name] = left.pop(name)
            row = _EditRow(open_row, current, us)
            if _saves(row):
                assert us is not None
                rows, open_row, current = [*rows, row], {}, us
            elif not left:
                rows.append(row)
        return rows

    def _changes(self, rows: Sequence[_EditRow]) -> Iterator[AcceptedEdit]:
        made: dict[str, int] = {}
        for row in rows:
            edits = [(self._search.subjects[name], value) for name, value in row.edits.items()]
            start, made = made, {**made, **row.edits}
            is_known = _key(made) in self._kernels and _key(start) in self._kernels
            is_time = time.monotonic() + 2 * self._search.seconds_each < self._end
            why = reason(self._launch(start), self._launch(made)) if is_known or is_time else ""
            yield AcceptedEdit(min(subject.line for subject, _ in edits),
                               "; ".join(subject.what(value) for subject, value in edits), why, row.before, row.after)

    def _kernel_of(self, choice: Choice) -> CompiledKernel:
        """Returns the compiled kernel of a version."""
        key = _key(choice)
        if key not in self._kernels:
            self._kernels[key] = self._search.version(choice).kernel()
        return self._kernels[key]

    def _launch(self, choice: Choice) -> AnyLaunch:
        """Returns the timed launch of a version."""
        key = _key(choice)
        if key not in self._launches:
            launch = launch_of_call(self._kernel_of(choice), self._arguments)
            assert launch is not None
            self._launches[key] = launch
        return self._launches[key]

    def _alternatives(self, choice: Choice, after: float) -> Iterator[tuple[float, str]]:
        if not choice:
            return
        close = [one for one in self._search.versions if one.us is not None and one.us <= after * (1 + LEAST_GAIN)
                 and dict(one.choice) != dict(choice) and self._search.is_allowed(one.choice)]
        subjects, left = self._search.subjects, _ALTERNATIVES
        for one in sorted(close, key=lambda each: (each.expected, sorted(each.choice.items()))):
            if not left or not self._is_known(one.choice):
                return
            if not self._is_accepted(self._verdict_on(one.choice)[0]):
                continue
            left -= 1
            other = [subjects[name].what(value) for name, value in one.choice.items() if choice.get(name, value) != value]
            added = [subjects[name].what(value) for name, value in one.choice.items() if name not in choice]
            removed = [subjects[name].what(value) for name, value in choice.items() if name not in one.choice]
            words = [f"{word} {'; '.join(edits)}" for word, edits in (("but", other), ("with", added), ("without", removed))
                     if edits]
            yield one.expected, f"the same {', '.join(words)}"


def _saves(row: _EditRow) -> bool:
    """Whether a row of edits saves enough time to be told apart."""
    return row.after is not None and row.after <= row.before * (1 - LEAST_GAIN)


def _key(choice: Choice) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(choice.items()))


def _seconds_at_roof(call: AnyLaunch) -> float:
    """Returns the seconds that the memory or the units, whichever is slower, need at their peak rate for the work of a call."""
    from tilelang_npu.simulator.result.profile.roofline import roofline

    found = roofline(call.parts)
    return found.share * found.seconds
