"""Hand-written parameters compared with tuning: the tried configurations, the criterion, and that some are as fast as tuned
ones."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    before = list(sys.path)
    for folder in ("benchmarks", "examples"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    yield importlib.import_module("tuned")
    sys.modules.pop("tuned")
    sys.modules.pop("ladder", None)
    sys.path[:] = before


def test_one_or_two_numbers_move_at_a_time(tuned: ModuleType) -> None:
    """27 configurations of three numbers are all but the eight in which all of them move."""
    found = tuned.space({"m": 64, "n": 128, "k": 32})
    assert found[0] == {"m": 64, "n": 128, "k": 32}
    assert len(found) == 27 - 8
    assert {"m": 32, "n": 256, "k": 32} in found
    assert all(sum(one[name] != found[0][name] for name in one) <= 2 for one in found)
    assert tuned.space({"stages": 1}) == [{"stages": 1}, {"stages": 2}], "no half of one"


def test_only_numbers_with_defaults_that_are_not_the_chips_are_tuned(tuned: ModuleType) -> None:
    def kernel(M, N, K, dtype="float16", tile=64, cores=24, stages=2):  # type: ignore[no-untyped-def]
        raise AssertionError("not called")

    assert tuned.Entry("kernel", kernel, [{"M": 1, "N": 1, "K": 1}], print).numbers == {"tile": 64, "stages": 2}
    assert tuned.Entry("kernel", kernel, [{"M": 1, "tile": 8}], print).numbers == {"stages": 2}


def test_cores_without_work_are_found(tuned: ModuleType) -> None:
    """The first step of the ladder of a long K has a block for each tile, here four of 24: parts of K are faster."""
    import ladders

    folder = next(folder for folder in ladders.folders() if folder.name == "split_k")
    ladder = ladders.load(folder)
    found = tuned.compare(tuned.Entry("split_k", ladders.steps(folder)[0].factory(), [{"M": 256, "N": 256, "K": 2048}],
                                       ladder.check_values))
    assert found.beaten
    assert found.best[0] < found.by_hand[0]
    kernel = ladders.steps(folder)[0].factory()(256, 256, 2048, **found.numbers)
    assert kernel.trace().time_us == pytest.approx(found.best[0]), "its time is that of the kernel with these numbers"


def test_what_wins_at_a_small_size_and_loses_at_a_long_one_does_not_count(tuned: ModuleType) -> None:
    """A product by hand in shorter steps is faster at 512 of K and slower at 4096."""
    (entry,) = tuned.entries(["gemm_expert"])
    assert [size["K"] for size in entry.sizes] == [512, 4096]
    sizes = [{**size, "tile_M": 128, "tile_N": 256, "stages": 2} for size in entry.sizes]
    short = tuned.compare(tuned.Entry("short", entry.factory, sizes[:1], entry.check))
    assert short.beaten
    times = [entry.factory(**sizes[1], **numbers).trace().time_us for numbers in ({}, short.numbers)]
    assert times[0] < times[1]
    assert not tuned.compare(tuned.Entry("both", entry.factory, sizes, entry.check)).beaten


def test_a_number_that_is_part_of_a_format_is_not_tuned(tuned: ModuleType) -> None:
    """Weights of four bits are packed for a certain `tile_K`: with another value the kernel is faster, and wrong."""
    (entry,) = tuned.entries(["w4a8_gemm"])
    assert "tile_K" in entry.numbers
    assert "tile_K" not in tuned.compare(entry).numbers


@pytest.mark.parametrize("name", ["gemm", "flash_attention", "softmax", "minicv"])
def test_numbers_by_hand_are_those_that_tuning_finds(tuned: ModuleType, name: str) -> None:
    tried = [found for entry in tuned.entries([name]) if (found := tuned.compare(entry))]  # a ladder may have no numbers
    assert tried
    for found in tried:
        assert found.tried + found.refused == len(tuned.space(found.entry.numbers))
        assert not found.beaten, f"{found.numbers}: {found.by_hand} would become {found.best}"
