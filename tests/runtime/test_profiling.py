"""Sources of a profile: arrays, shapes, or the last launch."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.reports.launches import arrays_for_shapes, launch_of


@tilelang.jit(out_idx=[-1], target="npuir")
def doubled() -> Any:
    rows = T.symbolic("rows")

    @T.prim_func
    def doubled(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):  # type: ignore[no-untyped-def]
        with T.Kernel(T.ceildiv(rows, 16), is_npu=True) as (i, _):
            a = T.alloc_ub((16, 64), "float32")
            T.copy(A[i * 16, 0], a)
            T.vadd(a, a, a)
            T.copy(a, B[i * 16, 0])

    return doubled


def test_shapes_take_as_long_as_arrays_of_these_shapes() -> None:
    kernel = doubled()
    arrays = launch_of(kernel, [np.ones((320, 64), np.float32)])
    shapes = launch_of(kernel, [(320, 64)])
    assert shapes.time_us == arrays.time_us
    assert launch_of(kernel, [(6400, 64)]).time_us > arrays.time_us


def test_without_arguments_the_last_launch_is_taken() -> None:
    kernel = doubled()
    kernel(np.ones((640, 64), np.float32))
    assert launch_of(kernel) is kernel.last_launch
    assert kernel.profile().launch is kernel.last_launch


def test_arrays_stand_in_for_shapes_and_what_is_too_much_is_left_alone() -> None:
    kernel = doubled()
    given = np.ones((16, 64), np.float32)
    made = arrays_for_shapes(kernel, [(48, 64)], lambda parameter, shape: np.zeros(shape, parameter.dtype.numpy))
    assert [(one.shape, one.dtype) for one in made] == [((48, 64), np.float32)]
    assert arrays_for_shapes(kernel, [given], lambda *_: given)[0] is given
    assert len(arrays_for_shapes(kernel, [given] * 5, lambda *_: given)) == 5
