"""Views the caller's arrays as NumPy arrays over the same memory: NumPy arrays, torch tensors on the CPU, and other objects
that support DLPack.

This module never imports torch: if a caller has a torch tensor, torch is in ``sys.modules``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from tilelang_npu.errors import HostArray, TileError

if TYPE_CHECKING:
    import torch

Array = np.ndarray
Argument = np.ndarray | np.generic
"""What is bound to a parameter: the array of a tensor, or the NumPy scalar of a number."""


@cache
def _reinterpreted() -> Mapping[str, tuple[str, np.dtype]]:
    """Returns the torch types that NumPy does not have: by name, the torch type of the same width to view them as, and the type
    of ``ml_dtypes`` with the same bits."""
    import ml_dtypes

    return {
        "bfloat16": ("int16", np.dtype(ml_dtypes.bfloat16)),
        "float8_e4m3fn": ("uint8", np.dtype(ml_dtypes.float8_e4m3fn)),
        "float8_e5m2": ("uint8", np.dtype(ml_dtypes.float8_e5m2)),
        "float8_e8m0fnu": ("uint8", np.dtype(ml_dtypes.float8_e8m0fnu)),
    }


INT4_OF_TORCH = np.dtype([("int4", np.int8)])
"""The type of a NumPy array over the memory of a tensor of ``torch.int4``, which has one byte for each element."""


def _is_torch(value: object) -> TypeGuard[torch.Tensor]:
    module = sys.modules.get("torch")
    return module is not None and isinstance(value, module.Tensor)


def is_tensor(value: object) -> TypeGuard[HostArray]:
    """Whether ``value`` is a NumPy array, a torch tensor or another object that supports DLPack; a NumPy scalar is not."""
    return isinstance(value, np.ndarray) or _is_torch(value) or hasattr(value, "__dlpack__")


def as_array(value: Any) -> Array:
    """Returns a NumPy array over the memory of ``value``, with the same strides.

    Raises:
        TileError: T407 the memory cannot be accessed, because the tensor is on a device, or is sparse.
    """
    if isinstance(value, np.ndarray):
        return value
    if _is_torch(value):
        return _from_torch(value)
    try:
        exported: Array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        msg = f"a {type(value).__name__} cannot be read in place: {error}"
        raise TileError(msg, code="T407", help="pass a NumPy array or a torch tensor on the CPU") from None
    return exported


def _from_torch(tensor: torch.Tensor) -> Array:
    if tensor.device.type != "cpu" or str(tensor.layout) != "torch.strided":
        msg = f"the tensor is on {tensor.device} ({str(tensor.layout).removeprefix('torch.')})"
        raise TileError(msg, code="T407", help="kernels run on the CPU here: pass a dense tensor, such as tensor.cpu()")
    name = str(tensor.dtype).removeprefix("torch.")
    plain = tensor.detach()
    if name in _reinterpreted():
        bits, dtype = _reinterpreted()[name]
        viewed: Array = plain.view(getattr(sys.modules["torch"], bits)).numpy().view(dtype)
        return viewed
    if name == "float4_e2m1fn_x2":  # two elements in each byte
        pairs: Array = plain.view(sys.modules["torch"].uint8).numpy()
        return pairs
    if name == "int4":
        unpacked: Array = plain.view(sys.modules["torch"].int8).numpy().view(INT4_OF_TORCH)
        return unpacked
    array: Array = plain.numpy()
    return array


def like_caller(array: Array, inputs: tuple[object, ...]) -> Array | torch.Tensor:
    """Returns ``array`` as the kind of array that the caller uses, over the same memory.

    The result is a torch tensor if an argument is one. If no argument is an array, it is a torch tensor if torch has the device
    ``npu``, because such scripts expect tensors on this device. Otherwise it is the NumPy array itself.

    Args:
        array: a result of a kernel.
        inputs: the arguments that the caller passed.
    """
    module = sys.modules.get("torch")
    has_torch_input = any(_is_torch(value) for value in inputs)
    if module is None or (not has_torch_input and (any(is_tensor(value) for value in inputs) or not hasattr(module, "npu"))):
        return array
    made: torch.Tensor
    for name, (bits, dtype) in _reinterpreted().items():
        if array.dtype == dtype:
            made = module.from_numpy(array.view(np.dtype(bits))).view(getattr(module, name))
            return made
    made = module.from_numpy(array)
    return made
