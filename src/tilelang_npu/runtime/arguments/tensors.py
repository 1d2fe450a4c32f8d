"""Views of the caller's arrays as NumPy arrays over the same memory: NumPy, torch on the CPU, and everything with DLPack.

torch is never imported here: if a caller has a torch tensor, torch is in ``sys.modules``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from tilelang_npu.errors import TileError

Array = np.ndarray[Any, Any]


@cache
def _reinterpreted() -> Mapping[str, tuple[str, np.dtype[Any]]]:
    """Returns the torch types that NumPy does not have: by name, the torch type of the same width to view them as, and the type
    of ``ml_dtypes`` with the same bits."""
    import ml_dtypes

    return {
        "bfloat16": ("int16", np.dtype(ml_dtypes.bfloat16)),
        "float8_e4m3fn": ("uint8", np.dtype(ml_dtypes.float8_e4m3fn)),
        "float8_e5m2": ("uint8", np.dtype(ml_dtypes.float8_e5m2)),
        "float8_e8m0fnu": ("uint8", np.dtype(ml_dtypes.float8_e8m0fnu)),
    }


def _is_torch(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_tensor(value: object) -> bool:
    """Whether ``value`` is an array of any kind. NumPy scalars are not arrays."""
    return isinstance(value, np.ndarray) or _is_torch(value) or hasattr(value, "__dlpack__")


def as_array(value: Any) -> Array:
    """Returns a NumPy array over the memory of ``value``, with the same strides.

    Raises:
        TileError: T407 the memory cannot be reached: the tensor is on a device, or sparse.
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


def _from_torch(tensor: Any) -> Array:
    if tensor.device.type != "cpu" or str(tensor.layout) != "torch.strided":
        msg = f"the tensor is on {tensor.device} ({str(tensor.layout).removeprefix('torch.')})"
        raise TileError(msg, code="T407", help="kernels run on the CPU here: pass a dense tensor, .cpu() makes one")
    name = str(tensor.dtype).removeprefix("torch.")
    plain = tensor.detach()
    if name in _reinterpreted():
        bits, dtype = _reinterpreted()[name]
        viewed: Array = plain.view(getattr(sys.modules["torch"], bits)).numpy().view(dtype)
        return viewed
    array: Array = plain.numpy()
    return array


def like_caller(array: Array, inputs: tuple[object, ...]) -> Any:
    """Returns ``array`` as the kind of array that the caller uses: a torch tensor over the same memory if an input is one.

    If no input is an array, the result is a tensor if torch has a device ``npu``: such scripts expect tensors on this device.
    """
    torch: Any = sys.modules.get("torch")
    has_torch_input = any(_is_torch(value) for value in inputs)
    if not has_torch_input and (any(is_tensor(value) for value in inputs) or not hasattr(torch, "npu")):
        return array
    for name, (bits, dtype) in _reinterpreted().items():
        if array.dtype == dtype:
            return torch.from_numpy(array.view(np.dtype(bits))).view(getattr(torch, name))
    return torch.from_numpy(array)
