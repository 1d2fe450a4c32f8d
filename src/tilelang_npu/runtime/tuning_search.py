"""Which configurations tuning tries: all of them, or those that an optimiser asks for.

The optimiser is Optuna's TPE, seeded. It asks for so many at a time, however many workers there are, and is told of all of them
before it asks again: the same seed tries the same configurations, wherever they are timed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location

__all__ = ["Config", "Everything", "Optimiser", "Search"]

Config = Mapping[str, Any]
_AT_A_TIME = 8
_ASKED = 20
"""How often the optimiser is asked for one that is new; then one is drawn."""


class Search(Protocol):
    """What asks for configurations."""

    def ask(self) -> list[Config]:
        """Some to try next; none at the end."""

    def tell(self, times: Sequence[float | None]) -> None:
        """The modelled times of what was asked for last; None for one that does not work."""


class Everything:
    """All configurations, at once."""

    def __init__(self, configs: Sequence[Config]) -> None:
        self._left = list(configs)

    def ask(self) -> list[Config]:
        """All, then none."""
        asked, self._left = self._left, []
        return asked

    def tell(self, times: Sequence[float | None]) -> None:
        """Nothing follows from them."""


class Optimiser:
    """Some of the configurations, each asked for because of the times of those before.

    Args:
        configs: those there are.
        trials: how many are tried.
        seed: of the optimiser.

    Raises:
        TileError: T735 Optuna is not installed.
    """

    def __init__(self, configs: Sequence[Config], trials: int, seed: int) -> None:
        try:
            import optuna
        except ImportError:
            raise TileError("a search of so many trials needs optuna, which is not installed", code="T735",
                            location=user_location(),
                            help="pip install 'tilelang-npu[optuna]', or try all configurations") from None
        self._optuna = optuna
        self._by_place = {self._place(config): config for config in configs}
        self._values = {name: _ordered(dict.fromkeys(repr(config[name]) for config in configs if name in config),
                                       {repr(config[name]): config[name] for config in configs if name in config})
                        for name in dict.fromkeys(name for config in configs for name in config)}
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        finally:
            optuna.logging.set_verbosity(before)
        self._left = min(trials, len(self._by_place))
        self._unseen = list(self._by_place)
        random.Random(seed).shuffle(self._unseen)
        self._times: dict[tuple[str, ...], float | None] = {}
        self._asked: list[tuple[Any, tuple[str, ...]]] = []

    @staticmethod
    def _place(config: Config) -> tuple[str, ...]:
        return tuple(f"{name}={value!r}" for name, value in sorted(config.items()))

    def ask(self) -> list[Config]:
        """Up to eight more."""
        self._asked = []
        places: list[tuple[str, ...]] = []
        while len(places) < min(_AT_A_TIME, self._left):
            trial, place = self._new(places)
            places.append(place)
            self._asked.append((trial, place))
        self._left -= len(places)
        return [self._by_place[place] for place in places]

    def _new(self, others: Sequence[tuple[str, ...]]) -> tuple[Any, tuple[str, ...]]:
        """A configuration that was not asked for before, and its trial; that is None where the optimiser had no new one."""
        for _ in range(_ASKED):
            trial = self._study.ask()
            place = self._place(dict(self._suggested(trial)))
            if place in self._by_place and place not in self._times and place not in others:
                return trial, place
            if place not in others:
                self._told(trial, self._times.get(place))
        return None, next(one for one in self._unseen if one not in self._times and one not in others)

    def _suggested(self, trial: Any) -> Iterator[tuple[str, Any]]:
        for name, values in self._values.items():
            yield name, values[trial.suggest_int(name, 0, len(values) - 1) if len(values) > 1 else 0]

    def tell(self, times: Sequence[float | None]) -> None:
        """Learn of the times."""
        for (trial, place), time in zip(self._asked, times, strict=True):
            self._times[place] = time
            if trial is not None:
                self._told(trial, time)

    def _told(self, trial: Any, time: float | None) -> None:
        if time is None:  # worse than all others: what is pruned before its first step counts so
            self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
        else:
            self._study.tell(trial, time)


def _ordered(spelled: Mapping[str, None], values: Mapping[str, Any]) -> list[Any]:
    """Values in order where they have one, as numbers do; else as they stand."""
    found = [values[one] for one in spelled]
    return sorted(found) if all(isinstance(one, (int, float)) for one in found) else found
