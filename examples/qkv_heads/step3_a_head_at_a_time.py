"""One head at a time

A store of eight positions of a head is 1 KB in float16, and there is one for each head. A tile of 256 positions of one head
is a single store of 32 KB. Its loads have rows of 128 bytes, but all positions are still one request; the other parts of
the accessed lines stay in L2 for the cores that process the next heads at the same time. The next tile is loaded while the
current one is stored (`T.Pipelined`).

Removes cause: small bursts
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def qkv_heads(batch, positions, heads, dim, dtype, tile=256, cores=48):
    rows = T.ceildiv(positions, tile)
    tiles = batch * rows * 3 * heads

    @T.prim_func
    def qkv_heads(
        X: T.Tensor((batch, positions, 3 * heads * dim), dtype),
        BIAS: T.Tensor((3 * heads * dim,), dtype),
        Y: T.Tensor((3, batch, heads, positions, dim), dtype),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, dim), dtype)
            bias = T.alloc_shared((1, dim), dtype)
            for i in T.Pipelined(T.ceildiv(tiles - core, cores), num_stages=2):
                own = i * cores + core
                h = own % (3 * heads)
                n = own // (3 * heads) // rows
                row = own // (3 * heads) % rows * tile
                T.copy(BIAS[h * dim : (h + 1) * dim], bias[0, :])
                T.copy(X[n, row : row + tile, h * dim : (h + 1) * dim], x)
                T.vadd(x, bias, x)
                T.copy(x, Y[h // heads, n, h % heads, row : row + tile, :])

    return qkv_heads


if __name__ == "__main__":
    check(qkv_heads)
