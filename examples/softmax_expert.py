"""Softmax along rows in Expert mode: two slots for the tiles, and every flag and barrier. The Developer version is
``softmax.py``.
"""

import numpy as np
from softmax import SHAPES, expected, inputs

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def softmax(rows, columns, tile=16, blocks=48, stages=2):
    tiles = T.ceildiv(rows, tile * blocks)

    @T.prim_func
    def softmax(
        X: T.Tensor((rows, columns), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(blocks // 2, is_npu=True) as (block, half):
            x = T.alloc_ub((stages, tile, columns), "float32")
            largest = T.alloc_ub((tile, 1), "float32")
            total = T.alloc_ub((tile, 1), "float32")
            # Operands of one instruction are in different banks of UB.
            T.annotate_address({largest: 256, total: 256 + 4 * tile, x: 512})

            with T.Scope("V"):
                for slot in range(stages):
                    T.set_flag("mte3", "mte2", slot)

                for i in T.serial(tiles):
                    row = (i * blocks + block * 2 + half) * tile
                    slot = i % stages
                    if row < rows:
                        T.wait_flag("mte3", "mte2", slot)
                        T.copy(X[row, 0], x[slot, :, :])
                        T.set_flag("mte2", "v", slot)

                        T.wait_flag("mte2", "v", slot)
                        T.reduce_max(x[slot, :, :], largest, dim=-1)
                        T.pipe_barrier("v")
                        T.tile.sub(x[slot, :, :], x[slot, :, :], largest)
                        T.pipe_barrier("v")
                        T.tile.exp(x[slot, :, :], x[slot, :, :])
                        T.pipe_barrier("v")
                        T.reduce_sum(x[slot, :, :], total, dim=-1)
                        T.pipe_barrier("v")
                        T.tile.div(x[slot, :, :], x[slot, :, :], total)
                        T.set_flag("v", "mte3", slot)

                        T.wait_flag("v", "mte3", slot)
                        T.copy(x[slot, :, :], Y[row, 0])
                        T.set_flag("mte3", "mte2", slot)

                for slot in range(stages):
                    T.wait_flag("mte3", "mte2", slot)

    return softmax


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = softmax(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=1e-5, atol=1e-7)
    print("PASS")
