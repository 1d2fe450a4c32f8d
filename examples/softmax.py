"""Softmax along rows. A block has two Vector cores; ``half`` says which of them runs, and each takes half of the rows."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T

switches = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], target="ascendc", pass_configs=switches)
def softmax(rows, columns, tile=16):
    @T.prim_func
    def softmax(
        X: T.Tensor((rows, columns), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, tile), is_npu=True) as (block, half):
            row = block * tile + half * (tile // 2)

            x = T.alloc_ub((tile // 2, columns), "float32")
            largest = T.alloc_ub((tile // 2, 1), "float32")
            total = T.alloc_ub((tile // 2, 1), "float32")

            T.copy(X[row, 0], x)
            T.reduce_max(x, largest, dim=-1)
            T.tile.sub(x, x, largest)
            T.tile.exp(x, x)
            T.reduce_sum(x, total, dim=-1)
            T.tile.div(x, x, total)
            T.copy(x, Y[row, 0])

    return softmax


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1000, 640)).astype(np.float32)
    y = softmax(*x.shape)(x)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7)
    print("PASS")
