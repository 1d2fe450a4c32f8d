"""A sequence of products of 128 x 128 on a Cube core, each stored; then a Vector core may process the last one."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

SIDE, DEPTH = 128, 4096
"""Rows, columns and depth of a product, and the depth of both operands in GM."""


def products(times: int, *, steps: int = 32, taken: bool = False, chip: str) -> Any:
    """``times`` rounds of ``steps`` products, each loaded, multiplied and stored to the same bytes before the next is loaded.

    Args:
        taken: whether a Vector core then adds the first 256 elements to themselves.
    """

    @T.prim_func
    def products(A: T.Tensor((SIDE, DEPTH), "float16"), B: T.Tensor((DEPTH, SIDE), "float16"),
                 C: T.Tensor((SIDE, SIDE), "float32"), Z: T.Tensor((128,), "float32")):
        with T.Kernel(1, is_npu=True) as (_core, vid):
            a = T.alloc_L1((SIDE, SIDE), "float16")
            b = T.alloc_L1((SIDE, SIDE), "float16")
            left = T.alloc_L0A((SIDE, SIDE), "float16")
            right = T.alloc_L0B((SIDE, SIDE), "float16")
            c = T.alloc_L0C((SIDE, SIDE), "float32")
            with T.Scope("C"):
                T.set_flag("mte1", "mte2", 0)
                T.set_flag("m", "mte1", 0)
                T.set_flag("fix", "m", 0)
                for _time in T.serial(times):
                    for k in T.serial(steps):
                        T.wait_flag("mte1", "mte2", 0)
                        T.copy(A[0:SIDE, k * SIDE : (k + 1) * SIDE], a)
                        T.copy(B[k * SIDE : (k + 1) * SIDE, :], b)
                        T.set_flag("mte2", "mte1", 0)
                        T.wait_flag("mte2", "mte1", 0)
                        T.wait_flag("m", "mte1", 0)
                        T.copy(a, left)
                        T.copy(b, right)
                        T.set_flag("mte1", "mte2", 0)
                        T.set_flag("mte1", "m", 0)
                        T.wait_flag("mte1", "m", 0)
                        T.wait_flag("fix", "m", 0)
                        T.mma(left, right, c, init=True)
                        T.set_flag("m", "mte1", 0)
                        T.set_flag("m", "fix", 0)
                        T.wait_flag("m", "fix", 0)
                        T.copy(c, C)
                        T.set_flag("fix", "m", 0)
                T.wait_flag("mte1", "mte2", 0)
                T.wait_flag("m", "mte1", 0)
                T.wait_flag("fix", "m", 0)
                if taken:
                    T.set_cross_flag("fix", 0)
            if taken:
                x = T.alloc_ub((128,), "float32")
                y = T.alloc_ub((128,), "float32")
                z = T.alloc_ub((128,), "float32")
                with T.Scope("V"):
                    T.wait_cross_flag(0)
                    if vid == 0:
                        T.copy(C[0, 0:128], x)
                        T.copy(C[0, 0:128], y)
                        T.set_flag("mte2", "v", 0)
                        T.wait_flag("mte2", "v", 0)
                        T.tile.add(z, x, y)
                        T.set_flag("v", "mte3", 0)
                        T.wait_flag("v", "mte3", 0)
                        T.copy(z, Z)

    return tilelang.compile(products, target="ascendc", chip=chip)


B3 = "910B3"
CASES = {
    "products": Case(lambda count: products(count, chip=B3), (1, 3), 30),
    **{f"handoff_{steps * SIDE}": Case(lambda _count, steps=steps: products(1, steps=steps, taken=True, chip=B3))
       for steps in (1, 2, 3, 4, 8, 16)},
}
