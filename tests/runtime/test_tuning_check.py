"""Whether a configuration's numbers are right: by a reference, by the standard configuration, on whose inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.tuning.tuning_check import ResultCheck, TuningProfile, set_autotune_inputs


def scaled(factor: float, *, out: bool = True) -> Any:
    @T.prim_func
    def scaled(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            a = T.alloc_ub((4, 64), "float32")
            T.copy(A, a)
            T.vmul(a, factor, a)
            T.copy(a, B)

    return tilelang.compile(scaled, target="npuir", out_idx=[-1] if out else None)


@pytest.fixture(scope="module")
def kernels() -> dict[float, Any]:
    return {factor: scaled(factor) for factor in (2.0, 3.0)}


def nothing() -> None:
    return None


def test_a_reference_decides(kernels: dict[float, Any]) -> None:
    check = ResultCheck(TuningProfile(ref_prog=lambda a: a * 2), nothing)
    assert check.measure(kernels[2.0], {}) == kernels[2.0].last_launch.time_us / 1000
    assert check.latency is not None
    with pytest.raises(AssertionError, match="differ"):
        check.measure(kernels[3.0], {})
    assert ResultCheck(TuningProfile(ref_prog=lambda a: a * 2, skip_check=True), nothing).measure(kernels[3.0], {}) > 0
    loose = TuningProfile(ref_prog=lambda a: a * 2, rtol=0.6, atol=0.0)
    assert ResultCheck(loose, nothing).measure(kernels[3.0], {}) > 0
    assert not check.depends_on_kernels_alone()


def test_a_check_by_hand_decides_in_its_place(kernels: dict[float, Any]) -> None:
    seen: list[Any] = []
    profile = TuningProfile(ref_prog=lambda a: a * 2, manual_check_prog=lambda *arrays: seen.append(arrays))
    ResultCheck(profile, nothing).measure(kernels[3.0], {})
    (arrays,) = seen
    made, wanted = (np.asarray(side[0] if isinstance(side, (list, tuple)) else side) for side in arrays)
    np.testing.assert_allclose({2.0 * 1.5: made}[3.0], wanted * 1.5, rtol=1e-6)


def test_without_a_reference_the_standard_configuration_decides(kernels: dict[float, Any]) -> None:
    check = ResultCheck(TuningProfile(), lambda: ({"factor": 2.0}, kernels[2.0]))
    assert check.depends_on_kernels_alone()
    assert check.measure(kernels[2.0], {"factor": 2.0}) > 0
    assert check.measure(scaled(2.0), {"factor": 2.0, "other": 1}) > 0
    with pytest.raises(AssertionError, match=r"from the result with \{'factor': 2.0\}"):
        check.measure(kernels[3.0], {"factor": 3.0})


def test_results_in_the_callers_arrays_are_compared_too(kernels: dict[float, Any]) -> None:
    right, wrong = scaled(2.0, out=False), scaled(3.0, out=False)
    check = ResultCheck(TuningProfile(), lambda: ({"factor": 2.0}, right))
    assert check.measure(scaled(2.0, out=False), {}) > 0
    with pytest.raises(AssertionError, match="B"):
        check.measure(wrong, {"factor": 3.0})
    with pytest.warns(tilelang.TileWarning, match="T732: ref_prog is compared with nothing: scaled returns no results"):
        ResultCheck(TuningProfile(ref_prog=lambda a, b: a * 2), nothing).measure(wrong, {})


def test_inputs_are_those_of_the_with_then_of_supply_prog(kernels: dict[float, Any]) -> None:
    given: list[Any] = []

    def reference(a: Any) -> Any:
        given.append(np.array(a))
        return a * 2

    def supply(params: Any, config: Any) -> list[Any]:
        assert params[0].name == "A"
        return [np.full((4, 64), config["value"], np.float32)]

    check = ResultCheck(TuningProfile(ref_prog=reference, supply_prog=supply), nothing)
    check.measure(kernels[2.0], {"value": 5})
    with set_autotune_inputs(np.full((4, 64), 7, np.float32)):
        check.measure(kernels[2.0], {"value": 6})
        with set_autotune_inputs([np.full((4, 64), 8, np.float32)]):
            check.measure(kernels[2.0], {"value": 6})
        check.measure(kernels[2.0], {"value": 6})
    check.measure(kernels[2.0], {"value": 9})
    assert [array[0, 0] for array in given] == [5, 7, 8, 7, 9]
    kept = ResultCheck(TuningProfile(ref_prog=reference, supply_prog=supply, cache_input_tensors=True), nothing)
    for value in (1, 2):
        kept.measure(kernels[2.0], {"value": value})
    assert [array[0, 0] for array in given[5:]] == [1, 1]
