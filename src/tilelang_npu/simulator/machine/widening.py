"""Conversion of half-precision numbers to f32, which is exact."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilelang_npu.simulator.machine.memory import Array

_FEW = 1024
"""Elements up to which NumPy's own conversion is as fast."""
_F16 = np.int32(-0x70002000)
"""Bits of a sign-extended f16, shifted by 13, that matter: the sign, and exponent and mantissa at their places in an f32."""
_REBIAS = np.float32(2.0**112)
"""Difference of the exponent biases: 127 in f32, 15 in f16."""
_NONE, _NONE_BELOW = np.int32(0x0F800000), np.uint32(0x8F800000)
"""The least bit patterns of infinities and NaN, above and below zero."""


def widen(values: Array, target: Array) -> None:
    """Copies values into an f32 array."""
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


__all__ = ["widen"]
