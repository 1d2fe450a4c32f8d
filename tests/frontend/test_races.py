"""Points of T.Parallel that store different values to one element are refused; one value, or one chosen point, is not."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tilelang_npu import TileError
from tilelang_npu.frontend import trace

KERNEL = """\
import tilelang_npu.language as T

@T.prim_func
def main(A: T.Tensor((8, 64), "float32"), M: T.Tensor((8,), "int32"), n: T.int32):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        a = T.alloc_ub((8, 64), "float32")
        b = T.alloc_ub((8, 64), "float32")
        m = T.alloc_ub((8,), "int32")
        v = T.alloc_var("float32", init=0.0)
"""
RACING = [
    "for i, j in T.Parallel(8, 64):\n    a[0, j] = b[i, j]",
    "for i, j in T.Parallel(8, 64):\n    a[n, j] = b[i, j]",
    "for i, j in T.Parallel(8, 64):\n    if i < 3:\n        a[0, j] = b[i, j]",
    "for i in T.Parallel(8):\n    for k in T.serial(64):\n        a[k, 0] = b[i, k]",
    "for i, j in T.Parallel(8, 64):\n    a[0, j] = T.if_then_else(i > 3, 1.0, 2.0)",
    "for i, j in T.Parallel(8, 64):\n    a[0, 0] = b[i, j]",
]
HARMLESS = [
    "for i, j in T.Parallel(8, 64):\n    a[0, j] += b[i, j]",
    "for i, j in T.Parallel(8, 64):\n    a[0, j] = a[0, j] + 1.0",
    "for i, j in T.Parallel(8, 64):\n    v = v + b[i, j]",
    "for i, j in T.Parallel(8, 64):\n    a[0, j] = b[0, j]",
    "for i, j in T.Parallel(1, 64):\n    a[0, j] = b[i, j]",
    "for i, j in T.Parallel(8, 64):\n    a[j % 8, i] = b[i, j]",
    "for i, j in T.Parallel(8, 64):\n    if i == 3:\n        a[0, j] = b[i, j]",
    "for i, j in T.Parallel(8, 64):\n    if m[i] > 0:\n        a[0, j] = b[i, j]",
    "for i, j in T.Parallel(8, 64):\n    a[m[i], j] = b[i, j]",
    "for i, j in T.Parallel(8, 64):\n    v = b[i, j]\n    a[i, j] = v * v",
    "for i, j in T.Parallel(8, 64):\n    v = b[i, j]\n    v = v * 2.0\n    a[i, j] = v",
    "for i in T.Parallel(8):\n    for k in T.serial(64):\n        a[i, 0] += b[i, k]",
    "for i, j in T.Parallel(8, 64):\n    T.atomic_add(A[0, j], b[i, j])",
    "for i, j in T.Parallel(8, 64):\n    if b[i, j] > 0:\n        a[0, 0] = 1.0",
]


def _kernel(source: Any, body: str) -> Any:
    return source(KERNEL + textwrap.indent(body, "        ") + "\n").main


@pytest.mark.parametrize("body", RACING)
def test_points_that_store_different_values_to_one_element(source: Any, body: str) -> None:
    with pytest.raises(TileError, match=r"the points of T.Parallel that differ in '\w'( and '\w')? store different") as caught:
        trace(_kernel(source, body))
    assert caught.value.code == "T149"
    assert caught.value.location is not None
    assert " = " in caught.value.location.source() or " += " in caught.value.location.source()


@pytest.mark.parametrize("body", HARMLESS)
def test_one_value_or_one_point_for_each_element(source: Any, body: str) -> None:
    trace(_kernel(source, body)).module.verify()


def test_the_indices_that_are_missing_are_named(source: Any) -> None:
    with pytest.raises(TileError, match="'row' and 'column' are not in its index"):
        trace(_kernel(source, "for row, column in T.Parallel(8, 64):\n    a[0, 0] = b[row, column]"))
    with pytest.raises(TileError, match="one element of m: 'i' is not in its index"):
        trace(_kernel(source, "for i, j in T.Parallel(8, 64):\n    m[n] = T.cast(b[i, 3], 'int32')"))


# reads of elements that another point stores
READS_OF_OTHERS = [
    "for i, j in T.Parallel(8, 8):\n    a[i, j] = a[j, i]",
    "for i, j in T.Parallel(8, 63):\n    a[i, j + 1] = a[i, j]",
    "for i, j in T.Parallel(8, 63):\n    a[i, j] = a[i, j + 1]",
    "for i, j in T.Parallel(8, 64):\n    a[i, j] = a[i, j] / a[i, 0]",
    "for i, j in T.Parallel(8, 64):\n    a[i, j] = a[i, 63 - j]",
    "for i, j in T.Parallel(8, 64):\n    a[i, j] = b[i, j]\n    b[i, j] = a[(i + 1) * 1 - 1, j] + a[0, j]",
    "for i, j in T.Parallel(8, 63):\n    A[i, n + j + 1] = A[i, n + j]",
]
READS_OF_ITS_OWN = [
    "for i, j in T.Parallel(8, 64):\n    a[i, j] = a[i, j] * 2.0",
    "for i, j in T.Parallel(8, 32):\n    a[i, j] = a[i, j + 32]",
    "for i, j in T.Parallel(8, 32):\n    a[i, 2 * j] = a[i, 2 * j + 1]",
    "for i, j in T.Parallel(8, 32):\n    a[i, j] = b[i, j + 1]",
    "for i, j in T.Parallel(8, 32):\n    a[i, j + 32] = a[i, j] - a[i, j + 32]",
    "for i, j in T.Parallel(8, 64):\n    a[0, j] += b[i, j]",
    "for i, j in T.Parallel(8, 1):\n    a[i, j] = a[i, 0]",
    "for i, j in T.Parallel(8, 64):\n    a[i, j] = a[i, 0 + j]",
    "for i in T.Parallel(8):\n    for k in T.serial(63):\n        a[i, k + 1] = a[i, k]",  # the inner loop has an order
    "for i, j in T.Parallel(8, 8):\n    if i < j:\n        a[i, j] = a[j, i]",  # its points are those that it does not read
    "for i, j in T.Parallel(8, 64):\n    a[i, j] = a[n, j]",  # the value of n is not known
]


@pytest.mark.parametrize("body", READS_OF_OTHERS)
def test_a_point_that_reads_what_another_one_stores_is_remarked_upon(source: Any, body: str) -> None:
    (remark,) = trace(_kernel(source, body)).remarks
    assert remark.code == "T149"
    assert "reads an element of " in remark.message
    assert remark.location is not None
    assert remark.location.source().strip() in body


@pytest.mark.parametrize("body", READS_OF_ITS_OWN)
def test_a_point_that_reads_only_its_own_or_unwritten_elements_is_no_race(source: Any, body: str) -> None:
    assert trace(_kernel(source, body)).remarks == ()


def test_the_two_points_are_named(source: Any) -> None:
    (remark,) = trace(_kernel(source, "for row, column in T.Parallel(8, 60):\n    a[row, column + 4] = a[row, column]")).remarks
    assert "(row = 0, column = 4) reads an element of a that another one (row = 0, column = 0) stores" in remark.message
