"""RMSNorm along rows in Expert mode: two slots each for loaded and for stored tiles, and every flag and barrier.

The Developer version is ``rms_norm.py``.
"""

import numpy as np
from rms_norm import EPS, SHAPES, expected, inputs

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def rms_norm(rows, columns, tile=8, blocks=48, stages=2):
    @T.prim_func
    def rms_norm(
        X: T.Tensor((rows, columns), "float16"),
        W: T.Tensor((1, columns), "float16"),
        Y: T.Tensor((rows, columns), "float16"),
    ):
        with T.Kernel(blocks // 2, is_npu=True) as (block, half):
            loaded = T.alloc_ub((stages, tile, columns), "float16")
            stored = T.alloc_ub((stages, tile, columns), "float16")
            x = T.alloc_ub((tile, columns), "float32")
            square = T.alloc_ub((tile, columns), "float32")
            scale = T.alloc_ub((tile, 1), "float32")
            narrow = T.alloc_ub((1, columns), "float16")
            weight = T.alloc_ub((1, columns), "float32")
            # Operands of one instruction are in different banks of UB.
            T.annotate_address({scale: 256, x: 512, weight: 512 + 4 * tile * columns + 256})

            with T.Scope("V"):
                T.copy(W, narrow)
                T.set_flag("mte2", "v", 7)
                for slot in range(stages):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                T.wait_flag("mte2", "v", 7)
                T.copy(narrow, weight)

                for i in T.serial(T.ceildiv(rows, tile * blocks)):
                    row = (i * blocks + block * 2 + half) * tile
                    slot = i % stages
                    T.wait_flag("v", "mte2", slot)
                    T.copy(X[row, 0], loaded[slot, :, :])
                    T.set_flag("mte2", "v", slot)

                    T.wait_flag("mte2", "v", slot)
                    T.copy(loaded[slot, :, :], x)
                    T.set_flag("v", "mte2", slot)
                    T.pipe_barrier("v")
                    T.tile.mul(square, x, x)
                    T.pipe_barrier("v")
                    T.reduce_sum(square, scale, dim=-1)
                    T.pipe_barrier("v")
                    T.tile.mul(scale, scale, 1.0 / columns)
                    T.pipe_barrier("v")
                    T.tile.add(scale, scale, EPS)
                    T.pipe_barrier("v")
                    T.tile.rsqrt(scale, scale)
                    T.pipe_barrier("v")
                    T.tile.mul(x, x, scale)
                    T.pipe_barrier("v")
                    T.tile.mul(x, x, weight)
                    T.pipe_barrier("v")
                    T.wait_flag("mte3", "v", slot)
                    T.copy(x, stored[slot, :, :])
                    T.set_flag("v", "mte3", slot)

                    T.wait_flag("v", "mte3", slot)
                    T.copy(stored[slot, :, :], Y[row, 0])
                    T.set_flag("mte3", "v", slot)

                for slot in range(stages):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

    return rms_norm


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = rms_norm(*shape)(*arrays)
        np.testing.assert_allclose(out.astype(np.float32), expected(*arrays), rtol=2e-3, atol=1e-3)
    print("PASS")
