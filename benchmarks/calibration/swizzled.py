"""The GEMM of a guide of pto-dsl (step 4, explicit flags): the cores process blocks of C round-robin, down and up five columns
of blocks at a time; A and B have rows along K."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

TALL, WIDE = 128, 256
"""Rows and columns of a block of C."""
DEEP, HALF, PART = 512, 256, 64
"""Depth of a load of A, of a load of B, and of an MMAD."""
ACROSS = 5
"""Columns of blocks that are processed together."""


def product(rows: int, columns: int, depth: int, *, cores: int, chip: str) -> Any:
    """``C = A @ B.T`` of float16."""
    down, across = rows // TALL, columns // WIDE
    span = ACROSS * down
    inner = HALF // PART

    @T.prim_func
    def gemm(A: T.Tensor((rows, depth), "float16"), B: T.Tensor((columns, depth), "float16"),
             C: T.Tensor((rows, columns), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_L1((2, TALL, DEEP), "float16")
            b = T.alloc_L1((2, WIDE, HALF), "float16")
            left = T.alloc_L0A((2, TALL, PART), "float16")
            right = T.alloc_L0B((2, PART, WIDE), "float16")
            c = T.alloc_L0C((TALL, WIDE), "float32")
            with T.Scope("C"):
                for slot in range(4):
                    T.set_flag("mte1", "mte2", slot)
                for half in range(2):
                    T.set_flag("m", "mte1", half)
                T.set_flag("fix", "m", 0)
                for number in T.serial(T.ceildiv(down * across - core, cores)):
                    block = core + number * cores
                    group = block // span
                    inside = block % span
                    width = T.min(ACROSS, across - group * ACROSS)
                    step = inside // width
                    row = T.if_then_else(group % 2 == 1, down - step - 1, step) * TALL
                    column = (group * ACROSS + inside % width) * WIDE
                    T.wait_flag("fix", "m", 0)
                    T.wait_flag("mte1", "mte2", 0)
                    T.copy(A[row, 0], a[0, :, :])
                    T.set_flag("mte2", "mte1", 0)
                    for k in T.serial(depth // DEEP):
                        slot = k % 2
                        for h in range(2):
                            T.wait_flag("mte1", "mte2", 2 + h)
                            T.copy(B[column, k * DEEP + h * HALF], b[h, :, :])
                            T.set_flag("mte2", "mte1", 2 + h)
                            for i in range(inner):
                                half = i % 2
                                T.wait_flag("m", "mte1", half)
                                if h == 0 and i == 0:
                                    T.wait_flag("mte2", "mte1", slot)
                                T.copy(a[slot, :, h * HALF + i * PART : h * HALF + (i + 1) * PART], left[half, :, :])
                                if h == 1 and i == inner - 1:
                                    T.set_flag("mte1", "mte2", slot)
                                if i == 0:
                                    T.wait_flag("mte2", "mte1", 2 + h)
                                T.copy(b[h, :, i * PART : (i + 1) * PART], right[half, :, :], transpose=True)
                                T.set_flag("mte1", "m", 0)
                                if i == inner - 1:
                                    T.set_flag("mte1", "mte2", 2 + h)
                                T.wait_flag("mte1", "m", 0)
                                if h == 0 and i == 0:
                                    T.mma(left[half, :, :], right[half, :, :], c, init=k == 0)
                                else:
                                    T.mma(left[half, :, :], right[half, :, :], c, init=False)
                                T.set_flag("m", "mte1", half)
                        if k + 1 < depth // DEEP:
                            T.wait_flag("mte1", "mte2", 1 - slot)
                            T.copy(A[row, (k + 1) * DEEP], a[1 - slot, :, :])
                            T.set_flag("mte2", "mte1", 1 - slot)
                    T.set_flag("m", "fix", 0)
                    T.wait_flag("m", "fix", 0)
                    T.copy(c, C[row : row + TALL, column : column + WIDE])
                    T.set_flag("fix", "m", 0)
                for slot in range(4):
                    T.wait_flag("mte1", "mte2", slot)
                for half in range(2):
                    T.wait_flag("m", "mte1", half)
                T.wait_flag("fix", "m", 0)

    return tilelang.compile(gemm, target="ascendc", chip=chip)


SIZES = {8192: (1152, 2176, 3200, 4224), 16384: (1152, 2176)}
"""The measured numbers of rows, by the number of columns and the depth."""
CASES = {f"swizzled_{rows}_{size}": Case(lambda _count, m=rows, s=size: product(m, s, s, cores=24, chip="910B2"))
         for size, measured in SIZES.items() for rows in measured}
