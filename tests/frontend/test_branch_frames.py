"""``T.If``, ``T.Then`` and ``T.Else``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_each_branch_runs_where_its_condition_says() -> None:
    @T.prim_func
    def main(X: T.Tensor((8,), "int32"), Y: T.Tensor((8,), "int32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((8,), "int32")
            y = T.alloc_ub((8,), "int32")
            T.copy(X, x)
            T.tile.fill(y, 0)
            for i in T.serial(8):
                with T.If(x[i] > 3):
                    with T.Then():
                        y[i] = x[i]
                        with T.If(i < 4), T.Then():
                            y[i] = y[i] + 100
                    with T.Else():
                        y[i] = -x[i]
            with T.If(len("abc") == 3):
                with T.Then():
                    y[0] = 7
                with T.Else():
                    y[0] = 8
            T.copy(y, Y)

    x = np.array([5, 1, 4, 3, 9, 2, 3, 8], np.int32)
    y = tilelang.compile(main, target="ascendc", out_idx=[1], pass_configs={"tl.ascend_auto_sync": True})(x)
    assert y.tolist() == [7, -1, 104, -3, 9, -2, -3, 8]


@pytest.mark.parametrize(("statements", "at", "message"), [
    ("with T.Then():\n    pass", "T.Then()", "is outside of `with T.If`"),
    ("with T.If(cid > 0):\n    x = 1", "x = 1", "may contain only `with T.Then"),
    ("with T.If(cid > 0):\n    with T.Else():\n        pass", "T.If(cid > 0)", "has no `with T.Then"),
    ("with T.If(cid > 0):\n    with T.Then():\n        pass\n    with T.Then():\n        pass", "T.Then()", "occurs twice"),
])
def test_branches_out_of_place(body: Callable[[str], Any], refused: Any, statements: str, at: str, message: str) -> None:
    from tilelang_npu.frontend import trace

    with refused("T141", at=at, message=message):
        trace(body(statements), dialect="ascendc")
