"""Finds arguments of a call that share memory.

The compiler assumes that the parameters of a kernel do not alias: a load from one parameter does not wait for a store to
another, and can be executed before it. A call that passes one array for several parameters therefore runs a variant of the
kernel in which these parameters are one tensor, so that the dependences between their accesses are enforced. Arrays that partly
overlap are an error, because no variant could know which elements correspond. Arrays that are only read can overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.runtime.arguments.tensors import Argument, Array


def aliased_parameters(parameters: Sequence[Parameter], values: Sequence[Argument], accessed: Iterable[int],
                       written: Iterable[int]
                       ) -> dict[int, int]:
    """Returns the parameters that get the same array as an earlier parameter, if the kernel writes one of them.

    Args:
        parameters: the kernel's parameters, in order.
        values: the array or number for each parameter; arrays must be contiguous.
        accessed: the positions of the parameters that the kernel reads or writes.
        written: the positions of the parameters that the kernel writes.

    Returns:
        A map from the position of each such parameter to the first position with the same array.

    Raises:
        TileError: T420 two arrays share memory, and the kernel writes one of them, but they overlap only partly or have
            different shapes or element types.
    """
    found: dict[int, int] = {}
    arrays = {position: value for position in sorted(accessed)
              if isinstance(value := values[position], np.ndarray) and value.size}  # an array without elements has no memory
    for store in set(written).intersection(arrays):
        overlapping = [position for position in arrays if _common_bytes(arrays[position], arrays[store])]
        for other in overlapping:
            if not _is_one_tensor(parameters[other], arrays[other], parameters[store], arrays[store]):
                first, second, common = parameters[other], parameters[store], _common_bytes(arrays[other], arrays[store])
                msg = f"{first.name} and {second.name} share {common} bytes of memory, and the kernel writes {second.name}"
                raise TileError(msg, code="T420", location=user_location(),
                                notes=["the arrays of two parameters must not overlap, unless both are the same array with the "
                                       "same shape and type"],
                                help=f"pass a copy as {first.name} or {second.name}, or one array for both")
        found.update(dict.fromkeys(overlapping[1:], overlapping[0]))
    return dict(sorted(found.items()))


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _common_bytes(one: Array, other: Array) -> int:
    return max(0, min(_address(one) + one.nbytes, _address(other) + other.nbytes) - max(_address(one), _address(other)))


def _is_one_tensor(first: Parameter, one: Array, second: Parameter, other: Array) -> bool:
    """Whether one tensor can be passed for two parameters: their arrays are the same array, and their declared shapes agree."""
    symbolic = [any(not isinstance(size, int) for size in parameter.shape or ()) for parameter in (first, second)]
    return (_address(one) == _address(other) and one.dtype == other.dtype and one.shape == other.shape
            and (all(symbolic) or first.shape == second.shape))
