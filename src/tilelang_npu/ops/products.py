"""Matrix products of f16, bf16 and float8, with an order of additions that does not depend on tiles.

A term is the product of two elements with the same index along K. Terms are added in the order of K. A *chunk* is up to 256
(``DEPTH``) consecutive terms, which are added one after the other, each by a fused multiply-add; the sum of a chunk is then
added to the f32 accumulator. The first chunk begins at the first term. So the bits of a result depend neither on the tiles nor
on whether a kernel or a library call computes it. The Cube core of the hardware adds 16 or 32 terms at a time, in an order that
is not published; results in both orders differ by rounding (docs/precision.md).

BLAS computes the sum of a chunk. OpenBLAS with AVX-512 adds terms in order for the sizes and memory layouts that
:func:`multiply_chunk` chooses. Where a BLAS does not, products of 16 terms are added up in order, with zeros inserted between
terms for a BLAS that adds even and odd terms separately: the bits then differ from those of other processors, and still do not
depend on sizes and tiles.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from tilelang_npu.ops.rounding import Array

DEPTH = 256
"""Number of terms of a chunk."""
FRACTAL = 16
"""OpenBLAS adds the terms of a C-contiguous right operand in order if its number of columns is a multiple of this."""
_STEP = 16
"""Number of terms that every known BLAS adds in order, if zeros are inserted where ``_apart`` says so."""
_CHUNKED = frozenset(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"))
_SMALL = 1 << 13
"""Number of elements of a result up to which a Fortran-contiguous right operand is copied: OpenBLAS has functions for small
products of such operands, which add in another order (up to about 2400 elements)."""
_BLOCK = 1 << 20
"""The number of elements of a result that are computed at a time, to limit memory."""
_PROBED = ((2, 16), (4, 128), (128, 16), (30, 48), (6, 16), (64, 48), (1, 32))
"""Numbers of rows and columns of test products that reveal the order of the additions."""


def is_chunked(element: str) -> bool:
    """Whether products of elements of a type, such as ``float16``, are added up in chunks.

    Integer products are exact in any order. Those of f32 are added up in the order of BLAS.
    """
    return element in _CHUNKED


class _Order(NamedTuple):
    """How products are passed to BLAS such that it adds terms in order.

    Attributes:
        step: the number of terms of one call.
        apart: the distance between terms along K: 1 for adjacent terms, 2 if a zero is inserted between terms.
    """

    step: int
    apart: int


@cache
def blas_order() -> _Order:
    """Returns how products are passed to BLAS on this processor, found by test products."""
    return next((order for order in (_Order(DEPTH, 1), _Order(_STEP, 1), _Order(_STEP, 2)) if _is_in_order(order)),
                _Order(_STEP, 1))


def _is_in_order(order: _Order) -> bool:
    """Whether BLAS adds terms in order, for the sizes of ``_PROBED`` and both memory layouts of both operands."""
    for m, n in _PROBED:
        left, right = (np.sin(np.arange(size * order.step, dtype=np.float32)).astype(np.float16).astype(np.float32)
                       for size in (m, n))
        left, right = left.reshape(m, order.step), right.reshape(order.step, n)
        # a product of half-precision numbers is exact in f32, and accumulate adds in order
        total = np.add.accumulate(left.T[:, :, None] * right[:, None, :], axis=0)[-1]
        for x in (left, np.asfortranarray(left)):
            for y in (right, np.asfortranarray(right)):
                found = np.empty((m, n), np.float32)
                _multiply_at_once(x, y, found, order.apart)
                if not np.array_equal(found, total):
                    return False
    return True


def _spread(values: Array, axis: int, apart: int) -> Array:
    """Returns a copy with ``apart - 1`` zeros inserted after each element along ``axis``, which is -1 or -2.

    Returns the array itself if ``apart`` is 1.
    """
    if apart == 1:
        return values
    shape = list(values.shape)
    shape[axis] *= apart
    found = np.zeros(shape, values.dtype)
    places = (..., slice(None, None, apart)) if axis == -1 else (..., slice(None, None, apart), slice(None))
    found[places] = values
    return found


def multiply_chunk(left: Array, right: Array, out: Array) -> None:
    """Writes ``left @ right`` to ``out``, with the terms added in order.

    Args:
        left: an f32 array ``[..., m, k]`` with values of a narrower type, and at most ``DEPTH`` terms along k.
        right: an f32 array ``[..., k, n]`` with the same properties.
        out: an f32 array ``[..., m, n]`` whose rows are contiguous.
    """
    order = blas_order()
    if left.shape[-1] <= order.step:
        _multiply_at_once(left, right, out, order.apart)
        return
    _multiply_at_once(left[..., :order.step], right[..., :order.step, :], out, order.apart)
    more = np.empty_like(out)
    for start in range(order.step, left.shape[-1], order.step):
        stop = start + order.step
        _multiply_at_once(left[..., start:stop], right[..., start:stop, :], more, order.apart)
        np.add(out, more, out=out)


def _multiply_at_once(left: Array, right: Array, out: Array, apart: int) -> None:
    """Writes ``left @ right`` to ``out`` by one call of BLAS, after changes of the operands that keep the terms in order."""
    m, n = out.shape[-2:]
    if apart > 1:
        left, right = _spread(np.ascontiguousarray(left), -1, apart), _spread(np.ascontiguousarray(right), -2, apart)
    if m == 1:  # BLAS multiplies a vector and a matrix in another order, and a matrix and a vector, below
        left = np.concatenate((left, left), -2)
    by_rows = n == 1 or right.strides[-1] == right.itemsize
    if not by_rows and max(m, 2) * n <= _SMALL:
        right, by_rows = np.ascontiguousarray(right), True
    columns = n
    if by_rows and n % FRACTAL and (n == 1 or left.strides[-1] == left.itemsize):
        columns = n - n % -FRACTAL
        wider = np.zeros((*right.shape[:-1], columns), np.float32)
        wider[..., :n] = right
        right = wider
    if columns == n and m > 1:
        np.matmul(left, right, out=out)
    else:
        out[...] = np.matmul(left, right)[..., :m, :n]


def product(left: Array, right: Array) -> Array:
    """Returns ``left @ right`` in f32, added up in chunks.

    The f32 arrays have the shapes ``[m, k]`` and ``[k, n]``, or ``[b, m, k]`` and ``[b, k, n]`` for a batch of b products;
    their values are those of a narrower type.
    """
    found = np.zeros((*left.shape[:-1], right.shape[-1]), np.float32)
    if left.ndim == 3:
        most = max(1, _BLOCK // max(1, found[0].size)) if len(found) else 1
        for start in range(0, len(left), most):
            some = slice(start, start + most)
            if most == 1:
                found[start] = product(left[start], right[start])
            else:
                _add_up(left[some], right[some], found[some])
        return found
    rows = max(FRACTAL, _BLOCK // max(1, right.shape[1]))
    for start in range(0, len(left), rows):
        _add_up(left[start:start + rows], right, found[start:start + rows])
    return found


def _add_up(left: Array, right: Array, total: Array) -> None:
    """Adds ``left @ right`` to ``total``, which has zeros, chunk by chunk."""
    made = np.empty_like(total)
    for start in range(0, left.shape[-1], DEPTH):
        stop = start + DEPTH
        multiply_chunk(left[..., start:stop], right[..., start:stop, :], made)
        np.add(total, made, out=total)


__all__ = ["DEPTH", "FRACTAL", "blas_order", "is_chunked", "multiply_chunk", "product"]
