"""Several iterations in flight

`T.Pipelined` in both launches: the Cube core computes the scores of the next tiles while the Vector cores compute the
weights of the previous ones. `dK`, `dV` and `dQ` stay in L0C throughout, as before.

The compiler already pipelines the serial loop of the previous step (`pipeline-loops`), so the time hardly changes.
`T.Pipelined` states the pipelining in the source and sets the number of slots.

Insight: none. The step gains no time, because the compiler already pipelines the loop.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def attention_backward(heads, length, dim, tile_M=64, tile_N=64):
    scale = dim**-0.5
    queries, keys = T.ceildiv(length, tile_M), T.ceildiv(length, tile_N)

    @T.prim_func
    def attention_backward(
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
            dv = T.alloc_fragment((tile_N, dim), "float32")

            T.copy(K[head, first : first + tile_N, :], k)
            T.copy(V[head, first : first + tile_N, :], v)
            for t in T.Pipelined(queries, num_stages=2):
                row = t * tile_M
                T.copy(Q[head, row : row + tile_M, :], q)
                T.copy(DO[head, row : row + tile_M, :], do)
                T.copy(L[head, row : row + tile_M], lse)
                T.copy(D[head, row : row + tile_M], delta)
                T.gemm(k, q, scores, initC=True, b_transpose=True)
                T.gemm(v, do, change, initC=True, b_transpose=True)
                for i, j in T.Parallel(tile_N, tile_M):
                    scores[i, j] = T.exp(scores[i, j] * scale - lse[j])
                T.copy(scores, p)
                for i, j in T.Parallel(tile_N, tile_M):
                    change[i, j] = (change[i, j] - delta[j]) * scores[i, j] * scale
                T.copy(change, ds)
                T.gemm(p, do, dv, initC=(t == 0))
                T.gemm(ds, q, dk, initC=(t == 0))
            T.copy(dk, DK[head, first : first + tile_N, :])
            T.copy(dv, DV[head, first : first + tile_N, :])

        with T.Kernel(heads * queries, is_npu=True) as (block, _):
            head = block // queries
            row = block % queries * tile_M
            q = T.alloc_shared((tile_M, dim), "float16")
            do = T.alloc_shared((tile_M, dim), "float16")
            k = T.alloc_shared((tile_N, dim), "float16")
            v = T.alloc_shared((tile_N, dim), "float16")
            ds = T.alloc_shared((tile_M, tile_N), "float16")
            scores = T.alloc_fragment((tile_M, tile_N), "float32")
            change = T.alloc_fragment((tile_M, tile_N), "float32")
            lse = T.alloc_fragment((tile_M,), "float32")
            delta = T.alloc_fragment((tile_M,), "float32")
            dq = T.alloc_fragment((tile_M, dim), "float32")

            T.copy(Q[head, row : row + tile_M, :], q)
            T.copy(DO[head, row : row + tile_M, :], do)
            T.copy(L[head, row : row + tile_M], lse)
            T.copy(D[head, row : row + tile_M], delta)
            for t in T.Pipelined(keys, num_stages=2):
                first = t * tile_N
                T.copy(K[head, first : first + tile_N, :], k)
                T.copy(V[head, first : first + tile_N, :], v)
                T.gemm(q, k, scores, initC=True, b_transpose=True)
                T.gemm(do, v, change, initC=True, b_transpose=True)
                for i, j in T.Parallel(tile_M, tile_N):
                    scores[i, j] = T.exp(scores[i, j] * scale - lse[i])
                for i, j in T.Parallel(tile_M, tile_N):
                    change[i, j] = (change[i, j] - delta[i]) * scores[i, j] * scale
                T.copy(change, ds)
                T.gemm(ds, k, dq, initC=(t == 0))
            T.copy(dq, DQ[head, row : row + tile_M, :])

    return attention_backward


if __name__ == "__main__":
    check(attention_backward)
