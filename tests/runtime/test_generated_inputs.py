"""The inputs with which versions of a kernel are compared: their shapes, types and values, and the kernels that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.runtime.reports.generated_inputs import generated_inputs


def gathered(sizes: Any = 8, *, scaled: bool = False) -> Any:
    if scaled:
        @T.prim_func
        def main(X: T.Tensor((sizes, 64), "float16"), s: T.int32, Y: T.Tensor((sizes, 64), "float16")):
            with T.Kernel(1, is_npu=True) as (block, _):
                x = T.alloc_shared((8, 64), "float16")
                T.copy(X[s, 0], x)
                T.copy(x, Y[0, 0])
    else:
        @T.prim_func
        def main(X: T.Tensor((sizes, 64), "float16"), I: T.Tensor((8,), "int32"), Y: T.Tensor((sizes, 64), "float16")):
            with T.Kernel(1, is_npu=True) as (block, _):
                x = T.alloc_shared((8, 64), "float16")
                T.copy(X, x)
                T.copy(x, Y)

    return tilelang.compile(main, target="npuir", out_idx=[2])


def test_shapes_and_types_are_as_declared_and_integers_are_small() -> None:
    x, index = generated_inputs(gathered())
    assert (x.shape, x.dtype) == ((8, 64), np.float16) and (index.shape, index.dtype) == ((8,), np.int32)
    assert set(index.tolist()) <= {0, 1, 2, 3} and len(set(index.tolist())) > 1
    assert abs(float(x.mean())) < 0.2 and 0.8 < float(x.std()) < 1.2


def test_they_are_the_same_each_time() -> None:
    for one, other in zip(generated_inputs(gathered()), generated_inputs(gathered()), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("kernel", "name"), [(lambda: gathered(T.dynamic("n")), "X"), (lambda: gathered(scaled=True), "s")])
def test_what_only_a_call_knows_is_an_error(kernel: Any, name: str) -> None:
    with pytest.raises(TileError, match=f"parameter {name} whose value or sizes only a call knows") as caught:
        generated_inputs(kernel())
    assert caught.value.code == "T810"
