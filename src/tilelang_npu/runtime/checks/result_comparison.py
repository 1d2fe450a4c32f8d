"""Compares the results of two versions of a kernel, bit by bit and within the rounding of their element types."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np

from tilelang_npu.runtime.arguments.tensors import Array
from tilelang_npu.runtime.checks.rounding_spread import differs, distance

_UNITS = {2: 8, 4: 512, 8: 512}
"""Units in the last place by which two orders of the same operations can differ, by the bytes of the element type, relative to
the element, or to the root mean square of its row where that is larger. Sums of n terms are computed in float32 and differ by
about sqrt(n) of its units, which is below one unit of the types of 16 bits up to n = 4e6, and below 512 units of float32 up to
n = 2e5. A value is rounded to 16 bits a few times between a kernel's arguments and its results."""


class Verdict(Enum):
    """How the results of an edited kernel compare with those of the kernel as it is."""

    EQUAL = "equal bit by bit"
    ROUNDED = "equal within the rounding of the element type"
    DIFFERENT = "different results"
    HAZARD = "a hazard"


def compared(got: Mapping[str, Array], wanted: Mapping[str, Array]) -> tuple[Verdict, str]:
    """Returns how the results of an edited kernel compare with those of the kernel as it is, and where they differ.

    Args:
        got: the results of the edited kernel, by name.
        wanted: the results of the kernel as it is. They have the same names, shapes and element types.

    Returns:
        ``EQUAL``, ``ROUNDED`` or ``DIFFERENT``, and a text, which is empty unless results are different.
    """
    verdict = Verdict.EQUAL
    for name, one in wanted.items():
        differing = differs(got[name], one)
        if not differing.any():
            continue
        if one.dtype.kind in "iub" or (distance(got[name], one) > _allowed(one)).any():
            index = tuple(int(part) for part in np.argwhere(differing)[0])
            return Verdict.DIFFERENT, f"{name} differs in {int(differing.sum())} elements, first at {list(index)}"
        verdict = Verdict.ROUNDED
    return verdict, ""


def _allowed(wanted: Array) -> Array:
    """Returns for each element the largest difference that another order of operations explains."""
    info: Any = ml_dtypes.finfo
    unit = float(info(wanted.dtype if wanted.dtype.itemsize < 4 else np.float32).eps)
    wide = np.abs(wanted.astype(np.float64))
    finite = np.where(np.isfinite(wide), wide, 0.0)
    # The elements of a column, such as the sums of all rows, are compared with each other.
    axis = next((place for place in range(finite.ndim - 1, -1, -1) if finite.shape[place] > 1), None)
    rows = finite if axis is None else np.sqrt(np.mean(finite * finite, axis=axis, keepdims=True))
    return _UNITS.get(wanted.dtype.itemsize, _UNITS[2]) * unit * np.maximum(finite, rows)
