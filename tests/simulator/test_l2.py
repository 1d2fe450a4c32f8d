"""What L2 holds, against a cache that keeps every single line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tilelang_npu.simulator.time.gm_traffic import MovedBytes
from tilelang_npu.simulator.time.l2 import Kinds, Used, missed_by_walk, missed_once, side_by_side, touched


class Touch(NamedTuple):
    """One transfer."""

    buffer: int
    written: bool
    offset: int
    nbytes: int


def missed(cores: list[list[Touch]], capacity: int) -> dict[tuple[int, bool], float]:
    """What is modelled of a wave."""
    kinds: Kinds = {}
    used = [Used(*np.array([(kinds.setdefault((one.buffer, one.nbytes), len(kinds)), one.written, one.offset)
                            for one in touches], np.int64).T) for touches in cores]
    return missed_by_walk([used], kinds, capacity)


def by_lines(touches: list[Touch], capacity: int) -> dict[tuple[int, bool], float]:
    """The same by an array of times: the lines that were not used for longest go."""
    used: dict[tuple[int, int], int] = {}
    dirty: set[tuple[int, int]] = set()
    missed: dict[tuple[int, bool], float] = {}
    moved: dict[tuple[int, bool], float] = {}
    for now, one in enumerate(touches):
        key = one.buffer, one.written
        moved[key] = moved.get(key, 0) + one.nbytes
        place = one.buffer, one.offset
        if place not in used and not one.written:
            missed[key] = missed.get(key, 0) + one.nbytes
        used[place] = now
        if one.written:
            dirty.add(place)
        while len(used) * one.nbytes > capacity:
            oldest = min(used, key=used.__getitem__)
            del used[oldest]
            if oldest in dirty:
                dirty.remove(oldest)
                missed[oldest[0], True] = missed.get((oldest[0], True), 0) + one.nbytes
    for buffer, _ in dirty:
        missed[buffer, True] = missed.get((buffer, True), 0) + touches[0].nbytes
    return {key: missed.get(key, 0) / total for key, total in moved.items()}


@pytest.mark.parametrize("seed", range(5))
def test_what_was_used_last_is_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    touches = [Touch(int(rng.integers(3)), bool(rng.integers(2)), int(rng.integers(40)) * 512, 512) for _ in range(600)]
    for capacity in (512 * 10, 512 * 50, 512 * 500):
        assert missed([touches], capacity) == pytest.approx(by_lines(touches, capacity))


def test_a_cycle_that_does_not_fit_hits_never() -> None:
    touches = [Touch(0, False, place * 512, 512) for place in range(100)] * 4
    assert missed([touches], 99 * 512) == {(0, False): 1.0}
    assert missed([touches], 100 * 512) == {(0, False): 0.25}


def test_cores_that_read_the_same_share_what_one_reads() -> None:
    touches = [Touch(0, False, place * 512, 512) for place in range(100)]
    assert missed([touches] * 4, 10 * 512) == {(0, False): 0.25}


def by_bytes(touches: list[Touch], capacity: int) -> dict[tuple[int, bool], float]:
    """The shares that miss by a cache of lines of 512 bytes, each used for itself."""
    split = [Touch(one.buffer, one.written, start, 512) for one in touches
             for start in range(one.offset, one.offset + one.nbytes, 512)]
    return by_lines(split, capacity)


@pytest.mark.parametrize(("wrote", "read"), [(4096, 2048), (2048, 4096), (4096, 1024), (1024, 4096), (2048, 2048)])
@pytest.mark.parametrize("capacity", [40_960, 16_384])
def test_what_is_passed_on_is_found_by_parts(wrote: int, read: int, capacity: int) -> None:
    """Tiles of 4096 bytes go through three slots of a ring, and further on through three of another; then the first is read."""
    touches = []
    for tile in range(24):
        place = tile // 12 * 12288 + tile % 3 * 4096
        touches += [Touch(0, True, place + part, wrote) for part in range(0, 4096, wrote)]
        touches += [Touch(0, False, place + part, read) for part in range(0, 4096, read)]
    touches += [Touch(0, False, part, read) for part in range(0, 12288, read)]
    assert missed([touches], capacity) == pytest.approx(by_bytes(touches, capacity))


def test_cores_of_unequal_length_end_together() -> None:
    assert side_by_side([4, 2]).tolist() == [0, 4, 1, 2, 5, 3]


def test_what_fits_is_read_once_and_not_written_back() -> None:
    moved = {(0, False): MovedBytes(nbytes=400), (1, True): MovedBytes(nbytes=100),
             (2, True): MovedBytes(nbytes=80), (2, False): MovedBytes(nbytes=80)}
    assert touched(moved, {0: 100, 1: 100, 2: 20}) == 220
    assert missed_once(moved, {0: 100, 1: 100, 2: 20}, frozenset({2})) == {
        (0, False): 0.25, (1, True): 0.0, (2, True): 0.0, (2, False): 0.0}
