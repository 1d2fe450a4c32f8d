"""NumPy implementations of the vector ops that change the shape or the order of data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilelang_npu.ops.rounding import Array, Operand


class OutsideError(IndexError):
    """An element of an operand is used as an index or an offset, and is out of bounds."""


def inside(positions: Array, count: int, what: str = "index") -> Array:
    """Checks that all positions are from 0 to ``count - 1``, and returns the positions as int64.

    Args:
        positions: the indices or offsets.
        count: the number of valid positions.
        what: the name of a position in the message, such as ``index``.

    Raises:
        OutsideError: a position is negative, or not below ``count``.
    """
    found = positions.astype(np.int64)
    wrong = (found < 0) | (found >= count)
    if wrong.any():
        first = int(np.argmax(wrong))
        msg = f"{what} {found.flat[first]}, at position {first}, is out of bounds: valid are 0 to {count - 1}"
        raise OutsideError(msg)
    return found


def pack_int4(values: Array) -> Array:
    """Returns pairs of int4 elements in bytes: int8 of half the size along the last axis.

    The lower four bits of a byte are the element with the even index.

    Args:
        values: integers from -8 to 7, an even number of them along the last axis.
    """
    whole = values.astype(np.int8)
    pairs: Array = np.bitwise_or(whole[..., ::2] & 15, whole[..., 1::2] << 4)
    return pairs


def unpack_int4(pairs: Array) -> Array:
    """Returns the int4 elements of bytes that :func:`pack_int4` made, as int8."""
    found = np.empty((*pairs.shape[:-1], 2 * pairs.shape[-1]), np.int8)
    np.right_shift(np.left_shift(pairs, 4), 4, out=found[..., ::2])
    np.right_shift(pairs, 4, out=found[..., 1::2])
    return found


_FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
"""The magnitudes of float4_e2m1fn by their three bits (OCP Microscaling Formats, MX specification 1.0)."""


def unpack_float4(pairs: Array) -> Array:
    """Returns the float4_e2m1fn elements of bytes as float32, twice as many along the last axis.

    The lower four bits of a byte are the element with the even index; the highest of the four bits is the sign.
    """
    bits = np.ascontiguousarray(pairs).view(np.uint8)
    table = np.concatenate([_FLOAT4, -_FLOAT4])
    found = np.empty((*bits.shape[:-1], 2 * bits.shape[-1]), np.float32)
    found[..., ::2], found[..., 1::2] = table[bits & 15], table[bits >> 4]
    return found


def arange(dst: Array, offset: int, strides: Sequence[int]) -> None:
    """Writes ``dst[i, j, ...] = offset + i * strides[0] + j * strides[1] + ...``."""
    total = np.asarray(offset, np.int64)
    for axis, (size, stride) in enumerate(zip(dst.shape, strides, strict=True)):
        shape = [1] * dst.ndim
        shape[axis] = size
        total = total + (np.arange(size, dtype=np.int64) * stride).reshape(shape)
    np.copyto(dst, total, casting="unsafe")


def pad(dst: Array, src: Array, low: Sequence[int], value: Operand) -> None:
    """Writes ``src`` into ``dst``, with its first element at the indices ``low``, and ``value`` into all other elements."""
    inside = src.copy()
    dst[...] = value
    dst[tuple(slice(start, start + size) for start, size in zip(low, src.shape, strict=True))] = inside


def gather(dst: Array, src: Array, indices: Array, axis: int) -> None:
    """Writes ``dst[..., i, ...] = src[..., indices[..., i, ...], ...]``, where ``i`` is the index along ``axis``.

    Raises:
        OutsideError: an index is out of bounds.
    """
    dst[...] = np.take_along_axis(src, inside(indices, src.shape[axis]), axis)


def pack(dst: Array, count: Array, src: Array, mask: Array) -> None:
    """Writes the elements of ``src`` whose mask is not 0 to the front of ``dst``, and the number of these to ``count``."""
    chosen = src[mask.astype(bool)]
    dst.reshape(-1)[:chosen.size] = chosen
    count[...] = chosen.size


_CUMULATE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def cumulate(dst: Array, src: Array, kind: str, axis: int, reverse: bool) -> None:
    """Writes the cumulative sum, product, maximum or minimum along an axis; f16 and bf16 are accumulated in f32.

    Args:
        dst: the destination, of the shape of ``src``. Each element is rounded to its element type once.
        src: the source.
        kind: ``sum``, ``prod``, ``max`` or ``min``.
        axis: the axis.
        reverse: whether the accumulation begins at the last element of the axis.
    """
    values = np.flip(src, axis) if reverse else src
    narrow = values.dtype.itemsize < 4 and values.dtype.kind not in "iub"
    carried = np.float32 if narrow else dst.dtype if kind == "sum" else values.dtype
    result = _CUMULATE[kind].accumulate(values.astype(carried), axis=axis, dtype=carried)
    np.copyto(dst, np.flip(result, axis) if reverse else result, casting="unsafe")


def sort(dst: Array, indices: Array | None, src: Array, descending: bool, axis: int) -> None:
    """Writes ``src`` sorted along an axis to ``dst``; equal elements keep their order.

    If ``indices`` is not None, the position that each element of ``dst`` had along the axis of ``src`` is written to it.
    """
    values = src.astype(np.float32) if src.dtype.kind not in "iubf" else src
    if descending:
        order = src.shape[axis] - 1 - np.flip(np.argsort(np.flip(values, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(values, axis=axis, kind="stable")
    dst[...] = np.take_along_axis(src, order, axis)
    if indices is not None:
        np.copyto(indices, order, casting="unsafe")


def multiply_extended(low: Array, high: Array, a: Array, b: Array) -> None:
    """Writes the low and the high half of ``a * b``, a product with twice as many bits as the factors."""
    bits = 8 * a.dtype.itemsize
    product = a.astype(np.int64) * b.astype(np.int64)
    low[...] = product.astype(low.dtype)
    np.copyto(high, product >> bits, casting="unsafe")
