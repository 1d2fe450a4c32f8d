"""Reductions along axes of a tile (PIPE_V): one entry each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang_npu.ops.dtypes import DType, dtype
from tilelang_npu.ops.spec import Reduce, declare

_REDUCIBLE = tuple(dtype(name) for name in ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "f32"))


def _lowest(element: DType) -> Any:
    if element.is_float:
        return -np.inf
    return np.iinfo(element.numpy).min


def _highest(element: DType) -> Any:
    if element.is_float:
        return np.inf
    return np.iinfo(element.numpy).max


def _fold(ufunc: np.ufunc) -> Any:
    def fold(source: Any, axis: tuple[int, ...]) -> Any:
        return ufunc.reduce(source, axis=axis, keepdims=True)

    return fold


reduce_sum = declare(Reduce(name="reduce_sum", mode="sum", combine="add", dtypes=_REDUCIBLE, meaning=_fold(np.add),
                            neutral=lambda _: 0, cost="cadd", doc="Sum along the axes."))
reduce_max = declare(Reduce(name="reduce_max", mode="max", combine="max", dtypes=_REDUCIBLE, meaning=_fold(np.maximum),
                            neutral=_lowest, cost="cmax", doc="Largest element along the axes."))
reduce_min = declare(Reduce(name="reduce_min", mode="min", combine="min", dtypes=_REDUCIBLE, meaning=_fold(np.minimum),
                            neutral=_highest, cost="cmin", doc="Smallest element along the axes."))

__all__ = ["reduce_max", "reduce_min", "reduce_sum"]
