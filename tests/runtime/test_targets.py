"""Which dialect and which chip a kernel gets."""

from __future__ import annotations

import pytest

from tilelang_npu import TileError, target
from tilelang_npu.runtime.settings.targets import determine_platform, dialect_of, select_chip


@pytest.mark.parametrize(
    ("target", "dialect"),
    [("npuir", "npuir"), ("ascendc", "ascendc"), ("pto", "ascendc"), ("auto", "auto"), (None, "auto")],
)
def test_target_names_the_dialect(target: str | None, dialect: str) -> None:
    assert dialect_of(target, None) == dialect


def test_the_mode_variable_makes_auto_npuir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_ASCEND_MODE", "Developer")
    assert dialect_of("auto", None) == "npuir"
    assert dialect_of("ascendc", None) == "ascendc"


@pytest.mark.parametrize("target", ["cuda", "hip", "cuda -arch=sm_90", "llvm"])
def test_gpu_targets_are_refused_with_the_way_out(target: str) -> None:
    with pytest.raises(TileError) as caught:
        dialect_of(target, None)
    assert caught.value.code == "T702"
    assert 'target="npuir"' in caught.value.help


def test_unknown_target_suggests_the_nearest() -> None:
    with pytest.raises(TileError) as caught:
        dialect_of("npuri", None)
    assert caught.value.code == "T703"
    assert "'npuir'" in caught.value.help


def test_chip_by_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    assert select_chip(None, "auto", None).name == target.DEFAULT
    monkeypatch.setenv("TL_PLATFORM", "A5")
    assert select_chip(None, "auto", None).family == "A5"
    monkeypatch.setenv("TILELANG_NPU_CHIP", "910b3")
    assert select_chip(None, "auto", None).name == "Ascend910B3"
    assert select_chip(None, "A3", None).family == "A3"
    assert select_chip("910B4", "A3", None).name == "Ascend910B4"


def test_unknown_chip_suggests_the_nearest() -> None:
    with pytest.raises(TileError) as caught:
        select_chip("Ascend910B7", "auto", None)
    assert caught.value.code == "T701"
    assert "Ascend910B" in caught.value.help


def test_unknown_platform() -> None:
    with pytest.raises(TileError) as caught:
        select_chip(None, "A4", None)
    assert caught.value.code == "T706"


def test_determine_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    assert determine_platform() == "A2"
    monkeypatch.setenv("TL_PLATFORM", "A3")
    assert determine_platform() == "A3"
