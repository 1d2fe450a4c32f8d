"""The entries of the reductions along axes of a tile (PIPE_V)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilelang_npu.ops.rounding import Array
from tilelang_npu.ops.spec import Reduce, declare
from tilelang_npu.target.dtypes import DType, dtype

Fold = Callable[[Array, tuple[int, ...]], Array]
"""Reduces an array along axes, whose size becomes 1."""
_REDUCIBLE = tuple(dtype(name) for name in ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "f32"))


def _lowest(element: DType) -> float:
    if element.is_float:
        return -np.inf
    return int(np.iinfo(element.numpy.name).min)


def _highest(element: DType) -> float:
    if element.is_float:
        return np.inf
    return int(np.iinfo(element.numpy.name).max)


def _fold(ufunc: np.ufunc) -> Fold:
    def fold(source: Array, axis: tuple[int, ...]) -> Array:
        found: Array = ufunc.reduce(source, axis=axis, keepdims=True)
        return found

    return fold


reduce_sum = declare(Reduce(name="reduce_sum", mode="sum", combine="add", dtypes=_REDUCIBLE, meaning=_fold(np.add),
                            neutral=lambda _: 0, cost="cadd", doc="Sum along the axes."))
reduce_max = declare(Reduce(name="reduce_max", mode="max", combine="max", dtypes=_REDUCIBLE, meaning=_fold(np.maximum),
                            neutral=_lowest, cost="cmax", doc="Largest element along the axes."))
reduce_min = declare(Reduce(name="reduce_min", mode="min", combine="min", dtypes=_REDUCIBLE, meaning=_fold(np.minimum),
                            neutral=_highest, cost="cmin", doc="Smallest element along the axes."))

_INTEGERS = tuple(kind for kind in _REDUCIBLE if kind.is_integer)
_TRUTHS = (dtype("i1"), *_REDUCIBLE)


def _fold_bools(ufunc: np.ufunc) -> Fold:
    def fold(source: Array, axis: tuple[int, ...]) -> Array:
        found: Array = ufunc.reduce(source != 0, axis=axis, keepdims=True).astype(np.result_type(source))
        return found

    return fold


reduce_prod = declare(Reduce(name="reduce_prod", mode="prod", combine="mul", dtypes=_REDUCIBLE, meaning=_fold(np.multiply),
                             neutral=lambda _: 1, cost="cadd", doc="Product along the axes."))
reduce_any = declare(Reduce(name="reduce_any", mode="any", combine="max", dtypes=_TRUTHS, meaning=_fold_bools(np.logical_or),
                            neutral=lambda _: 0, cost="cmax", doc="1 where any element along the axes is not zero, else 0."))
reduce_all = declare(Reduce(name="reduce_all", mode="all", combine="min", dtypes=_TRUTHS, meaning=_fold_bools(np.logical_and),
                            neutral=lambda _: 1, cost="cmin", doc="1 where no element along the axes is zero, else 0."))
reduce_xor = declare(Reduce(name="reduce_bitxor", mode="xori", combine="bitwise_xor", dtypes=_INTEGERS,
                            meaning=_fold(np.bitwise_xor), neutral=lambda _: 0, cost="cadd",
                            doc="Bitwise exclusive or along the axes."))
reduce_or = declare(Reduce(name="reduce_bitor", mode="ori", combine="bitwise_or", dtypes=_INTEGERS,
                           meaning=_fold(np.bitwise_or), neutral=lambda _: 0, cost="cadd", doc="Bitwise or along the axes."))
reduce_and = declare(Reduce(name="reduce_bitand", mode="andi", combine="bitwise_and", dtypes=_INTEGERS,
                            meaning=_fold(np.bitwise_and), neutral=lambda _: -1, cost="cadd",
                            doc="Bitwise and along the axes."))

__all__ = ["reduce_all", "reduce_and", "reduce_any", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
           "reduce_xor"]
