"""Kernels, launches and factories in pickles and copies, and tuning by processes."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import doubled, split_product
from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.tuning.autotune import AutoTuner
from tilelang_npu.simulator import Launches

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: str = "float16") -> np.ndarray:
    return RNG.standard_normal(shape, np.float32).astype(dtype)


def local(scale: float, **settings: Any) -> Any:
    """A factory that no other process finds: B = A * scale + A."""

    @tilelang.jit(target="npuir", **settings)
    def factory(rows: int) -> Any:
        @T.prim_func
        def scaled(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
            with T.Kernel(T.ceildiv(rows, 8), threads=128) as row:
                a = T.alloc_shared((8, 64), "float32")
                T.copy(A[row * 8, 0], a)
                for i, j in T.Parallel(8, 64):
                    a[i, j] = a[i, j] * scale + a[i, j]
                T.copy(a, B[row * 8, 0])

        return scaled

    return factory


@tilelang.autotune(configs={"tile": [16, 32, 64]})
@tilelang.jit(target="npuir", out_idx=[-1])
def tuned(rows: int, tile: int = 8) -> Any:
    @T.prim_func
    def copied(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        with T.Kernel(T.ceildiv(rows, tile), threads=128) as row:
            a = T.alloc_shared((tile, 64), "float32")
            T.copy(A[row * tile, 0], a)
            T.copy(a, B[row * tile, 0])

    return copied


class Layer:
    """A factory and a tuned one as members of a class."""

    width = 64

    @tilelang.jit(target="npuir", out_idx=[-1])
    def copied(self, rows: int) -> Any:
        return tuned.factory.function(rows, 16)

    found = tuned


LOADED = """
import pickle, sys
kernels, calls = pickle.load(open(sys.argv[1], "rb"))
for kernel, arguments in zip(kernels, calls):
    kernel(*arguments)
facts = [(kernel.last_launch.cycles, [str(hazard) for hazard in kernel.last_launch.hazards], kernel.mlir(),
          [array.tobytes() for array in arguments]) for kernel, arguments in zip(kernels, calls)]
