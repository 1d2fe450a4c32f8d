"""Strips of tensors in GM: their sizes, and that loops over them reach every element once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.transforms.infra.tensor_strips import STRIP, strip_sizes

SHAPES = st.lists(st.integers(1, 70_000), min_size=1, max_size=4)


@pytest.mark.parametrize(("shape", "nbytes", "wanted"), [
    ([8, 6], 4, [8, 6]),  # the whole tensor
    ([3, 5000], 4, [1, 4096]),  # a part of a row
    ([100, 1000], 4, [4, 1000]),  # several rows
    ([2, 3, 2048], 4, [1, 2, 2048]),
    ([-1, 64], 2, [128, 64]),  # as many rows as there is room for
    ([5, -1], 1, [1, STRIP]),
    ([4, 1, 1], 8, [4, 1, 1]),
])
def test_sizes_of_a_strip(shape: list[int], nbytes: int, wanted: list[int]) -> None:
    assert strip_sizes(shape, nbytes) == wanted


@given(SHAPES, st.sampled_from([1, 2, 4, 8]))
def test_a_strip_fits_and_only_one_axis_is_cut(shape: list[int], nbytes: int) -> None:
    strip = strip_sizes(shape, nbytes)
    assert math.prod(strip) * nbytes <= STRIP
    assert all(1 <= part <= size for part, size in zip(strip, shape, strict=True))
    cut = next((axis for axis in reversed(range(len(shape))) if strip[axis] != shape[axis]), 0)
    assert strip[cut + 1:] == shape[cut + 1:]
    assert strip[:cut] == [1] * cut
    assert strip[cut] == shape[cut] or (strip[cut] + 1) * math.prod(strip[cut + 1:]) * nbytes > STRIP  # no larger one fits


@pytest.mark.parametrize("shape", [(8, 6), (3, 5000), (2, 3, 2100), (4097,)], ids=str)
@pytest.mark.parametrize("name", ["float32", "float16", "int8", "uint16", "int64"])
def test_loops_over_strips_reach_each_element(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> None:
    """A copy between two tensors in GM goes through a strip in UB."""

    @T.prim_func
    def main(X: T.Tensor(shape, name), Y: T.Tensor(shape, name)):
        with T.Kernel(1) as cid:
            T.copy(X, Y)

    x = rng.integers(-100 if name[0] != "u" else 0, 100, size=shape).astype(name)
    y = np.full(shape, 77, dtype=name)
    tilelang.compile(main, target="npuir")(x, y)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("rows", [1, 128, 129, 1000])
def test_the_size_of_an_axis_can_be_one_of_run_time(rng: np.random.Generator, rows: int) -> None:
    size = T.dynamic("rows")

    @T.prim_func
    def main(X: T.Tensor((size, 64), "float16"), Y: T.Tensor((size, 64), "float16")):
        with T.Kernel(1) as cid:
            T.copy(X, Y)

    x = rng.standard_normal((rows, 64)).astype(np.float16)
    y = np.zeros_like(x)
    tilelang.compile(main, target="npuir")(x, y)
    np.testing.assert_array_equal(y, x)
