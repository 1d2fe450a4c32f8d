"""Last launches give up their arrays where many kernels would keep too many, and still have their times and hazards."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.kernel import kept_launches
from tilelang_npu.runtime.kernel.kept_launches import KeptLaunches
from tilelang_npu.simulator import Program

SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
ROWS, COLUMNS = 512, 1024
WORKSPACE = 3 << 19
"""An upper bound of the bytes of the workspace, which all launches of as many blocks have in common."""


@tilelang.jit(out_idx=[1], target="ascendc", pass_configs=SYNC)
def scaled(factor: float) -> Any:
    @T.prim_func
    def scaled(A: T.Tensor((ROWS, COLUMNS), "float32"), B: T.Tensor((ROWS, COLUMNS), "float32")):
        with T.Kernel(16, is_npu=True) as (core, vid):
            a = T.alloc_ub((ROWS // 16, COLUMNS), "float32")
            T.copy(A[core * (ROWS // 16), 0], a)
            T.tile.mul(a, a, factor)
            T.copy(a, B[core * (ROWS // 16), 0])
    return scaled


@tilelang.jit(target="ascendc", pass_configs=SYNC)
def repeated() -> Any:
    @T.prim_func
    def repeated(A: T.Tensor((64,), "float32"), count: T.Tensor((8,), "int32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (core, vid):
            x = T.alloc_ub((64,), "float32")
            n = T.alloc_ub((8,), "int32")
            T.copy(A, x)
            T.copy(count, n)
            for _ in T.serial(n[0]):
                T.tile.add(x, x, 1.0)
            T.copy(x, B)
    return repeated


def test_the_oldest_launches_give_up_their_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    size = ROWS * COLUMNS * 4
    monkeypatch.setattr(kept_launches, "KEPT", KeptLaunches(5 * size))
    kernels, arrays, times = [scaled(float(factor)) for factor in range(2, 8)], [], []
    for kernel in kernels:
        x = np.ones((ROWS, COLUMNS), np.float32)
        kernel(x)
        times.append(kernel.last_launch.time_us)
        arrays.append(weakref.ref(x))
        del x
    gc.collect()
    assert [array() is None for array in arrays] == [True] * 3 + [False] * 3
    assert 6 * size <= kept_launches.KEPT.nbytes < 6 * size + WORKSPACE
    for kernel, expected in zip(kernels, times, strict=True):
        assert kernel.last_launch.time_us == expected
        assert kernel.last_launch.retimed().time_us == expected
        assert kernel.last_launch.hazards == []
        assert kernel.last_launch.writes(1).all()
    np.testing.assert_array_equal(kernels[0](np.ones((ROWS, COLUMNS), np.float32)), 2.0)


@pytest.mark.alone
def test_an_array_of_several_launches_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_launches, "KEPT", KeptLaunches())
    x = np.ones((ROWS, COLUMNS), np.float32)
    for factor in (2.5, 3.5, 4.5):
        scaled(factor)(x)
    all_of_them = kept_launches.KEPT.nbytes
    assert 4 * x.nbytes <= all_of_them < 4 * x.nbytes + WORKSPACE
    scaled(2.5).last_launch = None
    gc.collect()
    assert all_of_them - x.nbytes - 8192 <= kept_launches.KEPT.nbytes <= all_of_them - x.nbytes  # and an array of the runtime


def test_launches_that_depend_on_data_keep_it_until_their_hazards_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptLaunches(0)
    monkeypatch.setattr(kept_launches, "KEPT", kept)
    kernel = repeated()
    kernel(np.zeros(64, np.float32), np.full(8, 3, np.int32), np.zeros(64, np.float32))
    launch = kernel.last_launch
    before = launch.time_us
    assert not launch.release()
    assert launch.recorded.bound.given[1][0] == 3
    assert launch.hazards == []
    assert launch.release()
    assert launch.recorded.bound.given[1][0] == 0
    assert (launch.time_us, launch.hazards) == (before, [])


def test_a_kernel_runs_though_the_program_of_an_older_launch_has_an_op_of_a_plug_in_that_is_gone(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_launches, "KEPT", KeptLaunches(0))
    x = np.ones((ROWS, COLUMNS), np.float32)
    older, newer = scaled(5.5), scaled(6.5)
    older(x)
    program = older.last_launch.recorded.program

    def of_another_program(asked: Program) -> bool:
        if asked is program:
            raise TileError("no operation has the name 'gone'", code="T501")
        return True

    monkeypatch.setattr(Program, "data_free", property(of_another_program))
    np.testing.assert_array_equal(newer(x), 6.5)
    np.testing.assert_array_equal(newer(x), 6.5)
    assert older.last_launch.recorded.bound.given[0].any()
