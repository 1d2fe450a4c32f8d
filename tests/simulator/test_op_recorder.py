"""The records of ops: pipes, bytes and loops, compared with slices of an array of byte numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.machine.op_records import Footprint, OpRecord, replay

ROWS, COLUMNS, TILE, WIDTH = 24, 40, 8, 16


def kernel() -> Any:
    @T.prim_func
    def moved(A: T.Tensor((ROWS, COLUMNS), "float32"), B: T.Tensor((ROWS, COLUMNS), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_ub((TILE, WIDTH), "float32")
            T.copy(A[0, 8], a)
            for i in T.serial(2):
                T.vadd(a, 1.0, a)
                T.copy(a, B[(i + 1) * TILE, 16])

    return tilelang.compile(moved, target="npuir")


def touched(where: Footprint) -> set[int]:
    places = np.array([where.offset])
    for size, stride in zip((*where.sizes, where.element), (*where.strides, 1), strict=True):
        places = (places[:, None] + np.arange(size) * stride).ravel()
    return set(places.tolist())


def test_each_op_is_recorded_with_its_pipe_and_the_bytes_that_it_touches() -> None:
    made = kernel()
    a, b = np.ones((ROWS, COLUMNS), np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    made(a, b)
    recorded = made.last_launch.recorded
    (run,), (function,) = recorded.blocks, made.program.functions
    numbers = np.arange(ROWS * COLUMNS * 4).reshape(ROWS, COLUMNS, 4)
    work: list[tuple[OpRecord, list[tuple[str, bool, bool, set[int]]]]] = []
    for executed in replay(function.records, run.streams[0], run.gm[0]):
        if executed.record.accesses:
            work.append((executed.record, [(access.memory, access.reads, access.writes, touched(where))
                                           for access, where in executed.footprints()]))
    assert [(record.mnemonic, record.pipe, record.loops) for record, _ in work] == [
        ("load", "MTE2", 0), *[("vadd", "V", 1), ("store", "MTE3", 1)] * 2]
    on_chip = set(range(min(work[0][1][1][3]), min(work[0][1][1][3]) + TILE * WIDTH * 4))
    for place, (_, accesses) in enumerate(work):
        for memory, reads, writes, found in accesses:
            if memory == "gm":
                first, row, column = (True, 0, 8) if place == 0 else (False, TILE * (1 if place == 2 else 2), 16)
                assert (reads, writes) == (first, not first)
                assert found == set(numbers[row:row + TILE, column:column + WIDTH].ravel().tolist())
            else:
                assert found == on_chip
    kinds = Counter((reads, writes) for memory, reads, writes, _ in work[1][1] if memory == "ub")
    assert kinds[True, False] == 1  # its source
    assert kinds[False, True] == 1  # and its destination


def test_records_have_the_line_of_their_statement() -> None:
    made = kernel()
    (function,) = made.program.functions
    report = {record.mnemonic: record.location.source().strip() for record in function.records
            if record.location is not None and record.accesses}
    assert report == {"load": "T.copy(A[0, 8], a)", "vadd": "T.vadd(a, 1.0, a)", "store": "T.copy(a, B[(i + 1) * TILE, 16])"}
