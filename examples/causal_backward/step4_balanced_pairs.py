"""Long and short columns in pairs

The first tile of keys has all queries after it, the last one only its own. A block processes two tiles, the first and the
last, the second and the last but one, and so on, so that all blocks have the same amount of work.

Insight: tiles differ in their amount of work, and pairs of a long and a short tile all have the same amount.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def causal_backward(heads, length, dim, tile_M=128, tile_N=64):
    scale = dim**-0.5
    queries = T.ceildiv(length, tile_M)
    tiles = 2 * T.ceildiv(length, 2 * tile_N)  # of keys, an even number

    @T.prim_func
    def causal_backward(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        DO: T.Tensor((heads, length, dim), "float16"),
        L: T.Tensor((heads, length), "float32"),
        D: T.Tensor((heads, length), "float32"),
        DQ: T.Tensor((heads, length, dim), "float32"),
        DK: T.Tensor((heads, length, dim), "float32"),
        DV: T.Tensor((heads, length, dim), "float32"),
    ):
        with T.Kernel(heads * tiles // 2, is_npu=True) as (block, _):
            head = block // (tiles // 2)
            pair = block % (tiles // 2)
            k = T.alloc_shared((tile_N, dim), "float16")
            v = T.alloc_shared((tile_N, dim), "float16")
            q = T.alloc_shared((tile_M, dim), "float16")
            do = T.alloc_shared((tile_M, dim), "float16")
            p = T.alloc_shared((tile_N, tile_M), "float16")
            ds = T.alloc_shared((tile_N, tile_M), "float16")
            scores = T.alloc_fragment((tile_N, tile_M), "float32")
            change = T.alloc_fragment((tile_N, tile_M), "float32")
            lse = T.alloc_fragment((tile_M,), "float32")
            delta = T.alloc_fragment((tile_M,), "float32")
            dk = T.alloc_fragment((tile_N, dim), "float32")
            dq = T.alloc_fragment((tile_M, dim), "float32")
            dv = T.alloc_fragment((tile_N, dim), "float32")

            for half in T.serial(2):
                first = (pair + half * (tiles - 1 - 2 * pair)) * tile_N
                T.copy(K[head, first : first + tile_N, :], k)
                T.copy(V[head, first : first + tile_N, :], v)
                before = first // tile_M  # tiles of queries that precede all of these keys
                for t in T.Pipelined(queries - before, num_stages=2):
                    row = (before + t) * tile_M
                    T.copy(Q[head, row : row + tile_M, :], q)
                    T.copy(DO[head, row : row + tile_M, :], do)
                    T.copy(L[head, row : row + tile_M], lse)
                    T.copy(D[head, row : row + tile_M], delta)
                    T.gemm(k, q, scores, initC=True, b_transpose=True)
                    T.gemm(v, do, change, initC=True, b_transpose=True)
                    for i, j in T.Parallel(tile_N, tile_M):
                        scores[i, j] = T.exp(scores[i, j] * scale - lse[j])
                    if t == 0:
                        for i, j in T.Parallel(tile_N, tile_M):
                            scores[i, j] = T.if_then_else(first + i <= row + j, scores[i, j], 0.0)
                    T.copy(scores, p)
                    for i, j in T.Parallel(tile_N, tile_M):
                        change[i, j] = (change[i, j] - delta[j]) * scores[i, j] * scale
                    T.copy(change, ds)
                    T.gemm(p, do, dv, initC=(t == 0))
                    T.gemm(ds, q, dk, initC=(t == 0))
                    T.gemm(ds, k, dq, initC=True, a_transpose=True)
                    T.atomic_add(DQ[head, row, 0], dq)
                T.copy(dk, DK[head, first : first + tile_N, :])
                T.copy(dv, DV[head, first : first + tile_N, :])

    return causal_backward


if __name__ == "__main__":
    check(causal_backward)
