"""The same kernel in Developer mode

The kernel names no core, workspace, flag or wait; the compiler adds them. It has half as many lines as the one before, and
takes less time.

Insight: this step shows the same kernel in Developer mode. The code that the compiler inserts is better than that of the
previous step.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def attention(heads, queries, keys, dim, tile_M=128, tile_N=128):
    scale = dim**-0.5
    tiles = T.ceildiv(queries, tile_M)

    @T.prim_func
    def attention(
        Q: T.Tensor((heads, queries, dim), "float16"),
        K: T.Tensor((heads, keys, dim), "float16"),
        V: T.Tensor((heads, keys, dim), "float16"),
        O: T.Tensor((heads, queries, dim), "float16"),
    ):
        with T.Kernel(heads * tiles, is_npu=True) as (block, _):
            head = block // tiles
            row = block % tiles * tile_M
            q = T.alloc_shared((tile_M, dim), "float16")
            k = T.alloc_shared((tile_N, dim), "float16")
            v = T.alloc_shared((tile_N, dim), "float16")
            p = T.alloc_shared((tile_M, tile_N), "float16")
            scores = T.alloc_fragment((tile_M, tile_N), "float32")
            product = T.alloc_fragment((tile_M, dim), "float32")
            result = T.alloc_fragment((tile_M, dim), "float32")
            largest = T.alloc_fragment((tile_M, 1), "float32")
            before = T.alloc_fragment((tile_M, 1), "float32")
            total = T.alloc_fragment((tile_M, 1), "float32")
            share = T.alloc_fragment((tile_M, 1), "float32")

            T.copy(Q[head, row : row + tile_M, :], q)
            T.clear(result)
            T.clear(total)
            T.fill(largest, -(2.0**30))
            for i in T.Pipelined(keys // tile_N, num_stages=2):
                T.copy(K[head, i * tile_N : (i + 1) * tile_N, :], k)
                T.copy(V[head, i * tile_N : (i + 1) * tile_N, :], v)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                T.vmul(scores, scale, scores)
                T.copy(largest, before)
                T.reduce_max(scores, share, dim=-1)
                T.vmax(share, before, largest)
                T.vsub(before, largest, before)
                T.vexp(before, before)
                T.vsub(scores, largest, scores)
                T.vexp(scores, scores)
                T.copy(scores, p)
                T.reduce_sum(scores, share, dim=-1)
                T.vmul(total, before, total)
                T.vadd(total, share, total)
                T.gemm(p, v, product, initC=True)
                T.vmul(result, before, result)
                T.vadd(result, product, result)
            T.vdiv(result, total, result)
            T.copy(result, O[head, row : row + tile_M, :])

    return attention


if __name__ == "__main__":
    check(attention)
