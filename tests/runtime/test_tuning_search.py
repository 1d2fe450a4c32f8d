"""Which configurations are tried: each once, those of the seed, and ever better ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tilelang_npu.runtime.tuning.tuning_search import Config, Everything, Optimiser

CONFIGS: list[Config] = [{"tile": tile, "stages": stages, "order": order} for tile in (16, 32, 64, 128, 256, 512)
                         for stages in (1, 2, 3) for order in ("rows", "columns")]


def time_of(config: Config) -> float | None:
    """Returns a time that is least for tile 128 and two stages; None for three stages of the largest tile, which do not fit."""
    if config["tile"] == 512 and config["stages"] == 3:
        return None
    return abs(CONFIGS.index(config) // 6 - 3) + 0.3 * abs(config["stages"] - 2) + 1.0


def tried(search: Any, time: Callable[[Config], float | None] = time_of) -> list[list[Config]]:
    asked = []
    while configs := search.ask():
        asked.append(configs)
        search.tell([time(config) for config in configs])
    return asked


def test_everything_is_asked_for_once() -> None:
    assert tried(Everything(CONFIGS)) == [CONFIGS]
    assert tried(Everything([])) == []


def test_an_optimiser_asks_for_no_configuration_twice_and_for_the_requested_number() -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed")
    for trials in (5, 20, 36, 50):
        rounds = tried(Optimiser(CONFIGS, trials, 1))
        assert all(len(configs) <= 8 for configs in rounds)
        flat = [config for configs in rounds for config in configs]
        assert len(flat) == min(trials, len(CONFIGS))
        assert all(config in CONFIGS for config in flat)
        assert len({str(sorted(config.items())) for config in flat}) == len(flat)


def test_what_is_asked_for_follows_from_the_seed_and_from_the_times() -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed")
    first = tried(Optimiser(CONFIGS, 24, 7))
    random.seed(0)  # of others
    assert tried(Optimiser(CONFIGS, 24, 7)) == first
    assert tried(Optimiser(CONFIGS, 24, 8)) != first
    other = tried(Optimiser(CONFIGS, 24, 7), lambda config: float(CONFIGS.index(config)))
    assert other[0] == first[0]  # the optimiser has no results yet
    assert other != first


def test_configurations_that_are_no_grid_are_asked_for_as_they_are() -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed")
    some: list[Config] = [{"tile": 16}, {"tile": 32, "stages": 2}, {"stages": 3, "tile": 64}]
    flat = [config for configs in tried(Optimiser(some, 3, 0), lambda config: None) for config in configs]
    assert sorted(map(str, flat)) == sorted(map(str, some))
