"""Two launches

The first launch adds the bias, in tiles of eight positions, and stores the result in GM; the second loads the same tiles
again, and stores them one head at a time to the transposed position.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def qkv_heads(batch, positions, heads, dim, dtype, tile=8, cores=48):
    width = 3 * heads * dim
    rows = T.ceildiv(positions, tile)

    @T.prim_func
    def qkv_heads(
        X: T.Tensor((batch, positions, 3 * heads * dim), dtype),
        BIAS: T.Tensor((3 * heads * dim,), dtype),
        Y: T.Tensor((3, batch, heads, positions, dim), dtype),
    ):
        with_bias = T.alloc_global((batch, positions, width), dtype)
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, width), dtype)
            bias = T.alloc_shared((1, width), dtype)
            T.copy(BIAS, bias[0, :])
            for i in T.serial(T.ceildiv(batch * rows - core, cores)):
                n = (i * cores + core) // rows
                row = (i * cores + core) % rows * tile
                T.copy(X[n, row : row + tile, :], x)
                T.vadd(x, bias, x)
                T.copy(x, with_bias[n, row : row + tile, :])
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, width), dtype)
            for i in T.serial(T.ceildiv(batch * rows - core, cores)):
                n = (i * cores + core) // rows
                row = (i * cores + core) % rows * tile
                T.copy(with_bias[n, row : row + tile, :], x)
                for h in T.serial(3 * heads):
                    T.copy(x[:, h * dim : (h + 1) * dim], Y[h // heads, n, h % heads, row : row + tile, :])

    return qkv_heads


if __name__ == "__main__":
    check(qkv_heads)
