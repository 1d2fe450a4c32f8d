"""Unaligned on-chip accesses: constant addresses, computed ones, rows; aligned accesses and single elements are valid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import language as T
from tilelang_npu import simulator
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.result.static_check import check

SWITCHES = {"tl.ascend_auto_sync": True}


def found(kernel: Any, *arguments: Any) -> list[tuple[str, str, int]]:
    """Returns the findings of a run, and checks that the static check has the same."""
    kernel(*arguments)
    hazards = kernel.last_launch.hazards
    static = check(kernel.program, arguments, kernel.last_launch.blocks)
    assert {hazard.key for hazard in static.hazards} == {hazard.key for hazard in hazards} and not static.errors
    return [(hazard.code, hazard.first.op, hazard.start) for hazard in hazards]


@pytest.mark.parametrize(("dtype", "first", "expected"), [
    ("float32", 0, []), ("float32", 8, []), ("float32", 1, [4]), ("float16", 16, []), ("float16", 8, [16]), ("int8", 32, []),
    ("int8", 31, [31])])
def test_a_constant_place(dtype: str, first: int, expected: list[int]) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((128,), dtype)
            T.copy(A, x[first:first + 64])
            T.copy(x[first:first + 64], B)

    a, b = np.ones(64, dtype), np.zeros(64, dtype)
    kernel = tilelang.compile(main, target="ascendc", pass_configs=SWITCHES)
    assert found(kernel, a, b) == [("S223", op, start) for op in ("load", "store") for start in expected]
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("step", "count"), [(8, 0), (4, 1)])
def test_a_computed_place(step: int, count: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            for i in T.serial(64 // step):
                T.tile.add(x[i * step:i * step + step], x[i * step:i * step + step], 1.0)
            T.copy(x, B)

    kernel = tilelang.compile(main, target="ascendc", pass_configs=SWITCHES)
    reports = found(kernel, np.zeros(64, np.float32), np.zeros(64, np.float32))
    assert reports == [("S223", "vadd", 16)] * count


ROWS = """module attributes {hacc.target = #hacc.target<"Ascend910B2">} {
  func.func @k(%A: memref<4xROWxf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.block_dim = 1 : i64,
      hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
    %zero = arith.constant 0 : i64
    %x = hivm.hir.pointer_cast(%zero) : memref<4xPITCHxf32, #hivm.address_space<ub>>
    %rows = memref.subview %x[0, 0] [4, ROW] [1, 1] : memref<4xPITCHxf32, #hivm.address_space<ub>>
        to memref<4xROWxf32, strided<[PITCH, 1]>, #hivm.address_space<ub>>
    hivm.hir.load ins(%A : memref<4xROWxf32, #hivm.address_space<gm>>)
        outs(%rows : memref<4xROWxf32, strided<[PITCH, 1]>, #hivm.address_space<ub>>)
    return
  }
}
"""


@pytest.mark.parametrize(("row", "pitch", "expected"), [(10, 16, []), (10, 12, [48]), (8, 8, []), (10, 10, [])])
def test_rows(row: int, pitch: int, expected: list[int]) -> None:
    program = simulator.Program(parse_module(ROWS.replace("ROW", str(row)).replace("PITCH", str(pitch))))
    launch = simulator.Launch(program.run([np.ones((4, row), np.float32)], blocks=1))
    assert [(hazard.code, hazard.start) for hazard in launch.hazards] == [("S223", start) for start in expected]
    assert all(str(hazard).splitlines()[0].endswith("rows begin a multiple of 8 elements apart") for hazard in launch.hazards)


def test_single_elements_lie_anywhere() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            x[3] = x[5] + 1.0
            T.copy(x, B)

    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert found(tilelang.compile(main, target="ascendc", pass_configs=SWITCHES), a, b) == []
    assert b[3] == 6


@pytest.mark.parametrize(("queue", "target", "expected"), [
    (0, 0, []), (2, 8, []), (6, 0, []), (1, 0, [("custom", 4)]), (0, 2, [("custom", 520), ("store", 520)])])
def test_queues_of_records_begin_at_records(queue: int, target: int, expected: list[tuple[str, int]],
                                            rng: np.random.Generator) -> None:
    """The queues of a merge begin at multiples of 8 bytes, its destination at a multiple of 32; only run time knows where."""
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), places: T.Tensor((2,), "int32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((128,), "float32")
            d = T.alloc_ub((64,), "float32")
            first = places[0]
            out = places[1]
            T.copy(A, a)
            T.vmrgsort(a[first:first + 16], a[64:80], a, a, d[out:out + 32], (8, 8, 0, 0), 3)
            T.copy(d[out:out + 32], B)

    scores = np.sort(rng.permutation(16).reshape(2, 8), 1)[:, ::-1]
    a, b = np.zeros(128, np.float32), np.zeros(32, np.float32)
    a[queue:queue + 16:2], a[64:80:2] = scores
    kernel = tilelang.compile(main, target="npuir")
    kernel(a, np.array([queue, target], np.int32), b)
    assert [(hazard.first.op, hazard.start) for hazard in kernel.last_launch.hazards] == expected
    np.testing.assert_array_equal(b[::2], np.arange(15, -1, -1))
