"""No tiles before the diagonal

Tiles of queries that precede all keys of a block are skipped: the loop starts at the diagonal. This saves half of the
products, of the traffic and of the additions to `dQ`.

Insight: the results of these tiles are not used. The profile shows the work, but not that its results are discarded.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def causal_backward(heads, length, dim, tile_M=128, tile_N=64):
    scale = dim**-0.5
    queries, keys = T.ceildiv(length, tile_M), T.ceildiv(length, tile_N)

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
        with T.Kernel(heads * keys, is_npu=True) as (block, _):
            head = block // keys
            first = block % keys * tile_N
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
