"""The model of L2's contents, compared with a cache that tracks every line."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tilelang_npu.simulator.machine.op_records import Access
from tilelang_npu.simulator.result.gm_transfers import by_wave, most_added
from tilelang_npu.simulator.time import l2
from tilelang_npu.simulator.time.cost import Cost, GmBytes
from tilelang_npu.simulator.time.gm_traffic import MovedBytes
from tilelang_npu.simulator.time.l2 import (
    Kinds,
    Used,
    missed_by_walk,
    missed_once,
    most_of_each,
    places_at_once,
    side_by_side,
    touched,
)


class Touch(NamedTuple):
    """One transfer."""

    buffer: int
    written: bool
    offset: int
    nbytes: int


def missed(cores: list[list[Touch]], capacity: int, most_dirty: float = inf) -> dict[tuple[int, bool], float]:
    """Returns the modelled misses of a wave."""
    kinds: Kinds = {}
    used = [transfers([(kinds.setdefault((one.buffer, one.nbytes), len(kinds)), one.written, one.offset) for one in touches])
            for touches in cores]
    return missed_by_walk([used], kinds, capacity, most_dirty)


def transfers(rows: Sequence[tuple[int, bool, int]]) -> Used:
    """Transfers of a core, from the kind, whether it is written, and the offset of each."""
    kind, written, offset = np.array(rows, np.int64).reshape(-1, 3).T
    return Used(kind.astype(np.int32), written.astype(bool), offset)


def by_lines(touches: list[Touch], capacity: int, most_dirty: float = inf) -> dict[tuple[int, bool], float]:
    """The reference, with an array of times: the least recently used lines are evicted. Of the dirty lines, the least recently
    written are written to HBM, and stay; dirty lines at the end are not written."""
    used: dict[tuple[int, int], int] = {}
    dirty: dict[tuple[int, int], int] = {}
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
            dirty[place] = now
        gone = []
        if len(dirty) * one.nbytes > most_dirty:
            gone.append(min(dirty, key=dirty.__getitem__))
        if len(used) * one.nbytes > capacity:
            gone.append(min(used, key=used.__getitem__))
            del used[gone[-1]]
        for oldest in gone:
            if dirty.pop(oldest, None) is not None:
                missed[oldest[0], True] = missed.get((oldest[0], True), 0) + one.nbytes
    return {key: missed.get(key, 0) / total for key, total in moved.items()}


@pytest.mark.parametrize("seed", range(5))
def test_what_was_used_last_is_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    touches = [Touch(int(rng.integers(3)), bool(rng.integers(2)), int(rng.integers(40)) * 512, 512) for _ in range(600)]
    for capacity in (512 * 10, 512 * 50, 512 * 500):
        for most_dirty in (512 * 4, 512 * 30, inf):
            assert missed([touches], capacity, most_dirty) == pytest.approx(by_lines(touches, capacity, most_dirty))


def test_what_is_written_again_before_it_has_to_go_is_not_written_to_hbm() -> None:
    again = [Touch(0, True, place * 512, 512) for place in range(4)] * 5
    assert missed([again], 512 * 100, 4 * 512) == {(0, True): 0.0}  # four lines stay in the end
    assert missed([again], 512 * 100, 3 * 512) == {(0, True): (20 - 3) / 20}
    read = [Touch(0, False, place * 512, 512) for place in range(4)]
    assert missed([again + read], 512 * 100, 3 * 512)[0, False] == 0.0  # data that was written to HBM stays in L2 too


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


@pytest.mark.parametrize("seed", range(6))
def test_larger_entries_are_found_as_by_a_search(seed: int) -> None:
    """At each read, an entry is found if and only if a search of all offsets finds it; entries become clean and are evicted."""
    rng = np.random.default_rng(seed)
    kinds = [(0, 4096), (0, 1536), (0, 512), (0, 128)]
    held = l2._Held(30_000, 16_000)
    search = held.parts

    def parts(one: int, kinds: Any) -> list[int]:
        found = search(one, kinds)
        offset, kind = divmod(one, l2.MOST_KINDS)
        nbytes = kinds[kind][1]
        expected: list[int] = []
        for other, size in held.wrote[0].items():
            starts = range(offset, offset - size, -nbytes) if size > nbytes else ()
            expected = expected or [start * l2.MOST_KINDS + other for start in starts
                                    if start * l2.MOST_KINDS + other in held.dirty][:1]
            inside = [start * l2.MOST_KINDS + other for start in range(offset, offset + nbytes, size)]
            if not expected and size < nbytes and nbytes % size == 0 and all(each in held.dirty for each in inside):
                expected = inside
        assert found == expected
        seen.add(len(found))
        return found

    held.parts, seen = parts, set[int]()  # type: ignore[method-assign]
    for _ in range(4000):
        kind, offset = int(rng.integers(4)), int(rng.integers(24)) * 256
        held.touch([offset * l2.MOST_KINDS + kind], [bool(rng.integers(2))], kinds)
    assert {0, 1} <= seen


def test_cores_of_unequal_length_end_together() -> None:
    assert side_by_side([4, 2]).tolist() == [0, 4, 1, 2, 5, 3]


@pytest.mark.parametrize("warm", [False, True])
def test_what_fits_is_read_once_and_not_written_back(warm: bool) -> None:
    """It is not read at all if the previous launch left it in L2."""
    moved = {(0, False): MovedBytes(nbytes=400), (1, True): MovedBytes(nbytes=100),
             (2, True): MovedBytes(nbytes=80), (2, False): MovedBytes(nbytes=80)}
    sizes = {0: 100, 1: 100, 2: 20}
    assert touched(moved, sizes) == 220
    read = 0.0 if warm else 100 / 400
    assert missed_once(moved, sizes, frozenset({2}), 120, warm=warm) == {
        (0, False): read, (1, True): 0.0, (2, True): 0.0, (2, False): 0.0}
    part = (120 - 90) / 120  # 120 bytes are written, of which 90 may stay; the 20 of the second tensor four times
    assert missed_once(moved, sizes, frozenset({2}), 90, warm=warm) == pytest.approx({
        (0, False): read, (1, True): part, (2, True): part / 4, (2, False): 0.0})


def test_equal_streams_of_different_cores_are_of_their_own_ops() -> None:
    """A Cube core and a Vector core whose ops have the same numbers: the one loads 64 bytes, the other adds 32 to a tensor."""
    def op(access: Access, part: GmBytes | None) -> Any:
        gm = () if part is None else (part,)
        return SimpleNamespace(record=SimpleNamespace(accesses=(access,), gm_operands=int(access.memory == "gm")),
                               steps=[SimpleNamespace(cost=Cost(1, 1, gm=gm))])

    load = op(Access("gm", 3, True, False, 4, None, (16,), (4,), "MTE2", "src"), GmBytes(3, False, 64, 64, 64, 1))
    add = op(Access("gm", 5, True, True, 4, None, (8,), (4,), "MTE3", "dst"), GmBytes(5, True, 32, 32, 64, 2))
    inside = op(Access("ub", 0, True, False, 4, 0, (8,), (4,), "V", "src"), None)
    functions = [[load, inside], [inside, add]]
    stream = (0, 1)
    recorded: Any = SimpleNamespace(
        program=SimpleNamespace(lanes=((0, 0), (1, 0)), functions=[
            SimpleNamespace(records=[one.record for one in ops]) for ops in functions]),
        blocks=[SimpleNamespace(streams=(stream, stream), gm=([640], [96]))])
    expansions: Any = [SimpleNamespace(of=lambda event, ops=ops: ops[event].steps, records=[one.record for one in ops])
                       for ops in functions]
    kinds: Kinds = {}
    ((loads, adds),) = by_wave(recorded, expansions, 24, kinds)
    assert kinds == {(3, 64): 0, (5, 32): 1}
    assert [column.tolist() for column in loads[:3]] == [[0], [0], [640]]
    assert [column.tolist() for column in adds[:3]] == [[1], [1], [96]]
    assert (loads.length, adds.length) == (1, 1)
    assert most_added(recorded, 32) == {5: 1}


def test_places_that_cores_read_at_the_same_time() -> None:
    """Four cores read a tensor: all the same bytes, then pairs the same bytes, then each its own; of another tensor each its
    own."""
    reads = [[0, 0, 0], [0, 0, 512], [0, 512, 1024], [0, 512, 1536]]
    kinds: Kinds = {(0, 512): 0, (1, 512): 1}
    cores = [transfers([*((0, False, place) for place in places), (1, False, 512 * core)]) for core, places in enumerate(reads)]
    assert places_at_once(cores, kinds) == pytest.approx({0: (1 + 2 + 4) / 3})
    assert places_at_once(cores[:1], kinds) == {}
    kind, written, offset = (column[:2] for column in cores[1][:3])
    assert places_at_once([cores[0], Used(kind, written, offset)], kinds) == {}  # of unequal length


def test_a_long_wave_is_simulated_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores with 3000 and 1000 transfers: the first 400 of all are 300 and 100 of them, whether the arrays have more or not."""
    monkeypatch.setattr(l2, "WALKED", 400)
    kinds: Kinds = {(0, 512): 0, (1, 512): 1}

    def core(kind: int, total: int, length: int) -> Used:
        numbers = np.arange(length, dtype=np.int64)
        return Used(np.full(length, kind, np.int32), np.zeros(length, bool), numbers * 512 % 8192, total)

    whole, part = ([core(0, 3000, lengths[0]), core(1, 1000, lengths[1])]
                   for lengths in ((3000, 1000), most_of_each((3000, 1000), 400)))
    found = missed_by_walk([whole], kinds, 1 << 30, 1 << 30)
    assert missed_by_walk([part], kinds, 1 << 30, 1 << 30) == found
    assert found == {(0, False): pytest.approx(16 / 300), (1, False): pytest.approx(16 / 100)}
