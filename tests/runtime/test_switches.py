"""pass_configs: keys that are passed on, keys without effect, invalid keys."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import PassConfigKey, TileError
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime.settings.log import TileWarning
from tilelang_npu.runtime.settings.switches import disabled_optimisations, resolve, warn_of_unknown_keys


def test_keys_and_their_strings_are_the_same() -> None:
    by_key = resolve({PassConfigKey.TL_ASCEND_AUTO_SYNC: True}, "ascendc", None)
    assert by_key == resolve({"tl.ascend_auto_sync": 1}, "ascendc", None) == {"tl.ascend_auto_sync": True}


def test_without_switches_there_are_none() -> None:
    assert resolve(None, "ascendc", None) == {}


@pytest.mark.parametrize(
    "key", ["TIR_MERGE_STATIC_SMEM", "TL_DISABLE_TMA_LOWER", "TL_CONFIG_INDEX_BITWIDTH", "CUDA_KERNELS_OUTPUT_DIR"]
)
def test_keys_of_other_machines_are_no_ops(key: str) -> None:
    assert resolve({PassConfigKey[key]: 32}, "npuir", None) == {}


def test_unknown_keys_are_left_out() -> None:
    switches = {"tl.ascend_auto_sync": True, "tl.ascend_auto_synk": 3, PassConfigKey.TL_NEW_KEY: None}
    assert resolve(switches, "ascendc", None) == {"tl.ascend_auto_sync": True}
    assert disabled_optimisations({**switches, "tl.disable": ["banks"]}, None) == ("banks",)
    with pytest.warns(TileWarning, match="T704: unknown key") as reported:
        warn_of_unknown_keys(switches, None)
    assert len(reported) == 2


@pytest.mark.parametrize("value", ["yes", 2, None])
def test_a_switch_is_true_or_false(value: object) -> None:
    with pytest.raises(TileError) as caught:
        resolve({PassConfigKey.TL_ASCEND_AUTO_SYNC: value}, "ascendc", None)
    assert caught.value.code == "T705"


def test_pass_configs_is_a_dict() -> None:
    with pytest.raises(TileError) as caught:
        resolve([PassConfigKey.TL_ASCEND_AUTO_SYNC], "ascendc", None)  # type: ignore[arg-type]  # the mistake that is tested
    assert caught.value.code == "T705"


def _scoped(by_hand: bool) -> PrimFunc:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), W: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (_, vid):
            a = T.alloc_L1((32, 32), "float16")
            c = T.alloc_L0C((32, 32), "float32")
            x = T.alloc_ub((16, 32), "float16")
            with T.Scope("C"):
                T.copy(A, a)
                T.gemm_v0(a, a, c, init=True)
                T.copy(c, W)
                if by_hand:
                    T.set_cross_flag("FIX", 0)
            with T.Scope("V"):
                if by_hand:
                    T.wait_cross_flag(0)
                T.copy(W[vid * 16, 0], x)
                T.copy(x, B[vid * 16, 0])

    return main


@pytest.mark.parametrize("by_hand", [False, True])
def test_cross_core_flags_between_the_scopes_of_the_author(by_hand: bool, rng: np.random.Generator) -> None:
    switches = {PassConfigKey.TL_ASCEND_AUTO_SYNC: True, PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True}
    with warnings.catch_warnings(record=True) as report:
        warnings.simplefilter("always")
        kernel = tilelang.compile(_scoped(by_hand), target="ascendc", pass_configs=switches)
    assert [str(one.message)[:4] for one in report] == ["T720"] * by_hand
    a = rng.integers(-4, 5, (32, 32)).astype(np.float16)
    w, b = np.zeros_like(a), np.zeros_like(a)
    kernel(a, w, b)
    np.testing.assert_array_equal(b, (a.astype(np.float32) @ a.astype(np.float32)).astype(np.float16))
    assert kernel.mlir().count("sync_block_set") == 1


def test_cross_core_flags_split_a_kernel_without_scopes(rng: np.random.Generator) -> None:
    """TileLang-Ascend splits such kernels by default since August 2026."""
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((32, 32), "float16")
            c = T.alloc_L0C((32, 32), "float32")
            x = T.alloc_ub((16, 32), "float32")
            T.copy(A, a)
            T.gemm_v0(a, a, c, init=True)
            T.copy(c, x)
            T.tile.add(x, x, 1.0)
            T.copy(x, B[vid * 16, 0])

    switches = {PassConfigKey.TL_ASCEND_AUTO_SYNC: True, PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
                PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True}
    kernel = tilelang.compile(main, target="ascendc", out_idx=[-1], pass_configs=switches, sanitize=True)
    a = rng.integers(-4, 5, (32, 32)).astype(np.float16)
    np.testing.assert_array_equal(kernel(a), a.astype(np.float32) @ a.astype(np.float32) + 1)
    both = {**switches, PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True}
    assert kernel.mlir() == tilelang.compile(main, target="ascendc", out_idx=[-1], pass_configs=both).mlir()
    with pytest.raises(TileError) as caught:
        tilelang.compile(main, target="ascendc", pass_configs={**switches, PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: False})
    assert caught.value.code == "T720"


def test_cross_core_flags_with_the_split_are_fine() -> None:
    both = {PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True, PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True}
    assert len(resolve(both, "ascendc", None)) == 2


@pytest.mark.parametrize(
    ("key", "dialect", "refused"),
    [("TL_ASCEND_AUTO_SYNC", "npuir", False), ("NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC", "ascendc", True)],
)
def test_a_switch_of_the_other_dialect_must_not_ask_for_a_change(key: str, dialect: str, refused: bool) -> None:
    assert resolve({PassConfigKey[key]: not refused}, dialect, None) == {PassConfigKey[key].value: not refused}
    with pytest.raises(TileError) as caught:
        resolve({PassConfigKey[key]: refused}, dialect, None)
    assert caught.value.code == "T720"
