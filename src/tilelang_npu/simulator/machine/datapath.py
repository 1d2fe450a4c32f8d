"""Functions that generated code calls: data movements that change the layout, atomic stores, and conversions.

A matrix of R rows and C columns is stored in L1 in fractals ``[ceil(C / c0), ceil(R / 16), 16, c0]``, where c0 elements are 32
bytes, and in L0C in the same layout with c0 = 16. The functions see both as panels ``[blocks of columns, rows, c0]``, which is
a view of the fractals: a panel has all rows of c0 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from tilelang_npu.ops.recipes import made
from tilelang_npu.simulator.machine.memory import Array


def panels(matrix: Array, front: int = 0) -> Array:
    """Returns the panels of a fractal buffer: the view ``[..., C1, R1 * r0, c0]`` of an array ``[..., C1, R1, r0, c0]``.

    Args:
        matrix: the array; an array that already consists of panels is returned unchanged.
        front: the number of leading batch axes.

    Raises:
        ValueError: the fractals of a panel are not contiguous.
    """
    if matrix.ndim == front + 3:
        return matrix
    blocks, outer, inner, width = matrix.shape[front:]
    strides = matrix.strides[front:]
    if strides[1] != inner * strides[2] and outer != 1:
        msg = "the fractals of a buffer are not contiguous"
        raise ValueError(msg)
    return np.lib.stride_tricks.as_strided(matrix, (*matrix.shape[:front], blocks, outer * inner, width),
                                           (*matrix.strides[:front], strides[0], strides[2], strides[3]))


def nd2nz(dst: Array, src: Array) -> None:
    """Copies a matrix that is stored row by row into fractals; elements of the fractals beyond the matrix keep their values.

    The chip writes zeros after the last column, up to 32 bytes of a row (CANN, ``copy_gm_to_cbuf_multi_nd2nz``). Here these
    elements keep their values, because a copy to a slice of a tile leaves the rest of the tile as it is.

    Args:
        dst: the fractals ``[C1, R1, r0, c0]``.
        src: the matrix ``[rows, columns]``.
    """
    rows, columns = src.shape
    if not src.size:
        return
    target = _panels_of(dst)
    width = target.shape[2]
    whole, rest = divmod(columns, width)
    if whole:
        body = src[:, :whole * width].reshape(rows, whole, width)
        target[:whole, :rows] = body.transpose(1, 0, 2)
    if rest:
        target[whole, :rows, :rest] = src[:, whole * width:]


def nz2nd(dst: Array, src: Array) -> None:
    """Copies the first rows and columns of a matrix in fractals into a matrix that is stored row by row.

    Args:
        dst: the destination ``[rows, columns]``; the values are converted to its element type.
        src: the fractals ``[C1, R1, r0, c0]``.
    """
    rows, columns = dst.shape
    if not dst.size:
        return
    source = _panels_of(src)
    width = source.shape[2]
    whole, rest = divmod(columns, width)
    for block in range(whole):
        dst[:, block * width:(block + 1) * width] = source[block, :rows]
    if rest:
        dst[:, whole * width:] = source[whole, :rows, :rest]


def _panels_of(buffer: Array) -> Array:
    blocks, outer, inner, width = buffer.shape
    merged = buffer.reshape(blocks, outer * inner, width)
    if not np.shares_memory(merged, buffer):
        msg = "the fractals of a buffer are not contiguous"
        raise ValueError(msg)
    return merged


def transpose_fractals(dst: Array, src: Array) -> None:
    """Copies the transpose of a matrix in fractals into fractals; elements beyond the matrix become 0."""
    source, target = _panels_of(src), _panels_of(dst)
    matrix = source.transpose(1, 0, 2).reshape(source.shape[1], -1).T
    rows, columns = min(target.shape[1], matrix.shape[0]), min(target.shape[0] * target.shape[2], matrix.shape[1])
    whole = np.zeros((target.shape[1], target.shape[0] * target.shape[2]), matrix.dtype)
    whole[:rows, :columns] = matrix[:rows, :columns]
    target[...] = whole.reshape(target.shape[1], target.shape[0], target.shape[2]).transpose(1, 0, 2)


def load_padded(dst: Array, src: Array, left: int, right: int | None, value: float | None) -> None:
    """Copies rows with padding on both sides.

    Args:
        dst: the destination; elements after the right padding keep their values.
        src: the rows.
        left: the number of elements of padding before each row.
        right: the number of elements of padding after each row; None for all elements up to the end of the destination's row.
        value: the value of the padding; None for the first element of each row.
    """
    columns = src.shape[-1]
    end = left + columns
    last = dst.shape[-1] if right is None else min(dst.shape[-1], end + right)
    dst[..., left:end] = src
    pad = src[..., :1] if value is None else value
    if left:
        dst[..., :left] = pad
    if end < last:
        dst[..., end:last] = pad


def drain(source: Array, *, relu: bool, scale: float | None, convert: Callable[[Array], Array] | None) -> Array:
    """Returns the values of an accumulator as pipe FIX writes them: multiplied by a scale, then ReLU, then converted.

    Args:
        source: the values of the accumulator.
        relu: whether negative values become 0.
        scale: the factor; None for none.
        convert: converts the values to another type; None for none.
    """
    values = source if scale is None else source * np.float32(scale)
    if relu:
        values = np.maximum(values, 0)
    return values if convert is None else convert(values)


def fixpipe(dst: Array, src: Array, relu: bool, scale: float | None, convert: Callable[[Array], Array] | None,
            combine: Callable[[Array, Array], Array] | None) -> None:
    """Copies an accumulator in L0C to a destination as pipe FIX does.

    Args:
        dst: the destination: a matrix that is stored row by row (rank 2), or fractals (rank 4).
        src: the accumulator: rank 2, or fractals of rank 4.
        relu, scale, convert: as for ``drain``.
        combine: combines the values in the destination with the new ones, for an atomic store; None for a plain store.
    """
    if dst.ndim == 4 and src.ndim == 4:
        blocks, outer = min(dst.shape[0], src.shape[0]), min(dst.shape[1], src.shape[1])
        target, values = dst[:blocks, :outer], drain(src[:blocks, :outer], relu=relu, scale=scale, convert=convert)
        target[...] = values if combine is None else combine(target, values)
        return
    values = drain(src, relu=relu, scale=scale, convert=convert)
    if src.ndim == 2:
        values = values[:dst.shape[0], :dst.shape[1]]
    elif combine is not None:
        held = np.empty(dst.shape, values.dtype)
        nz2nd(held, values)
        values = held
    else:
        nz2nd(dst, values)
        return
    dst[...] = values if combine is None else combine(dst, values)


def fixpipe_to_all(parts: Sequence[Array], by_rows: bool, src: Array, relu: bool, scale: float | None,
                   convert: Callable[[Array], Array] | None) -> None:
    """Copies an accumulator in L0C to several destinations that are stored row by row, an equal part to each.

    Args:
        parts: the destinations.
        by_rows: whether the rows of the accumulator are divided among the destinations; if not, the columns are.
        src: the accumulator.
        relu, scale, convert: as for ``drain``.
    """
    axis, first = 0 if by_rows else 1, parts[0]
    sizes = [size * (len(parts) if place == axis else 1) for place, size in enumerate(first.shape)]
    whole = np.empty(sizes, first.dtype)
    fixpipe(whole, src, relu, scale, convert, None)
    for part, values in zip(parts, np.split(whole, len(parts), axis), strict=True):
        part[...] = values


def rows_of(panels: Array) -> Array | None:
    """Returns the view ``[..., rows, columns]`` of panels ``[..., blocks of columns, rows, c0]``; None if no view exists.

    A view exists if the columns of the next panel follow those of the panel in each row in memory.
    """
    *batch, blocks, rows, width = panels.shape
    if panels.strides[-3] != width * panels.strides[-1]:
        return None
    return panels.swapaxes(-2, -3).reshape(*batch, rows, blocks * width)


Combine = Callable[[Array, Array], Array]


def _wrapping(ufunc: np.ufunc) -> Combine:
    def combine(old: Array, new: Array) -> Array:
        if old.dtype.kind in "iub":
            return np.asarray(ufunc(old, new.astype(old.dtype)))
        return np.asarray(ufunc(old.astype(np.float32), new.astype(np.float32)))

    return combine


ATOMICS: dict[str, Combine] = {
    "add": made(_wrapping, np.add), "max": made(_wrapping, np.maximum), "min": made(_wrapping, np.minimum),
    "umax": made(_wrapping, np.maximum), "umin": made(_wrapping, np.minimum),
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
"""How a store with ``atomic`` combines the value in memory with the stored value."""


def store_atomic(dst: Array, src: Array, combine: Combine) -> None:
    """Combines values with those in memory, and stores the results.

    Args:
        dst: the values in memory, which are overwritten.
        src: the values to combine with them.
        combine: one of ``ATOMICS``; it computes floats in f32, and the result is rounded once to the type of ``dst``.
    """
    np.copyto(dst, combine(dst, src), casting="unsafe")


_FEW = 1024
"""Elements up to which NumPy's own conversion is as fast."""
_F16 = np.int32(-0x70002000)
"""Bits of a sign-extended f16, shifted by 13, that matter: the sign, and exponent and mantissa at their places in an f32."""
_REBIAS = np.float32(2.0**112)
"""Difference of the exponent biases: 127 in f32, 15 in f16."""
_NONE, _NONE_BELOW = np.int32(0x0F800000), np.uint32(0x8F800000)
"""The least bit patterns of infinities and NaN, above and below zero."""


def widen(values: Array, target: Array) -> None:
    """Copies values into an f32 array of the same shape, faster than NumPy for f16 and bf16.

    Args:
        values: the values, of any type.
        target: the f32 array.
    """
    if values.size < _FEW or target.strides[-1] != 4 or values.dtype not in _WHOLE:
        target[...] = values
        return
    signed, bits = target.view(np.int32), target.view(np.uint32)
    if values.dtype != np.float16:
        bits[...] = values.view(np.uint16)
        np.left_shift(bits, 16, out=bits)
        return
    signed[...] = values.view(np.int16)
    np.left_shift(signed, 13, out=signed)
    np.bitwise_and(signed, _F16, out=signed)
    if signed.max() >= _NONE or bits.max() >= _NONE_BELOW:
        target[...] = values
    else:
        np.multiply(target, _REBIAS, out=target)


_WHOLE = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
"""Types whose bits are a part of the bits of an f32."""
