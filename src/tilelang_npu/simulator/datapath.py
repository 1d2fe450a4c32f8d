"""What the generated code calls: moves that change the layout, and matrix products on the real layouts.

A matrix [R, C] in L1 is ``[ceil(C / c0), ceil(R / 16), 16, c0]`` with c0 = 32 bytes, in L0C the same with c0 = 16. Both
are read here as panels ``[blocks of columns, rows, c0]``, which is a view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FRACTAL = 16
"""Rows of a fractal, and columns of one in L0C."""
EXACT_DEPTH = 1024
"""Depth up to which products of int8 sum exactly in f32: 1024 * 127 * 127 < 2**24."""
HF32_MASK = np.uint32(0xFFFFF000)
"""HF32 keeps 11 bits of an f32's mantissa."""


def panels(matrix: Array) -> Array:
    """A fractal buffer ``[C1, R1, r0, c0]`` as ``[C1, R1 * r0, c0]``, a view."""
    if matrix.ndim == 3:
        return matrix
    blocks, outer, inner, width = matrix.shape
    strides = matrix.strides
    if strides[1] != inner * strides[2] and outer != 1:
        msg = "the fractals of a buffer do not lie one after another"
        raise ValueError(msg)
    return np.ndarray((blocks, outer * inner, width), matrix.dtype, matrix, 0, (strides[0], strides[2], strides[3]))


def nd2nz(dst: Array, src: Array) -> None:
    """Rows from GM into fractals; what the rows do not reach stays as it is."""
    rows, columns = src.shape
    target = _panels_of(dst)
    width = target.shape[2]
    whole, rest = divmod(columns, width)
    if whole:
        body = src[:, :whole * width].reshape(rows, whole, width)
        target[:whole, :rows] = body.transpose(1, 0, 2)
    if rest:
        target[whole, :rows, :rest] = src[:, whole * width:]


def nz2nd(dst: Array, src: Array) -> None:
    """Fractals into rows, with the conversion that the element types ask for."""
    rows, columns = dst.shape
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
        msg = "the fractals of a buffer do not lie one after another"
        raise ValueError(msg)
    return merged


def load_padded(dst: Array, src: Array, left: int, right: int | None, value: Any) -> None:
    """A load whose rows get elements before and behind them; ``value`` None repeats the first element of each row."""
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
    """The values that FIX makes of an accumulator: scaled, rectified, converted."""
    values = source if scale is None else source * np.float32(scale)
    if relu:
        values = np.maximum(values, 0)
    return values if convert is None else convert(values)


def fixpipe(dst: Array, src: Array, relu: bool, scale: float | None, convert: Callable[[Array], Array] | None,
            combine: Callable[[Array, Array], Array] | None) -> None:
    """L0C to rows in GM (rank 2) or to fractals (rank 4), with everything that FIX can do on the way."""
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