pickle.dump((facts, [kernel.last_launch.summary() for kernel in kernels], "samples" in sys.modules), open(sys.argv[2], "wb"))
"""


def racy(rows: int) -> Any:
    """A kernel with a hazard: a copy out that waits for nothing."""

    @T.prim_func
    def racy(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((8, 64), "float32")
            T.copy(A[half * 8, 0], a)
            T.copy(a, B[half * 8, 0])

    return racy


def test_a_fresh_interpreter_runs_a_pickled_kernel_with_equal_bits_cycles_and_hazards(tmp_path: Path) -> None:
    unordered = tilelang.compile(racy(16), target="ascendc", pass_configs={"tl.ascend_auto_sync": False})
    kernels = [local(0.1)(24), split_product(40, 32, 64, 2), unordered]
    calls = [(normal(24, 64, dtype="float32"), np.zeros((24, 64), np.float32)),
             (normal(40, 64), normal(64, 32), np.zeros((2, 40, 32), np.float32), np.zeros((40, 32), np.float16)),
             (normal(16, 64, dtype="float32"), np.zeros((16, 64), np.float32))]
    (tmp_path / "given").write_bytes(pickle.dumps((kernels, calls)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "77"}
    command = [sys.executable, "-c", LOADED, tmp_path / "given", tmp_path / "got"]
    subprocess.run(command, env=environment, check=True, cwd=tmp_path)
    facts, summaries, has_source = pickle.loads((tmp_path / "got").read_bytes())
    assert not has_source
    for kernel, arguments in zip(kernels, calls, strict=True):
        kernel(*arguments)
    assert facts == [(kernel.last_launch.cycles, [str(hazard) for hazard in kernel.last_launch.hazards], kernel.mlir(),
                      [array.tobytes() for array in arguments]) for kernel, arguments in zip(kernels, calls, strict=True)]
    assert [bool(hazards) for _, hazards, *_ in facts] == [False, False, True]
    assert summaries == [kernel.last_launch.summary() for kernel in kernels]


def test_a_pickled_kernel_explains_itself_as_before() -> None:
    kernel = local(2.0)(16)
    loaded = pickle.loads(pickle.dumps(kernel))
    for stage in ("tile", "hivm-auto", "hivm"):
        assert loaded.mlir(stage, locations=True) == kernel.mlir(stage, locations=True)
    for report in ("explain", "memory_report", "sync_report"):
        assert str(getattr(loaded, report)()) == str(getattr(kernel, report)())
    assert repr(loaded) == repr(kernel)
    assert loaded.prim_func.location == kernel.prim_func.location
    assert loaded.prim_func.lines == kernel.prim_func.lines


def test_a_pickled_kernel_takes_one_array_for_two_parameters() -> None:
    loaded = pickle.loads(pickle.dumps(local(3.0)(8)))
    both = np.ones((8, 64), np.float32)
    loaded(both, both)
    assert (both == 4).all()


def test_longer_arrays_need_the_function_that_a_pickle_does_not_have() -> None:
    kernel = local(1.0)(8)
    loaded = pickle.loads(pickle.dumps(kernel))
    arrays = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    with pytest.raises(TileError) as caught:
        loaded(*arrays)
    assert caught.value.code == "T734"
    assert caught.value.location == kernel.prim_func.location
    with pytest.warns(tilelang.TileWarning, match="T411|T410|never written"):
        kernel(*arrays)
    pickle.loads(pickle.dumps(kernel)).for_arguments(*arrays)  # variants that were compiled before are part of the pickle


@pytest.mark.parametrize("made", [copy.deepcopy, copy.copy])
def test_a_copied_kernel_is_another_one_that_does_the_same(made: Any) -> None:
    kernel = doubled(16, 64)
    other = made(kernel)
    given = normal(16, 64, dtype="float32")
    assert (other(given) == 2 * given).all()
    assert other is not kernel
    assert other.prim_func is kernel.prim_func
    assert kernel.last_launch is None
    assert other.last_launch is not None


def test_a_loaded_launch_has_its_times_hazards_and_reports() -> None:
    kernel = split_product(40, 32, 64, 2)
    given = normal(40, 64), normal(64, 32), np.zeros((2, 40, 32), np.float32)
    kernel(*given)
    launch = kernel.last_launch
    loaded = pickle.loads(pickle.dumps(launch))
    given[2][:] = np.nan  # the pickle has the arrays as they were
    assert isinstance(loaded, Launches)
    assert (loaded.cycles, loaded.summary(), loaded.trace()) == (launch.cycles, launch.summary(), launch.trace())
    assert loaded.hazards == launch.hazards == []
    assert (loaded.writes(3) == launch.writes(3)).all()
    racing = tilelang.compile(racy(16), target="ascendc", pass_configs={"tl.ascend_auto_sync": False})
    one = np.zeros((16, 64), np.float32)
    racing(one, one)
    loaded = pickle.loads(pickle.dumps(racing.last_launch))
    assert [str(hazard) for hazard in loaded.hazards] == [str(hazard) for hazard in racing.last_launch.hazards]
    assert loaded.hazards
    first, second = loaded.recorded.bound.given
    assert np.shares_memory(first, second)


@pytest.mark.parametrize("factory", [tuned, tuned.factory, doubled, Layer().copied, Layer.found])
def test_a_factory_is_pickled_by_its_name(factory: Any) -> None:
    loaded = pickle.loads(pickle.dumps(factory))
    if factory in (tuned, tuned.factory, doubled, Layer.found):
        assert loaded is factory
        assert copy.deepcopy(factory) is copy.copy(factory) is factory
    else:
        assert (loaded.maker, type(loaded.first)) == (factory.maker, Layer)


def test_a_factory_without_a_name_is_refused_with_its_reason() -> None:
    with pytest.raises(TileError) as caught:
        pickle.dumps(local(1.0))
    assert caught.value.code == "T733"
    assert "local.<locals>.factory" in caught.value.message
    assert "top of a module" in caught.value.help


def test_errors_cross_processes() -> None:
    error = TileError("what", code="T104", location=Location("a.py", 3, 1), notes=["more"], help="do")
    loaded = pickle.loads(pickle.dumps(error))
    assert (str(loaded), loaded.code, loaded.location, loaded.notes) == (str(error), "T104", error.location, ("more",))


def test_threads_and_processes_tune_a_gemm_with_equal_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILELANG_NPU_WITHOUT", "split-tiles")  # so that one configuration has no room
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.delitem(sys.modules, "gemm", raising=False)
    import gemm

    def tune(executor: Executor | None) -> tuple[Any, ...]:
        tuner = AutoTuner(gemm.gemm, {"M": [128], "N": [128], "K": [64], "tile_M": [32, 64, 1 << 14], "tile_N": [64],
                                      "tile_K": [32]})
        result = tuner.run(executor=executor)
        return result.config, result.latency, result.tried, result.rejected, result.kernel.mlir()

    alone = tune(None)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2) as processes:
        assert tune(threads) == alone
        assert tune(processes) == alone
    assert (len(alone[2]), len(alone[3])) == (2, 1)


def test_processes_tune_a_factory_that_has_no_name() -> None:
    alone = AutoTuner(local(1.0), {"rows": [8, 16]}).run()
    with ProcessPoolExecutor(1) as processes:
        found = AutoTuner(local(1.0), {"rows": [8, 16]}).run(executor=processes)
    assert (found.config, found.tried, found.kernel.mlir()) == (alone.config, alone.tried, alone.kernel.mlir())
