"""Arguments of a call that lie in the same memory.

The compiler assumes that the parameters of a kernel are different arrays: a load of one may pass a store to another, and does
not wait for it. A call in which one array stands for several parameters runs a variant of the kernel, in which these parameters
are one tensor, so that order and waits are those of one tensor. Arrays that partly overlap are refused: no variant could know
which element of one array is which element of the other. Arrays that are only read may overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.runtime.arguments.tensors import Array


def aliased_parameters(parameters: Sequence[Parameter], values: Sequence[Any], accessed: Iterable[int], written: Iterable[int]
                       ) -> dict[int, int]:
    """Returns the parameters that have the array of an earlier parameter, where one of the two is written.

    Args:
        parameters: the kernel's parameters, in order.
        values: the array or number of each; arrays are contiguous.
        accessed: positions that the kernel reads or writes.
        written: positions that it writes.

    Returns:
        By position, the first position with the same array.

    Raises:
        TileError: T420 two arrays partly overlap, or are one array in two forms, and one of them is written.
    """
    found: dict[int, int] = {}
    arrays = [position for position in sorted(accessed) if isinstance(values[position], np.ndarray)]
    for store in set(written).intersection(arrays):
        overlapping = [position for position in arrays if _common_bytes(values[position], values[store])]
        for other in overlapping:
            if not _is_one_tensor(parameters[other], values[other], parameters[store], values[store]):
                first, second, common = parameters[other], parameters[store], _common_bytes(values[other], values[store])
                msg = f"{first.name} and {second.name} share {common} bytes of memory, and the kernel writes {second.name}"
                raise TileError(msg, code="T420", location=user_location(),
                                notes=["two parameters are different arrays, or one array of one shape and type"],
                                help=f"pass a copy as {first.name} or {second.name}, or one array for both")
        found.update(dict.fromkeys(overlapping[1:], overlapping[0]))
    return dict(sorted(found.items()))


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _common_bytes(one: Array, other: Array) -> int:
    return max(0, min(_address(one) + one.nbytes, _address(other) + other.nbytes) - max(_address(one), _address(other)))


def _is_one_tensor(first: Parameter, one: Array, second: Parameter, other: Array) -> bool:
    """Whether one tensor can stand for two parameters: their arrays are the same array, and their declared shapes agree."""
    symbolic = [any(not isinstance(size, int) for size in parameter.shape or ()) for parameter in (first, second)]
    return (_address(one) == _address(other) and one.dtype == other.dtype and one.shape == other.shape
            and (all(symbolic) or first.shape == second.shape))
