"""The error function on arrays, which NumPy does not have."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_STEP = 1 / 512
_END = 4.0
"""From this argument on the result rounds to 1 in float32."""
_NODES = np.arange(0, _END + _STEP, _STEP)
_VALUES = np.array([math.erf(node) for node in _NODES])
_SLOPES = 2 / math.sqrt(math.pi) * np.exp(-_NODES**2)


def erf(a: ArrayLike) -> NDArray[np.float32]:
    """Returns the error function of each element, rounded once to float32 from a result with 13 correct digits.

    The function sums the Taylor series around the nearest of 2049 nodes, up to the fourth power of the distance from the node.
    """
    given = np.asarray(a, np.float32)
    magnitude = np.fmin(np.abs(given), np.float32(_END)).astype(np.float64)
    nearest = np.rint(magnitude / _STEP).astype(np.int32)
    distance = magnitude - nearest * _STEP
    square = distance * distance
    turn = nearest * _STEP * distance
    series = 1 - turn + (2 * turn * turn - square) / 3 + turn * (square / 2 - turn * turn / 3)
    result = _VALUES.take(nearest) + _SLOPES.take(nearest) * distance * series
    return np.where(np.isnan(given), given, np.copysign(result.astype(np.float32), given))
