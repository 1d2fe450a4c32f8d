"""Searches edits of a script that make a kernel faster by modelled time.

A version of the script is a choice of values for its subjects: numbers, stages of loops, blocks of launches. The search always
continues from the version with the lowest expected time whose steps were not tried yet, so that a step that wins nothing by
itself, such as a larger number of stages, can still be followed by one that wins because of it. Large steps come first. A
version that does not fit into a memory is continued too, with smaller numbers. Steps that win separately are also made
together.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.arguments.tensors import Argument
from tilelang_npu.runtime.improve.subjects.block_counts import launches
from tilelang_npu.runtime.improve.subjects.divisions import divisions
from tilelang_npu.runtime.improve.subjects.fusions import fusions
from tilelang_npu.runtime.improve.subjects.loop_stages import loops
from tilelang_npu.runtime.improve.subjects.source_numbers import SourceNumber, numbers
from tilelang_npu.runtime.improve.subjects.subject import NotApplicable, ScriptTree, Subject, SubjectFacts
from tilelang_npu.runtime.kernel.draft import Draft, Timing, failure, time_draft
from tilelang_npu.runtime.kernel.executors import compute_each
from tilelang_npu.runtime.reports.number_values import ValueStep
from tilelang_npu.target import Chip

if TYPE_CHECKING:
    from tilelang_npu.runtime.improve.script_version import ScriptVersion

_LEAST_GAIN = 0.005
"""The share of its time that a version must save to count as better."""
_TOLERATED = 1.15
"""Versions slower than the fastest one by more than this factor are not continued."""
_HOPELESS = 1.25
"""A step that made a version slower by more than this factor is not tried again in the versions made from it."""
_ALL_STEPS = 2
"""The rounds of steps of a version: the large steps, then the small ones."""
_SMALL_STEPS_LATER = 1.05
"""Large steps of versions that are slower by up to this factor are tried before the small steps of a version."""
_NO_ROOM = ("T104",)
"""Codes of the diagnostics that say that buffers do not fit into a memory."""
_ROOM_LATER = 1.01
"""A version without room is expected to take this factor of its parent's time once its tiles are smaller."""
_LEAST_SECONDS = 1.0
"""The least time limit of a version in seconds."""
_SUBMITTED = 64
"""The number of versions that are given at once to an executor whose number of workers is not known."""

Choice = Mapping[str, int]
"""The values of the subjects that differ from the script, by the name of the subject."""


@dataclass(eq=False)
class TriedVersion:
    """A version of the script.

    Attributes:
        choice: the values of the edited subjects.
        us: modelled microseconds; None if the version has no room in a memory.
        parent: the version from which a step made this one.
        hopeless: the subjects and values that are not tried again.
        rounds: how many rounds of steps of this version were tried: none, the large ones, or all.
    """

    choice: Choice
    us: float | None
    parent: TriedVersion | None = None
    hopeless: frozenset[tuple[str, int]] = frozenset()
    rounds: int = 0

    @property
    def expected(self) -> float:
        """The modelled microseconds, or the time that the version is expected to have with smaller tiles."""
        if self.us is not None:
            return self.us
        assert self.parent is not None and self.parent.us is not None
        return self.parent.us * _ROOM_LATER


