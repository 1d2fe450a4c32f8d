"""Loops of known lengths run to their ends, however long; limits are for loops that data end, and the memory of the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.simulator.run import loop_limits

N = 20


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that small kernels pass."""
    monkeypatch.setattr(loop_limits, "MOST_OPS", 1000)
    monkeypatch.setattr(loop_limits, "LONG", 64)


def convolution() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N + 2, N + 2), "float32"), K: T.Tensor((3, 3), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            for i in T.serial(N):
                for j in T.serial(N):
                    B[i, j] = 0.0
                    for u in T.serial(3):
                        for v in T.serial(3):
                            B[i, j] += A[i + u, j + v] * K[u, v]

    return main


def by_data() -> Any:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            for i in T.serial(A[0]):
                B[i % 8] = i

    return main


def while_() -> Any:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            i = T.alloc_var("int32", init=0)
            while i < 3000:
                B[i % 8] = i
                i = i + 1

    return main


def compiled(function: Any) -> Any:
    return tilelang.compile(function, target="ascendc")


def convolved(rng: np.random.Generator) -> tuple[Any, list[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    a, k = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((N + 2, N + 2), (3, 3)))
    want = sum(a[u:u + N, v:v + N] * k[u, v] for u in range(3) for v in range(3))
    return compiled(convolution()), [a, k, np.full((N, N), np.nan, np.float32)], np.asarray(want)


def test_a_scalar_convolution_in_nested_loops_is_no_endless_one(rng: np.random.Generator) -> None:
    kernel, arrays, want = convolved(rng)
    kernel(*arrays)
    np.testing.assert_array_equal(arrays[2], want)
    recorded = kernel.last_launch.recorded
    assert max(len(stream) for stream in recorded.blocks[0].streams) > 9 * loop_limits.MOST_OPS
    done = check(kernel.program, arrays, 1)
    assert (done.errors, done.hazards) == ([], [])


def test_a_number_of_ops_that_is_stated_holds_for_every_loop(rng: np.random.Generator) -> None:
    kernel, arrays, _ = convolved(rng)
    for work in (kernel.program.run, lambda *args, **options: raised(check(kernel.program, *args, **options).errors)):
        with pytest.raises(TileError, match=r"S306.*AIV0 has issued [\d ]+ ops") as error:
            work(arrays, blocks=1, most_ops=2000)
        assert error.value.notes == ("a core may issue at most 2 000 ops in a block: each op is recorded in memory",)
    kernel.program.run(arrays, blocks=1, most_ops=100_000)


def raised(errors: list[TileError]) -> None:
    (error,) = errors
    raise error


def test_the_memory_of_the_machine_ends_it(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loop_limits.recordable_ops() >= 8_000_000
    monkeypatch.setattr(loop_limits, "recordable_ops", lambda: 5000)
    kernel, arrays, _ = convolved(rng)
    with pytest.raises(TileError, match="S306") as error:
        kernel(*arrays)
    assert error.value.notes == (
        "a core may issue at most 5 000 ops in a block: this machine has no memory for the records of more",)
    assert "TILELANG_NPU_MAX_OPS=N raises the limit" in error.value.help


def nested() -> Any:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            for i in T.serial(16):
                for j in T.serial(15):
                    for k in T.serial(14):
                        B[k % 8] = i + j

    return main


def test_short_loops_in_short_loops_are_counted() -> None:
    arrays = [np.zeros(8, np.int32), np.zeros(8, np.int32)]
    kernel = compiled(nested())
    with pytest.raises(TileError, match=r"S306.*AIV0 has issued [\d ]+ ops"):
        kernel.program.run(arrays, blocks=1, most_ops=2000)
    kernel(*arrays)
    assert (arrays[1] == 15 + 14).all()


@pytest.mark.parametrize(("outer", "inner", "checked"), [(1, 16, False), (1, 17, True), (4, 4, False), (4, 5, True)])
def test_loop_nests_of_up_to_16_iterations_run_without_checks(outer: int, inner: int, checked: bool) -> None:
    """The nest runs twice: a check before its second run would find too many ops."""
    @T.prim_func
    def main(B: T.Tensor((32,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            for _ in T.serial(2):
                for i in T.serial(outer):
                    for j in T.serial(inner):
                        B[i * inner + j] = i + j + 1

    kernel, result = compiled(main), np.zeros(32, np.int32)
    if checked:
        with pytest.raises(TileError, match="S306"):
            kernel.program.run([result], blocks=1, most_ops=2)
    else:
        kernel.program.run([result], blocks=1, most_ops=2)
        assert np.count_nonzero(result) == 16


def test_a_while_loop_is_not_charged_with_the_iterations_of_another_block() -> None:
    """Block 0 runs a loop of a known length, which may be longer than a loop that a condition ends, as in block 1."""
    @T.prim_func
    def main(B: T.Tensor((8,), "int32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            if cid == 0:
                for i in T.serial(6000):
                    if i == 5999:
                        B[0] = i
            else:
                i = T.alloc_var("int32", init=0)
                while i < 600:
                    B[1] = i
                    i = i + 1

    kernel, result = compiled(main), np.zeros(8, np.int32)
    kernel(result)
    assert result.tolist() == [5999, 599, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("make", [by_data, while_])
def test_loops_that_data_or_conditions_end_have_the_limit(make: Any) -> None:
    kernel = compiled(make())
    arrays = [np.full(8, 3000, np.int32), np.zeros(8, np.int32)]
    with pytest.raises(TileError, match=r"S306.*AIV0 has issued [\d ]+ ops"):
        kernel(*arrays)
    arrays[0][:] = 300
    if make is by_data:
        kernel(*arrays)
        assert sorted(arrays[1]) == list(range(292, 300))
