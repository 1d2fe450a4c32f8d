"""Streams and offsets of which repeated parts are kept once are those with all their elements."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest

from tilelang_npu.simulator.machine.repeated_events import (
    OffsetRepeat,
    Repeat,
    RepeatedOffsets,
    RepeatedStream,
    counted,
    first_executed,
    first_offsets,
    kept_events,
    unrolled,
)

NESTED = RepeatedStream((0, 1, (2, 5), 3, 4, 6), (Repeat(1, 5, 2), Repeat(1, 2, 3), Repeat(3, 4, 2), Repeat(5, 6, 2)))
WRITTEN_OUT = (0, *(1, 1, 1, (2, 5), 3, 3, 4) * 2, 6, 6)


def test_a_stream_has_all_its_events() -> None:
    assert tuple(NESTED) == unrolled(NESTED) == WRITTEN_OUT
    assert len(NESTED) == len(WRITTEN_OUT)
    assert (NESTED[4], NESTED[-3:]) == ((2, 5), (4, 6, 6))
    assert counted(NESTED) == counted(WRITTEN_OUT) == Counter(WRITTEN_OUT)
    assert kept_events(NESTED) == (0, 1, (2, 5), 3, 4, 6)
    assert pickle.loads(pickle.dumps(NESTED)) == NESTED


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 11, 100])
def test_offsets_grow_with_each_execution(count: int) -> None:
    offsets = RepeatedOffsets([100, 0, 7, 50], [OffsetRepeat(1, 4, 3, np.array([10, 10, 1])),
                                                OffsetRepeat(2, 3, 2, np.array([1000]))])
    all_of_them = [100, *(0, 7, 1007, 50), *(10, 17, 1017, 51), *(20, 27, 1027, 52)]
    assert list(offsets) == np.asarray(offsets).tolist() == all_of_them
    assert (len(offsets), offsets[5]) == (13, 10)
    assert first_offsets(offsets, count).tolist() == first_offsets(all_of_them, count).tolist() == all_of_them[:count]


@pytest.mark.parametrize("count", [0, 1, 4, 7, 12, 17, 100])
def test_the_first_executed_events_are_those_of_the_stream(count: int) -> None:
    found = [NESTED.kept[place] for place in first_executed(NESTED, count)]
    assert len(found) >= min(count, len(NESTED))
    assert tuple(found) == WRITTEN_OUT[:len(found)]
    assert first_executed(WRITTEN_OUT, count).tolist() == list(range(len(WRITTEN_OUT)))
