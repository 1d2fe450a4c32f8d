"""TurboQuant: divides rows of float32 by their lengths, and replaces each element by the index of its interval of 16, as 4
bits."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

LENGTH, SLOT, CENTRES = 512, 320, 16
"""Elements of a row, bytes of its result, and centres of the intervals."""


def turbo_quant(rows: int, most: int = 12, *, cores: int = 40, chip: str) -> Any:
    """Each core has a range of rows. Dependent instructions process a batch of up to ``most`` rows; the sum and the
    multiplication process single rows. Loads and stores do not overlap with computation.

    The elements are packed as bytes, of which half are stored, since there is no 4-bit type.
    """
    own = -(-rows // cores)
    used = -(-rows // own)
    batch = min(own, most)

    @T.prim_func
    def quantise(X: T.Tensor((rows, LENGTH), "float32"), C: T.Tensor((CENTRES,), "float32"),
                 Y: T.Tensor((rows, SLOT), "int8")):
        with T.Kernel(used, is_npu=True) as (core, _):
            x = T.alloc_ub((batch, LENGTH), "float32")
            unit = T.alloc_ub((batch, LENGTH), "float32")
            number = T.alloc_ub((batch, LENGTH), "float32")
            tmp = T.alloc_ub((batch, LENGTH), "float32")
            chosen = T.alloc_ub((batch, LENGTH), "float32")
            one = T.alloc_ub((batch, LENGTH), "float32")
            mask = T.alloc_ub((batch, LENGTH // 8), "uint8")
            half = T.alloc_ub((batch, LENGTH), "float16")
            packed = T.alloc_ub((batch, LENGTH), "int8")
            total = T.alloc_ub((batch, 8), "float32")
            centre = T.alloc_ub((CENTRES,), "float32")
            with T.Scope("V"):
                T.copy(C, centre)
                T.barrier_all()
                T.tile.fill(one, 1.0)
                T.pipe_barrier("v")
                end = T.min((core + 1) * own, rows)
                for i in T.serial(T.ceildiv(end - core * own, batch)):
                    first = core * own + i * batch
                    count = T.min(batch, end - first)
                    T.copy(X[first : first + count, :], x[0:count, :])
                    T.set_flag("mte2", "v", 0)
                    T.wait_flag("mte2", "v", 0)
                    T.tile.fill(packed, 0)
                    T.pipe_barrier("v")
                    T.tile.mul(tmp, x, x)
                    T.pipe_barrier("v")
                    for r in T.serial(count):
                        T.reduce_sum(tmp[r : r + 1, :], total[r : r + 1, 0:1], dim=-1)
                        T.pipe_barrier("v")
                    T.set_flag("v", "s", 0)
                    T.wait_flag("v", "s", 0)
                    for r in T.serial(count):
                        T.tile.mul(unit[r : r + 1, :], x[r : r + 1, :], total[r, 0])
                    T.pipe_barrier("v")
                    T.tile.fill(number, 0.0)
                    T.pipe_barrier("v")
                    for b in T.serial(CENTRES - 1):
                        T.tile.compare(mask, unit, centre[b], "GE")
                        T.pipe_barrier("v")
                        T.tile.select(chosen, mask, one, 0.0, "VSEL_TENSOR_SCALAR_MODE")
                        T.pipe_barrier("v")
                        T.tile.add(number, number, chosen)
                        T.pipe_barrier("v")
                    T.tile.compare(mask, number, 8.0, "LT")
                    T.pipe_barrier("v")
                    T.tile.add(chosen, number, -16.0)
                    T.pipe_barrier("v")
                    T.tile.select(tmp, mask, number, chosen, "VSEL_TENSOR_TENSOR_MODE")
                    T.pipe_barrier("v")
                    T.tile.cast(half, tmp, "CAST_RINT")
                    T.pipe_barrier("v")
                    for r in T.serial(count):
                        T.tile.cast(packed[r : r + 1, :], half[r : r + 1, :], "CAST_RINT")
                    T.pipe_barrier("v")
                    T.set_flag("v", "s", 0)
                    T.wait_flag("v", "s", 0)
                    for r in T.serial(count):
                        packed[r, 256] = 1
                        packed[r, 257] = 1
                    T.set_flag("s", "mte3", 0)
                    T.wait_flag("s", "mte3", 0)
                    T.set_flag("v", "mte3", 0)
                    T.wait_flag("v", "mte3", 0)
                    T.copy(packed[0:count, 0:SLOT], Y[first : first + count, :])
                    T.set_flag("mte3", "v", 0)
                    T.set_flag("v", "mte2", 0)
                    T.wait_flag("mte3", "v", 0)
                    T.wait_flag("v", "mte2", 0)

    return tilelang.compile(quantise, target="ascendc", chip=chip)


B4 = "910B4"
CASES = {
    **{f"turbo_quant_{rows}": Case(lambda _count, rows=rows: turbo_quant(rows, chip=B4))
       for rows in (1, 32, 128, 512, 1024, 2048, 4096, 8192, 16384, 65536)},
    **{f"turbo_quant_single_{rows}": Case(lambda _count, rows=rows: turbo_quant(rows, 1, chip=B4))
       for rows in (1024, 2048, 4096, 8192, 16384)},
}
