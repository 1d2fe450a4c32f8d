"""pass_configs: what is passed on, what is a no-op, what is refused."""

from __future__ import annotations

import pytest

from tilelang_npu import PassConfigKey, TileError
from tilelang_npu.runtime.switches import resolve


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


def test_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(TileError) as caught:
        resolve({"tl.ascend_auto_synk": True}, "ascendc", None)
    assert caught.value.code == "T704"
    assert "tl.ascend_auto_sync" in caught.value.help


@pytest.mark.parametrize("value", ["yes", 2, None])
def test_a_switch_is_true_or_false(value: object) -> None:
    with pytest.raises(TileError) as caught:
        resolve({PassConfigKey.TL_ASCEND_AUTO_SYNC: value}, "ascendc", None)
    assert caught.value.code == "T705"


def test_pass_configs_is_a_dict() -> None:
    with pytest.raises(TileError) as caught:
        resolve([PassConfigKey.TL_ASCEND_AUTO_SYNC], "ascendc", None)  # type: ignore[arg-type]
    assert caught.value.code == "T705"


def test_cross_core_flags_need_the_split() -> None:
    with pytest.raises(TileError) as caught:
        resolve({PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True}, "ascendc", None)
    assert caught.value.code == "T720"
    assert "TL_ASCEND_AUTO_CV_COMBINE" in caught.value.help


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
