"""Chooses which configurations tuning tries: all of them, or some that an optimiser proposes.

The optimiser is Optuna's TPE sampler with a seed. It proposes up to eight configurations at a time, and gets the times of all
of them before it proposes the next ones. So a tuning with the same seed always tries the same configurations, for any number of
workers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    import optuna

Config = Mapping[str, object]
_BATCH = 8
_MAX_PROPOSALS = 20
"""Proposals that the optimiser makes until one is a new configuration; then an untried one is drawn at random."""


class Search(Protocol):
    """The interface of a search strategy, which proposes configurations in batches and gets their times."""

    def ask(self) -> list[Config]:
        """Returns the next batch of configurations to try; an empty list when the search has finished."""

    def tell(self, times: Sequence[float | None]) -> None:
        """Reports the outcomes of the last batch.

        Args:
            times: the modelled microseconds of each configuration of the batch, in order; None for one that failed or has no
                time.
        """


class Everything:
    """A search that tries all configurations, in one batch."""

    def __init__(self, configs: Sequence[Config]) -> None:
        self._left = list(configs)

    def ask(self) -> list[Config]:
        """Returns all configurations on the first call, and an empty list afterwards."""
        asked, self._left = self._left, []
        return asked

    def tell(self, times: Sequence[float | None]) -> None:
        """Ignores the times, as there is no further batch."""


class Optimiser:
    """A search that tries a number of configurations, which Optuna chooses by the times of earlier ones.

    Args:
        configs: all configurations.
        trials: the number of configurations to try.
        seed: the seed of Optuna's sampler.

    Raises:
        TileError: T735 Optuna is not installed.
    """

    def __init__(self, configs: Sequence[Config], trials: int, seed: int) -> None:
        try:
            import optuna
        except ImportError:
            raise TileError("tuning with trials=... needs the package optuna, which is not installed", code="T735",
                            location=user_location(),
                            help="pip install 'tilelang-npu[optuna]', or remove trials to try all configurations") from None
        self._optuna = optuna
        self._by_key = {self._key(config): config for config in configs}
        self._values = {name: _ordered([config[name] for config in configs if name in config])
                        for name in dict.fromkeys(name for config in configs for name in config)}
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        finally:
            optuna.logging.set_verbosity(before)
        self._left = min(trials, len(self._by_key))
        self._unseen = list(self._by_key)
        random.Random(seed).shuffle(self._unseen)
        self._times: dict[tuple[str, ...], float | None] = {}
        self._asked: list[tuple[optuna.Trial | None, tuple[str, ...]]] = []

    @staticmethod
    def _key(config: Config) -> tuple[str, ...]:
        return tuple(f"{name}={value!r}" for name, value in sorted(config.items()))

    def ask(self) -> list[Config]:
        """Returns the next batch of up to eight configurations that were not tried before."""
        self._asked = []
        keys: list[tuple[str, ...]] = []
        while len(keys) < min(_BATCH, self._left):
            trial, key = self._propose(keys)
            keys.append(key)
            self._asked.append((trial, key))
        self._left -= len(keys)
        return [self._by_key[key] for key in keys]

    def _propose(self, others: Sequence[tuple[str, ...]]) -> tuple[optuna.Trial | None, tuple[str, ...]]:
        """Returns the trial and key of a configuration that was not tried; the trial is None if the optimiser proposed no new
        one."""
        for _ in range(_MAX_PROPOSALS):
            trial = self._study.ask()
            key = self._key(dict(self._suggested(trial)))
            if key in self._by_key and key not in self._times and key not in others:
                return trial, key
            if key not in others:
                self._report(trial, self._times.get(key))
        return None, next(one for one in self._unseen if one not in self._times and one not in others)

    def _suggested(self, trial: optuna.Trial) -> Iterator[tuple[str, object]]:
        for name, values in self._values.items():
            yield name, values[trial.suggest_int(name, 0, len(values) - 1) if len(values) > 1 else 0]

    def tell(self, times: Sequence[float | None]) -> None:
        """Reports the times of the last batch to Optuna.

        Args:
            times: the modelled microseconds of each configuration of the batch, in order; None for one that failed or has no
                time.
        """
        for (trial, key), time in zip(self._asked, times, strict=True):
            self._times[key] = time
            if trial is not None:
                self._report(trial, time)

    def _report(self, trial: optuna.Trial, time: float | None) -> None:
        if time is None:  # a trial that is pruned before its first step counts as worse than all others
            self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
        else:
            self._study.tell(trial, time)


def _ordered(values: Sequence[object]) -> Sequence[object]:
    """Returns the different values: numbers in ascending order, others in the order of their first occurrence."""
    found = list({repr(value): value for value in values}.values())
    numbers = [value for value in found if isinstance(value, (int, float))]
    return sorted(numbers) if len(numbers) == len(found) else found
