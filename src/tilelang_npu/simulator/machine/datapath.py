"""Functions that generated code calls: data movements that change the layout, and matrix products on the hardware's layouts.

A matrix of R rows and C columns is stored in L1 in fractals ``[ceil(C / c0), ceil(R / 16), 16, c0]``, where c0 elements are 32
bytes, and in L0C in the same layout with c0 = 16. The functions see both as panels ``[blocks of columns, rows, c0]``, which is
a view of the fractals: a panel has all rows of c0 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tilelang_npu.ops.products import STEP, add_product, apart
from tilelang_npu.ops.rearrange import unpack_int4
from tilelang_npu.ops.recipes import made
from tilelang_npu.simulator.machine.memory import Array

FRACTAL = 16
"""Number of rows of a fractal, and number of columns of a fractal in L0C."""
EXACT_DEPTH = 1024
"""Number of products of two int8 numbers whose sum is exact in f32: 1024 * 127 * 127 < 2**24."""
BatchShapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Sizes of the batch axes of the left operand, the right operand and the accumulator."""
HF32_MASK = np.uint32(0xFFFFF000)
"""The bits of an f32 that HF32 keeps: the sign, the exponent and the upper 11 bits of the mantissa."""


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


def hf32(values: Array) -> Array:
    """Returns f32 values rounded to the nearest HF32 value; halfway cases are rounded away from zero."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + np.uint32(0x800)) & HF32_MASK).view(np.float32)


def _whole(size: int) -> int:
    return -(-size // FRACTAL) * FRACTAL


def rows_of(panels: Array) -> Array | None:
    """Returns the view ``[..., rows, columns]`` of panels ``[..., blocks of columns, rows, c0]``; None if no view exists.

    A view exists if the columns of the next panel follow those of the panel in each row in memory.
    """
    *batch, blocks, rows, width = panels.shape
    if panels.strides[-3] != width * panels.strides[-1]:
        return None
    return panels.swapaxes(-2, -3).reshape(*batch, rows, blocks * width)


class _Operand:
    """An operand of a product, converted to an f32 matrix.

    Args:
        shape: the shape of the operand's buffer: fractals ``[C1, R1, r0, c0]`` or rows.
        wide: whether the values are rounded to HF32.
        batch: the sizes of the batch axes.
        lie: the distances in ``matrix`` between neighbouring rows and between neighbouring columns, in elements.
    """

    def __init__(self, shape: tuple[int, ...], *, wide: bool, batch: tuple[int, ...], lie: tuple[int, int] = (1, 1)) -> None:
        rows, columns = (shape[0], shape[1]) if len(shape) == 2 else (shape[1] * shape[2], shape[0] * shape[3])
        self.matrix: Array = np.zeros((*batch, _whole(rows) * lie[0], _whole(columns) * lie[1]), np.float32)
        self._wide = wide
        self._target = self.matrix[..., :rows * lie[0]:lie[0], :columns * lie[1]:lie[1]]
        self._close = np.empty((*batch, rows, columns), np.float32) if lie[1] > 1 else None
        self._blocks = (*batch, shape[0], rows, shape[3]) if len(shape) == 4 else None
        self._moved: tuple[Array, Array, Array] | None = None

    def fill(self, values: Array) -> None:
        """Converts the values of a buffer to f32, and stores them in ``matrix``.

        Args:
            values: the values as rows, or as panels ``[..., blocks of columns, rows, c0]``. If there are fewer panels than in
                the buffer, or the panels have fewer rows, the rest of ``matrix`` is unchanged.
        """
        if self._blocks is not None and values.shape[-3:] != self._blocks[-3:]:
            self._fill_part(values)
            return
        whole = values if self._blocks is None else rows_of(values)
        if whole is not None:
            self._take(whole, self._target if self._close is None else self._close)
            if self._close is not None:
                self._target[...] = self._close
            return
        if self._moved is None:
            self._moved = self._panels()
        wide, source, target = self._moved
        self._take(values, wide)
        target[...] = source

    def _fill_part(self, values: Array) -> None:
        """Stores the values of fewer panels, or of panels of fewer rows, than the buffer has."""
        blocks, rows, width = values.shape[-3:]
        taken = np.empty((*values.shape[:-3], rows, blocks * width), np.float32)
        self._take(values.swapaxes(-2, -3).reshape(taken.shape), taken)
        self._target[..., :rows, :blocks * width] = taken

    def _take(self, values: Array, target: Array) -> None:
        if self._wide:
            target[...] = hf32(values)
        else:
            widen(values, target)

    def _panels(self) -> tuple[Array, Array, Array]:
        """Returns a scratch array for the panels in f32, a view of its rows, and a view of the same rows in ``matrix``.

        The panels are first converted into the scratch array, and its rows are then copied to ``matrix``: together this is
        faster than a conversion directly into ``matrix``.
        """
        assert self._blocks is not None
        *outer, width = self._blocks
        wide = np.empty(self._blocks, np.float32)
        gaps = self._target.strides
        if self._close is not None:
            return wide, wide, np.ndarray(wide.shape, np.float32, self.matrix, 0,
                                          (*gaps[:-2], width * gaps[-1], gaps[-2], gaps[-1]))
        run = np.dtype((np.void, 4 * width))
        return (wide, np.ndarray(outer, run, wide, 0, wide.strides[:-1]),
                np.ndarray(outer, run, self.matrix, 0, (*gaps[:-2], 4 * width, gaps[-2])))


@dataclass(frozen=True)
class Product:
    """The parameters of one matrix product. The object is immutable, and all launches share it.

    Attributes:
        a, b: the shapes of the operands' buffers: rank 4 for fractals, rank 2 for rows. For an operand whose size is known only
            at run time, the largest possible shape.
        c: the shape of the accumulator's buffer.
        a_transposed: whether the left operand is stored as [K, M].
        b_transposed: whether the right operand is stored as [N, K].
        wide: whether f32 operands are rounded to HF32.
        exact: whether operands and accumulator are integers.
        packed: whether the bytes of the operands hold two int4 elements each; ``a`` and ``b`` are then shapes in elements.
        terms: the number of terms along K that the hardware adds to the accumulator at once; None if the order of the additions
            has no effect on the result.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: tuple[int, ...]
    a_transposed: bool
    b_transposed: bool
    wide: bool
    exact: bool
    packed: bool = False
    terms: int | None = None


