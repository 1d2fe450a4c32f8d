"""Macros that a test imports from another module."""

from __future__ import annotations

from typing import Any

import tilelang_npu.language as T

SCALE = 3


@T.macro
def scale_rows(target: Any, rows: Any, factor: Any) -> Any:
    for row in T.serial(rows):
        T.tile.mul(target[row, :], target[row, :], factor * SCALE)


@T.macro
def faulty(target: Any) -> Any:
    T.copy(target, target)


@T.macro
def outer_faulty(target: Any) -> Any:
    x = 1
    faulty(target[x, :])


@T.macro
def endless(target: Any) -> Any:
    endless(target)


@T.macro
def doubles(A: Any, B: Any) -> Any:
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_fragment((32,), "float32")
        T.copy(A, a)
        for i in T.Parallel(32):
            a[i] = a[i] + a[i]
        T.copy(a, B)
