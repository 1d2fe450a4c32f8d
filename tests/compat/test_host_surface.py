"""The names of TileLang's host side that scripts use, other than kernels."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilelang_npu import TileError, compat
from tilelang_npu.compat import carver, testing
from tilelang_npu.compat.carver.anneal import Annealparam, AnnealTemplate
from tilelang_npu.compat.torch_types import determine_fp8_type, determine_platform


@pytest.mark.parametrize("template", [
    carver.ElementwiseTemplate([1024, 1024], "float32"), carver.ElementwiseTemplate([8, 16, 32, 100], "float16"),
    carver.ElementwiseTemplate([5], "float16"), carver.MatmulTemplate(M=1024, N=1024, K=1024, in_dtype="float16"),
    carver.MatmulTemplate(30, 7, 5), carver.GEMVTemplate(N=1024, K=4096), carver.GeneralReductionTemplate("SR", [1024, 1024]),
    carver.FlashAttentionTemplate(head_dim=128, seq_length=4096),
])
def test_hints_fit_and_are_ordered(template: Any) -> None:
    hints = template.with_arch(carver.AscendArch()).recommend_hints(topk=20)
    assert 1 <= len(hints) <= 20
    assert [hint.value for hint in hints] == sorted(hint.value for hint in hints)
    assert len({tuple(hint.kwargs) for hint in hints}) == len(hints)


def test_matrix_tiles_respect_the_chips_memories() -> None:
    arch = carver.AscendArch()
    for hint in carver.MatmulTemplate(4096, 4096, 4096).with_arch(arch).recommend_hints(1000):
        (m, n), (k,) = hint.block, hint.rstep
        assert m * n * 4 <= arch.l0c_cap
        assert (m + n) * k * 2 * 2 <= arch.l1_cap


def test_annealing_gives_the_tiles_of_its_template() -> None:
    found = AnnealTemplate(shape=[1024, 1024, 512], use_template="Matmul", annealparam=Annealparam(topk=3)).get_configs()
    assert [len(hint.kwargs) for hint in found] == [3, 3, 3]
    assert len(AnnealTemplate([4096, 4096, 128], use_template="FlashAttention").get_configs()[0].kwargs) == 3
    with pytest.raises(TileError, match="Custom"):
        AnnealTemplate([1], use_template="Custom")


def test_the_arch_is_the_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_CHIP", "910B4")
    assert carver.AscendArch().name == "Ascend910B4"
    assert carver.NPUUtils.get().get_aicore_num() == carver.NPUUtils().get_aicube_core_num()
    assert carver.NPUUtils().get_aivector_core_num() == carver.NPUUtils().get_aicube_core_num() * 2 == 40


@pytest.mark.parametrize(
    ("name", "family"),
    [("Ascend910B", "A2"), ("Ascend910_93", "A3"), ("Ascend910C", "A3"), ("Ascend950", "A5"), ("Ascend910_9589", "A5")],
)
def test_the_platform_is_that_of_the_chip_torch_sees(name: str, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = ModuleType("torch")
    for reported in ({"get_device_properties": lambda _: SimpleNamespace(name=name)}, {"get_device_name": lambda: name}):
        torch.npu = SimpleNamespace(is_available=lambda: True, **reported)
        monkeypatch.setitem(sys.modules, "torch", torch)
        assert determine_platform("auto") == family
        assert determine_platform("A2") == "A2"
    torch.npu.is_available = lambda: False
    assert determine_platform() == "A3"
    for soc, of_soc in ((name, family), ("AscendUnknown", "A3")):  # before torch
        monkeypatch.setitem(sys.modules, "acl", SimpleNamespace(get_soc_name=lambda soc=soc: soc))
        assert determine_platform() == of_soc
    monkeypatch.setenv("TL_PLATFORM", "A5")
    assert determine_platform() == "A5"


def test_the_formats_of_float8() -> None:
    assert [determine_fp8_type(), determine_fp8_type("e5m2")] == ["float8_e4m3fn", "float8_e5m2"]
    with pytest.raises(ValueError, match="there is no float8 format 'e4m4'; there are e4m3, e5m2"):
        determine_fp8_type("e4m4")


def test_tolerant_comparison() -> None:
    a = np.ones(1000, np.float32)
    b = a.copy()
    b[0] = 2
    assert testing.torch_assert_close(a, b, max_mismatched_ratio=0.001)
    with pytest.raises(AssertionError, match="1 of 1000"):
        testing.torch_assert_close(a, b, max_mismatched_ratio=0)


def test_tvm_is_a_name_and_no_more() -> None:
    compat.install()
    tvm = importlib.import_module("tvm")
    assert issubclass(tvm.TVMError, Exception)
    with pytest.raises(tvm.TVMError, match=r"tvm\.tir\.IntImm"):
        tvm.tir.IntImm("int32", 4)
