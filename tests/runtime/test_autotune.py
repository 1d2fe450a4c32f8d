"""Tuning selects the working configuration with the least modelled time, and reports the results of the others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC
from tilelang_npu import TileError
from tilelang_npu.runtime.tuning.autotune import AutoTuner


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _added(M: int, N: int, block_M: int, block_N: int) -> Any:
    @T.prim_func
    def added(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M // (2 * block_M) * (N // block_N), is_npu=True) as (block, half):
            a = T.alloc_ub((block_M, block_N), "float32")
            b = T.alloc_ub((block_M, block_N), "float32")
            row = (block // (N // block_N) * 2 + half) * block_M
            column = block % (N // block_N) * block_N
            T.copy(A[row, column], a)
            T.copy(B[row, column], b)
            T.tile.add(a, a, b)
            T.copy(a, C[row, column])

    return added


CONFIGS = [{"block_M": m, "block_N": n} for m, n in ((2, 64), (16, 256), (128, 512))]
SETTINGS: dict[str, Any] = {"out_idx": [-1], "target": "ascendc", "pass_configs": SYNC}


def _tuned(configs: Any = CONFIGS, **profile: Any) -> Any:
    return tilelang.autotune(configs=configs, **profile)(tilelang.jit(**SETTINGS)(_added))


def test_the_fastest_that_fits_is_taken() -> None:
    factory = _tuned(ref_prog=np.add)
    kernel = factory(256, 512)
    assert kernel.config == {"block_M": 16, "block_N": 256}
    found = kernel.get_tuner_result()
    assert found["config"] == kernel.config
    assert found["latency"] == kernel.latency > 0
    assert found["ref_latency"] > 0
    result = factory.last_result
    assert [time for time, _ in result.tried] == sorted(time for time, _ in result.tried)
    assert [(item.config, item.reason[:4]) for item in result.rejected] == [(CONFIGS[2], "T104")]
    assert factory(256, 512) is kernel


def test_the_time_is_the_modelled_one_of_a_single_run() -> None:
    kernel = _tuned()(256, 512)
    other = tilelang.jit(**SETTINGS)(_added)(256, 512, 16, 256)
    other(*other.get_profiler().inputs())
    assert other.last_launch is not None
    assert kernel.latency == pytest.approx(other.last_launch.time_us / 1000)


@pytest.mark.parametrize("configs", [
    {"block_M": [2, 16], "block_N": [64, 256]},
    lambda: [{"block_M": 16, "block_N": 256}],
    lambda args, kwargs: [{"block_M": 16, "block_N": args[1] // 2}],
])
def test_configurations_are_a_grid_or_come_from_a_function(configs: Any) -> None:
    assert _tuned(configs)(256, 512).config == {"block_M": 16, "block_N": 256}


def test_nothing_is_tuned_where_nothing_is_left_open() -> None:
    kernel = _tuned()(256, 512, 2, 64)
    assert kernel.config is None
    with pytest.raises(TileError, match="T731"):
        kernel.get_tuner_result()
    assert _tuned()(256, 512, block_M=2).config == {"block_N": 512}


def test_wrong_numbers_are_a_reason() -> None:
    with pytest.raises(TileError, match=r"T730.*none of 1 configurations works") as caught:
        _tuned(CONFIGS[:1], ref_prog=np.subtract)(256, 512)
    assert "differ" in caught.value.notes[0]
    assert _tuned(CONFIGS[:1], ref_prog=np.subtract, skip_check=True)(256, 512).latency > 0


def test_a_kernel_that_needs_other_inputs_than_generated_ones_says_so() -> None:
    def gathered(rows: int, tile: int) -> Any:
        @T.prim_func
        def gathered(P: T.Tensor((4,), "int32"), A: T.Tensor((rows, 64), "float32"), B: T.Tensor((4, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                p, a = T.alloc_ub((8,), "int32"), T.alloc_ub((tile, 64), "float32")
                T.copy(P, p[0:4])
                for i in T.serial(4):
                    T.copy(A[p[i] - 1000, 0], a)
                    T.copy(a[0:1, :], B[i, 0])
        return gathered

    tuned = tilelang.autotune(configs=[{"tile": 1}, {"tile": 2}])(tilelang.jit(out_idx=[-1], target="ascendc")(gathered))
    with pytest.warns(tilelang.TileWarning, match="T732"), pytest.raises(TileError, match=r"T730.*none of 2 conf") as caught:
        tuned(32)
    assert "give arguments with supply_prog" in caught.value.help


def test_inputs_come_from_the_program_or_from_the_caller() -> None:
    seen: list[Any] = []

    def supply(params: list[Any], config: dict[str, Any]) -> list[Any]:
        seen.append(([parameter.name for parameter in params], config))
        return [np.ones((256, 512), np.float32)] * 2

    _tuned(CONFIGS[:2], supply_prog=supply)(256, 512)
    assert seen == [(["A", "B", "C"], CONFIGS[1])]  # the faster one; the other need not run
    _tuned(CONFIGS[:1], supply_prog=lambda params: [np.ones(one.shape, np.float32) for one in params])(256, 512)
    given = np.full((256, 512), 3, np.float32)

    def reference(a: Any, b: Any) -> Any:
        assert a is given
        return a + b

    with tilelang.set_autotune_inputs(given, given):
        _tuned(CONFIGS[:1], ref_prog=reference)(256, 512)


def test_the_tuner_by_hand_with_an_executor_and_its_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tuner = AutoTuner.from_kernel(lambda block_M, block_N: _added(256, 512, block_M, block_N), CONFIGS)
    tuner.set_compile_args(**SETTINGS).set_profile_args(ref_prog=np.add, rtol=0, atol=0)
    with ThreadPoolExecutor(2) as executor:
        result = tuner.run(warmup=1, rep=1, timeout=60, executor=executor, table=tmp_path / "table")
    assert result.config == {"block_M": 16, "block_N": 256}
    lines = (tmp_path / "table").read_text().splitlines()[1:]
    assert ["T104" in line for line in lines] == [False, False, True]
    assert capfd.readouterr().err == ""  # no progress bar without a terminal


def _maybe_wrong(M: int, wrong: bool, tile: int) -> Any:
    @T.prim_func
    def doubled(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M // tile, is_npu=True) as (block, _):
            a = T.alloc_shared((tile,), "float32")
            T.copy(A[block * tile], a)
            T.vmul(a, 3.0 if wrong else 2.0, a)
            T.copy(a, B[block * tile])

    return doubled


def test_the_fastest_is_left_out_where_it_is_wrong_and_slower_ones_are_not_run() -> None:
    configs = [{"wrong": wrong, "tile": tile} for tile in (1024, 4096, 2048) for wrong in (False, True)]
    calls = []

    def reference(a: Any) -> Any:
        calls.append(a.shape)
        return a * 2

    factory = tilelang.autotune(configs=configs, ref_prog=reference)(tilelang.jit(out_idx=[-1], target="npuir")(_maybe_wrong))
    kernel = factory(1 << 16)
    result = factory.last_result
    times = {tile: time for time, config in result.tried for tile in [config["tile"]] if not config["wrong"]}
    best = min(times, key=lambda tile: times[tile])
    assert kernel.config == {"wrong": False, "tile": best}
    faster = [item.config for item in result.rejected]
    assert all(config == {"wrong": True, "tile": best} for config in faster)
    assert len(calls) == 1 + len(faster)
    assert len(result.tried) == len(configs) - len(faster)


def test_a_wrong_one_that_is_fastest_is_found_out() -> None:
    configs = [{"wrong": True, "tile": 8192}, {"wrong": False, "tile": 64}]
    factory = tilelang.autotune(configs=configs, ref_prog=lambda a: a * 2)(
        tilelang.jit(out_idx=[-1], target="npuir")(_maybe_wrong))
    assert factory(1 << 16).config == configs[1]
    assert [(item.config, "differ" in item.reason) for item in factory.last_result.rejected] == [(configs[0], True)]


def _skipping(M: int, tile: int) -> Any:
    @T.prim_func
    def skipping(A: T.Tensor((M,), "float32"), S: T.Tensor((1,), "int32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M // tile, is_npu=True) as (block, _):
            a = T.alloc_shared((tile,), "float32")
            T.copy(A[block * tile], a)
            for _ in T.serial(S[0]):
                T.vadd(a, 1.0, a)
            T.copy(a, B[block * tile])

    return skipping


def test_all_are_run_where_data_decide_the_time() -> None:
    given = np.zeros(1 << 14, np.float32)
    calls = []

    def reference(a: Any, turns: Any) -> Any:
        calls.append(turns)
        return a + turns

    factory = tilelang.autotune(configs=[{"tile": 1024}, {"tile": 4096}], ref_prog=reference)(
        tilelang.jit(out_idx=[-1], target="npuir")(_skipping))
    with tilelang.set_autotune_inputs(given, np.array([5], np.int32)):
        kernel = factory(1 << 14)
    assert len(calls) == 2
    assert kernel.latency == min(time for time, _ in factory.last_result.tried)


def test_mistakes_are_named() -> None:
    with pytest.raises(TileError, match="no argument 'suply_prog'"):
        _tuned(suply_prog=None)
    with pytest.raises(TileError, match="T708"):
        tilelang.autotune(configs=CONFIGS)(_added)
    with pytest.raises(TileError, match="no configuration to try"):
        AutoTuner(_added, []).run()


@pytest.mark.parametrize(("configs", "message"), [
    (5, "5 is not a configuration"), ([{"block_M": 2}, 5], "5 is not a configuration"), ("ab", "'ab' is not a configuration"),
    ({"block_M": 2, "block_N": [64]}, "has 2 for block_M"), (lambda: {"block_M": "24"}, "has '24' for block_M"),
])
def test_what_is_no_configuration_is_refused(configs: Any, message: str) -> None:
    with pytest.raises(TileError, match=message) as caught:
        _tuned(configs)(256, 512)
    assert caught.value.code == "T707"
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_configurations_may_come_one_by_one() -> None:
    assert _tuned(lambda: iter(CONFIGS))(256, 512).config == {"block_M": 16, "block_N": 256}


def test_an_executor_has_submit() -> None:
    with pytest.raises(TileError, match="executor=3 is not an executor: it has no method submit") as caught:
        _tuned(executor=3)(256, 512)
    assert caught.value.code == "T707"


def test_arguments_of_jit_are_given_once() -> None:
    with pytest.raises(TileError, match="no effect on _added, which is under jit") as caught:
        AutoTuner.from_kernel(tilelang.jit(**SETTINGS)(_added), CONFIGS).set_compile_args(target="npuir")
    assert caught.value.code == "T707"


def test_the_timeout_of_the_profile_holds() -> None:
    tuner = AutoTuner.from_kernel(lambda **config: _added(256, 512, **config), CONFIGS).set_compile_args(**SETTINGS)
    tuner.set_profile_args(timeout=1e-6)
    with pytest.raises(TileError, match="none of 3") as caught:
        tuner.run()
    assert any("longer than 1e-06 s" in note for note in caught.value.notes)
    assert tuner.run(timeout=100).config == {"block_M": 16, "block_N": 256}


def test_a_reference_without_results_to_compare_is_reported() -> None:
    factory = tilelang.jit(target="ascendc", pass_configs=SYNC)(_added)
    tuned = tilelang.autotune(configs=CONFIGS, ref_prog=lambda a, b, c: a - b)(factory)
    with pytest.warns(tilelang.TileWarning, match="T732: ref_prog is compared with nothing: added returns no results"):
        tuned(256, 512)


def test_parameters_for_which_nothing_is_tuned_again() -> None:
    factory = _tuned(do_not_specialize=["M"])
    first = factory(256, 512)
    result = factory.last_result
    second = factory(512, N=512)
    assert factory.last_result is result
    assert second is not first
    a, b = (np.random.default_rng(seed).standard_normal((512, 512)).astype(np.float32) for seed in range(2))
    np.testing.assert_array_equal(second(a, b), a + b)
    factory(256, 1024)
    assert factory.last_result is not result


def test_names_of_no_parameters_are_refused() -> None:
    with pytest.raises(TileError, match="do_not_specialize names 'batch'") as caught:
        _tuned(do_not_specialize=["batch"])
    assert caught.value.code == "T707"
