"""Foreign arrays as NumPy arrays over the same memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilelang_npu import TileError
from tilelang_npu.runtime.arguments.tensors import as_array, is_tensor, like_caller


class Exporting:
    """An array of some other library, known by DLPack only."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_dlpack_shares_memory() -> None:
    source = np.arange(6, dtype=np.float32)
    shared = as_array(Exporting(source))
    source[3] = 10
    assert shared[3] == 10


def test_what_cannot_be_exported_is_refused() -> None:
    class Elsewhere(Exporting):
        def __dlpack_device__(self) -> Any:
            return (2, 0)

        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("on a device")

    with pytest.raises(TileError) as caught:
        as_array(Elsewhere(np.zeros(3)))
    assert caught.value.code == "T407"


def test_numbers_are_no_tensors() -> None:
    assert not any(is_tensor(value) for value in (1, 1.0, None, [1], np.float32(1)))
    assert is_tensor(np.zeros(()))


def test_results_are_of_the_callers_kind() -> None:
    array = np.zeros(3)
    assert like_caller(array, (np.zeros(3), 4)) is array


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is an optional package; its tests need it")


@pytest.mark.parametrize("name", ["float16", "float32", "bfloat16", "int8", "uint8", "int32", "int64", "bool", "float8_e4m3fn"])
def test_torch_tensors_share_memory_both_ways(torch: Any, name: str) -> None:
    tensor = torch.zeros(4, 3, dtype=getattr(torch, name))
    array = as_array(tensor)
    assert array.shape == (4, 3)
    array[1, 2] = 1
    assert float(tensor[1, 2]) == 1
    back = like_caller(array, (tensor,))
    assert back.dtype == tensor.dtype
    assert back.data_ptr() == tensor.data_ptr()


def test_torch_gradients_and_strides(torch: Any) -> None:
    tensor = torch.zeros(4, 3, requires_grad=True)
    assert as_array(tensor).dtype == np.float32
    assert not as_array(tensor.t()).flags.c_contiguous
    assert as_array(torch.zeros(2, dtype=torch.bfloat16)).dtype == ml_dtypes.bfloat16


def test_torch_on_a_device_is_refused(torch: Any) -> None:
    with pytest.raises(TileError) as caught:
        as_array(torch.zeros(3, device="meta"))
    assert caught.value.code == "T407"


def test_a_namespace_called_torch_is_not_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", SimpleNamespace(Tensor=type("Tensor", (), {})))
    assert like_caller(np.zeros(2), (np.zeros(2),)).dtype == np.float64