class Multiplier:
    """Computes a matrix product.

    A multiplier keeps the memory for f32 copies of the operands between calls, so that a running kernel allocates no memory.
    Therefore each launch and each thread needs a separate multiplier.

    Args:
        product: the parameters.
        batches: the sizes of the batch axes of the left operand, the right operand and the accumulator.
        rows: whether the rows of the accumulator are contiguous in memory.
    """

    def __init__(self, product: Product, batches: BatchShapes = ((), (), ()), *, rows: bool = False) -> None:
        self._front = len(batches[0])
        lie = self._apart = 1 if product.terms is None else apart()
        left = _Operand(product.a, wide=product.wide, batch=batches[0], lie=(lie, 1) if product.a_transposed else (1, lie))
        batch = batches[1]
        self._fill_left = left.fill
        self._rows = rows and product.terms == STEP
        self._left: Array = left.matrix.swapaxes(-1, -2) if product.a_transposed else left.matrix
        # The right operand as [blocks of 16 columns, K, 16]: its products are L0C's panels, with nothing to rearrange.
        self._right: Array
        b, c = product.b, product.c
        if len(b) == 4 and b[3] == FRACTAL and not product.b_transposed and not product.wide and not self._rows:
            self._right = np.zeros((*batch, b[0], b[1] * b[2] * lie, FRACTAL), np.float32)
            self._fill_right = self._fill_panels
        else:
            right = _Operand(b, wide=product.wide, batch=batch, lie=(1, lie) if product.b_transposed else (lie, 1))
            self._fill_right = right.fill
            matrix = right.matrix
            self._matrix: Array = matrix.swapaxes(-1, -2) if product.b_transposed else matrix
            if product.b_transposed:
                self._right = matrix.reshape(*batch, -1, FRACTAL, matrix.shape[-1]).swapaxes(-1, -2)
            else:
                self._right = matrix.reshape(*batch, matrix.shape[-2], -1, FRACTAL).swapaxes(-2, -3)
        self._flat = len(c) == 2
        self._panels = np.empty((*batches[2], -(-c[1] // FRACTAL), c[0], FRACTAL), np.float32) if self._flat else None
        self._beside: dict[tuple[int, ...], Array] = {}
        self._exact, self._terms = product.exact, None if product.terms is None else product.terms * lie
        self._turned, self._packed = product.b_transposed, product.packed

    def _fill_panels(self, values: Array) -> None:
        blocks, rows, _ = values.shape[-3:]
        widen(values, self._right[..., :blocks, :rows * self._apart:self._apart, :])

    def __call__(self, a: Array, b: Array, c: Array, init: bool, m: int, k: int, n: int, bias: Array | None = None) -> None:
        """Computes ``c = a @ b`` or ``c += a @ b`` for the first rows and columns of the operands.

        Args:
            a, b, c: the buffers of the operands and of the accumulator.
            init: whether the result replaces the accumulator instead of being added to it.
            m, k, n: the sizes of the product; ``n`` is rounded up to whole fractals where ``c`` is fractal.
            bias: a row that is added to each row of the result if ``init`` holds; None for none.
        """
        a, b = (panels(one, self._front) if one.ndim == self._front + 4 else one for one in (a, b))
        if self._packed:
            a, b = unpack_int4(a), unpack_int4(b)
        self._fill_left(a)
        self._fill_right(b)
        blocks, k = -(-n // FRACTAL), k * self._apart
        if self._rows and not (m == 1 and self._turned):  # BLAS adds up a single row by columns in another order
            self._add_rows(panels(c, self._front), init, m, k, blocks)
        else:
            self._multiply(c, init, m, k, n)
        if bias is not None and init:
            self._add_bias(c[..., :m, :n] if self._flat else panels(c, self._front)[..., :blocks, :m, :], bias, n)

    def _add_rows(self, c: Array, init: bool, m: int, k: int, blocks: int) -> None:
        """Adds the product to an accumulator whose rows are contiguous."""
        total, columns = rows_of(c), blocks * FRACTAL
        assert total is not None
        total = total[..., :m, :columns]
        add_product(total, self._left[..., :m, :k], self._matrix[..., :k, :columns], self._scratch(total), fresh=init,
                    step=STEP * self._apart)

    def _multiply(self, c: Array, init: bool, m: int, k: int, n: int) -> None:
        """Adds the product to an accumulator of panels."""
        blocks = -(-n // FRACTAL)
        left, right = self._left[..., None, :m, :k], self._right[..., :blocks, :k, :]
        if self._panels is not None:
            out = self._panels[..., :blocks, :m, :]
            product = _exact(left, right, c.dtype) if self._exact else np.matmul(left, right, out=out)
            rows = product.swapaxes(-2, -3).reshape(*product.shape[:-3], m, -1)[..., :n]
            target = c[..., :m, :n]
        else:
            target = panels(c, self._front)[..., :blocks, :m, :]
            if self._terms is not None:
                add_product(target, left, right, self._scratch(target), fresh=init, step=self._terms)
                return
            if init and not self._exact:
                np.matmul(left, right, out=target)
                return
            rows = _exact(left, right, c.dtype) if self._exact else np.matmul(left, right, out=self._scratch(target))
        if init:
            target[...] = rows
        else:
            np.add(target, rows, out=target)

    def _scratch(self, target: Array) -> Array:
        """Returns an array of the target's shape, into which a product is computed before it is added to the target."""
        found = self._beside.get(target.shape)
        if found is None:
            found = self._beside[target.shape] = np.empty(target.shape, np.float32)
        return found

    def _add_bias(self, target: Array, bias: Array, n: int) -> None:
        batch = bias.shape[:self._front]
        row = bias.reshape(*batch, -1)[..., :n].astype(target.dtype)
        if self._flat:
            target += row[..., None, :]
        else:
            padded = np.zeros((*batch, target.shape[-3] * FRACTAL), target.dtype)
            padded[..., :n] = row
            target += padded.reshape(*batch, -1, 1, FRACTAL)


class BatchMultiplier:
    """Computes the matrix products of a batch of blocks. It makes one ``Multiplier`` for each combination of the batch sizes of
    A, B and C (size 1 where all blocks share an operand).

    Args:
        product: shapes, element types and layouts of the product.
    """

    def __init__(self, product: Product) -> None:
        self._product = product
        self._made: dict[tuple[BatchShapes, bool], Multiplier] = {}

    def __call__(self, a: Array, b: Array, c: Array, *rest: Any) -> None:
        """Computes the product as ``Multiplier`` does, for arrays with two leading batch axes."""
        batches = a.shape[:2], b.shape[:2], c.shape[:2]
        rows = c.ndim > 4 and c.strides[2] < c.strides[-2]
        found = self._made.get((batches, rows))
        if found is None:
            found = self._made[batches, rows] = Multiplier(self._product, batches, rows=rows)
        found(a, b, c, *rest)


class Multipliers:
    """The multipliers of one thread of a launch, one for each distinct product.

    All cores that the thread runs use the same multipliers, because the thread runs one core at a time.

    Args:
        kind: the class of the multipliers.
    """

    def __init__(self, kind: type[Multiplier] | type[BatchMultiplier] = Multiplier) -> None:
        self._kind = kind
        self._made: dict[Product, Multiplier | BatchMultiplier] = {}

    def __call__(self, product: Product) -> Multiplier | BatchMultiplier:
        """Returns the multiplier of a product, which is made at the first call."""
        found = self._made.get(product)
        if found is None:
            found = self._made[product] = self._kind(product)
        return found


def no_multiplier(product: Product) -> None:
    """Returns None. Generated code that computes no values gets this function in place of ``Multipliers``."""


def _exact(left: Array, right: Array, element: np.dtype[np.generic]) -> Array:
    """Returns an integer product, computed in f32 by slices of K that are short enough to be exact."""
    total: Array = np.matmul(left[..., :EXACT_DEPTH], right[..., :EXACT_DEPTH, :]).astype(element)
    for start in range(EXACT_DEPTH, left.shape[-1], EXACT_DEPTH):
        stop = start + EXACT_DEPTH
        total += np.matmul(left[..., start:stop], right[..., start:stop, :]).astype(element)
    return total


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
