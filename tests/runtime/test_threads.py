"""Kernels, factories and the machine with several threads: calls have separate state, and shared state is created once."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import doubled, split_product
from tilelang_npu.language.declared_buffers import Op
from tilelang_npu.runtime.cache import entries
from tilelang_npu.runtime.jit import recording
from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.runtime.reports.profiler import do_bench
from tilelang_npu.runtime.settings.file_writing import replacing
from tilelang_npu.runtime.settings.log import logger, verbose_log
from tilelang_npu.sharing import Kept, once

CASES = int(os.environ.get("TILELANG_RANDOM_THREADS", "12"))
"""Random kernels that threads call at the same time."""
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _quick_switches() -> Iterator[None]:
    """Threads are switched a thousand times as often as by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Runs ``count`` threads that begin at the same time, and returns their results."""
    start = threading.Barrier(count)

    def one(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def normal(*shape: int, dtype: str = "float16") -> np.ndarray:
    return RNG.standard_normal(shape, np.float32).astype(dtype)


@tilelang.jit(target="npuir")
def mixture(M: int, N: int, K: int, kind: str, op: str, stages: int) -> Any:
    """A small kernel of one of several kinds; its last argument is written."""
    function = {"exp": T.exp, "abs": T.abs, "sqrt": T.sqrt}[op]
    fold = {"exp": T.reduce_sum, "abs": T.reduce_max, "sqrt": T.reduce_min}[op]

    @T.prim_func
    def vector(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), O: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 8), threads=128) as row:
            a = T.alloc_fragment((8, N), "float32")
            b = T.alloc_fragment((8, N), "float32")
            T.copy(A[row * 8, 0], a)
            T.copy(B[row * 8, 0], b)
            for i, j in T.Parallel(8, N):
                a[i, j] = function(T.abs(a[i, j])) * b[i, j] + b[i, j]
            T.copy(a, O[row * 8, 0])

    @T.prim_func
    def reduction(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), O: T.Tensor((M, 1), "float32")):
        with T.Kernel(T.ceildiv(M, 8), threads=128) as row:
            a = T.alloc_fragment((8, N), "float32")
            b = T.alloc_fragment((8, N), "float32")
            r = T.alloc_fragment((8, 1), "float32")
            T.copy(A[row * 8, 0], a)
            T.copy(B[row * 8, 0], b)
            for i, j in T.Parallel(8, N):
                a[i, j] = a[i, j] * b[i, j]
            fold(a, r, dim=1)
            T.copy(r, O[row * 8, 0])

    @T.prim_func
    def atomic(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), O: T.Tensor((8, N), "float32")):
        with T.Kernel(T.ceildiv(M, 8), threads=128) as row:
            a = T.alloc_fragment((8, N), "float32")
            T.copy(A[row * 8, 0], a)
            T.atomic_add(O[0, 0], a)
            T.copy(B[row * 8, 0], a)
            T.atomic_add(O[0, 0], a)

    @T.prim_func
    def mixed(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), O: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            a = T.alloc_shared((32, 16), "float16")
            b = T.alloc_shared((16, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 16), num_stages=stages):
                T.copy(A[by * 32, k * 16], a)
                T.copy(B[k * 16, bx * 32], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(32, 32):
                c[i, j] = function(T.abs(c[i, j]))
            T.copy(c, O[by * 32, bx * 32])

    @T.prim_func
    def gemm(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), O: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=128) as (bx, by):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * 128, k * 64], a)
                T.copy(B[k * 64, bx * 128], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, O[by * 128, bx * 128])

    return {"vector": vector, "reduction": reduction, "atomic": atomic, "mixed": mixed, "gemm": gemm}[kind]


def case(kind: str, op: str, M: int, N: int, K: int, stages: int) -> tuple[Any, Callable[[], tuple[np.ndarray, ...]]]:
    """A kernel that writes its last argument, and a maker of its arguments."""
    if kind == "gemm":
        M, N, K = 4 * M, 4 * N, 4 * K
    if kind == "launches":
        return split_product(M, N, K, 2), lambda: (normal(M, K), normal(K, N), np.zeros((2, M, N), np.float32),
                                                   np.zeros((M, N), np.float16))
    kernel = mixture(M, N, K, kind, op, stages)
    shape = {"reduction": (M, 1), "atomic": (8, N)}.get(kind, (M, N))
    first = ((M, K), (K, N)) if kind in ("mixed", "gemm") else ((M, N), (M, N))
    dtype = "float16" if kind in ("mixed", "gemm") else "float32"
    return kernel, lambda: (*(normal(*one, dtype=dtype) for one in first), np.zeros(shape, np.float32))


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(["gemm", "vector", "reduction", "atomic", "mixed", "launches"]),
       op=st.sampled_from(["exp", "abs", "sqrt"]), shape=st.tuples(*[st.sampled_from([16, 32, 48, 64])] * 3),
       stages=st.integers(1, 3), threads=st.integers(2, 8))
def test_threads_that_call_one_kernel_get_what_serial_calls_give(
        kind: str, op: str, shape: tuple[int, int, int], stages: int, threads: int) -> None:
    kernel, arguments = case(kind, op, *shape, stages)
    given = [arguments() for _ in range(threads)]
    serial = [tuple(array.copy() for array in one) for one in given]
    times = []
    for one in serial:
        kernel(*one)
        times.append((kernel.last_launch.cycles, [str(hazard) for hazard in kernel.last_launch.hazards]))

    def call(number: int) -> tuple[list[bytes], Any]:
        for _ in range(4):
            mine = tuple(array.copy() for array in given[number])
            kernel(*mine)
        launch = kernel.last_launch
        return [array.tobytes() for array in mine], (launch.cycles, [str(hazard) for hazard in launch.hazards])

    got = together(threads, call)
    assert [arrays for arrays, _ in got] == [[array.tobytes() for array in one] for one in serial]
    assert [facts for _, facts in got] == times


def test_two_threads_that_call_one_kernel_get_their_own_numbers() -> None:
    kernel = tilelang.compile(mixture.function(256, 256, 256, "gemm", "exp", 2), out_idx=[-1], target="npuir")
    given = [(normal(256, 256), normal(256, 256)) for _ in range(40)]
    wanted = [kernel(*one).tobytes() for one in given]
    got = together(2, lambda number: [kernel(*one).tobytes() for one in given[number::2]])
    assert got == [wanted[0::2], wanted[1::2]]


def test_the_last_launch_is_the_calling_threads() -> None:
    kernel = doubled(32, 64)
    kernel(normal(32, 64, dtype="float32"))
    mine = kernel.last_launch

    def call(_: int) -> tuple[Any, Any]:
        before = kernel.last_launch
        kernel(normal(32, 64, dtype="float32"))
        return before, kernel.last_launch

    found = together(3, call)
    assert [before for before, _ in found] == [None] * 3
    assert len({id(launch) for _, launch in found} | {id(mine)}) == 4
    assert kernel.last_launch is mine


def test_a_factory_called_by_several_threads_compiles_once() -> None:
    calls = []

    @tilelang.jit
    def factory(rows: int) -> Any:
        calls.append(rows)
        return doubled.function(rows, 64)

    kernels = together(6, lambda number: factory(32 + number % 2 * 16))
    assert sorted(calls) == [32, 48]
    assert len({id(kernel) for kernel in kernels}) == 2
    assert len({id(programs) for programs in together(4, lambda _: kernels[0].programs)}) == 1


def test_threads_that_compile_different_kernels_at_once_get_the_serial_text() -> None:
    def text(kind: str) -> str:
        return tilelang.compile(mixture.function(32, 32, 32, kind, "exp", 2), target="npuir").mlir()

    kinds = ("vector", "reduction", "mixed")
    wanted = list(map(text, kinds))
    entries.clear_cache()
    assert together(3, lambda number: text(kinds[number])) == wanted


def test_a_benchmark_counts_the_launches_of_its_own_thread() -> None:
    kernel = doubled(32, 64)
    inputs = normal(32, 64, dtype="float32")
    alone = do_bench(lambda: kernel(inputs))
    over, ran = threading.Event(), threading.Event()

    def other() -> None:
        while not over.is_set():
            kernel(inputs)
            ran.set()

    def timed() -> None:
        ran.clear()
        ran.wait(20)
        kernel(inputs)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert do_bench(timed) == alone
    finally:
        over.set()
        thread.join()


def test_a_record_of_every_thread_counts_all_launches() -> None:
    kernel = doubled(32, 64)
    clock = listeners.clock_us()
    with recording.record(every_thread=True) as done:
        together(4, lambda _: [kernel(normal(32, 64, dtype="float32")) for _ in range(5)])
    assert done.tallies[0].count == 20
    assert done.tallies[0].total_us == pytest.approx(20 * done.tallies[0].last.time_us)
    assert listeners.clock_us() - clock == pytest.approx(done.tallies[0].total_us)


def test_logs_of_one_thread_are_not_shown_to_others(caplog: pytest.LogCaptureFixture) -> None:
    level = logger.level
    start = threading.Barrier(2)

    def quiet() -> None:
        start.wait()
        logger.info("of the other")
        logger.warning("for all")
        start.wait()

    thread = threading.Thread(target=quiet)
    thread.start()
    with verbose_log(True):
        start.wait()
        logger.info("of this one")
        start.wait()
    thread.join()
    assert sorted(record.message for record in caplog.records) == ["for all", "of this one"]
    assert logger.level == level


def test_files_that_threads_write_at_once_leave_the_umask_alone(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        def write(number: int) -> None:
            for _ in range(40):
                with replacing(tmp_path / str(number % 2)) as file:
                    file.write(b"whole")

        together(4, write)
        assert {file.name: (file.read_bytes(), file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {
            "0": (b"whole", 0o640), "1": (b"whole", 0o640)}
    finally:
        assert os.umask(before) == 0o027


def test_what_is_kept_in_memory_stays_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_MAX_IN_MEMORY", 4)
    entries.disable_cache()
    try:
        together(4, lambda number: [entries.store(f"{number}-{turn}", {"text": ""}) for turn in range(200)])
        assert len(entries._State.memory) == 4
    finally:
        entries.enable_cache()
        entries.clear_cache()


def test_a_value_that_several_threads_ask_for_is_made_once() -> None:
    made = []

    class Owner:
        @once
        def value(self) -> object:
            made.append(self)
            return object()

    owners = [Owner(), Owner()]
    values = together(6, lambda number: owners[number % 2].value)
    assert len(made) == 2
    assert len({id(value) for value in values}) == 2

    kept: Kept[int, object] = Kept()
    found = together(6, lambda number: kept.get(number % 3, object))
    assert len({id(value) for value in found}) == len(kept) == 3
    with pytest.raises(ZeroDivisionError):
        kept.get(9, lambda: 1 // 0)
    assert kept.get(9, lambda: 1) == 1


def test_an_operation_has_one_name_object_in_all_threads() -> None:
    assert len({id(op) for op in together(8, lambda _: Op.get("tl.of_many_threads"))}) == 1


def test_verdicts_of_one_launch_are_the_same_in_all_threads() -> None:
    kernel = doubled(32, 64)
    kernel(normal(32, 64, dtype="float32"))
    launch = kernel.last_launch
    assert launch is not None
    found = together(4, lambda _: (id(launch.hazards), launch.cycles, launch.summary()))
    assert len(set(found)) == 1
