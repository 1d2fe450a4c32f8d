"""``tilelang.carver.arch.driver`` describes the chip in the terms of a GPU."""

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


def test_the_driver_describes_the_chip() -> None:
    driver: Any = import_module("tilelang.carver.arch.driver")
    assert (driver.get_num_sms(), driver.get_device_name()) == (24, "Ascend910B2")
    assert driver.get_shared_memory_per_block() == driver.get_max_dynamic_shared_size_bytes()
    assert 100 < driver.get_shared_memory_per_block(format="kb") < 192


def test_a_unit_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    driver: Any = import_module("tilelang.carver.arch.driver")
    with pytest.raises(ValueError, match="format='gb' is not one of bytes, kb, mb"):
        driver.get_shared_memory_per_block(format="gb")


def test_the_properties_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    driver: Any = import_module("tilelang.carver.arch.driver")
    found = driver.get_cuda_device_properties()
    assert (found.name, found.multi_processor_count) == (driver.get_device_name(), driver.get_num_sms())
    assert found.shared_memory_per_block == driver.get_shared_memory_per_block()
