"""Long and short rows in pairs

The last tile of queries needs 64 times as many products as the first. Cores with more of the long tiles end last, and the
others are idle for 9 % of the time. A block now processes two tiles, the first and the last, the second and the last but
one, and so on, so that all blocks have the same amount of work.

Insight: tiles differ in their amount of work, and pairs of a long and a short tile all have the same amount.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def causal(heads, length, dim, tile=128):
    scale = dim**-0.5
    tiles = 2 * T.ceildiv(length, 2 * tile)  # an even number

    @T.prim_func
    def causal(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        O: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(heads * tiles // 2, is_npu=True) as (block, _):
            head = block // (tiles // 2)
            pair = block % (tiles // 2)
            q = T.alloc_shared((tile, dim), "float16")
            k = T.alloc_shared((tile, dim), "float16")
            v = T.alloc_shared((tile, dim), "float16")
            p = T.alloc_shared((tile, tile), "float16")
            scores = T.alloc_fragment((tile, tile), "float32")
            product = T.alloc_fragment((tile, dim), "float32")
            result = T.alloc_fragment((tile, dim), "float32")
            largest = T.alloc_fragment((tile, 1), "float32")
            before = T.alloc_fragment((tile, 1), "float32")
            total = T.alloc_fragment((tile, 1), "float32")
            share = T.alloc_fragment((tile, 1), "float32")

            for half in T.serial(2):
                row = (pair + half * (tiles - 1 - 2 * pair)) * tile
                T.copy(Q[head, row : row + tile, :], q)
                T.clear(result)
                T.clear(total)
                T.fill(largest, -(2.0**30))
                for t in T.Pipelined(row // tile + 1, num_stages=2):
                    T.copy(K[head, t * tile : (t + 1) * tile, :], k)
                    T.copy(V[head, t * tile : (t + 1) * tile, :], v)
                    T.gemm(q, k, scores, initC=True, b_transpose=True)
                    T.vmul(scores, scale, scores)
                    if t * tile == row:
                        for i, j in T.Parallel(tile, tile):
                            scores[i, j] = T.if_then_else(j <= i, scores[i, j], -(2.0**30))
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
                T.copy(result, O[head, row : row + tile, :])

    return causal


if __name__ == "__main__":
    check(causal)
