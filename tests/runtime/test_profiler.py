"""Inputs, modelled times and comparisons."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from samples import SYNC, doubled, symbolic_rows
from tilelang_npu import TensorSupplyType, TileError, do_bench
from tilelang_npu import language as T
from tilelang_npu.compat.testing import set_random_seed
from tilelang_npu.ops import DType
from tilelang_npu.runtime.reports.profiler import get_tensor_supply, make_array


def test_times_are_those_of_the_model() -> None:
    kernel = doubled(64, 64)
    milliseconds = kernel.get_profiler().do_bench(warmup=10, rep=1000)
    assert milliseconds == pytest.approx(kernel.last_launch.time_us / 1000)
    a = np.ones((64, 64), np.float32)
    assert do_bench(lambda: kernel(a)) == pytest.approx(milliseconds)
    assert do_bench(lambda: (kernel(a), kernel(a))) == pytest.approx(2 * milliseconds)
    assert do_bench(lambda: kernel(a), quantiles=[0.5, 0.2]) == pytest.approx([milliseconds] * 2)


def test_a_kernel_tells_its_own_time() -> None:
    kernel = doubled(64, 64)
    assert kernel.benchmark(warmup=1, rep=2) == pytest.approx(kernel.get_profiler().do_bench())


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda kernel: kernel.get_profiler("Zero"), "'Zero' is not a TensorSupplyType"),
    (lambda kernel: get_tensor_supply(5), "5 is not a TensorSupplyType"),
    (lambda kernel: kernel.get_profiler().manual_assert_close(lambda a: a * 3), "compares nothing without a manual_check_prog"),
    (lambda kernel: do_bench(lambda: None, return_mode="best"), "do_bench has no return_mode 'best'"),
])
def test_arguments_without_an_effect_are_refused(wrong: Any, message: str) -> None:
    with pytest.raises(TileError, match=message) as caught:
        wrong(doubled(64, 64))
    assert caught.value.code == "T707"
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_runs_are_compared_as_often_as_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = doubled(64, 64)
    runs = []
    monkeypatch.setattr(type(kernel), "__call__", lambda self, *inputs: runs.append(1) or inputs[0])
    kernel.get_profiler().assert_consistent(repeat=5)
    assert len(runs) == 5


def test_times_of_other_functions_are_the_hosts() -> None:
    assert do_bench(lambda: time.sleep(0.005)) >= 5


def test_comparison_with_a_reference() -> None:
    profiler = doubled(64, 64).get_profiler()
    profiler.assert_allclose(lambda a: a * 2)
    with pytest.raises(AssertionError, match=r"result 0: \d+ of 4096 elements differ"):
        profiler.assert_allclose(lambda a: a * 2.1)
    with pytest.raises(AssertionError, match="shape"):
        profiler.assert_allclose(lambda a: a[:1])


def test_run_once() -> None:
    kernel = doubled(64, 64)
    a = kernel.get_profiler().inputs()[0]
    np.testing.assert_array_equal(kernel.run_once(), a + a)


def test_symbolic_sizes_must_be_given() -> None:
    profiler = tilelang.compile(symbolic_rows(), out_idx=[-1], target="ascendc", pass_configs=SYNC).get_profiler()
    with pytest.raises(TileError) as caught:
        profiler.run_once()
    assert caught.value.code == "T403"
    assert profiler.inputs({"M": 32})[0].shape == (32, 64)


@pytest.mark.parametrize("kind", list(TensorSupplyType))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "int8", "uint8", "int64", "bool"])
def test_inputs_of_every_kind(kind: TensorSupplyType, dtype: str) -> None:
    made = make_array(DType(dtype), (50, 40), kind, np.random.default_rng(0))
    assert made.dtype == DType(dtype).numpy
    wide = made.astype(np.float32)
    assert np.isfinite(wide).all()
    if kind in (TensorSupplyType.Zero, TensorSupplyType.One):
        assert (wide == (kind is TensorSupplyType.One)).all()
    else:
        assert len(np.unique(wide)) > 1


def test_a_supply_makes_arrays_for_parameters() -> None:

    @T.prim_func
    def main(a: T.Tensor((3, 40), "float16"), n: T.int32, b: T.Tensor((T.symbolic("m"), 8), "int8")):  # type: ignore[no-untyped-def, valid-type]
        with T.Kernel(1):
            pass

    whole, number, open_ended = tilelang.compile(main).params
    made = {}
    for kind in TensorSupplyType:
        set_random_seed(5)
        made[kind] = get_tensor_supply(kind)(whole)
        assert made[kind].shape == (3, 40)
        assert made[kind].dtype == np.float16
        set_random_seed(5)
        np.testing.assert_array_equal(get_tensor_supply(kind)(whole), made[kind])
    assert set(np.unique(made[TensorSupplyType.Integer])) == {-2, -1, 0, 1, 2}
    assert abs(made[TensorSupplyType.Uniform]).max() <= 1
    assert not made[TensorSupplyType.Zero].any()
    assert (made[TensorSupplyType.One] == 1).all()
    with pytest.raises(ValueError, match="parameter n: it is a number"):
        get_tensor_supply()(number)
    with pytest.raises(ValueError, match="parameter b: it has the shape"):
        get_tensor_supply()(open_ended)