@dataclass
class EditSearch:
    """A search, with what it has found so far.

    Attributes:
        program: the script as it is.
        workspaces: the positions of the kernel's parameters that callers do not pass.
        arguments: the arguments of a call whose time is modelled; None for arrays of the declared shapes.
        executor: the executor that compiles and times drafts; None to use this thread.
        seconds: the time limit of one version.
        reassociate: whether edits are made that change roundings by intention.
        trials: the number of versions after which the search ends; None for no limit.
        refused: combinations of values of subjects that are not chosen any more, because the results change.
        versions: the versions that have a time, or no room.
        outcomes: the outcomes of drafts, by their keys.
        seconds_each: about how long compiling and timing one version takes.
    """

    program: ScriptVersion
    workspaces: Sequence[int] = ()
    arguments: Sequence[Argument] | None = None
    executor: Executor | None = None
    seconds: float = 30.0
    reassociate: bool = False
    trials: int | None = None
    refused: set[frozenset[tuple[str, int]]] = field(default_factory=set)
    versions: list[TriedVersion] = field(default_factory=list)
    outcomes: dict[str, Timing] = field(default_factory=dict)
    seconds_each: float = 0.0

    def __post_init__(self) -> None:
        self._draft = self.program.draft()
        self._tree = ScriptTree(self.program.text, self.program.factory)
        parameters = [one.name.value for one in self._tree.factory.params.params] if self._tree.factory is not None else []
        chip = self._draft.settings.chip
        assert isinstance(chip, Chip)  # a draft has the chip itself
        sizes = [size for one in self._draft.traced.parameters for size in one.shape or ()
                 if isinstance(size, int) and size > 1]
        passed = {**dict(zip(parameters, self.program.args, strict=False)), **self.program.kwargs}
        facts = SubjectFacts(passed, (chip.aic, chip.aiv), tuple(dict.fromkeys(sizes)), self.program.call_line)
        found: list[Subject] = [*numbers(self._tree, facts), *loops(self._tree), *launches(self._tree, facts),
                                *fusions(self._tree), *divisions(self._tree)]
        self.subjects = {one.name: one for one in found if self.reassociate or not one.reassociates}
        # The subjects whose edits change the kernel's parameters, or nothing of the kernel, as the threads of a GPU's block.
        self._left_out: set[str] = set()
        self._seen: set[tuple[tuple[str, int], ...]] = set()
        self._texts: set[str] = set()

    def begin(self) -> Timing:
        """Times the script as it is."""
        self._seen.add(())
        self._texts.add(self.program.text)
        started = time.monotonic()
        (_, timing), = self._timed([self._draft], started + self.seconds)
        self.seconds_each = time.monotonic() - started
        if timing.us is not None:
            self.versions.append(TriedVersion({}, timing.us))
        return timing

    def text(self, choice: Choice) -> str:
        """Returns the script with values chosen for subjects."""
        return self._tree.edited(*(subject.replacements(choice[name]) for name, subject in self.subjects.items()
                                   if name in choice))

    def version(self, choice: Choice) -> ScriptVersion:
        """Returns the script, and the factory's call, with values chosen for subjects."""
        arguments = {subject.parameter: choice[name] for name, subject in self.subjects.items()
                     if name in choice and isinstance(subject, SourceNumber) and subject.parameter}
        return replace(self.program, text=self.text(choice), kwargs={**self.program.kwargs, **arguments})

    @property
    def tried(self) -> int:
        """The number of versions that were traced, the script as it is not counted."""
        return len(self._texts) - 1

    def best(self) -> TriedVersion:
        """Returns the fastest version, of equal ones the first."""
        return min((one for one in self.versions if one.us is not None and self.is_allowed(one.choice)),
                   key=lambda one: one.us or 0.0)

    def is_allowed(self, choice: Choice) -> bool:
        """Whether a version contains no refused combination."""
        return not any(combination <= choice.items() for combination in self.refused)

    def run(self, until: float) -> Iterator[TriedVersion]:
        """Searches until a time of ``time.monotonic()``, or until no version is worth continuing. No version begins that is not
        expected to end in time.

        Yields:
            The fastest version, after each round of steps.
        """
        while self._is_time_for_one(until) and not self._is_over():
            limit = self.best().expected * _TOLERATED
            open_ones = [one for one in self.versions if one.rounds < _ALL_STEPS and one.expected <= limit
                         and self.is_allowed(one.choice)]
            if not open_ones:
                return
            # Small steps of a version come after the large steps of all versions that are nearly as fast.
            self._expand(min(open_ones, key=lambda one: one.expected * (_SMALL_STEPS_LATER if one.rounds else 1.0)), until)
            yield self.best()

    def _is_over(self) -> bool:
        return self.trials is not None and self.tried >= self.trials

    def _expand(self, version: TriedVersion, until: float) -> None:
        """Tries the next round of steps of a version, and then the winning ones of them together."""
        fine = version.rounds > 0
        version.rounds += 1
        steps = [(subject.name, step.value) for subject in self.subjects.values() if subject.name not in self._left_out
                 for step in self._steps(version, subject) if step.fine is fine]
        choices = [{**version.choice, name: value} for name, value in steps if (name, value) not in version.hopeless]
        made = self._time(version, [one for one in choices if self.is_allowed(one)], until)
        if version.us is None:
            return
        slow = {item for one in made if one.us is not None and one.us > version.us * _HOPELESS
                for item in one.choice.items() if version.choice.get(item[0]) != item[1]}
        for one in made:
            one.hopeless = version.hopeless | slow
        self._combine(version, made, until)

    def _steps(self, version: TriedVersion, subject: Subject) -> Iterator[ValueStep]:
        current = version.choice.get(subject.name, subject.original)
        for step in subject.steps(current):
            if version.us is not None or (isinstance(subject, SourceNumber) and step.value < current):
                yield step

    def _combine(self, version: TriedVersion, made: Sequence[TriedVersion], until: float) -> None:
        """Tries the winning steps of a version together: the best one of each subject, one after the other."""
        assert version.us is not None
        winners: dict[str, tuple[int, TriedVersion]] = {}
        for one in made:
            if one.us is not None and one.us < version.us * (1 - _LEAST_GAIN):
                for name, value in one.choice.items():
                    if version.choice.get(name) != value:
                        winners.setdefault(name, (value, one))
        if len(winners) < 2:
            return
        _, current = next(iter(winners.values()))
        for (name, (value, _)) in list(winners.items())[1:]:
            choice = {**current.choice, name: value}
            for one in self._time(current, [choice] if self.is_allowed(choice) else [], until):
                assert current.us is not None
                if one.us is not None and one.us < current.us:
                    one.hopeless = current.hopeless
                    current = one

    def time_of(self, choice: Choice, until: float) -> float | None:
        """Returns the modelled microseconds of a version; None if it fails."""
        known = next((one for one in self.versions if dict(one.choice) == dict(choice)), None)
        if known is not None:
            return known.us
        self._seen.discard(tuple(sorted(choice.items())))
        made = self._time(self.versions[0], [choice], until, again=True)
        return made[0].us if made else None

    def _time(self, version: TriedVersion, choices: Sequence[Choice], until: float, *, again: bool = False
              ) -> list[TriedVersion]:
        """Compiles and times versions, adds those that work or have no room, and returns those that work, the fastest first."""
        drafts: list[Draft] = []
        candidates: list[Choice] = []
        for given in choices:
            if not self._is_time_for_one(until) or (self._is_over() and not again):
                break
            choice = {name: value for name, value in given.items() if value != self.subjects[name].original}
            key = tuple(sorted(choice.items()))
            if key in self._seen:
                continue
            self._seen.add(key)
            try:
                edited = self.version(choice)
            except NotApplicable:
                continue
            if edited.text in self._texts and not again:
                continue
            self._texts.add(edited.text)
            try:
                draft = edited.draft()
            except TileError as error:
                self._without_room(error.code, choice, version)
                continue
            except Exception:  # noqa: BLE001  (the author's own checks may raise any error)
                continue
            same_parameters = self._parameters(draft) == self._parameters(self._draft)
            if len(choice) == 1 and (not same_parameters or draft.key == self._draft.key):
                self._left_out.update(choice)
            elif same_parameters:
                drafts.append(draft)
                candidates.append(choice)
        made: list[TriedVersion] = []
        try:
            for index, timing in self._timed(drafts, until):
                if timing.us is not None:
                    made.append(TriedVersion(candidates[index], timing.us, version))
                else:
                    self._without_room(timing.code, candidates[index], version)
        finally:  # Ctrl-C keeps the versions that have a time
            made.sort(key=lambda one: (one.us or 0.0, sorted(one.choice.items())))
            self.versions += made
        return made

    def _without_room(self, code: str | None, choice: Choice, version: TriedVersion) -> None:
        """Adds a version that failed for want of room, unless its parent did too."""
        if code in _NO_ROOM and version.us is not None:
            self.versions.append(TriedVersion(choice, None, version))

    def _parameters(self, draft: Draft) -> list[tuple[object, ...]]:
        return [(one.name, str(one.dtype), one.shape) for position, one in enumerate(draft.traced.parameters)
                if position not in self.workspaces]

    def _timed(self, drafts: Sequence[Draft], until: float) -> Iterator[tuple[int, Timing]]:
        """Yields the outcomes of drafts; drafts of a kernel that was timed already are not compiled again."""
        new: dict[str, list[int]] = {}
        for index, draft in enumerate(drafts):
            if draft.key in self.outcomes:
                yield index, self.outcomes[draft.key]
            else:
                new.setdefault(draft.key, []).append(index)
        asked = [drafts[indices[0]] for indices in new.values()]
        at_once = max(1, len(asked)) if self.executor is None else _workers_of(self.executor)
        for start in range(0, len(asked), at_once):
            for place, outcome in self._outcomes(asked[start:start + at_once], until):
                for index in new[asked[start + place].key]:
                    yield index, outcome

    def _outcomes(self, drafts: Sequence[Draft], until: float) -> Iterator[tuple[int, Timing]]:
        """Compiles and times drafts, as long as one more is expected to end in time."""
        if self.executor is not None and not self._is_time_for_one(until):
            return

        def results() -> Iterator[tuple[int, Timing | BaseException]]:
            if self.executor is None:
                for place, draft in enumerate(drafts):
                    if not self._is_time_for_one(until):
                        return
                    yield place, time_draft(draft, self._limit(until), self.arguments)
            else:
                work = functools.partial(time_draft, seconds=self._limit(until), arguments=self.arguments)
                yield from compute_each(self.executor, work, drafts)

        started = time.monotonic()
        for place, result in results():
            outcome = failure(result) if isinstance(result, BaseException) else result
            now = time.monotonic()
            self.seconds_each, started = (self.seconds_each + now - started) / 2, now
            if outcome.works or now < until:  # a version that the end of the search has stopped is not known to fail
                self.outcomes[drafts[place].key] = outcome
            yield place, outcome

    def _is_time_for_one(self, until: float) -> bool:
        return time.monotonic() + self.seconds_each < until

    def _limit(self, until: float) -> float:
        """Returns the time limit of a version in seconds."""
        return max(_LEAST_SECONDS, min(self.seconds, until - time.monotonic()))


def _workers_of(executor: Executor) -> int:
    """Returns the number of versions that are given to an executor at once: few enough that they end soon."""
    workers = getattr(executor, "_max_workers", None)
    return 2 * workers if isinstance(workers, int) else _SUBMITTED
