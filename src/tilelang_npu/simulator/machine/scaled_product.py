"""Products of MX matrices, whose elements have a common scale in groups of 32 along K."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tilelang_npu.ops.products import multiply_chunk
from tilelang_npu.ops.rearrange import unpack_float4
from tilelang_npu.ops.rounding import Array
from tilelang_npu.ops.scale_layouts import FORMATS, GROUP

_BIAS = 127
"""The exponent byte of the scale 1 (e8m0)."""
_NAN = 255
_HELD = {FORMATS["e5m2"]: np.dtype(ml_dtypes.float8_e5m2), FORMATS["e4m3"]: np.dtype(ml_dtypes.float8_e4m3fn)}
FLOAT4 = FORMATS["e2m1"]
"""The number of the format in which a byte holds two elements."""


@dataclass(frozen=True)
class ScaledProduct:
    """The parameters of a product of MX matrices.

    Attributes:
        a_transposed: whether the left operand is stored as [K, M].
        b_transposed: whether the right operand is stored as [N, K].
        formats: what the bytes of both operands hold, as in ``mmadmxL1``; 0 where their element types say it.
    """

    a_transposed: bool
    b_transposed: bool
    formats: tuple[int, int] = (0, 0)

    def __call__(self, a: Array, b: Array, c: Array, scale_a: Array, scale_b: Array, init: bool, m: int, k: int, n: int,
                 ) -> None:
        """Computes ``c = a @ b`` or ``c += a @ b`` for the first rows and columns of the operands.

        The products of each group of 32 elements are added in float32, and their sum is scaled and added to ``c``.

        Args:
            a, b, c: the buffers of the operands and of the accumulator, row by row or in fractals.
            scale_a: the biased exponents of the left operand, [M, K / 32].
            scale_b: the biased exponents of the right operand, [N, K / 32].
            init: whether the result replaces the accumulator instead of being added to it.
            m, k, n: the sizes of the product.
        """
        left, right = (_values(_by_rows(one), held) for one, held in zip((a, b), self.formats, strict=True))
        left, right = left.T if self.a_transposed else left, right.T if self.b_transposed else right
        left, right = left[:m, :k], right[:k, :n]
        exponents = [scale.view(np.uint8).astype(np.int32) for scale in (scale_a[:m], scale_b[:n])]
        total = np.zeros((m, n), np.float32) if init else _by_rows(c)[:m, :n].copy()
        made = np.empty((m, n), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for group in range(-(-k // GROUP)):
                part = slice(group * GROUP, (group + 1) * GROUP)
                multiply_chunk(np.ascontiguousarray(left[:, part]), np.ascontiguousarray(right[part]), made)
                rows, columns = exponents[0][:, group, None], exponents[1][None, :, group]
                scaled = np.ldexp(made, rows + columns - 2 * _BIAS)
                total += np.where((rows == _NAN) | (columns == _NAN), np.float32(np.nan), scaled)
        if c.ndim == 2:
            c[:m, :n] = total
            return
        whole = _by_rows(c).copy()
        whole[:m, :n] = total
        blocks, high, rows_, width = c.shape
        c[...] = whole.reshape(high, rows_, blocks, width).transpose(2, 0, 1, 3)


def _by_rows(matrix: Array) -> Array:
    """Returns a matrix row by row, given fractals ``[C1, R1, r0, c0]`` or rows."""
    if matrix.ndim == 2:
        return matrix
    blocks, high, rows, width = matrix.shape
    return matrix.transpose(1, 2, 0, 3).reshape(high * rows, blocks * width)


def _values(matrix: Array, held: int) -> Array:
    """Returns the elements of a matrix in float32; ``held`` is the format of its bytes."""
    if held == FLOAT4:
        return unpack_float4(matrix)
    return (matrix.view(_HELD[held]) if held else matrix).astype(np.float32)


__all__ = ["FLOAT4", "ScaledProduct"]
