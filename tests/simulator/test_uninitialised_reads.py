"""On-chip reads of bytes that the block has not written; the expected bytes are counted by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.machine.op_records import Footprint
from tilelang_npu.simulator.run import uninitialised_reads
from tilelang_npu.simulator.run.uninitialised_reads import find_uninitialised_reads
from tilelang_npu.simulator.sanitizer import reused_bytes


def kernel(rows: int, columns: int) -> Any:
    """Loads a part of a tile of 8x32 floats, and stores all of it, twice."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((8, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            x = T.alloc_ub((8, 32), "float32")
            T.copy(A, x[0:rows, 0:columns])
            for _ in T.serial(2):
                T.copy(x, B)

    return tilelang.compile(main, target="npuir")


@pytest.mark.parametrize(("rows", "columns", "first", "count"), [
    (8, 32, 0, 0), (5, 32, 5 * 128, 3 * 128), (8, 16, 64, 8 * 64), (1, 8, 32, 8 * 128 - 32)])
def test_the_first_read_of_uninitialised_bytes_is_reported_with_their_number(
        rows: int, columns: int, first: int, count: int) -> None:
    made = kernel(rows, columns)
    made.program.run([np.ones((rows, columns), np.float32), np.zeros((8, 32), np.float32)], blocks=1)
    recorded = made.program.run([np.ones((rows, columns), np.float32), np.zeros((8, 32), np.float32)], blocks=1)
    found = list(find_uninitialised_reads(made.program, recorded.blocks[0].streams, 0))
    if not count:
        assert found == []
        return
    (read,) = found  # the second store reads the same bytes
    (address,) = {access.offset for record in made.program.functions[0].records for access in record.accesses
                  if access.memory == "ub" and access.reads}
    assert (read.record.mnemonic, read.access.memory) == ("store", "ub")
    assert (read.start - address, read.end - read.start) == (first, count)


def test_what_another_core_of_the_block_writes_is_written() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.gemm(a, a, c, initC=True)
            for i, j in T.Parallel(32, 32):
                c[i, j] = c[i, j] * 2.0
            T.copy(c, C)

    made = tilelang.compile(main, target="npuir")
    a = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float16)
    c = np.zeros((32, 32), np.float32)
    made(a, c)
    np.testing.assert_allclose(c, 2 * (a.astype(np.float32) @ a.astype(np.float32)), rtol=1e-3, atol=1e-3)
    (run,) = made.last_launch.recorded.blocks
    for lane in range(len(made.program.lanes)):
        assert list(find_uninitialised_reads(made.program, run.streams, lane)) == []


def test_what_was_written_of_a_memory_is_laid_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def zeros(size: int, dtype: Any) -> Any:
        made.append(size)
        return np.zeros(size, dtype)

    chip: Any = SimpleNamespace(memory={"ub": SimpleNamespace(size=256)})
    owners = reused_bytes._Owners({"ub": 256})
    written = uninitialised_reads._WrittenBytes(chip)
    for module in (uninitialised_reads, reused_bytes):
        monkeypatch.setattr(module, "np", SimpleNamespace(zeros=zeros, ndarray=np.ndarray, int32=np.int32, bool_=np.bool_))
    row = Footprint(32, (4,), (4,), 4)
    written.of("ub", row)[...] = True
    assert written.of("ub", row).all()
    owners.of("ub", row)[...] = 3
    assert (owners.of("ub", row) == 3).all()
    assert made == [256, 256]
