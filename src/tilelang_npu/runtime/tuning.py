"""One tuning: which configurations are timed, where, and which of them is taken.

Each is traced here, and compiled and timed as a draft, which any executor can be given. The least time wins, if its run gives
the right numbers; else it is left out too, and the next one runs. Times are modelled, so the same configurations give the same
winner and the same table, whatever timed them and in whichever order.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import doors
from tilelang_npu.progress import shown
from tilelang_npu.runtime import cache
from tilelang_npu.runtime.draft import Draft, Timing, at_most, failed, timed
from tilelang_npu.runtime.executors import each
from tilelang_npu.runtime.log import unheard
from tilelang_npu.runtime.tuning_check import Check, TuningProfile
from tilelang_npu.runtime.tuning_search import Config, Search
from tilelang_npu.runtime.tuning_table import Table, TuningRow, keep, kept

if TYPE_CHECKING:
    from tilelang_npu.runtime.factory import Factory
    from tilelang_npu.runtime.kernel import JITKernel
    from tilelang_npu.runtime.methods import Method

__all__ = ["Candidate", "Rejected", "Tuning"]


@dataclass(frozen=True)
class Rejected:
    """A configuration that was left out, and why.

    Attributes:
        config: its parameters.
        reason: one line; for a diagnostic, its code first.
        code: of the diagnostic; empty for other reasons.
    """

    config: dict[str, Any]
    reason: str
    code: str = ""


@dataclass
class Candidate:
    """A configuration that compiles.

    Attributes:
        number: its place among those that were tried.
        config: its parameters.
        key: of its draft.
        foreseen: milliseconds without values; None where data decide them.
        latency: as its run tells, where it is run; else as foreseen.
    """

    number: int
    config: Config
    key: str
    foreseen: float | None
    latency: float = math.inf


@dataclass(frozen=True)
class Tuning:
    """What is tuned, and how.

    Attributes:
        factory: makes the kernels.
        args: what it is given beside the parameters of a configuration.
        kwargs: the same by name.
        profile: how configurations are run and compared.
        timeout: seconds for a configuration to compile, and again to run.
        executor: compiles and times; this thread does without one.
        table: takes what became of each; None where nobody asked for one.
    """

    factory: Factory[..., Any] | Method
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    profile: TuningProfile
    timeout: float
    executor: Executor | None = None
    table: Table | None = None
    rejected: list[Rejected] = field(default_factory=list)
    rows: list[TuningRow] = field(default_factory=list)

    def run(self, search: Search, total: int) -> tuple[list[Candidate], Check]:
        """The configurations that work, best first, and the check that the best one has passed.

        Args:
            search: asks for them.
            total: how many it can ask for.
        """
        with shown(f"tuning {total} configurations"):
            while asked := search.ask():
                outcomes = self._outcomes(asked)
                search.tell([outcome.us for outcome in outcomes])
            for row in self.rows:
                if not row.outcome.works:
                    self.rejected.append(Rejected(dict(row.config), str(row.outcome), row.outcome.code))
            candidates = [Candidate(number, row.config, row.key, None if row.outcome.us is None else row.outcome.us / 1000)
                          for number, row in enumerate(self.rows) if row.outcome.works]
            check = Check(self.profile, functools.cache(functools.partial(self._standard, candidates)))
            ranked = self._ranked(candidates, check)
        if self.table is not None:
            self.table.end(self.rows)
        return ranked, check

    def kernel(self, config: Config) -> JITKernel:
        """The kernel of a configuration."""
        return self.factory.compile(*self.args, **self.kwargs, **config)

    def _outcomes(self, configs: Sequence[Config]) -> list[Timing]:
        """What becomes of configurations, in their order: as it is known, else timed."""
        first = len(self.rows)
        drafts: list[Draft | None] = []
        with shown("traced", len(configs)) as step:
            for config in configs:
                try:
                    with unheard(), at_most(self.timeout):
                        drafts.append(self.factory.draft(*self.args, **self.kwargs, **config))
                    self.rows.append(TuningRow(config, drafts[-1].key if drafts[-1] else "", Timing()))
                except Exception as error:  # noqa: BLE001  (it is this configuration's)
                    drafts.append(None)
                    self.rows.append(TuningRow(config, "", failed(error)))
                step.done += 1
        keys = [draft.key for draft in drafts if draft is not None]
        known = dict(zip(keys, kept(keys) or (), strict=False)) | (self.table.known if self.table is not None else {})
        for number, row in enumerate(self.rows[first:], first):
            if row.key in known:
                self.rows[number] = row._replace(outcome=known[row.key])
        asked = {draft.key: draft for draft in drafts if draft is not None and draft.key not in known}
        if self.table is not None:
            self.table.begin([row for row in self.rows if row.key not in asked])
        self._time(list(asked.values()), first)
        outcomes = [row.outcome for row in self.rows[first:]]
        if asked and all(row.outcome.works or row.outcome.code for row in self.rows[first:]):
            keep(keys, [row.outcome for row in self.rows[first:] if row.key])
        return outcomes

    def _time(self, drafts: Sequence[Draft], first: int) -> None:
        """Time drafts, and fill in the rows from the first on that wait for them."""
        places: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows[first:], first):
            places.setdefault(row.key, []).append(number)
        work = functools.partial(timed, seconds=self.timeout)
        with shown("timed", len(drafts)) as step:
            for at, made in each(self.executor, work, drafts, None if self.executor is None else self.timeout):
                outcome = failed(made) if isinstance(made, BaseException) else made
                for number in places[drafts[at].key]:
                    self.rows[number] = self.rows[number]._replace(outcome=outcome)
                    if self.table is not None:
                        self.table.add(self.rows[number])
                step.done += 1

    def _ranked(self, candidates: Sequence[Candidate], check: Check) -> list[Candidate]:
        """What no trace tells is run; then the fastest that was foreseen, and the next while results are wrong. Once one is
        right, and took what was foreseen, the slower ones need not run."""
        working: list[Candidate] = []
        trusted = True
        for one in sorted(candidates, key=lambda one: (one.foreseen is not None, one.foreseen, one.number)):
            if one.foreseen is not None and trusted and any(other.latency <= one.foreseen for other in working):
                one.latency = one.foreseen
            else:
                try:
                    with at_most(self.timeout):
                        one.latency = self._checked(one, candidates, check)
                except Exception as error:  # noqa: BLE001  (it is this configuration's)
                    outcome = failed(error)
                    self.rejected.append(Rejected(dict(one.config), str(outcome), outcome.code))
                    self.rows[one.number] = self.rows[one.number]._replace(outcome=outcome)
                    continue
                trusted &= one.foreseen in (None, one.latency)
                if one.foreseen is None:
                    self.rows[one.number] = self.rows[one.number]._replace(outcome=Timing(one.latency * 1000))
            working.append(one)
        return sorted(working, key=lambda one: (one.latency, one.number))

    def _checked(self, one: Candidate, candidates: Sequence[Candidate], check: Check) -> float:
        """Milliseconds of a run whose results are right; a pair of kernels that were compared before is not run again."""
        standard = self._standard_of(candidates)
        if one.foreseen is None or not check.is_of_kernels_alone() or standard is None:
            return check.measure(self.kernel(one.config), one.config)
        facts = {"what": "a check", "profile": replace(self.profile, manual_check_prog=None)}
        place = cache.digest(f"{one.key}\n{standard.key}", facts)
        if cache.load(place) is None:
            latency = check.measure(self.kernel(one.config), one.config)
            if latency != one.foreseen:
                return latency
            cache.store(place, {"right": "yes"})
        return one.foreseen

    def _standard_of(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """The one that the others are compared with: that of the factory's defaults, or else the first."""
        defaults = {name: parameter.default for name, parameter in inspect.signature(self.factory.function).parameters.items()}
        usual = (one for one in candidates if all(defaults.get(name) == value for name, value in one.config.items()))
        return next(usual, None) or next(iter(candidates), None)

    def _standard(self, candidates: Sequence[Candidate]) -> tuple[Config, JITKernel] | None:
        found = self._standard_of(candidates)
        return None if found is None else (found.config, self.kernel(found.config))


doors(globals())
