"""Half-precision numbers as f32, which holds each of them exactly."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilelang_npu.simulator.machine.memory import Array

_FEW = 1024
"""Elements up to which NumPy's conversion is as fast."""
_F16 = np.int32(-0x70002000)
"""What counts of an f16, its sign repeated in front, 13 bits up: the sign, then exponent and mantissa where f32 has its."""
_REBIAS = np.float32(2.0**112)
"""f32 counts exponents from 127, f16 from 15."""
_NONE, _NONE_BELOW = np.int32(0x0F800000), np.uint32(0x8F800000)
"""The least bits of what was infinite or no number, above zero and below."""


def widen(values: Array, target: Array) -> None:
    """Copy into an f32 array."""
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
"""Types that are a part of f32's bits."""


__all__ = ["widen"]
