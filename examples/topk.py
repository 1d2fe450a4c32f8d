"""The largest elements of each row with their indices, as the router of a mixture of experts needs them.

A sort gives pairs of a value and its index, where the index has the element type of the values. ``T.deinterleave``
separates them, and a cast converts the indices to integers. Rows are sorted one by one; a block processes every
``blocks``-th row, so that a row is loaded while another is sorted.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-2, -1], target="npuir")
def topk(rows, columns, count, blocks=48, stages=2):
    @T.prim_func
    def topk(
        X: T.Tensor((rows, columns), "float32"),
        Values: T.Tensor((rows, count), "float32"),
        Places: T.Tensor((rows, count), "int32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, _):
            x = T.alloc_shared((columns,), "float32")
            pairs = T.alloc_shared((2 * count,), "float32")
            values = T.alloc_shared((count,), "float32")
            numbers = T.alloc_shared((count,), "float32")
            places = T.alloc_shared((count,), "int32")
            for i in T.Pipelined(T.ceildiv(rows - block, blocks), num_stages=stages):
                row = i * blocks + block
                T.copy(X[row, 0], x)
                T.tile.topk(pairs, x, count, columns)
                T.deinterleave(pairs, values, numbers)
                T.vcast(numbers, places)
                T.copy(values, Values[row, 0])
                T.copy(places, Places[row, 0])

    return topk


SHAPES = [(512, 1024, 8), (100, 77, 5), (10, 1000, 16)]


def inputs(rows: int, columns: int, count: int) -> tuple[NDArray[Any], ...]:
    return (np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32),)


def expected(x: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    places = np.argsort(-x, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(x, places, axis=1), places


if __name__ == "__main__":
    for shape in SHAPES:
        (x,) = inputs(*shape)
        for out, right in zip(topk(*shape)(x), expected(x, shape[-1]), strict=True):
            np.testing.assert_array_equal(out, right)
    print("PASS")
