"""Runs one tuning: times configurations on an executor, and chooses the best one.

Each configuration is traced in this process; its draft (the traced kernel) is compiled and timed on the executor. The fastest
configuration is then run. If its results are wrong, it is rejected, and the next fastest one is run. Times are modelled, so the
same configurations always give the same winner and the same table, wherever and in whatever order they are timed.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from tilelang_npu.errors import TileError, doors
from tilelang_npu.progress import shown
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.kernel.draft import Draft, Timing, failure, time_draft, time_limit
from tilelang_npu.runtime.kernel.executors import compute_each
from tilelang_npu.runtime.settings.log import silenced
from tilelang_npu.runtime.tuning.tuning_check import ResultCheck, TuningProfile
from tilelang_npu.runtime.tuning.tuning_search import Config, Search
from tilelang_npu.runtime.tuning.tuning_table import Table, TuningRow, load_outcomes, store_outcomes
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.factory import Factory
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.runtime.jit.methods import Method


@dataclass(frozen=True)
class Rejected:
    """A configuration that failed or had wrong results.

    Attributes:
        config: the values of the tunable parameters, by name.
        reason: the reason in one line; it begins with the code if the reason is a diagnostic.
        code: the code of the diagnostic, such as ``T201``; empty for other reasons.
    """

    config: dict[str, object]
    reason: str
    code: str = ""


@dataclass
class Candidate:
    """A configuration that compiles.

    Attributes:
        number: the index of the configuration among those that were tried.
        config: the values of the tunable parameters, by name.
        key: the key of the configuration's draft (its traced kernel).
        estimate: modelled milliseconds, computed without values; None if the time depends on the elements of arrays.
        latency: modelled milliseconds of the run if the configuration was run, else the estimate; infinity until it is ranked.
    """

    number: int
    config: Config
    key: str
    estimate: float | None
    latency: float = math.inf


@dataclass(frozen=True)
class Tuning:
    """One run of the tuning of a factory.

    Attributes:
        factory: the factory, which makes the kernel of a configuration.
        args, kwargs: the arguments of the factory apart from the tunable parameters.
        profile: how configurations are run and checked.
        timeout: the seconds that a configuration can take to compile, and again to run.
        executor: the executor that compiles and times the drafts (traced kernels); None to use this thread.
        table: the file for the outcomes; None to write no file.
        rejected: the configurations that failed or had wrong results so far.
        rows: the outcomes of all configurations that were tried so far.
    """

    factory: Factory[..., object] | Method
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    profile: TuningProfile
    timeout: float
    executor: Executor | None = None
    table: Table | None = None
    rejected: list[Rejected] = field(default_factory=list)
    rows: list[TuningRow] = field(default_factory=list)

    def run(self, search: Search, total: int) -> tuple[list[Candidate], ResultCheck]:
        """Times the configurations that a search proposes, and checks the results of the fastest.

        Args:
            search: the search strategy, which proposes the configurations.
            total: the number of configurations that it proposes, for the progress line.

        Returns:
            The configurations that work, fastest first, and the check that the fastest one has passed.
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
            standard = self._standard(candidates)
            check = ResultCheck(self.profile, functools.cache(
                lambda: None if standard is None else (standard.config, self.kernel(standard.config))))
            ranked = self._ranked(candidates, standard, check)
        if self.table is not None:
            self.table.write(self.rows)
        return ranked, check

    def kernel(self, config: Config) -> JITKernel:
        """Compiles the kernel of a configuration and returns it."""
        factory, parameters = self._with_pass_configs(config)
        return factory.compile(*self.args, **self.kwargs, **parameters)

    def _with_pass_configs(self, config: Config) -> tuple[Factory[..., object] | Method, Config]:
        """Returns the factory that makes the kernel of a configuration, and the configuration's tunable parameters.

        The ``pass_configs`` of a configuration, if the factory has no such parameter, are added to those of ``jit``.
        """
        factory, more = self.factory, config.get("pass_configs")
        settings = getattr(factory, "settings", None)  # not of a factory that is bound to an object
        if not isinstance(more, Mapping) or settings is None:
            return factory, config
        whole = cast("Factory[..., object]", factory)
        if "pass_configs" in inspect.signature(whole.function).parameters:
            return factory, config
        parameters = {name: value for name, value in config.items() if name != "pass_configs"}
        given = {**(settings.pass_configs if isinstance(settings.pass_configs, Mapping) else {}), **more}
        return type(whole)(whole.function, replace(settings, pass_configs=given), whole.kind), parameters

    def _outcomes(self, configs: Sequence[Config]) -> list[Timing]:
        """Returns the outcomes of configurations, in their order; configurations without a known outcome are timed."""
        first = len(self.rows)
        drafts: list[Draft | None] = []
        with shown("traced", len(configs)) as step:
            for config in configs:
                try:
                    with silenced(), time_limit(self.timeout):
                        factory, parameters = self._with_pass_configs(config)
                        draft = factory.draft(*self.args, **self.kwargs, **parameters)
                except Exception as error:  # noqa: BLE001  (any error means that this configuration fails)
                    drafts.append(None)
                    self.rows.append(TuningRow(config, "", failure(error)))
                else:
                    draft = self._with_sizes(draft)
                    drafts.append(draft)
                    self.rows.append(TuningRow(config, draft.key, Timing()))
                step.done += 1
        keys = [draft.key for draft in drafts if draft is not None]
        known = dict(zip(keys, load_outcomes(keys) or (), strict=False)) | (self.table.known if self.table is not None else {})
        for number, row in enumerate(self.rows[first:], first):
            if row.key in known:
                self.rows[number] = row._replace(outcome=known[row.key])
        asked = {draft.key: draft for draft in drafts if draft is not None and draft.key not in known}
        if self.table is not None:
            self.table.write([row for row in self.rows if row.key not in asked])
        self._time(list(asked.values()), first)
        outcomes = [row.outcome for row in self.rows[first:]]
        if asked and all(row.outcome.works or row.outcome.code for row in self.rows[first:]):
            store_outcomes(keys, [row.outcome for row in self.rows[first:] if row.key])
        return outcomes

    def _with_sizes(self, draft: Draft) -> Draft:
        """Returns a draft with the key under which its time is stored: that of the kernel and the sizes of the call.

        Raises:
            TileError: T730, the kernel runs on generated inputs, and a symbolic size has no value; T707, the kernel has no size
                or number parameter of a name.
        """
        traced, sizes = draft.traced, self.profile.sizes
        known = [*traced.symbols, *(parameter.name for parameter in traced.parameters if parameter.shape is None)]
        for name in sizes.keys() - set(known):
            raise TileError(f"{traced.name} has no size or number {name!r}", code="T707", location=user_location(),
                            help=f"its sizes and numbers are {', '.join(known)}" if known else
                                 "its sizes are constants, or parameters of the factory")
        missing = [name for name in traced.symbols if name not in sizes]
        if missing and ResultCheck(self.profile, lambda: None).generates_inputs:
            options = " ".join(f"{name}=..." for name in missing)
            given = ", ".join(f"{name!r}: ..." for name in missing)
            raise TileError(f"the time of {traced.name} depends on {', '.join(missing)}, which a call gives", code="T730",
                            location=user_location(),
                            help=f"give values: tune FILE --size {options}; in Python sizes={{{given}}} or a supply_prog, of "
                                 "autotune or set_profile_args")
        return replace(draft, key=entries.digest(draft.key, {"sizes": sorted(sizes.items())})) if sizes else draft

    def _time(self, drafts: Sequence[Draft], first: int) -> None:
        """Times drafts (traced kernels), and sets the outcomes of their rows, which are in ``rows`` from index ``first`` on."""
        numbers: dict[str, list[int]] = {}  # by key, as two configurations may be the same kernel
        for number, row in enumerate(self.rows[first:], first):
            numbers.setdefault(row.key, []).append(number)
        work = functools.partial(time_draft, seconds=self.timeout)
        if self.profile.sizes:
            work = functools.partial(work, sizes=dict(self.profile.sizes))
        with shown("timed", len(drafts)) as step:
            for index, made in compute_each(self.executor, work, drafts, None if self.executor is None else self.timeout):
                outcome = failure(made) if isinstance(made, BaseException) else made
                for number in numbers[drafts[index].key]:
                    self.rows[number] = self.rows[number]._replace(outcome=outcome)
                    if self.table is not None:
                        self.table.add(self.rows[number])
                step.done += 1

    def _standard(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """Returns the candidate with whose results the others are compared: the one with the factory's default values, or else
        the first one; None if there is no candidate.
        """
        defaults = {name: parameter.default for name, parameter in inspect.signature(self.factory.function).parameters.items()}
        with_defaults = (one for one in candidates if all(defaults.get(name) == value for name, value in one.config.items()))
        return next(with_defaults, None) or next(iter(candidates), None)

    def _ranked(self, candidates: Sequence[Candidate], standard: Candidate | None, check: ResultCheck) -> list[Candidate]:
        """Returns the candidates that work, the fastest first.

        All candidates without an estimated time are run. Of the others, the fastest is run, and then the next fastest as long
        as results are wrong. Once a candidate's results are right and its time equals the estimate, slower candidates are not
        run.
        """
        working: list[Candidate] = []
        trusted = True
        for one in sorted(candidates, key=lambda one: (one.estimate is not None, one.estimate, one.number)):
            if one.estimate is not None and trusted and any(other.latency <= one.estimate for other in working):
                one.latency = one.estimate
            else:
                try:
                    with time_limit(self.timeout):
                        one.latency = self._checked(one, standard, check)
                except Exception as error:  # noqa: BLE001  (any error means that this configuration fails)
                    outcome = failure(error)
                    self.rejected.append(Rejected(dict(one.config), str(outcome), outcome.code))
                    self.rows[one.number] = self.rows[one.number]._replace(outcome=outcome)
                    continue
                trusted &= one.estimate in (None, one.latency)
                if one.estimate is None:
                    self.rows[one.number] = self.rows[one.number]._replace(outcome=Timing(one.latency * 1000))
            working.append(one)
        return sorted(working, key=lambda one: (one.latency, one.number))

    def _checked(self, one: Candidate, standard: Candidate | None, check: ResultCheck) -> float:
        """Runs a candidate, checks its results, and returns the modelled milliseconds of the run.

        A pair of kernels whose results an earlier tuning has compared is not run again.
        """
        if one.estimate is None or not check.depends_on_kernels_alone() or standard is None:
            return check.measure(self.kernel(one.config), one.config)
        facts = {"what": "a check", "profile": replace(self.profile, manual_check_prog=None)}
        key = entries.digest(f"{one.key}\n{standard.key}", facts)
        if entries.load(key) is None:
            latency = check.measure(self.kernel(one.config), one.config)
            if latency != one.estimate:
                return latency
            entries.store(key, {"right": "yes"})
        return one.estimate


doors(globals())
