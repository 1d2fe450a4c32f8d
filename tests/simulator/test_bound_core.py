"""Cores bound to a launch's arguments: the contents of their memories, their records, and the location of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.simulator.machine.memory import POISON
from tilelang_npu.simulator.machine.op_records import Stream
from tilelang_npu.simulator.run.bound_core import LaunchResources, block_run_of, copy_span, cores_of_block, run_cores
from tilelang_npu.simulator.run.recorded_launch import BlockRun

BLOCKS = 3


@pytest.fixture(scope="module")
def made() -> Any:
    @T.prim_func
    def shifted(A: T.Tensor((24, 16), "float32"), at: T.int32, B: T.Tensor((24, 16), "float32")):
        with T.Kernel(BLOCKS, is_npu=True) as (block, _):
            a = T.alloc_ub((8, 16), "float32")
            T.copy(A[block * 8, 0], a)
            T.vadd(a, 1.0, a)
            a[at + block, 0] = 7.0
            T.copy(a, B[block * 8, 0])

    return tilelang.compile(shifted, target="npuir")


def cores(kernel: Any, a: Any, at: int, b: Any, poison: int | None = POISON) -> Any:
    program = kernel.program
    bound = program._bind([a, at, b], BLOCKS, program.used)
    return cores_of_block(program, bound, BLOCKS, LaunchResources(program.functions, poison=poison))


def test_a_core_runs_one_block_after_the_other_and_records_what_the_launch_does(made: Any) -> None:
    a, b = np.arange(384, dtype=np.float32).reshape(24, 16), np.zeros((24, 16), np.float32)
    (core,) = cores(made, a, 2, b)
    runs: list[BlockRun] = []
    interned: dict[Stream, Stream] = {}
    for block in (2, 0, 0):
        core.run_block(block)
        runs.append(block_run_of(block, [core], interned))
    expected = a + 1
    expected[[2, 16 + 2 + 2], 0] = 7
    expected[8:16] = 0  # block 1 was not run
    assert np.array_equal(b, expected)
    whole = made.program.run([a, 2, np.zeros_like(b)], blocks=BLOCKS)
    for run in runs:
        same = whole.blocks[run.block]
        assert run.streams == same.streams
        assert [list(places) for places in run.gm] == [list(places) for places in same.gm]
    assert runs[1].streams[0] is runs[2].streams[0]  # equal streams are one object


@pytest.mark.parametrize("poison", [POISON, 0x11])
def test_memory_is_poisoned_before_each_block(made: Any, poison: int) -> None:
    a, b = np.ones((24, 16), np.float32), np.zeros((24, 16), np.float32)
    (core,) = cores(made, a, 0, b, poison)
    core.run_block(0)
    used = core.memory.arrays["ub"][:core.function.extents["ub"]]
    assert len(used) >= 8 * 16 * 4
    assert (used != poison).any()
    core.start()
    assert (used == poison).all()


def test_an_error_names_the_block_and_the_line(made: Any) -> None:
    a, b = np.ones((24, 16), np.float32), np.zeros((24, 16), np.float32)
    (core,) = cores(made, a, 7, b)
    with pytest.raises(TileError, match="in block 1") as caught:
        core.run_block(1)
    assert caught.value.code == "T502"
    assert caught.value.location is not None
    assert caught.value.location.source().strip() == "a[at + block, 0] = 7.0"


def test_cores_exchange_data_while_both_are_running(rng: np.random.Generator) -> None:
    @T.prim_func
    def halved(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.gemm(a, a, c, initC=True)
            for i, j in T.Parallel(32, 32):
                c[i, j] = c[i, j] * 0.5
            T.copy(c, C)

    kernel = tilelang.compile(halved, target="npuir")
    program = kernel.program
    assert program.mixed
    a, c = rng.standard_normal((32, 32)).astype(np.float16), np.zeros((32, 32), np.float32)
    arguments = kernel.machine_arguments(kernel.signature.bind([a, c]))
    bound = program._bind(arguments, 1, program.used)
    run_cores(cores_of_block(program, bound, 1, LaunchResources(program.functions)), [0], program)
    np.testing.assert_allclose(c, 0.5 * (a.astype(np.float32) @ a.astype(np.float32)), rtol=1e-3, atol=1e-3)


def test_a_part_of_an_array_is_copied_and_the_rest_is_none_of_it() -> None:
    array = np.arange(1, 9)
    assert copy_span(array, None, 0).tolist() == array.tolist()
    part = copy_span(array, {3: (2, 5)}, 3)
    assert part.tolist() == [0, 0, 3, 4, 5, 0, 0, 0]
    assert not copy_span(array, {3: (2, 5)}, 4).any()
    part[:] = -1
    assert array[2] == 3
