"""Executes products of MX matrices, whose elements have a common scale in groups of 32 along K."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilelang_npu.interpreter.host_buffers import allocate
from tilelang_npu.interpreter.movement import multiplied
from tilelang_npu.interpreter.operation_table import OPERATIONS, tiles
from tilelang_npu.interpreter.running_core import fail
from tilelang_npu.interpreter.typed_scalars import RANDOM, Array, finish
from tilelang_npu.target.dtypes import DType

_GROUP = 32
_BIAS = 127
_NAN = 255
_BYTES = {"e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}


def _alloc_scales(shape: object, dtype: object = "uint8") -> object:
    return allocate(shape, dtype, "l1")


OPERATIONS.update(dict.fromkeys(("alloc_L1_scale_a", "alloc_L1_scale_b"), _alloc_scales))


def _product(left: Array, right: Array, scales: tuple[Array, Array]) -> Array:
    """Returns the product of MX matrices in float32: of each group the sum, times the scales of the group.

    Args:
        left, right: the matrices [M, K] and [K, N].
        scales: the biased exponents [M, K / 32] and [K / 32, N].
    """
    x, y = left.astype(np.float32), right.astype(np.float32)
    exponents = [scale.view(np.uint8).astype(np.int64) for scale in scales]
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    random = RANDOM.get()
    for group in range(x.shape[1] // _GROUP):
        part = slice(group * _GROUP, (group + 1) * _GROUP)
        rows, columns = exponents[0][:, group, None], exponents[1][None, group, :]
        with np.errstate(over="ignore", invalid="ignore"):
            made = (x[:, part] @ y[part]).astype(np.float64)
            if random is not None:
                size = np.abs(x[:, part]).astype(np.float64) @ np.abs(y[part])
                made = made + random.standard_normal(made.shape) * size * (np.finfo(np.float32).eps / 2 * _GROUP**0.5)
            scaled = made * np.exp2((rows + columns - 2 * _BIAS).astype(np.float64))
            scaled = np.where((rows == _NAN) | (columns == _NAN), np.nan, scaled)
            total += finish(scaled, DType("float32")) if random is not None else scaled.astype(np.float32)
    return total


def _multiply(a: object, b: object, c: object, scale_a: object, scale_b: object, init: object = False, held: object = None,
              transpose_A: bool = False, transpose_B: bool = False) -> None:
    element = _BYTES.get(str(held))

    def values(matrix: Array) -> Array:
        return matrix.view(element) if element is not None and matrix.dtype == np.uint8 else matrix

    def product(left: Array, right: Array, scales: tuple[Array, ...]) -> Array:
        if left.shape[1] % (2 * _GROUP):
            raise fail(f"k is {left.shape[1]}", "a product of MX matrices needs a multiple of 64", "T120")
        return _product(values(left), values(right), (scales[0], scales[1]))

    multiplied(a, b, c, init, bool(transpose_A), bool(transpose_B), product, (scale_a, scale_b))


@tiles("gemm_mx")
def gemm_mx(A: object, B: object, C: object, scale_a: object, scale_b: object, init: object = False,
            format: object = None,  # noqa: A002 - the language's name
            transpose_A: bool = False, transpose_B: bool = False) -> None:
    """Executes a product of MX matrices in L1 (``T.gemm_mx``)."""
    _multiply(A, B, C, scale_a, scale_b, init, format, transpose_A, transpose_B)


@tiles("mma_mx")
def mma_mx(A: object, B: object, C: object, scale_a: object, scale_b: object, init: object = False,
           scale_dtype: object = "uint8") -> None:
    """Executes a product of MX matrices in L0A and L0B (``T.mma_mx``)."""
    _multiply(A, B, C, scale_a, scale_b, init)


__all__ = ["gemm_mx", "mma_mx"]
