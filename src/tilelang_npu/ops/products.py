"""Matrix products of f16, bf16 and float8 with the accumulation order of the Cube.

A term is the product of two elements with the same index along K. The Cube adds the terms to the f32 accumulator in the order
of K, several at a time: 16 terms of f16 or bf16, or 32 terms of float8. With this order the bits of a result do not depend on
the tiling, so that a kernel and a library call on the same numbers agree exactly, as they do on the device.

BLAS computes the products. Some BLAS kernels do not add the terms in order: OpenBLAS without AVX-512 adds even and odd terms
separately in some rows of the result, depending on the size. On such a processor this module inserts zeros between the terms,
so that the bits do not depend on the size.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilelang_npu.ops.rounding import Array

STEP = 16
"""Number of terms of an f16 or bf16 product that are added to the accumulator at a time."""
_TERMS = {"float16": STEP, "bfloat16": STEP, "float8_e4m3fn": 2 * STEP, "float8_e5m2": 2 * STEP}
_BLOCK = 1 << 18
"""The number of elements of a result that are computed at a time, so that these elements stay in the CPU's cache."""


def terms(element: str) -> int | None:
    """Returns how many terms of a product of this element type the Cube adds to the accumulator at a time.

    Returns None for the element types whose result does not depend on the order of the additions. ``element`` is a NumPy name,
    such as ``float16``.
    """
    return _TERMS.get(element)


@cache
def apart() -> int:
    """Returns the distance between terms along K at which BLAS adds the terms in order.

    The distance is 1 for adjacent terms, and 2 if a zero must be inserted between terms because BLAS adds even and odd terms
    separately. The function tries both on test products. If neither works, it returns 1: results are then reproducible only
    for equal sizes.
    """
    return next((lie for lie in (1, 2) if all(_in_order(m, n, lie) for m, n in _PROBED)), 1)


_PROBED = ((4, 128), (128, 16), (30, 33), (6, 12), (16, 16))
"""Numbers of rows and columns of test products that reveal the order of the additions."""


def _in_order(m: int, n: int, lie: int) -> bool:
    """Whether BLAS adds terms at this distance in order, for both memory layouts of both factors."""
    left, right = (np.sin(np.arange(size * STEP, dtype=np.float32)).astype(np.float16).astype(np.float32) for size in (m, n))
    left, right = left.reshape(m, STEP), right.reshape(STEP, n)
    total = np.zeros((m, n), np.float32)
    for term in range(STEP):
        total += left[:, term, None] * right[term]  # a product of half-precision numbers is exact in f32
    a, b = spread(left, -1, lie), spread(right, -2, lie)
    return all(np.array_equal(np.matmul(x, y), total)
               for x in (a, np.asfortranarray(a)) for y in (b, np.asfortranarray(b)))


def spread(values: Array, axis: int, lie: int) -> Array:
    """Returns a copy with ``lie - 1`` zeros inserted after each element along ``axis``, which is -1 or -2.

    Returns the array itself if ``lie`` is 1.
    """
    if lie == 1:
        return values
    shape = list(values.shape)
    shape[axis] *= lie
    found = np.zeros(shape, values.dtype)
    places = (..., slice(None, None, lie)) if axis == -1 else (..., slice(None, None, lie), slice(None))
    found[places] = values
    return found


def add_product(total: Array, left: Array, right: Array, scratch: Array, *, fresh: bool,
                step: int = STEP) -> None:
    """Computes ``total += left @ right`` in the Cube's order of additions, or ``total = left @ right`` if ``fresh``.

    Args:
        total: the result, an f32 array ``[..., m, n]``.
        left: an f32 array ``[..., m, k]`` with values of a narrower type. :func:`spread` must have set the distance of its
            elements along k to :func:`apart`.
        right: an f32 array ``[..., k, n]`` with the same properties.
        scratch: an f32 array of the shape of ``total``, which the function overwrites.
        fresh: whether the old values of ``total`` are ignored.
        step: the number of elements along k, inserted zeros included, that are added to ``total`` at a time.
    """
    for start in range(0, left.shape[-1], step):
        a, b = left[..., start:start + step], right[..., start:start + step, :]
        if fresh and start == 0:
            np.matmul(a, b, out=total)
        else:
            np.matmul(a, b, out=scratch)
            np.add(total, scratch, out=total)


def product(left: Array, right: Array) -> Array:
    """Returns ``left @ right`` in f32, with the Cube's order of additions.

    The f32 arrays have the shapes ``[m, k]`` and ``[k, n]``, or ``[b, m, k]`` and ``[b, k, n]`` for a batch of b products.
    """
    lie = apart()
    return _product(spread(left, -1, lie), spread(right, -2, lie), STEP * lie)


def _product(left: Array, right: Array, step: int) -> Array:
    """As :func:`product`, with ``step`` elements along k at a time."""
    if left.ndim == 3:
        found = np.zeros((len(left), left.shape[1], right.shape[2]), np.float32)
        most = max(1, _BLOCK // max(1, found[0].size)) if len(found) else 1
        for start in range(0, len(left), most):
            if most == 1:
                found[start] = _product(left[start], right[start], step)
            else:
                some = found[start:start + most]
                add_product(some, left[start:start + most], right[start:start + most], np.empty_like(some), fresh=True,
                            step=step)
        return found
    total = np.zeros((left.shape[0], right.shape[1]), np.float32)
    rows = max(STEP, _BLOCK // max(1, right.shape[1]))
    scratch = np.empty((min(rows, len(left)), right.shape[1]), np.float32)
    for start in range(0, len(left), rows):
        part = total[start:start + rows]
        add_product(part, left[start:start + rows], right, scratch[:len(part)], fresh=True, step=step)
    return total


__all__ = ["STEP", "add_product", "apart", "product", "spread", "terms"]
