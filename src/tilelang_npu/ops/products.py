"""Matrix products of f16, bf16 and float8 with the accumulation order of the Cube.

The Cube multiplies fractals of 32 bytes a side: 16 terms of f16 or bf16, or 32 of float8, are added to the f32 accumulator at
a time, in the order of K. With this order the bits of a result do not depend on the tiling, so that a kernel and a library call
on the same numbers agree exactly, as they do on the device.

BLAS computes the products. Some of its kernels do not add the terms in order: OpenBLAS without AVX-512 adds even and odd terms
separately in some rows of the result, depending on the size. On such a processor zeros are inserted between the terms, so that
the bits do not depend on the size.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 16
"""Number of terms of an f16 or bf16 product that are added to the accumulator at a time."""
_TERMS = {"float16": STEP, "bfloat16": STEP, "float8_e4m3fn": 2 * STEP, "float8_e5m2": 2 * STEP}
_BLOCK = 1 << 18
"""Number of elements of a result that are computed at a time, so that they stay in the cache."""


def terms(element: str) -> int | None:
    """Number of terms of an element type that are added to the accumulator at a time; None where the order has no effect."""
    return _TERMS.get(element)


@cache
def apart() -> int:
    """The distance between terms with which BLAS adds them in order: 1, or 2 where it adds even and odd terms separately.

    It is found by trying both. If neither works it is 1, with which results of one size are still reproducible.
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


def spread(values: NDArray[Any], axis: int, lie: int) -> NDArray[Any]:
    """The array with zeros inserted along one of its last two axes, so that its elements have the distance ``lie``."""
    if lie == 1:
        return values
    shape = list(values.shape)
    shape[axis] *= lie
    found = np.zeros(shape, values.dtype)
    places = (..., slice(None, None, lie)) if axis == -1 else (..., slice(None, None, lie), slice(None))
    found[places] = values
    return found


def add_product(total: NDArray[Any], left: NDArray[Any], right: NDArray[Any], scratch: NDArray[Any], *, fresh: bool,
                step: int = STEP) -> None:
    """Computes ``total += left @ right``, or ``total = left @ right`` if ``fresh``, in the Cube's order.

    Args:
        total: f32 ``[..., m, n]``.
        left, right: f32 ``[..., m, k]`` and ``[..., k, n]`` with values of a narrower type, at the distance of :func:`apart`
            along k.
        scratch: an f32 array of the shape of ``total``.
        fresh: whether the old values of ``total`` are ignored.
        step: number of elements along k that are added to the accumulator at a time.
    """
    for start in range(0, left.shape[-1], step):
        a, b = left[..., start:start + step], right[..., start:start + step, :]
        if fresh and start == 0:
            np.matmul(a, b, out=total)
        else:
            np.matmul(a, b, out=scratch)
            np.add(total, scratch, out=total)


def product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """``left @ right`` of f32 arrays ``[m, k]``, ``[k, n]``, or stacks ``[b, m, k]``, ``[b, k, n]``, in the Cube's order."""
    lie = apart()
    return _product(spread(left, -1, lie), spread(right, -2, lie), STEP * lie)


def _product(left: NDArray[Any], right: NDArray[Any], step: int) -> NDArray[Any]:
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
