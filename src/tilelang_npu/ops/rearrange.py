"""The vector ops that change the shape or the order of data, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class OutsideError(IndexError):
    """An index or an offset in data is out of bounds."""


def inside(positions: Array, count: int, what: str = "index") -> Array:
    """Returns ``positions`` as int64.

    Raises:
        OutsideError: a position is negative, or not below ``count``.
    """
    found = positions.astype(np.int64)
    wrong = (found < 0) | (found >= count)
    if wrong.any():
        first = int(np.argmax(wrong))
        msg = f"{what} {found.flat[first]}, at place {first}, is not one of 0 to {count - 1}"
        raise OutsideError(msg)
    return found


def arange(dst: Array, offset: int, strides: Sequence[int]) -> None:
    """``dst[i, j, ...] = offset + i * strides[0] + j * strides[1] + ...``"""
    total = np.asarray(offset, np.int64)
    for axis, (size, stride) in enumerate(zip(dst.shape, strides, strict=True)):
        shape = [1] * dst.ndim
        shape[axis] = size
        total = total + (np.arange(size, dtype=np.int64) * stride).reshape(shape)
    np.copyto(dst, total, casting="unsafe")


def pad(dst: Array, src: Array, low: Sequence[int], value: Any) -> None:
    """Writes ``src`` into ``dst`` at position ``low``, and ``value`` elsewhere."""
    inside = src.copy()
    dst[...] = value
    dst[tuple(slice(start, start + size) for start, size in zip(low, src.shape, strict=True))] = inside


def gather(dst: Array, src: Array, indices: Array, axis: int) -> None:
    """``dst[..., i, ...] = src[..., indices[..., i, ...], ...]`` along one axis.

    Raises:
        OutsideError: an index is out of bounds.
    """
    dst[...] = np.take_along_axis(src, inside(indices, src.shape[axis]), axis)


def pack(dst: Array, count: Array, src: Array, mask: Array) -> None:
    """Writes the elements whose mask is set to the front of ``dst``, and their number to ``count``."""
    chosen = src[mask.astype(bool)]
    dst.reshape(-1)[:chosen.size] = chosen
    count[...] = chosen.size


_CUMULATE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def cumulate(dst: Array, src: Array, kind: str, axis: int, reverse: bool) -> None:
    """Cumulative sum, product, maximum or minimum; f16 and bf16 are accumulated in f32 and rounded at the end."""
    values = np.flip(src, axis) if reverse else src
    narrow = values.dtype.itemsize < 4 and values.dtype.kind not in "iub"
    carried = np.float32 if narrow else dst.dtype if kind == "sum" else values.dtype
    result = _CUMULATE[kind].accumulate(values.astype(carried), axis=axis, dtype=carried)
    np.copyto(dst, np.flip(result, axis) if reverse else result, casting="unsafe")


def sort(dst: Array, indices: Array | None, src: Array, descending: bool, axis: int) -> None:
    """Sorts values along an axis, stably; ``indices``, if given, gets their original positions."""
    values = src.astype(np.float32) if src.dtype.kind not in "iubf" else src
    if descending:
        order = src.shape[axis] - 1 - np.flip(np.argsort(np.flip(values, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(values, axis=axis, kind="stable")
    dst[...] = np.take_along_axis(src, order, axis)
    if indices is not None:
        np.copyto(indices, order, casting="unsafe")


def multiply_extended(low: Array, high: Array, a: Array, b: Array) -> None:
    """Writes the low and the high halves of products of twice the width."""
    bits = 8 * a.dtype.itemsize
    product = a.astype(np.int64) * b.astype(np.int64)
    low[...] = product.astype(low.dtype)
    np.copyto(high, product >> bits, casting="unsafe")
