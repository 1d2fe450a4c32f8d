"""Launches as data: the figures survive conversion to JSON."""

from __future__ import annotations

import json

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_a_launch_goes_through_json_with_its_own_figures() -> None:
    @tilelang.jit(out_idx=[-1], target="npuir")
    def doubled(n):
        @T.prim_func
        def doubled(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
            with T.Kernel(n // 1024, is_npu=True) as (block, _):
                x = T.alloc_shared((1024,), "float32")
                T.copy(X[block * 1024], x)
                T.vadd(x, x, x)
                T.copy(x, Y[block * 1024])

        return doubled

    kernel = doubled(4096)
    np.testing.assert_array_equal(kernel(np.ones(4096, np.float32)), 2)
    launch = kernel.last_launch
    data = json.loads(json.dumps(launch.to_dict()))
    assert (data["kernel"], data["chip"], data["blocks"], data["time_us"]) == ("doubled", "Ascend910B2", 4, launch.time_us)
    assert data["arguments"][0] == {"name": "X", "dtype": "float32", "shape": [4096]}
    assert sum(data["split_us"].values()) == launch.time_us
    assert data["gm"]["bytes"] == 2 * 4 * 4096
