"""An index that comes from data, and is outside of the buffer in this run."""

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "int32")
            T.copy(A, x)
            x[x[0]] = 1  # mistake
            T.copy(x, B)

    return main


def test_index_from_data(refused):
    with refused("T502", at="x", message="has 256 in block 0|valid are 0 to 63", help="check the"):
        factory()(np.full(64, 64, np.int32), np.zeros(64, np.int32))


@tilelang.jit(out_idx=[-1], target="npuir")
def rows_of(count, width, wanted):
    @T.prim_func
    def main(X: T.Tensor((count, width), "float32"), I: T.Tensor((wanted,), "int32"), Y: T.Tensor((wanted, width), "float32")):
        with T.Kernel(wanted, is_npu=True) as (block, _):
            places = T.alloc_ub((8,), "int32")
            x = T.alloc_ub((1, width), "float32")
            T.copy(I[0:wanted], places[0:wanted])
            T.copy(X[places[block], 0], x)  # mistake
            T.copy(x, Y[block, 0])

    return main


@pytest.mark.parametrize("place", [16, 99])
def test_row_from_data(refused, place):
    x, rows = np.ones((16, 64), np.float32), np.array([0, 3, place, 1], np.int32)
    with refused("T502", at="T.copy", message=f"starts at {place} on axis 0 of X.*which has 0..15", help="number that was"):
        rows_of(16, 64, 4)(x, rows)
