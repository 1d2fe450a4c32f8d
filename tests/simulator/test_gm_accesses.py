"""The blocks that access the same bytes of GM, compared with sets of bytes; with constant and with affine addresses."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_npu.simulator.machine.aliasing_arguments import MemoryRange
from tilelang_npu.simulator.machine.batched_integers import BatchedInt, BlockBatch
from tilelang_npu.simulator.machine.op_records import Access, OpRecord, Scalars
from tilelang_npu.simulator.run import gm_accesses
from tilelang_npu.simulator.run.gm_accesses import GmAccesses
from tilelang_npu.simulator.run.recorded_launch import BatchedOffsets, BlockRun, OffsetsOfBlock

SIZE, BLOCKS = 4096, 3


def record(number: int, rng: np.random.Generator, *, writes: bool) -> OpRecord:
    """An op with an access to one of two arguments in one memory."""
    element = int(rng.choice([2, 4]))
    width = int(rng.integers(1, 5))
    access = Access("gm", int(rng.integers(2)), reads=not writes, writes=writes, element=element, offset=None,
                    sizes=(int(rng.integers(1, 4)), width),
                    strides=(element * int(rng.integers(width, width + 6)), element), pipe="MTE2", name="dst")
    return OpRecord(number, "op", "MTE2", "AIV", None, (access,), Scalars(), 0)


def touched(use: OpRecord, start: int, delta: dict[int, int]) -> set[int]:
    (access,) = use.accesses
    (rows, columns), (down, right) = access.sizes, access.strides
    assert all(isinstance(one, int) for one in (rows, columns, down, right))
    return {delta[access.buffer] + start + i * down + j * right + byte  # type: ignore[operator]
            for i in range(rows) for j in range(columns) for byte in range(access.element)}  # type: ignore[arg-type]


@pytest.mark.parametrize("as_sums", [False, True])
def test_random_accesses_against_sets_of_bytes(as_sums: bool, rng: np.random.Generator,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gm_accesses, "AT_ONCE", 8)
    found: list[bool] = []
    for _ in range(150):
        memory = MemoryRange(0, SIZE, {0: 0, 1: int(rng.integers(0, 20)) * 4})
        records = [record(number, rng, writes=number == 0 or bool(rng.integers(2)))
                   for number in range(int(rng.integers(1, 4)))]
        starts = [int(rng.integers(0, 200)) * 4 for _ in records]
        moved = [int(rng.integers(0, 12)) * 4 for _ in records]
        stream = tuple(range(len(records)))
        rows = [[start + block * step for start, step in zip(starts, moved, strict=True)] for block in range(BLOCKS)]
        if as_sums:
            many = BlockBatch(np.arange(BLOCKS, dtype=np.int64))
            number = many.number
            assert isinstance(number, BatchedInt)
            shared = BatchedOffsets([number * step + start if step else start for start, step in zip(starts, moved,
                                                                                                     strict=True)],
                                    many)
            places: list[object] = [OffsetsOfBlock(shared, block) for block in range(BLOCKS)]
        else:
            places = list(rows)
        runs = [BlockRun(block, (stream,), (places[block],)) for block in range(BLOCKS)]  # type: ignore[arg-type]
        written, all_bytes = ([set[int]().union(*(
            touched(use, start, memory.delta) for use, start in zip(records, row, strict=True)
            if not only or use.accesses[0].writes)) for row in rows] for only in (True, False))
        apart = all(not written[a] & all_bytes[b] for a in range(BLOCKS) for b in range(BLOCKS) if a != b)
        uses = GmAccesses([records], runs, memory)
        assert uses.are_independent() == apart
        assert uses.written
        for run, whole in zip(runs, all_bytes, strict=True):
            marks = uses.marks()
            for use in uses.of(run):
                uses.view(marks, use)[...] = run.block
            grains = np.flatnonzero(marks != gm_accesses.NO_BLOCK)
            assert {int(grain) * uses.grain + byte for grain in grains for byte in range(uses.grain)} == whole
        if not apart:
            assert uses.may_overlap()
        found.append(apart)
    assert {True, False} <= set(found)


def test_blocks_that_only_read_are_apart(rng: np.random.Generator) -> None:
    memory = MemoryRange(0, SIZE, {0: 0, 1: 64})
    records = [record(0, rng, writes=False)]
    uses = GmAccesses([records], [BlockRun(block, ((0,),), ([0],)) for block in range(BLOCKS)], memory)
    assert not uses.written
    assert uses.may_overlap()
    assert uses.are_independent()
