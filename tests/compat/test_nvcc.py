"""``tilelang.contrib.nvcc``: the compute capability that scripts get."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tilelang_npu import compat
from tilelang_npu.runtime.settings import environment


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.GPU.name, raising=False)
    compat.install()


@pytest.mark.parametrize(("reported", "capability"), [("1", (8, 0)), ("9.0", (9, 0)), ("10.3", (10, 3))])
def test_the_compute_capability_is_what_the_option_says(reported: str, capability: tuple[int, int],
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.GPU.name, reported)
    nvcc: Any = import_module("tilelang.contrib.nvcc")
    assert nvcc.parse_compute_version(nvcc.get_target_compute_version()) == capability
    assert nvcc.is_hopper() == (capability == (9, 0))
    assert not nvcc.have_tma()


def test_a_version_without_a_second_number_has_0() -> None:
    nvcc: Any = import_module("tilelang.contrib.nvcc")
    assert nvcc.parse_compute_version("9") == (9, 0)
    assert nvcc.get_cuda_version() >= (12, 0)