def hf32(values: Array) -> Array:
    """f32 rounded to HF32, to nearest (halves up)."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + np.uint32(0x800)) & HF32_MASK).view(np.float32)


class Product:
    """One mmadL1: keeps the f32 copies of its operands between calls, so that nothing is allocated while a kernel runs.

    Args:
        a, b: shapes of the operands' buffers, rank 4 (fractals) or rank 2 (rows).
        c: shape of the accumulator's buffer.
        a_transposed: the left operand is stored as [K, M].
        b_transposed: the right operand is stored as [N, K].
        wide: round f32 operands to HF32.
        exact: integer operands and accumulator.
    """

    def __init__(self, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...], *, a_transposed: bool,
                 b_transposed: bool, wide: bool, exact: bool) -> None:
        self._a, self._a_fill, self._a_cast = _side(a)
        self._b, self._b_fill, self._b_cast = _side(b)
        self._a_matrix = self._a.T if a_transposed else self._a
        self._b_matrix = self._b.T if b_transposed else self._b
        self._a_transposed, self._b_transposed = a_transposed, b_transposed
        # The right operand as [blocks of 16 columns, K, 16]: its products are L0C's panels, with nothing to rearrange.
        depth, columns = self._b_matrix.shape
        whole = columns // FRACTAL * FRACTAL
        self._b_panels = self._b_matrix[:, :whole].reshape(depth, whole // FRACTAL, FRACTAL).transpose(1, 0, 2)
        aligned = len(b) == 4 and b[3] == FRACTAL and not b_transposed
        if aligned:
            self._b_panels = np.empty((b[0], b[1] * b[2], FRACTAL), np.float32)
            self._b_fill = self._b_panels
            self._b_cast = None
        self._flat = len(c) == 2
        rows = c[0] if self._flat else c[1] * c[2]
        self._out = np.empty((c[1] if self._flat else c[0], rows, FRACTAL), np.float32)
        self._rows_out = np.empty((rows, c[-1]), np.float32) if self._flat else None
        self._wide, self._exact = wide, exact

    def __call__(self, a: Array, b: Array, c: Array, init: bool, m: int, k: int, n: int, bias: Array | None = None) -> None:
        """``c = a @ b`` or ``c += a @ b`` on the first m rows, k terms and n columns (whole fractals of columns)."""
        _fill(a, self._a_fill, self._a_cast, self._a, self._wide)
        _fill(b, self._b_fill, self._b_cast, self._b, self._wide)
        left = self._a_matrix[:m, :k]
        if self._rows_out is not None:
            target, out = c[:m, :n], self._rows_out[:m, :n]
            right = self._b_matrix[:k, :n]
        else:
            blocks = -(-n // FRACTAL)
            target, out = panels(c)[:blocks, :m], self._out[:blocks, :m]
            right = self._b_panels[:blocks, :k]
        if self._exact:
            _exact_product(left, right, target, init=init)
        elif init:
            np.matmul(left, right, out=target)
        else:
            np.matmul(left, right, out=out)
            np.add(target, out, out=target)
        if bias is not None and init:
            row = bias.reshape(-1)[:n].astype(target.dtype)
            if target.ndim == 3:
                padded = np.zeros(target.shape[0] * FRACTAL, target.dtype)
                padded[:n] = row
                target += padded.reshape(-1, 1, FRACTAL)
            else:
                target += row


def _side(shape: tuple[int, ...]) -> tuple[Array, Array, Array | None]:
    """The f32 matrix of an operand, the view of it that takes its panels, and the f32 panels that are cast first."""
    if len(shape) == 2:
        matrix = np.empty(shape, np.float32)
        return matrix, matrix, None
    blocks, outer, inner, width = shape
    matrix = np.empty((outer * inner, blocks * width), np.float32)
    view = matrix.reshape(outer * inner, blocks, width).transpose(1, 0, 2)
    return matrix, view, np.empty((blocks, outer * inner, width), np.float32)


def _fill(source: Array, view: Array, cast: Array | None, matrix: Array, wide: bool) -> None:
    """Put an operand into its f32 matrix. Casting first and moving whole runs then is faster than both at once."""
    values = panels(source) if source.ndim == 4 else source
    if wide:
        view[...] = hf32(values)
    elif cast is None:
        _widen(values, view)
    else:
        _widen(values, cast)
        run = np.dtype((np.void, 4 * cast.shape[2]))
        blocks, rows, width = cast.shape
        moved = np.ndarray((blocks, rows), run, cast, 0, cast.strides[:2])
        np.ndarray((blocks, rows), run, matrix, 0, (4 * width, matrix.strides[0]))[...] = moved


_HALF = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""Every f16 number as f32: a lookup is faster than NumPy's conversion."""
_LARGE = 1024
"""Elements from which on the lookup pays."""


def _widen(values: Array, target: Array) -> None:
    """Copy into an f32 array."""
    if values.dtype == np.float16 and values.size >= _LARGE and values.flags.c_contiguous and target.flags.c_contiguous:
        np.take(_HALF, values.view(np.uint16), out=target, mode="clip")
    else:
        target[...] = values


def _exact_product(left: Array, right: Array, target: Array, *, init: bool) -> None:
    depth = left.shape[1]
    for start in range(0, depth, EXACT_DEPTH):
        stop = min(depth, start + EXACT_DEPTH)
        part = np.matmul(left[:, start:stop], right[..., start:stop, :]).astype(target.dtype)
        if init and start == 0:
            target[...] = part
        else:
            np.add(target, part, out=target)


Combine = Callable[[Array, Array], Array]


def _wrapping(ufunc: np.ufunc) -> Combine:
    def combine(old: Array, new: Array) -> Array:
        if old.dtype.kind in "iub":
            return np.asarray(ufunc(old, new.astype(old.dtype)))
        return np.asarray(ufunc(old.astype(np.float32), new.astype(np.float32)))

    return combine


ATOMICS: dict[str, Combine] = {
    "add": _wrapping(np.add), "max": _wrapping(np.maximum), "min": _wrapping(np.minimum),
    "umax": _wrapping(np.maximum), "umin": _wrapping(np.minimum),
    "and": lambda old, new: np.bitwise_and(old, new), "or": lambda old, new: np.bitwise_or(old, new),
    "xor": lambda old, new: np.bitwise_xor(old, new)}
"""What a store with ``atomic`` makes of what is there and what comes."""


def store_atomic(dst: Array, src: Array, combine: Combine) -> None:
    """A store that combines with what is there, rounded once."""
    np.copyto(dst, combine(dst, src), casting="unsafe")
