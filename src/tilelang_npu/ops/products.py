"""The order in which the Cube adds up products of matrices of f16, bf16 and float8.

It multiplies fractals of 32 bytes a side: 16 terms of f16 or bf16, or 32 of float8, enter the f32 accumulator at a time, in
the order of K.
Whoever adds up in this order gets the same bits whatever the tiling, so that a kernel and a library call on the same numbers
agree exactly, as they do on a card.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 16
"""Terms of an f16 or bf16 product that enter the accumulator at once."""
_TERMS = {"float16": STEP, "bfloat16": STEP, "float8_e4m3fn": 2 * STEP, "float8_e5m2": 2 * STEP}
_BLOCK = 1 << 18
"""Elements of a result that are worked on at a time, so that they stay in a cache."""


def terms(element: str) -> int | None:
    """Terms of a product of this element type that enter the accumulator at once; None where the order does not show."""
    return _TERMS.get(element)


def add_product(total: NDArray[Any], left: NDArray[Any], right: NDArray[Any], scratch: NDArray[Any], *, fresh: bool,
                step: int = STEP) -> None:
    """``total += left @ right``, or ``total = left @ right`` where it is ``fresh``, in the Cube's order.

    Args:
        total: f32 ``[..., m, n]``.
        left, right: f32 ``[..., m, k]`` and ``[..., k, n]`` whose values are those of half-precision numbers.
        scratch: an f32 array of the shape of ``total``.
        fresh: whether what ``total`` holds counts for nothing.
        step: terms that enter the accumulator at once.
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
    if left.ndim == 3:
        found = np.zeros((len(left), left.shape[1], right.shape[2]), np.float32)
        most = max(1, _BLOCK // max(1, found[0].size)) if len(found) else 1
        for start in range(0, len(left), most):
            if most == 1:
                found[start] = product(left[start], right[start])
            else:
                some = found[start:start + most]
                add_product(some, left[start:start + most], right[start:start + most], np.empty_like(some), fresh=True)
        return found
    total = np.zeros((left.shape[0], right.shape[1]), np.float32)
    rows = max(STEP, _BLOCK // max(1, right.shape[1]))
    scratch = np.empty((min(rows, len(left)), right.shape[1]), np.float32)
    for start in range(0, len(left), rows):
        part = total[start:start + rows]
        add_product(part, left[start:start + rows], right, scratch[:len(part)], fresh=True)
    return total


__all__ = ["STEP", "add_product", "product", "terms"]
