"""A grid computed with // although the tile does not divide the size."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc", pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
def factory(M, N, tile):
    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"),
        C: T.Tensor((M, N), "float32"),  # mistake
    ):
        with T.Kernel(M // tile, is_npu=True) as (block, half):
            a = T.alloc_ub((tile // 2, N), "float32")
            row = block * tile + half * (tile // 2)
            T.copy(A[row, 0], a)
            T.tile.exp(a, a)
            T.copy(a, C[row, 0])

    return main


def test_rows_are_left(refused):
    message = r"rows 96\.\.96 of C are never written: the grid's tiles cover 96 of 97 rows"
    with refused("T410", at="C", message=message, help=r"T\.ceildiv"):
        factory(97, 64, 32)(np.ones((97, 64), np.float32))


def test_whole_tiles_are_fine():
    a = np.ones((96, 64), np.float32)
    np.testing.assert_allclose(factory(96, 64, 32)(a), np.exp(a), rtol=1e-6)
