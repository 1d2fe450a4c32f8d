"""Addresses in GM of blocks with equal ops, stored as sums of a common part and a part for each block."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tilelang_npu.simulator.machine.batched_integers import BatchedInt, BlockBatch
from tilelang_npu.simulator.run.recorded_launch import (
    BatchedOffsets,
    BlockRun,
    OffsetsOfBlock,
    columns,
    offsets_key,
    positions,
)

BLOCKS = np.array([3, 4, 7, 11], np.int64)


def of_blocks(*makers: object) -> tuple[BatchedOffsets, np.ndarray]:
    """Returns addresses as functions of the block's number, and the same computed for each block separately."""
    blocks = BlockBatch(BLOCKS)
    places = [maker(blocks.number) if callable(maker) else maker for maker in makers]
    rows = [[maker(int(number)) if callable(maker) else maker for maker in makers] for number in BLOCKS]
    assert all(isinstance(place, (int, BatchedInt)) for place in places)
    return BatchedOffsets(places, blocks), np.array(rows, np.int64)


@pytest.fixture
def shared() -> tuple[BatchedOffsets, np.ndarray]:
    return of_blocks(lambda b: b * 64 + 5, 40, lambda b: b * 64 + 900, lambda b: b * -8 + 1000, 0)


def test_each_block_has_its_own_places(shared: tuple[BatchedOffsets, np.ndarray]) -> None:
    places, expected = shared
    assert places.kinds == 3  # 64 b, -8 b, and the common part
    for block, row in enumerate(expected):
        mine = OffsetsOfBlock(places, block)
        assert len(mine) == len(row)
        assert list(mine) == [mine[place] for place in range(len(mine))] == row.tolist()
        assert mine[1:4] == row[1:4].tolist()
        assert np.array_equal(np.asarray(mine), row)
        again = pickle.loads(pickle.dumps(mine))  # without the common part of the blocks
        assert not isinstance(again, OffsetsOfBlock)
        assert list(again) == row.tolist()


def test_some_places_of_some_blocks(shared: tuple[BatchedOffsets, np.ndarray]) -> None:
    places, expected = shared
    picked, blocks = np.array([4, 0, 3], np.intp), np.array([2, 0], np.intp)
    assert np.array_equal(places.some(picked, blocks), expected[np.ix_(blocks, picked)])


def test_columns_are_one_of_those_that_are_equally_far_apart(shared: tuple[BatchedOffsets, np.ndarray]) -> None:
    places, expected = shared
    runs = [BlockRun(int(number), ((),), (OffsetsOfBlock(places, at),)) for at, number in enumerate(BLOCKS)]
    assert positions(runs, 0).tolist() == [0, 1, 2, 3]
    assert len({offsets_key(run) for run in runs}) == 1
    picked = np.arange(5)
    chosen, found = columns(runs, 0, picked)
    assert chosen.tolist() == [0, 1, 3]  # 2 is as far apart as 0, 4 as 1
    assert np.array_equal(found, expected[:, chosen])
    chosen, found = columns(runs, 0, picked, owners=np.array([0, 0, 1, 0, 0]))
    assert chosen.tolist() == [0, 1, 2, 3]
    assert np.array_equal(found, expected[:, chosen])


def test_columns_of_places_that_are_just_numbers_are_all_of_them() -> None:
    runs = [BlockRun(number, ((),), ([number * 3, 17, number],)) for number in range(4)]
    chosen, found = columns(runs, 0, np.array([2, 0]))
    assert chosen.tolist() == [0, 1]
    assert found.tolist() == [[number, number * 3] for number in range(4)]
    assert offsets_key(runs[0]) == ()
