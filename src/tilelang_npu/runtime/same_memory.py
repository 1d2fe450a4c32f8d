"""Arguments of a call that lie in the same memory.

The compiler takes the parameters of a kernel for different arrays: a load of one may pass a store to another, and needs no
wait for it. A call in which one array stands for several parameters runs a compile in which these are one tensor, so that order
and waits are those of one tensor. Arrays that share a part of their memory are refused: no compile knows which element of the
one is which of the other. Arrays that are only read may share what they like.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.runtime.tensors import Array

__all__ = ["same_arrays"]


def same_arrays(parameters: Sequence[Parameter], values: Sequence[Any], touched: Iterable[int], written: Iterable[int]
                ) -> dict[int, int]:
    """Which parameters have the array of an earlier one, where one of the two is written.

    Args:
        parameters: of the kernel, in order.
        values: the array or number of each, arrays without gaps.
        touched: positions that the kernel reads or writes.
        written: positions that it writes.

    Returns:
        By position, the first position with the same array.

    Raises:
        TileError: T420 two arrays share a part of their memory, and one of them is written.
    """
    found: dict[int, int] = {}
    arrays = [position for position in sorted(touched) if isinstance(values[position], np.ndarray)]
    for store in set(written).intersection(arrays):
        sharing = [position for position in arrays if _common(values[position], values[store])]
        for other in sharing:
            if not _alike(parameters[other], values[other], parameters[store], values[store]):
                raise _overlapping(parameters[other], parameters[store], _common(values[other], values[store]))
        found.update(dict.fromkeys(sharing[1:], sharing[0]))
    return dict(sorted(found.items()))


def _start(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _common(one: Array, other: Array) -> int:
    """Bytes that both arrays have."""
    return max(0, min(_start(one) + one.nbytes, _start(other) + other.nbytes) - max(_start(one), _start(other)))


def _alike(first: Parameter, one: Array, second: Parameter, other: Array) -> bool:
    """Whether one tensor can stand for both: it is one array, and the kernel takes both in one form."""
    symbolic = [any(not isinstance(size, int) for size in parameter.shape or ()) for parameter in (first, second)]
    return (_start(one) == _start(other) and one.dtype == other.dtype and one.shape == other.shape
            and (all(symbolic) or first.shape == second.shape))


def _overlapping(first: Parameter, second: Parameter, common: int) -> TileError:
    msg = f"{first.name} and {second.name} share {common} bytes of memory, and the kernel writes {second.name}"
    return TileError(msg, code="T420", location=user_location(),
                     notes=["two parameters are different arrays, or one array of one shape and type"],
                     help=f"pass a copy as {first.name} or {second.name}, or one array for both")
